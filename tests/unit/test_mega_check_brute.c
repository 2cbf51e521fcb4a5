/* test_mega_check_brute.c - the sound verdict against a checker that is too
 * simple to be wrong: reachability as bit sets, every pair of tasks, every
 * element of every buffer.
 *
 * Programs are random and small: at most 12 tasks on buffers of at most 12
 * elements. Most waits are put where a correct program would have them, so
 * that about a third is accepted and the rest fails narrowly.
 *
 *     make CFLAGS='-O2 -DBRUTE_RUNS=300000' test K=brute      a long run
 *     ... -DMIN_CELLS=2 -DPRICE=1000000     that buys each answer (br_deal)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "prog_make.h"

T_ONE_THREAD();

#ifndef BRUTE_RUNS
#    define BRUTE_RUNS 20000
#endif

enum { MAX_T = 12, MAX_B = 8, SLOTS = 4 };

typedef struct access {
    uint16_t read[MAX_B], write; /* a bit per element */
    int out;                     /* buffer, or -1 */
    bool clumsy;                 /* reads what it writes, not by elements */
    bool elementwise;
} access;

typedef struct world {
    uint64_t seed;
    mk m;
    int n_t, n_b, rows, cols;
    access acc[MAX_T];
    int ctr[MAX_T];
    bool written[MAX_B];
    int page[MAX_B]; /* of an activation, or -1 */
    int half, from;  /* a tile of buffer `half` is to go on at column `from` */
} world;

static int
pick(world *w, int n)
{
    return (int)(t_rand(&w->seed) % (uint64_t)n);
}

static bool
often(world *w, int percent)
{
    return pick(w, 100) < percent;
}

static void
param(world *w, br_mega_task *t, br_mega_param p, int64_t v)
{
    br_json *j = br_json_new_i64(&w->m.p->arena, v);

    ck_assert_ptr_nonnull(j);
    j->tag = (uint8_t)(p + 1);
    ck_assert(br_json_put(&w->m.p->arena, t->params, br_mega_param_name(p), j));
    t->param_mask |= 1u << p;
}

static void
set_shape(world *w, int64_t b, uint32_t rank, int64_t d0, int64_t d1,
          int64_t d2)
{
    int64_t *s = br_arena_new(&w->m.p->arena, int64_t, 3);

    s[0] = d0;
    s[1] = d1;
    s[2] = d2;
    w->m.p->buffers[b].shape = s;
    w->m.p->buffers[b].rank = rank;
}

/* Buffer 0: input. 1: weight [C, C]. 2: output. 3: cache [SLOTS, 1, C]. Then
 * activations. All but weight and cache are [R, C]. */
static void
make_buffers(world *w)
{
    static const br_mega_kind kinds[] = {BR_MBK_IO_INPUT, BR_MBK_WEIGHT,
                                         BR_MBK_IO_OUTPUT, BR_MBK_KV_CACHE};

    w->rows = 1 + pick(w, 3);
    w->cols = 1 + pick(w, 4);
    w->n_b = often(w, 50) ? 5 : 5 + pick(w, 3); /* few: written again */
    for (int b = 0; b < w->n_b; b++) {
        mk_buf(&w->m, "b", b < 4 ? kinds[b] : BR_MBK_ACTIVATION, 1);
        if (b == 1)
            set_shape(w, b, 2, w->cols, w->cols, 0);
        else if (b == 3)
            set_shape(w, b, 3, SLOTS, 1, w->cols);
        else
            set_shape(w, b, 2, w->rows, w->cols, 0);
    }
}

static uint16_t
bits(world *w, int r0, int r1, int c0, int c1)
{
    uint16_t m = 0;

    for (int r = r0; r < r1; r++)
        for (int c = c0; c < c1; c++)
            m |= (uint16_t)(1u << (r * w->cols + c));
    return m;
}

/* A buffer to write, or one to read that mostly somebody has written. */
static int
activation(world *w, bool write)
{
    int b = 3 + pick(w, w->n_b - 3);

    if (!write && !often(w, 3) && !w->written[b])
        return 0;
    return b > 3 ? b : write || often(w, 20) ? 2 : 0;
}

/* Columns of a tile: often all, or the rest of what was begun before. */
static void
tile_columns(world *w, int *o, int *c0, int *n)
{
    bool again = w->half && often(w, 90);

    if (again)
        *o = w->half;
    *c0 = again ? w->from : often(w, 90) ? 0 : pick(w, w->cols);
    *n = w->cols - *c0;
    if (often(w, 40))
        *n = 1 + pick(w, *n);
    w->from = *c0 + *n;
    w->half = w->from < w->cols ? *o : 0;
}

static void
make_task(world *w, int i)
{
    static const br_mega_op ops[] = {
        BR_MOP_COPY,      BR_MOP_GELU,      BR_MOP_ADD,
        BR_MOP_GEMV_TILE, BR_MOP_GEMV_TILE, BR_MOP_GEMM_TILE,
        BR_MOP_KV_APPEND, BR_MOP_NOP,       BR_MOP_ATTENTION_TILE};
    br_mega_op op = w->half && often(w, 90) ? BR_MOP_GEMV_TILE
                    : i == w->n_t - 1 && often(w, 90)
                        ? BR_MOP_COPY
                        : ops[pick(w, (int)BR_COUNT(ops))];
    int x = activation(w, false), y = activation(w, false);
    int o = activation(w, true), c0, n, r0 = 0, r1 = w->rows;
    uint16_t all = bits(w, 0, w->rows, 0, w->cols);
    access *a = &w->acc[i];
    br_mega_task *t = NULL;
    int ctr = w->ctr[i];

    if (i == w->n_t - 1 && op == BR_MOP_COPY)
        o = 2;
    *a = (access){.out = o, .write = all};
    a->elementwise = op == BR_MOP_COPY || op == BR_MOP_GELU || op == BR_MOP_ADD;
    switch ((int)op) {
    case BR_MOP_NOP:
        mk_task(&w->m, op, ctr, MK_NONE, MK_NONE, MK_NONE);
        *a = (access){.out = -1};
        return;
    case BR_MOP_ADD:
        mk_task(&w->m, op, ctr, MK(x, y), MK(o), MK_NONE);
        a->read[y] |= all;
        a->read[x] |= all;
        return;
    case BR_MOP_GEMV_TILE:
    case BR_MOP_GEMM_TILE:
        tile_columns(w, &o, &c0, &n);
        a->out = o;
        t = mk_task(&w->m, op, ctr, MK(x, 1), MK(o), MK_NONE);
        if (op == BR_MOP_GEMM_TILE && often(w, 30)) {
            r0 = pick(w, w->rows);
            r1 = r0 + 1 + pick(w, w->rows - r0);
            param(w, t, BR_MP_m_off, r0);
        }
        if (op == BR_MOP_GEMM_TILE)
            param(w, t, BR_MP_M_tile, r1 - r0);
        param(w, t, BR_MP_K, w->cols);
        param(w, t, BR_MP_N_tile, n);
        param(w, t, BR_MP_n_off, c0);
        a->write = bits(w, r0, r1, c0, c0 + n);
        a->read[x] |= bits(w, r0, r1, 0, w->cols);
        a->clumsy = x == o;
        return;
    case BR_MOP_KV_APPEND:
        t = mk_task(&w->m, op, ctr, MK(x, 3), MK(3), MK_NONE);
        c0 = pick(w, SLOTS - w->rows + 1);
        param(w, t, BR_MP_pos, c0);
        a->read[x] |= all;
        a->out = 3;
        a->write = bits(w, c0, c0 + w->rows, 0, w->cols);
        return;
    case BR_MOP_ATTENTION_TILE:
        t = mk_task(&w->m, op, ctr, MK(x, 3, 3), MK(o), MK_NONE);
        c0 = pick(w, SLOTS);
        n = 1 + pick(w, SLOTS - c0);
        param(w, t, BR_MP_head_dim, w->cols);
        param(w, t, BR_MP_kv_start, c0);
        param(w, t, BR_MP_kv_len, n);
        param(w, t, BR_MP_scale, 1);
        param(w, t, BR_MP_n_heads, w->rows);
        param(w, t, BR_MP_n_kv_heads, 1);
        a->read[x] |= all;
        a->read[3] |= bits(w, c0, c0 + n, 0, w->cols);
        a->clumsy = x == o;
        return;
    default: break;
    }
    mk_task(&w->m, op, ctr, MK(x), MK(o), MK_NONE);
    a->read[x] |= all;
}

static bool
clash(const access *a, const access *b)
{
    if (a->out >= 0 && (a->write & b->read[a->out]))
        return true;
    if (b->out >= 0 && (b->write & a->read[b->out]))
        return true;
    return a->out >= 0 && a->out == b->out && (a->write & b->write);
}

/* Task i waits for the counters of most earlier tasks it clashes with, and
 * now and then for another. Only counters without later producers are waited
 * for, most of the time. */
static void
make_waits(world *w, int i)
{
    br_mega_task *t = &w->m.p->tasks[i];
    br_mega_wait *waits = br_arena_new(&w->m.p->arena, br_mega_wait, MAX_T);
    bool has[MAX_T] = {false};

    ck_assert_ptr_nonnull(waits);
    t->waits = waits;
    for (int j = 0; j < w->n_t; j++) {
        int c = w->ctr[j], producers = 0;
        bool later = false, want = j < i && clash(&w->acc[j], &w->acc[i]);

        for (int k = 0; k < w->n_t; k++) {
            producers += w->ctr[k] == c;
            later |= w->ctr[k] == c && k >= i;
        }
        if (has[c] || (later && !often(w, 1)) ||
            !often(w, want    ? 96
                      : j < i ? 8
                              : 1) ||
            t->n_waits == 8)
            continue;
        has[c] = true;
        waits[t->n_waits++] = (br_mega_wait){c, producers};
    }
}

/* Two pages, large enough for all. */
static void
make_pages(world *w)
{
    br_mega_prog *p = w->m.p;

    p->has_pages = true;
    p->pages = br_arena_new(&p->arena, br_mega_page, 2);
    p->binds = br_arena_new(&p->arena, br_mega_bind, MAX_B);
    for (int i = 0; i < 2; i++)
        p->pages[p->n_pages++] = (br_mega_page){i, 64, -1, -1, BR_MSP_HBM};
    for (int b = 4; b < w->n_b; b++) {
        w->page[b] = pick(w, 3) - 1;
        if (w->page[b] >= 0)
            p->binds[p->n_binds++] = (br_mega_bind){b, w->page[b]};
    }
}

static void
make_world(world *w)
{
    bool share = false;

    w->n_t = 2 + pick(w, MAX_T - 1);
    w->m = mk_new(MAX_B, MAX_T, MAX_T);
    make_buffers(w);
    for (int i = 0; i < w->n_t; i++) {
        share = often(w, 30);
        w->ctr[i] = i && share ? w->ctr[i - 1 - pick(w, BR_MIN(i, 2))] : i;
        mk_ctr(&w->m);
    }
    for (int i = 0; i < w->n_t; i++) {
        make_task(w, i);
        if (w->acc[i].out >= 0)
            w->written[w->acc[i].out] = true;
    }
    for (int i = 0; i < w->n_t; i++)
        make_waits(w, i);
    for (int b = 0; b < MAX_B; b++)
        w->page[b] = -1;
    if (often(w, 30))
        make_pages(w);
    if (often(w, 30))
        for (int i = 0; i < w->n_t; i++)
            w->m.p->tasks[i].sm = often(w, 80) ? pick(w, 3) : BR_MEGA_SM_NONE;
}

/* Two tasks trade places in the list: the program is the same, but for the
 * order of queues. */
static void
shuffle(world *w)
{
    for (int n = pick(w, 3); n > 0; n--) {
        int i = pick(w, w->n_t), j = pick(w, w->n_t), c = w->ctr[i];
        access a = w->acc[i];
        br_mega_task t = w->m.p->tasks[i];

        w->m.p->tasks[i] = w->m.p->tasks[j];
        w->m.p->tasks[j] = t;
        w->m.p->tasks[i].id = i;
        w->m.p->tasks[j].id = j;
        w->acc[i] = w->acc[j];
        w->acc[j] = a;
        w->ctr[i] = w->ctr[j];
        w->ctr[j] = c;
    }
}

/* ---- the simple checker ------------------------------------------------- */

/* Is the relation closed over paths without a cycle? Closes it. */
static bool
close_over(bool r[MAX_T][MAX_T], int n)
{
    bool fine = true;

    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                r[i][j] |= r[i][k] && r[k][j];
    for (int i = 0; i < n; i++)
        fine &= !r[i][i];
    return fine;
}

static bool
reads_fine(const world *w, bool hb[MAX_T][MAX_T], int t)
{
    for (int b = 2; b < w->n_b; b++) {
        uint16_t seen = 0, any = 0;
        bool others = false;

        for (int u = 0; u < w->n_t; u++)
            if (w->acc[u].out == b) {
                any |= w->acc[u].write;
                others |= u != t;
                if (hb[u][t])
                    seen |= w->acc[u].write;
            }
        if (b == 3 || (w->acc[t].read[b] & ~seen) == 0)
            continue;
        if (any && !others && w->acc[t].out == b && w->page[b] < 0)
            continue; /* in place, of nothing: only a warning */
        return false;
    }
    return true;
}

/* Is buffer a dead when b is first written? Or read for the last time by the
 * task that writes b, element by element? */
static bool
before(const world *w, bool hb[MAX_T][MAX_T], int a, int b)
{
    for (int u = 0; u < w->n_t; u++)
        for (int v = 0; v < w->n_t; v++) {
            bool uses = w->acc[u].read[a] || w->acc[u].out == a;

            if (!uses || w->acc[v].out != b || hb[u][v])
                continue;
            if (u != v || !w->acc[u].elementwise)
                return false;
        }
    return true;
}

static bool
pages_fine(const world *w, bool hb[MAX_T][MAX_T])
{
    for (int a = 4; a < w->n_b; a++)
        for (int b = a + 1; b < w->n_b; b++)
            if (w->page[a] >= 0 && w->page[a] == w->page[b] &&
                !before(w, hb, a, b) && !before(w, hb, b, a))
                return false;
    return true;
}

static bool
simple_verdict(const world *w)
{
    bool hb[MAX_T][MAX_T] = {{false}}, all[MAX_T][MAX_T];
    uint16_t out = 0;
    int n = w->n_t, last[3] = {-1, -1, -1};

    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < w->m.p->tasks[i].n_waits; k++)
            for (int j = 0; j < n; j++)
                hb[j][i] |= w->ctr[j] == w->m.p->tasks[i].waits[k].counter;
    memcpy(all, hb, sizeof all);
    for (int i = 0; i < n; i++) {
        int64_t sm = w->m.p->tasks[i].sm;

        if (sm == BR_MEGA_SM_NONE)
            continue;
        if (last[sm] >= 0)
            all[last[sm]][i] = true;
        last[sm] = i;
    }
    if (!close_over(all, n))
        return false;
    close_over(hb, n);
    if (!pages_fine(w, hb))
        return false;
    for (int i = 0; i < n; i++) {
        const access *a = &w->acc[i];

        if (a->clumsy || !reads_fine(w, hb, i))
            return false;
        if (a->out == 2)
            out |= a->write;
        for (int j = 0; j < n; j++) {
            const access *b = &w->acc[j];

            if (i == j)
                continue;
            if (clash(a, b) && !hb[i][j] && !hb[j][i])
                return false;
            /* rows of a cache are read after they are written */
            if (a->out == 3 && (a->write & b->read[3]) && !hb[i][j])
                return false;
        }
    }
    return out == bits((world *)(uintptr_t)w, 0, w->rows, 0, w->cols);
}

/* ---- both --------------------------------------------------------------- */

static void
one(uint64_t seed, int *accepted)
{
    world w = {.seed = seed};
    br_status st = {0};
    br_mega_report r;
    bool want;

    make_world(&w);
    if (often(&w, 30))
        shuffle(&w);
    want = simple_verdict(&w);
    t_ok(br_mega_check(w.m.p, BR_MEGA_SOUND, &r, &st), &st);
    if (r.ok != want)
        ck_abort_msg("seed %llu: %d tasks, the check says %s, must be %s",
                     (unsigned long long)seed, w.n_t,
                     r.errors.n ? r.errors.at[0] : "accepted",
                     want ? "accepted" : "rejected");
    *accepted += want;
    br_mega_report_fini(&r);
    br_mega_free(w.m.p);
}

TEST_WITHIN(check_agrees_with_brute_force, 600)
{
    int accepted = 0, runs = t_sanitized() ? BRUTE_RUNS / 10 : BRUTE_RUNS;

    for (int i = 0; i < runs; i++)
        one((uint64_t)i * 0x9e3779b97f4a7c15u + 1, &accepted);
    /* neither verdict is the exception */
    ck_assert_int_gt(accepted, runs / 20);
    ck_assert_int_lt(accepted, runs / 2);
}

/* ---- long programs ------------------------------------------------------- */

enum { LONG = 900, WORDS = (LONG + 63) / 64 };

/* Task i (in the order `at`) copies the buffer of an earlier task to its own
 * and waits for up to three others at most `near` tasks back. */
static br_mega_prog *
make_long(uint64_t *seed, const int *at, int *from, int (*waits)[3])
{
    mk m = mk_new(LONG + 1, LONG, LONG);
    int near = 2 + (int)(t_rand(seed) % 60);

    mk_buf(&m, "x", BR_MBK_IO_INPUT, 4);
    for (int i = 0; i < LONG; i++) {
        mk_buf(&m, "b", BR_MBK_ACTIVATION, 4);
        mk_ctr(&m);
    }
    for (int i = 0; i < LONG; i++) {
        from[i] = i ? (int)(t_rand(seed) % (uint64_t)i) : -1;
        if (t_rand(seed) % 4)
            from[i] = BR_MAX(from[i], i - 300);
        for (int k = 0; k < 3; k++) {
            int back = 1 + (int)(t_rand(seed) % (uint64_t)near);

            waits[i][k] = t_rand(seed) % 4 == 0 || back > i ? -1 : i - back;
        }
    }
    for (int place = 0; place < LONG; place++) {
        int i = 0, n = 0;
        int64_t w[6];

        while (at[i] != place)
            i++;
        for (int k = 0; k < 3; k++)
            if (waits[i][k] >= 0) {
                w[n++] = waits[i][k];
                w[n++] = 1;
            }
        mk_task(&m, BR_MOP_COPY, i, MK(from[i] + 1), MK(i + 1),
                (mk_list){w, (uint32_t)n});
    }
    return m.p;
}

/* How many tasks read a buffer whose writer does not come before them. */
static size_t
count_races(const int *from, int (*waits)[3])
{
    static uint64_t before[LONG][WORDS];
    size_t n = 0;

    memset(before, 0, sizeof before);
    for (int i = 0; i < LONG; i++) {
        for (int k = 0; k < 3; k++) {
            int u = waits[i][k];

            if (u < 0)
                continue;
            before[i][u / 64] |= 1ull << u % 64;
            for (int w = 0; w < WORDS; w++)
                before[i][w] |= before[u][w];
        }
        if (from[i] >= 0)
            n += !(before[i][from[i] / 64] >> from[i] % 64 & 1);
    }
    return n;
}

/* More pairs than one sweep has bits, near and far, in any list order. */
TEST(check_agrees_on_long_programs)
{
    static int at[LONG], from[LONG], waits[LONG][3];
    uint64_t seed = 3;

    for (int run = 0; run < 40; run++) {
        br_status st = {0};
        br_mega_report r;
        br_mega_prog *p;

        for (int i = 0; i < LONG; i++)
            at[i] = i;
        for (int i = LONG - 1; run % 2 && i > 0; i--) {
            int j = (int)(t_rand(&seed) % (uint64_t)(i + 1)), t = at[i];

            at[i] = at[j];
            at[j] = t;
        }
        p = make_long(&seed, at, from, waits);
        t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
        ck_assert_uint_eq(r.errors.n + r.more_errors, count_races(from, waits));
        br_mega_report_fini(&r);
        br_mega_free(p);
    }
}
