/* grammar_kit.c - see grammar_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grammar_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

br_tok *gk_tok;
br_vocab *gk_vocab;

void
gk_open(void)
{
    br_status st = {0};

    t_ok(br_tok_open(&gk_tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&gk_vocab, gk_tok, NULL, &st), &st);
}

void
gk_close(void)
{
    br_vocab_free(gk_vocab);
    br_tok_free(gk_tok);
}

br_grammar *
gk_grammar(const char *text)
{
    br_status st = {0};
    br_grammar *g;

    t_ok(br_grammar_new(&g, br_text_z(text), gk_vocab, &st), &st);
    return g;
}

br_matcher *
gk_matcher(br_grammar *g)
{
    br_status st = {0};
    br_matcher *m;

    t_ok(br_matcher_new(&m, g, &st), &st);
    return m;
}

bool
gk_allowed(br_matcher *m, float *logits, int32_t id)
{
    memset(logits, 0, (size_t)br_tok_count(gk_tok) * sizeof *logits);
    ck_assert(br_matcher_mask(m, logits, br_tok_count(gk_tok)));
    return logits[id] > -INFINITY;
}

/* Whether the text, fed byte by byte, is one of the grammar's. */
bool
gk_matches(br_grammar *g, const char *text)
{
    br_matcher *m = gk_matcher(g);
    float *logits = malloc((size_t)br_tok_count(gk_tok) * sizeof *logits);
    size_t n;
    int32_t eog = br_tok_eog(gk_tok, &n)[0];
    bool ok = true;

    for (const char *p = text; *p && ok; p++) {
        int32_t id = 0; /* the token of this byte alone */

        while (!br_text_eq(br_tok_bytes(gk_tok, id), (br_text){p, 1}))
            id++;
        ok = gk_allowed(m, logits, id);
        ck_assert_int_eq(br_matcher_accept(m, id), ok);
    }
    ok = ok && gk_allowed(m, logits, eog);
    br_matcher_free(m);
    free(logits);
    return ok;
}

char *
gk_schema(const char *schema, br_code want, br_status *st)
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
int32_t
gk_draw(const float *logits, uint64_t *seed, size_t n_out)
{
    static const char *const ends[] = {"\"", "]", "}", "0", "null", "1", ":"};
    int32_t n = br_tok_count(gk_tok), left = 0, id = 0;
    size_t n_eog;
    int32_t eog = br_tok_eog(gk_tok, &n_eog)[0];

    if (logits[eog] > -INFINITY && (n_out > 40 || t_rand(seed) % 3 == 0))
        return eog;
    for (size_t i = 0; n_out > 40 && i < BR_COUNT(ends); i++)
        for (int32_t k = 0; k < n; k++)
            if (logits[k] > -INFINITY &&
                br_text_is(br_tok_bytes(gk_tok, k), ends[i]))
                return k;
    for (int32_t k = 0; k < n; k++)
        left += logits[k] > -INFINITY;
    ck_assert_int_gt(left, 0);
    left = (int32_t)(t_rand(seed) % (uint64_t)left);
    while (logits[id] == -INFINITY || left-- > 0)
        id++;
    return id;
}
