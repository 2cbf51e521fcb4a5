/* loops.c - the work of five.cu as one writes it in C for one processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>

#define PTR(k) (*(float *const *)args[k])
#define INT(k) (*(const int *)args[k])

void vadd(void *const *args);
void saxpy(void *const *args);
void sgemm(void *const *args);
void softmax(void *const *args);
void nbody(void *const *args);

void
vadd(void *const *args)
{
    const float *restrict a = PTR(0), *restrict b = PTR(1);
    float *restrict c = PTR(2);

    for (int i = 0; i < INT(3); i++)
        c[i] = a[i] + b[i];
}

void
saxpy(void *const *args)
{
    const float *restrict x = PTR(0);
    float *restrict y = PTR(1), a = *(const float *)args[2];

    for (int i = 0; i < INT(3); i++)
        y[i] = a * x[i] + y[i];
}

/* Rows of b stay in the cache while a row of c is made. */
void
sgemm(void *const *args)
{
    const float *restrict a = PTR(0), *restrict b = PTR(1);
    float *restrict c = PTR(2);
    int n = INT(3);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            c[i * n + j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

void
softmax(void *const *args)
{
    int cols = INT(2), rows = 64;

    for (int r = 0; r < rows; r++) {
        const float *restrict x = PTR(0) + (size_t)r * cols;
        float *restrict y = PTR(1) + (size_t)r * cols;
        float m = -1e30f, sum = 0;

        for (int i = 0; i < cols; i++)
            m = x[i] > m ? x[i] : m;
        for (int i = 0; i < cols; i++) {
            y[i] = expf(x[i] - m);
            sum += y[i];
        }
        sum = 1 / sum;
        for (int i = 0; i < cols; i++)
            y[i] *= sum;
    }
}

void
nbody(void *const *args)
{
    const float *restrict p = PTR(0);
    float *restrict acc = PTR(1);
    int n = INT(2);

    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;

        for (int k = 0; k < n; k++) {
            float dx = p[4 * k] - p[4 * i], dy = p[4 * k + 1] - p[4 * i + 1];
            float dz = p[4 * k + 2] - p[4 * i + 2];
            float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float f = p[4 * k + 3] * r * r * r;

            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        acc[4 * i] = ax;
        acc[4 * i + 1] = ay;
        acc[4 * i + 2] = az;
        acc[4 * i + 3] = 0;
    }
}
