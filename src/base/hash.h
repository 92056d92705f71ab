/* Hashes: SHA-256 (over OpenSSL's libcrypto) and a fast 64-bit hash for tables. */
#ifndef CLT_BASE_HASH_H
#define CLT_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

typedef struct clt_sha256 clt_sha256; /* a running digest */
clt_status clt_sha256_create(clt_sha256 **h, clt_err *err); /* CLT_E_UNSUPPORTED in a build without libssl-dev */
void clt_sha256_update(clt_sha256 *h, const void *data, size_t n);
void clt_sha256_final(clt_sha256 *h, char hex[65]); /* ends and frees it */
clt_status clt_sha256_hex(const void *data, size_t n, char hex[65], clt_err *err);

/* 64-bit hash of bytes, the same on every machine; not for outside adversaries who may choose keys freely at scale. */
uint64_t clt_hash64(const void *data, size_t n, uint64_t seed);

/* 64-bit checksum of many bytes at the speed of memory, the same on every machine. A change within one aligned word of 8
 * bytes always changes it, any other change almost always. Not against adversaries. */
uint64_t clt_hash_bulk(const void *data, size_t n, uint64_t seed);

#endif
