/* Hashes: SHA-256 over libcrypto, and a 64-bit hash for tables that gives the same value on every machine. */
#include "base/hash.h"
#include <string.h>
#include "base/mem.h"

static uint64_t read_le64(const unsigned char *p, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)p[i] << (8 * i);
    return word;
}

static uint64_t read_word(const unsigned char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Each step is a bijection of h for a given word, so no word can wipe out what came before it. */
static uint64_t absorb(uint64_t h, uint64_t word) {
    h ^= word * UINT64_C(0x9E3779B97F4A7C15);
    return (h << 29 | h >> 35) * UINT64_C(0xBF58476D1CE4E5B9);
}

uint64_t clt_hash64(const void *data, size_t n, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t h = absorb(seed ^ UINT64_C(0x94D049BB133111EB), n);
    size_t left = n;
    for (; left >= 8; p += 8, left -= 8) h = absorb(h, read_le64(p, 8));
    if (left) h = absorb(h, read_le64(p, left));
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return h ^ h >> 31;
}

/* Eight chains side by side, so that no multiplication waits for the one before; each word meets a bijection of its
 * chain. */
uint64_t clt_hash_bulk(const void *data, size_t n, uint64_t seed) {
    enum { LANES = 8, STRIPE = 8 * LANES };
    const unsigned char *p = data;
    uint64_t h[LANES];
    size_t left = n;
    for (int i = 0; i < LANES; i++) h[i] = seed + (uint64_t)i * UINT64_C(0x94D049BB133111EB);
    for (; left >= STRIPE; p += STRIPE, left -= STRIPE) {
        for (int i = 0; i < LANES; i++) {
            uint64_t x = (h[i] ^ read_word(p + 8 * i)) * UINT64_C(0x9E3779B97F4A7C15);
            h[i] = x << 29 | x >> 35;
        }
    }
    uint64_t sum = clt_hash64(p, left, seed ^ n);
    for (int i = 0; i < LANES; i++) sum = absorb(sum, h[i]);
    return sum ^ sum >> 31;
}

#if CLT_HAVE_OPENSSL
#include <openssl/evp.h>

struct clt_sha256 {
    EVP_MD_CTX *ctx;
};

clt_status clt_sha256_create(clt_sha256 **out, clt_err *err) {
    *out = NULL;
    clt_sha256 *h = clt_calloc(1, sizeof *h);
    if (!h) return clt_fail_memory(err, "SHA-256", sizeof *h);
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(h->ctx);
        clt_free(h);
        return clt_fail(err, CLT_E_FAILED, "SHA-256: the cryptography library refuses to start a digest");
    }
    *out = h;
    return CLT_OK;
}

void clt_sha256_update(clt_sha256 *h, const void *data, size_t n) {
    EVP_DigestUpdate(h->ctx, data, n);
}

void clt_sha256_final(clt_sha256 *h, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    EVP_DigestFinal_ex(h->ctx, digest, NULL);
    for (size_t i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
    EVP_MD_CTX_free(h->ctx);
    clt_free(h);
}
#else
clt_status clt_sha256_create(clt_sha256 **out, clt_err *err) {
    *out = NULL;
    return clt_fail_not_built(err, "SHA-256", "libssl-dev");
}

/* Without libcrypto no digest is ever created, so these two have nothing to work on. */
void clt_sha256_update(clt_sha256 *h, const void *data, size_t n) {
    (void)h, (void)data, (void)n;
}

void clt_sha256_final(clt_sha256 *h, char hex[65]) {
    (void)h;
    hex[0] = 0;
}
#endif

clt_status clt_sha256_hex(const void *data, size_t n, char hex[65], clt_err *err) {
    clt_sha256 *h;
    clt_status status = clt_sha256_create(&h, err);
    if (status != CLT_OK) return status;
    clt_sha256_update(h, data, n);
    clt_sha256_final(h, hex);
    return CLT_OK;
}
