/* tok_gguf.c - a tokenizer from the metadata of a GGUF file.
 *
 *   tokenizer.ggml.model     llama gpt2 bert t5 gemma4: the kind
 *   tokenizer.ggml.pre       how gpt2 cuts words; missing: refused, since a
 *                            guess would give wrong ids without a word
 *   tokenizer.ggml.tokens    spellings, with .scores .token_type .merges
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"

#include <math.h>
#include <string.h>

#define PREFIX "tokenizer.ggml."

static const br_gguf_kv *
key(const br_gguf *g, const char *name)
{
    char full[96] = PREFIX;

    br_assert(strlen(name) < sizeof full - sizeof PREFIX && "a known key");
    memcpy(full + sizeof PREFIX - 1, name, strlen(name) + 1);
    return br_gguf_find(g, full);
}

static br_text
text_key(const br_gguf *g, const char *name)
{
    const br_gguf_kv *kv = key(g, name);
    br_text x = {"", 0};

    if (kv && !br_gguf_str(kv, 0, &x))
        x = (br_text){"", 0};
    return x;
}

static br_code
bool_key(const br_gguf *g, const char *name, bool *to, br_status *st)
{
    const br_gguf_kv *kv = key(g, name);
    int64_t v;

    if (!kv)
        return BR_OK;
    if (kv->type == BR_GGUF_ARR || !br_gguf_i64(kv, 0, &v) || v < 0 || v > 1)
        return br_fail(st, BR_E_FORMAT, PREFIX "%s: it is no bool", name);
    *to = v;
    return BR_OK;
}

/* An array with an element for each token, or NULL. */
static br_code
per_token(const br_gguf *g, const char *name, uint64_t n,
          const br_gguf_kv **out, br_status *st)
{
    const br_gguf_kv *kv = key(g, name);

    *out = kv;
    if (!kv)
        return BR_OK;
    if (kv->type != BR_GGUF_ARR)
        return br_fail(st, BR_E_FORMAT, PREFIX "%s: it is no array", name);
    if (kv->n < n)
        return br_fail(st, BR_E_FORMAT,
                       PREFIX "%s: %llu elements for %llu tokens", name,
                       (unsigned long long)kv->n, (unsigned long long)n);
    return BR_OK;
}

/* ---- the vocabulary ---------------------------------------------------- */

static br_code
read_texts(br_tok *t, const br_gguf_kv *kv, br_status *st)
{
    size_t total = 0;
    char *to;
    br_text x;

    for (uint32_t i = 0; i < t->n; i++) {
        if (!br_gguf_str(kv, i, &x))
            return br_fail(st, BR_E_FORMAT, PREFIX "tokens: it holds no texts");
        total += x.n;
        if (total > BR_TOK_MAX_VOCAB_BYTES)
            return br_fail(st, BR_E_LIMIT,
                           PREFIX "tokens: their texts are over %d bytes",
                           BR_TOK_MAX_VOCAB_BYTES);
    }
    to = br_arena_get(&t->arena, total + 1);
    if (!to)
        return br_tok_oom(st);
    for (uint32_t i = 0; i < t->n; i++) {
        br_gguf_str(kv, i, &x);
        memcpy(to, x.p, x.n);
        t->text[i] = (br_text){to, x.n};
        to += x.n;
    }
    return BR_OK;
}

static br_code
read_tokens(br_tok *t, const br_gguf *g, br_status *st)
{
    const br_gguf_kv *kv = key(g, "tokens"), *scores, *types;

    if (!kv || kv->type != BR_GGUF_ARR || kv->elem != BR_GGUF_STR)
        return br_fail(st, BR_E_FORMAT, PREFIX "tokens: %s",
                       kv ? "it is no array of texts" : "missing");
    BR_TRY(br_tok_room(t, kv->n, st));
    BR_TRY(read_texts(t, kv, st));
    BR_TRY(per_token(g, "scores", t->n, &scores, st));
    BR_TRY(per_token(g, "token_type", t->n, &types, st));
    for (uint32_t i = 0; i < t->n; i++) {
        double score;
        int64_t type;

        if (scores) {
            if (!br_gguf_f64(scores, i, &score))
                return br_fail(st, BR_E_FORMAT,
                               PREFIX "scores: it holds no numbers");
            t->score[i] = (float)score;
        }
        if (types) {
            if (!br_gguf_i64(types, i, &type))
                return br_fail(st, BR_E_FORMAT,
                               PREFIX "token_type: it holds no integers");
            if (type < 0 || type >= BR_TOK_TYPE_COUNT)
                return br_fail(st, BR_E_FORMAT,
                               PREFIX "token_type[%u]: %lld is no type", i,
                               (long long)type);
            t->type[i] = (uint8_t)type;
        }
    }
    return br_tok_index_all(t, st);
}

static br_code
read_merges(br_tok *t, const br_gguf *g, br_status *st)
{
    const br_gguf_kv *ours = key(g, "brass_merges");
    const br_gguf_kv *kv = ours ? ours : key(g, "merges");

    if (!kv || kv->type != BR_GGUF_ARR || kv->elem != BR_GGUF_STR)
        return br_fail(st, BR_E_FORMAT, PREFIX "merges: %s",
                       kv ? "it is no array of texts" : "missing");
    if (kv->n > BR_TOK_MAX_MERGES)
        return br_fail(st, BR_E_LIMIT, PREFIX "merges: %llu are more than %d",
                       (unsigned long long)kv->n, BR_TOK_MAX_MERGES);
    if (!br_pairs_room(&t->pairs, &t->arena, kv->n))
        return br_tok_oom(st);
    for (uint64_t i = 0; i < kv->n; i++) {
        br_text x;
        const char *sp;

        if (!br_gguf_str(kv, i, &x))
            return br_fail(st, BR_E_FORMAT, PREFIX "merges: it holds no texts");
        sp = x.n > 2 ? memchr(x.p + 1, ' ', x.n - 1) : NULL;
        if (!sp)
            return br_fail(st, BR_E_FORMAT,
                           PREFIX "merges[%llu]: '%.*s' is not two parts",
                           (unsigned long long)i, (int)BR_MIN(x.n, 40), x.p);
        BR_TRY(br_tok_add_merge(t, i, (br_text){x.p, (size_t)(sp - x.p)},
                                (br_text){sp + 1, x.n - 1 - (size_t)(sp - x.p)},
                                st));
    }
    return BR_OK;
}

/* ---- roles and flags --------------------------------------------------- */

static br_code
read_role(br_tok *t, const br_gguf *g, int role, const char *name,
          br_status *st)
{
    const br_gguf_kv *kv = name ? key(g, name) : NULL;
    int64_t v;

    if (!kv)
        return BR_OK;
    if (kv->type == BR_GGUF_ARR || !br_gguf_i64(kv, 0, &v))
        return br_fail(st, BR_E_FORMAT, PREFIX "%s: it is no integer", name);
    if (v == UINT32_MAX || v == -1) /* how some writers say "none" */
        v = BR_TOK_NONE;
    else if (v < 0 || v >= (int64_t)t->n)
        return br_fail(st, BR_E_FORMAT, PREFIX "%s: %lld is not below %u", name,
                       (long long)v, t->n);
    t->role[role] = (int32_t)v;
    return BR_OK;
}

static br_code
read_roles(br_tok *t, const br_gguf *g, br_status *st)
{
    static const char *const keys[][2] = {
#define X(name, key, key_old, what) {key, key_old},
#include "model/tok_role.def"
#undef X
    };

    for (int i = 0; i < BR_TOK_ROLE_COUNT; i++) {
        if (t->role[i] >= (int32_t)t->n)
            t->role[i] = BR_TOK_NONE; /* a default that is none here */
        BR_TRY(read_role(t, g, i, keys[i][1], st));
        BR_TRY(read_role(t, g, i, keys[i][0], st));
    }
    return BR_OK;
}

static br_code
read_flags(br_tok *t, const br_gguf *g, br_status *st)
{
    BR_TRY(bool_key(g, "add_bos_token", &t->add_bos, st));
    BR_TRY(bool_key(g, "add_eos_token", &t->add_eos, st));
    BR_TRY(bool_key(g, "add_sep_token", &t->add_sep, st));
    BR_TRY(bool_key(g, "add_space_prefix", &t->space_prefix, st));
    BR_TRY(bool_key(g, "brass_space_prefix_once", &t->prefix_once, st));
    BR_TRY(bool_key(g, "brass_space_prefix_lacks", &t->prefix_lacks, st));
    BR_TRY(bool_key(g, "brass_blank_each", &t->blank_each, st));
    BR_TRY(bool_key(g, "brass_fuse_unk", &t->fuse_unk, st));
    BR_TRY(bool_key(g, "brass_nfc", &t->nfc, st));
    BR_TRY(bool_key(g, "remove_extra_whitespaces", &t->squeeze_spaces, st));
    BR_TRY(bool_key(g, "normalizer.lowercase", &t->lower, st));
    t->strip_accents = t->lower;
    BR_TRY(bool_key(g, "normalizer.strip_accents", &t->strip_accents, st));
    if (t->kind == BR_TOK_MPE) {
        /* files of Gemma 4 exist that say no, and mean yes */
        t->add_bos = t->add_bos || br_text_is(text_key(g, "model"), "gemma4");
    }
    return BR_OK;
}

/* Id i of a list in a key of ours. */
static br_code
token_at(const br_tok *t, const br_gguf_kv *kv, const char *name, uint64_t i,
         int32_t *out, br_status *st)
{
    int64_t id;

    if (!br_gguf_i64(kv, i, &id) || id < 0 || id >= (int64_t)t->n)
        return br_fail(st, BR_E_FORMAT, PREFIX "%s[%llu]: it is no token", name,
                       (unsigned long long)i);
    *out = (int32_t)id;
    return BR_OK;
}

/* Tokens that swallow blanks at this side. */
static br_code
read_sides(br_tok *t, const br_gguf *g, const char *name, uint8_t side,
           br_status *st)
{
    const br_gguf_kv *kv = key(g, name);
    int32_t id = 0;

    if (kv && kv->type != BR_GGUF_ARR)
        return br_fail(st, BR_E_FORMAT, PREFIX "%s: it is no array", name);
    for (uint64_t i = 0; kv && i < kv->n; i++) {
        BR_TRY(token_at(t, kv, name, i, &id, st));
        t->strip[id] |= side;
    }
    return BR_OK;
}

/* Tokens that go with BOS, behind it. */
static br_code
read_leads(br_tok *t, const br_gguf *g, br_status *st)
{
    const br_gguf_kv *kv = key(g, "brass_bos_more");

    if (kv && (kv->type != BR_GGUF_ARR || kv->n > BR_TOK_LEADS))
        return br_fail(st, BR_E_FORMAT,
                       PREFIX "brass_bos_more: it is no array of up to %d",
                       BR_TOK_LEADS);
    for (; kv && t->n_lead < kv->n; t->n_lead++)
        BR_TRY(token_at(t, kv, "brass_bos_more", t->n_lead, &t->lead[t->n_lead],
                        st));
    return BR_OK;
}

/* Phi-3's control tokens swallow the blanks after them; GGUF has no place for
 * that, so the model's name has to say it. */
static void
read_strips(br_tok *t, const br_gguf *g)
{
    const br_gguf_kv *kv = br_gguf_find(g, "general.name");
    char low[64];
    br_text name;
    size_t n;

    if (!kv || !br_gguf_str(kv, 0, &name))
        return;
    n = BR_MIN(name.n, sizeof low - 1);
    for (size_t i = 0; i < n; i++)
        low[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] + 32
                                                             : name.p[i]);
    low[n] = 0;
    if (!strstr(low, "phi-3") && !strstr(low, "phi3"))
        return;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->type[i] == BR_TOK_CONTROL || t->type[i] == BR_TOK_USER ||
            br_text_is(t->text[i], "</s>"))
            t->strip[i] = !br_text_is(t->text[i], "<s>") &&
                                  !br_text_is(t->text[i], "<|endoftext|>")
                              ? BR_TOK_RSTRIP
                              : 0;
}

static br_code
read_charsmap(br_tok *t, const br_gguf *g, br_status *st)
{
    const br_gguf_kv *kv = key(g, "precompiled_charsmap");

    if (!kv)
        return BR_OK;
    if (kv->type != BR_GGUF_ARR ||
        (kv->elem != BR_GGUF_U8 && kv->elem != BR_GGUF_I8))
        return br_fail(st, BR_E_FORMAT,
                       PREFIX "precompiled_charsmap: it holds no bytes");
    return br_tok_set_charsmap(t, kv->data, kv->n, st);
}

/* ---- kinds ------------------------------------------------------------- */

static void
defaults(br_tok *t, int32_t bos, int32_t eos, int32_t unk)
{
    t->role[BR_TOK_BOS] = bos;
    t->role[BR_TOK_EOS] = eos;
    t->role[BR_TOK_UNK] = unk;
}

static br_code
set_pre(br_tok *t, const br_gguf *g, const char *pre, br_status *st)
{
    br_text name = pre ? br_text_z(pre) : text_key(g, "pre");

    if (name.n == 0)
        return br_fail(st, BR_E_FORMAT,
                       PREFIX "pre: missing, so how words are cut is not "
                              "known: take a newer file of this model (brass "
                              "tokenize --pre NAME tries a name)");
    return br_tok_set_pre(t, name, st);
}

static br_code
set_kind(br_tok *t, const br_gguf *g, const char *pre, br_status *st)
{
    br_text model = text_key(g, "model");

    if (br_text_is(model, "llama")) {
        t->kind = key(g, "brass_merges") ? BR_TOK_MPE : BR_TOK_SPM;
        t->space_prefix = t->blanks = t->add_bos = true;
        defaults(t, 1, 2, 0);
        return BR_OK;
    }
    if (br_text_is(model, "gpt2")) {
        t->kind = BR_TOK_BPE;
        defaults(t, 11, 11, BR_TOK_NONE);
        return set_pre(t, g, pre, st);
    }
    if (br_text_is(model, "gemma4"))
        return br_tok_set_pre(t, BR_TEXT("gemma4"), st);
    if (br_text_is(model, "bert")) {
        t->kind = BR_TOK_WPM;
        t->add_bos = t->add_sep = t->clean_spaces = t->lower = true;
        defaults(t, 101, BR_TOK_NONE, 100);
        t->role[BR_TOK_SEP] = 102;
        t->role[BR_TOK_PAD] = 0;
        t->role[BR_TOK_MASK] = 103;
        return BR_OK;
    }
    if (br_text_is(model, "t5")) {
        t->kind = BR_TOK_UGM;
        t->add_eos = t->blanks = true;
        defaults(t, BR_TOK_NONE, 1, 2);
        t->role[BR_TOK_PAD] = 0;
        return read_charsmap(t, g, st);
    }
    if (model.n == 0)
        return br_fail(st, BR_E_FORMAT, PREFIX "model: missing");
    return br_fail(st, BR_E_FORMAT,
                   PREFIX "model: '%.*s' is not known: llama gpt2 gemma4 "
                          "bert t5 are",
                   (int)BR_MIN(model.n, 40), model.p);
}

static br_code
load(br_tok *t, const br_gguf *g, const char *pre, br_status *st)
{
    BR_TRY(set_kind(t, g, pre, st));
    BR_TRY(read_tokens(t, g, st));
    if (t->kind == BR_TOK_BPE || t->kind == BR_TOK_MPE)
        BR_TRY(read_merges(t, g, st));
    BR_TRY(read_roles(t, g, st));
    BR_TRY(read_flags(t, g, st));
    read_strips(t, g);
    BR_TRY(read_leads(t, g, st));
    BR_TRY(read_sides(t, g, "brass_lstrip", BR_TOK_LSTRIP, st));
    BR_TRY(read_sides(t, g, "brass_rstrip", BR_TOK_RSTRIP, st));
    return br_tok_finish(t, st);
}

br_code
br_tok_from_gguf(br_tok **out, const br_gguf *g, const char *pre, br_status *st)
{
    br_tok *t;
    br_code code;

    *out = NULL;
    BR_TRY(br_tok_new(&t, st));
    code = load(t, g, pre, st);
    if (code != BR_OK) {
        br_tok_free(t);
        return code;
    }
    *out = t;
    return BR_OK;
}
