/* qmix.c - see qmix.h and qmix.def.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/qmix.h"

#include "base/json.h"
#include "model/quant.h"

#include <string.h>
#include <strings.h>

typedef enum where { WHERE_NONE, WHERE_EIGHTH, WHERE_SPREAD } where;

struct br_qmix {
    const char *name;
    int base, head, more, exps;
    where where;
    uint32_t code;
};

#define FALL(from, to)
#define KEEP(word)
#define MIX(name, base, head, more, exps, where, code)     \
    {#name,       BR_Q_##base,   BR_Q_##head, BR_Q_##more, \
     BR_Q_##exps, WHERE_##where, code},
static const br_qmix mixes[] = {
#include "model/qmix.def"
};
#undef FALL
#undef KEEP
#undef MIX

const br_qmix *
br_qmix_at(size_t i)
{
    return i < BR_COUNT(mixes) ? &mixes[i] : NULL;
}

const br_qmix *
br_qmix_find(br_text name)
{
    for (size_t i = 0; i < BR_COUNT(mixes); i++)
        if (strlen(mixes[i].name) == name.n &&
            strncasecmp(mixes[i].name, name.p, name.n) == 0)
            return &mixes[i];
    return NULL;
}

const char *
br_qmix_name(const br_qmix *m)
{
    return m->name;
}

uint32_t
br_qmix_code(const br_qmix *m)
{
    return m->code;
}

const char *
br_qmix_code_name(int64_t code)
{
    for (size_t i = 0; i < BR_COUNT(mixes); i++)
        if (mixes[i].code == code)
            return mixes[i].name;
    return NULL;
}

/* ---- the model ---------------------------------------------------------- */

static bool
contains(br_text t, const char *word)
{
    return memmem(t.p, t.n, word, strlen(word)) != NULL;
}

static bool
ends(br_text t, const char *word)
{
    size_t n = strlen(word);

    return t.n >= n && memcmp(t.p + t.n - n, word, n) == 0;
}

/* N of "blk.N.", or -1 */
static int64_t
layer_of(br_text name)
{
    const char *dot;
    int64_t n;

    if (name.n < 4 || memcmp(name.p, "blk.", 4) != 0)
        return -1;
    dot = memchr(name.p + 4, '.', name.n - 4);
    if (!dot ||
        !br_json_to_i64((br_text){name.p + 4, (size_t)(dot - name.p - 4)}, &n))
        return -1;
    return n < 0 ? -1 : n;
}

void
br_qmix_model_of(br_qmix_model *q, const br_gguf *g)
{
    *q = (br_qmix_model){.tied = true};
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        br_text name = br_gguf_tensor_at(g, i)->name;
        int64_t il = layer_of(name);

        q->tied = q->tied && !br_text_is(name, "output.weight");
        q->n_layer = BR_MAX(q->n_layer, il < INT32_MAX ? il + 1 : 0);
    }
}

/* ---- one tensor --------------------------------------------------------- */

static bool
kept(const br_gguf_tensor *t)
{
    static const char *const words[] = {
#define MIX(name, base, head, more, exps, where, code)
#define FALL(from, to)
#define KEEP(word) word,
#include "model/qmix.def"
#undef MIX
#undef FALL
#undef KEEP
    };
    uint32_t wide = 0;

    if (!ends(t->name, ".weight") || (br_qinfo_of(t->type)->flags & BR_QF_INT))
        return true;
    for (uint32_t d = 0; d < t->n_dims; d++)
        wide += t->dim[d] > 1;
    for (size_t i = 0; i < BR_COUNT(words); i++)
        if (contains(t->name, words[i]))
            return true;
    return wide < 2 || t->n_dims < 2;
}

static int
fall_back(int type)
{
    switch (type) {
#define MIX(name, base, head, more, exps, where, code)
#define KEEP(word)
#define FALL(from, to) \
    case BR_Q_##from:  \
        return BR_Q_##to;
#include "model/qmix.def"
#undef MIX
#undef FALL
#undef KEEP
    default: br_unreachable("every format of a mixture with blocks falls back");
    }
}

static bool
chosen(where w, int64_t il, int64_t n)
{
    int64_t edge = n / 8;

    switch (w) {
    case WHERE_NONE: return false;
    case WHERE_EIGHTH: return il < edge;
    case WHERE_SPREAD:
        return il < edge || il >= 7 * n / 8 || (il - edge) % 3 == 2;
    }
    br_unreachable("where is one of three");
}

static int
wanted(const br_qmix *m, const br_qmix_model *q, br_text name)
{
    int64_t il = layer_of(name);

    if (br_text_is(name, "output.weight") ||
        (q->tied && br_text_is(name, "token_embd.weight")))
        return m->head;
    if (ends(name, "_exps.weight") && m->exps != m->base)
        return m->exps;
    if ((contains(name, ".attn_v.") || contains(name, ".ffn_down")) &&
        il >= 0 && chosen(m->where, il, q->n_layer))
        return m->more;
    return ends(name, "_exps.weight") ? m->exps : m->base;
}

int
br_qmix_type(const br_qmix *m, const br_qmix_model *q, const br_gguf_tensor *t,
             bool *fell)
{
    int type;

    *fell = false;
    if (kept(t))
        return t->n_dims < 2 && (t->type == BR_Q_F16 || t->type == BR_Q_BF16)
                   ? BR_Q_F32
                   : t->type;
    type = wanted(m, q, t->name);
    while (t->dim[0] % br_qinfo_of(type)->elems != 0) {
        type = fall_back(type);
        *fell = true;
    }
    return type;
}
