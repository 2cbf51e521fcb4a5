/* imatrix.c - see imatrix.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/imatrix.h"

#include "model/quant.h"

#include <math.h>
#include <stdio.h>

struct br_imatrix {
    br_gguf *g;
};

static br_code
check_kind(const br_gguf *g, const char *path, br_status *st)
{
    const br_gguf_kv *kv = br_gguf_find(g, "general.type");
    br_text t;

    if (br_gguf_str(kv, 0, &t) && br_text_is(t, "imatrix"))
        return BR_OK;
    return br_fail(st, BR_E_FORMAT,
                   "%s: key 'general.type' is not 'imatrix': a GGUF file, but "
                   "not one of importances",
                   path);
}

br_code
br_imatrix_open(br_imatrix **out, const char *path, br_status *st)
{
    br_imatrix *m = br_try_calloc(1, sizeof *m);
    br_code code;

    *out = NULL;
    if (!m)
        return br_fail(st, BR_E_OOM, "%s: out of memory", path);
    code = br_gguf_open(&m->g, path, st);
    if (code == BR_OK)
        code = check_kind(m->g, path, st);
    if (code != BR_OK) {
        br_imatrix_close(m);
        return code;
    }
    *out = m;
    return BR_OK;
}

void
br_imatrix_close(br_imatrix *m)
{
    if (!m)
        return;
    br_gguf_close(m->g);
    br_free(m);
}

static const br_gguf_tensor *
part(const br_imatrix *m, const br_gguf_tensor *t, const char *suffix)
{
    char name[BR_GGUF_MAX_NAME_BYTES + 16];

    snprintf(name, sizeof name, "%.*s%s", (int)t->name.n, t->name.p, suffix);
    return br_gguf_tensor_find(m->g, name);
}

static br_code
fill(float *v, const br_gguf_tensor *sums, const br_gguf_tensor *counts,
     size_t columns, br_status *st)
{
    for (size_t i = 0; i < sums->bytes / sizeof(float); i++) {
        float sum, count;

        br_dequant(BR_Q_F32, sums->data + 4 * i, &sum, 1);
        br_dequant(BR_Q_F32, counts->data + 4 * (i / columns), &count, 1);
        if (!(sum >= 0) || isinf(sum) || !(count >= 0) || isinf(count))
            return br_fail(st, BR_E_FORMAT,
                           "importance %zu is %g / %g, which is no importance",
                           i, (double)sum, (double)count);
        v[i] = count > 0 ? sum / count : 1;
    }
    return BR_OK;
}

br_code
br_imatrix_get(const br_imatrix *m, const br_gguf_tensor *t, float **out,
               br_status *st)
{
    const br_gguf_tensor *sums = part(m, t, ".in_sum2");
    const br_gguf_tensor *counts = part(m, t, ".counts");
    uint64_t mats = t->dim[2] * t->dim[3];
    br_code code;

    *out = NULL;
    if (!sums)
        return BR_OK;
    if (!counts || sums->type != BR_Q_F32 || counts->type != BR_Q_F32 ||
        sums->dim[0] != t->dim[0] || sums->bytes / 4 / t->dim[0] != mats ||
        counts->bytes / 4 != mats)
        return br_fail(st, BR_E_FORMAT,
                       "importances of '%.*s': the model has %llu columns and "
                       "%llu matrices, they have other numbers",
                       (int)t->name.n, t->name.p, (unsigned long long)t->dim[0],
                       (unsigned long long)mats);
    *out = br_try_alloc((size_t)sums->bytes);
    if (!*out)
        return br_fail(st, BR_E_OOM, "out of memory for importances");
    code = fill(*out, sums, counts, (size_t)t->dim[0], st);
    if (code == BR_OK)
        return BR_OK;
    br_prefix(st, "'%.*s'", (int)t->name.n, t->name.p);
    br_free(*out);
    *out = NULL;
    return code;
}
