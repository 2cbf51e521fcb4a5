/* interp_access.c - the only place where the reference VM touches elements.
 *
 * Every range is checked against the operand and, where the buffer has a
 * written map, against that. A store sets the bits of what it writes and, when
 * the buffer lives on a page, clears those of the page's other buffers over
 * the same bytes: storage is separate, so a clobbered element is found when
 * it is read, not silently different.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- messages --------------------------------------------------------- */

br_code
br_vm_fail(br_vm_call *c, br_code code, const char *fmt, ...)
{
    char text[360], step[32] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (c->step >= 0)
        snprintf(step, sizeof step, ", step %d", c->step);
    return br_fail(c->st, code, "task %lld (%s%s): %s", (long long)c->task->id,
                   br_mega_op_name(c->task->op), step, text);
}

const char *
br_vm_operand(br_vm_call *c, uint32_t k)
{
    bool out = k >= 100;
    const br_vmt *t = out ? c->out[k - 100] : c->in[k];
    const char *side = out ? "output" : "input";
    char *at = c->text[c->turn];

    c->turn ^= 1;
    k = out ? k - 100 : k;
    if (t->id < 0)
        snprintf(at, sizeof c->text[0], "%s %u (scratch)", side, k);
    else
        snprintf(at, sizeof c->text[0], "%s %u (buffer #%lld '%.60s')", side, k,
                 (long long)t->id, t->name);
    return at;
}

br_code
br_vm_work(br_vm_call *c, int64_t n)
{
    if (!c->max_work)
        return BR_OK;
    if (n < 0 || (uint64_t)n > c->max_work - *c->work)
        return br_vm_fail(c, BR_E_LIMIT, "the run takes more than %llu steps",
                          (unsigned long long)c->max_work);
    *c->work += (uint64_t)n;
    return BR_OK;
}

int64_t
br_vm_mul(int64_t a, int64_t b)
{
    int64_t r;

    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

/* ---- parameters ------------------------------------------------------- */

static const br_json *
param(br_vm_call *c, br_mega_param p)
{
    return br_json_get(c->params, br_mega_param_name(p));
}

static br_code
missing(br_vm_call *c, br_mega_param p)
{
    return br_vm_fail(c, BR_E_FORMAT, "missing param '%s'",
                      br_mega_param_name(p));
}

static br_code
as_int(br_vm_call *c, br_mega_param p, const br_json *v, int64_t *out)
{
    if (v->kind != BR_J_INT || v->i < INT32_MIN || v->i > INT32_MAX)
        return br_vm_fail(c, BR_E_FORMAT, "param '%s' is not an int32",
                          br_mega_param_name(p));
    *out = v->i;
    return BR_OK;
}

static br_code
as_real(br_vm_call *c, br_mega_param p, const br_json *v, float *out)
{
    if (v->kind == BR_J_INT)
        *out = (float)v->i;
    else if (v->kind == BR_J_FLOAT)
        *out = (float)v->f;
    else if (v->kind == BR_J_BOOL)
        *out = v->b ? 1.0f : 0.0f;
    else
        return br_vm_fail(c, BR_E_FORMAT, "param '%s' is not a real number",
                          br_mega_param_name(p));
    return BR_OK;
}

br_code
br_vm_int(br_vm_call *c, br_mega_param p, int64_t *out)
{
    const br_json *v = param(c, p);

    return v ? as_int(c, p, v, out) : missing(c, p);
}

br_code
br_vm_int_or(br_vm_call *c, br_mega_param p, int64_t def, int64_t *out)
{
    const br_json *v = param(c, p);

    *out = def;
    return v ? as_int(c, p, v, out) : BR_OK;
}

br_code
br_vm_real(br_vm_call *c, br_mega_param p, float *out)
{
    const br_json *v = param(c, p);

    return v ? as_real(c, p, v, out) : missing(c, p);
}

br_code
br_vm_real_or(br_vm_call *c, br_mega_param p, float def, float *out)
{
    const br_json *v = param(c, p);

    *out = def;
    return v ? as_real(c, p, v, out) : BR_OK;
}

/* ---- the written map -------------------------------------------------- */

/* Bits off .. off + n: a word at a time. */
static void
bits_put(br_vm_bits *w, int64_t off, int64_t n, bool set)
{
    int64_t end = off + n;

    while (off < end) {
        int64_t at = off & 63, take = BR_MIN(64 - at, end - off);
        uint64_t mask = take == 64 ? UINT64_MAX : ((1ull << take) - 1) << at;

        if (set)
            atomic_fetch_or_explicit(&w[off >> 6].word, mask,
                                     memory_order_relaxed);
        else
            atomic_fetch_and_explicit(&w[off >> 6].word, ~mask,
                                      memory_order_relaxed);
        off += take;
    }
}

void
br_vm_mark(br_vmt *t, int64_t off, int64_t n)
{
    if (t->written)
        bits_put(t->written, off, n, true);
}

void
br_vm_unmark(br_vmt *t, int64_t off, int64_t n)
{
    if (t->written)
        bits_put(t->written, off, n, false);
}

int64_t
br_vm_unwritten(const br_vmt *t, int64_t off, int64_t n)
{
    int64_t end = off + n;

    if (!t->written)
        return -1;
    while (off < end) {
        int64_t at = off & 63, take = BR_MIN(64 - at, end - off);
        uint64_t mask = take == 64 ? UINT64_MAX : ((1ull << take) - 1) << at;
        uint64_t clear =
            mask & ~atomic_load_explicit(&t->written[off >> 6].word,
                                         memory_order_relaxed);

        if (clear)
            return (off & ~(int64_t)63) + __builtin_ctzll(clear);
        off += take;
    }
    return -1;
}

/* Where element i begins, in bytes; and the first element whose bytes begin
 * at or after a byte (up) or that covers it (down). */
static int64_t
elem_byte(const br_vmt *t, int64_t i)
{
    int64_t r = t->row ? i / t->row : 0, col = t->row ? i % t->row : 0;

    if (t->dtype == BR_MDT_I4)
        return r * t->row_bytes + col / 2;
    return i * br_dt_row_bytes(t->dtype, 1);
}

static int64_t
byte_elem(const br_vmt *t, int64_t byte, bool up)
{
    int64_t w = br_dt_row_bytes(t->dtype, 1), r, col;

    if (t->dtype != BR_MDT_I4)
        return BR_MIN((byte + (up ? w - 1 : 0)) / w, t->numel);
    if (t->row_bytes == 0)
        return 0;
    r = byte / t->row_bytes;
    col = byte % t->row_bytes * 2;
    return BR_MIN(r * t->row + BR_MIN(col, t->row), t->numel);
}

/* The other buffers of the page lose what lies under elements off .. off + n
 * of t. */
static void
clobber(br_vmt *t, int64_t off, int64_t n)
{
    int64_t b0 = elem_byte(t, off);
    int64_t b1 = elem_byte(t, off + n - 1) + br_dt_row_bytes(t->dtype, 1);

    for (br_vmt *o = t->page_next; o != t; o = o->page_next) {
        int64_t from = byte_elem(o, b0, false), to = byte_elem(o, b1, true);

        if (to > from) {
            br_vm_unmark(o, from, to - from);
            atomic_store_explicit(&o->clobbered_by, t->id,
                                  memory_order_relaxed);
        }
    }
}

/* ---- ranges ----------------------------------------------------------- */

static br_code
check_range(br_vm_call *c, uint32_t k, const br_vmt *t, int64_t off, int64_t n)
{
    if (off >= 0 && n >= 0 && n <= t->numel && off <= t->numel - n)
        return BR_OK;
    return br_vm_fail(
        c, BR_E_FORMAT, "%s: %lld elements from %lld on, it has %lld",
        br_vm_operand(c, k), (long long)n, (long long)off, (long long)t->numel);
}

static br_code
check_read(br_vm_call *c, uint32_t k, int64_t off, int64_t n)
{
    const br_vmt *t = c->in[k];
    int64_t bad;

    BR_TRY(check_range(c, k, t, off, n));
    bad = br_vm_unwritten(t, off, n);
    if (bad < 0)
        return BR_OK;
    if (t->clobbered_by >= 0)
        return br_vm_fail(c, BR_E_REJECTED,
                          "uninitialised read: %s: element %lld was "
                          "overwritten by buffer #%lld on the same page",
                          br_vm_operand(c, k), (long long)bad,
                          (long long)t->clobbered_by);
    return br_vm_fail(c, BR_E_REJECTED,
                      "uninitialised read: %s: nobody has written element "
                      "%lld",
                      br_vm_operand(c, k), (long long)bad);
}

static br_code
check_write(br_vm_call *c, int64_t off, int64_t n)
{
    const br_vmt *t = c->out[0];

    if (t->id >= 0 && br_mega_kind_readonly(t->kind))
        return br_vm_fail(c, BR_E_REJECTED, "writes %s, which is %s",
                          br_vm_operand(c, 100), br_mega_kind_name(t->kind));
    return check_range(c, 100, t, off, n);
}

/* Calls of a row at a time, because rows of I4 are padded to a byte. */
static int64_t
in_row(const br_vmt *t, int64_t at, int64_t left, int64_t *col)
{
    *col = at % t->row;
    return BR_MIN(left, t->row - *col);
}

static unsigned char *
row_of(const br_vmt *t, int64_t at)
{
    return t->data + at / t->row * t->row_bytes;
}

float *
br_vm_scratch(br_vm_call *c, int64_t n)
{
    float *p = NULL;
    size_t bytes;

    br_assert(n >= 0 && "sizes come from operands");
    if (!br_mul_overflows((size_t)n, sizeof *p, &bytes))
        p = br_arena_get(c->tmp, BR_MAX(bytes, sizeof *p));
    if (!p)
        br_vm_fail(c, BR_E_OOM, "no memory for %lld floats of scratch",
                   (long long)n);
    return p;
}

const float *
br_vm_f32(br_vm_call *c, uint32_t k, int64_t off, int64_t n, float *buf)
{
    br_vmt *t = c->in[k];
    int64_t col, take;

    if (check_read(c, k, off, n) != BR_OK)
        return NULL;
    if (t->dtype == BR_MDT_F32)
        return (const float *)(const void *)t->data + off;
    if (!buf)
        buf = br_vm_scratch(c, n);
    if (!buf)
        return NULL;
    for (int64_t i = 0; i < n; i += take) {
        take = in_row(t, off + i, n - i, &col);
        br_dt_get_f32(t->dtype, row_of(t, off + i), col, take, buf + i);
    }
    return buf;
}

const float *
br_vm_all(br_vm_call *c, uint32_t k)
{
    return br_vm_f32(c, k, 0, c->in[k]->numel, NULL);
}

br_code
br_vm_f64(br_vm_call *c, uint32_t k, int64_t off, int64_t n, double *out)
{
    const br_vmt *t = c->in[k];

    BR_TRY(check_read(c, k, off, n));
    for (int64_t i = 0; i < n; i++)
        out[i] = br_dt_get(t->dtype, row_of(t, off + i), (off + i) % t->row);
    return BR_OK;
}

const unsigned char *
br_vm_row_bytes(br_vm_call *c, uint32_t k, int64_t row)
{
    const br_vmt *t = c->in[k];

    br_assert((t->dtype == BR_MDT_I4 || t->dtype == BR_MDT_U8) && "packed");
    if (check_read(c, k, br_vm_mul(row, t->row), t->row) != BR_OK)
        return NULL;
    return t->data + row * t->row_bytes;
}

br_code
br_vm_index(br_vm_call *c, uint32_t k, int64_t i, int64_t *out)
{
    double v;

    BR_TRY(br_vm_f64(c, k, i, 1, &v));
    if (!(fabs(v) <= 9007199254740992.0) || v != rint(v))
        return br_vm_fail(c, BR_E_FORMAT, "%s: element %lld is no integer: %g",
                          br_vm_operand(c, k), (long long)i, v);
    *out = (int64_t)v;
    return BR_OK;
}

static br_code
no_fit(br_vm_call *c, int64_t i, double v)
{
    return br_vm_fail(c, BR_E_FORMAT, "%s: element %lld: %g does not fit %s",
                      br_vm_operand(c, 100), (long long)i, v,
                      br_dt_name(c->out[0]->dtype));
}

/* Towards zero where the dtype is an integer one. */
static bool
put(br_vmt *t, int64_t at, double v)
{
    if (!br_dt_is_float(t->dtype) && t->dtype != BR_MDT_BOOL)
        v = trunc(v);
    return br_dt_put(t->dtype, row_of(t, at), at % t->row, v);
}

static void
wrote(br_vmt *t, int64_t off, int64_t n)
{
    if (n == 0)
        return;
    br_vm_mark(t, off, n);
    if (t->page_next)
        clobber(t, off, n);
}

br_code
br_vm_store(br_vm_call *c, int64_t off, int64_t n, const float *v)
{
    br_vmt *t = c->out[0];

    BR_TRY(check_write(c, off, n));
    for (int64_t i = 0; i < n; i++)
        if (!put(t, off + i, (double)v[i]))
            return no_fit(c, off + i, (double)v[i]);
    wrote(t, off, n);
    return BR_OK;
}

br_code
br_vm_store_f64(br_vm_call *c, int64_t off, int64_t n, const double *v)
{
    br_vmt *t = c->out[0];

    BR_TRY(check_write(c, off, n));
    for (int64_t i = 0; i < n; i++)
        if (!put(t, off + i, v[i]))
            return no_fit(c, off + i, v[i]);
    wrote(t, off, n);
    return BR_OK;
}

/* Not for I4, whose rows are padded and whose elements share bytes. */
static br_code
move_bits(br_vm_call *c, uint32_t k, int64_t in_off, int64_t out_off, int64_t n)
{
    br_vmt *in = c->in[k], *out = c->out[0];
    size_t w = (size_t)br_dt_row_bytes(in->dtype, 1);

    BR_TRY(check_read(c, k, in_off, n));
    BR_TRY(check_write(c, out_off, n));
    if (n)
        memmove(out->data + (size_t)out_off * w, in->data + (size_t)in_off * w,
                (size_t)n * w);
    wrote(out, out_off, n);
    return BR_OK;
}

br_code
br_vm_move(br_vm_call *c, uint32_t k, int64_t in_off, int64_t out_off,
           int64_t n)
{
    double *v = NULL;
    size_t bytes;

    BR_TRY(br_vm_work(c, n));
    BR_TRY(check_range(c, k, c->in[k], in_off, n));
    if (c->in[k]->dtype == c->out[0]->dtype && c->in[k]->dtype != BR_MDT_I4)
        return move_bits(c, k, in_off, out_off, n);
    if (!br_mul_overflows((size_t)n, sizeof *v, &bytes))
        v = br_arena_get(c->tmp, BR_MAX(bytes, sizeof *v));
    if (!v)
        return br_vm_fail(c, BR_E_OOM, "no memory for a move of %lld elements",
                          (long long)n);
    BR_TRY(br_vm_f64(c, k, in_off, n, v));
    return br_vm_store_f64(c, out_off, n, v);
}
