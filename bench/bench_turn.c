/* bench_turn.c - one side of bench_pairs: an answer by the CPU tier, some tokens
 * at a time.
 *
 *   bench_turn MODEL [-t THREADS]          MODEL: a file, or shape:NAME:TYPE
 *
 * Says "ready". To a line with a number: as many tokens of one sequence, one
 * after another, and the nanoseconds that they took; 0: the sequence is empty
 * again. At most 512 tokens of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "kit.h"
#include "run/oracle.h"
#include "run/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };

typedef struct turn {
    br_oracle o;
    br_rng rng;
    uint32_t at, vocab;
    float *logits;
} turn;

static void
token(turn *t)
{
    int32_t slot = 0, want = 1, position = (int32_t)t->at++;
    int32_t id = (int32_t)br_rng_below(&t->rng, t->vocab);
    br_step s = {1, &slot, &position, &id, &want, NULL, false, NULL};
    br_status st = {0};

    must(br_oracle_step(&t->o, &s, BR_IR_DECODE, t->logits, &st), &st);
}

static void
answer(turn *t, uint32_t n)
{
    int64_t from = br_now_ns();

    if (n == 0) {
        br_oracle_reset(&t->o, 0);
        t->at = 0;
    }
    for (uint32_t i = 0; i < n && t->at < MOST; i++)
        token(t);
    printf("%lld\n", (long long)(br_now_ns() - from));
}

int
main(int argc, char **argv)
{
    uint32_t threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    br_oracle_config c = {.n_ctx = MOST, .max_rows = 16, .kv = BR_Q_F16};
    br_status st = {0};
    br_model *m = NULL;
    br_str file = {0};
    char line[64];
    turn t = {0};

    if ((argc != 2 && argc != 4) || (argc == 4 && strcmp(argv[2], "-t") != 0)) {
        fprintf(stderr, "usage: bench_turn MODEL [-t THREADS]\n");
        return 2;
    }
    if (br_shape_is(argv[1])) {
        must(br_shape_model(&file, argv[1], false, &st), &st);
        must(br_model_open_mem(&m, file.at, file.n, &st), &st);
    } else
        must(br_model_open(&m, argv[1], &st), &st);
    must(br_cpu_pool_new(&c.pool, threads, &st), &st);
    must(br_oracle_open(&t.o, m, &c, &st), &st);
    br_rng_init(&t.rng, 1, 0);
    t.vocab = (uint32_t)m->hp.n_vocab;
    t.logits = br_alloc(t.vocab * sizeof *t.logits);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (puts("ready"); fgets(line, sizeof line, stdin);)
        answer(&t, (uint32_t)strtoul(line, NULL, 10));
    br_free(t.logits);
    br_oracle_close(&t.o);
    br_cpu_pool_free(c.pool);
    br_model_close(m);
    br_str_fini(&file);
    return 0;
}
