/* tok_json_parts.c - what tokenizer.json says besides its vocabulary.
 *
 *   kind          model.type, and whether text becomes bytes or blanks
 *   normalizer    NFC; blanks for spaces; BERT's; a charsmap
 *   pre_tokenizer passes: a known pattern is its scanner, another is PCRE2
 *   post          which tokens stand around a text
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_json.h"

#include <string.h>

static br_code
refuse(br_tj *x, const char *where, const br_json *part)
{
    const char *type = br_tj_str(part, "type");

    return br_fail(x->st, BR_E_UNSUPPORTED,
                   "tokenizer.json: %s: '%.60s' is not supported here", where,
                   type ? type : "(without type)");
}

/* The parts of a Sequence, or the part itself: calls fn for each. */
static br_code
each_part(br_tj *x, const br_json *part, const char *list,
          br_code (*fn)(br_tj *x, const br_json *part))
{
    const br_json *parts;

    if (!part)
        return BR_OK;
    if (!br_tj_is(part, "Sequence"))
        return fn(x, part);
    parts = br_json_get(part, list);
    if (!parts || parts->kind != BR_J_ARR)
        return br_fail(x->st, BR_E_FORMAT,
                       "tokenizer.json: a Sequence "
                       "without its %s",
                       list);
    for (const br_json *p = parts->child; p; p = p->next) {
        if (br_tj_is(p, "Sequence"))
            return refuse(x, list, p);
        BR_TRY(fn(x, p));
    }
    return BR_OK;
}

/* ---- kind -------------------------------------------------------------- */

static bool
has_part(const br_json *part, const char *list, const char *type)
{
    const br_json *parts = part ? br_json_get(part, list) : NULL;

    if (!part)
        return false;
    if (br_tj_is(part, type))
        return true;
    for (const br_json *p = parts && parts->kind == BR_J_ARR ? parts->child
                                                             : NULL;
         p; p = p->next)
        if (br_tj_is(p, type))
            return true;
    return false;
}

/* Marks within words, as CLIP's, and merges left out by chance: not here. */
static br_code
plain_bpe(br_tj *x)
{
    static const char *const marks[] = {"continuing_subword_prefix",
                                        "end_of_word_suffix"};
    const br_json *dropout = br_json_get(x->model, "dropout");

    for (size_t i = 0; i < BR_COUNT(marks); i++) {
        const char *mark = br_tj_str(x->model, marks[i]);

        if (mark && *mark)
            return br_fail(x->st, BR_E_UNSUPPORTED,
                           "model.%s of a BPE is not supported", marks[i]);
    }
    if (dropout && ((dropout->kind == BR_J_FLOAT && dropout->f > 0) ||
                    (dropout->kind == BR_J_INT && dropout->i > 0)))
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "model.dropout is not supported");
    return BR_OK;
}

br_code
br_tj_kind(br_tj *x)
{
    const char *type = br_tj_str(x->model, "type");
    bool bytes = has_part(x->pre_tokenizer, "pretokenizers", "ByteLevel");

    if (!type) /* files of old have no type */
        type = x->has_scores ? "Unigram" : "BPE";
    if (strcmp(type, "Unigram") == 0) {
        x->t->kind = BR_TOK_UGM;
    } else if (strcmp(type, "WordPiece") == 0) {
        const char *mark = br_tj_str(x->model, "continuing_subword_prefix");
        const br_json *most = br_json_get(x->model, "max_input_chars_per_word");

        x->t->kind = BR_TOK_WPM;
        if (mark && strcmp(mark, "##") != 0)
            return br_fail(x->st, BR_E_UNSUPPORTED,
                           "model.continuing_subword_prefix: only ## is "
                           "supported");
        x->t->word_chars =
            most && most->kind == BR_J_INT && most->i > 0 && most->i < INT32_MAX
                ? (uint32_t)most->i
                : 100;
    } else if (strcmp(type, "BPE") == 0) {
        x->t->kind = bytes ? BR_TOK_BPE : BR_TOK_MPE;
    } else {
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "model.type: '%.60s' is not supported", type);
    }
    if (x->has_scores != (x->t->kind == BR_TOK_UGM))
        return br_fail(x->st, BR_E_FORMAT, "model.vocab: of a %s it is %s",
                       type, x->has_scores ? "an object" : "an array");
    return strcmp(type, "BPE") == 0 ? plain_bpe(x) : BR_OK;
}

/* ---- normalizer -------------------------------------------------------- */

static bool
replaces(const br_json *part, const char *what, const char *by)
{
    const br_json *pattern = br_json_get(part, "pattern");
    const char *is = br_tj_str(pattern, "String"),
               *to = br_tj_str(part, "content");

    return br_tj_is(part, "Replace") && is && to && strcmp(is, what) == 0 &&
           strcmp(to, by) == 0;
}

static bool
squeezes(const br_json *part)
{
    const char *re = br_tj_str(br_json_get(part, "pattern"), "Regex"),
               *to = br_tj_str(part, "content");

    return br_tj_is(part, "Replace") && re && to && strcmp(re, " {2,}") == 0 &&
           (strcmp(to, " ") == 0 || strcmp(to, BR_TOK_BLANK) == 0);
}

static br_code
bert_normalizer(br_tj *x, const br_json *part)
{
    x->t->lower = br_tj_bool(part, "lowercase", true);
    x->t->strip_accents = br_tj_bool(part, "strip_accents", x->t->lower);
    if (!br_tj_bool(part, "clean_text", true) ||
        !br_tj_bool(part, "handle_chinese_chars", true))
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "normalizer: clean_text and handle_chinese_chars must "
                       "be true");
    return BR_OK;
}

static int
base64(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static br_code
charsmap(br_tj *x, const br_json *part)
{
    const br_json *s = br_json_get(part, "precompiled_charsmap");
    uint8_t *to;
    uint32_t bits = 0;
    size_t n = 0;
    int have = 0;

    if (!s || s->kind == BR_J_NULL)
        return BR_OK;
    if (s->kind != BR_J_STR)
        return br_fail(x->st, BR_E_FORMAT,
                       "normalizer.precompiled_charsmap: it is no text");
    to = br_arena_get(&x->arena, s->n + 1);
    if (!to)
        return br_tok_oom(x->st);
    for (size_t i = 0; i < s->n && s->s[i] != '='; i++) {
        int v = base64(s->s[i]);

        if (v < 0)
            return br_fail(x->st, BR_E_FORMAT,
                           "normalizer.precompiled_charsmap: it is not base64 "
                           "at %zu",
                           i);
        bits = bits << 6 | (uint32_t)v;
        have += 6;
        if (have >= 8) {
            have -= 8;
            to[n++] = (uint8_t)(bits >> have);
        }
    }
    return br_tok_set_charsmap(x->t, to, n, x->st);
}

static br_code
normalizer(br_tj *x, const br_json *part)
{
    br_tok *t = x->t;

    switch (t->kind) {
    case BR_TOK_BPE:
        if (br_tj_is(part, "NFC")) {
            t->nfc = true;
            return BR_OK;
        }
        break;
    case BR_TOK_SPM:
    case BR_TOK_MPE:
        if (br_tj_is(part, "Prepend") && br_tj_str(part, "prepend") &&
            strcmp(br_tj_str(part, "prepend"), BR_TOK_BLANK) == 0) {
            t->space_prefix = true;
            return BR_OK;
        }
        if (replaces(part, " ", BR_TOK_BLANK)) {
            t->blanks = true;
            return BR_OK;
        }
        break;
    case BR_TOK_WPM:
        if (br_tj_is(part, "BertNormalizer"))
            return bert_normalizer(x, part);
        break;
    case BR_TOK_UGM:
        if (br_tj_is(part, "Precompiled"))
            return charsmap(x, part);
        if (squeezes(part)) {
            t->squeeze_spaces = true;
            return BR_OK;
        }
        break;
    }
    return refuse(x, "normalizer", part);
}

br_code
br_tj_normalizer(br_tj *x)
{
    return each_part(x, x->normalizer, "normalizers", normalizer);
}

/* ---- pre_tokenizer ----------------------------------------------------- */

static br_code
add_pass(br_tj *x, br_tok_pass pass)
{
    if (x->t->n_pass == BR_TOK_MAX_PASSES) {
        br_tok_regex_free(pass.regex);
        return br_fail(x->st, BR_E_LIMIT, "pre_tokenizer: more than %d steps",
                       BR_TOK_MAX_PASSES);
    }
    x->t->pass[x->t->n_pass++] = pass;
    return BR_OK;
}

/* A literal text as a pattern. */
static void
quote(br_str *to, const br_json *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strchr("\\^$.[]|()?*+{}#-", s->s[i]))
            br_str_putc(to, '\\');
        br_str_putc(to, s->s[i]);
    }
}

static br_code
split_pass(br_tj *x, const br_json *part, br_tok_pass *pass)
{
    const br_json *pattern = br_json_get(part, "pattern");
    const br_json *re = pattern ? br_json_get(pattern, "Regex") : NULL;
    const br_json *lit = pattern ? br_json_get(pattern, "String") : NULL;
    br_str quoted = {0};
    br_code code;

    if (re && re->kind == BR_J_STR) {
        pass->scan = br_pre_of_regex((br_text){re->s, re->n});
        if (pass->scan)
            return BR_OK;
        return br_tok_regex_new(&pass->regex, (br_text){re->s, re->n}, x->st);
    }
    if (!lit || lit->kind != BR_J_STR || lit->n == 0)
        return br_fail(x->st, BR_E_FORMAT,
                       "pre_tokenizer: a Split without its pattern");
    quote(&quoted, lit);
    code = quoted.oom ? br_tok_oom(x->st)
                      : br_tok_regex_new(&pass->regex,
                                         (br_text){quoted.at, quoted.n}, x->st);
    br_str_fini(&quoted);
    return code;
}

static br_code
split(br_tj *x, const br_json *part)
{
    const char *how = br_tj_str(part, "behavior");
    bool invert = br_tj_bool(part, "invert", false);
    br_tok_pass pass = {0};

    if (how && strcmp(how, "Removed") == 0) {
        pass.drop_matches = !invert;
        pass.drop_gaps = invert;
    } else if (!how || strcmp(how, "Isolated") != 0) {
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "pre_tokenizer: the behaviour '%.40s' of a Split is "
                       "not supported",
                       how ? how : "");
    }
    BR_TRY(split_pass(x, part, &pass));
    return add_pass(x, pass);
}

static br_code
byte_part(br_tj *x, const br_json *part)
{
    if (br_tj_is(part, "ByteLevel")) {
        if (br_tj_bool(part, "add_prefix_space", true))
            x->t->space_prefix = true;
        if (br_tj_bool(part, "use_regex", true))
            return add_pass(x, (br_tok_pass){.scan = br_pre_gpt2()});
        return BR_OK;
    }
    if (br_tj_is(part, "Split"))
        return split(x, part);
    if (br_tj_is(part, "Digits"))
        return add_pass(x,
                        (br_tok_pass){.scan = br_pre_digits(br_tj_bool(
                                          part, "individual_digits", false))});
    return refuse(x, "pre_tokenizer", part);
}

static br_code
metaspace(br_tj *x, const br_json *part)
{
    const char *scheme = br_tj_str(part, "prepend_scheme"),
               *by = br_tj_str(part, "replacement");

    if (by && strcmp(by, BR_TOK_BLANK) != 0)
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "pre_tokenizer: a Metaspace replaces by U+2581 only");
    x->t->blanks = true;
    if (x->t->kind == BR_TOK_MPE) {
        x->t->prefix_lacks = true;
        x->t->blank_each = br_tj_bool(part, "split", true);
    }
    if (scheme) {
        x->t->space_prefix = strcmp(scheme, "never") != 0;
        x->t->prefix_once = strcmp(scheme, "first") == 0;
    } else {
        x->t->space_prefix = br_tj_bool(part, "add_prefix_space", true);
    }
    return BR_OK;
}

static br_code
blank_part(br_tj *x, const br_json *part)
{
    if (br_tj_is(part, "Metaspace"))
        return metaspace(x, part);
    if (x->t->kind == BR_TOK_UGM && br_tj_is(part, "WhitespaceSplit")) {
        x->t->squeeze_spaces = true;
        return BR_OK;
    }
    /* Gemma: splits at spaces, of which its normalizer leaves none */
    if (x->t->kind == BR_TOK_MPE && x->t->blanks && br_tj_is(part, "Split")) {
        const char *lit = br_tj_str(br_json_get(part, "pattern"), "String");

        if (lit && strcmp(lit, " ") == 0)
            return BR_OK;
    }
    return refuse(x, "pre_tokenizer", part);
}

static br_code
bert_part(br_tj *x, const br_json *part)
{
    return br_tj_is(part, "BertPreTokenizer")
               ? BR_OK
               : refuse(x, "pre_tokenizer", part);
}

br_code
br_tj_pre_tokenizer(br_tj *x)
{
    br_code (*fn)(br_tj *, const br_json *) =
        x->t->kind == BR_TOK_BPE   ? byte_part
        : x->t->kind == BR_TOK_WPM ? bert_part
                                   : blank_part;

    if (x->t->kind == BR_TOK_UGM)
        x->t->blanks = true;
    return each_part(x, x->pre_tokenizer, "pretokenizers", fn);
}

/* ---- post_processor ---------------------------------------------------- */

static br_code
special_token(br_tj *x, const char *name, br_tok_role role, bool *adds)
{
    int32_t id = name ? br_index_find(x->t, name, strlen(name)) : BR_TOK_NONE;

    if (id < 0)
        return br_fail(x->st, BR_E_FORMAT,
                       "post_processor: '%.40s' is no token", name ? name : "");
    if (*adds && role == BR_TOK_BOS && x->t->n_lead < BR_TOK_LEADS) {
        x->t->lead[x->t->n_lead++] = id; /* [gMASK] <sop> of a GLM */
        return BR_OK;
    }
    if (*adds)
        return br_fail(x->st, BR_E_UNSUPPORTED,
                       "post_processor: too many tokens on one side of a text");
    x->t->role[role] = id;
    *adds = true;
    return BR_OK;
}

static br_code template(br_tj *x, const br_json *part)
{
    const br_json *single = br_json_get(part, "single");
    bool after = false;

    if (!single || single->kind != BR_J_ARR)
        return br_fail(x->st, BR_E_FORMAT,
                       "post_processor: a template without 'single'");
    for (const br_json *p = single->child; p; p = p->next) {
        const br_json *token = br_json_get(p, "SpecialToken");

        if (p->kind == BR_J_OBJ && br_json_get(p, "Sequence")) {
            after = true;
            continue;
        }
        BR_TRY(special_token(x, br_tj_str(token, "id"),
                             after ? BR_TOK_SEP : BR_TOK_BOS,
                             after ? &x->t->add_sep : &x->t->add_bos));
    }
    return BR_OK;
}

/* [cls, id] and [sep, id] of BertProcessing and RobertaProcessing. */
static br_code
around(br_tj *x, const br_json *part)
{
    const br_json *cls = br_json_get(part, "cls");
    const br_json *sep = br_json_get(part, "sep");

    cls = cls && cls->kind == BR_J_ARR ? br_json_at(cls, 0) : NULL;
    sep = sep && sep->kind == BR_J_ARR ? br_json_at(sep, 0) : NULL;
    if (!cls || cls->kind != BR_J_STR || !sep || sep->kind != BR_J_STR)
        return br_fail(x->st, BR_E_FORMAT,
                       "post_processor: it needs 'cls' and 'sep'");
    BR_TRY(special_token(x, cls->s, BR_TOK_BOS, &x->t->add_bos));
    return special_token(x, sep->s, BR_TOK_SEP, &x->t->add_sep);
}

static br_code
post(br_tj *x, const br_json *part)
{
    if (br_tj_is(part, "ByteLevel"))
        return BR_OK; /* offsets only */
    if (br_tj_is(part, "TemplateProcessing"))
        return template(x, part);
    if (br_tj_is(part, "BertProcessing") || br_tj_is(part, "RobertaProcessing"))
        return around(x, part);
    return refuse(x, "post_processor", part);
}

br_code
br_tj_post_processor(br_tj *x)
{
    return each_part(x, x->post_processor, "processors", post);
}
