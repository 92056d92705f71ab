/* Fuzzes the opening of a Hugging Face folder: the bytes are its model.safetensors, or, if they begin with 'i', the text of
 * its index after that letter, which may name model-1.safetensors, a sound file of one tensor "x". */
#include <stdint.h>
#include <sys/stat.h>
#include "fuzz/fuzz_file.h"

static char folder[128];

static void make_folder(void) {
    static const char header[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    char shard[256] = {sizeof header - 1};
    memcpy(shard + 8, header, sizeof header - 1);
    snprintf(folder, sizeof folder, "/dev/shm/culet-fuzz-XXXXXX");
    if (!mkdtemp(folder)) abort();
    fuzz_write(folder, "config.json", "{}", 2);
    fuzz_write(folder, "model-1.safetensors", shard, 8 + sizeof header - 1 + 8);
}

static void remove_folder(void) {
    static const char *const names[] = {"config.json", "model-1.safetensors", "model.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) fuzz_remove(folder, names[i]);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!folder[0]) {
        make_folder();
        atexit(remove_folder);
    }
    bool index = size > 0 && data[0] == 'i';
    const char *name = index ? "model.safetensors.index.json" : "model.safetensors";
    fuzz_write(folder, name, data + index, size - index);
    fuzz_open(folder);
    fuzz_remove(folder, name);
    return 0;
}
