/* sim_decode.c - an instruction to what to call and where its operands are.
 *
 * Names decide the meaning: "v_max_num_f32_e64" is the row max_num_f32 of
 * sim_lane.def whatever its encoding. Operands come from the instruction's row
 * in cg/gcn, field by field, so that nothing about encodings stands here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/thread.h"
#include "cg/gcn/gcn_kinds.h"
#include "drv/sim/sim_check.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_wide.h"

#include <string.h>

enum { CODE_V = 256, CODE_INLINE = 128, CODE_FLOAT = 240, CODE_LIT = 255 };

/* ---- names ------------------------------------------------------------ */

static void
cut(char *name, const char *part, size_t keep)
{
    char *p = strstr(name, part);

    if (p)
        memmove(p + keep, p + strlen(part), strlen(p + strlen(part)) + 1);
}

/* name without what only says how it is encoded. */
static void
plain_name(const char *row, char *buf, size_t size)
{
    size_t n = strlen(row);

    br_check(n < size && "names are short");
    memcpy(buf, row, n + 1);
    cut(buf, "_e32", 0);
    cut(buf, "_e64", 0);
    cut(buf, "v_dual_", 2);
    if (strncmp(buf, "v_cmpx_", 7) == 0)
        memmove(buf + 5, buf + 6, strlen(buf + 6) + 1);
    if (strncmp(buf, "ds_", 3) == 0)
        cut(buf, "rtn_", 0);
}

/* Rows by name, found once: looking through 900 of them took as long as running
 * 100 instructions. */
enum { BUCKETS = 2048 };
typedef struct index {
    const sim_sem *at[BUCKETS];
} index_of;
static index_of arithmetic, memories;
static sim_fn dual_run; /* a dual instruction whose halves are direct */

static const sim_sem **
bucket(index_of *x, const char *name)
{
    size_t k =
        (size_t)br_siphash13((br_hash_key){0, 0}, name, strlen(name)) % BUCKETS;

    while (x->at[k] && strcmp(x->at[k]->name, name) != 0)
        k = (k + 1) % BUCKETS;
    return &x->at[k];
}

static void
add(index_of *x, const sim_sem *t)
{
    for (; t->name; t++) {
        const sim_sem **at = bucket(x, t->name);

        *at = *at ? *at : t;
    }
}

static const sim_sem *
lane_rows(void)
{
#if defined __x86_64__ && !defined BR_ONE_COPY
    if (sim_has_avx512())
        return sim_lane_rows_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return sim_lane_rows_avx2;
#endif
    return sim_lane_rows;
}

static void
index_all(void)
{
    const sim_sem *last = lane_rows();

    while (last->name)
        last++;
    dual_run = last->run;
    add(&arithmetic, sim_salu_rows);
    add(&arithmetic, lane_rows());
    add(&arithmetic, sim_cross_rows);
    add(&arithmetic, sim_flow_rows);
    add(&memories, sim_mem_rows);
}

static const sim_sem *
memory(const char *name)
{
    static const char *const prefixes[] = {
        "s_buffer_", "s_", "ds_", "global_", "flat_", "scratch_", "buffer_"};

    for (size_t k = 0; k < BR_COUNT(prefixes); k++)
        if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0)
            return *bucket(&memories, name + strlen(prefixes[k]));
    return NULL;
}

const sim_sem *
sim_sem_find(const br_gcn_row *row)
{
    static br_once once = BR_ONCE;
    char name[64];

    br_once_run(&once, index_all);
    plain_name(row->name, name, sizeof name);
    if (row->fmt >= BR_FMT_SMEM && row->fmt != BR_FMT_VOPDY)
        return memory(name);
    return *bucket(&arithmetic, name);
}

/* ---- operands --------------------------------------------------------- */

typedef struct maker {
    br_arena *arena;
    const br_gcn_isa *isa;
    const br_gcn_inst *in;
    const br_gcn_row *row;
    sim_op *o;
    bool oom, odd; /* odd: encoded as if it were, and nothing that runs */
} maker;

/* 0.5 -0.5 1 -1 2 -2 4 -4 1/2pi */
static uint64_t
inline_float(const br_gcn_kind *kind, unsigned k, unsigned type)
{
    static const uint16_t f16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                   0xc000, 0x4400, 0xc400, 0x3118};
    static const uint32_t f32[] = {0x3f000000, 0xbf000000, 0x3f800000,
                                   0xbf800000, 0x40000000, 0xc0000000,
                                   0x40800000, 0xc0800000, 0x3e22f983};
    static const uint64_t f64[] = {
        0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
        0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
        0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

    if (kind->style == BR_S_B16 || kind->style == BR_S_B2)
        return f32[k] >> 16;
    if (type == T_F16)
        return f16[k];
    return type == T_F64 || type == T_U64 ? f64[k] : f32[k];
}

/* Vector instructions find it in each lane, the high words behind the low ones
 * of all lanes. */
static void
constant(maker *m, sim_opnd *p, uint64_t k)
{
    unsigned lanes = m->isa->wave64 ? 64 : 32;
    uint32_t *wide;

    p->file = SIM_K;
    p->k = k;
    if (m->o->cls != SIM_VALU)
        return;
    p->wide = wide = br_arena_get(m->arena, 2 * lanes * sizeof *wide);
    m->oom = m->oom || !wide;
    for (unsigned i = 0; wide && i < lanes; i++) {
        wide[i] = (uint32_t)k;
        wide[i + lanes] = (uint32_t)(k >> 32);
    }
}

/* The type that a constant is read as. */
static unsigned
type_of(const maker *m, const br_gcn_kind *k, unsigned nth)
{
    unsigned t = T_U32;

    if (m->o->sem && m->o->sem->lane && nth < 3)
        t = m->o->sem->src[nth];
    if (t == T_U16 && m->o->sem->lane == NULL)
        t = T_U32;
    if (k->style == BR_S_F16 || k->style == BR_S_H2 ||
        (t == T_U16 && m->o->sem->flags & SEM_PACKED))
        return T_F16;
    if (k->style == BR_S_64 || k->style == BR_S_F64)
        return k->style == BR_S_64 ? T_U64 : T_F64;
    return t;
}

static void
from_code(maker *m, sim_opnd *p, unsigned code, const br_gcn_kind *k,
          unsigned type)
{
    p->n = (uint8_t)br_gcn_dwords(m->isa, k);
    if (code >= CODE_V) {
        p->file = SIM_V;
        p->reg = (uint16_t)(code - CODE_V);
        if (k->allow & BR_A_HALF) {
            p->sel = p->reg >= 128;
            p->reg &= 127;
        }
    } else if (code == CODE_LIT) {
        uint64_t lit = br_gcn_get(m->in, BR_GF_lit);

        if (type == T_F64)
            lit <<= 32;
        else if (strstr(m->row->name, "_i64"))
            lit = (uint64_t)(int32_t)lit;
        constant(m, p, lit);
    } else if (code >= CODE_FLOAT && code < CODE_FLOAT + 9) {
        constant(m, p, inline_float(k, code - CODE_FLOAT, type));
    } else if (code >= CODE_INLINE && code <= 208) {
        constant(m, p, code <= 192 ? code - 128ull : 192ull - code);
    } else if (code >= 235 && code <= 238) {
        uint64_t at = code < 237 ? SIM_SHARED_BASE : SIM_PRIVATE_BASE;

        constant(m, p, code & 1 ? at : at + UINT32_MAX);
    } else {
        p->file = SIM_S;
        p->reg = (uint16_t)code;
    }
}

/* The code of a field: plain vector fields and scaled ones as others. */
static unsigned
code_in(const maker *m, br_gcn_field f, const br_gcn_kind *k)
{
    bool dpp = m->in->ext == BR_EXT_DPP8 || m->in->ext == BR_EXT_DPP16;
    uint32_t v;
    unsigned bits;

    if (dpp && f == BR_GF_src0)
        return CODE_V + br_gcn_get(m->in, BR_GF_xsrc);
    v = br_gcn_get(m->in, f);
    bits = br_gcn_width(m->in, f);
    if (f == BR_GF_vdsty) /* the other parity than the first half's */
        v = v << 1 | (~br_gcn_get(m->in, BR_GF_vdstx) & 1);
    if ((k->allow & ~(BR_A_LOW | BR_A_HALF)) == BR_A_V)
        return bits == 9 ? v : v + CODE_V;
    return bits == 6 ? v * 2 : bits == 5 ? v * 4 : v;
}

static bool
is_result(const maker *m, br_gcn_field f)
{
    if (f == BR_GF_vdst || f == BR_GF_vdstx || f == BR_GF_vdsty)
        return true;
    return f == BR_GF_sdst && m->o->fmt != BR_FMT_VOP3SD;
}

/* A result in a constant or in SCC, null for a matrix: assemblers take them, and no
 * manual says what they do. */
static bool
is_odd(const sim_op *o, const sim_opnd *p)
{
    bool result = p == &o->dst || p == &o->sdst;

    if (p->file != SIM_S) /* v253 and v[124:131] are registers like others */
        return result && p->file == SIM_K;
    return (result && p->reg == SIM_SCC) || (p->reg == SIM_NULL && p->n > 2);
}

static void
operand(maker *m, const br_gcn_opnd *at)
{
    const br_gcn_kind *k = &br_gcn_kinds[at->kind];
    sim_op *o = m->o;
    sim_opnd *p;

    if (k->how == &br_gcn_how_literal) {
        p = &o->src[o->n_src++];
        p->n = 1;
        constant(m, p, br_gcn_get(m->in, BR_GF_lit));
    } else if (k->how == &br_gcn_how_implied || k->how == &br_gcn_how_hidden) {
        if (k->arg != SIM_VCC)
            return;
        p = o->n_src || o->sdst.file || o->dst.file == SIM_NONE ? &o->mask
                                                                : &o->sdst;
        if (o->sem && o->sem->dst == T_CMP)
            p = &o->dst;
        *p = (sim_opnd){
            .file = SIM_S, .reg = SIM_VCC, .n = m->isa->wave64 ? 2 : 1};
    } else if (k->how == &br_gcn_how_reg) {
        if (at->field == BR_GF_sdst && o->fmt == BR_FMT_VOP3SD)
            p = &o->sdst;
        else if (is_result(m, at->field))
            p = &o->dst;
        else if (at->kind == BR_GK_ms)
            p = &o->mask;
        else
            p = &o->src[o->n_src++];
        from_code(m, p, code_in(m, at->field, k), k,
                  type_of(m, k, (unsigned)(p - o->src)));
        m->odd = m->odd || is_odd(o, p);
        if (p != &o->dst && p != &o->sdst && p->file == SIM_S &&
            p->reg == SIM_NULL) /* M0 is no upper half of it */
            constant(m, p, 0);
    }
}

/* ---- modifiers -------------------------------------------------------- */

static uint32_t
bits_of(const maker *m, br_gcn_field f)
{
    return br_gcn_formats[m->in->row->fmt].f[f].end ? br_gcn_get(m->in, f) : 0;
}

static void
modifiers(maker *m)
{
    sim_op *o = m->o;
    uint32_t neg = bits_of(m, BR_GF_neg), sel = bits_of(m, BR_GF_opsel);
    uint32_t abs = bits_of(m, BR_GF_abs), neg_hi = bits_of(m, BR_GF_neg_hi);
    uint32_t hi = bits_of(m, BR_GF_opsel_hi) | bits_of(m, BR_GF_opsel_hi2) << 2;

    if (m->in->ext == BR_EXT_DPP16 && !br_gcn_has(m->in, BR_GF_neg)) {
        neg = br_gcn_get(m->in, BR_GF_xneg0) | br_gcn_get(m->in, BR_GF_xneg1)
                                                   << 1;
        abs = br_gcn_get(m->in, BR_GF_xabs0) | br_gcn_get(m->in, BR_GF_xabs1)
                                                   << 1;
    }
    if (o->fmt == BR_FMT_VOP3P && o->sem->flags & SEM_MIX)
        abs = neg_hi;
    for (unsigned k = 0; k < o->n_src; k++) {
        o->src[k].neg = neg >> k & 1;
        o->src[k].abs = abs >> k & 1;
        o->src[k].neg_hi = neg_hi >> k & 1;
        o->src[k].sel = (uint8_t)(o->src[k].sel | (sel >> k & 1));
        o->src[k].sel_hi = hi >> k & 1;
    }
    o->dst_sel = o->fmt == BR_FMT_VOP3 ? sel >> 3 & 1 : o->dst.sel;
    o->clamp = (uint8_t)bits_of(m, BR_GF_clamp);
    o->omod = (uint8_t)bits_of(m, BR_GF_omod);
}

static void
permutation(maker *m)
{
    const br_gcn_inst *in = m->in;
    sim_op *o = m->o;
    uint8_t *perm;
    unsigned c;

    if (in->ext != BR_EXT_DPP8 && in->ext != BR_EXT_DPP16)
        return;
    perm = br_arena_get(m->arena, SIM_LANES);
    o->dpp = true;
    o->perm = perm;
    m->oom = m->oom || !perm;
    o->row_mask = o->bank_mask = 15;
    c = in->ext == BR_EXT_DPP16 ? br_gcn_get(in, BR_GF_xctrl) : 0;
    if (in->ext == BR_EXT_DPP16) {
        o->row_mask = (uint8_t)br_gcn_get(in, BR_GF_xrow);
        o->bank_mask = (uint8_t)br_gcn_get(in, BR_GF_xbank);
        o->fi = br_gcn_get(in, BR_GF_xfi);
        o->bc = br_gcn_get(in, BR_GF_xbc);
    } else {
        o->dpp8 = true;
        o->fi = br_gcn_get(in, BR_GF_src0) == 234;
    }
    for (unsigned i = 0; perm && i < SIM_LANES; i++) {
        unsigned row = i & ~15u, at = i & 15, n = c & 15, from = 255;

        if (o->dpp8)
            from =
                (i & ~7u) | (br_gcn_get(in, BR_GF_xlanes) >> 3 * (i & 7) & 7);
        else if (c < 0x100)
            from = (i & ~3u) | (c >> 2 * (i & 3) & 3);
        else if (c < 0x110) /* row_shl */
            from = at + n < 16 ? row + at + n : 255;
        else if (c < 0x120)
            from = at >= n ? row + at - n : 255;
        else if (c < 0x130)
            from = row + ((at - n) & 15);
        else if (c == 0x140)
            from = row + (15 - at);
        else if (c == 0x141)
            from = (i & ~7u) + (7 - (i & 7));
        else
            from = row + (c < 0x160 ? n : at ^ n);
        perm[i] = (uint8_t)from;
    }
}

/* ---- memory ----------------------------------------------------------- */

static int32_t
signed_field(const maker *m, br_gcn_field f)
{
    unsigned bits = br_gcn_width(m->in, f);
    uint32_t v = br_gcn_get(m->in, f);

    return (int32_t)(v << (32 - bits)) >> (32 - bits);
}

static sim_opnd
vector(const maker *m, br_gcn_field f, unsigned n)
{
    return (sim_opnd){
        .file = SIM_V, .n = (uint8_t)n, .reg = (uint16_t)br_gcn_get(m->in, f)};
}

static sim_opnd
scalar(const maker *m, br_gcn_field f, unsigned n, unsigned shift)
{
    return (sim_opnd){.file = SIM_S,
                      .n = (uint8_t)n,
                      .reg = (uint16_t)(br_gcn_get(m->in, f) << shift)};
}

/* The registers of a field, by what the row says of it; 0: it has none. */
static unsigned
row_width(const maker *m, br_gcn_field f)
{
    for (const br_gcn_opnd *p = m->row->o; p->kind != BR_GK_END; p++)
        if (p->field == f)
            return br_gcn_kinds[p->kind].width
                       ? br_gcn_dwords(m->isa, &br_gcn_kinds[p->kind])
                       : (unsigned)br_gcn_kinds[p->kind].arg;
    return 0;
}

static void
soffset(maker *m, br_gcn_field f)
{
    static const br_gcn_kind word = {.width = 1};
    unsigned code = br_gcn_get(m->in, f);

    if (code != SIM_NULL)
        from_code(m, &m->o->mask, code, &word, T_U32);
}

static void
address(maker *m)
{
    sim_op *o = m->o;
    bool buffer = o->fmt == BR_FMT_MUBUF || o->fmt == BR_FMT_VBUFFER;
    bool rtn = o->row->flags & BR_RF_RTN;
    br_gcn_field data = buffer ? BR_GF_vdata : BR_GF_vsrc;
    unsigned n;

    if (o->fmt == BR_FMT_SMEM || o->fmt == BR_FMT_SMEM12) {
        o->dst = scalar(m, BR_GF_sdata, row_width(m, BR_GF_sdata), 0);
        o->src[3] = scalar(m, BR_GF_sbase, row_width(m, BR_GF_sbase), 1);
        soffset(m, BR_GF_soffset);
        o->imm = signed_field(m, BR_GF_ioffset);
        return;
    }
    if (o->fmt == BR_FMT_DS) {
        o->dst = vector(m, BR_GF_vdst, row_width(m, BR_GF_vdst));
        o->src[0] = vector(m, BR_GF_vaddr, 1);
        o->src[1] = vector(m, BR_GF_data0, row_width(m, BR_GF_data0));
        o->src[2] = vector(m, BR_GF_data1, row_width(m, BR_GF_data1));
        o->imm = (int32_t)br_gcn_get(m->in, BR_GF_offset);
        o->rtn = row_width(m, BR_GF_vdst) != 0;
        return;
    }
    o->imm = signed_field(m, BR_GF_ioffset);
    if (o->fmt == BR_FMT_FLAT || o->fmt == BR_FMT_MUBUF)
        o->imm = (int32_t)br_gcn_get(m->in, BR_GF_ioffset);
    o->src[1] = vector(m, data, row_width(m, data));
    if (buffer) {
        rtn = o->fmt == BR_FMT_MUBUF ? br_gcn_get(m->in, BR_GF_glc)
                                     : br_gcn_get(m->in, BR_GF_th) & 1;
        o->dst = o->src[1];
        if (o->sem->src[0] == ACT_CMPSWAP || o->sem->src[0] == ACT_FCMPSWAP)
            o->dst.n /= 2;
        o->idxen = br_gcn_get(m->in, BR_GF_idxen);
        o->offen = br_gcn_get(m->in, BR_GF_offen);
        o->src[0] = vector(m, BR_GF_vaddr, (unsigned)o->idxen + o->offen);
        o->src[3] = scalar(m, BR_GF_rsrc, 4, o->fmt == BR_FMT_MUBUF ? 2 : 0);
        soffset(m, BR_GF_soffset);
    } else {
        n = br_gcn_get(m->in, BR_GF_saddr);
        o->dst = vector(m, BR_GF_vdst, row_width(m, BR_GF_vdst));
        o->src[0] = vector(m, BR_GF_vaddr, n == SIM_NULL ? 2 : 1);
        if (n != SIM_NULL)
            o->src[3] = scalar(m, BR_GF_saddr, 2, 0);
        if (o->fmt == BR_FMT_SCRATCH || o->fmt == BR_FMT_VSCRATCH) {
            o->src[0].n = 1;
            o->src[3].n = 1;
            if (!br_gcn_get(m->in, BR_GF_sve))
                o->src[0].file = SIM_NONE;
        }
    }
    o->rtn = rtn || o->sem->src[0] < ACT_STORE;
}

/* ---- all -------------------------------------------------------------- */

static unsigned
class_of(unsigned fmt)
{
    switch (fmt) {
    case BR_FMT_SOP1:
    case BR_FMT_SOP2:
    case BR_FMT_SOPC:
    case BR_FMT_SOPK: return SIM_SALU;
    case BR_FMT_SOPP: return SIM_FLOW;
    case BR_FMT_SMEM:
    case BR_FMT_SMEM12: return SIM_SMEM;
    case BR_FMT_DS: return SIM_LDS;
    case BR_FMT_FLAT:
    case BR_FMT_GLOBAL:
    case BR_FMT_SCRATCH:
    case BR_FMT_MUBUF:
    case BR_FMT_VFLAT:
    case BR_FMT_VGLOBAL:
    case BR_FMT_VSCRATCH:
    case BR_FMT_VBUFFER: return SIM_VMEM;
    default: return SIM_VALU;
    }
}

static uint32_t
scope_of(const maker *m)
{
    return bits_of(m, m->isa->cpu->gen == 12 ? BR_GF_scope : BR_GF_glc);
}

static uint8_t
is_what(const sim_op *o)
{
    static const struct {
        const char *name;
        uint8_t is;
    } rows[] = {{"v_cmpx", IS_CMPX},    {"v_permlane", IS_PERMLANE},
                {"v_wmma", IS_WMMA},    {"v_swmmac", IS_WMMA},
                {"s_nop", IS_NOP},      {"s_cmpk", IS_READER},
                {"s_setreg", IS_READER}};
    uint8_t is = o->sem->lane && o->sem->flags & SEM_TRANS ? IS_TRANS : 0;

    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (strncmp(o->row->name, rows[k].name, strlen(rows[k].name)) == 0)
            is |= rows[k].is;
    return is;
}

/* Loads and stores of words that take the usual way. */
static bool
is_words(const sim_op *o)
{
    unsigned act = o->sem->src[0];

    return (o->fmt == BR_FMT_DS || o->fmt == BR_FMT_GLOBAL ||
            o->fmt == BR_FMT_VGLOBAL) &&
           (act == ACT_LOAD || act == ACT_LOADS || act == ACT_STORE);
}

static bool
one(maker *m)
{
    sim_op *o = m->o;

    o->row = m->row;
    o->fmt = m->row->fmt;
    o->cls = (uint8_t)class_of(o->fmt);
    o->sem = sim_sem_find(m->row);
    if (!o->sem)
        return false;
    o->fn = o->sem->fn == sim_flow ? sim_flow_fn(o) : o->sem->fn;
    o->is = is_what(o);
    if (o->cls == SIM_SMEM || o->cls == SIM_VMEM || o->cls == SIM_LDS) {
        o->fn = o->cls == SIM_SMEM   ? sim_smem
                : o->cls == SIM_VMEM ? sim_vmem
                                     : sim_ds;
        o->scope = (uint8_t)(scope_of(m) & 3);
        o->gathers = !m->isa->wave64 && sim_has_avx512();
        if (sim_moves(o))
            address(m);
        if (o->gathers && is_words(o))
            o->fn = o->cls == SIM_LDS ? sim_lds_words : sim_global_words;
        return true;
    }
    for (const br_gcn_opnd *p = m->row->o; p->kind != BR_GK_END; p++)
        operand(m, p);
    if (m->odd)
        return false;
    if (o->sem->lane && o->sem->flags & SEM_CIN && !o->mask.file)
        o->mask = (sim_opnd){/* v_div_fmas says nothing of it */
                             .file = SIM_S,
                             .reg = SIM_VCC,
                             .n = m->isa->wave64 ? 2 : 1};
    if (strncmp(m->row->name, "v_cmpx_", 7) == 0)
        o->dst = (sim_opnd){
            .file = SIM_S, .reg = SIM_EXEC, .n = m->isa->wave64 ? 2 : 1};
    if (br_gcn_formats[m->in->row->fmt].f[BR_GF_simm16].end)
        o->imm = o->sem->fn == sim_salu && strstr(m->row->name, "cmpk") &&
                         strstr(m->row->name, "_u32")
                     ? (int32_t)br_gcn_get(m->in, BR_GF_simm16)
                     : signed_field(m, BR_GF_simm16);
    if (strncmp(m->row->name, "s_sendmsg_rtn", 13) == 0)
        o->imm = (int32_t)br_gcn_get(m->in, BR_GF_ssrc0);
    if (o->cls == SIM_VALU) {
        modifiers(m);
        permutation(m);
        sim_mode_decode(o);
        o->plain = sim_is_plain(o);
        o->fn = o->plain && !m->isa->wave64 ? o->sem->run : o->fn;
        o->direct = o->plain && o->sem->dst != T_CMP && o->dst.n == 1 &&
                    !(o->sem->flags & SEM_COUT);
    }
    return true;
}

sim_op *
sim_op_new(br_arena *a)
{
    enum { LINE = 64 };
    uint8_t *p = br_arena_zero(a, 1, sizeof(sim_op) + LINE - 1);

    if (p)
        p += (0u - (uintptr_t)p) % LINE;
    return (sim_op *)(void *)p;
}

bool
sim_decode(br_arena *a, const br_gcn_isa *isa, const br_gcn_inst *in, sim_op *o)
{
    maker m = {.arena = a, .isa = isa, .in = in, .row = in->row, .o = o};

    memset(o, 0, sizeof *o);
    o->words = in->words;
    if (!one(&m) || m.oom)
        return false;
    if (in->row_y) {
        o->y = sim_op_new(a);
        m.o = o->y;
        m.row = in->row_y;
        if (!o->y || !one(&m) || m.oom)
            return false;
        o->fn = o->direct && o->y->direct ? dual_run : sim_dual;
    }
    if (o->cls == SIM_SALU && o->sem->fn == sim_salu)
        o->fn = sim_salu_fn(o);
    sim_uses_find(o, isa);
    return true;
}

bool
br_sim_knows(const br_gcn_isa *isa, const br_gcn_inst *in)
{
    br_arena a;
    sim_op o;
    bool ok;

    br_arena_init(&a, 0);
    ok = sim_decode(&a, isa, in, &o);
    br_arena_fini(&a);
    return ok;
}
