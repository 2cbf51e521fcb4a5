/* tok_json.c - a tokenizer from a Hugging Face tokenizer.json.
 *
 *   model.vocab, model.merges   pulled, hundreds of thousands of elements
 *   everything else             small trees: added_tokens, normalizer,
 *                               pre_tokenizer, post_processor
 *
 * A part whose meaning is not implemented is refused by its name: a tokenizer
 * that is nearly right gives a model that is nearly mad.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_json.h"

#include "base/map.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

const char *
br_tj_str(const br_json *obj, const char *key)
{
    const br_json *v = obj ? br_json_get(obj, key) : NULL;

    return v && v->kind == BR_J_STR ? v->s : NULL;
}

bool
br_tj_bool(const br_json *obj, const char *key, bool dflt)
{
    const br_json *v = obj ? br_json_get(obj, key) : NULL;

    return v && v->kind == BR_J_BOOL ? v->b : dflt;
}

bool
br_tj_is(const br_json *obj, const char *type)
{
    const char *is = br_tj_str(obj, "type");

    return is && strcmp(is, type) == 0;
}

/* ---- reading ----------------------------------------------------------- */

static br_code
bad(br_tj *x, br_json_reader *r, const char *what)
{
    int line, column;

    if (x->st->code != BR_OK)
        return x->st->code; /* the reader has said what is wrong */
    br_json_where(r, &line, &column);
    return br_fail(x->st, BR_E_FORMAT, "tokenizer.json: line %d column %d: %s",
                   line, column, what);
}

static bool
keep(br_tj *x, br_text t, br_text *out)
{
    out->p = br_arena_str(&x->arena, t.p, t.n);
    out->n = t.n;
    return out->p != NULL;
}

/* {"piece": id, ...} */
static br_code
read_vocab_object(br_tj *x, br_json_reader *r)
{
    br_json_tok tok;
    br_tj_piece p = {{NULL, 0}, 0, 0};

    while ((tok = br_json_next(r)) == BR_JSON_KEY) {
        if (!keep(x, r->text, &p.text))
            return br_tok_oom(x->st);
        if (br_json_next(r) != BR_JSON_INT || !br_json_to_i64(r->text, &p.id) ||
            p.id < 0 || p.id >= BR_TOK_MAX_TOKENS)
            return bad(x, r,
                       "model.vocab: an id is a number from 0 to "
                       "4194303");
        if (!br_vec_push(&x->pieces, p))
            return br_tok_oom(x->st);
    }
    return tok == BR_JSON_OBJ_CLOSE ? BR_OK : bad(x, r, "model.vocab");
}

/* [["piece", score], ...] */
static br_code
read_vocab_array(br_tj *x, br_json_reader *r)
{
    br_json_tok tok;
    br_tj_piece p = {{NULL, 0}, 0, 0};

    x->has_scores = true;
    for (; (tok = br_json_next(r)) == BR_JSON_ARR_OPEN; p.id++) {
        if (br_json_next(r) != BR_JSON_STRING)
            return bad(x, r, "model.vocab: an element is [\"piece\", score]");
        if (!keep(x, r->text, &p.text))
            return br_tok_oom(x->st);
        tok = br_json_next(r);
        if ((tok != BR_JSON_INT && tok != BR_JSON_FLOAT) ||
            !br_json_to_f64(r->text, &p.score) ||
            br_json_next(r) != BR_JSON_ARR_CLOSE)
            return bad(x, r, "model.vocab: an element is [\"piece\", score]");
        if (p.id >= BR_TOK_MAX_TOKENS)
            return bad(x, r, "model.vocab: more than 4194304 tokens");
        if (!br_vec_push(&x->pieces, p))
            return br_tok_oom(x->st);
    }
    return tok == BR_JSON_ARR_CLOSE ? BR_OK : bad(x, r, "model.vocab");
}

/* "left right" or ["left", "right"] */
static br_code
read_merge(br_tj *x, br_json_reader *r, br_json_tok tok)
{
    br_tj_merge m;

    if (tok == BR_JSON_STRING) {
        const char *sp =
            r->text.n > 2 ? memchr(r->text.p + 1, ' ', r->text.n - 1) : NULL;
        size_t n;

        if (!sp)
            return bad(x, r, "model.merges: an element is \"left right\"");
        n = (size_t)(sp - r->text.p);
        if (!keep(x, (br_text){r->text.p, n}, &m.left) ||
            !keep(x, (br_text){sp + 1, r->text.n - n - 1}, &m.right))
            return br_tok_oom(x->st);
    } else {
        if (tok != BR_JSON_ARR_OPEN || br_json_next(r) != BR_JSON_STRING)
            return bad(x, r, "model.merges: an element is two texts");
        if (!keep(x, r->text, &m.left))
            return br_tok_oom(x->st);
        if (br_json_next(r) != BR_JSON_STRING)
            return bad(x, r, "model.merges: an element is two texts");
        if (!keep(x, r->text, &m.right))
            return br_tok_oom(x->st);
        if (br_json_next(r) != BR_JSON_ARR_CLOSE)
            return bad(x, r, "model.merges: an element is two texts");
    }
    if (x->merges.n >= BR_TOK_MAX_MERGES)
        return br_fail(x->st, BR_E_LIMIT,
                       "model.merges: there are more than %d",
                       BR_TOK_MAX_MERGES);
    return br_vec_push(&x->merges, m) ? BR_OK : br_tok_oom(x->st);
}

static br_code
read_merges(br_tj *x, br_json_reader *r)
{
    br_json_tok tok;

    if (br_json_next(r) != BR_JSON_ARR_OPEN)
        return bad(x, r, "model.merges: it is no array");
    while ((tok = br_json_next(r)) != BR_JSON_ARR_CLOSE)
        BR_TRY(read_merge(x, r, tok));
    return BR_OK;
}

static br_code
read_vocab(br_tj *x, br_json_reader *r)
{
    br_json_tok tok = br_json_next(r);

    x->pieces.n = 0; /* a second one replaces the first, as in a dict */
    if (tok == BR_JSON_OBJ_OPEN)
        return read_vocab_object(x, r);
    if (tok == BR_JSON_ARR_OPEN)
        return read_vocab_array(x, r);
    return bad(x, r, "model.vocab: it is no object and no array");
}

static br_code
read_model(br_tj *x, br_json_reader *r)
{
    br_json *rest = br_json_new(&x->arena, BR_J_OBJ), *v;
    br_json_tok tok;
    char key[64];

    if (!rest)
        return br_tok_oom(x->st);
    if (br_json_next(r) != BR_JSON_OBJ_OPEN)
        return bad(x, r, "model: it is no object");
    while ((tok = br_json_next(r)) == BR_JSON_KEY) {
        if (br_text_is(r->text, "vocab")) {
            BR_TRY(read_vocab(x, r));
        } else if (br_text_is(r->text, "merges")) {
            x->merges.n = 0;
            BR_TRY(read_merges(x, r));
        } else if (r->text.n < sizeof key) {
            memcpy(key, r->text.p, r->text.n);
            key[r->text.n] = 0;
            BR_TRY(br_json_value(&v, &x->arena, r, BR_JSON_ERROR));
            if (!br_json_put(&x->arena, rest, key, v))
                return br_tok_oom(x->st);
        } else {
            BR_TRY(br_json_skip(r));
        }
    }
    x->model = rest;
    return tok == BR_JSON_OBJ_CLOSE ? BR_OK : bad(x, r, "model");
}

static const br_json **
section(br_tj *x, br_text key)
{
    if (br_text_is(key, "added_tokens"))
        return &x->added;
    if (br_text_is(key, "normalizer"))
        return &x->normalizer;
    if (br_text_is(key, "pre_tokenizer"))
        return &x->pre_tokenizer;
    if (br_text_is(key, "post_processor"))
        return &x->post_processor;
    return NULL;
}

static br_code
read_document(br_tj *x, br_json_reader *r)
{
    br_json_tok tok;
    br_json *v;

    if (br_json_next(r) != BR_JSON_OBJ_OPEN)
        return bad(x, r, "it is no object");
    while ((tok = br_json_next(r)) == BR_JSON_KEY) {
        const br_json **to = section(x, r->text);

        if (br_text_is(r->text, "model")) {
            BR_TRY(read_model(x, r));
        } else if (to) {
            BR_TRY(br_json_value(&v, &x->arena, r, BR_JSON_ERROR));
            *to = v->kind == BR_J_NULL ? NULL : v;
        } else {
            BR_TRY(br_json_skip(r));
        }
    }
    if (tok != BR_JSON_OBJ_CLOSE || br_json_next(r) != BR_JSON_END)
        return bad(x, r, "the end of the object is missing");
    if (!x->model)
        return br_fail(x->st, BR_E_FORMAT, "tokenizer.json: no model");
    return BR_OK;
}

/* ---- the vocabulary ---------------------------------------------------- */

static br_code
added_id(br_tj *x, const br_json *a, uint32_t i, int64_t *id)
{
    const br_json *v = br_json_get(a, "id"), *s = br_json_get(a, "content");

    if (!v || v->kind != BR_J_INT || v->i < 0 || v->i >= BR_TOK_MAX_TOKENS ||
        !s || s->kind != BR_J_STR || s->n == 0)
        return br_fail(x->st, BR_E_FORMAT,
                       "added_tokens[%u]: it needs an id below %d and a "
                       "content",
                       i, BR_TOK_MAX_TOKENS);
    if (br_tj_bool(a, "single_word", false))
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "added_tokens[%u]: single_word is not supported", i);
    *id = v->i;
    return BR_OK;
}

/* One of the two lists of tokens beside the vocabulary: its first. */
static const br_json *
first_added(const br_tj *x, int list)
{
    const br_json *l = list ? x->more : x->added;

    return l && l->kind == BR_J_ARR ? l->child : NULL;
}

static br_code
put_more(br_tj *x, const br_json *m, br_text text, int64_t id)
{
    static const char *const flags[] = {"special", "lstrip", "rstrip",
                                        "single_word"};
    br_json *o = br_json_new(&x->arena, BR_J_OBJ);
    bool ok =
        o && br_json_put(&x->arena, o, "id", br_json_new_i64(&x->arena, id)) &&
        br_json_put(&x->arena, o, "content", br_json_new_str(&x->arena, text));

    for (size_t i = 0; ok && i < BR_COUNT(flags); i++) {
        br_json *b = br_json_new(&x->arena, BR_J_BOOL);

        if (b)
            b->b = br_tj_bool(m, flags[i], false);
        ok = br_json_put(&x->arena, o, flags[i], b);
    }
    if (!x->more)
        x->more = br_json_new(&x->arena, BR_J_ARR);
    return ok && x->more && br_json_append(x->more, o) ? BR_OK
                                                       : br_tok_oom(x->st);
}

/* *id becomes that of the vocabulary's piece with this text, if there is one. ids: of
 * all pieces, once somebody asks: both lists may be long. */
static br_code
find_piece(br_tj *x, br_map *ids, br_text text, int64_t *id)
{
    const br_map_value *found;

    for (size_t i = 0, n = ids->n_live ? 0 : x->pieces.n; i < n; i++) {
        br_map_value *v = br_map_put(ids, x->pieces.at[i].text, NULL);

        if (!v)
            return br_tok_oom(x->st);
        v->i = x->pieces.at[i].id;
    }
    found = br_map_get(ids, text);
    if (found)
        *id = found->i;
    return BR_OK;
}

/* What only tokenizer_config.json calls a token is one, as its makers' program
 * has it: of the vocabulary, where the text is there, else of the id that the
 * config gives. */
static br_code
add_of_config(br_tj *x, const br_json *decoder, br_map *known, br_map *ids)
{
    for (const br_json *a = first_added(x, 0); a; a = a->next) {
        const br_json *s = br_json_get(a, "content");

        if (s && s->kind == BR_J_STR &&
            !br_map_put(known, (br_text){s->s, s->n}, NULL))
            return br_tok_oom(x->st);
    }
    for (const br_json *m = decoder->child; m; m = m->next) {
        const char *s = m->kind == BR_J_OBJ ? br_tj_str(m, "content") : NULL;
        br_text text = br_text_z(s ? s : "");
        int64_t id;

        if (!text.n || !br_json_to_i64((br_text){m->key, m->key_n}, &id))
            return br_fail(x->st, BR_E_FORMAT,
                           "tokenizer_config.json: added_tokens_decoder: "
                           "'%.40s' is no id of a token with a content",
                           m->key);
        if (br_map_get(known, text))
            continue;
        BR_TRY(find_piece(x, ids, text, &id));
        BR_TRY(put_more(x, m, text, id));
    }
    return BR_OK;
}

static br_code
read_config_tokens(br_tj *x)
{
    const br_json *decoder =
        x->config ? br_json_get(x->config, "added_tokens_decoder") : NULL;
    br_map known = {0}, ids = {0};
    br_code code;

    if (!decoder || decoder->kind != BR_J_OBJ)
        return BR_OK;
    code = add_of_config(x, decoder, &known, &ids);
    br_map_fini(&known);
    br_map_fini(&ids);
    return code;
}

/* Room up to the largest id; ids may leave gaps, but not mostly gaps. */
static br_code
make_room(br_tj *x)
{
    uint64_t n = 0, entries = x->pieces.n;
    int64_t id = 0;
    uint32_t i = 0;

    for (size_t k = 0; k < x->pieces.n; k++)
        n = BR_MAX(n, (uint64_t)x->pieces.at[k].id + 1);
    if (x->added && x->added->kind != BR_J_ARR)
        return br_fail(x->st, BR_E_FORMAT, "added_tokens: it is no array");
    for (int list = 0; list < 2; list++, i = 0)
        for (const br_json *a = first_added(x, list); a;
             a = a->next, i++, entries++) {
            BR_TRY(added_id(x, a, i, &id));
            n = BR_MAX(n, (uint64_t)id + 1);
        }
    if (n > 2 * entries + 1024)
        return br_fail(x->st, BR_E_FORMAT,
                       "tokenizer.json: the largest id is %llu, of %llu tokens",
                       (unsigned long long)n - 1, (unsigned long long)entries);
    BR_TRY(br_tok_room(x->t, n, x->st));
    memset(x->t->type, BR_TOK_UNUSED, n);
    return BR_OK;
}

static br_code
set_text(br_tj *x, uint32_t id, br_text text, const char *where)
{
    br_tok *t = x->t;

    if (t->text[id].n && !br_text_eq(t->text[id], text))
        return br_fail(x->st, BR_E_FORMAT, "%s: id %u is '%.*s' and '%.*s'",
                       where, id, (int)BR_MIN(t->text[id].n, 40), t->text[id].p,
                       (int)BR_MIN(text.n, 40), text.p);
    t->text[id].p = br_arena_str(&t->arena, text.p, text.n);
    t->text[id].n = text.n;
    return t->text[id].p ? BR_OK : br_tok_oom(x->st);
}

/* WordPiece: "##ing" goes on, so it loses its marks; all else begins a word
 * and gets a blank. */
static br_code
set_word_piece(br_tj *x, const br_tj_piece *p)
{
    br_text s = p->text;
    br_str both = {0};
    br_code code;

    if (s.n > 2 && memcmp(s.p, "##", 2) == 0)
        return set_text(x, (uint32_t)p->id, (br_text){s.p + 2, s.n - 2},
                        "model.vocab");
    br_str_put(&both, BR_TOK_BLANK, BR_TOK_BLANK_BYTES);
    br_str_put(&both, s.p, s.n);
    code = both.oom ? br_tok_oom(x->st)
                    : set_text(x, (uint32_t)p->id, (br_text){both.at, both.n},
                               "model.vocab");
    br_str_fini(&both);
    return code;
}

static bool
is_byte(br_text s)
{
    return s.n == 6 && memcmp(s.p, "<0x", 3) == 0 && s.p[5] == '>';
}

static br_code
set_pieces(br_tj *x)
{
    br_tok *t = x->t;
    const char *unk = br_tj_str(x->model, "unk_token");

    for (size_t i = 0; i < x->pieces.n; i++) {
        const br_tj_piece *p = &x->pieces.at[i];

        t->score[p->id] = (float)p->score;
        if (br_text_eq(t->text[p->id], p->text) && p->text.n)
            continue; /* added_tokens has said what it is */
        if (t->kind == BR_TOK_WPM && !(unk && br_text_is(p->text, unk)))
            BR_TRY(set_word_piece(x, p));
        else
            BR_TRY(set_text(x, (uint32_t)p->id, p->text, "model.vocab"));
        t->type[p->id] = t->kind == BR_TOK_MPE && is_byte(p->text)
                             ? BR_TOK_BYTE
                             : BR_TOK_NORMAL;
    }
    return BR_OK;
}

static br_code
set_added(br_tj *x, int list)
{
    br_tok *t = x->t;

    for (const br_json *a = first_added(x, list); a; a = a->next) {
        const br_json *s = br_json_get(a, "content");
        uint32_t id = (uint32_t)br_json_get(a, "id")->i;

        BR_TRY(set_text(x, id, (br_text){s->s, s->n}, "added_tokens"));
        t->type[id] =
            br_tj_bool(a, "special", false) ? BR_TOK_CONTROL : BR_TOK_USER;
        t->strip[id] =
            (uint8_t)((br_tj_bool(a, "lstrip", false) ? BR_TOK_LSTRIP : 0) |
                      (br_tj_bool(a, "rstrip", false) ? BR_TOK_RSTRIP : 0));
    }
    return BR_OK;
}

/* ---- roles ------------------------------------------------------------- */

/* "</s>" or {"content": "</s>", ...} */
static const char *
token_of(const br_json *config, const char *key)
{
    const br_json *v = config ? br_json_get(config, key) : NULL;

    if (v && v->kind == BR_J_OBJ)
        return br_tj_str(v, "content");
    return v && v->kind == BR_J_STR ? v->s : NULL;
}

static br_code
set_role(br_tj *x, br_tok_role role, const char *name, const char *where)
{
    int32_t id;

    if (!name)
        return BR_OK;
    id = br_index_find(x->t, name, strlen(name));
    if (id < 0)
        return br_fail(x->st, BR_E_FORMAT, "%s: '%.40s' is no token", where,
                       name);
    x->t->role[role] = id;
    return BR_OK;
}

/* Where there is no post-processor, or the class makes one of its own whatever
 * the folder's is (DeepSeek's distilled Qwens and Llamas: theirs adds none). */
static void
set_added_around(br_tj *x)
{
    static const char *const own[] = {"Llama", "CodeLlama", "Gemma", "Cohere"};
    const char *name = br_tj_str(x->config, "tokenizer_class");
    bool rules = !x->post_processor;
    br_tok *t = x->t;

    for (size_t i = 0; name && i < BR_COUNT(own); i++)
        rules |= strncmp(name, own[i], strlen(own[i])) == 0;
    if (!x->config || !rules)
        return;
    t->add_bos = br_tj_bool(x->config, "add_bos_token", t->add_bos);
    if (br_json_get(x->config, "add_eos_token")) {
        t->add_eos = br_tj_bool(x->config, "add_eos_token", false);
        t->add_sep = false;
    }
}

static br_code
set_roles(br_tj *x)
{
    static const struct {
        br_tok_role role;
        const char *key;
    } keys[] = {{BR_TOK_BOS, "bos_token"}, {BR_TOK_EOS, "eos_token"},
                {BR_TOK_UNK, "unk_token"}, {BR_TOK_PAD, "pad_token"},
                {BR_TOK_SEP, "sep_token"}, {BR_TOK_MASK, "mask_token"}};
    const br_json *unk = br_json_get(x->model, "unk_id");

    for (size_t i = 0; i < BR_COUNT(keys); i++)
        BR_TRY(set_role(x, keys[i].role, token_of(x->config, keys[i].key),
                        keys[i].key));
    BR_TRY(set_role(x, BR_TOK_UNK, br_tj_str(x->model, "unk_token"),
                    "model.unk_token"));
    if (unk && unk->kind == BR_J_INT) {
        if (unk->i < 0 || unk->i >= (int64_t)x->t->n)
            return br_fail(x->st, BR_E_FORMAT,
                           "model.unk_id: %lld is not below %u",
                           (long long)unk->i, x->t->n);
        x->t->role[BR_TOK_UNK] = (int32_t)unk->i;
    }
    if (x->t->role[BR_TOK_UNK] >= 0)
        x->t->type[x->t->role[BR_TOK_UNK]] = BR_TOK_UNKNOWN;
    BR_TRY(br_tj_post_processor(x));
    x->t->clean_spaces =
        br_tj_bool(x->config, "clean_up_tokenization_spaces", false);
    set_added_around(x);
    return BR_OK;
}

/* ---- all of it --------------------------------------------------------- */

static br_code
build(br_tj *x)
{
    br_tok *t = x->t;

    BR_TRY(br_tj_kind(x));
    BR_TRY(read_config_tokens(x));
    BR_TRY(make_room(x));
    BR_TRY(set_added(x, 0));
    BR_TRY(set_added(x, 1));
    BR_TRY(set_pieces(x));
    BR_TRY(br_tok_index_all(t, x->st));
    if (t->kind == BR_TOK_BPE || t->kind == BR_TOK_MPE) {
        if (!br_pairs_room(&t->pairs, &t->arena, x->merges.n))
            return br_tok_oom(x->st);
        for (size_t i = 0; i < x->merges.n; i++)
            BR_TRY(br_tok_add_merge(t, i, x->merges.at[i].left,
                                    x->merges.at[i].right, x->st));
        t->ignore_merges = br_tj_bool(x->model, "ignore_merges", false);
        t->fuse_unk =
            t->kind == BR_TOK_MPE && br_tj_bool(x->model, "fuse_unk", false);
    }
    BR_TRY(br_tj_normalizer(x));
    BR_TRY(br_tj_pre_tokenizer(x));
    BR_TRY(set_roles(x));
    return br_tok_finish(t, x->st);
}

/* What only says where in a document: in which. */
static br_code
in_file(br_tj *x, const char *name, br_code code)
{
    if (code != BR_OK && strncmp(x->st->msg, name, strlen(name)) != 0)
        return br_prefix(x->st, "%s", name);
    return code;
}

static br_code
load(br_tj *x, br_text json, br_text config)
{
    br_json_reader r;
    br_json *v;
    br_code code;

    if (json.n > BR_TOK_MAX_JSON)
        return br_fail(x->st, BR_E_LIMIT,
                       "tokenizer.json: %zu bytes are more than %d", json.n,
                       BR_TOK_MAX_JSON);
    if (config.n) {
        code = br_json_parse(&v, &x->arena, config.p, config.n, 0, x->st);
        BR_TRY(in_file(x, "tokenizer_config.json", code));
        if (v->kind != BR_J_OBJ)
            return br_fail(x->st, BR_E_FORMAT,
                           "tokenizer_config.json: it is no object");
        x->config = v;
    }
    br_json_open(&r, json.p, json.n, 0, x->st);
    code = read_document(x, &r);
    br_json_close(&r);
    BR_TRY(in_file(x, "tokenizer.json", code));
    return build(x);
}

br_code
br_tok_from_json(br_tok **out, br_text json, br_text config, br_status *st)
{
    br_status own = {0};
    br_tj x = {.st = st ? st : &own};
    br_code code;

    *out = NULL;
    BR_TRY(br_tok_new(&x.t, x.st));
    /* a vocabulary's text and 64 bytes of tree for each of a section's */
    br_arena_init(&x.arena, 2 * (size_t)BR_TOK_MAX_JSON);
    code = load(&x, json, config);
    br_vec_fini(&x.pieces);
    br_vec_fini(&x.merges);
    br_arena_fini(&x.arena);
    if (code != BR_OK) {
        br_tok_free(x.t);
        return code;
    }
    *out = x.t;
    return BR_OK;
}

/* ---- files ------------------------------------------------------------- */

static bool
is_folder(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* DIR/name, or beside the file `path`. */
static br_code
neighbour(br_str *to, const char *path, bool folder, const char *name,
          br_status *st)
{
    const char *slash = strrchr(path, '/');

    br_str_clear(to);
    if (folder)
        br_str_printf(to, "%s/", path);
    else if (slash)
        br_str_put(to, path, (size_t)(slash - path) + 1);
    br_str_puts(to, name);
    return to->oom ? br_tok_oom(st) : BR_OK;
}

static br_code
open_json(br_tok **out, const char *path, bool folder, br_str *name,
          br_status *st)
{
    char *json = NULL, *config = NULL;
    size_t n_json = 0, n_config = 0;
    br_status none = {0};
    br_code code;

    BR_TRY(neighbour(name, path, folder, "tokenizer_config.json", st));
    code =
        br_file_read_disk(name->at, BR_TOK_MAX_JSON, &config, &n_config, &none);
    if (code != BR_OK && code != BR_E_NOT_FOUND)
        return br_fail(st, code, "%s", none.msg);
    if (folder)
        code = neighbour(name, path, true, "tokenizer.json", st);
    else
        code = BR_OK;
    if (code == BR_OK)
        code = (folder ? br_file_read_disk : br_file_read)(
            folder ? name->at : path, BR_TOK_MAX_JSON, &json, &n_json, st);
    if (code == BR_OK) {
        code = br_tok_from_json(out, (br_text){json, n_json},
                                (br_text){config, n_config}, st);
        if (code != BR_OK)
            br_prefix(st, "%s", path);
    }
    br_free(json);
    br_free(config);
    return code;
}

br_code
br_tok_open(br_tok **out, const char *path, const char *pre, br_status *st)
{
    size_t n = strlen(path);
    bool folder = is_folder(path);
    br_str name = {0};
    br_gguf *g;
    br_code code;

    *out = NULL;
    if (folder || (n > 5 && strcmp(path + n - 5, ".json") == 0)) {
        if (pre)
            return br_fail(st, BR_E_USAGE,
                           "%s: a tokenizer.json has its pre-tokenizer in it, "
                           "--pre is for GGUF files",
                           path);
        code = open_json(out, path, folder, &name, st);
        br_str_fini(&name);
        return code;
    }
    BR_TRY(br_gguf_open(&g, path, st));
    code = br_tok_from_gguf(out, g, pre, st);
    br_gguf_close(g);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}
