/* One GGUF file (a shard or a whole model): mapped bytes come in; its header, metadata and tensors go out, all checked.
 *
 *   0  "GGUF" | 4  u32 version (2 or 3) | 8  u64 tensors | 16  u64 metadata entries | 24  metadata, tensor table, data
 */
#include <inttypes.h>
#include "file/impl.h"

enum { DEFAULT_ALIGNMENT = 32, HEADER_BYTES = 24 };

static clt_status fail_no_gguf(const char *path, const clt_map *map, clt_err *err) {
    static const char *const older[] = {"lmgg", "fmgg", "tjgg", "algg"}; /* the formats before GGUF, as they lie in files */
    char shown[CLT_SHOWN_BYTES];
    size_t n = map->size < 4 ? (size_t)map->size : 4;
    for (size_t i = 0; n == 4 && i < sizeof older / sizeof older[0]; i++)
        if (memcmp(map->data, older[i], 4) == 0) {
            clt_fail(err, CLT_E_UNSUPPORTED, "%s: a model in a format older than GGUF", path);
            return clt_hint(err, "convert the original model to GGUF again");
        }
    if (map->size > 8 && map->data[8] == '{' && clt_le64(map->data) < map->size) {
        clt_fail(err, CLT_E_FILE, "%s: a single safetensors file, which does not say what model it belongs to", path);
        return clt_hint(err, "give the folder that holds config.json, tokenizer.json and the safetensors files");
    }
    clt_shown(shown, map->data, n);
    clt_fail(err, CLT_E_FILE, "%s: not a GGUF file: it begins with '%s', expected 'GGUF'", path, shown);
    return clt_hint(err, "a model is a GGUF file or a Hugging Face folder with config.json");
}

static clt_status check_version(const char *path, uint32_t version, clt_err *err) {
    if (version == 2 || version == 3) return CLT_OK;
    if (version != 0 && (version & 0xFFFF) == 0) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: a big-endian GGUF file (version field %02x %02x %02x %02x)", path,
                 version & 0xFF, version >> 8 & 0xFF, version >> 16 & 0xFF, version >> 24);
        return clt_hint(err, "use the little-endian file of this model");
    }
    if (version == 0) return clt_fail(err, CLT_E_FILE, "%s: damaged: GGUF version 0 at offset 4, expected 2 or 3", path);
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: GGUF version %" PRIu32 " is not supported, expected 2 or 3", path, version);
    return clt_hint(err, version == 1 ? "convert the model again: version 1 is outdated" : "this may need a newer culet");
}

static clt_status read_alignment(const char *path, const clt_metas *metas, uint64_t *align, clt_err *err) {
    *align = DEFAULT_ALIGNMENT;
    const clt_meta *m = clt_metas_find(metas, "general.alignment");
    if (!m) return CLT_OK;
    int64_t v = 0;
    if (m->is_array || m->type != CLT_META_U32 || !clt_meta_int(m, 0, &v))
        return clt_fail(err, CLT_E_FILE, "%s: damaged: general.alignment is of type %s%s, expected u32", path,
                        m->is_array ? "array of " : "", clt_meta_type_name(m->type));
    if (v == 0 || (v & (v - 1)) != 0)
        return clt_fail(err, CLT_E_FILE, "%s: damaged: general.alignment is %" PRId64 ", expected a power of two", path, v);
    *align = (uint64_t)v;
    return CLT_OK;
}

clt_status clt_gguf_scan(clt_file *f, int shard, clt_metas *metas, clt_err *err) {
    const char *path = f->shards[shard].path;
    const clt_map *map = &f->shards[shard].map;
    *metas = (clt_metas){0};
    if (map->size < 4 || memcmp(map->data, "GGUF", 4) != 0) return fail_no_gguf(path, map, err);
    if (map->size < HEADER_BYTES) {
        clt_fail(err, CLT_E_FILE, "%s: truncated: the header takes %d bytes, found %" PRIu64, path, HEADER_BYTES, map->size);
        return clt_hint(err, "the download may be incomplete: fetch the file again");
    }
    uint32_t version = (uint32_t)clt_le(map->data + 4, 4);
    uint64_t n_tensors = clt_le64(map->data + 8), n_metas = clt_le64(map->data + 16), align = 0;
    clt_status st = check_version(path, version, err);
    if (st) return st;
    if (shard == 0) f->version = version;
    clt_reader r = {.path = path, .data = map->data, .pos = HEADER_BYTES, .size = map->size, .err = err};
    if (!clt_gguf_scan_metas(&r, n_metas, f->arena, metas)) return err->code;
    st = read_alignment(path, metas, &align, err);
    if (st) return st;
    return clt_gguf_scan_tensors(&r, n_tensors, align, f, shard) ? CLT_OK : err->code;
}
