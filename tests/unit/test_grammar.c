/* test_grammar.c - grammars and schemas: what they let through, and what not.
 *
 * Masks are held against the slow truth: a token is allowed when its bytes,
 * one after another, are. Documents that random draws make under random
 * schemas are held against a checker that knows nothing of grammars.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar.h"
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static br_tok *tok;
static br_vocab *vocab;

static void
open_vocab(void)
{
    br_status st = {0};

    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&vocab, tok, NULL, &st), &st);
}

static void
close_vocab(void)
{
    br_vocab_free(vocab);
    br_tok_free(tok);
}

static br_grammar *
grammar(const char *text)
{
    br_status st = {0};
    br_grammar *g;

    t_ok(br_grammar_new(&g, br_text_z(text), vocab, &st), &st);
    return g;
}

static br_matcher *
matcher(br_grammar *g)
{
    br_status st = {0};
    br_matcher *m;

    t_ok(br_matcher_new(&m, g, &st), &st);
    return m;
}

static bool
allowed(br_matcher *m, float *logits, int32_t id)
{
    memset(logits, 0, (size_t)br_tok_count(tok) * sizeof *logits);
    ck_assert(br_matcher_mask(m, logits, br_tok_count(tok)));
    return logits[id] > -INFINITY;
}

/* Whether the text, fed byte by byte, is one of the grammar's. */
static bool
matches(br_grammar *g, const char *text)
{
    br_matcher *m = matcher(g);
    float *logits = malloc((size_t)br_tok_count(tok) * sizeof *logits);
    size_t n;
    int32_t eog = br_tok_eog(tok, &n)[0];
    bool ok = true;

    for (const char *p = text; *p && ok; p++) {
        int32_t id = 0; /* the token of this byte alone */

        while (!br_text_eq(br_tok_bytes(tok, id), (br_text){p, 1}))
            id++;
        ok = allowed(m, logits, id);
        ck_assert_int_eq(br_matcher_accept(m, id), ok);
    }
    ok = ok && allowed(m, logits, eog);
    br_matcher_free(m);
    free(logits);
    return ok;
}

TEST(grammar_accepts_its_texts)
{
    static const struct {
        const char *grammar, *yes[6], *no[6];
    } rows[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "x"}},
        {"root ::= a* b\na ::= \"x\" # tail\nb::=[0-9]+",
         {"xx1", "42", "x0"},
         {"x", "1x", ""}},
        {"root ::= [a-c]{2,3} \"!\"? ", {"ab", "abc!", "ca!"}, {"a", "abca"}},
        {"root ::= (\"a\" | \"b\"){,2} \"\\n\"",
         {"\n", "ab\n", "b\n"},
         {"aba\n", "ab"}},
        {"root ::= [^x\\x00-\\x1f]*", {"", "héllo", "日本 €"}, {"axb", "a\n"}},
        {"root ::= \"(\" root \")\" | \"\"",
         {"", "()", "((()))"},
         {"(", "())"}},
        {"root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9] | \"(\" e \")\"",
         {"1", "1+2", "(1+(2+3))+4"},
         {"1+", "()", "(1"}},
        {"root ::= \"in\" | [0-9] | \"int\" | \"\" | \"in\" | \"of\" [x-z]",
         {"in", "int", "", "7", "ofy"},
         {"i", "inte", "of", "nt"}},
        {"root ::= (\"ab\" | \"a\" | \"abc\")* \"!\"",
         {"!", "aabcab!", "aaa!"},
         {"ac!", "b!"}},
        {"root ::= (\"a\"*)* \"b\"", {"b", "aab"}, {"a", "ba"}},
        {"root ::= .{3}", {"abc", "äöü"}, {"ab", "abcd"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\" [\\]\\-\\^]",
         {"Aé😀]", "Aé😀-"},
         {"Aé😀x"}},
        {"root ::= ([a-c] [\\u0400-\\u04FF]){1,}", {"aж", "bюcя"}, {"a", "ж"}},
        {"root ::= [\\u07FE-\\U00010003]",
         {"߾", "\xe2\x82\xac", "𐀃"},
         {"a", "𐀄"}},
    };

    open_vocab();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_grammar *g = grammar(rows[i].grammar);

        for (size_t k = 0; k < 6 && rows[i].yes[k]; k++)
            ck_assert_msg(matches(g, rows[i].yes[k]), "%s: '%s'",
                          rows[i].grammar, rows[i].yes[k]);
        for (size_t k = 0; k < 6 && rows[i].no[k]; k++)
            ck_assert_msg(!matches(g, rows[i].no[k]), "%s: not '%s'",
                          rows[i].grammar, rows[i].no[k]);
        br_grammar_free(g);
    }
    close_vocab();
}

TEST(grammar_says_what_is_wrong)
{
    static const struct {
        const char *grammar, *says;
    } rows[] = {
        {"", "no rule root"},
        {"root ::= x", "there is no such rule"},
        {"root ::= \"a", "ends within"},
        {"root ::= [a", "ends within"},
        {"root ::= []", "no characters"},
        {"root ::= [b-a]", "ends before it begins"},
        {"root ::= (\"a\"", "( without )"},
        {"root ::= \"a\")", ") without ("},
        {"root ::= \"\\q\"", "no such escape"},
        {"root ::= \"\\xZ1\"", "hexadecimal"},
        {"root ::= \"\\uD800\"", "no character"},
        {"root ::= \"a\"{3,2}", "not a repetition"},
        {"root ::= \"a\"{99999999}", "repetition of over"},
        {"root ::= \"a\"\nroot ::= \"b\"", "was before"},
        {"root = \"a\"", "a rule begins"},
        {"root ::= root \"a\" | \"b\"", "calls itself"},
        {"root ::= a | \"x\"\na ::= b* root \"y\" [a-z]*\nb ::= \"q\"",
         "calls itself"},
        {"root ::= \"a\" root", "has an end"},
        {"root ::= ((\"abcdefgh\"{60000}){60000})", "states"},
        {"root ::= (\"\"{60000}){60000}", "too often"},
        {"root ::= *", "neither"},
        {"root ::= \"x\" \xff", "neither"},
    };
    br_str deep = {0};
    br_status st;
    br_grammar *g;

    open_vocab();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        st = (br_status){0};
        ck_assert_int_ne(
            br_grammar_new(&g, br_text_z(rows[i].grammar), vocab, &st), BR_OK);
        ck_assert_msg(strstr(st.msg, rows[i].says), "%s: %s", rows[i].grammar,
                      st.msg);
    }
    br_str_puts(&deep, "root ::= ");
    for (int i = 0; i < 100; i++)
        br_str_putc(&deep, '(');
    st = (br_status){0};
    ck_assert_int_eq(br_grammar_new(&g, (br_text){deep.at, deep.n}, vocab, &st),
                     BR_E_LIMIT);
    br_str_fini(&deep);
    close_vocab();
}

/* ---- masks against bytes ------------------------------------------------- */

static const char json_schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tag\"}},"
    "\"n\":{\"type\":\"integer\",\"minimum\":-20,\"maximum\":1234}},"
    "\"required\":[\"name\"],\"$defs\":{\"tag\":{\"anyOf\":[{\"type\":"
    "\"string\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tag\"}}]}}}";

static char *
schema_text(const char *schema, br_code want, br_status *st)
{
    br_arena a;
    br_json *tree;
    br_str out = {0};
    char *text;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&tree, &a, schema, strlen(schema), 0, st), st);
    ck_assert_msg(br_schema_grammar(tree, &out, st) == want, "%s: %s", schema,
                  st->msg);
    text = t_keep(strdup(br_str_z(&out)));
    br_str_fini(&out);
    br_arena_fini(&a);
    return text;
}

/* Any of those allowed, or the end; once it is long, what ends it soon. */
static int32_t
draw(const float *logits, uint64_t *seed, size_t n_out)
{
    static const char *const ends[] = {"\"", "]", "}", "0", "null", "1", ":"};
    int32_t n = br_tok_count(tok), left = 0, id = 0;
    size_t n_eog;
    int32_t eog = br_tok_eog(tok, &n_eog)[0];

    if (logits[eog] > -INFINITY && (n_out > 40 || t_rand(seed) % 3 == 0))
        return eog;
    for (size_t i = 0; n_out > 40 && i < BR_COUNT(ends); i++)
        for (int32_t k = 0; k < n; k++)
            if (logits[k] > -INFINITY &&
                br_text_is(br_tok_bytes(tok, k), ends[i]))
                return k;
    for (int32_t k = 0; k < n; k++)
        left += logits[k] > -INFINITY;
    ck_assert_int_gt(left, 0);
    left = (int32_t)(t_rand(seed) % (uint64_t)left);
    while (logits[id] == -INFINITY || left-- > 0)
        id++;
    return id;
}

/* Whether the token can follow the text, by its bytes. */
static bool
can_follow(br_grammar *g, const br_tok_ids *ids, int32_t id)
{
    br_matcher *m = matcher(g);
    bool ok;

    for (size_t i = 0; i < ids->n; i++)
        ck_assert(br_matcher_accept(m, ids->at[i]));
    ok = br_matcher_accept(m, id);
    br_matcher_free(m);
    return ok;
}

/* Draws one answer; every token's mask is compared at some steps. */
static void
check_masks(const char *text, uint64_t seed)
{
    br_grammar *g = grammar(text);
    br_matcher *m = matcher(g);
    int32_t n = br_tok_count(tok), wrong = 0;
    float *logits = malloc((size_t)n * sizeof *logits);
    br_tok_ids ids = {0};

    for (size_t i = 0; i < 20; i++) {
        int32_t id, step = t_sanitized() ? 17 : 1;

        memset(logits, 0, (size_t)n * sizeof *logits);
        ck_assert(br_matcher_mask(m, logits, n));
        for (id = 0; i % 6 == 0 && id < n; id += step)
            if (!br_tok_is_special(tok, id) && !br_tok_is_eog(tok, id) &&
                br_tok_bytes(tok, id).n)
                wrong += can_follow(g, &ids, id) != (logits[id] > -INFINITY);
        ck_assert_msg(!wrong, "%s: %d tokens at step %zu", text, wrong, i);
        id = draw(logits, &seed, i);
        if (br_tok_is_eog(tok, id))
            break;
        ck_assert(br_matcher_accept(m, id));
        ck_assert(br_vec_push(&ids, id));
    }
    br_vec_fini(&ids);
    free(logits);
    br_matcher_free(m);
    br_grammar_free(g);
}

TEST(masks_are_what_bytes_allow)
{
    static const char *const texts[] = {
        "root ::= word (\" \" word)* \".\"\nword ::= [a-zA-Z]+ | num\n"
        "num ::= [0-9]{1,12}",
        "root ::= (item \"\\n\"){1,5}\nitem ::= \"- \" [^\\n]+",
        "root ::= \"the \" [a-z]* \" fox\" | \"the cat\" rest\nrest ::= .*",
    };
    br_status st = {0};

    open_vocab();
    for (size_t i = 0; i < BR_COUNT(texts); i++)
        check_masks(texts[i], i);
    check_masks(schema_text(json_schema, BR_OK, &st), 7);
    check_masks(schema_text("{}", BR_OK, &st), 8);
    close_vocab();
}

/* ---- a checker of documents ---------------------------------------------- */

typedef const br_json json;

static double
num(json *v)
{
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static size_t
letters(json *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        n += ((uint8_t)v->s[i] & 0xC0) != 0x80;
    return n;
}

static bool
is_type(json *v, const char *t)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: return strcmp(t, "null") == 0;
    case BR_J_BOOL: return strcmp(t, "boolean") == 0;
    case BR_J_INT: return !strcmp(t, "integer") || !strcmp(t, "number");
    case BR_J_BIGINT:
    case BR_J_FLOAT: return strcmp(t, "number") == 0;
    case BR_J_STR: return strcmp(t, "string") == 0;
    case BR_J_ARR: return strcmp(t, "array") == 0;
    case BR_J_OBJ: return strcmp(t, "object") == 0;
    }
    return false;
}

static bool valid(json *root, json *s, json *v);

static bool
in_limits(json *s, json *v)
{
    json *x;

    if (v->kind == BR_J_STR) {
        if ((x = br_json_get(s, "minLength")) && letters(v) < (size_t)x->i)
            return false;
        if ((x = br_json_get(s, "maxLength")) && letters(v) > (size_t)x->i)
            return false;
    }
    if (v->kind == BR_J_INT || v->kind == BR_J_FLOAT) {
        if ((x = br_json_get(s, "minimum")) && num(v) < num(x))
            return false;
        if ((x = br_json_get(s, "maximum")) && num(v) > num(x))
            return false;
        if ((x = br_json_get(s, "exclusiveMinimum")) && num(v) <= num(x))
            return false;
        if ((x = br_json_get(s, "exclusiveMaximum")) && num(v) >= num(x))
            return false;
    }
    return true;
}

static bool
valid_array(json *root, json *s, json *v)
{
    json *x, *p = br_json_get(s, "prefixItems"), *i = br_json_get(s, "items");
    json *q = p ? p->child : NULL;

    if ((x = br_json_get(s, "minItems")) && v->n < (size_t)x->i)
        return false;
    if ((x = br_json_get(s, "maxItems")) && v->n > (size_t)x->i)
        return false;
    for (json *e = v->child; e; e = e->next) {
        if (q ? !valid(root, q, e) : i && !valid(root, i, e))
            return false;
        q = q ? q->next : NULL;
    }
    return true;
}

static bool
valid_object(json *root, json *s, json *v)
{
    json *p = br_json_get(s, "properties"), *r = br_json_get(s, "required");
    json *more = br_json_get(s, "additionalProperties");

    for (json *n = r ? r->child : NULL; n; n = n->next)
        if (!br_json_get(v, n->s))
            return false;
    for (json *m = v->child; m; m = m->next) {
        json *known = p ? br_json_get(p, m->key) : NULL;

        if (known ? !valid(root, known, m) : more && !valid(root, more, m))
            return false;
    }
    return true;
}

static bool
same_text(json *a, json *b)
{
    br_str x = {0}, y = {0};
    br_json_writer w;
    bool yes;

    br_json_w_begin(&w, &x, 0);
    br_json_w_tree(&w, a);
    br_json_w_begin(&w, &y, 0);
    br_json_w_tree(&w, b);
    yes = strcmp(br_str_z(&x), br_str_z(&y)) == 0;
    br_str_fini(&x);
    br_str_fini(&y);
    return yes;
}

static bool
valid(json *root, json *s, json *v)
{
    json *x;
    bool any = false;

    if (s->kind == BR_J_BOOL)
        return s->b;
    if ((x = br_json_get(s, "$ref")))
        return valid(root, br_json_get(br_json_get(root, "$defs"), x->s + 8),
                     v);
    if ((x = br_json_get(s, "enum"))) {
        for (json *e = x->child; e; e = e->next)
            any |= same_text(e, v);
        return any;
    }
    if ((x = br_json_get(s, "anyOf"))) {
        for (json *e = x->child; e; e = e->next)
            any |= valid(root, e, v);
        return any;
    }
    if ((x = br_json_get(s, "type")) && x->kind == BR_J_STR &&
        !is_type(v, x->s))
        return false;
    for (json *t = x && x->kind == BR_J_ARR ? x->child : NULL; t; t = t->next)
        any |= is_type(v, t->s);
    if (x && x->kind == BR_J_ARR && !any)
        return false;
    return in_limits(s, v) &&
           (v->kind != BR_J_ARR || valid_array(root, s, v)) &&
           (v->kind != BR_J_OBJ || valid_object(root, s, v));
}

/* ---- random schemas ------------------------------------------------------ */

static void
put_number_schema(br_str *s, uint64_t *seed)
{
    int64_t a = (int64_t)(t_rand(seed) % 4001) - 2000;
    int64_t b = a + 1 + (int64_t)(t_rand(seed) % 3000);

    br_str_printf(s, "{\"type\":\"%s\"",
                  t_rand(seed) % 2 ? "integer" : "number");
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"%s\":%lld",
                      t_rand(seed) % 2 ? "minimum" : "exclusiveMinimum",
                      (long long)a);
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"%s\":%lld",
                      t_rand(seed) % 2 ? "maximum" : "exclusiveMaximum",
                      (long long)b + 1);
    br_str_puts(s, "}");
}

static void put_schema(br_str *s, uint64_t *seed, int depth);

static void
put_object_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t n = t_rand(seed) % 5, need = t_rand(seed);

    br_str_puts(s, "{\"type\":\"object\",\"properties\":{");
    for (uint64_t i = 0; i < n; i++) {
        br_str_printf(s, "%s\"p%llu\\\"\":", i ? "," : "",
                      (unsigned long long)i);
        put_schema(s, seed, depth - 1);
    }
    br_str_puts(s, "},\"required\":[");
    for (uint64_t i = 0, k = 0; i < n; i++)
        if (need >> i & 1)
            br_str_printf(s, "%s\"p%llu\\\"\"", k++ ? "," : "",
                          (unsigned long long)i);
    br_str_puts(s, "]");
    if (t_rand(seed) % 2) {
        br_str_puts(s, ",\"additionalProperties\":");
        if (n || t_rand(seed) % 2)
            br_str_puts(s, "false");
        else
            put_schema(s, seed, depth - 1);
    }
    br_str_puts(s, "}");
}

static void
put_array_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t min = t_rand(seed) % 3, n = t_rand(seed) % 3;

    br_str_puts(s, "{\"type\":\"array\"");
    if (n) {
        br_str_puts(s, ",\"prefixItems\":[");
        for (uint64_t i = 0; i < n; i++) {
            br_str_puts(s, i ? "," : "");
            put_schema(s, seed, depth - 1);
        }
        br_str_puts(s, "]");
    }
    if (t_rand(seed) % 2) {
        br_str_puts(s, ",\"items\":");
        put_schema(s, seed, depth - 1);
    }
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"minItems\":%llu", (unsigned long long)min);
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"maxItems\":%llu",
                      (unsigned long long)(min + n + t_rand(seed) % 3));
    br_str_puts(s, "}");
}

static void
put_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t what = t_rand(seed) % (depth > 0 ? 9 : 5);
    uint64_t n = t_rand(seed) % 4;

    switch (what) {
    case 0: put_number_schema(s, seed); break;
    case 1:
        br_str_printf(s,
                      "{\"type\":\"string\",\"minLength\":%llu,\"maxLength\":"
                      "%llu}",
                      (unsigned long long)n,
                      (unsigned long long)(n + t_rand(seed) % 20));
        break;
    case 2:
        br_str_puts(s, "{\"type\":[\"string\",\"null\",\"boolean\"]}");
        break;
    case 3:
        br_str_puts(s,
                    "{\"enum\":[\"a\\\"b\",1,null,{\"k\":[true]},\"é\\n\"]}");
        break;
    case 4: br_str_puts(s, n ? "{\"$ref\":\"#/$defs/d\"}" : "true"); break;
    case 5: put_array_schema(s, seed, depth); break;
    case 6:
        br_str_puts(s, "{\"anyOf\":[");
        put_schema(s, seed, depth - 1);
        br_str_puts(s, ",");
        put_schema(s, seed, depth - 1);
        br_str_puts(s, "]}");
        break;
    default: put_object_schema(s, seed, depth); break;
    }
}

static void
check_document(const char *schema, const br_str *doc)
{
    br_json *s, *v;
    br_status st = {0};
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&s, &a, schema, strlen(schema), 0, &st), &st);
    if (br_json_parse(&v, &a, doc->at ? doc->at : "", doc->n, 0, &st) != BR_OK)
        ck_abort_msg("%s\nmade no JSON: %s\n%s", schema, doc->at, st.msg);
    ck_assert_msg(valid(s, s, v), "%s\nmade %s", schema, doc->at);
    br_arena_fini(&a);
}

/* One answer; false: it was too long, and says nothing. */
static bool
answer(br_grammar *g, const char *schema, uint64_t *seed)
{
    br_matcher *m = matcher(g);
    float *logits = malloc((size_t)br_tok_count(tok) * sizeof *logits);
    br_str doc = {0};
    bool over = false;

    for (size_t i = 0; i < 400 && !over; i++) {
        int32_t id;
        br_text t;

        memset(logits, 0, (size_t)br_tok_count(tok) * sizeof *logits);
        ck_assert(br_matcher_mask(m, logits, br_tok_count(tok)));
        id = draw(logits, seed, i);
        over = br_tok_is_eog(tok, id);
        if (over)
            break;
        ck_assert(br_matcher_accept(m, id));
        t = br_tok_bytes(tok, id);
        br_str_put(&doc, t.p, t.n);
    }
    if (over)
        check_document(schema, &doc);
    br_str_fini(&doc);
    free(logits);
    br_matcher_free(m);
    return over;
}

/* BRASS_TEST_LONG has it run for longer. */
TEST(documents_are_valid_under_their_schema)
{
    size_t rounds = t_sanitized() ? 15 : 120, whole = 0, all = 0;
    uint64_t seed = 42;

    if (getenv("BRASS_TEST_LONG"))
        rounds = 2000;
    open_vocab();
    for (size_t i = 0; i < rounds; i++) {
        br_str s = {0};
        br_status st = {0};
        br_grammar *g;

        br_str_puts(&s, "{\"anyOf\":[");
        put_schema(&s, &seed, 3);
        /* null, for an object that must have itself as a member has no end */
        br_str_puts(&s, "],\"$defs\":{\"d\":{\"anyOf\":[{\"type\":\"null\"},");
        put_object_schema(&s, &seed, 1);
        br_str_puts(&s, "]}}}");
        g = grammar(schema_text(s.at, BR_OK, &st));
        for (int k = 0; k < 3; k++, all++)
            whole += answer(g, s.at, &seed);
        br_grammar_free(g);
        br_str_fini(&s);
    }
    ck_assert_msg(whole * 10 > all * 7, "only %zu of %zu ended", whole, all);
    close_vocab();
}

TEST(schemas_that_cannot_be_enforced_are_refused)
{
    static const struct {
        const char *schema, *says;
    } rows[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}}}",
         "'not' at '#/properties/a'"},
        {"{\"if\":{}}", "'if'"},
        {"{\"patternProperties\":{}}", "'patternProperties'"},
        {"{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems'"},
        {"{\"type\":\"number\",\"multipleOf\":0.1}", "'multipleOf'"},
        {"{\"type\":\"number\",\"minimum\":0.5}", "'minimum'"},
        {"{\"type\":\"string\",\"format\":\"iri\"}", "'format'"},
        {"{\"type\":\"string\",\"pattern\":\"(?=a)\"}", "(?"},
        {"{\"type\":\"string\",\"pattern\":\"a\",\"minLength\":2}",
         "'pattern'"},
        {"{\"allOf\":[{},{}]}", "'allOf'"},
        {"{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}",
         "'oneOf'"},
        {"{\"$ref\":\"#/nothing\"}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a\",\"type\":\"string\",\"$defs\":{\"a\":{}}}",
         "'$ref'"},
        {"{\"type\":\"thing\"}", "'type'"},
        {"{\"enum\":[]}", "'enum'"},
        {"{\"enum\":[1],\"type\":\"string\"}", "'enum'"},
        {"{\"type\":\"object\",\"required\":[\"a\"],"
         "\"additionalProperties\":false}",
         "'required'"},
        {"{\"type\":\"object\",\"minProperties\":2}", "'minProperties'"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no number"},
        {"{\"items\":[{}]}", "a schema is an object"},
        {"false", "no value"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};

        schema_text(rows[i].schema, BR_E_UNSUPPORTED, &st);
        ck_assert_msg(strstr(st.msg, rows[i].says), "%s: %s", rows[i].schema,
                      st.msg);
    }
}

TEST(schemas_let_through_what_they_say)
{
    static const struct {
        const char *schema, *yes[4], *no[4];
    } rows[] = {
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+\\\\d{2}(-x)?$\"}",
         {"\"ab12\"", "\"a00-x\""},
         {"\"a1\"", "\"1\"", "\"ab12 \""}},
        {"{\"type\":\"string\",\"pattern\":\"b\\\"\"}",
         {"\"b\\\"\"", "\"ab\\\"c\""},
         {"\"b\"", "\"\""}},
        {"{\"type\":\"string\",\"format\":\"date\"}",
         {"\"2024-02-28\"", "\"1999-12-31\""},
         {"\"2024-02-30\"", "\"2024-13-01\""}},
        {"{\"type\":\"string\",\"format\":\"uuid\"}",
         {"\"01234567-89ab-cdef-0123-456789abcdef\""},
         {"\"0\""}},
        {"{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":["
         "\"k\"],\"type\":\"object\"},{\"type\":\"object\",\"properties\":{"
         "\"k\":{\"const\":\"b\"},\"n\":{\"type\":\"null\"}},\"required\":["
         "\"k\"]}]}",
         {"{\"k\":\"a\"}", "{\"k\": \"b\", \"n\": null}"},
         {"{\"k\":\"a\",\"n\":null}", "{\"k\":\"c\"}"}},
        {"{\"type\":\"integer\",\"minimum\":9,\"maximum\":120}",
         {"9", "10", "120", "99"},
         {"8", "121", "-9", "09"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":-1,\"maximum\":10}",
         {"-0.5", "10.0", "0.25", "9.999"},
         {"-1", "10.01", "-1.0", "11"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":0}",
         {"1", "123456"},
         {"0", "-1", "-0"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},"
         "\"minProperties\":1,\"maxProperties\":2}",
         {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
         {"{}", "{\"a\":\"x\"}", "{\"a\":1,\"b\":2,\"c\":3}"}},
        {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"},"
         "\"c\":{\"type\":\"null\"}},\"required\":[\"b\"]}",
         {"{\"b\":null}", "{\"a\":null,\"b\":null}", "{\"b\":null,\"c\":null}"},
         {"{}", "{\"a\":null}", "{\"b\":null,\"a\":null}", "{,\"b\":null}"}},
        {"{\"items\":{\"type\":\"null\"},\"minItems\":1,\"maxItems\":2}",
         {"[null]", "[null, null]"},
         {"[]", "[null,null,null]", "[null,]"}},
    };

    open_vocab();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_grammar *g = grammar(schema_text(rows[i].schema, BR_OK, &st));

        for (size_t k = 0; k < 4 && rows[i].yes[k]; k++)
            ck_assert_msg(matches(g, rows[i].yes[k]), "%s: %s", rows[i].schema,
                          rows[i].yes[k]);
        for (size_t k = 0; k < 4 && rows[i].no[k]; k++)
            ck_assert_msg(!matches(g, rows[i].no[k]), "%s: not %s",
                          rows[i].schema, rows[i].no[k]);
        br_grammar_free(g);
    }
    close_vocab();
}

/* The whole text, as it is: no quotes, no escapes of JSON. */
TEST(texts_that_match_a_regular_expression)
{
    static const struct {
        const char *regex, *yes[4], *no[4];
    } rows[] = {
        {"\\d{3}-[A-F]+", {"123-AB", "000-F"}, {"123-", "x123-A", "123-Ab"}},
        {"^yes|no$", {"yes", "no"}, {"yesno", "", "ye"}},
        {"a\"\\\\[^b\"]", {"a\"\\c", "a\"\\\n"}, {"a\"\\b", "a\"\\\""}},
        {"[\\t\\n ]*(x|)y?", {"", "x", "\t \nxy", "y"}, {"xx", "\ry"}},
        {".\\x41\u00e9", {"zA\u00e9", "\"A\u00e9"}, {"\nA\u00e9", "zAe"}},
    };

    open_vocab();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_str text = {0};
        br_grammar *g;

        t_ok(br_regex_grammar(br_text_z(rows[i].regex), &text, &st), &st);
        g = grammar(br_str_z(&text));
        for (size_t k = 0; k < 4 && rows[i].yes[k]; k++)
            ck_assert_msg(matches(g, rows[i].yes[k]), "%s: %s", rows[i].regex,
                          rows[i].yes[k]);
        for (size_t k = 0; k < 4 && rows[i].no[k]; k++)
            ck_assert_msg(!matches(g, rows[i].no[k]), "%s: not %s",
                          rows[i].regex, rows[i].no[k]);
        br_grammar_free(g);
        br_str_fini(&text);
    }
    close_vocab();
}

/* ---- many texts ---------------------------------------------------------- */

enum { TEXTS = 5000 };

/* Names that begin alike and go apart all over; some begin others. */
static void
put_name(br_str *to, int i)
{
    br_str_printf(to, "%s-%d%s", i % 3 ? "key" : "clé", i * 7919 % 100003,
                  i % 5 ? "" : ".x");
}

static void
check_names(const char *grammar_text, const char *around)
{
    br_grammar *g = grammar(grammar_text);
    br_str s = {0};

    for (int i = 0; i < TEXTS; i += 499)
        for (int bad = 0; bad < 3; bad++) {
            br_str_clear(&s);
            br_str_puts(&s, around);
            put_name(&s, i);
            br_str_puts(&s, bad == 1 ? "7.x7" : "");
            if (bad == 2)
                s.at[s.n - 1] = '~';
            br_str_puts(&s, around);
            ck_assert_msg(matches(g, br_str_z(&s)) == !bad, "%s", br_str_z(&s));
        }
    br_str_fini(&s);
    br_grammar_free(g);
}

TEST(one_of_thousands_of_texts)
{
    br_str schema = {0}, text = {0};
    br_status st = {0};
    char *of_schema;

    open_vocab();
    for (int i = 0; i < TEXTS; i++) {
        br_str_puts(&schema, i ? "\",\"" : "{\"enum\":[\"");
        put_name(&schema, i);
        br_str_puts(&text, i ? "\" | \"" : "root ::= \"");
        put_name(&text, i);
    }
    br_str_puts(&schema, "\"]}");
    br_str_puts(&text, "\"");
    of_schema = schema_text(br_str_z(&schema), BR_OK, &st);
    check_names(of_schema, "\"");
    check_names(br_str_z(&text), "");
    br_str_fini(&schema);
    br_str_fini(&text);
    close_vocab();
}

/* ---- limits -------------------------------------------------------------- */

TEST(a_grammar_that_is_too_much_work_fails_its_answer)
{
    /* After n bytes the stacks are all words of x and y up to that length. */
    static const char text[] = "root ::= \"a\" root x | \"a\" root y | \"b\"\n"
                               "x ::= [c-z]+ \"x\"\ny ::= [c-z]+ \"y\"";
    br_grammar *g;
    br_matcher *m;
    float *logits;
    bool ok = true;

    open_vocab();
    g = grammar(text);
    m = matcher(g);
    logits = malloc((size_t)br_tok_count(tok) * sizeof *logits);
    for (int i = 0; i < 60 && ok; i++) {
        int32_t id = 0;

        memset(logits, 0, (size_t)br_tok_count(tok) * sizeof *logits);
        ok = br_matcher_mask(m, logits, br_tok_count(tok));
        while (!br_text_is(br_tok_bytes(tok, id), "a"))
            id++;
        ok = ok && br_matcher_accept(m, id);
    }
    ck_assert(!ok);
    ck_assert_ptr_nonnull(strstr(br_matcher_hook(m).error, "steps"));
    free(logits);
    br_matcher_free(m);
    br_grammar_free(g);
    close_vocab();
}

static br_code
all_of_it(void *arg, br_status *st)
{
    br_grammar *g = NULL;
    br_matcher *m = NULL;
    br_str text = {0};
    br_json *tree;
    br_arena a;
    float *logits = arg;
    br_code code;

    br_arena_init(&a, 0);
    code = br_json_parse(&tree, &a, json_schema, strlen(json_schema), 0, st);
    if (code == BR_OK)
        code = br_schema_grammar(tree, &text, st);
    if (code == BR_OK)
        code = br_grammar_new(&g, (br_text){text.at, text.n}, vocab, st);
    if (code == BR_OK)
        code = br_matcher_new(&m, g, st);
    for (int i = 0; code == BR_OK && i < 3; i++) {
        int32_t id = 0;

        memset(logits, 0, (size_t)br_tok_count(tok) * sizeof *logits);
        if (!br_matcher_mask(m, logits, br_tok_count(tok))) {
            code = br_fail(st, BR_E_OOM, "%s", br_matcher_hook(m).error);
            break;
        }
        while (logits[id] == -INFINITY)
            id++;
        if (!br_matcher_accept(m, id))
            code = br_fail(st, BR_E_OOM, "%s", br_matcher_hook(m).error);
    }
    br_matcher_free(m);
    br_grammar_free(g);
    br_str_fini(&text);
    br_arena_fini(&a);
    return code;
}

static br_code
make_vocab(void *arg, br_status *st)
{
    br_vocab *v;

    (void)arg;
    BR_TRY(br_vocab_new(&v, tok, NULL, st));
    br_vocab_free(v);
    return BR_OK;
}

TEST(grammars_without_memory)
{
    float *logits;

    open_vocab();
    logits = malloc((size_t)br_tok_count(tok) * sizeof *logits);
    t_each_oom(make_vocab, NULL);
    t_each_oom(all_of_it, logits);
    free(logits);
    close_vocab();
}
