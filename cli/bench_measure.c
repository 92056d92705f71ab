/* Conditions that each take a process of their own: loading, the first token, memory, passes over several rows. */
#include "bench.h"
#include "child.h"

void cli_bench_forward(const cli_args *a, cli_words *w) {
    (void)a;
    (void)w;
}

int cli_bench_measure(cli_bench_run *b) {
    (void)b;
    return 0;
}
