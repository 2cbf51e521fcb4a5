/* blas_vec_body.h - vectors of type T: what each function does.
 *
 * A vector with a negative step begins at its far end. Sums are of doubles, in
 * eight partial ones: of 16 million equal floats 3e-4 was lost otherwise.
 * SPDX-License-Identifier: Apache-2.0 */
static T *
BODY(first)(const blas_mat *v, int n)
{
    return (T *)v->at + (v->ld < 0 ? (1 - (int64_t)n) * v->ld : 0);
}

static T
BODY(alpha)(const blas_job *j)
{
    return (T)(j->alpha_at ? blas_number(j->alpha_at, j->type) : j->alpha);
}

static T
BODY(beta)(const blas_job *j)
{
    return (T)(j->beta_at ? blas_number(j->beta_at, j->type) : j->beta);
}

static void
BODY(add)(int n, T alpha, const T *x, int64_t sx, T *y, int64_t sy)
{
    if (sx == 1 && sy == 1)
        for (int i = 0; i < n; i++)
            y[i] += alpha * x[i];
    else
        for (int i = 0; i < n; i++)
            y[i * sy] += alpha * x[i * sx];
}

static T
BODY(sum)(int n, const T *x, int64_t sx, const T *y, int64_t sy)
{
    double s[8] = {0};
    int i = 0;

    if (sx == 1 && sy == 1)
        for (; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++)
                s[k] += (double)x[i + k] * (double)y[i + k];
    for (; i < n; i++)
        s[i % 8] += (double)x[i * sx] * (double)y[i * sy];
    return (T)(((s[0] + s[1]) + (s[2] + s[3])) +
               ((s[4] + s[5]) + (s[6] + s[7])));
}

bool
BODY(axpy)(const blas_job *j)
{
    BODY(add)
    (j->n, BODY(alpha)(j), BODY(first)(&j->a, j->n), j->a.ld,
     BODY(first)(&j->b, j->n), j->b.ld);
    return true;
}

bool
BODY(scal)(const blas_job *j)
{
    T *x = BODY(first)(&j->a, j->n), alpha = BODY(alpha)(j);

    for (int i = 0; i < j->n; i++)
        x[i * j->a.ld] *= alpha;
    return true;
}

bool
BODY(copy)(const blas_job *j)
{
    const T *x = BODY(first)(&j->a, j->n);
    T *y = BODY(first)(&j->b, j->n);

    for (int i = 0; i < j->n; i++)
        y[i * j->b.ld] = x[i * j->a.ld];
    return true;
}

bool
BODY(swap)(const blas_job *j)
{
    T *x = BODY(first)(&j->a, j->n), *y = BODY(first)(&j->b, j->n);

    for (int i = 0; i < j->n; i++) {
        T t = x[i * j->a.ld];

        x[i * j->a.ld] = y[i * j->b.ld];
        y[i * j->b.ld] = t;
    }
    return true;
}

/* alpha is the cosine, beta the sine. */
bool
BODY(rot)(const blas_job *j)
{
    T *x = BODY(first)(&j->a, j->n), *y = BODY(first)(&j->b, j->n);
    T c = BODY(alpha)(j), s = BODY(beta)(j);

    for (int i = 0; i < j->n; i++) {
        T t = x[i * j->a.ld], u = y[i * j->b.ld];

        x[i * j->a.ld] = c * t + s * u;
        y[i * j->b.ld] = c * u - s * t;
    }
    return true;
}

bool
BODY(dot)(const blas_job *j)
{
    *(T *)j->out = BODY(sum)(j->n, BODY(first)(&j->a, j->n), j->a.ld,
                             BODY(first)(&j->b, j->n), j->b.ld);
    return true;
}

/* Scaled by the largest, so that no square leaves the range. */
bool
BODY(nrm2)(const blas_job *j)
{
    const T *x = BODY(first)(&j->a, j->n);
    T big = 0;
    double s = 0;

    for (int i = 0; i < j->n; i++) {
        T v = ABS(x[i * j->a.ld]);

        big = v > big || v != v ? v : big;
    }
    for (int i = 0; i < j->n && big > 0 && big - big == 0; i++) {
        T v = x[i * j->a.ld] / big;

        s += (double)v * (double)v;
    }
    *(T *)j->out = s > 0 ? big * (T)sqrt(s) : big;
    return true;
}

bool
BODY(asum)(const blas_job *j)
{
    const T *x = BODY(first)(&j->a, j->n);
    double s = 0;

    for (int i = 0; i < j->n; i++)
        s += (double)ABS(x[i * j->a.ld]);
    *(T *)j->out = (T)s;
    return true;
}

/* Counted from 1; the first of equals. */
static int
BODY(extreme)(const blas_job *j, bool most)
{
    const T *x = BODY(first)(&j->a, j->n);
    int at = 0;

    for (int i = 1; i < j->n; i++) {
        T v = ABS(x[i * j->a.ld]), w = ABS(x[at * j->a.ld]);

        if (most ? v > w : v < w)
            at = i;
    }
    return j->n > 0 ? at + 1 : 0;
}

bool
BODY(amax)(const blas_job *j)
{
    *(int *)j->out = BODY(extreme)(j, true);
    return true;
}

bool
BODY(amin)(const blas_job *j)
{
    *(int *)j->out = BODY(extreme)(j, false);
    return true;
}

bool
BODY(gemv)(const blas_job *j)
{
    int rows = j->a.t ? j->n : j->m, cols = j->a.t ? j->m : j->n;
    const T *a = j->a.at, *x = BODY(first)(&j->b, cols);
    T *y = BODY(first)(&j->c, rows);
    T alpha = BODY(alpha)(j), beta = BODY(beta)(j);

    for (int i = 0; i < rows; i++)
        y[i * j->c.ld] = beta == 0 ? 0 : beta * y[i * j->c.ld];
    if (alpha == 0)
        return true;
    for (int i = 0; i < j->n; i++) { /* columns as they lie */
        const T *col = a + i * j->a.ld;

        if (j->a.t)
            y[i * j->c.ld] += alpha * BODY(sum)(j->m, col, 1, x, j->b.ld);
        else
            BODY(add)(j->m, alpha * x[i * j->b.ld], col, 1, y, j->c.ld);
    }
    return true;
}

bool
BODY(ger)(const blas_job *j)
{
    const T *x = BODY(first)(&j->a, j->m), *y = BODY(first)(&j->b, j->n);
    T alpha = BODY(alpha)(j);

    for (int i = 0; i < j->n; i++)
        BODY(add)
    (j->m, alpha * y[i * j->b.ld], x, j->a.ld, (T *)j->c.at + i * j->c.ld, 1);
    return true;
}

bool
BODY(geam)(const blas_job *j)
{
    const T *a = j->a.at, *b = j->b.at;
    T *c = j->c.at, alpha = BODY(alpha)(j), beta = BODY(beta)(j);

    for (int y = 0; y < j->n; y++)
        for (int x = 0; x < j->m; x++) {
            T v = 0;

            if (alpha != 0)
                v = alpha * a[j->a.t ? y + x * j->a.ld : x + y * j->a.ld];
            if (beta != 0)
                v += beta * b[j->b.t ? y + x * j->b.ld : x + y * j->b.ld];
            c[x + y * j->c.ld] = v;
        }
    return true;
}
