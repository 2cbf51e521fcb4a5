/* fuzz_mega_check.c - any program gets a verdict, and no accepted one goes
 * wrong in any order.
 *
 * The input is a JSON document, or, when it does not begin with a brace, a
 * list of choices from which a small program is made: bytes are cheaper to
 * mutate than text, and most of what they make gets past the loader.
 *
 * A program that the sound check accepts is run, without numbers, in a dozen
 * orders that its counters allow, as unkind as can be. In every order every
 * byte that a task reads must come from the same task, a writer of that very
 * buffer, and all tasks must run, also with workers that take their queues
 * strictly in list order. That is what the check promises.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/footprint.h"
#include "mega/load.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TASKS = 64, MAX_BYTES = 1 << 14, ORDERS = 12 };

/* ---- programs from bytes ------------------------------------------------ */

typedef struct bytes {
    const uint8_t *p, *end;
} bytes;

static int
take(bytes *b, int n)
{
    return b->p < b->end ? *b->p++ % n : 0;
}

typedef struct maker {
    bytes b;
    br_str s;
    int nb, nt, nc;
} maker;

static void
make_buffers(maker *m)
{
    static const char *const kinds[] = {"ACTIVATION", "IO_INPUT", "ACTIVATION",
                                        "IO_OUTPUT",  "WEIGHT",   "KV_CACHE",
                                        "ACTIVATION", "CONST"};
    static const char *const shapes[] = {"[2,4]", "[2,4]",   "[4,4]", "[1,4]",
                                         "[4]",   "[5,1,4]", "[2]",   "[]"};
    static const char *const dtypes[] = {"F32", "F32", "F32", "F16",
                                         "I32", "I8",  "I4",  "BF16"};
    static const char *const spaces[] = {"HBM", "HBM", "SMEM", "REGISTER"};

    m->nb = 3 + take(&m->b, 8);
    br_str_puts(&m->s, "{\"buffers\":[");
    for (int i = 0; i < m->nb; i++)
        br_str_printf(&m->s,
                      "%s{\"id\":%d,\"name\":\"b%d\",\"kind\":\"%s\","
                      "\"shape\":%s,\"dtype\":\"%s\",\"space\":\"%s\"}",
                      i ? "," : "", i, i, kinds[take(&m->b, 8)],
                      shapes[take(&m->b, 8)], dtypes[take(&m->b, 11) % 8],
                      spaces[take(&m->b, 9) / 6 * 2 % 4]);
}

static const char *
params_of(maker *m, int op, char text[200])
{
    int a = take(&m->b, 5), n = take(&m->b, 5);
    br_str s = {0};

    text[0] = 0;
    if (op == BR_MOP_GEMV_TILE || op == BR_MOP_GEMM_TILE)
        br_str_printf(&s, "\"K\":4,\"N_tile\":%d,\"n_off\":%d", n, a);
    if (op == BR_MOP_GEMM_TILE)
        br_str_printf(&s, ",\"M_tile\":1,\"m_off\":%d", take(&m->b, 3));
    if (op == BR_MOP_KV_APPEND)
        br_str_printf(&s, "\"pos\":%d", a);
    if (op == BR_MOP_ATTENTION_TILE)
        br_str_printf(&s,
                      "\"head_dim\":4,\"kv_start\":%d,\"kv_len\":%d,\"scale\":"
                      "1,\"n_heads\":2,\"n_kv_heads\":1,\"flags\":%d",
                      a, n, take(&m->b, 5) / 4 * 2);
    if (op == BR_MOP_RMSNORM)
        br_str_puts(&s, "\"eps\":0,\"hidden\":4");
    if (op == BR_MOP_FUSED)
        br_str_puts(&s, "\"recipe\":{\"steps\":[{\"op\":10,\"args\":[{\"in\":"
                        "0}],\"out\":0},{\"op\":11,\"args\":[{\"s\":0},{\"in\":"
                        "1}],\"out\":-1}]}");
    if (s.n < 200)
        memcpy(text, br_str_z(&s), s.n + 1);
    br_str_fini(&s);
    return text;
}

/* Waits with right thresholds: np[c] producers. */
static void
make_waits(maker *m, const int *np)
{
    int n = take(&m->b, 4), sep = 0;

    br_str_puts(&m->s, ",\"waits\":[");
    for (int i = 0; i < n; i++) {
        int c = take(&m->b, m->nc), off = take(&m->b, 32) / 31;

        br_str_printf(&m->s, "%s{\"counter\":%d,\"threshold\":%d}",
                      sep++ ? "," : "", c, np[c] + off);
    }
    br_str_puts(&m->s, "]");
}

static void
make_tasks(maker *m)
{
    static const uint8_t ops[] = {
        BR_MOP_COPY,           BR_MOP_ADD,       BR_MOP_GELU,
        BR_MOP_GEMV_TILE,      BR_MOP_GEMV_TILE, BR_MOP_GEMM_TILE,
        BR_MOP_ATTENTION_TILE, BR_MOP_KV_APPEND, BR_MOP_NOP,
        BR_MOP_RMSNORM,        BR_MOP_MUL,       BR_MOP_FUSED,
        BR_MOP_SOFTMAX,        BR_MOP_COPY};
    int ctr[MAX_TASKS], np[MAX_TASKS] = {0};
    bool sm;

    m->nt = 1 + take(&m->b, 14);
    m->nc = m->nt;
    sm = take(&m->b, 3) == 0;
    for (int i = 0; i < m->nt; i++) {
        ctr[i] = take(&m->b, 4) == 3 && i ? ctr[i - 1] : i;
        np[ctr[i]]++;
    }
    br_str_puts(&m->s, "],\"counters\":[");
    for (int i = 0; i < m->nc; i++)
        br_str_printf(&m->s, "%s{\"id\":%d}", i ? "," : "", i);
    br_str_puts(&m->s, "],\"tasks\":[");
    for (int i = 0; i < m->nt; i++) {
        int op = ops[take(&m->b, (int)sizeof ops)];
        int n_in = br_mega_opinfo_of(op)->min_in, out;
        char params[200];

        if (op == BR_MOP_FUSED)
            n_in = 2;
        br_str_printf(&m->s, "%s{\"id\":%d,\"op\":\"%s\",\"inputs\":[",
                      i ? "," : "", i, br_mega_op_name(op));
        out = take(&m->b, m->nb);
        for (int k = 0; k < n_in; k++)
            br_str_printf(&m->s, "%s%d", k ? "," : "",
                          op == BR_MOP_KV_APPEND && k ? out
                                                      : take(&m->b, m->nb));
        br_str_puts(&m->s, "],\"outputs\":[");
        if (op != BR_MOP_NOP)
            br_str_printf(&m->s, "%d", out);
        br_str_printf(&m->s, "],\"out_counter\":%d,\"params\":{%s}", ctr[i],
                      params_of(m, op, params));
        if (sm && take(&m->b, 4))
            br_str_printf(&m->s, ",\"sm\":%d", take(&m->b, 3));
        make_waits(m, np);
        br_str_putc(&m->s, '}');
    }
    br_str_putc(&m->s, ']');
}

static void
make_pages(maker *m)
{
    int n = take(&m->b, 5), last = -1;

    if (n == 0)
        return;
    br_str_puts(&m->s, ",\"pages\":{\"buffer_to_page\":{");
    for (int i = 0; i < n; i++) {
        int b = last + 1 + take(&m->b, 2);

        if (b >= m->nb)
            break;
        br_str_printf(&m->s, "%s\"%d\":%d", last >= 0 ? "," : "", b,
                      take(&m->b, 2));
        last = b;
    }
    br_str_puts(&m->s, "},\"pages\":[{\"id\":0,\"space\":\"HBM\",\"nbytes\":"
                       "64},{\"id\":1,\"space\":\"SMEM\",\"nbytes\":32}]}");
}

static br_str
make(const uint8_t *data, size_t size)
{
    maker m = {.b = {data, data + size}};

    make_buffers(&m);
    make_tasks(&m);
    make_pages(&m);
    br_str_putc(&m.s, '}');
    return m.s;
}

/* ---- running without numbers -------------------------------------------- */

typedef struct world {
    const br_mega_prog *p;
    uint8_t *mem[256]; /* of a buffer: who wrote each byte, task + 1 */
    uint8_t store[MAX_BYTES];
    int page[256];
    uint64_t seen[MAX_TASKS][BR_MEGA_MAX_INPUTS]; /* hash of who was read */
    bool first;                                   /* run: fill seen */
    uint64_t rnd;
    uint32_t value[MAX_TASKS * 4]; /* counters */
    bool done[MAX_TASKS];
} world;

/* Storage of every buffer or page; false: too much of it. */
static bool
place(world *w)
{
    uint8_t *page[256] = {NULL};
    size_t used = 0;

    for (size_t b = 0; b < w->p->n_buffers; b++)
        w->page[b] = -1;
    for (size_t e = 0; e < w->p->n_binds; e++)
        w->page[w->p->binds[e].buffer] = (int)w->p->binds[e].page;
    for (size_t b = 0; b < w->p->n_buffers; b++) {
        int64_t n = br_mega_nbytes(&w->p->buffers[b]);
        int at = w->page[b];

        if (at >= 0)
            n = w->p->pages[at].nbytes;
        if (at >= 0 && page[at]) {
            w->mem[b] = page[at];
            continue;
        }
        if (n < 0 || n > (int64_t)(MAX_BYTES - used))
            return false;
        w->mem[b] = w->store + used;
        used += (size_t)n;
        if (at >= 0)
            page[at] = w->mem[b];
    }
    return true;
}

static bool
small(const br_mega_prog *p)
{
    return p->n_tasks <= MAX_TASKS && p->n_buffers <= 256 &&
           p->n_counters <= MAX_TASKS * 4 && p->n_pages <= 256;
}

static bool
writes(const br_mega_prog *p, size_t t, int64_t b)
{
    for (uint32_t k = 0; k < p->tasks[t].n_out; k++)
        if (p->tasks[t].out[k] == b)
            return true;
    return false;
}

/* Is t's own earlier output all there is of this buffer? Then reading it is
 * the check's warning, not its error. */
static bool
only_writer(const br_mega_prog *p, size_t t, int64_t b)
{
    for (size_t u = 0; u < p->n_tasks; u++)
        if (u != t && writes(p, u, b))
            return false;
    return true;
}

static void
read_bytes(world *w, size_t t, uint32_t k)
{
    const br_mega_task *task = &w->p->tasks[t];
    const br_mega_buffer *b = &w->p->buffers[task->in[k]];
    int64_t cols, bits = br_mega_dtype_bits(b->dtype);
    br_mega_rect r;
    br_op_val v;
    uint64_t h = 14695981039346656037u;

    if (br_mega_kind_readonly(b->kind) ||
        !br_mega_footprint(w->p, task, k, false, &r))
        return;
    br_op_val_of(&v, b);
    cols = v.cols;
    for (int64_t i = r.r0; i < r.r1; i++)
        for (int64_t j = (i * cols + r.c0) * bits / 8;
             j < ((i * cols + r.c1) * bits + 7) / 8; j++) {
            uint8_t who = w->mem[b->id][j];

            h = (h ^ who) * 1099511628211u;
            if (who == 0)
                br_check((b->kind == BR_MBK_KV_CACHE ||
                          only_writer(w->p, t, b->id)) &&
                         "reads what nobody has written");
            else
                br_check(writes(w->p, (size_t)who - 1, b->id) &&
                         "reads another buffer's bytes");
        }
    if (w->first)
        w->seen[t][k] = h;
    br_check(w->seen[t][k] == h && "reads other writers in another order");
}

static void
write_bytes(world *w, size_t t, uint32_t k)
{
    const br_mega_task *task = &w->p->tasks[t];
    const br_mega_buffer *b = &w->p->buffers[task->out[k]];
    int64_t bits;
    br_mega_rect r;
    br_op_val v;

    bits = br_mega_dtype_bits(b->dtype);
    br_check(!br_mega_kind_readonly(b->kind) && "writes a read-only buffer");
    br_check(br_mega_footprint(w->p, task, k, true, &r) && "has a footprint");
    br_op_val_of(&v, b);
    for (int64_t i = r.r0; i < r.r1; i++)
        for (int64_t j = (i * v.cols + r.c0) * bits / 8;
             j < ((i * v.cols + r.c1) * bits + 7) / 8; j++)
            w->mem[b->id][j] = (uint8_t)(t + 1);
}

static bool
ready(const world *w, size_t t)
{
    const br_mega_task *k = &w->p->tasks[t];

    for (uint32_t i = 0; i < k->n_waits; i++)
        if (w->value[k->waits[i].counter] < k->waits[i].threshold)
            return false;
    return !w->done[t];
}

static void
fire(world *w, size_t t)
{
    for (uint32_t k = 0; k < w->p->tasks[t].n_in; k++)
        read_bytes(w, t, k);
    for (uint32_t k = 0; k < w->p->tasks[t].n_out; k++)
        write_bytes(w, t, k);
    w->value[w->p->tasks[t].out_counter]++;
    w->done[t] = true;
}

/* The first of its worker's queue that is not done; without a worker, any. */
static bool
is_next(const world *w, size_t t)
{
    int64_t sm = w->p->tasks[t].sm;

    for (size_t u = 0; sm != BR_MEGA_SM_NONE && u < t; u++)
        if (w->p->tasks[u].sm == sm && !w->done[u])
            return false;
    return true;
}

static uint64_t
next_random(world *w)
{
    w->rnd ^= w->rnd << 13;
    w->rnd ^= w->rnd >> 7;
    w->rnd ^= w->rnd << 17;
    return w->rnd;
}

/* order 0: first ready; 1: last ready; 2: queues; others: at random. */
static void
run(world *w, int order)
{
    size_t n = w->p->n_tasks;

    memset(w->store, 0, sizeof w->store);
    memset(w->value, 0, sizeof w->value);
    memset(w->done, 0, sizeof w->done);
    w->first = order == 0;
    for (size_t step = 0; step < n; step++) {
        size_t pick = n, found = 0;

        for (size_t t = 0; t < n; t++) {
            if (!ready(w, t) || (order == 2 && !is_next(w, t)))
                continue;
            found++;
            if (pick == n || order == 1 ||
                (order > 2 && next_random(w) % found == 0))
                pick = t;
        }
        br_check(pick < n && "somebody waits for ever");
        fire(w, pick);
    }
}

static void
run_all(const br_mega_prog *p, size_t size)
{
    static world w;

    memset(&w, 0, sizeof w);
    w.p = p;
    w.rnd = size * 0x9e3779b97f4a7c15u + 1;
    if (!small(p) || !place(&w))
        return;
    for (int i = 0; i < ORDERS; i++)
        run(&w, i);
}

/* ---- entry -------------------------------------------------------------- */

static bool
verdict(const br_mega_prog *p, br_mega_mode mode)
{
    br_mega_report r;
    br_str s = {0};
    br_status st = {0};
    bool ok;

    br_check(br_mega_check(p, mode, &r, &st) == BR_OK && "a verdict");
    br_check(r.ok == (r.errors.n == 0) && "which says why not");
    br_mega_report_json(p, &r, &s);
    br_check(s.n > 2 && !s.oom);
    ok = r.ok;
    br_str_fini(&s);
    br_mega_report_fini(&r);
    return ok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_text text = {(const char *)data, size};
    br_mega_prog *p;
    br_str made = {0};

    if (size == 0 || data[0] != '{') {
        made = make(data, size);
        text = (br_text){made.at, made.n};
    }
    if (br_mega_load(&p, text.p, text.n, NULL) == BR_OK) {
        verdict(p, BR_MEGA_COMPAT_0_2);
        if (verdict(p, BR_MEGA_SOUND))
            run_all(p, size);
        br_mega_free(p);
    }
    br_str_fini(&made);
    return 0;
}
