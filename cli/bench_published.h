/* What the two published systems state, as a table: their numbers, and the measurement of ours that stands beside each. */
#ifndef CLI_BENCH_PUBLISHED_H
#define CLI_BENCH_PUBLISHED_H
#include <stddef.h>

/* One line of the first publication: a runtime's speed. */
typedef struct cli_published_speed {
    const char *runtime, *model, *prefill, *generation; /* tokens per second, as stated; "" = not stated */
} cli_published_speed;

/* Which measurement of ours answers a line of the second publication. */
typedef enum cli_ours {
    CLI_OURS_NONE,          /* `why` says so */
    CLI_OURS_GENERATION,    /* tokens per second */
    CLI_OURS_PREFILL_512,
    CLI_OURS_TTFT_28,       /* ms */
    CLI_OURS_TTFT_512,
    CLI_OURS_TTFT_SECOND,
    CLI_OURS_LOAD_COLD,     /* s */
    CLI_OURS_LOAD_WARM,
    CLI_OURS_MEMORY,        /* GB */
    CLI_OURS_DISK,
} cli_ours;

typedef struct cli_published_line {
    const char *item, *stated;
    cli_ours ours;
    const char *why;        /* of CLI_OURS_NONE */
} cli_published_line;

/* What cannot be done here yet. */
extern const char cli_published_not_yet[];
extern const char cli_published_speed_title[], cli_published_line_title[], cli_published_differs[];
extern const cli_published_speed cli_published_speeds[];
extern const size_t cli_n_published_speeds;
extern const cli_published_line cli_published_lines[];
extern const size_t cli_n_published_lines;

#endif
