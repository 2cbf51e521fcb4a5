/* cpu_mat.c - sizes, packing and the loops around the kernels.
 *
 *   br_mat_mul   for tiles of 32 to 64 rows
 *                    for panels of 16 outputs    the kernel
 *
 * A panel is read from memory once per tile and from a cache for each handful
 * of its rows; weights stream in one line, front to back. The kernel's bits do
 * not depend on who shares its tile, so neither loop can change them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/cpu/mat_tight.h"
#include "model/qint.h"
#include "model/quant_int.h"

#include <unistd.h>

#if defined __x86_64__
#    include <cpuid.h>
#    include <sys/syscall.h>
#elif defined __aarch64__
#    include <asm/hwcap.h>
#    include <sys/auxv.h>
#endif

/* Rows that go through a panel together: as many as 512 KiB hold, the smallest
 * second cache around (br_mat's rows_bytes), but 32 at least. At fewer, weights would come from
 * memory faster than it gives them: a byte of Q8_0 is 32 products then, half a
 * cycle of AVX-512. */
enum { CHUNK_BYTES = 512 << 10, CHUNK_ROWS = 32, PANEL_ROWS = 16 };
enum { NEAR_LEAST = 32 << 10, NEAR_MOST = 1 << 20 };

/* ---- instruction sets ---------------------------------------------------- */

#define KERNELS(isa)  mat_##isa, mat_##isa##_act, mat_##isa##_ops
#define NO_KERNELS    NULL, NULL, NULL
#define NOT_TIGHT     NULL, NULL /* kernels for twelve bits */
/* mul's products, act's activations */
#define MIX(mul, act) mat_##mul, mat_##act##_act, mat_##mul##_ops

#if defined __x86_64__
#    define ON_X86(isa)       KERNELS(isa)
#    define MIX_X86(mul, act) MIX(mul, act)
#    define ON_ARM(isa)       NO_KERNELS
#    define TIGHT             mat_avx512_tighten, mat_avx512_loosen

static bool
has_avx2(void)
{
    unsigned a, b, c = 0, d;

    /* clang 14 does not know f16c by name. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool
has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

static bool
has_bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

/* vdpbf16ps has the work of two fma. Zen 4 and 5 start as many of either; an
 * Emerald Rapids starts four fma for each, so that f32 is twice as fast there
 * (168 and 83 GFLOP/s a core), and has ref's bits. Never timed: the bits would
 * depend on who else was at work. */
static bool
bf16_pays(void)
{
    return __builtin_cpu_is("amd");
}

/* This family without AVX-512 is a Zen 3. */
static bool
is_zen4(void)
{
    return __builtin_cpu_is("amdfam19h") && has_avx512();
}

/* Of 128 calls to the first cache one after the other a Zen 5 brings 97 %, of
 * those to the second a third to a half (docs/decisions/0026). AMD's with
 * AVX-512 are a Zen 4 and what came after. */
static bool
calls_stay(void)
{
    return has_avx512() && __builtin_cpu_is("amd") && !is_zen4();
}

/* How far ahead the lines of one or two rows are called for: a Zen 5 reads up to
 * two thirds more for it, and a Zen 4, whose own prefetchers it disturbs, 10 to
 * 20 % less (docs/decisions/0029). */
static uint32_t
ahead_bytes(void)
{
    return is_zen4() ? 0 : 6 << 10;
}

/* The kernel gives tiles, 8 KiB more of a thread's state, to a process that
 * asks. CPUID 7: bit 24 of edx is tiles, 25 products of bytes. */
static bool
has_amx(void)
{
    enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    unsigned a, b, c, d = 0;

    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d >> 24 & 3) == 3 &&
           syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
}

static bool
has_neon(void)
{
    return false;
}
#else
#    define ON_X86(isa)       NO_KERNELS
#    define MIX_X86(mul, act) NO_KERNELS
#    define TIGHT             NOT_TIGHT

static bool
has_avx2(void)
{
    return false;
}

static bool
has_avx512(void)
{
    return false;
}

static bool
has_bf16(void)
{
    return false;
}

static bool
bf16_pays(void)
{
    return false;
}

static bool
calls_stay(void)
{
    return false;
}

static uint32_t
ahead_bytes(void)
{
    return 0;
}

static bool
has_amx(void)
{
    return false;
}

static bool
has_neon(void)
{
#    if defined __aarch64__
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#    else
    return false;
#    endif
}
#    if defined __aarch64__
#        define ON_ARM(isa) KERNELS(isa)
#    else
#        define ON_ARM(isa) NO_KERNELS
#    endif
#endif

const mat_isa mat_isas[BR_ISA_COUNT] = {
    [BR_ISA_C] = {"c", 1, mat_c, mat_c_act, mat_c_ops, NOT_TIGHT},
    [BR_ISA_AVX2] = {"avx2", 1, ON_X86(avx2), NOT_TIGHT},
    [BR_ISA_AVX512] = {"avx512", MAT_PANELS, ON_X86(avx512), TIGHT},
    [BR_ISA_AMX] = {"amx", 1, MIX_X86(amx, avx512), TIGHT},
    [BR_ISA_NEON] = {"neon", 1, ON_ARM(neon), NOT_TIGHT},
};

const char *
br_isa_name(br_isa isa)
{
    return mat_isas[isa].name;
}

bool
br_isa_here(br_isa isa)
{
    switch (isa) {
    case BR_ISA_C: return true;
    case BR_ISA_AVX2: return has_avx2();
    case BR_ISA_AVX512: return has_avx512();
    case BR_ISA_AMX: return has_amx();
    case BR_ISA_NEON: return has_neon();
    case BR_ISA_COUNT: break;
    }
    return false;
}

br_isa
br_isa_best(void)
{
    br_isa best = BR_ISA_C;

    for (br_isa i = BR_ISA_C; i < BR_ISA_COUNT; i++)
        best = br_isa_here(i) ? i : best;
    return best;
}

/* ---- sizes --------------------------------------------------------------- */

bool
br_isa_pairs(br_isa isa)
{
    return (isa == BR_ISA_AVX512 || isa == BR_ISA_AMX) && has_bf16();
}

bool
br_isa_pairs_pay(br_isa isa)
{
    return br_isa_pairs(isa) && bf16_pays();
}

static bool they_stay;

static void
ask_calls(void)
{
    they_stay = calls_stay();
}

/* Once: a virtual machine leaves CPUID to its host, some 40 us, and attention of
 * each layer and each probe ask. */
bool
br_calls_stay(void)
{
    static br_once once = BR_ONCE;

    br_once_run(&once, ask_calls);
    return they_stay;
}

/* How far ahead the pages of one or two rows are called for; 0: not at all. 24
 * and 32 KB were no better (docs/decisions/0029). */
static uint32_t
page_ahead_bytes(void)
{
    return br_calls_stay() ? 16 << 10 : 0;
}

static br_form
form_of(const br_mat_desc *d)
{
    if (d->type == BR_Q_BF16 && !d->exact &&
        (d->pairs ? br_isa_pairs(d->isa) : br_isa_pairs_pay(d->isa)))
        return BR_FORM_BF16;
    if (!br_qint_has(d->type))
        return BR_FORM_F32;
    return br_qinfo_of(d->type)->elems == 256 ? BR_FORM_Q256 : BR_FORM_Q32;
}

static uint64_t
round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t
panel_bytes(int type, uint64_t n_in)
{
    const mat_format *f = mat_format_of(type);
    const br_qinfo *q = br_qinfo_of(type);
    uint64_t blocks = n_in / q->elems;

    switch (f->class) {
    case MAT_FLAT:
    case MAT_K:
        return round_up(blocks, 4) / 4 * mat_head_bytes(f) +
               blocks * mat_block_bytes(f);
    case MAT_FLOAT: return (n_in + 15) / 16 * 8 * mat_line_bytes(type);
    case MAT_RAW: break;
    }
    return round_up(BR_MAT_PANEL * blocks * q->bytes, 64);
}

/* Bytes of the first cache; where nobody says, as small as it is anywhere. */
static uint32_t
near_bytes(void)
{
    long n = -1;

#ifdef _SC_LEVEL1_DCACHE_SIZE
    n = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
    return n < NEAR_LEAST ? NEAR_LEAST : (uint32_t)BR_MIN(n, NEAR_MOST);
}

void
br_mat_speeds(br_mat *m)
{
    m->near_bytes = near_bytes();
    m->ahead = ahead_bytes();
    m->pages = page_ahead_bytes();
    m->slow_rows = br_calls_stay() ? UINT32_MAX : MAT_SLOW_ROWS;
    m->rows_bytes = CHUNK_BYTES;
}

/* Do its kernels know it, and is it worth it? */
static bool
fits_tight(const br_mat_desc *d)
{
    return d->type == BR_Q_BF16 && !d->loose && d->n_in <= TIGHT_MOST &&
           mat_isas[d->isa].loosen && d->n_in % TIGHT_COLUMNS == 0 &&
           tight_panel_bytes((uint32_t)d->n_in) <
               panel_bytes(d->type, d->n_in) / 8 * 7;
}

br_code
br_mat_plan(br_mat *m, const br_mat_desc *d, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(d->type);

    *m = (br_mat){.type = d->type, .isa = d->isa};
    if (!(q->flags & (BR_QF_FLOAT | BR_QF_QUANT)) || d->type == BR_Q_F64)
        return br_fail(st, BR_E_FORMAT, "matrix: %s is no format of weights",
                       q->name ? q->name : "this number");
    if (d->n_in > BR_MAT_MAX_IN || d->n_out > UINT32_MAX - BR_MAT_PANEL)
        return br_fail(st, BR_E_LIMIT,
                       "matrix: more than %d columns or 2^32 "
                       "rows",
                       BR_MAT_MAX_IN);
    if (d->n_in == 0 || d->n_out == 0 || d->n_in % q->elems != 0)
        return br_fail(st, BR_E_FORMAT,
                       "matrix: %llu columns are no whole "
                       "blocks of %s",
                       (unsigned long long)d->n_in, q->name);
    m->form = form_of(d);
    m->n_in = (uint32_t)d->n_in;
    m->n_out = (uint32_t)d->n_out;
    br_mat_speeds(m);
    br_mat_loosen(m);
    if (fits_tight(d)) {
        m->tight = true;
        m->panel_bytes = tight_panel_bytes(m->n_in);
        m->bytes = m->panel_bytes * br_mat_panels(m) + tight_pool_bytes(m);
    }
    return BR_OK;
}

void
br_mat_loosen(br_mat *m)
{
    m->tight = false;
    m->panel_bytes = panel_bytes(m->type, m->n_in);
    m->bytes = m->panel_bytes * br_mat_panels(m);
}

/* An odd number of lines, so that rows do not meet in one set of a cache. */
size_t
br_act_bytes(br_form form, uint32_t n_in)
{
    size_t n = n_in, bytes = 0;

    switch (form) {
    case BR_FORM_F32: bytes = round_up(n, 16) * 4; break;
    case BR_FORM_Q32: bytes = n + n / 32 * 12; break;
    case BR_FORM_Q256: bytes = n + n / 256 * (4 + 64 + 16 + 32); break;
    case BR_FORM_BF16: bytes = round_up(n, 16) * 2; break;
    case BR_FORM_COUNT: break;
    }
    return (round_up(bytes, 64) / 64 | 1) * 64;
}

void
br_act_row(br_isa isa, br_form form, const float *x, uint32_t n_in,
           uint8_t *row)
{
    mat_isas[isa].act(form, x, n_in, row);
}

/* ---- multiplication ------------------------------------------------------ */

/* Rows r0.. of a tile: where they are, and where their outputs from o on go. */
static void
rows_of(const br_mul *j, uint32_t r0, int n, uint32_t o, mat_tile *t)
{
    size_t stride = br_act_bytes(j->m->form, j->m->n_in);

    t->n_rows = n;
    for (int i = 0; i < n; i++) {
        uint32_t r = j->row ? j->row[r0 + i] : r0 + i;

        t->row[i] = j->act + r * stride;
        t->out[i] =
            j->out + (j->out_row ? j->out_row[r0 + i] : r) * j->out_stride + o;
    }
    for (int i = n; i % 8 != 0; i++)
        t->row[i] = t->row[n - 1];
}

/* A panel of which some outputs are wanted: those of t->out are its first. */
static void
part(const br_mul *j, const mat_tile *t, uint32_t panel)
{
    uint32_t o0 = panel * BR_MAT_PANEL, from = BR_MAX(o0, j->o0) - o0;
    uint32_t to = BR_MIN(o0 + BR_MAT_PANEL, j->o1) - o0;
    float some[MAT_MAX_ROWS][BR_MAT_PANEL];
    mat_tile one = *t;

    for (int i = 0; i < t->n_rows; i++)
        one.out[i] = some[i];
    mat_isas[j->m->isa].tile(&one);
    for (int i = 0; i < t->n_rows; i++)
        memcpy(t->out[i] + from, some[i] + from, (to - from) * sizeof(float));
}

/* Are panels p.. all wanted? */
static bool
whole(const br_mul *j, uint32_t p, uint32_t n)
{
    return p * BR_MAT_PANEL >= j->o0 && (p + n) * BR_MAT_PANEL <= j->o1;
}

/* How many of the panels from p on go together: whole ones only, and where few
 * rows let memory be the bound, one, as one stream. */
static int
together(const br_mul *j, uint32_t p, int n_rows)
{
    mat_class class = mat_format_of(j->m->type)->class;
    int most = mat_isas[j->m->isa].panels;

    if (j->m->tight && n_rows <= TIGHT_ROWS)
        return 1;
    return (class == MAT_FLAT || class == MAT_FLOAT) && n_rows >= PANEL_ROWS &&
                   whole(j, p, (uint32_t)most)
               ? most
               : 1;
}

/* From a row to the one that is multiplied n rows later, or, after the last
 * ones, to the first: by the next tile, likely. */
static ptrdiff_t
rows_soon(const br_mul *j, uint32_t r0, int n)
{
    ptrdiff_t stride = (ptrdiff_t)br_act_bytes(j->m->form, j->m->n_in);

    if (j->row || j->n_rows <= (uint32_t)n)
        return 0;
    return r0 + (uint32_t)n < j->n_rows ? n * stride : -(ptrdiff_t)r0 * stride;
}

/* Rows r0.. times all panels. */
static void
chunk_of_rows(const br_mul *j, uint32_t r0, int n)
{
    uint32_t p = j->o0 / BR_MAT_PANEL;
    mat_tile t; /* all of it would be a kilobyte to clear */

    t.m = j->m;
    rows_of(j, r0, n, p * BR_MAT_PANEL, &t);
    for (; p * BR_MAT_PANEL < j->o1; p += (uint32_t)t.n_panels) {
        t.panel = j->m->data + p * j->m->panel_bytes;
        t.n_panels = together(j, p, n);
        t.soon = (p + (uint32_t)t.n_panels) * BR_MAT_PANEL >= j->o1
                     ? rows_soon(j, r0, n)
                     : 0;
        if (whole(j, p, (uint32_t)t.n_panels))
            mat_isas[j->m->isa].tile(&t);
        else
            part(j, &t, p);
        for (int i = 0; i < n; i++)
            t.out[i] += t.n_panels * BR_MAT_PANEL;
    }
}

static void
all_rows(const br_mul *j)
{
    uint32_t chunk =
        (uint32_t)(j->m->rows_bytes / br_act_bytes(j->m->form, j->m->n_in));

    chunk = BR_MIN(BR_MAX(chunk / 8 * 8, CHUNK_ROWS), MAT_MAX_ROWS);
    for (uint32_t r = 0; r < j->n_rows; r += chunk)
        chunk_of_rows(j, r, (int)BR_MIN(j->n_rows - r, chunk));
}

/* Of many rows twelve bits are taken apart once, not once for each 64 of them:
 * as many panels as there is room for at a time. */
static void
all_rows_loose(const br_mul *j)
{
    br_mat m = *j->m;
    br_mul some = *j;
    uint32_t most;

    br_mat_loosen(&m);
    m.data = j->loose;
    most = (uint32_t)(j->loose_bytes / m.panel_bytes) / MAT_PANELS * MAT_PANELS;
    br_assert(most > 0);
    some.m = &m;
    for (uint32_t p = j->o0 / BR_MAT_PANEL, o = j->o0; o < j->o1; p += most) {
        uint32_t end = BR_MIN((p + most) * BR_MAT_PANEL, j->o1);
        uint32_t n = (end + BR_MAT_PANEL - 1) / BR_MAT_PANEL - p;

        for (uint32_t i = 0; i < n; i++)
            mat_isas[m.isa].loosen(j->m,
                                   j->m->data + (p + i) * j->m->panel_bytes,
                                   j->loose + i * m.panel_bytes);
        some.out = j->out + (size_t)p * BR_MAT_PANEL;
        some.o0 = o - p * BR_MAT_PANEL;
        some.o1 = end - p * BR_MAT_PANEL;
        all_rows(&some);
        o = end;
    }
}

size_t
br_mat_loose_bytes(const br_mat *m)
{
    return m->tight ? MAT_PANELS * panel_bytes(m->type, m->n_in) : 0;
}

void
br_mat_mul(const br_mul *j)
{
    br_assert(j->o0 <= j->o1 && j->o1 <= j->m->n_out);
    if (j->m->tight && j->n_rows > MAT_MAX_ROWS && j->loose)
        all_rows_loose(j);
    else
        all_rows(j);
}
