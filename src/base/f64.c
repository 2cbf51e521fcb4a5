/* f64.c - JSON's numbers: text to int64 and double, double to shortest text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
br_json_to_i64(br_text t, int64_t *out)
{
    bool neg = t.n > 0 && t.p[0] == '-';
    size_t i = neg;
    int64_t v = 0;

    if (i >= t.n || (t.p[i] == '0' && t.n > i + 1))
        return false;
    for (; i < t.n; i++) {
        int d = (unsigned char)t.p[i] - '0';

        if (d < 0 || d > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, d, &v))
            return false;
    }
    if (!neg && __builtin_sub_overflow(0, v, &v))
        return false;
    *out = v;
    return true;
}

bool
br_json_to_f64(br_text t, double *out)
{
    char small[128], *buf = small, *end;

    if (t.n >= sizeof small && !(buf = br_try_alloc(t.n + 1)))
        return false;
    memcpy(buf, t.p, t.n);
    buf[t.n] = 0;
    *out = strtod(buf, &end);
    if (br_text_is(t, "NaN"))
        *out = (double)NAN;
    if (buf != small)
        br_free(buf);
    return t.n > 0 && end == buf + t.n;
}

size_t
br_f64_repr(char out[32], double v)
{
    char d[32], *e;
    int prec, exp10, n, k;
    size_t at = 0;

    if (isnan(v))
        return (size_t)snprintf(out, 32, "nan");
    if (isinf(v))
        return (size_t)snprintf(out, 32, v < 0 ? "-inf" : "inf");
    for (prec = 0; prec < 17; prec++) {
        snprintf(d, sizeof d, "%.*e", prec, fabs(v));
        if (strtod(d, NULL) == fabs(v))
            break;
    }
    e = strchr(d, 'e');
    exp10 = atoi(e + 1);
    *e = 0;
    if (d[1])
        memmove(d + 1, d + 2, strlen(d + 2) + 1);
    n = (int)strlen(d);
    if (signbit(v))
        out[at++] = '-';
    if (exp10 < -4 || exp10 >= 16)
        return at + (size_t)snprintf(out + at, 32 - at, "%c%s%se%c%02d", d[0],
                                     n > 1 ? "." : "", d + 1,
                                     exp10 < 0 ? '-' : '+', abs(exp10));
    if (exp10 < 0)
        return at + (size_t)snprintf(out + at, 32 - at, "0.%.*s%s", -exp10 - 1,
                                     "000", d);
    for (k = 0; k <= exp10; k++)
        out[at++] = k < n ? d[k] : '0';
    return at + (size_t)snprintf(out + at, 32 - at, ".%s",
                                 n > exp10 + 1 ? d + exp10 + 1 : "0");
}
