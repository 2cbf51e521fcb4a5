/* fuzz_model.c - any header of a GGUF file as a model that computes.
 *
 * Behind it is a MiB of small numbers, in whatever format they are read: small in F32,
 * F16 and BF16, blocks as they come.
 *
 * What opens and makes a graph computes three tokens on the reference tier, and on the
 * CPU tier, with exact arithmetic, the same bits: in steps of two rows and of one.
 * fuzz_gguf.c looks at the file alone; here are hyperparameters, shapes, graphs, plans.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/oracle.h"

#include <math.h>
#include <string.h>

enum {
    DATA = 1 << 20,
    HEAD = 1 << 16,
    TOKENS = 3,
    MOST_WORDS = 1 << 12,
    MOST_LAYERS = 8
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t file[HEAD + DATA];
static float logits[2][TOKENS * MOST_WORDS];

static void
put_numbers(uint8_t *p, size_t n)
{
    static const uint8_t some[] = {0x00, 0x3c, 0x80, 0x3d, 0x11, 0xbc,
                                   0x9a, 0x3c, 0x55, 0x3a, 0x21, 0xbd};

    for (size_t i = 0; i < n; i++)
        p[i] = some[i % sizeof some];
}

/* What is large for no fault of ours: numbers that no tensor bears out. */
static bool
is_small(const br_model *m)
{
    return m->hp.n_vocab <= MOST_WORDS && m->hp.n_layer <= MOST_LAYERS;
}

static br_code
compute(const br_model *m, br_cpu_pool *pool, float *out, br_status *st)
{
    static const int32_t some[TOKENS] = {1, 0, 2};
    br_oracle_config c = {.act = BR_REF_QUANTISED,
                          .n_ctx = 32,
                          .max_rows = 2,
                          .pool = pool,
                          .exact = true,
                          .kv = BR_Q_F32};
    int32_t tokens[TOKENS];
    br_oracle o;
    br_code code;

    for (int i = 0; i < TOKENS; i++)
        tokens[i] = some[i] % (int32_t)m->hp.n_vocab;
    BR_TRY(br_oracle_open(&o, m, &c, st));
    code = br_oracle_feed(&o, 0, 0, tokens, TOKENS, 2, out, st);
    br_oracle_close(&o);
    return code;
}

static bool
are_numbers(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static br_cpu_pool *pool;
    const size_t head = BR_MIN(size, (size_t)HEAD);
    br_status st = {0}, other = {0};
    br_model *m;
    br_code want, got;
    size_t n;

    if (!pool) {
        got = br_cpu_pool_new(&pool, 1, &st);
        br_check(got == BR_OK);
        put_numbers(file, sizeof file);
    }
    memcpy(file, data, head);
    got = br_model_open_mem(&m, file, sizeof file, &st);
    br_check(got == BR_OK || st.msg[0]);
    if (got != BR_OK) {
        put_numbers(file, head);
        return 0;
    }
    n = TOKENS * (size_t)m->hp.n_vocab;
    if (is_small(m)) {
        want = compute(m, NULL, logits[0], &st);
        got = compute(m, pool, logits[1], &other);
        br_check((want == BR_OK || st.msg[0]) &&
                 (got == BR_OK || other.msg[0]));
        br_check((want == BR_OK) == (got == BR_OK));
        br_check(want != BR_OK || !are_numbers(logits[0], n) ||
                 memcmp(logits[0], logits[1], n * sizeof(float)) == 0);
    }
    br_model_close(m);
    put_numbers(file, head);
    return 0;
}
