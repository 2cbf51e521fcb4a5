/* tok_write.c - see tok_write.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_write.h"

#include "model/tok_int.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "tokenizer.ggml."

/* What a key needs, all in one arena; gone after the keys are set. */
typedef struct out {
    const br_tok *t;
    br_gguf_writer *w;
    br_arena a;
    uint32_t n; /* tokens, added ones too */
    br_status *st;
} out;

/* ---- how words are cut -------------------------------------------------- */

static bool
same_passes(const br_tok *t, const br_pre *row)
{
    size_t n = 0;

    while (n < BR_TOK_MAX_PASSES && row->passes[n])
        n++;
    if (n != t->n_pass)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!t->pass[i].scan || t->pass[i].drop_matches ||
            t->pass[i].drop_gaps ||
            (t->pass[i].scan != row->passes[i] &&
             br_pre_near(t->pass[i].scan) != row->passes[i]))
            return false;
    return true;
}

/* Of rows that cut alike, one whose other habits are alike as well; names
 * that every engine knows come first. */
const char *
br_tok_pre_like(const br_tok *t)
{
    static const char *const common[] = {"gpt-2", "llama-bpe", "qwen2"};
    const char *name, *found = NULL;
    size_t n_common = BR_COUNT(common);

    for (size_t i = 0;; i++) {
        const br_pre *row;
        bool merged, dirty;

        name = i < n_common ? common[i] : br_tok_pre_at(i - n_common);
        if (!name)
            return found;
        row = br_pre_find(br_text_z(name));
        if (!row || !same_passes(t, row))
            continue;
        merged = row->flags & BR_PRE_MERGED;
        dirty = row->flags & BR_PRE_DIRTY;
        if (merged != t->ignore_merges || (row->flags & BR_PRE_BLANK))
            continue;
        if (dirty == !t->clean_spaces)
            return name;
        if (!found)
            found = name;
    }
}

/* ---- the vocabulary ----------------------------------------------------- */

static br_code
put_tokens(out *o)
{
    br_text *text = br_arena_new(&o->a, br_text, o->n);
    int32_t *type = br_arena_new(&o->a, int32_t, o->n);
    br_str pad = {0};

    if (!text || !type)
        return br_tok_oom(o->st);
    for (uint32_t i = 0; i < o->t->n; i++) {
        text[i] = o->t->text[i];
        type[i] = o->t->type[i];
    }
    for (uint32_t i = 0; i < o->n; i++) {
        if (text[i].n > 0)
            continue; /* else a gap, or past the end */
        br_str_clear(&pad);
        br_str_printf(&pad, "[PAD%u]", i);
        text[i].n = pad.n;
        text[i].p = pad.oom ? NULL : br_arena_str(&o->a, pad.at, pad.n);
        type[i] = BR_TOK_UNUSED;
        if (!text[i].p) {
            br_str_fini(&pad);
            return br_tok_oom(o->st);
        }
    }
    br_str_fini(&pad);
    br_gguf_w_strs(o->w, PREFIX "tokens", text, o->n);
    br_gguf_w_array(o->w, PREFIX "token_type", BR_GGUF_I32, type, o->n);
    return BR_OK;
}

static int
by_rank(const void *a, const void *b)
{
    const br_tok_pair *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The merges, in order; *n of them. */
static br_tok_pair *
merges(out *o, size_t *n)
{
    const br_tok_pairs *x = &o->t->pairs;
    size_t slots = x->mask ? (size_t)x->mask + 1 : 0;
    br_tok_pair *p = br_arena_new(&o->a, br_tok_pair, slots + 1);

    *n = 0;
    for (size_t i = 0; p && i < slots; i++)
        if (x->slots[i].rank != UINT32_MAX)
            p[(*n)++] = x->slots[i];
    if (p)
        qsort(p, *n, sizeof *p, by_rank);
    return p;
}

static br_code
put_merges(out *o, const char *key)
{
    size_t n, m = 0;
    br_tok_pair *p = merges(o, &n);
    br_text *text = br_arena_new(&o->a, br_text, n + 1);

    if (!p || !text)
        return br_tok_oom(o->st);
    for (size_t i = 0; i < n; i++) {
        br_text l = o->t->text[p[i].left], r = o->t->text[p[i].right];
        char *both = br_arena_get(&o->a, l.n + 1 + r.n);

        if (memchr(l.p, ' ', l.n) || memchr(r.p, ' ', r.n))
            continue; /* U+2581 stands for it in every text */
        if (!both)
            return br_tok_oom(o->st);
        memcpy(both, l.p, l.n);
        both[l.n] = ' ';
        memcpy(both + l.n + 1, r.p, r.n);
        text[m++] = (br_text){both, l.n + 1 + r.n};
    }
    br_gguf_w_strs(o->w, key, text, m);
    return BR_OK;
}

/* Text may become this token by merges. */
static bool
merges_to(const br_tok *t, int32_t id)
{
    return id >= 0 && t->type[id] == BR_TOK_NORMAL;
}

/* Whoever goes by scores merges any two neighbours that make a token. */
static bool
all_merge(const br_tok *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        br_text x = t->text[i];

        if (!merges_to(t, (int32_t)i))
            continue;
        for (size_t k = 1; k < x.n; k++) {
            int32_t l, r;

            if (((uint8_t)x.p[k] & 0xC0) == 0x80) /* within a character */
                continue;
            l = br_index_find(t, x.p, k);
            r = br_index_find(t, x.p + k, x.n - k);
            if (merges_to(t, l) && merges_to(t, r) &&
                !br_pairs_find(&t->pairs, (uint32_t)l, (uint32_t)r))
                return false;
        }
    }
    return true;
}

/* *yes: scores, which tokens have, say what merges say, which pairs have: all
 * pairs that make a token are there, one behind the other. So it is of what
 * SentencePiece made, and not of a BPE that was trained with U+2581. */
static br_code
scores_say_it(out *o, bool *yes)
{
    size_t n;
    br_tok_pair *p = merges(o, &n);
    bool *seen = br_arena_new(&o->a, bool, o->n);

    if (!p || !seen)
        return br_tok_oom(o->st);
    *yes = all_merge(o->t);
    for (size_t i = 0; i < n && *yes; i++) {
        *yes = (i && p[i].made == p[i - 1].made) || !seen[p[i].made];
        seen[p[i].made] = true;
    }
    return BR_OK;
}

static br_code
put_scores(out *o)
{
    size_t n;
    br_tok_pair *p = merges(o, &n);
    float *score = br_arena_new(&o->a, float, o->n);

    if (!p || !score)
        return br_tok_oom(o->st);
    for (size_t i = n; i-- > 0;) /* backwards: the first rank stays */
        score[p[i].made] = -(float)p[i].rank - 1;
    br_gguf_w_array(o->w, PREFIX "scores", BR_GGUF_F32, score, o->n);
    return BR_OK;
}

/* ---- the rest ----------------------------------------------------------- */

/* Ids of the tokens that swallow blanks at this side. */
static br_code
put_strips(out *o, const char *key, uint8_t side)
{
    uint32_t *ids = br_arena_new(&o->a, uint32_t, o->t->n + 1), n = 0;

    if (!ids)
        return br_tok_oom(o->st);
    for (uint32_t i = 0; i < o->t->n; i++)
        if (o->t->strip[i] & side)
            ids[n++] = i;
    if (n)
        br_gguf_w_array(o->w, key, BR_GGUF_U32, ids, n);
    return BR_OK;
}

/* Keys of ours: nobody has any for these, and others pass over them. */
static br_code
put_habits(out *o)
{
    if (o->t->space_prefix && o->t->prefix_once)
        br_gguf_w_bool(o->w, PREFIX "brass_space_prefix_once", true);
    if (o->t->space_prefix && o->t->prefix_lacks)
        br_gguf_w_bool(o->w, PREFIX "brass_space_prefix_lacks", true);
    if (o->t->blank_each)
        br_gguf_w_bool(o->w, PREFIX "brass_blank_each", true);
    if (o->t->fuse_unk)
        br_gguf_w_bool(o->w, PREFIX "brass_fuse_unk", true);
    if (o->t->nfc)
        br_gguf_w_bool(o->w, PREFIX "brass_nfc", true);
    if (o->t->n_lead)
        br_gguf_w_array(o->w, PREFIX "brass_bos_more", BR_GGUF_I32, o->t->lead,
                        o->t->n_lead);
    BR_TRY(put_strips(o, PREFIX "brass_lstrip", BR_TOK_LSTRIP));
    return put_strips(o, PREFIX "brass_rstrip", BR_TOK_RSTRIP);
}

static void
put_roles(out *o)
{
    static const char *const keys[] = {
#define X(name, key, key_old, what) PREFIX key,
#include "model/tok_role.def"
#undef X
    };

    for (int i = 0; i < BR_TOK_ROLE_COUNT; i++)
        if (o->t->role[i] >= 0)
            br_gguf_w_u32(o->w, keys[i], (uint32_t)o->t->role[i]);
    br_gguf_w_bool(o->w, PREFIX "add_bos_token", o->t->add_bos);
    br_gguf_w_bool(o->w, PREFIX "add_eos_token",
                   o->t->add_eos || o->t->add_sep);
    br_gguf_w_bool(o->w, PREFIX "add_space_prefix", o->t->space_prefix);
}

static br_code
put_bpe(out *o)
{
    const char *pre = br_tok_pre_like(o->t);

    if (!pre)
        return br_fail(o->st, BR_E_UNSUPPORTED,
                       "tokenizer.json: pre_tokenizer: GGUF has no name for "
                       "how it cuts words");
    br_gguf_w_str(o->w, PREFIX "model", BR_TEXT("gpt2"));
    br_gguf_w_str(o->w, PREFIX "pre", br_text_z(pre));
    BR_TRY(put_tokens(o));
    return put_merges(o, PREFIX "merges");
}

static br_code
put_spm(out *o)
{
    bool yes = false;

    if (!o->t->blanks)
        return br_fail(o->st, BR_E_UNSUPPORTED,
                       "tokenizer.json: BPE whose spaces are neither bytes nor "
                       "U+2581");
    br_gguf_w_str(o->w, PREFIX "model", BR_TEXT("llama"));
    br_gguf_w_str(o->w, PREFIX "pre", BR_TEXT("default"));
    BR_TRY(put_tokens(o));
    BR_TRY(put_scores(o));
    BR_TRY(scores_say_it(o, &yes));
    return yes ? BR_OK : put_merges(o, PREFIX "brass_merges");
}

br_code
br_tok_write(const br_tok *t, uint64_t rows, br_gguf_writer *w, br_status *st)
{
    out o = {.t = t, .w = w, .st = st};
    br_code code;

    if (t->n > rows || rows > BR_TOK_MAX_TOKENS)
        return br_fail(st, BR_E_FORMAT,
                       "tokenizer.json: %u tokens, but the embedding table has "
                       "%llu rows (at most %d)",
                       t->n, (unsigned long long)rows, BR_TOK_MAX_TOKENS);
    if (t->kind != BR_TOK_BPE && t->kind != BR_TOK_MPE)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "tokenizer.json: %s is not written",
                       br_tok_kind_name(t->kind));
    o.n = (uint32_t)rows;
    br_arena_init(&o.a, 0);
    code = t->kind == BR_TOK_BPE ? put_bpe(&o) : put_spm(&o);
    if (code == BR_OK) {
        put_roles(&o);
        code = put_habits(&o);
    }
    br_arena_fini(&o.a);
    return code;
}
