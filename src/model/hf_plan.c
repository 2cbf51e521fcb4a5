/* hf_plan.c - which tensor of the folder becomes which of the file.
 *
 * The order is the tables': global ones, then layer by layer. Each row is
 * looked for with .weight and .bias; a row that is not there is passed over,
 * but a tensor that no row took is an error at the end, as is a missing expert.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_int.h"
#include "model/quant.h"

#include <stdio.h>
#include <string.h>

typedef enum way {
    HOW_KEEP,
    HOW_Q,
    HOW_K,
    HOW_PRE,
    HOW_PREFFN,
    HOW_POSTN,
    HOW_WIDE,
    HOW_ROW,
    HOW_BARE,
    HOW_EXPERT,
    HOW_EVEN,
    HOW_ODD,
    HOW_ALL,
    HOW_IGNORE,
} way;

typedef struct row {
    const char *theirs, *ours;
    way how;
} row;

#define T(theirs, ours, how)  {theirs, ours, HOW_##how},
#define X(theirs, ours)       {theirs, ours, HOW_EXPERT},
#define P(theirs, ours, part) {theirs, ours, HOW_##part},
#define IGNORE(theirs)        {theirs, "", HOW_IGNORE},
#define GLOBAL
static const row before[] = {
#include "model/hf_tensor.def"
};
#undef GLOBAL
#define LAYER
static const row layer[] = {
#include "model/hf_tensor.def"
};
#undef LAYER
#define GLOBAL_END
static const row after[] = {
#include "model/hf_tensor.def"
};
#undef GLOBAL_END
#undef T
#undef X
#undef P
#undef IGNORE

/* ---- finding ------------------------------------------------------------ */

const br_st_tensor *
br_hf_take(br_hf *h, const char *name)
{
    const br_st_tensor *t = br_st_tensor_find(h->files, br_text_z(name));

    if (t)
        h->used[t - br_st_tensor_at(h->files, 0)] = true;
    return t;
}

/* Shape and dtype of a source as those of the output. */
static br_code
describe(br_hf *h, const br_st_tensor *t, way how, br_gguf_w_info *info)
{
    uint32_t n = t->n_dims;

    if (br_hf_is_f8(t) && how != HOW_WIDE)
        return br_hf_f8_describe(h, t, info);
    info->type = br_st_dtype_qtype(t->dtype);
    if (info->type != BR_Q_F16 && info->type != BR_Q_BF16 &&
        info->type != BR_Q_F32)
        return br_fail(h->st, BR_E_UNSUPPORTED,
                       "tensor '%.*s': dtype %s; F16, BF16, F32 and, of "
                       "matrices, F8 are read",
                       (int)t->name.n, t->name.p, br_st_dtype_name(t->dtype));
    if (n > 3 || n == 0 || t->bytes == 0)
        return br_fail(
            h->st, BR_E_FORMAT, "tensor '%.*s': %u dimensions, %llu bytes",
            (int)t->name.n, t->name.p, n, (unsigned long long)t->bytes);
    for (uint32_t d = 0; d < n; d++)
        info->dim[d] = t->dim[n - 1 - d];
    info->n_dims = n;
    if (how == HOW_ROW && n == 2 && info->dim[1] == 1)
        info->n_dims = 1;
    if (info->n_dims == 1 || how == HOW_WIDE)
        info->type = BR_Q_F32;
    return BR_OK;
}

/* Rows of q and k belong to heads, half of each turns with the other. */
static br_code
check_heads(br_hf *h, const br_st_tensor *t, int64_t heads, br_hf_plan *p)
{
    if (!(h->arch->flags & BR_HF_PERMUTE))
        return BR_OK;
    if (t->dim[0] != (uint64_t)(heads * h->head_dim))
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%.*s': %llu rows, not %lld heads of %lld",
                       (int)t->name.n, t->name.p, (unsigned long long)t->dim[0],
                       (long long)heads, (long long)h->head_dim);
    p->heads = (uint32_t)heads;
    return BR_OK;
}

static br_code
add_plan(br_hf *h, br_hf_plan *p, const char *name)
{
    size_t n = strlen(name);

    p->info.name = (br_text){br_arena_str(&h->arena, name, n), n};
    if (!p->info.name.p || !br_vec_push(&h->plans, *p))
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    return BR_OK;
}

/* ---- one row ------------------------------------------------------------ */

static br_code
plan_one(br_hf *h, const br_st_tensor *t, way how, const char *name)
{
    br_hf_plan p = {.n_src = 1};

    p.src = br_arena_new(&h->arena, const br_st_tensor *, 1);
    if (!p.src)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    p.src[0] = t;
    BR_TRY(describe(h, t, how, &p.info));
    if (how == HOW_Q)
        BR_TRY(check_heads(h, t, h->n_head, &p));
    if (how == HOW_K)
        BR_TRY(check_heads(h, t, h->n_kv, &p));
    p.plus1 = h->arch->flags & BR_HF_PLUS1 && strstr(name, "norm.weight");
    return add_plan(h, &p, name);
}

/* theirs holds "E", which stands for the number of the expert. */
static const br_st_tensor *
take_expert(br_hf *h, const char *prefix, const char *theirs, int64_t e)
{
    const char *mark = strstr(theirs, ".E.");
    char name[256];

    br_assert(mark && "rows of experts hold .E.");
    snprintf(name, sizeof name, "%s%.*s.%lld.%s.weight", prefix,
             (int)(mark - theirs), theirs, (long long)e, mark + 3);
    return br_hf_take(h, name);
}

static br_code
plan_experts(br_hf *h, const row *r, const char *prefix, const char *name)
{
    const br_st_tensor *first = take_expert(h, prefix, r->theirs, 0);
    br_hf_plan p = {.n_src = (uint32_t)h->n_expert};

    if (!first)
        return BR_OK;
    if (h->n_expert == 0)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%.*s': a model without experts",
                       (int)first->name.n, first->name.p);
    p.src = br_arena_new(&h->arena, const br_st_tensor *, p.n_src);
    if (!p.src)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    BR_TRY(describe(h, first, r->how, &p.info));
    for (uint32_t e = 0; e < p.n_src; e++) {
        const br_st_tensor *t = take_expert(h, prefix, r->theirs, e);

        if (!t)
            return br_fail(h->st, BR_E_FORMAT,
                           "%s%s: expert %u of %u is missing", prefix,
                           r->theirs, e, p.n_src);
        if (first->n_dims != 2 || t->dtype != first->dtype ||
            t->n_dims != first->n_dims ||
            memcmp(t->dim, first->dim, sizeof t->dim) != 0)
            return br_fail(h->st, BR_E_FORMAT,
                           "tensor '%.*s': not a matrix like that of expert 0",
                           (int)t->name.n, t->name.p);
        if (br_hf_is_f8(t) && e > 0) {
            br_gguf_w_info own = {.type = 0};

            BR_TRY(br_hf_f8_describe(h, t, &own));
            if (own.type != p.info.type)
                return br_fail(h->st, BR_E_FORMAT,
                               "tensor '%.*s': other scales than expert 0",
                               (int)t->name.n, t->name.p);
        }
        p.src[e] = t;
    }
    p.info.dim[2] = p.n_src;
    p.info.n_dims = 3;
    return add_plan(h, &p, name);
}

/* ---- packed experts ------------------------------------------------------ */

/* A tensor of bytes, [experts][rows][more...], more as they have to be. */
static br_code
take_bytes(br_hf *h, const char *stem, const char *end, uint32_t n_dims,
           const br_st_tensor **out)
{
    char name[256];

    snprintf(name, sizeof name, "%s%s", stem, end);
    *out = br_hf_take(h, name);
    if (!*out)
        return br_fail(h->st, BR_E_FORMAT, "tensor '%s' is missing", name);
    if ((*out)->dtype != BR_ST_U8 || (*out)->n_dims != n_dims ||
        (*out)->dim[0] != (uint64_t)h->n_expert || (*out)->bytes == 0)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%s': expected U8 of %u dimensions, the first "
                       "of %lld",
                       name, n_dims, (long long)h->n_expert);
    return BR_OK;
}

/* Which rows: all of them, or every second. */
static br_code
set_rows(br_hf *h, br_hf_plan *p, way part, uint64_t rows, const char *stem)
{
    p->first = part == HOW_ODD;
    p->step = part == HOW_ALL ? 1 : 2;
    if (rows % p->step)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%s': gate and up are no pairs of rows", stem);
    return BR_OK;
}

static br_code
plan_packed_bias(br_hf *h, const row *r, const char *stem, const char *to)
{
    char name[256];
    br_hf_plan p = {.n_src = 1};
    const br_st_tensor *t;

    snprintf(name, sizeof name, "%s_bias", stem);
    if (!(t = br_hf_take(h, name)))
        return BR_OK;
    p.src = br_arena_new(&h->arena, const br_st_tensor *, 1);
    if (!p.src)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    p.src[0] = t;
    BR_TRY(describe(h, t, HOW_WIDE, &p.info));
    if (p.info.n_dims != 2)
        return br_fail(h->st, BR_E_FORMAT, "tensor '%s': no matrix", name);
    BR_TRY(set_rows(h, &p, r->how, p.info.dim[0], name));
    p.info.dim[0] /= p.step;
    return add_plan(h, &p, to);
}

/* Floats instead of MXFP4, as training leaves them: [expert][column][row]. */
static br_code
plan_turned(br_hf *h, const row *r, const br_st_tensor *t, const char *to)
{
    br_hf_plan p = {.n_src = 1, .turned = true};

    p.src = br_arena_new(&h->arena, const br_st_tensor *, 1);
    if (!p.src)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    p.src[0] = t;
    BR_TRY(describe(h, t, HOW_KEEP, &p.info));
    if (t->n_dims != 3 || t->dim[0] != (uint64_t)h->n_expert)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%.*s': expected %lld matrices", (int)t->name.n,
                       t->name.p, (long long)h->n_expert);
    BR_TRY(set_rows(h, &p, r->how, t->dim[2], to));
    p.info.dim[0] = t->dim[1];
    p.info.dim[1] = t->dim[2] / p.step;
    return add_plan(h, &p, to);
}

static br_code
plan_packed(br_hf *h, const row *r, const char *prefix, const char *ours)
{
    char stem[200], to[128];
    br_hf_plan p = {.n_src = 2};
    const br_st_tensor *blocks, *scales;

    if (!(h->arch->flags & BR_HF_MXFP4))
        return BR_OK;
    snprintf(stem, sizeof stem, "%s%s", prefix, r->theirs);
    snprintf(to, sizeof to, "%s%s.weight", ours, r->ours);
    if ((blocks = br_hf_take(h, stem))) {
        BR_TRY(plan_turned(h, r, blocks, to));
        snprintf(to, sizeof to, "%s%s.bias", ours, r->ours);
        return plan_packed_bias(h, r, stem, to);
    }
    BR_TRY(take_bytes(h, stem, "_blocks", 4, &blocks));
    BR_TRY(take_bytes(h, stem, "_scales", 3, &scales));
    if (blocks->dim[3] != 16 || blocks->dim[1] != scales->dim[1] ||
        blocks->dim[2] != scales->dim[2])
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%s_blocks': not 16 bytes for each scale", stem);
    p.src = br_arena_new(&h->arena, const br_st_tensor *, 2);
    if (!p.src)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    p.src[0] = blocks;
    p.src[1] = scales;
    BR_TRY(set_rows(h, &p, r->how, blocks->dim[1], stem));
    p.info = (br_gguf_w_info){
        .type = BR_Q_MXFP4,
        .n_dims = 3,
        .dim = {blocks->dim[2] * 32, blocks->dim[1] / p.step, blocks->dim[0]}};
    BR_TRY(add_plan(h, &p, to));
    snprintf(to, sizeof to, "%s%s.bias", ours, r->ours);
    return plan_packed_bias(h, r, stem, to);
}

/* ---- rows ----------------------------------------------------------------- */

static bool
applies(const br_hf *h, const row *r)
{
    bool post = h->arch->flags & BR_HF_POST;

    switch (r->how) {
    case HOW_PRE: return !(h->arch->flags & BR_HF_NO_PRE);
    case HOW_PREFFN: return !post;
    case HOW_POSTN: return post;
    default: return true;
    }
}

static br_code
plan_row(br_hf *h, const row *r, const char *theirs, const char *ours)
{
    static const char *const kinds[] = {".weight", ".bias"};
    char name[256], to[128];

    if (!applies(h, r))
        return BR_OK;
    if (r->how == HOW_IGNORE) {
        snprintf(name, sizeof name, "%s%s", theirs, r->theirs);
        (void)br_hf_take(h, name);
        return BR_OK;
    }
    if (r->how >= HOW_EVEN && r->how <= HOW_ALL)
        return plan_packed(h, r, theirs, ours);
    for (size_t k = 0; k < BR_COUNT(kinds); k++) {
        const br_st_tensor *t;

        snprintf(to, sizeof to, "%s%s%s", ours, r->ours, kinds[k]);
        if (r->how == HOW_EXPERT) {
            if (k == 0)
                BR_TRY(plan_experts(h, r, theirs, to));
            continue;
        }
        snprintf(name, sizeof name, "%s%s%s", theirs, r->theirs,
                 r->how == HOW_BARE && k == 0 ? "" : kinds[k]);
        t = br_hf_take(h, name);
        if (t)
            BR_TRY(plan_one(h, t, r->how, to));
    }
    return BR_OK;
}

/* ---- all ---------------------------------------------------------------- */

static br_code
plan_table(br_hf *h, const row *rows, size_t n, int64_t il)
{
    char theirs[64] = "", ours[32] = "";

    if (il >= 0) {
        snprintf(theirs, sizeof theirs, "model.layers.%lld.", (long long)il);
        snprintf(ours, sizeof ours, "blk.%lld.", (long long)il);
    }
    for (size_t i = 0; i < n; i++)
        BR_TRY(plan_row(h, &rows[i], theirs, ours));
    return BR_OK;
}

/* A head that config.json says is the embedding table is not written; one that
 * it says is not has to be there. Where it is silent, whether there is a head
 * says it: classes differ in what they take silence for. */
static br_code
settle_head(br_hf *h)
{
    const br_json *tied = br_json_get(h->config, "tie_word_embeddings");
    br_hf_plan *last = h->plans.n ? &h->plans.at[h->plans.n - 1] : NULL;
    bool head = last && br_text_is(last->info.name, "output.weight");

    if (!tied || tied->kind != BR_J_BOOL)
        return BR_OK;
    if (!head && !tied->b)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor 'lm_head.weight' is missing, and "
                       "tie_word_embeddings is false");
    h->plans.n -= head && tied->b;
    return BR_OK;
}

static br_code
plan_rope(br_hf *h)
{
    for (size_t i = 0; i < BR_COUNT(h->rope); i++) {
        const br_hf_factors *r = &h->rope[i];
        br_hf_plan p = {.own = r->f};

        p.info = (br_gguf_w_info){.type = BR_Q_F32, .n_dims = 1, .dim = {r->n}};
        if (r->f)
            BR_TRY(add_plan(h, &p, r->name));
    }
    return BR_OK;
}

static br_code
check_all_used(br_hf *h)
{
    for (size_t i = 0; i < br_st_n_tensors(h->files); i++) {
        const br_st_tensor *t = br_st_tensor_at(h->files, i);

        if (!h->used[i])
            return br_fail(h->st, BR_E_UNSUPPORTED,
                           "tensor '%.*s' has no place in a file of %s",
                           (int)BR_MIN(t->name.n, (size_t)200), t->name.p,
                           h->arch->arch);
    }
    if (h->plans.n == 0 ||
        !br_text_is(h->plans.at[0].info.name, "token_embd.weight") ||
        h->plans.at[0].info.n_dims != 2)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor 'model.embed_tokens.weight' is missing or no "
                       "matrix");
    h->n_rows = h->plans.at[0].info.dim[1];
    return BR_OK;
}

br_code
br_hf_plan_all(br_hf *h)
{
    h->used = br_arena_new(&h->arena, bool, br_st_n_tensors(h->files) + 1);
    h->f8 = br_arena_new(&h->arena, br_hf_f8, br_st_n_tensors(h->files) + 1);
    if (!h->used || !h->f8)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    BR_TRY(plan_table(h, before, BR_COUNT(before), -1));
    for (int64_t il = 0; il < h->n_layer; il++)
        BR_TRY(plan_table(h, layer, BR_COUNT(layer), il));
    BR_TRY(plan_table(h, after, BR_COUNT(after), -1));
    BR_TRY(settle_head(h));
    BR_TRY(plan_rope(h));
    return check_all_used(h);
}
