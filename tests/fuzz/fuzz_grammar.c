/* fuzz_grammar.c - any bytes as a grammar, a schema or a pattern, and answers
 * drawn under what is accepted.
 *
 * The first byte says which of the three. A schema that is accepted makes a
 * grammar that has only what schemas can do wrong: rounds without an end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static br_vocab *
vocab(void)
{
    static br_vocab *v;
    br_tok *t;

    if (!v)
        br_check(br_tok_open(&t, "models/demo.gguf", NULL, NULL) == BR_OK &&
                 br_vocab_new(&v, t, NULL, NULL) == BR_OK);
    return v;
}

/* Some tokens that may come: each of them is accepted, and others are not. */
static void
use(br_grammar *g, const uint8_t *data, size_t size)
{
    int32_t n = br_tok_count(vocab()->tok);
    float logits[4096];
    br_status st = {0};
    br_matcher *m;

    br_check(n <= 4096 && br_matcher_new(&m, g, &st) == BR_OK);
    for (size_t i = 0; i < BR_MIN(size, (size_t)8); i++) {
        int32_t id = data[i] % n, tries = 0;

        memset(logits, 0, sizeof logits);
        if (!br_matcher_mask(m, logits, n))
            break; /* too much work; m says so */
        while (logits[id] == -INFINITY && tries++ < n)
            id = (id + 1) % n;
        if (tries > n || br_tok_is_eog(vocab()->tok, id))
            break;
        br_check(br_matcher_accept(m, id));
    }
    br_matcher_free(m);
}

static br_code
schema_text(br_str *text, const char *p, size_t n, br_status *st)
{
    br_arena a;
    br_json *tree;
    br_code code;

    br_arena_init(&a, 1 << 22);
    code = br_json_parse(&tree, &a, p, n, 0, st);
    if (code == BR_OK) {
        code = br_schema_grammar(tree, text, st);
        br_check(code == BR_OK || (st->msg[0] && (code == BR_E_UNSUPPORTED ||
                                                  code == BR_E_LIMIT)));
    }
    br_arena_fini(&a);
    return code;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data + 1;
    br_status st = {0};
    br_str text = {0};
    br_grammar *g;
    br_code code = BR_OK;

    if (size < 1 || size > 4096)
        return 0;
    if (data[0] % 3 == 0)
        br_str_put(&text, p, size - 1);
    else if (data[0] % 3 == 1)
        code = schema_text(&text, p, size - 1, &st);
    else if (data[0] & 0x80)
        code = br_regex_grammar((br_text){p, size - 1}, &text, &st);
    else {
        br_str_puts(&text, "root ::= ");
        code = br_pattern_grammar((br_text){p, size - 1}, &text, &st);
        br_str_puts(&text, "\nchar ::= [a-z]");
    }
    br_check(code == BR_OK || st.msg[0]);
    if (code == BR_OK) {
        code = br_grammar_new(&g, (br_text){br_str_z(&text), text.n}, vocab(),
                              &st);
        if (code == BR_OK)
            use(g, data, size);
        /* What we wrote ourselves is well formed. */
        br_check(code == BR_OK || data[0] % 3 == 0 || code == BR_E_LIMIT ||
                 strstr(st.msg, "calls itself") || strstr(st.msg, "an end") ||
                 strstr(st.msg, "not a repetition"));
        br_grammar_free(g);
    }
    br_str_fini(&text);
    return 0;
}
