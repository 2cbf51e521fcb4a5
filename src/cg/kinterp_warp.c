/* kinterp_warp.c - operations across the lanes of a warp.
 *
 * A mask names who takes part; lanes that are named and do not run are somebody
 * else's error, which check reports. mma's fragments lie over the lanes as the
 * PTX ISA draws them: lane = 4 * group + thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"
#include "cg/softfp.h"

#include <string.h>

static void
check_mask(ki_run *r, const ki_warp *w, const ki_frame *f, const br_kins *i,
           uint32_t exec)
{
    const uint64_t *mask = ki_arg(f, i, i->n_arg - 1u);

    if (!r->l->check)
        return;
    ki_each_lane(lane, exec)
    {
        uint32_t m = (uint32_t)mask[lane] & w->live;

        r->lane = lane;
        if ((m & exec) != m) {
            ki_finding(r, "warp",
                       "the mask %08x names lanes that do not run "
                       "this instruction now (%08x do)",
                       m, exec);
            return;
        }
        if (!(mask[lane] >> lane & 1)) {
            ki_finding(r, "warp", "the mask %08x leaves out the lane itself",
                       (uint32_t)mask[lane]);
            return;
        }
    }
}

static void
shuffle(ki_frame *f, const br_kins *i, uint32_t exec)
{
    const uint64_t *a = ki_arg(f, i, 0), *b = ki_arg(f, i, 1);
    const uint64_t *c = ki_arg(f, i, 2);
    ki_row out = {0}, in_range = {0};
    unsigned mode = br_kmod(i->mods, BR_KF_SUB);

    ki_each_lane(lane, exec)
    {
        unsigned by = b[lane] & 31, clamp = c[lane] & 31;
        unsigned seg = (unsigned)(c[lane] >> 8 & 31);
        unsigned least = lane & seg, most = least | (clamp & ~seg);
        int from = (int)lane;
        bool ok = false;

        switch (mode) {
        case BR_KM_SHFL_UP:
            from = (int)(lane - by);
            ok = from >= (int)most;
            break;
        case BR_KM_SHFL_DOWN:
            from = (int)(lane + by);
            ok = from <= (int)most;
            break;
        case BR_KM_SHFL_BFLY:
            from = (int)(lane ^ by);
            ok = from <= (int)most;
            break;
        default:
            from = (int)(least | (by & ~seg));
            ok = from <= (int)most;
            break;
        }
        if (!ok) /* out of range: its own value */
            from = (int)lane;
        /* PTX leaves open what a lane that does not run gives; an H200: 0. */
        out[lane] = exec >> (from & 31) & 1 ? a[from & 31] : 0;
        in_range[lane] = ok;
    }
    ki_each_lane(lane, exec)
    {
        f->vals[i->res][lane] = out[lane];
        f->vals[i->res + 1][lane] = in_range[lane];
    }
}

static uint64_t
vote(unsigned mode, uint32_t yes, uint32_t mask)
{
    yes &= mask;
    return mode == BR_KM_VOTE_ANY   ? yes != 0
           : mode == BR_KM_VOTE_ALL ? yes == mask
                                    : yes == 0 || yes == mask;
}

static uint64_t
fold(const br_kins *i, const uint64_t *a, uint32_t mask)
{
    br_kins op = {.type = i->type, .n_arg = 2};
    unsigned sub = br_kmod(i->mods, BR_KF_SUB);
    uint64_t v = 0, args[4], r[2];
    bool first = true;

    ki_each_lane(lane, mask)
    {
        uint64_t x = a[lane];

        if (br_kmod(i->mods, BR_KF_XABS))
            x &= 0x7fffffff;
        args[0] = v;
        args[1] = x;
        if (sub == BR_KM_ATOM_MIN || sub == BR_KM_ATOM_MAX) {
            op.op = sub == BR_KM_ATOM_MIN ? BR_K_MIN : BR_K_MAX;
            op.mods = br_kmod_put(BR_KF_NAN, br_kmod(i->mods, BR_KF_NAN));
            br_keval(&op, args, r);
            v = first ? x : r[0];
        } else {
            v = first ? x : br_keval_atom(sub, (br_ktype)i->type, v, x);
        }
        first = false;
    }
    return v;
}

/* Results of the operations that look at all lanes of a mask. */
static void
together(ki_frame *f, const br_kins *i, uint32_t exec)
{
    const uint64_t *a = i->n_arg ? ki_arg(f, i, 0) : NULL;
    const uint64_t *m = i->n_arg ? ki_arg(f, i, i->n_arg - 1u) : NULL;
    ki_row out = {0}, pred = {0};
    uint32_t yes = 0;

    if (i->op == BR_K_VOTE || i->op == BR_K_BALLOT)
        ki_each_lane(lane, exec) yes |= (uint32_t)a[lane] << lane;
    ki_each_lane(lane, exec)
    {
        uint32_t mask = m ? (uint32_t)m[lane] & exec : exec, same = 0;

        if (i->op == BR_K_MATCHANY || i->op == BR_K_MATCHALL)
            ki_each_lane(k, mask) same |= (uint32_t)(a[k] == a[lane]) << k;
        switch (i->op) {
        case BR_K_VOTE:
            out[lane] = vote(br_kmod(i->mods, BR_KF_SUB), yes, mask);
            break;
        case BR_K_BALLOT: out[lane] = yes & mask; break;
        case BR_K_MATCHANY: out[lane] = same; break;
        case BR_K_MATCHALL:
            pred[lane] = same == mask;
            out[lane] = same == mask ? mask : 0;
            break;
        case BR_K_REDUX: out[lane] = fold(i, a, mask); break;
        case BR_K_ACTIVE: out[lane] = exec; break;
        default: /* elect */
            out[lane] = mask ? (unsigned)__builtin_ctz(mask) : 0;
            pred[lane] = mask && out[lane] == lane;
            break;
        }
    }
    ki_each_lane(lane, exec)
    {
        f->vals[i->res][lane] = out[lane];
        if (i->n_res > 1)
            f->vals[i->res + 1][lane] = pred[lane];
    }
}

/* ---- matrices ----------------------------------------------------------- */

typedef struct shape {
    unsigned m, n, k, bits, words_a, words_b; /* bits of an element of A, B */
    unsigned type_a, type_b, type_d;
} shape;

static shape
shape_of(const br_kins *i)
{
    shape s = {(unsigned)(i->imm >> 16 & 0xff),
               (unsigned)(i->imm >> 8 & 0xff),
               (unsigned)(i->imm & 0xff),
               0,
               0,
               0,
               i->type2,
               (unsigned)(i->imm >> 24 & 0xff),
               i->type};

    s.bits = s.type_a == BR_KT_TF32 ? 32 : br_ktinfo_of[s.type_a].bytes * 8u;
    s.words_a = s.m * s.k * s.bits / 1024;
    s.words_b = s.n * s.k * s.bits / 1024;
    return s;
}

/* Row and column that element e of a lane's fragment has; per: elements in a
 * word. A: rows split in halves of 8, columns in halves of 4 words. */
static void
place_a(unsigned per, unsigned lane, unsigned e, bool tall, unsigned *row,
        unsigned *col)
{
    unsigned word = e / per, half = tall ? word & 1 : 0;
    unsigned part = tall ? word >> 1 : word;

    *row = (lane >> 2) + 8 * half;
    *col = (lane & 3) * per + e % per + part * 4 * per;
}

/* The value of an element as exact bits of f64, or as an integer. */
static int64_t
element(unsigned type, uint64_t word, unsigned bits, unsigned at)
{
    uint64_t v = bits == 32 ? word : word >> (at * bits) & ((1ull << bits) - 1);
    br_kins cvt = {.op = BR_K_CVT, .n_arg = 1};
    uint64_t r[2];

    if (type == BR_KT_S8)
        return (int8_t)v;
    if (type == BR_KT_U8)
        return (int64_t)v;
    if (type == BR_KT_TF32)
        v &= ~0x1fffull;
    cvt.type = BR_KT_F64;
    cvt.type2 = (uint8_t)(type == BR_KT_TF32 ? BR_KT_F32 : type);
    br_keval(&cvt, &v, r);
    return (int64_t)r[0];
}

static double
as_f64(int64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* The sum in f64, k ascending, C last; rounded once to the type of D. */
static uint64_t
dot(const shape *s, const int64_t *a, const int64_t *b, uint64_t c, bool sat)
{
    br_sf wide = {BR_SF_F32, BR_SF_RN, false};
    double sum = 0;
    int64_t whole = 0, bits;

    if (s->type_d == BR_KT_S32) {
        for (unsigned k = 0; k < s->k; k++)
            whole += a[k] * b[k];
        whole += (int32_t)c;
        if (sat)
            whole = whole > INT32_MAX   ? INT32_MAX
                    : whole < INT32_MIN ? INT32_MIN
                                        : whole;
        return (uint32_t)whole;
    }
    for (unsigned k = 0; k < s->k; k++)
        sum += as_f64(a[k]) * as_f64(b[k]);
    wide.fmt = s->type_d == BR_KT_F32 ? BR_SF_F32 : BR_SF_F16;
    sum += as_f64((int64_t)br_sf_cvt(wide, BR_SF_F64, false, c));
    memcpy(&bits, &sum, sizeof bits);
    return br_sf_cvt((br_sf){BR_SF_F64, BR_SF_RN, false}, wide.fmt, false,
                     (uint64_t)bits);
}

static br_code
mma(ki_run *r, ki_frame *f, const br_kins *i, uint32_t exec)
{
    shape s = shape_of(i);
    unsigned per = 32 / s.bits, row, col;
    int64_t a[16][32] = {{0}}, b[8][32] = {{0}};
    bool half = s.type_d != BR_KT_F32 && s.type_d != BR_KT_S32;
    unsigned n_d = s.m * s.n / 32;

    if (s.m > 16 || s.n > 8 || s.k > 32 ||
        s.words_a + s.words_b + n_d / (half ? 2 : 1) != i->n_arg ||
        n_d / (half ? 2 : 1) != i->n_res)
        return ki_fault(r, "the fragments do not fit the shape");
    if (exec != 0xffffffff)
        return ki_fault(r, "mma needs all lanes of the warp");
    for (unsigned lane = 0; lane < KI_LANES; lane++) {
        for (unsigned e = 0; e < s.words_a * per; e++) {
            place_a(per, lane, e, s.m == 16, &row, &col);
            a[row][col] =
                element(s.type_a, ki_arg(f, i, e / per)[lane], s.bits, e % per);
        }
        for (unsigned e = 0; e < s.words_b * per; e++) {
            place_a(per, lane, e, false, &row, &col);
            b[row][col] =
                element(s.type_b, ki_arg(f, i, s.words_a + e / per)[lane],
                        s.bits, e % per);
        }
    }
    for (unsigned lane = 0; lane < KI_LANES; lane++)
        for (unsigned e = 0; e < n_d; e++) {
            unsigned w = half ? e / 2 : e;
            uint64_t c = ki_arg(f, i, s.words_a + s.words_b + w)[lane];
            uint64_t *d = &f->vals[i->res + w][lane];

            row = (lane >> 2) + 8 * (e >> 1);
            col = (lane & 3) * 2 + (e & 1);
            if (half)
                c = c >> (16 * (e & 1)) & 0xffff;
            c = dot(&s, a[row], b[col], c, br_kmod(i->mods, BR_KF_SAT));
            *d = !half ? c : e & 1 ? (*d & 0xffff) | c << 16 : c;
        }
    return BR_OK;
}

/* Lanes 8j .. 8j+7 hold the addresses of the rows of matrix j. */
static br_code
matrix_memory(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);
    bool load = i->op == BR_K_LDMATRIX, trans = br_kmod(i->mods, BR_KF_SUB);
    unsigned n = load ? i->n_res : i->n_arg - 1u;

    if (exec != 0xffffffff)
        return ki_fault(r, "ldmatrix needs all lanes of the warp");
    for (unsigned k = 0; k < n; k++)
        for (unsigned row = 0; row < 8; row++) {
            uint8_t *p;

            r->lane = 8 * k + row;
            p = ki_at(r, w, br_kmod(i->mods, BR_KF_SPACE),
                      ki_arg(f, i, 0)[r->lane] + (uint64_t)i->imm, 16,
                      load ? KI_READ : KI_WRITE);
            if (!p)
                return BR_E_FAULT;
            for (unsigned col = 0; col < 8; col++) {
                unsigned x = trans ? col : row, y = trans ? row : col;
                unsigned lane = 4 * x + y / 2, shift = 16 * (y & 1);
                uint64_t *v = load ? &f->vals[i->res + k][lane]
                                   : &ki_arg(f, i, k + 1)[lane];

                if (load)
                    *v = (*v & ~(0xffffull << shift)) | ki_load(p + 2 * col, 2)
                                                            << shift;
                else
                    ki_store(p + 2 * col, *v >> shift & 0xffff, 2);
            }
        }
    return BR_OK;
}

static br_code
move_matrix(ki_run *r, ki_frame *f, const br_kins *i, uint32_t exec)
{
    uint16_t m[8][8];
    const uint64_t *a = ki_arg(f, i, 0);

    if (exec != 0xffffffff)
        return ki_fault(r, "movmatrix needs all lanes of the warp");
    for (unsigned lane = 0; lane < KI_LANES; lane++)
        for (unsigned e = 0; e < 2; e++)
            m[lane / 4][lane % 4 * 2 + e] = (uint16_t)(a[lane] >> (16 * e));
    for (unsigned lane = 0; lane < KI_LANES; lane++)
        f->vals[i->res][lane] = (uint64_t)m[lane % 4 * 2][lane / 4] |
                                (uint64_t)m[lane % 4 * 2 + 1][lane / 4] << 16;
    return BR_OK;
}

br_code
ki_lanes(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    switch (i->op) {
    case BR_K_MMA: return mma(r, f, i, exec);
    case BR_K_LDMATRIX:
    case BR_K_STMATRIX: return matrix_memory(r, w, i, exec);
    case BR_K_MOVMATRIX: return move_matrix(r, f, i, exec);
    default: break;
    }
    if (i->op != BR_K_ACTIVE)
        check_mask(r, w, f, i, exec);
    if (i->op == BR_K_WARPBAR)
        w->meet++;
    else if (i->op == BR_K_SHFL)
        shuffle(f, i, exec);
    else
        together(f, i, exec);
    return BR_OK;
}
