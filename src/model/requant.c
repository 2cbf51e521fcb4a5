/* requant.c - see requant.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/requant.h"

#include "base/thread.h"
#include "model/gguf_write.h"
#include "model/quant.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK_WEIGHTS = 4 << 20, /* f32 at a time: 16 MB */
    MAX_THREADS = 64,
    COPY_BYTES = 4 << 20,
};

/* F16 scales hold what is at most this; more is checked after encoding. */
#define HALF_MAX 65504.0f

/* ---- one share of a chunk ----------------------------------------------- */

typedef struct share {
    const br_gguf_tensor *t;
    int type;             /* to encode to */
    const float *imatrix; /* of the whole tensor, or NULL */
    uint64_t row, rows;   /* of the tensor */
    float *f32;           /* scratch, one row */
    uint8_t *out;
    br_code code;
    br_status st;
    br_thread thread;
} share;

static uint64_t
row_bytes(int type, uint64_t n)
{
    uint64_t bytes = 0;
    bool ok = br_qtype_bytes(type, n, &bytes);

    br_check(ok && "rows fit their format");
    return bytes;
}

static br_code
fail_weight(share *s, uint64_t row, uint64_t i, const char *what, float v)
{
    return br_fail(&s->st, BR_E_FORMAT,
                   "tensor '%.*s': row %llu, column %llu "
                   "is %g, %s",
                   (int)s->t->name.n, s->t->name.p, (unsigned long long)row,
                   (unsigned long long)i, (double)v, what);
}

/* Encoders are defined for finite numbers; what overflows a scale shows when
 * it is read back. */
static br_code
check_row(share *s, uint64_t row, const float *x, float *largest)
{
    float top = 0;

    for (uint64_t i = 0; i < s->t->dim[0]; i++) {
        const float a = fabsf(x[i]);

        if (!isfinite(a))
            return fail_weight(s, row, i, "no number", x[i]);
        top = a > top ? a : top;
    }
    *largest = top;
    return BR_OK;
}

/* Index of the largest of a block. */
static uint32_t
largest_of(const float *x, uint32_t n)
{
    uint32_t at = 0;

    for (uint32_t k = 1; k < n; k++)
        if (fabsf(x[k]) > fabsf(x[at]))
            at = k;
    return at;
}

/* A block with large weights: all that is read back is finite, and the largest
 * is about what it was. Q6_K weighs errors by squares, which overflow from
 * 1.8e19 on, and then encodes zeros. */
static br_code
check_back(share *s, uint64_t row, const uint8_t *p)
{
    const br_qinfo *q = br_qinfo_of(s->type);
    float y[256];

    for (uint64_t i = 0; i < s->t->dim[0]; i += q->elems, p += q->bytes) {
        uint32_t at = largest_of(s->f32 + i, q->elems);
        float x = s->f32[i + at];
        bool fine;

        if (fabsf(x) <= HALF_MAX)
            continue;
        br_dequant(s->type, p, y, q->elems);
        fine = fabsf(y[at] / x - 1) < 0.5f;
        for (uint32_t k = 0; k < q->elems && fine; k++)
            fine = isfinite(y[k]);
        if (!fine)
            return fail_weight(s, row, i + at,
                               "too large for the format: out of range", x);
    }
    return BR_OK;
}

static br_code
encode_rows(share *s)
{
    const br_gguf_tensor *t = s->t;
    uint64_t n = t->dim[0], in = row_bytes(t->type, n);
    uint64_t out = row_bytes(s->type, n);
    float largest = 0;

    for (uint64_t k = 0; k < s->rows; k++) {
        uint64_t row = s->row + k, mat = row / t->dim[1];
        uint8_t *p = s->out + k * out;
        bool known;

        br_dequant(t->type, t->data + row * in, s->f32, (size_t)n);
        BR_TRY(check_row(s, row, s->f32, &largest));
        known = br_quant(s->type, s->f32, p, (size_t)n,
                         s->imatrix ? s->imatrix + mat * n : NULL);
        br_check(known && "mixtures name formats with encoders");
        if (largest > HALF_MAX)
            BR_TRY(check_back(s, row, p));
    }
    return BR_OK;
}

static void
run_share(void *arg)
{
    share *s = arg;

    s->code = encode_rows(s);
}

/* ---- one tensor --------------------------------------------------------- */

typedef struct job {
    const br_gguf *g;
    const br_requant_desc *d;
    br_requant_stats *stats;
    br_gguf_writer *w;
    br_qmix_model model;
    int threads;
    uint64_t done, total; /* source bytes */
    uint8_t *out;         /* encoded chunk */
    float *f32;           /* a row for each thread */
    share shares[MAX_THREADS];
    br_status *st;
} job;

static void
tell(job *j, uint64_t bytes)
{
    j->done += bytes;
    if (j->d->progress)
        j->d->progress(j->d->ctx, j->done, j->total);
}

static br_code
copy_tensor(job *j, const br_gguf_tensor *t)
{
    for (uint64_t at = 0; at < t->bytes;) {
        size_t n = (size_t)BR_MIN(t->bytes - at, (uint64_t)COPY_BYTES);

        BR_TRY(br_gguf_w_data(j->w, t->data + at, n, j->st));
        at += n;
        tell(j, n);
    }
    return BR_OK;
}

/* Runs the shares, the first on this thread; the others too where a thread
 * cannot be had. The first failure in order of rows is the one told. */
static br_code
run_shares(job *j, int n)
{
    bool started[MAX_THREADS] = {false};
    br_code code = BR_OK;

    for (int i = 1; i < n; i++)
        started[i] = br_thread_start(&j->shares[i].thread, "quantize",
                                     run_share, &j->shares[i], NULL) == BR_OK;
    for (int i = 0; i < n; i++)
        if (!started[i])
            run_share(&j->shares[i]);
    for (int i = 0; i < n; i++) {
        const share *s = &j->shares[i];

        if (started[i])
            br_thread_join(&j->shares[i].thread);
        if (s->code != BR_OK && code == BR_OK)
            code = br_fail(j->st, s->code, "%s", s->st.msg);
    }
    return code;
}

static br_code
encode_chunk(job *j, const br_gguf_tensor *t, int type, const float *imatrix,
             const uint64_t *range)
{
    uint64_t rows = range[1] - range[0], n = t->dim[0], given = 0;
    uint64_t out = row_bytes(type, n);
    int shares = (int)BR_MIN((uint64_t)j->threads, rows);

    for (int i = 0; i < shares; i++) {
        uint64_t end = rows * (uint64_t)(i + 1) / (uint64_t)shares;

        j->shares[i] = (share){.t = t,
                               .type = type,
                               .imatrix = imatrix,
                               .row = range[0] + given,
                               .rows = end - given,
                               .f32 = j->f32 + (uint64_t)i * n,
                               .out = j->out + given * out};
        given = end;
    }
    BR_TRY(run_shares(j, shares));
    BR_TRY(br_gguf_w_data(j->w, j->out, (size_t)(rows * out), j->st));
    tell(j, rows * row_bytes(t->type, n));
    return BR_OK;
}

static br_code
encode_tensor(job *j, const br_gguf_tensor *t, int type, const float *imatrix)
{
    uint64_t n = t->dim[0], rows = t->dim[1] * t->dim[2] * t->dim[3];
    uint64_t step = BR_MAX(CHUNK_WEIGHTS / n, (uint64_t)1);
    size_t out_bytes, f32_bytes;
    br_code code = BR_OK;

    step = BR_MIN(step, rows);
    if (__builtin_mul_overflow(step, row_bytes(type, n), &out_bytes) ||
        __builtin_mul_overflow(n, (uint64_t)j->threads * 4, &f32_bytes))
        return br_fail(j->st, BR_E_LIMIT, "tensor '%.*s': rows of %llu",
                       (int)t->name.n, t->name.p, (unsigned long long)n);
    j->out = br_try_alloc(out_bytes);
    j->f32 = br_try_alloc(f32_bytes);
    if (!j->out || !j->f32)
        code = br_fail(j->st, BR_E_OOM, "tensor '%.*s': out of memory",
                       (int)t->name.n, t->name.p);
    for (uint64_t row = 0; row < rows && code == BR_OK; row += step) {
        const uint64_t range[2] = {row, BR_MIN(row + step, rows)};

        code = encode_chunk(j, t, type, imatrix, range);
    }
    br_free(j->out);
    br_free(j->f32);
    return code;
}

static br_code
do_tensor(job *j, const br_gguf_tensor *t)
{
    bool fell;
    int type = br_qmix_type(j->d->mix, &j->model, t, &fell);
    float *imatrix = NULL;
    br_code code;

    j->stats->fell_back += fell;
    if (type == t->type)
        return copy_tensor(j, t);
    if (j->d->imatrix)
        BR_TRY(br_imatrix_get(j->d->imatrix, t, &imatrix, j->st));
    j->stats->encoded++;
    j->stats->weighed += imatrix != NULL;
    j->stats->again += (br_qinfo_of(t->type)->flags & BR_QF_QUANT) != 0;
    code = encode_tensor(j, t, type, imatrix);
    br_free(imatrix);
    return code;
}

/* ---- the file ----------------------------------------------------------- */

static void
set_header(job *j)
{
    static const char *const gone[] = {"split.no", "split.count",
                                       "split.tensors.count"};

    for (size_t i = 0; i < br_gguf_n_kv(j->g); i++)
        br_gguf_w_copy(j->w, br_gguf_kv_at(j->g, i));
    for (size_t i = 0; i < BR_COUNT(gone); i++)
        br_gguf_w_remove(j->w, gone[i]);
    br_gguf_w_u32(j->w, "general.file_type", br_qmix_code(j->d->mix));
    br_gguf_w_u32(j->w, "general.quantization_version", 2);
    for (size_t i = 0; i < br_gguf_n_tensors(j->g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(j->g, i);
        br_gguf_w_info info = {.name = t->name, .n_dims = t->n_dims};
        bool fell;
        uint64_t n = t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];

        info.type = br_qmix_type(j->d->mix, &j->model, t, &fell);
        memcpy(info.dim, t->dim, sizeof info.dim);
        br_gguf_w_tensor(j->w, &info);
        j->total += t->bytes;
        j->stats->weights += n;
        j->stats->bytes_in += t->bytes;
        j->stats->bytes_out += row_bytes(info.type, n);
    }
    j->stats->tensors = br_gguf_n_tensors(j->g);
}

static br_code
run(job *j, const char *path)
{
    set_header(j);
    BR_TRY(br_gguf_w_begin(j->w, path, j->st));
    for (size_t i = 0; i < br_gguf_n_tensors(j->g); i++)
        BR_TRY(do_tensor(j, br_gguf_tensor_at(j->g, i)));
    return br_gguf_w_end(j->w, j->st);
}

br_code
br_requant(const br_gguf *g, const char *path, const br_requant_desc *d,
           br_requant_stats *stats, br_status *st)
{
    job *j;
    br_code code;

    *stats = (br_requant_stats){0};
    if (br_gguf_reads(g, path))
        return br_fail(st, BR_E_USAGE, "%s: is the file that is read", path);
    j = br_try_calloc(1, sizeof *j);
    if (!j)
        return br_fail(st, BR_E_OOM, "out of memory");
    j->g = g;
    j->d = d;
    j->stats = stats;
    j->st = st;
    j->threads = d->threads > 0 ? d->threads : br_cpu_count();
    j->threads = BR_MIN(j->threads, MAX_THREADS);
    br_qmix_model_of(&j->model, g);
    j->w = br_gguf_w_new();
    code = j->w ? run(j, path) : br_fail(st, BR_E_OOM, "out of memory");
    br_gguf_w_free(j->w);
    br_free(j);
    return code;
}
