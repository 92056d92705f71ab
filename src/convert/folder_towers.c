/* The towers of a Hugging Face folder as a vision file. */
#include "convert/folder.h"

clt_status clt_manifest_towers(const clt_file *f, clt_type type, clt_manifest *out, clt_err *err) {
    (void)type, (void)out;
    return clt_fail(err, CLT_E_UNSUPPORTED, "%s: x", clt_file_path(f));
}
