/* prog_make.h - programs by hand, for tests.
 *
 *     mk m = mk_new(n_buffers, n_counters, n_tasks);     at most that many
 *     int x = mk_buf(&m, "x", BR_MBK_IO_INPUT, 16);      F32 [1, 16]
 *     int c = mk_ctr(&m);
 *     mk_task(&m, BR_MOP_GELU, c, MK(x), MK(y), MK(c0, 1));
 *     ... m.p ...
 *     br_mega_free(m.p);
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROG_MAKE_H
#define PROG_MAKE_H

#include "t.h"

#include "mega/mega.h"

#include <stdlib.h>
#include <string.h>

typedef struct mk {
    br_mega_prog *p;
    size_t max_buffers, max_counters, max_tasks;
} mk;

typedef struct mk_list { /* of ids; of counter, threshold pairs for waits */
    const int64_t *at;
    uint32_t n;
} mk_list;
#define MK(...)                                \
    ((mk_list){(const int64_t[]){__VA_ARGS__}, \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)})
#define MK_NONE ((mk_list){NULL, 0})

static inline mk
mk_new(size_t buffers, size_t counters, size_t tasks)
{
    mk m = {br_mega_new(0), buffers, counters, tasks};

    ck_assert_ptr_nonnull(m.p);
    m.p->buffers = br_arena_new(&m.p->arena, br_mega_buffer, buffers + 1);
    m.p->counters = br_arena_new(&m.p->arena, br_mega_counter, counters + 1);
    m.p->tasks = br_arena_new(&m.p->arena, br_mega_task, tasks + 1);
    ck_assert_ptr_nonnull(m.p->buffers);
    ck_assert_ptr_nonnull(m.p->counters);
    ck_assert_ptr_nonnull(m.p->tasks);
    return m;
}

static inline const char *
mk_text(mk *m, const char *z)
{
    char *s = br_arena_str(&m->p->arena, z, strlen(z));

    ck_assert_ptr_nonnull(s);
    return s;
}

static inline int64_t
mk_buf(mk *m, const char *name, br_mega_kind kind, int64_t n)
{
    br_mega_prog *p = m->p;
    int64_t *shape = br_arena_new(&p->arena, int64_t, 2);
    size_t i = p->n_buffers++;

    ck_assert_uint_lt(i, m->max_buffers);
    shape[0] = 1;
    shape[1] = n;
    p->buffers[i] = (br_mega_buffer){.id = (int64_t)i,
                                     .name = mk_text(m, name),
                                     .name_n = (uint32_t)strlen(name),
                                     .shape = shape,
                                     .rank = 2,
                                     .kind = (uint8_t)kind,
                                     .dtype = BR_MDT_F32};
    return (int64_t)i;
}

static inline int64_t
mk_ctr(mk *m)
{
    size_t i = m->p->n_counters++;

    ck_assert_uint_lt(i, m->max_counters);
    m->p->counters[i] = (br_mega_counter){.id = (int64_t)i, .note = ""};
    return (int64_t)i;
}

static inline br_mega_task *
mk_task(mk *m, br_mega_op op, int64_t counter, mk_list in, mk_list out,
        mk_list waits)
{
    br_mega_prog *p = m->p;
    size_t i = p->n_tasks++;
    br_mega_wait *w = br_arena_new(&p->arena, br_mega_wait, waits.n / 2 + 1);
    br_mega_task *t = &p->tasks[i];

    ck_assert_uint_lt(i, m->max_tasks);
    for (uint32_t k = 0; k < waits.n / 2; k++)
        w[k] = (br_mega_wait){waits.at[2 * k], waits.at[2 * k + 1]};
    *t = (br_mega_task){
        .id = (int64_t)i,
        .in = br_arena_dup(&p->arena, in.at, in.n * sizeof *in.at),
        .out = br_arena_dup(&p->arena, out.at, out.n * sizeof *out.at),
        .waits = w,
        .params = br_json_new(&p->arena, BR_J_OBJ),
        .label = "",
        .out_counter = counter,
        .sm = BR_MEGA_SM_NONE,
        .n_in = in.n,
        .n_out = out.n,
        .n_waits = waits.n / 2,
        .op = (uint8_t)op};
    return t;
}

static inline void
mk_label(mk *m, br_mega_task *t, const char *z)
{
    t->label = mk_text(m, z);
    t->label_n = (uint32_t)strlen(z);
}

/* ---- random programs --------------------------------------------------- */

enum { MK_GRAIN = 64 }; /* floats in 256 bytes */

typedef struct mk_shape {
    uint32_t n;      /* activations */
    uint32_t window; /* how far back a task reads */
    uint32_t sizes;  /* 1 .. sizes times 256 bytes */
    bool tiles;      /* some buffers are written by four tasks */
    bool outputs;    /* a COPY to an IO_OUTPUT for what nobody reads */
} mk_shape;

static inline uint32_t
mk_below(uint64_t *r, uint32_t n)
{
    return (uint32_t)(t_rand(r) % n);
}

/* Buffer 0 is the input, activation i is buffer i + 1. */
static inline mk
mk_random(uint64_t *r, mk_shape s)
{
    static const br_mega_op one[] = {BR_MOP_GELU, BR_MOP_COPY, BR_MOP_SOFTMAX};
    static const br_mega_op two[] = {BR_MOP_ADD, BR_MOP_SILU_MUL, BR_MOP_MUL};
    mk m = mk_new(2 * s.n + 1, 2 * s.n + 1, 5 * s.n + 1);
    int64_t *threshold = calloc(s.n + 1, sizeof *threshold);
    bool *read = calloc(s.n + 1, sizeof *read);

    mk_buf(&m, "x", BR_MBK_IO_INPUT, MK_GRAIN);
    for (int64_t i = 1; i <= s.n; i++) {
        int64_t in[2] = {0, 0}, w[4];
        uint32_t n_in = 1 + mk_below(r, 2), nw = 0;
        bool tiles = s.tiles && mk_below(r, 4) == 0;
        mk_buf(&m, t_printf("a%d", (int)i), BR_MBK_ACTIVATION,
               MK_GRAIN * (int64_t)(1 + t_rand(r) % s.sizes));
        mk_ctr(&m);
        for (uint32_t k = 0; k < n_in; k++) {
            int64_t b = i - 1 - (int64_t)(t_rand(r) % s.window);
            in[k] = b < 0 ? 0 : b;
            if (!in[k] || (k && in[0] == in[1]))
                continue;
            read[in[k]] = true;
            w[nw++] = in[k] - 1;
            w[nw++] = threshold[in[k]];
        }
        threshold[i] = tiles ? 4 : 1;
        for (int64_t k = 0; k < threshold[i]; k++)
            mk_task(&m,
                    tiles       ? BR_MOP_GEMV_TILE
                    : n_in == 1 ? one[mk_below(r, 3)]
                                : two[mk_below(r, 3)],
                    i - 1, (mk_list){in, n_in}, MK(i), (mk_list){w, nw});
    }
    for (int64_t i = 1; i <= s.n && s.outputs; i++)
        if (!read[i])
            mk_task(&m, BR_MOP_COPY, mk_ctr(&m), MK(i),
                    MK(mk_buf(&m, "o", BR_MBK_IO_OUTPUT, MK_GRAIN)),
                    MK(i - 1, threshold[i]));
    free(threshold);
    free(read);
    return m;
}

#endif
