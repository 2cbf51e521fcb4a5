/* sim_mode.c - rounding and denormals as the mode register has them.
 *
 *   MODE[1:0]  rounding of f32        0 nearest, 1 up, 2 down, 3 to zero
 *   MODE[3:2]  of f16 and f64         the host's own does it, but for f16
 *   MODE[5:4]  denormals of f32       1 of sources kept, 2 of results
 *   MODE[7:6]  of f16 and f64
 *
 * Transcendental f32 operations flush denormals in any mode, as AMD states.
 * Whether a result is a denormal is decided after rounding.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/softfp.h"
#include "drv/sim/sim_int.h"

#include <fenv.h>
#include <string.h>

static bool
has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* The type at the end of a name. */
static unsigned
named(const char *name)
{
    return has(name, "_f16") ? T_F16 : has(name, "_f32") ? T_F32 : T_F64;
}

void
sim_mode_decode(sim_op *o)
{
    const char *name = o->sem->name;
    unsigned d = o->sem->dst;
    bool packed = o->sem->flags & SEM_PACKED && has(name, "f16");

    if (!o->sem->lane || has(name, "class") || has(name, "pack_") ||
        has(name, "dot2"))
        return;
    for (unsigned k = 0; k < 3; k++) {
        unsigned t = packed ? T_F16 : o->sem->src[k];

        o->float_src[k] =
            t == T_F16 || t == T_F32 || t == T_F64 ? (uint8_t)t : 0;
    }
    if (d == T_F16 || d == T_F32 || d == T_F64)
        o->float_dst = (uint8_t)d;
    else if (packed || (d != T_CMP && o->float_src[0] && !has(name, "cvt") &&
                        !has(name, "frexp_exp")))
        o->float_dst = (uint8_t)(packed ? T_F16 : named(name));
    o->flushes = o->sem->flags & SEM_TRANS && d == T_F32;
    o->to_half = strcmp(name, "v_cvt_f16_f32") == 0;
    o->rounds = o->float_dst && !(o->sem->flags & SEM_TRANS) &&
                !has(name, "rndne") && !has(name, "min") && !has(name, "max");
}

static void
flush(unsigned type, const uint32_t *from, uint32_t *to, unsigned w)
{
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint32_t v = from[i], h = type == T_F64 ? from[i + w] : 0;

        if (type == T_F64 && !(h & 0x7ff00000))
            h &= 0x80000000, v = 0;
        else if (type == T_F32 && !(v & 0x7f800000))
            v &= 0x80000000;
        else if (type == T_F16 && !(v & 0x7c00))
            v &= 0xffff8000;
        to[i] = v;
        if (type == T_F64)
            to[i + w] = h;
    }
}

static unsigned
field(const sim_wave *w, unsigned type, unsigned at)
{
    return w->mode >> (at + (type == T_F32 ? 0 : 2)) & 3;
}

static void
to_half(const sim_wave *w, sim_lanes *x)
{
    static const br_sf_round rounds[] = {BR_SF_RN, BR_SF_RP, BR_SF_RM,
                                         BR_SF_RZ};
    br_sf s = {BR_SF_F32, rounds[field(w, T_F16, 0)], false};

    for (unsigned i = 0; i < SIM_LANES; i++)
        x->d[i] = (uint32_t)br_sf_cvt(s, BR_SF_F16, false, x->a[i]);
}

bool
sim_mode_lane(sim_wave *w, const sim_op *o, sim_lanes *x)
{
    static const int rounds[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                 FE_TOWARDZERO};
    uint32_t copy[3][2 * 64];
    const uint32_t **at[] = {&x->a, &x->b, &x->c};
    unsigned r = o->rounds ? field(w, o->float_dst, 0) : 0;

    for (unsigned k = 0; k < 3; k++)
        if (o->float_src[k] &&
            (o->flushes || !(field(w, o->float_src[k], 4) & 1))) {
            flush(o->float_src[k], *at[k], copy[k], x->w);
            *at[k] = copy[k];
        }
    if (r && o->float_dst == T_F16 && !o->to_half)
        return sim_fault(w, BR_E_UNSUPPORTED,
                         "f16 rounded another way than to nearest even");
    if (r && o->to_half) {
        to_half(w, x);
    } else {
        if (r)
            fesetround(rounds[r]);
        o->sem->lane(x);
        if (r)
            fesetround(FE_TONEAREST);
    }
    if (o->float_dst && (o->flushes || !(field(w, o->float_dst, 4) & 2)))
        flush(o->float_dst, x->d, x->d, SIM_LANES);
    return true;
}
