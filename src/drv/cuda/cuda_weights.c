/* cuda_weights.c - matrices of a model file in a device's memory, for kernels
 * that take a node each (node_table.h).
 *
 *   F32 F16 BF16      as they are
 *   integer formats   unpacked: a byte a weight, scales of sub-blocks and of
 *                     blocks beside them; a Q4_K matrix takes 1.8 times its
 *                     bytes. (The decode kernel streams packed ones.)
 *   the rest          as F32
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"
#include "model/qint.h"

#include <string.h>

enum { PIECE = 1 << 20 /* weights on their way */ };

typedef struct sending {
    br_cun *x;
    const br_gguf_tensor *t;
    const br_qinfo *info;
    struct br_nd_mat *m;
    uint64_t n; /* weights */
    br_status *st;
    uint8_t *q;
    int8_t *scale, *min;
    float *d, *dmin;
} sending;

static br_code
send(sending *s, const void *to, uint64_t at, const void *from, size_t bytes)
{
    return bytes ? BR_CU(&s->x->cu, s->st,
                         cuMemcpyHtoD((uintptr_t)to + at, from, bytes))
                 : BR_OK;
}

static br_code
room(sending *s, const void **p, uint64_t bytes)
{
    uint64_t d;

    BR_TRY(cun_alloc(s->x, &d, bytes, s->st));
    *p = (const void *)(uintptr_t)d;
    s->x->weight_bytes += bytes;
    return BR_OK;
}

static void
advance(sending *s, uint64_t weights)
{
    br_cun *x = s->x;

    x->sent += weights / s->info->elems * s->info->bytes;
    if (x->c.progress)
        x->c.progress(x->c.ctx, BR_MIN(x->sent, x->all_bytes), x->all_bytes);
}

static br_code
send_floats(sending *s, uint32_t kind)
{
    const uint32_t bytes = kind == BR_ND_F32 ? 4 : 2;
    br_code code;

    s->m->kind = kind;
    BR_TRY(room(s, &s->m->q, s->n * bytes));
    if (s->info->elems == 1 && s->info->bytes == bytes) {
        code = send(s, s->m->q, 0, s->t->data, s->n * bytes);
        advance(s, s->n);
        return code;
    }
    s->d = br_try_alloc(PIECE * sizeof *s->d);
    if (!s->d)
        return br_fail(s->st, BR_E_OOM, "weights: out of memory");
    code = BR_OK;
    for (uint64_t i = 0; code == BR_OK && i < s->n; i += PIECE) {
        uint64_t n = BR_MIN(s->n - i, (uint64_t)PIECE);

        br_dequant(s->t->type, s->t->data + i / s->info->elems * s->info->bytes,
                   s->d, n);
        code = send(s, s->m->q, i * 4, s->d, n * 4);
        advance(s, n);
    }
    br_free(s->d);
    return code;
}

/* Blocks from weight i on, unpacked; false: a number needs more than a byte. */
static bool
unpack(sending *s, uint64_t i, uint64_t n)
{
    const uint8_t *p = s->t->data + i / s->info->elems * s->info->bytes;
    uint64_t b = 0, at = 0;
    br_qint o;

    for (; at < n; b++, p += s->info->bytes) {
        const int subs = (int)(s->m->block / s->m->sub);

        br_qint_block(s->t->type, p, &o);
        for (int k = 0; k < o.n; k++, at++) {
            if (o.q[k] < -128 || o.q[k] > 127)
                return false;
            s->q[at] = (uint8_t)o.q[k];
        }
        s->d[b] = o.d;
        s->dmin[b] = o.has_min ? o.dmin : 0;
        for (int k = 0; k < subs; k++) {
            const int min = o.has_min ? o.min[k] : 0;

            if (o.scale[k] < -128 || o.scale[k] > 127 || min < -128 ||
                min > 127 || (s->m->block == 32 && o.scale[k] != 1))
                return false;
            s->scale[b * (uint64_t)subs + (uint64_t)k] = (int8_t)o.scale[k];
            s->min[b * (uint64_t)subs + (uint64_t)k] = (int8_t)min;
        }
    }
    return true;
}

static br_code
send_blocks(sending *s, bool min)
{
    struct br_nd_mat *m = s->m;
    const bool subs = m->block == 256;
    br_code code = BR_OK;

    for (uint64_t i = 0; code == BR_OK && i < s->n; i += PIECE) {
        const uint64_t n = BR_MIN(s->n - i, (uint64_t)PIECE);
        const uint64_t b = i / m->block, nb = n / m->block;

        if (!unpack(s, i, n))
            return br_fail(s->st, BR_E_INTERNAL,
                           "%s: its integers are wider than bytes",
                           s->info->name);
        code = send(s, m->q, i, s->q, n);
        if (code == BR_OK)
            code = send(s, m->d, b * 4, s->d, nb * 4);
        if (code == BR_OK && subs)
            code = send(s, m->scale, i / m->sub, s->scale, n / m->sub);
        if (code == BR_OK && subs && min)
            code = send(s, m->min, i / m->sub, s->min, n / m->sub);
        if (code == BR_OK && min)
            code = send(s, m->dmin, b * 4, s->dmin, nb * 4);
        advance(s, n);
    }
    return code;
}

static br_code
send_ints(sending *s)
{
    struct br_nd_mat *m = s->m;
    br_qint first;
    br_code code = BR_OK;

    br_qint_block(s->t->type, s->t->data, &first);
    m->kind = BR_ND_INT;
    m->block = (uint32_t)first.n;
    m->sub = (uint32_t)first.sub;
    br_check((m->block == 32 || m->block == 256) && "blocks of the contract");
    BR_TRY(room(s, &m->q, s->n));
    BR_TRY(room(s, (const void **)&m->d, s->n / m->block * 4));
    if (m->block == 256)
        BR_TRY(room(s, (const void **)&m->scale, s->n / m->sub));
    if (m->block == 256 && first.has_min)
        BR_TRY(room(s, (const void **)&m->min, s->n / m->sub));
    if (first.has_min)
        BR_TRY(room(s, (const void **)&m->dmin, s->n / m->block * 4));
    s->q = br_try_alloc(PIECE);
    s->scale = br_try_alloc(PIECE / 16);
    s->min = br_try_alloc(PIECE / 16);
    s->d = br_try_alloc(PIECE / 32 * sizeof *s->d);
    s->dmin = br_try_alloc(PIECE / 32 * sizeof *s->dmin);
    if (!s->q || !s->scale || !s->min || !s->d || !s->dmin)
        code = br_fail(s->st, BR_E_OOM, "weights: out of memory");
    if (code == BR_OK)
        code = send_blocks(s, first.has_min);
    br_free(s->q);
    br_free(s->scale);
    br_free(s->min);
    br_free(s->d);
    br_free(s->dmin);
    return code;
}

br_code
cun_matrix(br_cun *x, uint32_t v, br_status *st)
{
    const br_gguf_tensor *t = x->v.at[v].t;
    const br_ir_value *value = &x->v.g->values[v];
    const int r = value->rank;
    struct br_nd_mat *m = &x->mat[v];
    sending s = {
        .x = x, .t = t, .info = br_qinfo_of(t->type), .m = m, .n = 1, .st = st};

    if (m->q)
        return BR_OK;
    for (uint32_t i = 0; i < t->n_dims; i++)
        s.n *= t->dim[i];
    m->n_in = (uint32_t)value->dim[r - 1];
    m->n_out = (uint32_t)(r > 1 ? value->dim[r - 2] : 1);
    if (br_qint_has(t->type))
        return send_ints(&s);
    return send_floats(&s, t->type == BR_Q_F16    ? BR_ND_F16
                           : t->type == BR_Q_BF16 ? BR_ND_BF16
                                                  : BR_ND_F32);
}
