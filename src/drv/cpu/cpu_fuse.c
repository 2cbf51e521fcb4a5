/* cpu_fuse.c - a step of one row: what happens between two products.
 *
 * A row's norm, its form in integers, a sum with the row before and GLU take a
 * microsecond each, but whoever does them reads what the other core has just
 * written and writes what the other core has just read: 50 to 200 ns a line on
 * a Zen 4, and everybody waits. So in a step of one row
 *
 *   ADD, GLU     are done to a tile's products by who has made them
 *   RMS_NORM and the activations' form
 *                are made by each worker for itself, before its first tile
 *   norms of heads, ROPE, TEMP_SCALE, KV_WRITE
 *                are done by the tile of attention that needs them
 *
 *   norm | form | gate, up | GLU | form | down | ADD       eight phases
 *                gate, up            down                  become two
 *
 * What passes from core to core is what products come to, and nobody waits but
 * for those. The bits are the same: the same functions on the same rows.
 *
 * A phase that is done elsewhere then has no tiles. Here is which ones may be:
 * nobody but the product reads what a worker keeps for itself, and memory that
 * a tile writes is none of what a worker may yet have to read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include <string.h>

typedef struct fuser {
    br_cpu *c;
    uint32_t *readers, *writers; /* bindings of nodes, of each value */
} fuser;

/* ---- plan ----------------------------------------------------------------- */

static uint32_t
value_of(const br_cpu *c, const ref_view *v)
{
    return v->v ? (uint32_t)(v->v - c->v.g->values) : BR_IR_NONE;
}

/* A whole value of the graph, written by one node and read by so many. */
static bool
is_local(const fuser *f, const br_ir_bind *b, uint32_t readers)
{
    const br_ir_value *v;

    if (b->value == BR_IR_NONE || !br_bind_together(b))
        return false;
    v = &f->c->v.g->values[b->value];
    return v->kind == BR_IK_TEMP && b->off == 0 &&
           (int64_t)b->width * b->count == f->c->v.at[b->value].cols &&
           b->value != f->c->v.hidden && f->readers[b->value] == readers &&
           f->writers[b->value] == 1;
}

/* The first rows of two values share memory. */
static bool
meet(const float *a, int64_t n, const float *b, int64_t m)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y + (size_t)m * sizeof *b && y < x + (size_t)n * sizeof *a;
}

/* Is the form that a part reads made between phase `from` and p, and does
 * nobody after p read it? */
static bool
form_is_own(const fuser *f, const cpu_phase *from, const cpu_phase *p,
            const cpu_part *a)
{
    const cpu_phase *end = f->c->phases.at + f->c->phases.n, *q;

    for (q = from; q < p && q->act != a->act; q++)
        ;
    if (q == p)
        return false;
    for (q = p + 1; q < end && (q->kind != &cpu_quantise || q->act != a->act);
         q++)
        for (uint32_t i = 0; i < q->n_parts; i++)
            if (q->part[i].act == a->act)
                return false;
    return true;
}

/* The phases before p that bring its row into forms. */
static void
find_forms(const fuser *f, cpu_phase *p)
{
    cpu_phase *q = p, *first = f->c->phases.at;

    while (q > first && q[-1].kind == &cpu_quantise && q[-1].pieces == 1 &&
           !q[-1].gather && !q[-1].temp &&
           value_of(f->c, &q[-1].in[0]) == value_of(f->c, &p->in[0]) &&
           q[-1].in[0].f == p->in[0].f)
        q--;
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (!form_is_own(f, q, p, &p->part[i]))
            return;
    p->n_forms = (uint32_t)(p - q);
}

/* And the norm before those. */
static void
find_norm(const fuser *f, cpu_phase *p)
{
    cpu_phase *q = p - p->n_forms - 1;

    p->norms = p->n_forms > 0 && q >= f->c->phases.at &&
               q->rows == cpu_rows_norm && !q->gather && !q->scatter &&
               q->out[0].f == p->in[0].f &&
               is_local(f, &q->n->bind[q->n->n_in], p->n_parts) &&
               is_local(f, &p->n->bind[0], p->n_parts);
}

/* What a worker may yet read while others write what they come to. */
static bool
is_free(const cpu_phase *p, const float *y, int64_t n)
{
    const ref_view *x = &p->in[0];

    if (p->n_forms == 0)
        return true;
    if (p->norms)
        x = &p[-(ptrdiff_t)p->n_forms - 1].in[0];
    return !meet(x->f, x->cols, y, n);
}

static bool
is_dense(const cpu_phase *p)
{
    return p->kind == &cpu_rows && !p->gather && !p->scatter;
}

static void
find_add(const fuser *f, cpu_phase *p, const cpu_phase *q)
{
    const br_ir_bind *y = &p->n->bind[p->n->n_in];
    int other;

    if (p->n_parts != 1 || !is_dense(q) || q->n->op != BR_IR_ADD ||
        !is_local(f, y, 1))
        return;
    other = q->in[0].f == p->part[0].y ? 1 : 0;
    if (q->in[1 - other].f != p->part[0].y || q->in[other].stride == 0 ||
        q->in[0].cols != q->out[0].cols || q->in[1].cols != q->out[0].cols ||
        !is_free(p, q->out[0].f, q->out[0].cols))
        return;
    p->add = q->in[other].f;
    p->into = q->out[0].f;
}

static void
find_glu(const fuser *f, cpu_phase *p, const cpu_phase *q)
{
    const br_ir_node *n = p->n;

    if (p->n_parts != 2 || !is_dense(q) || q->n->op != BR_IR_GLU ||
        !is_local(f, &n[0].bind[n[0].n_in], 1) ||
        !is_local(f, &n[1].bind[n[1].n_in], 1) || q->in[0].f != p->part[0].y ||
        q->in[1].f != p->part[1].y || q->in[0].cols != q->in[1].cols ||
        q->out[0].cols != q->in[0].cols ||
        !is_free(p, q->out[0].f, q->out[0].cols))
        return;
    p->glu = true;
    p->into = q->out[0].f;
}

/* The phase before r that makes what its binding i reads, for it alone. */
static cpu_phase *
maker(const fuser *f, cpu_phase *r, int i)
{
    const br_ir_bind *b = &r->n->bind[i], *y;
    cpu_phase *q = r;

    while (q > f->c->phases.at && r->n - q[-1].n < CPU_MAX_LAG) {
        q--;
        y = &q->n->bind[q->n->n_in];
        if (is_dense(q) && q->n->n_out == 1 && y->value == b->value)
            return is_local(f, y, 1) && is_local(f, b, 1) &&
                           q->in[0].cols == q->out[0].cols &&
                           q->out[0].f == r->in[i].f
                       ? q
                       : NULL;
    }
    return NULL;
}

/* What is done to so many heads, dim numbers each, before r reads them as its
 * binding i: at last, so that is found first. */
static cpu_chain
find_chain(const fuser *f, cpu_phase *r, int i, int64_t heads, int64_t dim)
{
    cpu_chain k = {.x = &r->in[i], .first = r};
    cpu_phase *q = maker(f, r, i);

    if (q && q->n->op == BR_IR_TEMP_SCALE) {
        k = (cpu_chain){.heat = q, .first = q, .x = &q->in[0]};
        q = maker(f, q, 0);
    }
    if (q && q->rows == cpu_rows_rope &&
        br_ir_i(q->n, BR_IA_heads, 1) == heads &&
        br_ir_i(q->n, BR_IA_head_dim, 0) == dim) {
        k.turn = k.first = q;
        k.x = &q->in[0];
        q = maker(f, q, 0);
    }
    if (q && q->rows == cpu_rows_norm &&
        br_ir_i(q->n, BR_IA_width, q->in[0].cols) == dim) {
        k.norm = k.first = q;
        k.x = &q->in[0];
    }
    if (k.x->cols != heads * dim || !k.x->f)
        k.first = NULL;
    return k;
}

/* Is phase q one of the chain's? */
static bool
is_of(const cpu_chain *k, const cpu_phase *q)
{
    return q == k->norm || q == k->turn || q == k->heat;
}

/* From where chain k begins, does nobody but the chains, whose phases are not
 * run, write what tiles of attention read there? */
static bool
is_kept(const cpu_phase *p, const cpu_chain *k, const cpu_chain *chains)
{
    if (!k->first || p->n - k->first->n >= CPU_MAX_LAG)
        return false;
    for (const cpu_phase *q = k->first; q <= p; q++) {
        if (q == p - 1 || is_of(&chains[0], q) || is_of(&chains[1], q) ||
            is_of(&chains[2], q))
            continue;
        if (q->kind != &cpu_rows && q != p)
            return false;
        for (int i = 0; i < q->n->n_out; i++)
            if (meet(k->x->f, k->x->cols, q->out[i].f, q->out[i].cols))
                return false;
    }
    return true;
}

/* What is done to queries, keys and values, and KV_WRITE: by heads, in tiles of
 * attention. */
static void
find_heads(const fuser *f, cpu_phase *p)
{
    cpu_phase *kv = p - 1, *q;
    int64_t heads = br_ir_i(p->n, BR_IA_heads, 1);
    int64_t of_keys = br_ir_i(p->n, BR_IA_kv_heads, 1);
    int64_t dim = br_ir_i(p->n, BR_IA_head_dim, 0);
    cpu_chain chains[3];

    if (p == f->c->phases.at || p->gather || !is_dense(kv) ||
        kv->rows != cpu_rows_kv || !kv->in[1].v || !p->in[2].v ||
        kv->in[3].v != p->in[1].v || kv->in[4].v != p->in[2].v ||
        (int64_t)kv->pieces != of_keys)
        return;
    chains[0] = find_chain(f, p, 0, heads, dim);
    chains[1] = find_chain(f, kv, 0, of_keys, dim);
    chains[2] = find_chain(f, kv, 1, of_keys, br_ir_i(p->n, BR_IA_head_v, 0));
    for (int i = 0; i < 3; i++)
        if (!is_kept(p, &chains[i], chains))
            return;
    memcpy(p->chains, chains, sizeof chains);
    p->keep = kv;
    kv->inside = true;
    for (q = kv; q > f->c->phases.at && p->n - q->n < CPU_MAX_LAG; q--)
        for (int i = 0; i < 3; i++)
            q->inside |= is_of(&chains[i], q);
    for (q = kv; q > f->c->phases.at && q->inside; q--)
        ;
    q->heads = q->kind == &cpu_multiply ? p : NULL;
}

static void
find_all(const fuser *f, cpu_phase *p, const cpu_phase *end)
{
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (p->part[i].o0 != 0)
            return;
    find_forms(f, p);
    find_norm(f, p);
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (!is_free(p, p->part[i].y, p->part[i].o1))
            p->n_forms = p->norms = 0;
    for (uint32_t i = 1; i <= p->n_forms + p->norms; i++)
        p[-(ptrdiff_t)i].inside = true;
    if (p + 1 >= end)
        return;
    find_add(f, p, p + 1);
    find_glu(f, p, p + 1);
    p[1].inside = p->into != NULL;
}

_Static_assert((int)CPU_MAX_LAG < (int)BR_VALUES_REST,
               "values rest for so long");

static bool
stands_before_attention(int op)
{
    return op == BR_IR_BARRIER || op == BR_IR_KV_WRITE_BATCHED ||
           op == BR_IR_ROPE || op == BR_IR_TEMP_SCALE || op == BR_IR_RMS_NORM;
}

/* What nodes right before attention read is there until attention. All that
 * rested for eight nodes was 84 MB more of Llama-1B, 512 rows. */
uint8_t *
cpu_fuse_rest(const br_ir *g, br_arena *a)
{
    uint8_t *rest = br_arena_new(a, uint8_t, g->n_nodes + 1);
    uint32_t far = CPU_MAX_LAG; /* nodes from i to attention */

    for (uint32_t i = rest ? g->n_nodes : 0; i-- > 0;) {
        int op = g->nodes[i].op;

        if (op == BR_IR_FLASH_ATTN || op == BR_IR_FLASH_ATTN_BATCHED)
            far = 0;
        else if (far < CPU_MAX_LAG && stands_before_attention(op))
            far++;
        else
            far = CPU_MAX_LAG;
        rest[i] = (uint8_t)(far < CPU_MAX_LAG ? BR_MAX(far, CPU_LAG) : CPU_LAG);
    }
    return rest;
}

br_code
cpu_fuse(br_cpu *c, br_status *st)
{
    const br_ir *g = c->v.g;
    uint32_t *n = br_try_calloc(2 * (size_t)g->n_values + 1, sizeof *n);
    fuser f = {c, n, n ? n + g->n_values : NULL};
    cpu_phase *end = c->phases.at + c->phases.n;

    if (!n)
        return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int b = 0; b < g->nodes[i].n_in + g->nodes[i].n_out; b++) {
            uint32_t v = g->nodes[i].bind[b].value;

            if (v != BR_IR_NONE)
                ++(b < g->nodes[i].n_in ? f.readers : f.writers)[v];
        }
    for (cpu_phase *p = c->phases.at; p < end; p++)
        if (p->kind == &cpu_multiply &&
            (p->n->op == BR_IR_MATMUL || p->n->op == BR_IR_LM_HEAD))
            find_all(&f, p, end);
        else if (p->kind == &cpu_attention)
            find_heads(&f, p);
    br_free(n);
    return BR_OK;
}

/* ---- a step --------------------------------------------------------------- */

void
cpu_fuse_row(br_cpu *c, const cpu_phase *p, cpu_worker *w)
{
    const cpu_phase *q = p - p->n_forms;
    const float *x = p->in[0].f;

    if (w->has == p && w->has_step == c->n_steps)
        return;
    w->has = p;
    w->has_step = c->n_steps;
    if (p->norms) {
        cpu_norm_row(c, q - 1, q[-1].in[0].f, q[-1].in[0].cols, w->wide);
        x = w->wide;
    }
    for (; q < p; q++)
        br_act_row(c->isa, (br_form)q->form, x, q->n_in, w->act[q->form]);
}

/* Heads h as the chain makes them, of dim numbers, in y or where they were; z is
 * room for them, too. */
static const float *
heads_of(br_cpu *c, const cpu_chain *k, cpu_heads h, int64_t dim, float *y,
         float *z)
{
    int64_t n = (h.to - h.from) * dim;
    const float *x = k->x->f + h.from * dim;

    if (k->norm) {
        cpu_norm_row(c, k->norm, x, n, z);
        x = z;
    }
    if (k->turn) {
        cpu_turn_heads(c, k->turn, 0, h.to - h.from, x, y);
        x = y;
    }
    if (k->heat) {
        c->ops->scale(x, y, (size_t)n,
                      ref_temperature(k->heat->n, c->step->position[0]));
        x = y;
    }
    return x;
}

const float *
cpu_fuse_heads(br_cpu *c, const cpu_phase *p, cpu_heads g, bool keep,
               cpu_worker *w)
{
    int64_t per =
        br_ir_i(p->n, BR_IA_heads, 1) / br_ir_i(p->n, BR_IA_kv_heads, 1);
    int64_t dim = br_ir_i(p->n, BR_IA_head_dim, 0);
    float *k = w->ref.wide[1], *z = w->ref.wide[2];

    for (int64_t h = g.from; keep && h < g.to; h++)
        for (int i = 0; i < 2; i++)
            cpu_keep_head(
                c, p->keep, i, 0, (size_t)h,
                heads_of(c, &p->chains[1 + i], (cpu_heads){h, h + 1},
                         i == 0 ? dim : br_ir_i(p->n, BR_IA_head_v, 0), k, z));
    return heads_of(c, &p->chains[0], (cpu_heads){g.from * per, g.to * per},
                    dim, w->ref.wide[0], z);
}
