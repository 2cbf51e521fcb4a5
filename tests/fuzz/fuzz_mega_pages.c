/* fuzz_mega_pages.c - page tables, dry runs and pictures of any program.
 *
 * Bytes that begin with "{" are a program file: everything must return.
 * Others are a recipe for a program of up to 40 tasks (three bytes each: op,
 * inputs, what to wait for, where to write). When the check accepts that one,
 * it must also accept every page table made for it, and the compatible check
 * the strict one if it accepts the program at all; the bounds must hold; and
 * the VM must give the same bits on shared pages as without, in the list's
 * order and in others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/builder.h"
#include "mega/interp.h"
#include "mega/pages.h"
#include "mega/show.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N = 16, MAX_TASKS = 40 };

/* ---- everything returns ------------------------------------------------ */

static void
simulate(const br_mega_prog *p)
{
    br_mega_sim s = {0};
    br_status st = {0};

    if (br_mega_simulate(p, &s, &st) == BR_OK)
        br_check(s.order.n + s.stuck.n <= p->n_tasks);
    st = (br_status){0};
    (void)!br_mega_simulate_adversarial(p, 3, &s, &st);
    br_mega_sim_fini(&s);
}

static void
show(const br_mega_prog *p)
{
    for (int f = BR_SHOW_TEXT; f <= BR_SHOW_SVG; f++) {
        br_mega_show_opts o = {.format = (br_mega_show_format)f};
        br_status st = {0};
        br_str out = {0};
        (void)!br_mega_show(p, &o, &out, &st);
        br_check(out.n < (64u << 20) && "pictures are bounded");
        br_str_fini(&out);
    }
}

static bool
accepts(const br_mega_prog *p, br_mega_mode mode)
{
    br_mega_report r = {0};
    bool ok;

    br_check(br_mega_check(p, mode, &r, NULL) == BR_OK);
    ok = r.ok;
    br_mega_report_fini(&r);
    return ok;
}

static void
file(const uint8_t *data, size_t size)
{
    br_mega_prog *p;
    br_status st = {0};
    bool fine;

    if (br_mega_load(&p, (const char *)data, size, &st) != BR_OK)
        return;
    simulate(p);
    show(p);
    p->has_pages = false;
    p->n_pages = p->n_binds = 0;
    fine = accepts(p, BR_MEGA_SOUND);
    st = (br_status){0};
    if (br_mega_pages_allocate(p, BR_MPP_GRAPH_COLOR, NULL, &st) == BR_OK)
        br_check(!fine || accepts(p, BR_MEGA_SOUND));
    else
        br_check(!fine && "what the check accepts gets pages");
    br_mega_free(p);
}

/* ---- a program from bytes ---------------------------------------------- */

typedef struct recipe {
    br_mega_builder b;
    int64_t writers[MAX_TASKS + 2][MAX_TASKS]; /* per buffer: counters */
    uint32_t n_writers[MAX_TASKS + 2];
    int64_t producers[MAX_TASKS]; /* per counter */
    br_mega_wait waits[MAX_TASKS][BR_MEGA_MAX_WAITS];
} recipe;

static int64_t
buffer(recipe *r, int kind, int space)
{
    static const int64_t shape[] = {1, N};
    br_mega_buffer b = {.name = "b",
                        .name_n = 1,
                        .shape = shape,
                        .rank = 2,
                        .kind = (uint8_t)kind,
                        .space = (uint8_t)space};

    return br_mega_add_buffer(&r->b, &b);
}

/* Waits for all who have written buffer b, as far as the ABI's eight go. */
static void
wait_for(recipe *r, br_mega_task *t, br_mega_wait *w, int64_t b)
{
    for (uint32_t i = 0; i < r->n_writers[b]; i++) {
        int64_t c = r->writers[b][i];
        bool known = false;
        for (uint32_t k = 0; k < t->n_waits; k++)
            known = known || w[k].counter == c;
        if (!known && t->n_waits < BR_MEGA_MAX_WAITS)
            w[t->n_waits++] = (br_mega_wait){c, 1};
    }
}

static int64_t
add_task(recipe *r, const uint8_t *d, uint32_t i, int64_t last)
{
    static const uint8_t ops[] = {BR_MOP_COPY, BR_MOP_GELU,     BR_MOP_SOFTMAX,
                                  BR_MOP_ADD,  BR_MOP_SILU_MUL, BR_MOP_MUL};
    br_mega_task t = {.op = ops[d[0] % 6],
                      .label = "",
                      .sm = d[0] & 0x80 ? (d[0] >> 5 & 3) : BR_MEGA_SM_NONE};
    int64_t in[2], out;
    br_mega_wait *w = r->waits[i];

    t.n_in = d[0] % 6 < 3 ? 1 : 2;
    in[0] = last - BR_MIN((int64_t)(d[1] & 15), last);
    in[1] = last - BR_MIN((int64_t)(d[1] >> 4), last);
    for (uint32_t k = 0; k < t.n_in; k++)
        wait_for(r, &t, w, in[k]);
    if (d[2] & 1) /* somebody else as well */
        wait_for(r, &t, w, last - BR_MIN((int64_t)(d[2] >> 4), last));
    out = (d[2] & 14) == 14 && last
              ? last /* written again */
              : buffer(r, BR_MBK_ACTIVATION,
                       (d[2] & 12) == 8 ? BR_MSP_SMEM : BR_MSP_HBM);
    if (out == last)
        wait_for(r, &t, w, out);
    t.out_counter = br_mega_add_counter(&r->b, BR_TEXT(""));
    r->writers[out][r->n_writers[out]++] = t.out_counter;
    t.in = in;
    t.out = &out;
    t.n_out = 1;
    t.waits = w;
    t.params = br_mega_params(&r->b, NULL, 0);
    br_mega_add_task(&r->b, &t);
    return out;
}

static br_mega_prog *
build(const uint8_t *d, size_t size)
{
    static recipe r; /* too large for a stack of a sanitizer */
    uint32_t n = (uint32_t)BR_MIN(size / 3, (size_t)MAX_TASKS - 1);
    int64_t last = 0, out;
    br_mega_task t = {.op = BR_MOP_COPY, .label = "", .sm = BR_MEGA_SM_NONE};
    br_status st = {0};

    memset(&r, 0, sizeof r);
    br_check(br_mega_builder_open(&r.b, &st) == BR_OK);
    buffer(&r, BR_MBK_IO_INPUT, BR_MSP_HBM);
    for (uint32_t i = 0; i < n; i++)
        last = add_task(&r, d + 3 * i, i, last);
    wait_for(&r, &t, r.waits[n], last);
    out = buffer(&r, BR_MBK_IO_OUTPUT, BR_MSP_HBM);
    t.out_counter = br_mega_add_counter(&r.b, BR_TEXT(""));
    t.in = &last;
    t.out = &out;
    t.n_in = t.n_out = 1;
    t.waits = r.waits[n];
    t.params = br_mega_params(&r.b, NULL, 0);
    br_mega_add_task(&r.b, &t);
    br_check(r.b.code == BR_OK);
    return br_mega_builder_take(&r.b);
}

/* ---- on memory --------------------------------------------------------- */

static void
run(const br_mega_prog *p, int orders, float out[N])
{
    br_mega_vm *vm;
    br_status st = {0};
    float x[N];
    int64_t last = (int64_t)p->n_buffers - 1;

    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 7) / 4.0f;
    br_check(br_mega_vm_new(&vm, p, NULL, &st) == BR_OK);
    br_check(br_mega_vm_bind(vm, 0,
                             &(br_mega_value){.data = x,
                                              .shape = p->buffers[0].shape,
                                              .nbytes = sizeof x,
                                              .rank = 2,
                                              .dtype = BR_MDT_F32},
                             &st) == BR_OK);
    br_check(br_mega_vm_adversarial(vm, orders, BR_MEGA_ORDER_SWEEP, 1, &st) ==
                 BR_OK &&
             "an accepted program runs, and its order does not matter");
    memcpy(out, br_mega_vm_get(vm, last).data, N * sizeof *out);
    br_mega_vm_free(vm);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_mega_prog *p;
    float want[N], got[N];
    bool compat;

    if (size && data[0] == '{') {
        file(data, size);
        return 0;
    }
    p = build(data, size);
    if (size % 8 == 0) { /* the slow ones */
        simulate(p);
        show(p);
    }
    if (!accepts(p, BR_MEGA_SOUND)) {
        br_mega_free(p);
        return 0;
    }
    compat = accepts(p, BR_MEGA_COMPAT_0_2);
    run(p, 2, want);
    for (int strict = 0; strict < 2; strict++) {
        br_mega_pages_opt o = {.policy = BR_MPP_GRAPH_COLOR, .strict = strict};
        br_mega_pages_report r;
        br_check(br_mega_pages_allocate_opt(p, &o, &r, NULL) == BR_OK);
        br_check(r.antichain_bytes <= r.bound_bytes);
        br_check(r.bound_bytes <= r.bytes && r.bytes <= r.separate_bytes);
        br_check(accepts(p, BR_MEGA_SOUND) && "the table is proven");
        br_check(!strict || !compat || accepts(p, BR_MEGA_COMPAT_0_2));
        run(p, 6, got);
        br_check(memcmp(want, got, sizeof want) == 0);
    }
    br_mega_free(p);
    return 0;
}
