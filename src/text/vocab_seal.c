/* What both readers need once all pieces are known: which pieces are special, which have a role, which byte has which
 * piece, where text may be cut. In: pieces with their kinds. Out: a vocabulary ready for merges or scores. */
#include <stddef.h>
#include "text/vocab_impl.h"

/* Text of a piece -> its role. Pieces listed here are special whatever type a file gives them: converters disagree (GGUF
 * types seven of them as user-defined), and text must not be able to forge any. */
typedef struct role_text {
    const char *text;
    size_t offset;  /* into clt_vocab_roles */
    bool structure; /* GGUF types it as user-defined */
} role_text;
#define ROLE(text, role) {text, offsetof(clt_vocab_roles, role), false}
#define STRUCTURE(text, role) {text, offsetof(clt_vocab_roles, role), true}
static const role_text role_texts[] = {
    ROLE("<bos>", bos), ROLE("<eos>", eos), ROLE("<unk>", unk), ROLE("<pad>", pad),
    ROLE("<|turn>", turn_open), ROLE("<start_of_turn>", turn_open),
    ROLE("<turn|>", turn_close), ROLE("<end_of_turn>", turn_close),
    STRUCTURE("<|channel>", channel_open), STRUCTURE("<channel|>", channel_close),
    ROLE("<|tool>", tool_open), ROLE("<tool|>", tool_close),
    STRUCTURE("<|tool_call>", call_open), STRUCTURE("<tool_call|>", call_close),
    STRUCTURE("<|tool_response>", response_open), STRUCTURE("<tool_response|>", response_close),
    STRUCTURE("<|\"|>", quote), ROLE("<|think|>", think),
    ROLE("<|image>", image_begin), ROLE("<start_of_image>", image_begin),
    ROLE("<|image|>", image_slot), ROLE("<image_soft_token>", image_slot),
    ROLE("<image|>", image_end), ROLE("<end_of_image>", image_end),
    ROLE("<|audio>", audio_begin), ROLE("<|audio|>", audio_slot), ROLE("<audio|>", audio_end),
    ROLE("<|video|>", video_slot),
};
enum { N_ROLE_TEXTS = sizeof role_texts / sizeof *role_texts };

bool clt_vocab_text_is_structure(const char *text, size_t len) {
    for (size_t i = 0; i < N_ROLE_TEXTS; i++) {
        const role_text *r = &role_texts[i];
        if (r->structure && strlen(r->text) == len && !memcmp(r->text, text, len)) return true;
    }
    return false;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool clt_vocab_text_is_byte(const char *text, size_t len, unsigned *byte) {
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return false;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    if (high < 0 || low < 0) return false;
    *byte = (unsigned)(high * 16 + low);
    return true;
}

static void find_roles(clt_vocab *v) {
    memset(&v->roles, 0xFF, sizeof v->roles); /* every role -1 */
    for (size_t i = 0; i < N_ROLE_TEXTS; i++) {
        int32_t id = clt_vocab_find(v, role_texts[i].text);
        if (id < 0) continue;
        v->entries[id].special = true;
        int32_t *role = (int32_t *)(void *)((char *)&v->roles + role_texts[i].offset);
        if (*role < 0) *role = id; /* Gemma 4's text before Gemma 3's, should a file have both */
    }
    int32_t mask = clt_vocab_find(v, "<mask>");
    if (mask >= 0) v->entries[mask].special = true;
}

static clt_status find_bytes(clt_vocab *v, const char *what, clt_err *err) {
    memset(v->byte_ids, 0xFF, sizeof v->byte_ids);
    for (int32_t id = 0; id < v->size; id++) {
        const clt_vocab_entry *e = &v->entries[id];
        unsigned byte;
        if (e->kind != CLT_TOKEN_BYTE || e->special) continue;
        if (!clt_vocab_text_is_byte(e->text, e->len, &byte)) {
            return clt_fail(err, CLT_E_FILE, "%s: vocabulary: the byte piece %d is \"%.40s\", expected <0x00> to <0xFF>",
                            what, (int)id, e->text);
        }
        v->byte_ids[byte] = id;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        if (v->byte_ids[byte] < 0) {
            return clt_fail(err, CLT_E_FILE, "%s: vocabulary: the byte piece <0x%02X> is missing", what, byte);
        }
    }
    return CLT_OK;
}

static void mark_joins(clt_vocab *v, const clt_vocab_entry *e) {
    for (uint32_t at = 1; at < e->len; at++) {
        size_t bit = (size_t)clt_byte_before(e->text, at) << 8 | clt_byte_after(e->text, at, e->len);
        v->joins[bit >> 3] |= (uint8_t)(1 << (bit & 7));
    }
}

static void find_mergeable(clt_vocab *v) {
    memset(v->ascii_ids, 0xFF, sizeof v->ascii_ids);
    for (int32_t id = 0; id < v->size; id++) {
        clt_vocab_entry *e = &v->entries[id];
        if (e->kind == CLT_TOKEN_CONTROL || e->kind == CLT_TOKEN_UNKNOWN) e->special = true;
        e->mergeable = e->kind == CLT_TOKEN_NORMAL && !e->special && e->len;
        if (!e->mergeable) continue;
        if (e->len == 1 && !(e->text[0] & 0x80)) v->ascii_ids[(uint8_t)e->text[0]] = id;
        mark_joins(v, e);
    }
}

clt_status clt_vocab_seal(clt_vocab *v, const char *what, clt_err *err) {
    clt_status status = clt_index_build(v, what, err);
    if (status != CLT_OK) return status;
    find_roles(v);
    find_mergeable(v);
    status = find_bytes(v, what, err);
    if (status != CLT_OK) return status;
    return clt_match_build(v, what, err);
}
