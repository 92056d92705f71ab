/* tokenizer.model, the protocol buffer of SentencePiece: its pieces come out, nothing else of it is read.
 *
 *   message   field 1, repeated: a piece { 1: text, 2: score, 32 bits, 3: kind }. Its numbers are
 *             those of GGUF, but for 4, a piece that a user defined, which counts as normal
 *   field     varint: number << 3 | wire type; 0 = varint, 1 = 8 bytes, 2 = varint length and bytes, 5 = 4 bytes
 */
#include <string.h>
#include "base/map.h"
#include "convert/folder.h"

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static bool varint(cursor *c, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t b = *c->at++;
        *out |= (uint64_t)(b & 127) << shift;
        if (b < 128) return true;
    }
    return false;
}

typedef struct field {
    uint64_t number, value; /* value: of a varint, or bits */
    cursor bytes;           /* of wire type 2 */
    unsigned wire;
} field;

static bool next_field(cursor *c, field *f) {
    uint64_t key, n;
    if (!varint(c, &key)) return false;
    *f = (field){.number = key >> 3, .wire = (unsigned)(key & 7)};
    if (f->wire == 0) return varint(c, &f->value);
    if (f->wire == 2) {
        if (!varint(c, &n) || n > (uint64_t)(c->end - c->at)) return false;
        f->bytes = (cursor){c->at, c->at + n};
        c->at += n;
        return true;
    }
    n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
    if (!n || n > (uint64_t)(c->end - c->at)) return false;
    for (uint64_t i = 0; i < n; i++) f->value |= (uint64_t)c->at[i] << (8 * i);
    c->at += n;
    return true;
}

static bool read_piece(cursor c, clt_pieces *out) {
    cursor text = {0};
    float score = 0;
    int32_t kind = 1; /* normal */
    while (c.at < c.end) {
        field f;
        if (!next_field(&c, &f)) return false;
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.wire == 2) text = f.bytes;
        if (f.number == 2 && f.wire == 5) memcpy(&score, &bits, sizeof score);
        if (f.number == 3 && f.wire == 0) kind = f.value >= 1 && f.value <= 6 && f.value != 4 ? (int32_t)f.value : 1;
    }
    size_t n = (size_t)(text.end - text.at);
    if (n) clt_buf_put(&out->texts, text.at, n);
    clt_ids_push(&out->lens, (int32_t)n);
    clt_ids_push(&out->kinds, kind);
    clt_buf_put(&out->scores, &score, sizeof score);
    return true;
}

clt_status clt_pieces_read(const char *path, clt_pieces *out, clt_err *err) {
    clt_map map = {0};
    *out = (clt_pieces){0};
    clt_status status = clt_map_open(path, &map, err);
    if (status != CLT_OK)
        return clt_hint(err, "a Gemma 3 folder is converted with its tokenizer.model: fetch that file, too");
    cursor c = {map.data, map.data + map.size};
    bool sound = map.size > 0;
    while (sound && c.at < c.end) {
        field f;
        sound = next_field(&c, &f) && (f.number != 1 || f.wire != 2 || read_piece(f.bytes, out));
    }
    if (!sound || !out->lens.len) status = clt_fail(err, CLT_E_FILE, "%s: damaged, or no SentencePiece model", path);
    else if (out->texts.failed || out->lens.failed || out->kinds.failed || out->scores.failed)
        status = clt_fail_memory(err, path, map.size);
    clt_map_close(&map);
    if (status != CLT_OK) clt_pieces_free(out);
    return status;
}

void clt_pieces_free(clt_pieces *p) {
    clt_buf_free(&p->texts);
    clt_buf_free(&p->scores);
    clt_ids_free(&p->lens);
    clt_ids_free(&p->kinds);
}
