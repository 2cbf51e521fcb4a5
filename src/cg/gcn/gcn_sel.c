/* gcn_sel.c - what instructions compute a pure operation: rows of gcn_sel.def,
 * and the walk over a block.
 *
 * A value that is the same on all lanes goes to scalar registers where a row
 * makes it there from scalars; everything else goes to vector registers. A
 * predicate of lanes is a mask; one that another block reads also has a home,
 * 0 or 1 in a vector register, for a mask says nothing about lanes that do not
 * run when it is made. Narrow values are extended by zeros.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower.h"
#include "cg/gcn/gcn_mir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sel_row {
    uint8_t op;
    char file;
    const char *types;
    uint16_t field; /* modifier that has to have the value; 0: none */
    uint8_t value;
    const char *code;
} sel_row;

enum {
    SMALL_SHIFT = 0xffff
}; /* for a field: shifted by a constant below the
                                * width */

static const sel_row rows[] = {
#define SEL(op, types, file, field, value, code) \
    {BR_K_##op, (#file)[0], types, field, value, code},
#include "cg/gcn/gcn_sel.def"
#undef SEL
};

/* ---- which row --------------------------------------------------------- */

static bool
is_float(const br_kins *i)
{
    return br_ktinfo_of[i->type].kind == 'F' ||
           (i->op == BR_K_CVT && br_ktinfo_of[i->type2].kind == 'F');
}

static bool
type_in(const char *list, const br_kins *i)
{
    char want[24];
    size_t n;

    if (i->op == BR_K_CVT || i->op == BR_K_DP4A)
        snprintf(want, sizeof want, "%s/%s", br_ktinfo_of[i->type].text,
                 br_ktinfo_of[i->type2].text);
    else
        snprintf(want, sizeof want, "%s", br_ktinfo_of[i->type].text);
    n = strlen(want);
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strncmp(p, want, n) == 0 && (p[n] == ' ' || p[n] == 0))
            return true;
    return false;
}

static bool
constant(const br_kfn *f, uint32_t v, uint64_t *bits)
{
    if (f->vals.at[v].kind == BR_KV_INS)
        return false;
    *bits = f->vals.at[v].kind == BR_KV_CONST ? f->vals.at[v].bits : 0;
    return true;
}

static uint32_t
cleared(uint32_t mods, uint16_t field)
{
    return mods & ~(((1u << (field & 0xff)) - 1) << (field >> 8));
}

/* Whether the row says everything that the instruction's modifiers ask. */
static bool
mods_fit(const br_kfn *f, const sel_row *r, const br_kins *i)
{
    uint32_t left = i->mods;
    uint64_t by;

    if (r->field == SMALL_SHIFT) {
        if (!constant(f, f->args.at[i->arg + 1], &by) ||
            by >= br_ktinfo_of[i->type].bytes * 8u)
            return false;
    } else if (r->field) {
        if (br_kmod(i->mods, r->field) != r->value)
            return false;
        left = cleared(left, r->field);
        if (r->field == BR_KF_FTZ)
            left = cleared(left, BR_KF_APPROX);
    }
    if (is_float(i)) {
        /* What comes between may not be flushed; bf16's bits are moved. */
        if (i->op == BR_K_CVT ? i->type != BR_KT_BF16 && i->type2 != BR_KT_BF16
                              : r->field != BR_KF_RND)
            left = cleared(left, BR_KF_FTZ);
        if (i->op == BR_K_CVT && br_ktinfo_of[i->type].kind != 'F')
            left = cleared(left, BR_KF_SAT); /* they do anyhow */
        if (br_kmod(left, BR_KF_RND) <= BR_KM_RND_RP && r->field != BR_KF_RND)
            left = cleared(left, BR_KF_RND);
        if (br_ktinfo_of[i->type].kind == 'F' &&
            br_ktinfo_of[i->type].lanes == 1 &&
            br_kmod(left, BR_KF_SAT) == BR_KM_SAT_SAT)
            left = cleared(left, BR_KF_SAT);
    }
    return left == 0;
}

static const sel_row *
find(const br_kfn *f, const br_kins *i, char file)
{
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (rows[k].op == i->op && rows[k].file == file &&
            type_in(rows[k].types, i) && mods_fit(f, &rows[k], i))
            return &rows[k];
    return NULL;
}

/* Whether a barrier is for all threads of any block that may be launched. The
 * processor has one of those, whatever number PTX gives it. */
static bool
for_all(const br_kfn *f, const br_kins *i)
{
    uint32_t most = f->req_threads ? f->req_threads : f->max_threads;
    uint64_t n;

    return constant(f, f->args.at[i->arg + 1], &n) &&
           (!n || (most && n >= most && !gm_some_arrive(f)));
}

bool
gm_has_code(const br_kfn *f, const br_kins *i)
{
    switch (i->op) {
    case BR_K_PHI:
    case BR_K_SREG:
    case BR_K_ADDR:
    case BR_K_FRAME:
    case BR_K_TOGEN:
    case BR_K_FROMGEN:
    case BR_K_ISSPACE:
    case BR_K_LD:
    case BR_K_ST:
    case BR_K_TRAP:
    case BR_K_FENCE:
    case BR_K_SHFL:
    case BR_K_VOTE:
    case BR_K_BALLOT:
    case BR_K_ACTIVE:
    case BR_K_WARPBAR:
    case BR_K_CPWAIT:
    case BR_K_LOP3: return true;
    case BR_K_BAR: return for_all(f, i);
    case BR_K_CAS: return br_ktinfo_of[i->type].bytes >= 4;
    case BR_K_ATOM:
        return br_ktinfo_of[i->type].kind != 'F' || i->type == BR_KT_F32;
    case BR_K_PACK:
    case BR_K_UNPACK: return i->type == BR_KT_B64 || find(f, i, 'V');
    default: {
        const sel_row *r = find(f, i, 'V');
        bool sat = br_kmod(i->mods, BR_KF_SAT) == BR_KM_SAT_SAT;

        /* The clamp bit of the last instruction. */
        return r && (!sat || r->field == BR_KF_SAT ||
                     br_ktinfo_of[i->type].kind != 'F' || i->op != BR_K_CVT ||
                     i->type != BR_KT_F64);
    }
    }
}

/* ---- files ------------------------------------------------------------- */

static bool
is_pred(const gm_fn *g, uint32_t v)
{
    return g->f->vals.at[v].cls == BR_KC_PRED;
}

/* Whether an instruction of scalars makes scalars. */
static bool
scalar(const gm_fn *g, const br_kins *i)
{
    uint64_t at;

    switch (i->op) {
    case BR_K_PHI:
    case BR_K_ADDR: return true;
    case BR_K_UNPACK:
    case BR_K_PACK: return i->type == BR_KT_B64;
    case BR_K_FROMGEN:
    case BR_K_FRAME: return true;
    case BR_K_TOGEN: return br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_PARAM;
    case BR_K_SREG: return i->imm >= BR_KS_NTID_X && i->imm <= BR_KS_NCTAID_Z;
    case BR_K_LD:
        /* By an address that is found at run time lanes load. */
        return br_ktinfo_of[i->type].bytes >= 4 && gm_param_at(g, i, &at);
    default: return find(g->f, i, 'S') != NULL;
    }
}

/* Which values phis and other blocks read. */
static void
find_far(gm_fn *g)
{
    const br_kfn *f = g->f;

    for (uint32_t b = 0; b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
            const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];

            for (unsigned r = 0; r < i->n_res; r++)
                g->vals[i->res + r].blk = b;
        }
    for (uint32_t b = 0; b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
            const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];

            for (unsigned a = 0; a < i->n_arg; a++) {
                gm_val *v = &g->vals[f->args.at[i->arg + a]];

                v->far |= i->op == BR_K_PHI || v->blk != b;
            }
        }
}

/* What a phi takes along an edge that lanes go one by one, out of a loop or on
 * in it, has to wait for the edge's turn: by lane. An edge back has the next
 * turn, unless both ways lead back. */
static bool
waits_on_edge(const gm_fn *g, uint32_t blk, const br_kins *i, unsigned a)
{
    const br_kblk *b;
    bool back = true;
    uint32_t from;

    if (i->op != BR_K_PHI)
        return false;
    from = g->f->blks.at[blk].pred.at[a];
    b = &g->f->blks.at[from];
    for (size_t s = 0; s < b->succ.n; s++)
        back &= g->turn[b->succ.at[s]] <= g->turn[from];
    return g->mixed[from] && b->succ.n > 1 &&
           (back || g->turn[blk] > g->turn[from]);
}

/* Lane by lane from now on; whether that is new. */
static bool
demote(gm_fn *g, uint32_t v)
{
    bool was = g->vals[v].file == 'S';

    if (g->f->vals.at[v].kind == BR_KV_INS)
        g->vals[v].file = is_pred(g, v) ? 'M' : 'V';
    return was && g->vals[v].file != 'S';
}

void
gm_classes(gm_fn *g)
{
    const br_kfn *f = g->f;
    bool change = true;

    for (uint32_t v = 0; v < f->vals.n; v++)
        g->vals[v] = (gm_val){
            .file = 'S', .vreg = BR_KNONE, .home = BR_KNONE, .blk = BR_KNONE};
    find_far(g);
    while (change) {
        change = false;
        for (uint32_t b = 0; b < f->blks.n; b++)
            for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
                const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];
                bool s = i->n_res && g->uniform[i->res] && scalar(g, i);

                for (unsigned r = 0; r < i->n_res; r++)
                    s &= g->vals[i->res + r].file == 'S';
                for (unsigned a = 0; s && a < i->n_arg; a++)
                    s = g->vals[f->args.at[i->arg + a]].file == 'S';
                for (unsigned r = 0; !s && r < i->n_res; r++)
                    change |= demote(g, i->res + r);
                for (unsigned a = 0; a < i->n_arg; a++)
                    if (waits_on_edge(g, b, i, a))
                        change |= demote(g, f->args.at[i->arg + a]);
            }
    }
}

/* ---- values ------------------------------------------------------------ */

static unsigned
words_of(const gm_fn *g, uint32_t v)
{
    return is_pred(g, v)                       ? br_gcn_mask_words(g->isa)
           : g->f->vals.at[v].cls == BR_KC_B64 ? 2
                                               : 1;
}

static uint32_t
vreg_of(gm_fn *g, uint32_t v)
{
    gm_val *x = &g->vals[v];

    if (x->vreg == BR_KNONE)
        x->vreg = gm_new(g, x->file == 'V' ? 'V' : 'S', words_of(g, v));
    return x->vreg;
}

/* Phis of masks are in their homes. */
static uint32_t
home_of(gm_fn *g, uint32_t v)
{
    if (g->vals[v].home == BR_KNONE)
        g->vals[v].home = gm_new(g, 'V', 1);
    return g->vals[v].home;
}

static gm_op
const_op(gm_fn *g, uint32_t v, uint64_t bits, int sub)
{
    gm_op t;

    if (is_pred(g, v))
        return gm_imm(bits ? ~0u : 0);
    if (words_of(g, v) == 1 || sub == 0)
        return gm_imm((uint32_t)bits);
    if (sub == 1)
        return gm_imm((uint32_t)(bits >> 32));
    if (bits <= 64 || bits >= (uint64_t)-16)
        return gm_imm((uint32_t)bits);
    t = gm_reg(gm_new(g, 'S', 2), 0);
    GM(g, "s_mov_b32", t, gm_imm((uint32_t)bits));
    t.sub = 1;
    {
        gm_ins *i = GM(g, "s_mov_b32", t, gm_imm((uint32_t)(bits >> 32)));

        if (i)
            i->keep = true;
    }
    t.sub = 0;
    return t;
}

static gm_op
value_op(gm_fn *g, uint32_t v, int sub)
{
    gm_val *x = &g->vals[v];
    uint64_t bits;
    gm_op t;

    if (constant(g->f, v, &bits))
        return const_op(g, v, bits, sub);
    if (x->file == 'M' && x->vreg == BR_KNONE) { /* of another block */
        t = gm_new_mask(g);
        GM(g, "v_cmp_ne_u32", t, gm_imm(0), gm_reg(home_of(g, v), 0));
        return t;
    }
    return gm_reg(vreg_of(g, v), x->sub + (sub == 1));
}

gm_op
gm_arg(gm_fn *g, const br_kins *i, unsigned n, int sub)
{
    return value_op(g, g->f->args.at[i->arg + n], sub);
}

gm_op
gm_arg_v(gm_fn *g, const br_kins *i, unsigned n, int sub)
{
    gm_op a = gm_arg(g, i, n, sub), t;
    unsigned words = sub == GM_NO ? words_of(g, g->f->args.at[i->arg + n]) : 1;

    if (a.kind == GM_VREG && g->vregs.at[a.v].file == 'V')
        return a;
    t = gm_reg(gm_new(g, 'V', words), 0);
    for (unsigned w = 0; w < words; w++) {
        gm_op to = t;
        gm_ins *m;

        to.sub = (uint8_t)w;
        m = GM(g, "v_mov_b32", to, gm_arg(g, i, n, words > 1 ? (int)w : sub));
        if (m)
            m->keep = w > 0;
    }
    return t;
}

gm_op
gm_res(gm_fn *g, const br_kins *i, unsigned n)
{
    return gm_reg(vreg_of(g, i->res + n), 0);
}

void
gm_refuse(gm_fn *g, const br_kins *i)
{
    br_str s = {0};

    br_kins_print(g->m, g->f, i, &s);
    g->line = i->line;
    gm_fail(g, BR_E_UNSUPPORTED, "%s has no code for this yet%s: %s",
            g->isa->cpu->name,
            g->isa->wave64 ? " in waves of 64 lanes (try wave32)" : "",
            br_str_z(&s) + strspn(br_str_z(&s), " "));
    br_str_fini(&s);
}

/* ---- rows of text ------------------------------------------------------ */

/* What the letters of a row stand for while it is written out. */
typedef struct expand {
    gm_fn *g;
    const br_kins *i;
    uint32_t tmp[5][10];            /* t w s p m */
    uint32_t begun[GM_MAX_OPS * 4]; /* vregs of several words written to */
    unsigned n_begun;
} expand;

static gm_op
letter(expand *e, const char *p, const char **end, int *sub)
{
    static const char tmps[] = "twspm", args[] = "abcf";
    const char *t = strchr(tmps, *p), *a = strchr(args, *p);
    uint32_t *v = NULL;
    char c = *p++;

    if (t) {
        v = &e->tmp[t - tmps][*p++ - '0'];
        if (*v == BR_KNONE && *t == 'm')
            *v = gm_new_mask(e->g).v;
        else if (*v == BR_KNONE)
            *v = gm_new(e->g, (t - tmps) < 2 ? 'V' : 'S', 1 + ((t - tmps) & 1));
    }
    *sub = GM_NO;
    if (p[0] == '.') {
        *sub = p[1] == 'h';
        p += 2;
    }
    *end = p;
    if (v)
        return gm_reg(*v, *sub == 1);
    if (a)
        return gm_arg(e->g, e->i, (unsigned)(a - args), *sub);
    br_assert((c == 'd' || c == 'e') && "a letter of gcn_sel.def");
    return gm_reg(vreg_of(e->g, e->i->res + (c == 'e')), *sub == 1);
}

static gm_op
operand(expand *e, const char *p, const char **end)
{
    static const struct {
        const char *text;
        uint16_t code;
    } names[] = {{"vcc", GM_VCC}, {"exec", GM_EXEC}, {"null", GM_NULL}};
    bool neg = *p == '-' && (p[1] < '0' || p[1] > '9'), abs;
    gm_op o;
    int sub;

    p += neg;
    abs = *p == '|';
    p += abs;
    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (strncmp(p, names[k].text, strlen(names[k].text)) == 0) {
            *end = p + strlen(names[k].text);
            return gm_code(names[k].code);
        }
    if (*p == '-' || (*p >= '0' && *p <= '9')) {
        char *stop;

        o = gm_imm((uint32_t)strtoll(p, &stop, 0));
        *end = stop;
        return o;
    }
    o = letter(e, p, end, &sub);
    o.neg = neg;
    o.abs = abs;
    *end += abs;
    return o;
}

/* A vreg of several words that was written to in part keeps what it has. */
static void
note_write(expand *e, gm_ins *i)
{
    const gm_vreg *v;
    uint32_t what;

    if (!i || i->op[0].kind != GM_VREG)
        return;
    what = i->op[0].v;
    v = &e->g->vregs.at[what];
    if (v->words == 1 || gm_width(e->g, i, 0) == v->words ||
        !gm_defines(i->row, i->row->o))
        return;
    for (unsigned k = 0; k < e->n_begun; k++)
        i->keep |= e->begun[k] == what;
    if (e->n_begun < BR_COUNT(e->begun))
        e->begun[e->n_begun++] = what;
}

static void
write_out(expand *e, const char *code)
{
    while (*code && e->g->code == BR_OK) {
        char name[40];
        size_t n = strcspn(code, " ");
        gm_op op[GM_MAX_OPS];
        unsigned k = 0;
        gm_ins *i;

        br_assert(n < sizeof name && "a name of gcn_sel.def");
        memcpy(name, code, n);
        name[n] = 0;
        code += n;
        while (*code == ' ' || *code == ',')
            if (*code == ' ' && code[1] != ' ')
                op[k++] = operand(e, code + 1, &code);
            else
                code++;
        if (*code == ';')
            code += 1 + strspn(code + 1, " ");
        i = gm_emit(e->g, name, op, k);
        if (i && strncmp(name, "v_mad_", 6) == 0 && gm_width(e->g, i, 0) == 2)
            i->early = true;
        note_write(e, i);
    }
}

/* The last instruction from a place on that can saturate does. */
static void
saturate(gm_fn *g, const br_kins *i, size_t from)
{
    gm_blk *b = &g->blks.at[g->node];

    for (size_t k = b->ins.n; k-- > from;)
        if (b->ins.at[k].row->flags & BR_RF_CLAMP) {
            gm_set(&b->ins.at[k], BR_GF_clamp, 1);
            return;
        }
    gm_refuse(g, i);
}

static uint8_t
mode_of(const br_kins *i)
{
    static const uint8_t round[] = {0, 0, 3, 2, 1, 0, 0, 0, 0, 0};
    unsigned t = i->op == BR_K_CVT && br_ktinfo_of[i->type].kind != 'F'
                     ? i->type2
                     : i->type;
    unsigned r = round[br_kmod(i->mods, BR_KF_RND)];
    unsigned keep = 15;

    if (!is_float(i))
        return 0;
    if (br_kmod(i->mods, BR_KF_FTZ))
        keep = i->op == BR_K_CVT || t == BR_KT_F32 ? 12 : 3;
    return (uint8_t)(keep << 4 | r << 2 | r);
}

static bool
select_row(gm_fn *g, const br_kins *i)
{
    char file = g->vals[i->res].file == 'S' ? 'S' : 'V';
    const sel_row *r = find(g->f, i, file);
    expand e = {.g = g, .i = i};
    size_t from = g->blks.at[g->node].ins.n;

    if (!r)
        return false;
    memset(e.tmp, 0xff, sizeof e.tmp);
    g->mode = mode_of(i);
    write_out(&e, r->code);
    g->mode = 0;
    if (br_ktinfo_of[i->type].kind == 'F' && file == 'V' &&
        r->field != BR_KF_SAT && g->code == BR_OK &&
        br_kmod(i->mods, BR_KF_SAT) == BR_KM_SAT_SAT)
        saturate(g, i, from);
    return true;
}

/* ---- words put together and taken apart -------------------------------- */

static void
move(gm_fn *g, gm_op to, gm_op from, bool keep)
{
    bool v = g->vregs.at[to.v].file == 'V';
    gm_ins *i = GM(g, v ? "v_mov_b32" : "s_mov_b32", to, from);

    if (i)
        i->keep = keep;
}

static void
select_pack(gm_fn *g, const br_kins *i)
{
    gm_op d = gm_res(g, i, 0), h = d;

    h.sub = 1;
    move(g, d, gm_arg(g, i, 0, GM_NO), false);
    move(g, h, gm_arg(g, i, 1, GM_NO), true);
}

static void
select_unpack(gm_fn *g, const br_kins *i)
{
    for (unsigned r = 0; r < 2; r++)
        move(g, gm_res(g, i, r), gm_arg(g, i, 0, (int)r), false);
}

/* A copy of all words. */
static void
select_same(gm_fn *g, const br_kins *i)
{
    gm_op d = gm_res(g, i, 0);

    g->vregs.at[d.v].hint =
        gm_arg(g, i, 0, 0).kind == GM_VREG ? gm_arg(g, i, 0, 0).v : BR_KNONE;
    for (unsigned w = 0; w < words_of(g, i->res); w++) {
        gm_op to = d;

        to.sub = (uint8_t)w;
        move(g, to, gm_arg(g, i, 0, (int)w), w > 0);
    }
}

/* LOP3 as and, or, xor of what its table asks for: at most four terms. */
static void
select_lop3(gm_fn *g, const br_kins *i)
{
    gm_op d = gm_res(g, i, 0), sum = gm_imm(0);

    for (unsigned k = 0; k < 8; k++) {
        gm_op term = gm_imm(~0u);

        if (!(i->imm >> k & 1))
            continue;
        for (unsigned a = 0; a < 3; a++) {
            gm_op x = gm_arg_v(g, i, a, GM_NO), t, u;

            if (!(k >> (2 - a) & 1)) {
                t = gm_reg(gm_new(g, 'V', 1), 0);
                GM(g, "v_not_b32", t, x);
                x = t;
            }
            u = gm_reg(gm_new(g, 'V', 1), 0);
            GM(g, "v_and_b32", u, term, x);
            term = u;
        }
        if (sum.kind == GM_IMM) {
            sum = term;
        } else {
            gm_op u = gm_reg(gm_new(g, 'V', 1), 0);

            GM(g, "v_or_b32", u, sum, term);
            sum = u;
        }
    }
    GM(g, "v_mov_b32", d, sum);
}

/* Bits whose places are constants: an instruction or two. */
static bool
select_bits(gm_fn *g, const br_kins *i)
{
    uint64_t at = 0, n = 0, sel = 0;
    unsigned last = i->n_arg - 1u;
    gm_op d, t;

    if (g->vals[i->res].file != 'V' || i->n_arg < 3 ||
        !constant(g->f, g->f->args.at[i->arg + last], &n))
        return false;
    (void)constant(g->f, g->f->args.at[i->arg + last - 1], &at);
    if (i->op == BR_K_FSHL || i->op == BR_K_FSHR) {
        if (n < 1 || n > 31)
            return false;
        GM(g, "v_alignbit_b32", gm_res(g, i, 0), gm_arg(g, i, 1, 0),
           gm_arg(g, i, 0, 0),
           gm_imm(i->op == BR_K_FSHL ? 32 - (uint32_t)n : (uint32_t)n));
        return true;
    }
    if (i->op == BR_K_PRMT) {
        if (i->mods || n & 0x8888)
            return false;
        for (unsigned k = 0; k < 4; k++)
            sel |= (n >> 4 * k & 7) << 8 * k;
        GM(g, "v_perm_b32", gm_res(g, i, 0), gm_arg(g, i, 1, 0),
           gm_arg(g, i, 0, 0), gm_imm((uint32_t)sel));
        return true;
    }
    if ((i->op != BR_K_BFE && i->op != BR_K_BFI) || i->mods ||
        br_ktinfo_of[i->type].bytes != 4 ||
        !constant(g->f, g->f->args.at[i->arg + last - 1], &at) || at > 31 ||
        n < 1 || n > 31 || at + n > 32)
        return false;
    d = gm_res(g, i, 0);
    if (i->op == BR_K_BFE) {
        GM(g, br_ktinfo_of[i->type].kind == 'S' ? "v_bfe_i32" : "v_bfe_u32", d,
           gm_arg(g, i, 0, 0), gm_imm((uint32_t)at), gm_imm((uint32_t)n));
        return true;
    }
    t = gm_reg(gm_new(g, 'V', 1), 0);
    GM(g, "v_lshlrev_b32", t, gm_imm((uint32_t)at), gm_arg(g, i, 0, 0));
    GM(g, "v_bfi_b32", d, gm_imm((uint32_t)(((1u << n) - 1) << at)), t,
       gm_arg(g, i, 1, 0));
    return true;
}

/* ---- blocks ------------------------------------------------------------ */

static void
select_one(gm_fn *g, const br_kins *i)
{
    g->line = i->line;
    if (i->op == BR_K_PHI || (br_kopinfo_of[i->op].props & BR_KP_TERM))
        return;
    if (i->op == BR_K_PACK && i->type == BR_KT_B64)
        select_pack(g, i);
    else if (i->op == BR_K_UNPACK && i->type == BR_KT_B64)
        select_unpack(g, i);
    else if ((i->op == BR_K_FROMGEN || i->op == BR_K_TOGEN) &&
             (br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_GLOBAL ||
              br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_CONST))
        select_same(g, i);
    else if (i->op == BR_K_LOP3 && g->vals[i->res].file == 'V')
        select_lop3(g, i);
    else if (i->n_res && select_bits(g, i))
        return;
    else if (!gm_select_mem(g, i) && (!i->n_res || !select_row(g, i)))
        gm_refuse(g, i);
}

/* Masks that other blocks read go to their homes; here they are no longer. */
static void
settle_masks(gm_fn *g, uint32_t blk)
{
    const br_kblk *b = &g->f->blks.at[blk];

    for (size_t k = 0; k < b->ins.n; k++) {
        const br_kins *i = &g->f->ins.at[b->ins.at[k]];

        for (unsigned r = 0; r < i->n_res; r++) {
            gm_val *v = &g->vals[i->res + r];

            if (v->file != 'M' || i->op == BR_K_PHI || v->vreg == BR_KNONE)
                continue;
            if (v->far)
                GM(g, "v_cndmask_b32", gm_reg(home_of(g, i->res + r), 0),
                   gm_imm(0), gm_imm(1), gm_reg(v->vreg, 0));
            v->vreg = BR_KNONE;
        }
    }
}

typedef struct move_row {
    gm_op to, from;
} move_row;

/* All at once: where a source is a target of another, by way of copies. */
static void
move_all(gm_fn *g, move_row *m, size_t n)
{
    bool tangled = false;

    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            tangled |=
                a != b && m[a].from.kind == GM_VREG && m[a].from.v == m[b].to.v;
    for (size_t k = 0; tangled && k < n; k++) {
        gm_op t = gm_reg(gm_new(g, g->vregs.at[m[k].to.v].file, 1), 0);

        move(g, t, m[k].from, false);
        m[k].from = t;
    }
    for (size_t k = 0; k < n; k++) {
        move(g, m[k].to, m[k].from, m[k].to.sub > 0);
        if (m[k].from.kind == GM_VREG)
            g->vregs.at[m[k].to.v].hint = m[k].from.v;
    }
}

static void
phi_move(gm_fn *g, const br_kins *i, unsigned edge, int w, move_row *m)
{
    uint32_t from = g->f->args.at[i->arg + edge];
    gm_op x;

    if (g->vals[i->res].file != 'M') {
        m->to = gm_reg(vreg_of(g, i->res), (unsigned)w);
        m->from = value_op(g, from, w);
        return;
    }
    m->to = gm_reg(home_of(g, i->res), 0);
    if (g->f->vals.at[from].kind == BR_KV_INS && g->vals[from].file == 'M') {
        m->from = gm_reg(home_of(g, from), 0);
        return;
    }
    x = value_op(g, from, GM_NO); /* of the wave, or a constant */
    m->from = gm_reg(gm_new(g, 'V', 1), 0);
    GM(g, "v_cndmask_b32", m->from, gm_imm(0), gm_imm(1), x);
}

/* What phis take along the edge out of a place that has one way. */
static void
select_phis(gm_fn *g, const gm_place *p)
{
    uint32_t from = p->blk == BR_KNONE ? p->from : p->blk;
    const br_kblk *b = &g->f->blks.at[from];
    uint32_t to = b->succ.at[p->blk == BR_KNONE ? p->nth : 0];
    const br_kblk *t = &g->f->blks.at[to];
    BR_VEC(move_row) moves = {0};
    unsigned edge = 0, nth = 0;
    bool ok = true;

    for (uint32_t s = 0; p->blk == BR_KNONE && s < p->nth; s++)
        nth += b->succ.at[s] == to;
    while (t->pred.at[edge] != from || nth-- > 0)
        edge++;
    for (size_t k = 0; ok && k < t->ins.n; k++) {
        const br_kins *i = &g->f->ins.at[t->ins.at[k]];

        if (i->op != BR_K_PHI)
            break;
        for (unsigned w = 0; ok && w < words_of(g, i->res); w++) {
            move_row m;

            if (w && g->vals[i->res].file == 'M')
                break; /* its home is one */

            phi_move(g, i, edge, (int)w, &m);
            ok = br_vec_push(&moves, m);
        }
    }
    if (ok)
        move_all(g, moves.at, moves.n);
    else
        gm_oom(g);
    br_vec_fini(&moves);
}

static gm_op
condition(gm_fn *g, const gm_place *p, const br_kins *t)
{
    gm_op c = gm_imm(0), x;
    char file;

    if (p->n_succ != 2)
        return c;
    c = gm_arg(g, t, 0, GM_NO);
    file = c.kind == GM_VREG ? g->vals[g->f->args.at[t->arg]].file : 'S';
    if (p->split)
        return c;
    if (file == 'M') {
        x = gm_new_mask(g);
        GM(g, "s_and_bm", x, gm_code(GM_EXEC), c);
    } else {
        GM(g, "s_cmp_lg_um", c, gm_imm(0));
    }
    return c;
}

void
gm_select(gm_fn *g, uint32_t place)
{
    const gm_place *p = &g->places.at[place];
    const br_kins *t = NULL;
    gm_op c = gm_imm(0);

    gm_flow_head(g, place);
    g->node = GM_NODE(place, GM_BODY);
    if (p->blk != BR_KNONE) {
        const br_kblk *b = &g->f->blks.at[p->blk];

        for (size_t k = 0; k < b->ins.n && g->code == BR_OK; k++)
            select_one(g, &g->f->ins.at[b->ins.at[k]]);
        t = &g->f->ins.at[b->ins.at[b->ins.n - 1]];
        g->line = t->line;
        if (p->split)
            c = condition(g, p, t); /* while its mask is here */
    }
    if (g->code != BR_OK)
        return;
    if (p->n_succ == 1 && p->blk != BR_KNONE)
        settle_masks(g, p->blk);
    if (p->n_succ == 1)
        select_phis(g, p);
    if (p->n_succ == 2 && !p->split) {
        gm_op m = condition(g, p, t);

        c = m;
    }
    if (p->n_succ == 2)
        settle_masks(g, p->blk);
    gm_flow_out(g, place, c);
}
