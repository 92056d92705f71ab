/* The vocabulary and both tokenizers: Gemma 4's ranked-merge BPE and Gemma 3's SentencePiece scores.
 *
 * In: GGUF metadata or tokenizer.json (identical ids either way). Out: bytes -> ids and ids -> bytes.
 * Immutable after clt_vocab_open and independent of the file, which may be closed; tokenizing is thread-safe. */
#ifndef CLT_TEXT_VOCAB_H
#define CLT_TEXT_VOCAB_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "file/file.h"

typedef enum clt_token_kind { /* GGUF's token_type numbers */
    CLT_TOKEN_NORMAL = 1, CLT_TOKEN_UNKNOWN = 2, CLT_TOKEN_CONTROL = 3,
    CLT_TOKEN_USER = 4, CLT_TOKEN_UNUSED = 5, CLT_TOKEN_BYTE = 6
} clt_token_kind;
typedef enum clt_vocab_algorithm { CLT_VOCAB_BPE /* Gemma 4 */, CLT_VOCAB_SPM /* Gemma 3 */ } clt_vocab_algorithm;

typedef struct clt_vocab clt_vocab;
clt_status clt_vocab_open(const clt_file *f, clt_vocab **out, clt_err *err);
void clt_vocab_free(clt_vocab *v);

int32_t clt_vocab_size(const clt_vocab *v);
uint64_t clt_vocab_bytes(const clt_vocab *v); /* memory held; 0 for NULL */
clt_vocab_algorithm clt_vocab_get_algorithm(const clt_vocab *v);
/* The piece as stored (U+2581 for space, "<0x0A>" for bytes); owned by the vocabulary; NULL if id is out of range. */
const char *clt_vocab_piece(const clt_vocab *v, int32_t id, size_t *len);
clt_token_kind clt_vocab_kind(const clt_vocab *v, int32_t id);
/* Special: an id that text may become only where its writer says so (controls, and those user-defined pieces that structure
 * a reply: channel, tool call, tool response, quote). Newline, space and tab runs and html tags are not special. */
bool clt_vocab_is_special(const clt_vocab *v, int32_t id);
int32_t clt_vocab_find(const clt_vocab *v, const char *piece); /* exact stored text; -1 if absent */

/* Ids with a role, found by the file's keys or by their text; -1 where the vocabulary has none. */
typedef struct clt_vocab_roles {
    int32_t bos, eos, unk, pad;
    int32_t turn_open, turn_close;                 /* <|turn> <turn|>, or <start_of_turn> <end_of_turn> */
    int32_t channel_open, channel_close;           /* <|channel> <channel|> */
    int32_t tool_open, tool_close, call_open, call_close, response_open, response_close, quote, think;
    int32_t image_begin, image_slot, image_end, audio_begin, audio_slot, audio_end, video_slot;
} clt_vocab_roles;
const clt_vocab_roles *clt_vocab_get_roles(const clt_vocab *v);

/* Appends the ids of text[0..len) to out. No BOS is added. `special`: text of special tokens becomes their ids (longest
 * match first); otherwise such text stays plain text and can never yield a special id. Any bytes are accepted; what the
 * vocabulary lacks becomes byte tokens. O(n log n) for any input. */
clt_status clt_tokenize(const clt_vocab *v, const char *text, size_t len, bool special, clt_ids *out, clt_err *err);

/* Appends the bytes of one token. `special`: special tokens print their text, otherwise nothing.
 * Unknown ids print nothing. */
void clt_vocab_append_bytes(const clt_vocab *v, int32_t id, bool special, clt_buf *out);

/* Streams bytes to text: holds back what could still become a whole code point, replaces what cannot. */
typedef struct clt_detok {
    const clt_vocab *vocab;
    bool special;
    char held[4];
    unsigned n_held;
} clt_detok;
void clt_detok_init(clt_detok *d, const clt_vocab *v, bool special);
void clt_detok_push(clt_detok *d, int32_t id, clt_buf *out); /* appends whole, valid UTF-8 only */
void clt_detok_push_bytes(clt_detok *d, const char *bytes, size_t n, clt_buf *out);
void clt_detok_end(clt_detok *d, clt_buf *out);              /* what is still held becomes U+FFFD */

#endif
