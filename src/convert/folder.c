/* What a Hugging Face folder as a whole says. */
#include "convert/folder.h"

clt_type clt_folder_type(const clt_file *f) {
    double numbers[3] = {0};
    static const clt_type types[] = {CLT_F32, CLT_F16, CLT_BF16};
    for (size_t i = 0; i < clt_file_tensors(f); i++) {
        const clt_tensor *t = clt_file_tensor(f, i);
        for (int k = 0; k < 3; k++)
            if (t->type == types[k]) numbers[k] += (double)t->dims[0] * (double)clt_tensor_rows(t);
    }
    if (numbers[1] == 0 && numbers[2] == 0) return CLT_F32;
    return numbers[2] >= numbers[1] ? CLT_BF16 : CLT_F16;
}
