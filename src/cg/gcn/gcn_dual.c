/* gcn_dual.c - two vector instructions as one that issues at once (VOPD).
 *
 *   v_mul_f32 v1, v2, v3
 *   ds_load_b32 v8, v9          v_dual_mul_f32 v1, v2, v3 ::
 *   v_add_f32 v4, v5, v6    ->      v_dual_add_f32 v4, v5, v6
 *                               ds_load_b32 v8, v9
 *
 * Both halves read before either writes, so the second may write what the first
 * reads, but not read what it writes. The later one goes up to the earlier, or
 * that one down, over at most WINDOW instructions that neither depend on it nor
 * it on them; no way leads over a wait, a change of mode or EXEC, or a branch.
 * Which registers go together (results of other parity, sources of other banks,
 * two scalars and literals at most) is what the decoder refuses, which is tested
 * beside llvm-mc: an attempt is encoded and read back.
 *
 * Requires  waits are in, hazards are not; 32 lanes
 * Changes   two instructions become one, at the place of either
 * Tried     before waits: a half that needs none then waits for the other's
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum {
    WINDOW = 24,
    V0 = 256,
    LIT = 255,
    VCC = 106,
    EXEC = 126,
    NONE = 1 << 12
};

static const struct {
    const char *name, *half, *swapped;
} rows[] = {
#define DUAL(name, half, swapped) {#name, half, swapped},
#define FMA_(name, half, swapped) {"fma:" #name, half, swapped},
#include "cg/gcn/dual.def"
#undef DUAL
#undef FMA_
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* A way to write one half. */
typedef struct form {
    const br_gcn_row *x, *y; /* as first and as second; NULL: it is none */
    unsigned s0, s1;         /* codes, or NONE */
} form;

typedef struct half {
    form f[2]; /* the second with its sources swapped */
    unsigned n, dst;
    bool has_lit;
    uint32_t lit;
} half;

typedef struct line_uses {
    gcn_use u[GCN_MAX_USES];
    unsigned n;
    bool stops; /* nothing goes past it */
} line_uses;

typedef struct dual {
    gcn_code *c;
    const br_gcn_row *x[2][N_ROWS], *y[2][N_ROWS]; /* as named; swapped */
    line_uses *uses;                               /* of a node's lines */
} dual;

/* ---- halves ------------------------------------------------------------ */

static void
find_rows(dual *d)
{
    size_t n;
    const br_gcn_row *all = br_gcn_rows(d->c->isa->cpu, &n);

    for (size_t k = 0; k < n; k++) {
        bool x = all[k].fmt == BR_FMT_VOPD, y = all[k].fmt == BR_FMT_VOPDY;

        if ((!x && !y) || !br_gcn_row_here(d->c->isa->cpu, &all[k]))
            continue;
        for (size_t r = 0; r < N_ROWS; r++)
            for (int s = 0; s < 2; s++) {
                const char *to = s ? rows[r].swapped : rows[r].half;

                if (strcmp(all[k].name + strlen("v_dual_"), to) == 0)
                    (x ? d->x : d->y)[s][r] = &all[k];
            }
    }
}

/* Source n of a plain instruction as a code, or NONE. */
static unsigned
source(const br_gcn_inst *in, unsigned n)
{
    static const br_gcn_field fields[] = {BR_GF_src0, BR_GF_src1, BR_GF_src2};

    if (n == 1 && br_gcn_has(in, BR_GF_vsrc1))
        return V0 + br_gcn_get(in, BR_GF_vsrc1);
    for (const br_gcn_opnd *o = in->row->o; o->kind != BR_GK_END; o++)
        if (o->field == fields[n])
            return br_gcn_get(in, fields[n]);
    return NONE;
}

/* The row of dual.def of v_fma_f32, its sources put in order; N_ROWS: none. */
static size_t
fma_row(unsigned dst, unsigned s[3])
{
    const char *name = NULL;
    size_t r = 0;
    unsigned lits = (s[0] == LIT) + (s[1] == LIT) + (s[2] == LIT);

    if (s[2] == V0 + dst && !(s[0] == LIT && s[1] == LIT)) {
        name = "fma:acc";
    } else if (lits == 1 && s[2] == LIT) {
        name = "fma:add";
    } else if (lits == 1 && s[2] >= V0) {
        name = "fma:mul"; /* one factor, then the addend */
        s[0] = s[0] == LIT ? s[1] : s[0];
        s[1] = s[2];
    }
    while (r < N_ROWS && (!name || strcmp(rows[r].name, name) != 0))
        r++;
    return r;
}

/* The row of an instruction by its name without v_, _e32 and _e64. */
static size_t
row_of(const br_gcn_inst *in, unsigned dst, unsigned s[3])
{
    const char *name = in->row->name + 2, *e = strstr(name, "_e");
    size_t n = strlen(name), r = 0;

    if (e && (strcmp(e, "_e32") == 0 || strcmp(e, "_e64") == 0))
        n = (size_t)(e - name);
    if (n == strlen("fma_f32") && memcmp(name, "fma_f32", n) == 0)
        return fma_row(dst, s);
    while (r < N_ROWS &&
           (strlen(rows[r].name) != n || memcmp(rows[r].name, name, n) != 0))
        r++;
    return r;
}

/* False: it cannot be half of anything. */
static bool
read_half(const dual *d, const br_gcn_inst *in, half *h)
{
    unsigned fmt = in->row->fmt, s[3];
    size_t r;

    if ((fmt != BR_FMT_VOP1 && fmt != BR_FMT_VOP2 && fmt != BR_FMT_VOP3) ||
        gcn_is_modified(in))
        return false;
    for (unsigned k = 0; k < 3; k++)
        s[k] = source(in, k);
    *h = (half){.dst = br_gcn_get(in, BR_GF_vdst),
                .has_lit = in->ext == BR_EXT_LIT};
    h->lit = h->has_lit ? in->w[in->words - 1] : 0;
    r = row_of(in, h->dst, s);
    if (r == N_ROWS || (strcmp(rows[r].name, "cndmask_b32") == 0 &&
                        s[2] != NONE && s[2] != VCC))
        return false;
    if (s[1] >= V0)
        h->f[h->n++] = (form){d->x[0][r], d->y[0][r], s[0], s[1]};
    if (s[0] >= V0 && s[1] != NONE && rows[r].swapped[0])
        h->f[h->n++] = (form){d->x[1][r], d->y[1][r], s[1], s[0]};
    return h->n != 0;
}

/* ---- pairs ------------------------------------------------------------- */

static bool
write_pair(const dual *d, const half *x, const form *fx, const half *y,
           const form *fy, br_gcn_inst *out)
{
    bool lit = x->has_lit || y->has_lit;
    br_gcn_inst back;

    if (!fx->x || !fy->y)
        return false;
    br_gcn_fresh(out, fx->x, fy->y, lit ? BR_EXT_LIT : BR_EXT_NONE);
    br_gcn_set(out, BR_GF_vdstx, x->dst);
    br_gcn_set(out, BR_GF_vdsty, y->dst >> 1);
    br_gcn_set(out, BR_GF_srcx0, fx->s0);
    br_gcn_set(out, BR_GF_srcy0, fy->s0);
    if (fx->s1 != NONE)
        br_gcn_set(out, BR_GF_vsrcx1, fx->s1 - V0);
    if (fy->s1 != NONE)
        br_gcn_set(out, BR_GF_vsrcy1, fy->s1 - V0);
    if (lit)
        br_gcn_set(out, BR_GF_lit, x->has_lit ? x->lit : y->lit);
    return br_gcn_decode(d->c->isa, out->w, out->words, &back) == out->words &&
           back.row == fx->x && back.row_y == fy->y;
}

static bool
pair(const dual *d, const half *a, const half *b, br_gcn_inst *out)
{
    if (!((a->dst ^ b->dst) & 1) ||
        (a->has_lit && b->has_lit && a->lit != b->lit))
        return false;
    for (unsigned k = 0; k < a->n; k++)
        for (unsigned m = 0; m < b->n; m++)
            if (write_pair(d, a, &a->f[k], b, &b->f[m], out) ||
                write_pair(d, b, &b->f[m], a, &a->f[k], out))
                return true;
    return false;
}

/* ---- order ------------------------------------------------------------- */

enum { READ_WRITTEN = 1, WRITE_READ = 2, WRITE_WRITTEN = 4 };

/* How a later instruction depends on an earlier one. */
static unsigned
depends(const line_uses *a, const line_uses *b)
{
    unsigned how = 0;

    for (unsigned i = 0; i < a->n; i++)
        for (unsigned k = 0; k < b->n; k++) {
            const gcn_use *p = &a->u[i], *q = &b->u[k];

            if (p->code < q->code + q->words && q->code < p->code + p->words)
                how |= p->write && q->write ? WRITE_WRITTEN
                       : p->write           ? READ_WRITTEN
                       : q->write           ? WRITE_READ
                                            : 0;
        }
    return how;
}

static void
look(dual *d, const gcn_line *l, line_uses *x)
{
    unsigned fmt = l->in.row->fmt;

    x->n = gcn_uses(d->c->isa, &l->in, x->u);
    x->stops = l->target >= 0 || fmt == BR_FMT_SOPP || fmt == BR_FMT_SOPK ||
               strstr(l->in.row->name, "exec") ||
               strstr(l->in.row->name, "pc_") || gcn_is(&l->in, "v_cmpx");
    for (unsigned k = 0; k < x->n; k++)
        x->stops |=
            x->u[k].write && (x->u[k].code == EXEC || x->u[k].code == EXEC + 1);
}

/* Whether what is at `from` may stand at `to`. */
static bool
moves(const dual *d, size_t from, size_t to)
{
    size_t lo = from < to ? from : to, hi = from < to ? to : from;

    for (size_t k = lo + 1; k < hi; k++)
        if (from < to ? depends(&d->uses[from], &d->uses[k])
                      : depends(&d->uses[k], &d->uses[from]))
            return false;
    return true;
}

/* Finds a partner for the line at i; its place goes to *at. */
static bool
join(dual *d, gcn_node *n, size_t i)
{
    half a, b;
    br_gcn_inst both;

    if (!read_half(d, &n->code.at[i].in, &a))
        return false;
    for (size_t k = i + 1; k < n->code.n && k <= i + WINDOW; k++) {
        size_t to = i, gone = k;

        if (d->uses[k].stops)
            return false;
        if (!n->code.at[k].in.row || !read_half(d, &n->code.at[k].in, &b) ||
            depends(&d->uses[i], &d->uses[k]) &
                (READ_WRITTEN | WRITE_WRITTEN) ||
            !pair(d, &a, &b, &both))
            continue;
        if (!moves(d, k, i)) {
            to = k;
            gone = i;
            if (!moves(d, i, k))
                continue;
        }
        n->code.at[to].in = both;
        look(d, &n->code.at[to], &d->uses[to]);
        n->code.at[gone].in.row = NULL;
        d->uses[gone].n = 0;
        return true;
    }
    return false;
}

static void
over_node(dual *d, gcn_node *n)
{
    size_t to = 0;

    for (size_t k = 0; k < n->code.n; k++)
        look(d, &n->code.at[k], &d->uses[k]);
    for (size_t k = 0; k < n->code.n; k++)
        if (n->code.at[k].in.row)
            (void)join(d, n, k);
    for (size_t k = 0; k < n->code.n; k++)
        if (n->code.at[k].in.row)
            n->code.at[to++] = n->code.at[k];
    n->code.n = to;
}

void
gcn_pass_dual(gcn_code *c)
{
    dual d = {.c = c};
    size_t most = 0;

    for (size_t n = 0; n < c->n; n++)
        most = BR_MAX(most, c->node[n].code.n);
    d.uses = br_try_calloc(most + 1, sizeof *d.uses);
    if (!d.uses) {
        c->oom = true;
        return;
    }
    find_rows(&d);
    for (size_t n = 0; n < c->n; n++)
        over_node(&d, &c->node[n]);
    br_free(d.uses);
}
