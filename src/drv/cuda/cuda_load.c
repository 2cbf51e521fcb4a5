/* cuda_load.c - see cuda_load.h.
 *
 * A matrix goes to a buffer on the device as the file has it, and from there
 * into the workers' streams; one buffer, of the largest matrix, serves all.
 * The embedding table is kept as BF16 in any case: a packed row is rounded, 2^-9
 * of each number, where the ref tier keeps f32.
 *
 * BF16 takes 12 bits a weight in the streams, unless too many weights are far from the
 * others of their row (mega_table.h): then all of the model is loaded again, 16 bits a
 * weight.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_load.h"

#include "base/half.h"
#include "drv/cuda/cuda_upload.h"

/* ---- what is it --------------------------------------------------------- */

static const int type_of[] = {[BR_CU_BF16] = BR_Q_BF16,
                              [BR_CU_Q8_0] = BR_Q_Q8_0,
                              [BR_CU_Q4_K] = BR_Q_Q4_K};

static br_code
not_here(const br_model *m, const char *what, br_status *st)
{
    return br_fail(st, BR_E_UNSUPPORTED,
                   "tier cuda does not run %s with %s yet", m->arch->name,
                   what);
}

static br_code
check_arch(const br_model *m, br_status *st)
{
    const br_arch *a = m->arch;
    const br_hparams *h = &m->hp;
    static const br_weight biases[] = {BR_W_Q_B, BR_W_K_B, BR_W_V_B, BR_W_O_B,
                                       BR_W_QKV_B};

    if (a->mixer != BR_MIX_ATTN || a->which != BR_WHICH_NO)
        return not_here(m, "layers that are not attention", st);
    if (a->act != BR_ACT_SILU)
        return not_here(m, "another activation than SiLU", st);
    if (a->rope == BR_ROPE_NONE || h->scaling != BR_SCALING_NONE ||
        h->rope_att_factor != 1.0f)
        return not_here(m, "scaled positions", st);
    if (a->flags & ~(uint32_t)(BR_AF_QK_NORM | BR_AF_QK_MAYBE | BR_AF_NORM_W))
        return not_here(m, "its kind of layer", st);
    if (h->att_scale > 0 || h->att_temp_scale > 0 || h->att_cap > 0 ||
        h->logit_cap > 0 || h->logit_scale > 0 || h->emb_scale > 0 ||
        h->res_scale > 0)
        return not_here(m, "scales or caps", st);
    for (int64_t l = 0; l < h->n_layer; l++) {
        const br_layer_hp *y = &h->layer[l], *y0 = &h->layer[0];
        if (y->moe || y->window || y->is_recurrent > 0 || y->kv_layer != l ||
            y->n_head != y0->n_head || y->n_kv != y0->n_kv ||
            y->n_ff != y0->n_ff || y->head_k != y0->head_k)
            return not_here(m, "experts, windows or unequal layers", st);
        if (y->head_v != y->head_k || y->n_rot != y->head_k)
            return not_here(m, "heads that turn in part", st);
        for (size_t i = 0; i < BR_COUNT(biases); i++)
            if (br_model_tensor(m, biases[i], l))
                return not_here(m, "biases", st);
    }
    return BR_OK;
}

/* The tensor, which has this type and shape. */
static br_code
find(const br_model *m, br_weight w, int64_t layer, uint64_t rows,
     uint64_t cols, int type, const br_gguf_tensor **out, br_status *st)
{
    const br_gguf_tensor *t = br_model_tensor(m, w, layer);
    char name[64];

    br_weight_name(w, layer, name, sizeof name);
    if (!t)
        return br_fail(st, BR_E_FORMAT, "%s: missing", name);
    if (t->dim[0] != cols || t->dim[1] != rows || t->dim[2] != 1 ||
        t->dim[3] != 1)
        return br_fail(
            st, BR_E_FORMAT, "%s: [%llu, %llu], expected [%llu, %llu]", name,
            (unsigned long long)t->dim[0], (unsigned long long)t->dim[1],
            (unsigned long long)cols, (unsigned long long)rows);
    if (t->type != type)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s: %s where %s is expected (tier cuda takes models "
                       "whose matrices are all of one type)",
                       name, br_qinfo_of(t->type)->name,
                       br_qinfo_of(type)->name);
    *out = t;
    return BR_OK;
}

br_code
br_cu_shape_of(br_cu_shape *s, const br_model *m, br_status *st)
{
    const br_layer_hp *y = &m->hp.layer[0];
    const br_gguf_tensor *q = br_model_tensor(m, BR_W_Q, 0);
    size_t format = 0;

    BR_TRY(check_arch(m, st));
    if (y->n_head <= 0 || y->n_kv <= 0 || y->n_ff <= 0)
        return br_fail(st, BR_E_FORMAT, "%s: no heads or no FFN",
                       m->arch->name);
    while (format < BR_COUNT(type_of) && !(q && q->type == type_of[format]))
        format++;
    if (format == BR_COUNT(type_of))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "matrices of %s: tier cuda takes BF16, Q8_0 and Q4_K",
                       q ? br_qinfo_of(q->type)->name : "another layout");
    *s = (br_cu_shape){
        .name = m->arch->name,
        .format = (enum br_cu_format)format,
        .n_layers = (uint32_t)m->hp.n_layer,
        .hidden = (uint32_t)m->hp.n_embd,
        .n_heads = (uint32_t)y->n_head,
        .n_kv = (uint32_t)y->n_kv,
        .head_dim = (uint32_t)y->head_k,
        .inter = (uint32_t)y->n_ff,
        .vocab = (uint32_t)m->hp.n_vocab,
        .rope_theta = m->hp.rope_base,
        .eps = m->hp.eps,
        .qk_norm = br_model_tensor(m, BR_W_Q_NORM, 0) != NULL,
        .tied = br_model_tensor(m, BR_W_OUT, 0) == NULL,
        .interleaved_rope = m->arch->rope == BR_ROPE_NORM,
    };
    if (br_model_tensor(m, BR_W_ROPE_FREQS, 0)) {
        const br_gguf_tensor *f;
        BR_TRY(
            find(m, BR_W_ROPE_FREQS, 0, 1, s->head_dim / 2, BR_Q_F32, &f, st));
        s->rope_divisors = (const void *)f->data;
    }
    return BR_OK;
}

/* ---- loading ------------------------------------------------------------ */

typedef struct loading {
    br_cu_decode *d;
    br_cuda_upload *up;
    const br_model *m;
    int type;      /* of matrices */
    uint64_t room; /* on the device */
    uint64_t done, total;
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} loading;

/* The tensor's bytes to room + at, after what reads that. */
static br_code
send(loading *l, br_weight w, int64_t layer, uint64_t rows, uint64_t cols,
     uint64_t *at, br_status *st)
{
    const br_gguf_tensor *t;

    BR_TRY(find(l->m, w, layer, rows, cols, l->type, &t, st));
    BR_TRY(br_cuda_upload_put(l->up, l->room + *at, t->data, t->bytes, st));
    *at += t->bytes;
    l->done += t->bytes;
    if (l->progress)
        l->progress(l->ctx, l->done, l->total);
    return BR_OK;
}

static br_code
send_f32(loading *l, br_weight w, int64_t layer, uint64_t n, uint64_t to,
         br_status *st)
{
    const br_gguf_tensor *t;

    BR_TRY(find(l->m, w, layer, 1, n, BR_Q_F32, &t, st));
    return br_cuda_put(l->d->cu, to, t->data, n * 4, st);
}

static br_code
load_layer(loading *l, uint32_t y, br_status *st)
{
    br_cu_decode *d = l->d;
    const br_cu_shape *s = &d->shape;
    const uint64_t H = s->hidden, I = s->inter, hd = s->head_dim;
    const uint64_t A = s->n_heads * hd, KV = s->n_kv * hd;
    const uint64_t norms = d->norms + (uint64_t)y * 2 * H * 4;
    uint64_t at = 0, up;

    BR_TRY(send(l, BR_W_Q, y, A, H, &at, st));
    BR_TRY(send(l, BR_W_K, y, KV, H, &at, st));
    BR_TRY(send(l, BR_W_V, y, KV, H, &at, st));
    BR_TRY(br_cu_decode_put(d, y, BR_CU_QKV, l->room, 0, st));
    at = 0;
    BR_TRY(send(l, BR_W_O, y, H, A, &at, st));
    BR_TRY(br_cu_decode_put(d, y, BR_CU_OUT, l->room, 0, st));
    at = 0;
    BR_TRY(send(l, BR_W_GATE, y, I, H, &at, st));
    up = l->room + at;
    BR_TRY(send(l, BR_W_UP, y, I, H, &at, st));
    BR_TRY(br_cu_decode_put(d, y, BR_CU_GLU, l->room, up, st));
    at = 0;
    BR_TRY(send(l, BR_W_DOWN, y, H, I, &at, st));
    BR_TRY(br_cu_decode_put(d, y, BR_CU_DOWN, l->room, 0, st));
    BR_TRY(send_f32(l, BR_W_ATT_NORM, y, H, norms, st));
    BR_TRY(send_f32(l, BR_W_FFN_NORM, y, H, norms + H * 4, st));
    if (s->qk_norm) {
        const uint64_t to = d->qk_norms + y * 2 * hd * 4;
        BR_TRY(send_f32(l, BR_W_Q_NORM, y, hd, to, st));
        BR_TRY(send_f32(l, BR_W_K_NORM, y, hd, to + hd * 4, st));
    }
    return BR_OK;
}

static br_code
load_embed(loading *l, br_status *st)
{
    const br_cu_shape *s = &l->d->shape;
    const uint64_t H = s->hidden;
    const br_gguf_tensor *t;
    float *row;
    uint16_t *half;
    br_code code = BR_OK;

    BR_TRY(find(l->m, BR_W_EMBED, 0, s->vocab, H, l->type, &t, st));
    if (t->type == BR_Q_BF16)
        return br_cuda_upload_put(l->up, l->d->embed, t->data, t->bytes, st);
    row = br_try_alloc(H * sizeof *row);
    half = br_try_alloc((size_t)s->vocab * H * sizeof *half);
    if (!row || !half)
        code = br_fail(st, BR_E_OOM, "embedding table: out of memory");
    for (uint32_t r = 0; code == BR_OK && r < s->vocab; r++) {
        br_dequant(t->type, t->data + t->bytes / s->vocab * r, row, H);
        for (uint64_t i = 0; i < H; i++)
            half[r * H + i] = br_f32_to_bf16(row[i]);
    }
    if (code == BR_OK)
        code =
            br_cuda_upload_put(l->up, l->d->embed, half, s->vocab * H * 2, st);
    br_free(half);
    br_free(row);
    return code;
}

static br_code
load_all(loading *l, br_status *st)
{
    br_cu_decode *d = l->d;
    const br_cu_shape *s = &d->shape;
    uint64_t at = 0;

    for (uint32_t y = 0; y < s->n_layers; y++)
        BR_TRY(load_layer(l, y, st));
    BR_TRY(send(l, s->tied ? BR_W_EMBED : BR_W_OUT, 0, s->vocab, s->hidden, &at,
                st));
    BR_TRY(br_cu_decode_put(d, 0, BR_CU_HEAD, l->room, 0, st));
    BR_TRY(send_f32(l, BR_W_OUT_NORM, 0, s->hidden,
                    d->norms + (uint64_t)s->n_layers * 2 * s->hidden * 4, st));
    BR_TRY(load_embed(l, st));
    return br_cuda_wait(d->cu, st);
}

static br_code
load(br_cu_decode *d, const br_model *m,
     void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx,
     br_status *st)
{
    const br_cu_shape *s = &d->shape;
    loading l = {.d = d,
                 .m = m,
                 .type = type_of[s->format],
                 .progress = progress,
                 .ctx = ctx};
    br_code code;

    for (uint32_t i = 0; i < BR_CU_MATRICES; i++) {
        const enum br_cu_matrix x = (enum br_cu_matrix)i;
        l.total += br_cu_rows(s, x) *
                   br_cu_row_bytes(s->format, br_cu_cols(s, x)) *
                   (x == BR_CU_HEAD ? 1 : s->n_layers);
    }
    BR_TRY(br_cuda_alloc(d->cu, &l.room, br_cu_way(s), st));
    code = br_cuda_upload_new(&l.up, d->cu, st);
    if (code == BR_OK)
        code = load_all(&l, st);
    br_cuda_upload_free(l.up);
    br_cuda_free(d->cu, l.room);
    return code;
}

br_code
br_cu_load(br_cu_decode *d, const br_model *m,
           void (*progress)(void *ctx, uint64_t done, uint64_t total),
           void *ctx, br_status *st)
{
    br_cuda *cu = d->cu;
    const uint32_t max_pos = d->max_pos;
    br_cu_shape s = d->shape;
    br_cu_odd odd;

    BR_TRY(load(d, m, progress, ctx, st));
    BR_TRY(br_cu_decode_odd(d, &odd, st));
    if (!odd.chunks)
        return BR_OK;
    s.plain = true;
    br_cu_decode_free(d);
    BR_TRY(br_cu_decode_new(d, cu, &s, max_pos, NULL, st));
    return load(d, m, progress, ctx, st);
}
