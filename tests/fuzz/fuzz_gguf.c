/* Fuzzes the opening of a GGUF file: arbitrary bytes either are refused in one line or give tensors and metadata that can
 * be read to their last byte. */
#include <stdint.h>
#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int fd = fuzz_memory_file(data, size, path, sizeof path);
    if (fd < 0) return 0;
    fuzz_open(path);
    close(fd);
    return 0;
}
