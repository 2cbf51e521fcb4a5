/* test_interp_diff.c - the VM against a second formulation on random shapes.
 *
 * Everything here is in double and by the defining formula, element by
 * element: no lanes, no scratch, no shared code but the dtype conversions,
 * which have a proof of their own. The tolerance is what f32 arithmetic costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mega/dtype.h"

T_ONE_THREAD();

enum { ROUNDS = 150 };
static uint64_t seed;

static int
pick(int lo, int hi)
{
    return lo + (int)(t_rand(&seed) % (uint64_t)(hi - lo + 1));
}

/* A float dtype; F32 half of the time. */
static int
some_float(void)
{
    static const int dt[] = {BR_MDT_F32, BR_MDT_F32, BR_MDT_F16, BR_MDT_BF16};

    return dt[pick(0, 3)];
}

static double
real(double scale)
{
    return scale * ((double)t_rand(&seed) / 9.223372036854775807e18 - 1);
}

/* A program of one task being made: its operands as doubles, as the buffers
 * hold them. */
typedef struct trial {
    kit k;
    double *x[8];
    int buf[8], n_in, out;
    br_str ids;
} trial;

/* An input of random values (reals, or integers lo..hi when lo < hi). */
static double *
input(trial *t, int kind, int dtype, int n, const char *shape, int lo, int hi)
{
    double *v = t_keep(malloc((size_t)n * sizeof *v + 1));
    unsigned char raw[8];

    for (int i = 0; i < n; i++) {
        v[i] = lo < hi ? pick(lo, hi) : real(2);
        ck_assert(br_dt_put(dtype, raw, 0, v[i]));
        v[i] = br_dt_get(dtype, raw, 0);
    }
    t->buf[t->n_in] = kit_buf(&t->k, kind, dtype, shape);
    br_str_printf(&t->ids, "%s%d", t->n_in ? ", " : "", t->buf[t->n_in]);
    t->x[t->n_in++] = v;
    return v;
}

static double *
reals(trial *t, int dtype, int n, const char *shape)
{
    return input(t, BR_MBK_IO_INPUT, dtype, n, shape, 0, 0);
}

/* Runs the task and compares with want. The dtype's own rounding is half a
 * unit of its last place; sums of f32 products cost tol. */
static void
finish(trial *t, const char *op, const char *params, int out, int dtype,
       const double *want, double tol)
{
    double unit = dtype == BR_MDT_F16    ? ldexp(1, -11)
                  : dtype == BR_MDT_BF16 ? ldexp(1, -8)
                                         : ldexp(1, -24);

    kit_task(&t->k, op, br_str_z(&t->ids), t_printf("%d", out), params, "");
    kit_load(&t->k);
    for (int i = 0; i < t->n_in; i++)
        kit_bind(&t->k, t->buf[i], t->x[i], kit_numel(&t->k, t->buf[i]));
    if (kit_run(&t->k) != BR_OK)
        ck_abort_msg("%s %s: %s", op, params, t->k.st.msg);
    for (size_t i = 0; i < kit_numel(&t->k, out); i++) {
        double got = kit_get(&t->k, out, i);
        double room = tol + fabs(want[i]) * (unit * 1.001 + 1e-6);

        if (!(got == want[i] || fabs(got - want[i]) <= room))
            ck_abort_msg("%s %s: element %zu: %.9g, want %.9g", op, params, i,
                         got, want[i]);
    }
    br_str_fini(&t->ids);
    kit_end(&t->k);
}

static double *
zeros(int n)
{
    return t_keep(calloc((size_t)n + 1, sizeof(double)));
}

static const char *
dims2(int a, int b)
{
    return t_printf("%d, %d", a, b);
}

/* ---- products --------------------------------------------------------- */

/* A weight as the op sees it: floats, or (q * scale) from either packing. */
static double *
weight(trial *t, int n, int k, br_str *params)
{
    int form = pick(0, 2), group = pick(1, k), groups = (k + group - 1) / group;
    double *w = zeros(n * k), *q, *s;

    if (form == 0)
        return reals(t, some_float(), n * k, dims2(n, k));
    q = input(t, BR_MBK_WEIGHT, form == 1 ? BR_MDT_I8 : BR_MDT_I4, n * k,
              dims2(n, k), form == 1 ? -128 : -8, form == 1 ? 127 : 7);
    s = reals(t, pick(0, 1) ? BR_MDT_F16 : BR_MDT_F32, n * groups,
              dims2(n, groups));
    br_str_printf(params, ", \"qdtype\": %d, \"group\": %d",
                  form == 1 ? BR_MDT_I8 : BR_MDT_I4, group);
    for (int i = 0; i < n * k; i++)
        w[i] = q[i] * s[i / k * groups + i % k / group];
    return w;
}

TEST(diff_products)
{
    seed = 11;
    for (int round = 0; round < ROUNDS; round++) {
        int m = pick(1, 4), k = pick(1, 70), n = pick(1, 20);
        int cols = pick(1, n), n0 = pick(0, n - cols), dt = some_float();
        int rows = m, m0 = 0, out;
        bool gemm = pick(0, 1), bias;
        double *x, *w, *b = NULL, *want = zeros(m * n), sum;
        br_str params = {0};
        trial t = {.n_in = 0};

        br_str_printf(&params, "\"K\": %d, \"N_tile\": %d, \"n_off\": %d", k,
                      cols, n0);
        if (gemm && pick(0, 1)) {
            rows = pick(1, m);
            m0 = pick(0, m - rows);
            br_str_printf(&params, ", \"m_off\": %d", m0);
        }
        if (gemm)
            br_str_printf(&params, ", \"M_tile\": %d", rows);
        x = reals(&t, some_float(), m * k, dims2(m, k));
        w = weight(&t, n, k, &params);
        bias = t.n_in == 2 && pick(0, 1);
        if (bias)
            b = reals(&t, BR_MDT_F32, n, t_printf("%d", n));
        out = kit_buf(&t.k, BR_MBK_KV_CACHE, dt, dims2(m, n));
        for (int i = m0; i < m0 + rows; i++)
            for (int j = n0; j < n0 + cols; j++) {
                sum = 0;
                for (int l = 0; l < k; l++)
                    sum += x[i * k + l] * w[j * k + l];
                want[i * n + j] = sum + (b ? b[j] : 0);
            }
        finish(&t, gemm ? "GEMM_TILE" : "GEMV_TILE", br_str_z(&params), out, dt,
               want, 5e-7 * k * 127);
        br_str_fini(&params);
    }
}

TEST(diff_dequant)
{
    seed = 12;
    for (int round = 0; round < ROUNDS; round++) {
        int r = pick(1, 4), group = pick(1, 6), g = pick(1, 5), k = group * g;
        bool four = pick(0, 1), zero = pick(0, 1);
        double *want = zeros(r * k), *q, *s, *z = NULL;
        trial t = {.n_in = 0};
        int out, dt = some_float();

        q = input(&t, BR_MBK_CONST, four ? BR_MDT_I4 : BR_MDT_I8, r * k,
                  dims2(r, k), four ? -8 : -128, four ? 7 : 127);
        s = reals(&t, BR_MDT_F16, r * g, dims2(r, g));
        if (zero)
            z = input(&t, BR_MBK_CONST, BR_MDT_F32, r * g, dims2(r, g), -9, 9);
        out = kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt, dims2(r, k));
        for (int i = 0; i < r * k; i++)
            want[i] = (q[i] - (z ? z[i / group] : 0)) * s[i / group];
        finish(&t, "DEQUANT",
               t_printf("\"qdtype\": %d, \"group\": %d", four ? 7 : 6, group),
               out, dt, want, 0);
    }
}

/* ---- rows ------------------------------------------------------------- */

TEST(diff_norms)
{
    seed = 13;
    for (int round = 0; round < ROUNDS; round++) {
        int r = pick(1, 4), h = pick(2, 60), dt = some_float(), out;
        bool layer = pick(0, 1), bias = layer && pick(0, 1);
        double *x, *w, *b = NULL, *want = zeros(r * h), eps = 1e-3;
        trial t = {.n_in = 0};

        x = reals(&t, some_float(), r * h, dims2(r, h));
        w = reals(&t, some_float(), h, t_printf("%d", h));
        if (bias)
            b = reals(&t, some_float(), h, t_printf("%d", h));
        out = kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt, dims2(r, h));
        for (int i = 0; i < r; i++) {
            double mean = 0, var = 0;

            for (int j = 0; layer && j < h; j++)
                mean += x[i * h + j] / h;
            for (int j = 0; j < h; j++)
                var += pow(x[i * h + j] - mean, 2) / h;
            for (int j = 0; j < h; j++)
                want[i * h + j] =
                    (x[i * h + j] - mean) / sqrt(var + eps) * w[j] +
                    (b ? b[j] : 0);
        }
        finish(&t, layer ? "LAYERNORM" : "RMSNORM",
               t_printf("\"eps\": %g, \"hidden\": %d", eps, h), out, dt, want,
               4e-6);
    }
}

TEST(diff_softmax)
{
    seed = 14;
    for (int round = 0; round < ROUNDS; round++) {
        int a = pick(1, 4), b = pick(1, 5), c = pick(1, 6), dim = pick(-3, 2);
        int n[3] = {a, b, c}, step = 1, d = (dim + 3) % 3, dt = some_float();
        double *x, *want = zeros(a * b * c);
        trial t = {.n_in = 0};
        int out;

        x = reals(&t, some_float(), a * b * c, t_printf("%d, %d, %d", a, b, c));
        out = kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt,
                      t_printf("%d, %d, %d", a, b, c));
        for (int i = d + 1; i < 3; i++)
            step *= n[i];
        for (int i = 0; i < a * b * c; i++) {
            int first = i - i / step % n[d] * step;
            double sum = 0;

            for (int j = 0; j < n[d]; j++)
                sum += exp(x[first + j * step]);
            want[i] = exp(x[i]) / sum;
        }
        finish(&t, "SOFTMAX", t_printf("\"dim\": %d", dim), out, dt, want,
               1e-6);
    }
}

/* ---- element-wise ----------------------------------------------------- */

TEST(diff_elementwise)
{
    static const char *const ops[] = {"ADD", "MUL", "SILU_MUL", "GELU"};

    seed = 15;
    for (int round = 0; round < ROUNDS; round++) {
        int a = pick(1, 4), b = pick(1, 12), op = pick(0, 3), dt = some_float();
        int form = pick(0, 3); /* how input 1 spreads */
        int n1 = form == 0 ? a * b : form == 1 ? b : form == 2 ? a : 1;
        const char *shape1 = form == 0   ? dims2(a, b)
                             : form == 1 ? t_printf("%d", b)
                             : form == 2 ? dims2(a, 1)
                                         : "1, 1";
        double *x, *y = NULL, *want = zeros(a * b), u, v;
        trial t = {.n_in = 0};
        int out;

        x = reals(&t, some_float(), a * b, dims2(a, b));
        if (op < 3)
            y = reals(&t, some_float(), n1, shape1);
        out = kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt, dims2(a, b));
        for (int i = 0; i < a * b; i++) {
            u = x[i];
            v = !y          ? 0
                : form == 0 ? y[i]
                : form == 1 ? y[i % b]
                : form == 2 ? y[i / b]
                            : y[0];
            want[i] = op == 0   ? u + v
                      : op == 1 ? u * v
                      : op == 2 ? u * v / (1 + exp(-u))
                                : u * erfc(-u / sqrt(2)) / 2;
        }
        finish(&t, ops[op], "", out, dt, want, 1e-6);
    }
}

/* ---- positions and attention ------------------------------------------ */

TEST(diff_rope)
{
    seed = 16;
    for (int round = 0; round < ROUNDS; round++) {
        int s = pick(1, 3), h = pick(1, 4), half = pick(1, 8), hd = 2 * half;
        double *x, *pos, *want = zeros(s * h * hd), theta = 10000;
        bool flat = s == 1 && pick(0, 1);
        const char *shape =
            flat ? dims2(h, hd) : t_printf("%d, %d, %d", s, h, hd);
        int out, dt = some_float();
        trial t = {.n_in = 0};

        x = reals(&t, some_float(), s * h * hd, shape);
        pos =
            input(&t, BR_MBK_IO_INPUT, BR_MDT_I32, s, t_printf("%d", s), 0, 30);
        out = kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt, shape);
        for (int i = 0; i < s * h * hd; i++) {
            int d = i % hd, p = i / (h * hd);
            double angle = pos[p] * pow(theta, -(double)(d % half) / half);

            want[i] = x[i] * cos(angle) + (d < half ? -x[i + half] * sin(angle)
                                                    : x[i - half] * sin(angle));
        }
        finish(&t, "ROPE", t_printf("\"head_dim\": %d, \"theta\": 10000", hd),
               out, dt, want, 1e-5);
    }
}

typedef struct heads {
    int batch, heads, kv, hd, seq, start, len;
    double scale;
    const double *q, *k, *v;
} heads;

/* Element d of head h of sequence b: the definition, softmax written out. */
static double
attend(const heads *a, int b, int h, int d)
{
    double sum = 0, out = 0;
    int kvh = h / (a->heads / a->kv);

    for (int j = a->start; j < a->start + a->len; j++) {
        const double *k = a->k + ((b * a->seq + j) * a->kv + kvh) * a->hd;
        const double *v = a->v + ((b * a->seq + j) * a->kv + kvh) * a->hd;
        double s = 0;

        for (int i = 0; i < a->hd; i++)
            s += a->q[(b * a->heads + h) * a->hd + i] * k[i];
        sum += exp(s * a->scale);
        out += exp(s * a->scale) * v[d];
    }
    return out / sum;
}

static heads
random_heads(void)
{
    heads a = {.batch = pick(1, 3), .kv = pick(1, 3), .hd = pick(1, 10)};

    a.heads = a.kv * pick(1, 3);
    a.seq = pick(1, 20);
    a.start = pick(0, a.seq - 1);
    a.len = pick(1, a.seq - a.start);
    a.scale = 0.5;
    return a;
}

static const char *
att_params(const heads *a, int start, int len)
{
    return t_printf("\"head_dim\": %d, \"kv_start\": %d, \"kv_len\": %d, "
                    "\"scale\": %g, \"n_heads\": %d, \"n_kv_heads\": %d",
                    a->hd, start, len, a->scale, a->heads, a->kv);
}

TEST(diff_attention)
{
    seed = 17;
    for (int round = 0; round < ROUNDS; round++) {
        heads a = random_heads();
        bool one = a.batch == 1 && pick(0, 1);
        const char *b = one ? "" : t_printf("%d, ", a.batch);
        const char *cache = t_printf("%s%d, %d, %d", b, a.seq, a.kv, a.hd);
        int n = a.batch * a.seq * a.kv * a.hd, dt = some_float(), out;
        double *want = zeros(a.batch * a.heads * a.hd);
        trial t = {.n_in = 0};

        a.q = reals(&t, some_float(), a.batch * a.heads * a.hd,
                    t_printf("%s%d, %d", b, a.heads, a.hd));
        a.k = input(&t, BR_MBK_KV_CACHE, some_float(), n, cache, 0, 0);
        a.v = input(&t, BR_MBK_KV_CACHE, some_float(), n, cache, 0, 0);
        out =
            kit_buf(&t.k, BR_MBK_IO_OUTPUT, dt, dims2(a.batch, a.heads * a.hd));
        for (int i = 0; i < a.batch * a.heads * a.hd; i++)
            want[i] =
                attend(&a, i / a.hd / a.heads, i / a.hd % a.heads, i % a.hd);
        finish(&t, "ATTENTION_TILE", att_params(&a, a.start, a.len), out, dt,
               want, 1e-5);
    }
}

/* Shards of a window, some empty, combined: the attention over all of it. */
TEST(diff_split_attention)
{
    seed = 18;
    for (int round = 0; round < ROUNDS; round++) {
        heads a = random_heads();
        kit k = {0};
        int parts = pick(2, 8), n, at, q, kc, vc, out;
        double *v[3];
        br_str in = {0}, waits = {0};

        a.batch = 1;
        n = a.seq * a.kv * a.hd;
        q = kit_buf(&k, BR_MBK_IO_INPUT, BR_MDT_F32, dims2(a.heads, a.hd));
        kc = kit_buf(&k, BR_MBK_KV_CACHE, BR_MDT_F32,
                     t_printf("%d, %d, %d", a.seq, a.kv, a.hd));
        vc = kit_buf(&k, BR_MBK_KV_CACHE, BR_MDT_F32,
                     t_printf("%d, %d, %d", a.seq, a.kv, a.hd));
        at = a.start;
        for (int p = 0; p < parts; p++) {
            int left = a.start + a.len - at;
            int len = p == parts - 1 ? left : pick(0, left);
            int part = kit_buf(&k, BR_MBK_ACTIVATION, BR_MDT_F32,
                               dims2(a.heads, a.hd + 2));

            kit_task(&k, "ATTENTION_TILE", t_printf("%d, %d, %d", q, kc, vc),
                     t_printf("%d", part),
                     t_printf("%s, \"flags\": 2", att_params(&a, at, len)), "");
            br_str_printf(&in, "%s%d", p ? ", " : "", part);
            br_str_printf(&waits, "%s%d>=1", p ? ", " : "", p);
            at += len;
        }
        out =
            kit_buf(&k, BR_MBK_IO_OUTPUT, BR_MDT_F32, dims2(1, a.heads * a.hd));
        kit_task(&k, "ATTENTION_COMBINE", br_str_z(&in), t_printf("%d", out),
                 t_printf("\"head_dim\": %d", a.hd), br_str_z(&waits));
        kit_load(&k);
        for (int i = 0; i < 3; i++) {
            size_t count = kit_numel(&k, i == 0 ? q : i == 1 ? kc : vc);

            v[i] = zeros((int)count);
            for (size_t j = 0; j < count; j++)
                v[i][j] = (double)(float)real(2);
            kit_bind(&k, i == 0 ? q : i == 1 ? kc : vc, v[i], count);
        }
        ck_assert_uint_eq(kit_numel(&k, kc), (size_t)n);
        a.q = v[0];
        a.k = v[1];
        a.v = v[2];
        t_ok(kit_run(&k), &k.st);
        for (int i = 0; i < a.heads * a.hd; i++)
            ck_assert(fabs(kit_get(&k, out, (size_t)i) -
                           attend(&a, 0, i / a.hd, i % a.hd)) <= 1e-5);
        br_str_fini(&in);
        br_str_fini(&waits);
        kit_end(&k);
    }
}
