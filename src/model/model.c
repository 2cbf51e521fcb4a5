/* model.c - opens a model: finds its architecture, its numbers, its tensors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"
#include "base/options.h"
#include "model/hf.h"
#include "model/model_int.h"

#include <stdio.h>
#include <string.h>

static const br_arch arches[BR_ARCH_COUNT] = {
#define F(f)     (uint32_t) BR_AF_##f
#define VERIFIED true
#define UNTESTED false
#define A(state, id, nm, rp, ac, mix, rec, wh, win, gt, fl)      \
    {nm,           BR_ROPE_##rp,  BR_ACT_##ac,     BR_MIX_##mix, \
     BR_MIX_##rec, BR_WHICH_##wh, BR_WINDOW_##win, BR_GATE_##gt, \
     fl,           state},
#include "model/arch.def"
#undef A
#undef VERIFIED
#undef UNTESTED
#undef F
};

static const struct {
    const char *stem, *logical;
    bool layered;
} weights[BR_W_COUNT] = {
#define G(id, stem, logical) {stem, logical, false},
#define B(id, stem, logical) {stem, logical, true},
#include "model/weight.def"
#undef G
#undef B
};

const br_arch *
br_arch_of(br_arch_id id)
{
    br_assert(id < BR_ARCH_COUNT);
    return &arches[id];
}

int
br_arch_find(br_text name)
{
    for (int i = 0; i < BR_ARCH_COUNT; i++)
        if (br_text_is(name, arches[i].name))
            return i;
    return -1;
}

const char *
br_weight_stem(br_weight w)
{
    return weights[w].stem;
}

const char *
br_weight_logical(br_weight w)
{
    return weights[w].logical;
}

bool
br_weight_layered(br_weight w)
{
    return weights[w].layered;
}

void
br_weight_name(br_weight w, int64_t layer, char *out, size_t size)
{
    if (weights[w].layered)
        snprintf(out, size, "blk.%lld.%s", (long long)layer, weights[w].stem);
    else
        snprintf(out, size, "%s", weights[w].stem);
}

const br_gguf_tensor *
br_model_tensor(const br_model *m, br_weight w, int64_t layer)
{
    if (!weights[w].layered)
        return m->global[w];
    br_assert(layer >= 0 && layer < m->hp.n_layer);
    return m->layered[layer * BR_W_COUNT + w];
}

/* ---- opening ------------------------------------------------------------ */

static br_code
find_arch(br_model *m, br_status *st)
{
    const br_gguf_kv *kv = br_gguf_find(m->gguf, "general.architecture");
    br_suggest near;
    br_text name;
    char hint[80];
    int id;

    if (!kv || !br_gguf_str(kv, 0, &name))
        return br_fail(st, BR_E_FORMAT,
                       "general.architecture: there has to be this text");
    id = br_arch_find(name);
    if (id < 0) {
        br_suggest_begin(&near, name);
        for (int i = 0; i < BR_ARCH_COUNT; i++)
            br_suggest_offer(&near, br_text_z(arches[i].name));
        br_suggest_text(&near, "", hint, sizeof hint);
        return br_fail(st, BR_E_UNSUPPORTED,
                       "architecture '%.*s' is not known to this build%s",
                       (int)BR_MIN(name.n, 64), name.p, hint);
    }
    m->arch_id = (br_arch_id)id;
    m->arch = &arches[id];
    return BR_OK;
}

static br_code
find_tensors(br_model *m, br_status *st)
{
    size_t n_layer = (size_t)m->hp.n_layer;
    char name[96];
    size_t found = 0;

    m->global = br_arena_new(&m->arena, const br_gguf_tensor *, BR_W_COUNT);
    m->layered =
        br_arena_new(&m->arena, const br_gguf_tensor *, n_layer *BR_W_COUNT);
    if (!m->global || !m->layered)
        return br_fail(st, BR_E_OOM, "tensors: out of memory");
    for (int w = 0; w < BR_W_COUNT; w++) {
        size_t n = weights[w].layered ? n_layer : 1;

        for (size_t l = 0; l < n; l++) {
            const br_gguf_tensor *t;

            br_weight_name((br_weight)w, (int64_t)l, name, sizeof name);
            t = br_gguf_tensor_find(m->gguf, name);
            found += t != NULL;
            if (weights[w].layered)
                m->layered[l * BR_W_COUNT + (size_t)w] = t;
            else
                m->global[w] = t;
        }
    }
    m->n_unused = br_gguf_n_tensors(m->gguf) - found;
    return BR_OK;
}

static bool
ends_with(br_text t, const char *end)
{
    size_t n = strlen(end);

    return t.n >= n && memcmp(t.p + t.n - n, end, n) == 0;
}

/* Of a layer that runs: what stands behind "blk.N.". */
static bool
in_layer(const br_model *m, br_text *name)
{
    int64_t il = 0;
    size_t i = 4;

    if (name->n < 5 || memcmp(name->p, "blk.", 4) != 0)
        return false;
    for (; i < name->n && i < 9 && name->p[i] >= '0' && name->p[i] <= '9'; i++)
        il = il * 10 + (name->p[i] - '0');
    if (i == 4 || i == name->n || name->p[i] != '.' || il >= m->hp.n_layer)
        return false;
    *name = (br_text){name->p + i + 1, name->n - i - 1};
    return true;
}

/* A tensor more may be anybody's; but a bias or a scale that nobody asks for
 * means that every number behind its matrix would be wrong. */
static br_code
check_unasked(const br_model *m, br_status *st)
{
    for (size_t i = 0; i < br_gguf_n_tensors(m->gguf); i++) {
        br_text name = br_gguf_tensor_at(m->gguf, i)->name, stem = name;
        bool known = false;

        if ((!ends_with(name, ".bias") && !ends_with(name, ".scale")) ||
            (!in_layer(m, &stem) && !br_text_is(name, "output.bias") &&
             !br_text_is(name, "output.scale") &&
             !br_text_is(name, "output_norm.bias")))
            continue;
        for (size_t w = 0; w < BR_W_COUNT && !known; w++)
            known = weights[w].layered == (stem.p != name.p) &&
                    br_text_is(stem, weights[w].stem);
        if (!known)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "%.*s: models of %s are computed without it here",
                           (int)BR_MIN(name.n, (size_t)100), name.p,
                           m->arch->name);
    }
    return BR_OK;
}

/* Files that go with a model are GGUF files, too: an adapter (LoRA) even names
 * the architecture of the model that it is for. */
static br_code
check_type(const br_model *m, br_status *st)
{
    const br_gguf_kv *kv = br_gguf_find(m->gguf, "general.type");
    br_text t;

    if (!kv || !br_gguf_str(kv, 0, &t) ||
        (!br_text_is(t, "adapter") && !br_text_is(t, "mmproj") &&
         !br_text_is(t, "imatrix")))
        return BR_OK;
    return br_fail(st, BR_E_UNSUPPORTED,
                   "general.type is '%.*s': it goes with a model, and is none",
                   (int)BR_MIN(t.n, 40), t.p);
}

static br_code
set_up(br_model *m, br_status *st)
{
    const br_gguf_tensor *embed;

    BR_TRY(check_type(m, st));
    BR_TRY(find_arch(m, st));
    BR_TRY(br_hparams_read(m, st));
    BR_TRY(find_tensors(m, st));
    BR_TRY(check_unasked(m, st));
    embed = m->global[BR_W_EMBED];
    if (!embed)
        return br_fail(st, BR_E_FORMAT,
                       "token_embd.weight: the file has no such tensor");
    if (embed->n_dims != 2 || embed->dim[1] == 0 || embed->dim[1] > 1 << 24)
        return br_fail(st, BR_E_FORMAT,
                       "token_embd.weight: has to be a matrix of at most "
                       "16777216 rows");
    m->hp.n_vocab = (int64_t)embed->dim[1];
    return BR_OK;
}

static br_code
open_with(br_model **out, br_gguf *g, br_status *st)
{
    br_model *m = br_try_calloc(1, sizeof *m);
    br_code code;

    *out = NULL;
    if (!m) {
        br_gguf_close(g);
        return br_fail(st, BR_E_OOM, "model: out of memory");
    }
    m->gguf = g;
    br_arena_init(&m->arena, 0);
    code = set_up(m, st);
    if (code != BR_OK) {
        br_model_close(m);
        return code;
    }
    *out = m;
    return BR_OK;
}

br_code
br_model_open(br_model **out, const char *path, br_status *st)
{
    return br_model_open_told(out, path, NULL, st);
}

br_code
br_model_open_told(br_model **out, const char *path, const br_hf_desc *d,
                   br_status *st)
{
    br_gguf *g;
    br_code code;

    *out = NULL;
    BR_TRY(br_gguf_open_told(&g, path, d, st));
    code = open_with(out, g, st);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

br_code
br_model_open_mem(br_model **out, const void *p, size_t n, br_status *st)
{
    br_gguf *g;

    *out = NULL;
    BR_TRY(br_gguf_open_mem(&g, p, n, st));
    return open_with(out, g, st);
}

void
br_model_close(br_model *m)
{
    if (!m)
        return;
    br_gguf_close(m->gguf);
    br_arena_fini(&m->arena);
    br_free(m);
}
