/* test_grammar.c - grammars: what they let through, and what not.
 *
 * Masks are held against the slow truth: a token is allowed when its bytes,
 * one after another, are. Schemas: test_schema.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grammar_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

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

    gk_open();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_grammar *g = gk_grammar(rows[i].grammar);

        for (size_t k = 0; k < 6 && rows[i].yes[k]; k++)
            ck_assert_msg(gk_matches(g, rows[i].yes[k]), "%s: '%s'",
                          rows[i].grammar, rows[i].yes[k]);
        for (size_t k = 0; k < 6 && rows[i].no[k]; k++)
            ck_assert_msg(!gk_matches(g, rows[i].no[k]), "%s: not '%s'",
                          rows[i].grammar, rows[i].no[k]);
        br_grammar_free(g);
    }
    gk_close();
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

    gk_open();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        st = (br_status){0};
        ck_assert_int_ne(
            br_grammar_new(&g, br_text_z(rows[i].grammar), gk_vocab, &st),
            BR_OK);
        ck_assert_msg(strstr(st.msg, rows[i].says), "%s: %s", rows[i].grammar,
                      st.msg);
    }
    br_str_puts(&deep, "root ::= ");
    for (int i = 0; i < 100; i++)
        br_str_putc(&deep, '(');
    st = (br_status){0};
    ck_assert_int_eq(
        br_grammar_new(&g, (br_text){deep.at, deep.n}, gk_vocab, &st),
        BR_E_LIMIT);
    br_str_fini(&deep);
    gk_close();
}

/* ---- masks against bytes ------------------------------------------------- */

static const char json_schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tag\"}},"
    "\"n\":{\"type\":\"integer\",\"minimum\":-20,\"maximum\":1234}},"
    "\"required\":[\"name\"],\"$defs\":{\"tag\":{\"anyOf\":[{\"type\":"
    "\"string\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tag\"}}]}}}";

/* Whether the token can follow the text, by its bytes. */
static bool
can_follow(br_grammar *g, const br_tok_ids *ids, int32_t id)
{
    br_matcher *m = gk_matcher(g);
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
    br_grammar *g = gk_grammar(text);
    br_matcher *m = gk_matcher(g);
    int32_t n = br_tok_count(gk_tok), wrong = 0;
    float *logits = malloc((size_t)n * sizeof *logits);
    br_tok_ids ids = {0};

    for (size_t i = 0; i < 20; i++) {
        int32_t id, step = t_sanitized() ? 17 : 1;

        memset(logits, 0, (size_t)n * sizeof *logits);
        ck_assert(br_matcher_mask(m, logits, n));
        for (id = 0; i % 6 == 0 && id < n; id += step)
            if (!br_tok_is_special(gk_tok, id) && !br_tok_is_eog(gk_tok, id) &&
                br_tok_bytes(gk_tok, id).n)
                wrong += can_follow(g, &ids, id) != (logits[id] > -INFINITY);
        ck_assert_msg(!wrong, "%s: %d tokens at step %zu", text, wrong, i);
        id = gk_draw(logits, &seed, i);
        if (br_tok_is_eog(gk_tok, id))
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
        ("root ::= word (\" \" word)* \".\"\nword ::= [a-zA-Z]+ | num\n"
         "num ::= [0-9]{1,12}"),
        "root ::= (item \"\\n\"){1,5}\nitem ::= \"- \" [^\\n]+",
        "root ::= \"the \" [a-z]* \" fox\" | \"the cat\" rest\nrest ::= .*",
    };
    br_status st = {0};

    gk_open();
    for (size_t i = 0; i < BR_COUNT(texts); i++)
        check_masks(texts[i], i);
    check_masks(gk_schema(json_schema, BR_OK, &st), 7);
    check_masks(gk_schema("{}", BR_OK, &st), 8);
    gk_close();
}

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

    gk_open();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_str text = {0};
        br_grammar *g;

        t_ok(br_regex_grammar(br_text_z(rows[i].regex), &text, &st), &st);
        g = gk_grammar(br_str_z(&text));
        for (size_t k = 0; k < 4 && rows[i].yes[k]; k++)
            ck_assert_msg(gk_matches(g, rows[i].yes[k]), "%s: %s",
                          rows[i].regex, rows[i].yes[k]);
        for (size_t k = 0; k < 4 && rows[i].no[k]; k++)
            ck_assert_msg(!gk_matches(g, rows[i].no[k]), "%s: not %s",
                          rows[i].regex, rows[i].no[k]);
        br_grammar_free(g);
        br_str_fini(&text);
    }
    gk_close();
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
    br_grammar *g = gk_grammar(grammar_text);
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
            ck_assert_msg(gk_matches(g, br_str_z(&s)) == !bad, "%s",
                          br_str_z(&s));
        }
    br_str_fini(&s);
    br_grammar_free(g);
}

TEST(one_of_thousands_of_texts)
{
    br_str schema = {0}, text = {0};
    br_status st = {0};
    char *of_schema;

    gk_open();
    for (int i = 0; i < TEXTS; i++) {
        br_str_puts(&schema, i ? "\",\"" : "{\"enum\":[\"");
        put_name(&schema, i);
        br_str_puts(&text, i ? "\" | \"" : "root ::= \"");
        put_name(&text, i);
    }
    br_str_puts(&schema, "\"]}");
    br_str_puts(&text, "\"");
    of_schema = gk_schema(br_str_z(&schema), BR_OK, &st);
    check_names(of_schema, "\"");
    check_names(br_str_z(&text), "");
    br_str_fini(&schema);
    br_str_fini(&text);
    gk_close();
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

    gk_open();
    g = gk_grammar(text);
    m = gk_matcher(g);
    logits = malloc((size_t)br_tok_count(gk_tok) * sizeof *logits);
    for (int i = 0; i < 60 && ok; i++) {
        int32_t id = 0;

        memset(logits, 0, (size_t)br_tok_count(gk_tok) * sizeof *logits);
        ok = br_matcher_mask(m, logits, br_tok_count(gk_tok));
        while (!br_text_is(br_tok_bytes(gk_tok, id), "a"))
            id++;
        ok = ok && br_matcher_accept(m, id);
    }
    ck_assert(!ok);
    ck_assert_ptr_nonnull(strstr(br_matcher_hook(m).error, "steps"));
    free(logits);
    br_matcher_free(m);
    br_grammar_free(g);
    gk_close();
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
        code = br_grammar_new(&g, (br_text){text.at, text.n}, gk_vocab, st);
    if (code == BR_OK)
        code = br_matcher_new(&m, g, st);
    for (int i = 0; code == BR_OK && i < 3; i++) {
        const br_logit_hook hook = br_matcher_hook(m);
        int32_t id = 0;

        memset(logits, 0, (size_t)br_tok_count(gk_tok) * sizeof *logits);
        if (!br_matcher_mask(m, logits, br_tok_count(gk_tok))) {
            code = br_hook_fails(&hook, st);
            break;
        }
        while (logits[id] == -INFINITY)
            id++;
        if (!br_matcher_accept(m, id))
            code = br_hook_fails(&hook, st);
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
    BR_TRY(br_vocab_new(&v, gk_tok, NULL, st));
    br_vocab_free(v);
    return BR_OK;
}

TEST(grammars_without_memory)
{
    float *logits;

    gk_open();
    logits = malloc((size_t)br_tok_count(gk_tok) * sizeof *logits);
    t_each_oom(make_vocab, NULL);
    t_each_oom(all_of_it, logits);
    free(logits);
    gk_close();
}
