/* gcn_uses.c - registers and counters of machine instructions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_uses.h"

#include "cg/gcn/gcn_kinds.h"

#include <string.h>

enum { NO_REG = 124, VCC = 106, V0 = 256 };

bool
gcn_is(const br_gcn_inst *in, const char *prefix)
{
    return strncmp(in->row->name, prefix, strlen(prefix)) == 0;
}

bool
gcn_is_valu(const br_gcn_inst *in)
{
    return gcn_is(in, "v_");
}

bool
gcn_is_salu(const br_gcn_inst *in)
{
    unsigned f = in->row->fmt;

    return f == BR_FMT_SOP1 || f == BR_FMT_SOP2 || f == BR_FMT_SOPC ||
           f == BR_FMT_SOPK;
}

bool
gcn_is_trans(const br_gcn_inst *in)
{
    static const char *const names[] = {"v_rcp_", "v_rsq_", "v_sqrt_", "v_exp_",
                                        "v_log_", "v_sin_", "v_cos_"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (gcn_is(in, names[k]))
            return true;
    return false;
}

bool
gcn_is_modified(const br_gcn_inst *in)
{
    static const br_gcn_field fields[] = {BR_GF_neg, BR_GF_abs, BR_GF_clamp,
                                          BR_GF_omod, BR_GF_opsel};

    for (size_t k = 0; k < BR_COUNT(fields); k++)
        if (br_gcn_has(in, fields[k]) && br_gcn_get(in, fields[k]))
            return true;
    return in->ext != BR_EXT_NONE && in->ext != BR_EXT_LIT;
}

static unsigned
dwords(const br_gcn_isa *isa, const br_gcn_inst *in, const br_gcn_kind *k)
{
    if (k->how == &br_gcn_how_gaddr)
        return br_gcn_get(in, BR_GF_saddr) == NO_REG ? 2 : 1;
    if (k->how == &br_gcn_how_saddr)
        return (unsigned)k->arg;
    if (k->how == &br_gcn_how_smoff)
        return 1;
    return br_gcn_dwords(isa, k);
}

static unsigned
code_of(const br_gcn_inst *in, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned bits = br_gcn_width(in, f), v = br_gcn_get(in, f);
    bool dpp = in->ext == BR_EXT_DPP8 || in->ext == BR_EXT_DPP16;
    bool vec = k->how == &br_gcn_how_gaddr || k->how == &br_gcn_how_svaddr ||
               (k->allow & ~(BR_A_LOW | BR_A_HALF)) == BR_A_V;

    if (dpp && f == BR_GF_src0)
        return br_gcn_get(in, BR_GF_xsrc) + V0;
    if (f == BR_GF_vdsty) /* the other parity than the first half's */
        v = v << 1 | (~br_gcn_get(in, BR_GF_vdstx) & 1);
    if (vec)
        return bits == 9 ? v : v + V0;
    return bits == 6 ? v * 2 : bits == 5 ? v * 4 : v;
}

static bool
is_register(unsigned code)
{
    return code < 128 ? code != NO_REG : code >= V0;
}

static bool
is_result(br_gcn_field f)
{
    return f == BR_GF_sdst || f == BR_GF_vdst || f == BR_GF_sdata ||
           f == BR_GF_vdstx || f == BR_GF_vdsty;
}

/* Whether a result is a source, too: an accumulator, other lanes of a word. */
static bool
is_kept(const char *name)
{
    static const char *const names[] = {
        "v_fmac", "v_dual_fmac", "v_dual_dot2acc", "v_dot2acc", "v_writelane"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (strncmp(name, names[k], strlen(names[k])) == 0)
            return true;
    return false;
}

/* Of an instruction, or of half of a dual one. */
static unsigned
row_uses(const br_gcn_isa *isa, const br_gcn_inst *in, const br_gcn_row *row,
         gcn_use *out)
{
    bool sources = false;
    unsigned n = 0;

    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++) {
        const br_gcn_kind *k = &br_gcn_kinds[o->kind];
        bool reg = k->how == &br_gcn_how_reg || k->how == &br_gcn_how_gaddr ||
                   k->how == &br_gcn_how_saddr || k->how == &br_gcn_how_smoff ||
                   k->how == &br_gcn_how_svaddr;
        gcn_use u = {.write = is_result((br_gcn_field)o->field)};

        if (o->field == BR_GF_none && k->arg == VCC) {
            /* before the sources it is written, behind them read */
            u = (gcn_use){VCC, (uint8_t)br_gcn_mask_words(isa), !sources,
                          sources};
        } else if (reg && o->field != BR_GF_none) {
            sources |= !u.write;
            u.code = (uint16_t)code_of(in, (br_gcn_field)o->field, k);
            u.words = (uint8_t)dwords(isa, in, k);
            u.mask = !u.write && !k->width && k->how == &br_gcn_how_reg;
            if (!is_register(u.code))
                continue;
        } else {
            continue;
        }
        br_assert(n < GCN_MAX_USES / 2 && "few operands");
        out[n++] = u;
        if (u.write && u.code >= V0 && is_kept(row->name)) {
            u.write = false;
            out[n++] = u;
        }
    }
    return n;
}

unsigned
gcn_uses(const br_gcn_isa *isa, const br_gcn_inst *in,
         gcn_use out[GCN_MAX_USES])
{
    unsigned n = row_uses(isa, in, in->row, out);

    if (in->row_y)
        n += row_uses(isa, in, in->row_y, out + n);
    if (gcn_is(in, "v_div_fmas"))
        out[n++] = (gcn_use){VCC, (uint8_t)br_gcn_mask_words(isa), false, true};
    return n;
}

gcn_memory
gcn_memory_of(const br_gcn_isa *isa, const br_gcn_inst *in)
{
    bool loads = false;
    gcn_memory m = {0};

    for (const br_gcn_opnd *o = in->row->o; o->kind != BR_GK_END; o++)
        loads |= o->field == BR_GF_vdst;
    switch (in->row->fmt) {
    case BR_FMT_SMEM:
    case BR_FMT_SMEM12:
        m.smem = true;
        m.on[isa->cpu->gen == 11 ? GCN_DS : GCN_KM] = true;
        break;
    case BR_FMT_DS: m.on[GCN_DS] = true; break;
    case BR_FMT_FLAT:
    case BR_FMT_VFLAT:
        m.on[loads ? GCN_LOAD : GCN_STORE] = m.on[GCN_DS] = m.flat = true;
        break;
    case BR_FMT_GLOBAL:
    case BR_FMT_SCRATCH:
    case BR_FMT_VGLOBAL:
    case BR_FMT_VSCRATCH:
        m.on[loads || gcn_is(in, "global_inv") ? GCN_LOAD : GCN_STORE] = true;
        break;
    case BR_FMT_SOP1: /* answers come as scalar loads do */
        m.smem = gcn_is(in, "s_sendmsg_rtn");
        m.on[isa->cpu->gen == 11 ? GCN_DS : GCN_KM] = m.smem;
        break;
    default: break;
    }
    return m;
}

bool
gcn_is_wait(const br_gcn_isa *isa, const br_gcn_inst *in,
            int wait[GCN_COUNTERS])
{
    static const struct {
        const char *name;
        gcn_counter c;
    } rows[] = {{"s_wait_loadcnt", GCN_LOAD},
                {"s_wait_storecnt", GCN_STORE},
                {"s_wait_dscnt", GCN_DS},
                {"s_wait_kmcnt", GCN_KM},
                {"s_waitcnt_vscnt", GCN_STORE}};
    unsigned v;

    (void)isa;
    for (int c = 0; c < GCN_COUNTERS; c++)
        wait[c] = -1;
    if (!gcn_is(in, "s_wait"))
        return false;
    v = br_gcn_get(in, BR_GF_simm16);
    if (strcmp(in->row->name, "s_waitcnt") == 0) {
        if ((v >> 10 & 63) != 63)
            wait[GCN_LOAD] = v >> 10 & 63;
        if ((v >> 4 & 63) != 63)
            wait[GCN_DS] = v >> 4 & 63;
        return true;
    }
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (strcmp(in->row->name, rows[k].name) == 0) {
            wait[rows[k].c] = (int)v;
            return true;
        }
    return false;
}
