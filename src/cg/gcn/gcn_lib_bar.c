/* gcn_lib_bar.c - the library's barriers that no instruction is: those of a part of a
 * block, mbarriers, and copies that mbarriers hear of.
 *
 *   brass_barriers   a word of shared memory for each of 16: threads that came in the
 *                    low half, the turn in the high one. Zero before the kernel
 *                    begins, for no later place is one that all threads pass.
 *
 * One lane counts for its warp and looks at the word until the turn is another, the
 * others wait for that lane. A warp counts the lanes that came, the last warp of a
 * block, when all it has came, a whole warp.
 *
 * Words are looked at by atomics that change nothing, for a load of LDS would be one
 * beside a write, as every check has it.
 *
 * An mbarrier is the interpreter's (kinterp_mem.c): arrivals that are missing in bits
 * 0-15, those expected in 16-31, the phase in 32-43, bytes to come above.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower.h"

/* ---- barriers of a part of a block -------------------------------------- */

/* r0: the barrier's word; r2: lanes that came; r3: threads they count as; p0: the lane
 * that counts. */
#define CAME                                                                   \
    "mov.b32 r0,brass_barriers; and.b32 r1,a,15; shl.b32 r1,r1,2; "            \
    "add.u32 r0,r0,r1; activemask.b32 r2; popc.b32 r3,r2;\n"                   \
    "mov.u32 r10,%ntid.x; mov.u32 r11,%ntid.y; mov.u32 r12,%ntid.z; "          \
    "mov.u32 r13,%tid.z; mov.u32 r14,%tid.y; mad.lo.u32 r13,r13,r11,r14; "     \
    "mov.u32 r14,%tid.x; mad.lo.u32 r13,r13,r10,r14; mul.lo.u32 r10,r10,r11; " \
    "mul.lo.u32 r10,r10,r12; and.b32 r11,r10,31; shr.u32 r13,r13,5; "          \
    "shr.u32 r14,r10,5; setp.eq.u32 p1,r13,r14; "                              \
    "setp.eq.and.u32 p1,r3,r11,p1; selp.b32 r3,32,r3,p1;\n"                    \
    "brev.b32 r4,r2; bfind.shiftamt.u32 r4,r4; mov.u32 r5,%laneid; "           \
    "setp.eq.u32 p0,r4,r5; fence.acq_rel.cta;\n"

/* Whoever is the last takes all off and begins the next turn. */
#define COUNT                                                \
    "atom.shared.add.u32 r7,[r0],r3; and.b32 r8,r7,0xffff; " \
    "add.u32 r8,r8,r3; setp.lt.u32 p2,r8,b; sub.u32 r9,65536,b; "

static const char sync_text[] = //
    CAME "@!p0 bra E;\n" COUNT
         "@p2 bra L; atom.shared.add.u32 r9,[r0],r9; bra E;\n"
         "L: atom.shared.or.b32 r9,[r0],0; xor.b32 r9,r9,r7; "
         "shr.u32 r9,r9,16; setp.eq.u32 p3,r9,0; @p3 bra L;\n"
         "E: bar.warp.sync r2; fence.acq_rel.cta;";

static const char arrive_text[] = //
    CAME "@!p0 bra E;\n" COUNT "@p2 bra E; atom.shared.add.u32 r9,[r0],r9;\n"
         "E: bar.warp.sync r2;";

/* Of all threads where none only arrive: the processor's own. */
static const char whole_text[] =
    "mov.u32 r0,%ntid.x; mov.u32 r1,%ntid.y; mov.u32 r2,%ntid.z; "
    "mul.lo.u32 r0,r0,r1; mul.lo.u32 r0,r0,r2; setp.ge.u32 p4,b,r0; "
    "setp.eq.u32 p5,b,0; or.pred p4,p4,p5; @!p4 bra P; bar.sync 0; bra X;\nP: ";

bool
gm_some_arrive(const br_kfn *f)
{
    for (size_t k = 0; k < f->ins.n; k++)
        if (f->ins.at[k].op == BR_K_BARRIVE)
            return true;
    return false;
}

bool
gm_waits_for_warps(const br_kfn *f, const br_kins *i)
{
    return i->op == BR_K_BARRIVE || i->op == BR_K_MBTEST ||
           i->op == BR_K_MBPARITY || (i->op == BR_K_BAR && !gm_has_code(f, i));
}

bool
gm_counts_barriers(const br_kir *m, uint32_t fn)
{
    for (uint32_t k = 0; k < m->fns.n; k++) {
        const br_kfn *f = &m->fns.at[k];

        for (size_t x = 0; (k == fn || !f->entry) && x < f->ins.n; x++)
            if (f->ins.at[x].op == BR_K_BARRIVE ||
                (f->ins.at[x].op == BR_K_BAR && !gm_has_code(f, &f->ins.at[x])))
                return true;
    }
    return false;
}

void
gm_lib_begin(br_str *o)
{
    const br_kins none = {.op = BR_K_BAR};

    gm_lib_header(NULL, &none, false, o);
    br_str_puts(o, "mov.u32 r1,%tid.x; mov.u32 r2,%tid.y; mov.u32 r3,%tid.z; "
                   "or.b32 r1,r1,r2; or.b32 r1,r1,r3; setp.ne.u32 p0,r1,0; "
                   "@p0 bra E; mov.b32 r0,brass_barriers; mov.b32 r1,0;\n");
    for (unsigned k = 0; k < 16; k++)
        br_str_printf(o, "st.shared.b32 [r0+%u],r1; ", 4 * k);
    br_str_puts(o, "\nE: bar.sync 0;\nret;\n}\n");
}

/* ---- mbarriers ---------------------------------------------------------- */

/* A register's place in shared memory, from a generic address or one that is. */
static void
in_shared(const char *reg, unsigned label, br_str *o)
{
    br_str_printf(o,
                  "shr.u64 q8,%s,32; setp.eq.s64 p6,q8,0; @p6 bra S%u; "
                  "cvta.to.shared.u64 %s,%s;\nS%u: ",
                  reg, label, reg, reg, label);
}

/* Takes q7 off the mbarrier at q9; where then nobody is missing, the next phase
 * begins. q0: what it was. check: looks at it first. */
static void
take_off(const char *check, br_str *o)
{
    br_str_printf(
        o,
        "fence.acq_rel.cta; atom.shared.or.b64 q0,[q9],0;\n"
        "L: %s sub.u64 q1,q0,q7; mov.b64 {r0,r1},q1; "
        "and.b32 r2,r0,0xffff; shr.u32 r3,r1,12; or.b32 r2,r2,r3; "
        "setp.ne.u32 p1,r2,0; @p1 bra N; shr.u32 r4,r0,16; or.b32 r0,r0,r4; "
        "add.u32 r1,r1,1; and.b32 r1,r1,0xfff; mov.b64 q1,{r0,r1};\n"
        "N: atom.shared.cas.b64 q3,[q9],q0,q1; setp.ne.s64 p2,q3,q0; "
        "mov.b64 q0,q3; @p2 bra L; fence.acq_rel.cta;\n",
        check);
}

/* Traps where more would come than are missing, or leave than are expected. Bytes may
 * come before anybody expects them: their number wraps around. */
#define AT_MOST(shift)                                                    \
    "cvt.u32.u64 r5,q0; shr.u32 r5,r5," #shift "; and.b32 r5,r5,0xffff; " \
    "setp.gt.u32 p4,b,r5; @!p4 bra M; trap;\nM: "

static void
change(const br_kins *i, br_str *o)
{
    switch (br_kmod(i->mods, BR_KF_SUB)) {
    case BR_KM_MB_INIT:
        br_str_puts(o, "shl.b32 r0,b,16; or.b32 r0,r0,b; mov.b32 r1,0; "
                       "mov.b64 q0,{r0,r1}; st.shared.b64 [q9],q0;");
        break;
    case BR_KM_MB_INVAL:
        br_str_puts(o, "mov.b64 q0,0; st.shared.b64 [q9],q0;");
        break;
    case BR_KM_MB_EXPECT:
        br_str_puts(o, "cvt.u64.u32 q0,b; shl.b64 q0,q0,44; "
                       "atom.shared.add.u64 q1,[q9],q0;");
        break;
    case BR_KM_MB_DROP:
        br_str_puts(o,
                    "atom.shared.or.b64 q0,[q9],0; " AT_MOST(
                        16) "cvt.u64.u32 q0,b; shl.b64 q0,q0,16; "
                            "neg.s64 q0,q0; atom.shared.add.u64 q1,[q9],q0;");
        break;
    default:
        br_str_puts(o, "cvt.u64.u32 q7,b; shl.b64 q7,q7,44; ");
        take_off("", o);
    }
}

static void
mbarrier(const br_kfn *f, const br_kins *i, br_str *o)
{
    gm_lib_header(f, i, false, o);
    br_str_printf(o, "add.u64 q9,a,%lld; ", (long long)i->imm);
    in_shared("q9", 0, o);
    if (i->op == BR_K_MBAR) {
        change(i, o);
    } else if (i->op == BR_K_MBARRIVE) {
        br_str_puts(o, "cvt.u64.u32 q7,b; ");
        take_off(AT_MOST(0), o);
        br_str_puts(o, i->n_res ? "mov.b64 d,q0;" : "");
    } else {
        br_str_puts(o, "atom.shared.or.b64 q0,[q9],0; fence.acq_rel.cta; "
                       "shr.u64 q0,q0,32; "
                       "cvt.u32.u64 r0,q0; ");
        br_str_puts(o, i->op == BR_K_MBPARITY
                           ? "xor.b32 r0,r0,b; and.b32 d,r0,1;"
                           : "shr.u64 q1,b,32; cvt.u32.u64 r1,q1; "
                             "xor.b32 r0,r0,r1; and.b32 r0,r0,0xfff; "
                             "setp.ne.u32 p1,r0,0; selp.b32 d,1,0,p1;");
    }
}

/* From q5 to q4, how many bytes r10 says: a number folded into what is there. */
static void
fold_one(const br_kins *i, const char *from, const char *to, br_str *o)
{
    const unsigned bytes = br_ktinfo_of[i->type].bytes;
    const bool half = br_ktinfo_of[i->type].cat == 'h';
    const char *reg = bytes == 2 ? "h0" : bytes == 4 ? "r11" : "q6";

    br_str_printf(o, "ld%s.b%u %s,[q5]; red%s", from, 8 * bytes, reg, to);
    gm_mod_text(i, BR_KF_SUB, o);
    br_str_printf(o, "%s.%s [q4],%s;", half ? ".noftz" : "",
                  br_ktinfo_of[i->type].text, reg);
}

/* Each lane its bytes, 16 or a number at a time. */
static void
bulk(const br_kfn *f, const br_kins *i, br_str *o)
{
    const bool in = br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED;
    const char *from = in ? "" : ".shared", /* in: by a generic address */
        *to = in ? ".shared" : ".global";
    const unsigned step =
        i->op == BR_K_CPREDUCE ? br_ktinfo_of[i->type].bytes : 16;

    gm_lib_header(f, i, false, o);
    br_str_puts(o, "mov.b64 q4,a; mov.b64 q5,b; mov.b32 r10,0;\n");
    in_shared(in ? "q4" : "q5", 0, o);
    br_str_puts(o, "setp.ge.u32 p5,r10,c; @p5 bra E;\nC: ");
    if (i->op == BR_K_CPREDUCE)
        fold_one(i, from, to, o);
    else
        br_str_printf(o,
                      "ld%s.v4.b32 {r11,r12,r13,r14},[q5]; "
                      "st%s.v4.b32 [q4],{r11,r12,r13,r14};",
                      from, to);
    br_str_printf(o,
                  " add.u64 q4,q4,%u; add.u64 q5,q5,%u; add.u32 r10,r10,%u; "
                  "setp.lt.u32 p5,r10,c; @p5 bra C;\nE: ",
                  step, step, step);
    if (i->n_arg < 4)
        return;
    br_str_puts(o, "mov.b64 q9,f; ");
    in_shared("q9", 1, o);
    br_str_puts(o, "cvt.u64.u32 q7,c; shl.b64 q7,q7,44; ");
    take_off("", o);
}

bool
gm_lib_barrier(const br_kfn *f, const br_kins *i, br_str *o)
{
    switch (i->op) {
    case BR_K_BAR:
        gm_lib_header(f, i, false, o);
        br_str_puts(o, gm_some_arrive(f) ? "" : whole_text);
        br_str_puts(o, sync_text);
        br_str_puts(o, gm_some_arrive(f) ? "" : "\nX: ");
        return true;
    case BR_K_BARRIVE:
        gm_lib_header(f, i, false, o);
        br_str_puts(o, arrive_text);
        return true;
    case BR_K_MBAR:
    case BR_K_MBARRIVE:
    case BR_K_MBTEST:
    case BR_K_MBPARITY: mbarrier(f, i, o); return true;
    case BR_K_CPBULK:
    case BR_K_CPREDUCE: bulk(f, i, o); return true;
    default: return false;
    }
}
