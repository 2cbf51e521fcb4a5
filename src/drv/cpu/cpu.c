/* cpu.c - the CPU tier: prepare, step, states.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/thread.h"

#include <string.h>

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
}

const br_cpu_ops *
br_cpu_ops_of(br_isa isa)
{
    switch (isa) {
#if defined __x86_64__
    case BR_ISA_AMX:
    case BR_ISA_AVX512: return &br_cpu_ops_avx512;
    case BR_ISA_AVX2: return &br_cpu_ops_avx2;
#elif defined __aarch64__
    case BR_ISA_NEON: return &br_cpu_ops_neon;
#endif
    default: return &br_cpu_ops_c;
    }
}

/* Are most weights multiplied in integers, by activations of 8 bits? */
static bool
integers(const br_cpu *c)
{
    uint64_t n, rounded = 0, all = 0;

    for (uint32_t v = 0; v < c->v.g->n_values; v++) {
        const cpu_mat *m = &c->mat[v];

        n = m->t ? m->slices * m->m.n_in * m->m.n_out : 0;
        all += n;
        rounded +=
            m->m.form == BR_FORM_Q32 || m->m.form == BR_FORM_Q256 ? n : 0;
    }
    return rounded > all / 2;
}

/* Beside activations of 8 bits the rounding of BF16 is the smaller one. Of the
 * tests' models with other weights one would be at 2e-3, twice what cpu.h says. */
static void
choose_attention(br_cpu *c)
{
    bool pairs = !c->c.exact && br_isa_pairs_pay(c->isa) && integers(c);

    c->attend = pairs ? c->ops->attend_pairs : c->ops->attend;
    c->att_lines = pairs ? BR_CPU_LINES : BR_CPU_LINES_F32;
}

static br_code
prepare(br_cpu *c, const br_model *m, const br_ir *g, br_status *st)
{
    br_values_config vc = {.max_rows = c->c.max_rows,
                           .max_want = c->c.max_want,
                           .rest = cpu_fuse_rest(g, &c->arena)};

    if (!vc.rest)
        return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
    if (c->c.isa >= 0 && !br_isa_here((br_isa)c->c.isa))
        return br_fail(st, BR_E_NO_DEVICE, "this processor has no %s",
                       br_isa_name((br_isa)c->c.isa));
    c->isa = c->c.isa >= 0 ? (br_isa)c->c.isa : br_isa_best();
    c->ops = br_cpu_ops_of(c->isa);
    c->n_threads = br_cpu_pool_threads(c->c.pool);
    BR_TRY(br_values_bind(&c->v, &c->arena, m, g, st));
    BR_TRY(br_values_place(&c->v, &c->arena, &vc, st));
    BR_TRY(cpu_plan(c, st));
    BR_TRY(cpu_fuse(c, st));
    choose_attention(c);
    br_cpu_tune_default(&c->tune, c->n_threads);
    if (cpu_cache_find(c))
        return BR_OK;
    BR_TRY(cpu_pack(c, st));
    cpu_cache_keep(c);
    return BR_OK;
}

br_code
br_cpu_prepare(br_cpu **out, const br_model *m, const br_ir *g,
               const br_cpu_config *config, br_status *st)
{
    br_cpu *c = br_try_calloc(1, sizeof *c);
    br_code code;

    br_assert(config->max_rows > 0 && config->max_want > 0);
    *out = NULL;
    if (!c)
        return no_memory(st);
    br_arena_init(&c->arena, 0);
    c->c = *config;
    code = prepare(c, m, g, st);
    if (code != BR_OK) {
        br_cpu_free(c);
        return code;
    }
    *out = c;
    return BR_OK;
}

void
br_cpu_free(br_cpu *c)
{
    if (!c)
        return;
    cpu_cache_end(c);
    br_values_fini(&c->v);
    br_vec_fini(&c->phases);
    br_vec_fini(&c->tables);
    br_free(c->packed_block);
    br_arena_fini(&c->arena);
    br_free(c);
}

const float *
br_cpu_hidden(const br_cpu *c)
{
    return br_values_hidden(&c->v);
}

int64_t
br_cpu_n_vocab(const br_cpu *c)
{
    return c->v.at[c->v.logits].cols;
}

uint64_t
br_cpu_weight_bytes(const br_cpu *c)
{
    return c->packed_bytes;
}

bool
br_cpu_was_kept(const br_cpu *c)
{
    return c->kept.n > 0;
}

const uint8_t *
br_cpu_weights(const br_cpu *c, size_t *n)
{
    *n = c->packed_bytes;
    return c->packed;
}

br_isa
br_cpu_isa(const br_cpu *c)
{
    return c->isa;
}

bool
br_cpu_is_exact(const br_cpu *c)
{
    for (uint32_t v = 0; v < c->v.g->n_values; v++)
        if (c->mat[v].t && c->mat[v].m.form == BR_FORM_BF16)
            return false;
    return true;
}

const br_cpu_work *
br_cpu_work_of(const br_cpu *c)
{
    return &c->work;
}

void
br_cpu_watch(br_cpu *c, const br_watch *w)
{
    c->watch = w ? *w : (br_watch){0};
}

/* ---- a step ------------------------------------------------------------- */

/* Shows what a phase that is over has made. */
static void
show(const br_cpu *c, const cpu_phase *p)
{
    for (uint32_t i = 0; i < p->n_done; i++) {
        const br_ir_node *n = p->n + i;
        uint32_t v = n->bind[n->n_in].value;

        if (n->n_out > 0)
            c->watch.seen(c->watch.ctx, (uint32_t)(n - c->v.g->nodes),
                          v == c->v.logits ? c->logits : c->v.at[v].p,
                          c->v.at[v].cols,
                          c->v.at[v].want ? c->n_want : c->step->n_rows);
    }
}

static uint32_t
begin(void *ctx, uint32_t phase)
{
    br_cpu *c = ctx;
    cpu_phase *p = &c->phases.at[phase];

    c->ended |= br_is_told(c->step->cancel);
    if (c->ended)
        return 0;
    if (c->watch.seen && phase > 0)
        show(c, p - 1);
    return c->alone && p->inside ? 0 : p->kind->tiles(c, p);
}

static void
tile(void *ctx, uint32_t phase, uint32_t i, uint32_t worker)
{
    br_cpu *c = ctx;
    const cpu_phase *p = &c->phases.at[phase];

    p->kind->tile(c, p, i, &c->worker[worker]);
}

static br_code
check_step(br_cpu *c, const br_state *s, const br_step *step, br_status *st)
{
    if (!br_state_plan_same(&c->v.plan, &s->plan))
        return br_fail(st, BR_E_FORMAT, "step: the state is of another model");
    if (step->n_rows > c->c.max_rows)
        return br_fail(st, BR_E_LIMIT, "step: %u rows, prepared for %u",
                       step->n_rows, c->c.max_rows);
    c->n_want = 0;
    for (uint32_t t = 0; t < step->n_rows; t++)
        if (!step->want || step->want[t])
            c->want[c->n_want++] = t;
    if (c->n_want > c->c.max_want)
        return br_fail(st, BR_E_LIMIT,
                       "step: %u rows want logits, prepared for %u", c->n_want,
                       c->c.max_want);
    return br_step_check(step, c->v.m->hp.n_vocab, s->n_slots, s->plan.n_groups,
                         st);
}

/* The last phases write to the caller's memory. */
static void
aim(br_cpu *c, float *logits)
{
    const br_ir_value *v = &c->v.g->values[c->v.logits];

    for (size_t i = c->phases.n; i-- > 0 && c->phases.at[i].want;) {
        cpu_phase *p = &c->phases.at[i];

        if (p->out[0].v == v) {
            p->out[0].f = logits;
            p->part[0].y = logits;
        }
    }
}

/* No more than workers were prepared for. */
static uint32_t
threads_of(const br_cpu *c, uint32_t n_rows)
{
    br_cpu_knob k =
        n_rows < CPU_MANY_ROWS ? BR_CPU_KNOB_threads : BR_CPU_KNOB_many_threads;

    return BR_MAX(BR_MIN(c->tune.at[k], br_cpu_pool_threads(c->c.pool)), 1u);
}

br_code
br_cpu_step(br_cpu *c, br_state *s, const br_step *step, float *logits,
            br_status *st)
{
    br_cpu_job job = {.ctx = c,
                      .n_phases = (uint32_t)c->phases.n,
                      .begin = begin,
                      .tile = tile,
                      .looks = c->tune.at[BR_CPU_KNOB_looks]};

    BR_TRY(check_step(c, s, step, st));
    c->step = step;
    c->state = s;
    if (!logits)
        c->n_want = 0;
    /* Who watches or asks for hidden sees all rows. */
    c->few = !c->watch.seen && !step->hidden && c->n_want < step->n_rows;
    c->alone = step->n_rows == 1 && c->n_want == 1 && !c->watch.seen;
    c->ended = false;
    c->n_steps++;
    c->logits = logits;
    c->n_threads = job.threads = threads_of(c, step->n_rows);
    aim(c, logits);
    br_cpu_pool_run(c->c.pool, &job);
    if (c->ended)
        return br_fail(st, BR_E_CANCELLED, "the step was cancelled");
    if (c->watch.seen)
        show(c, &c->phases.at[c->phases.n - 1]);
    return BR_OK;
}
