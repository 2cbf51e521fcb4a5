/* gen_grammar.c - what may come: the answer's grammar, its thoughts' end.
 *
 * Grammars that were asked for lately are kept: making one of a schema takes
 * longer than a token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <string.h>

br_code
br_gen_grammar(br_http *h, br_text text, br_grammar **out, br_status *st)
{
    const br_vocab *vocab = h->model->vocab;
    struct br_kept *at = &h->kept[0];
    br_status why = {0};
    br_code code;

    *out = NULL;
    if (!vocab)
        return br_fail(st, BR_E_OOM, "grammar: out of memory");
    for (size_t i = 0; i < BR_COUNT(h->kept); i++) {
        struct br_kept *k = &h->kept[i];

        if (k->g && k->vocab == vocab &&
            br_text_eq(text, (br_text){k->text.at, k->text.n})) {
            k->used = ++h->n_kept;
            *out = k->g;
            return BR_OK;
        }
        at = k->used < at->used ? k : at;
    }
    br_grammar_free(at->g);
    at->g = NULL;
    at->used = 0;
    br_str_clear(&at->text);
    br_str_put(&at->text, text.p, text.n);
    if (at->text.oom)
        return br_fail(st, BR_E_OOM, "grammar: out of memory");
    code = br_grammar_new(&at->g, text, vocab, &why);
    if (code != BR_OK)
        return br_fail(st, code == BR_E_OOM ? code : BR_E_USAGE, "%s", why.msg);
    at->vocab = vocab;
    at->used = ++h->n_kept;
    *out = at->g;
    return BR_OK;
}

br_code
br_gen_form(br_gen *g, br_status *st)
{
    br_text text = {g->ask.grammar.at, g->ask.grammar.n};
    const char *field = g->ask.form ? g->ask.form : "tools";
    br_status why = {0};
    br_code code;

    if (!text.n)
        return BR_OK;
    code = br_gen_grammar(g->h, text, &g->grammar, &why);
    if (code == BR_OK)
        return BR_OK;
    g->ask.param = field;
    if (strcmp(field, "grammar") == 0) /* it says so */
        return br_fail(st, code, "%s", why.msg);
    return br_fail(st, code, "%s: %s", field, why.msg);
}

br_code
br_gen_hook(br_gen *g, br_choice *c, br_logit_hook *hook, br_status *st)
{
    br_think_cap_config cap = {
        .t = g->think, .tok = g->model->m.tok, .open = g->thinks};

    if (g->grammar) {
        BR_TRY(br_matcher_new(&c->matcher, g->grammar, st));
        cap.form = br_matcher_hook(c->matcher);
        /* grammars that know the form of thoughts have them */
        if (g->think && !(g->tools && g->tools->before))
            br_matcher_after(c->matcher, br_think_begin(g->think),
                             br_think_end(g->think),
                             g->thinks || br_think_always(g->think));
        c->tools = (br_tool_reader){
            .s = g->tools, .tools = g->ask.tools.at, .n_tools = g->ask.tools.n};
    }
    *hook = cap.form;
    if (!g->think || g->ask.think_most < 0)
        return BR_OK;
    cap.most = (uint32_t)BR_MIN(g->ask.think_most, (int64_t)UINT32_MAX);
    BR_TRY(br_think_cap_new(&c->cap, &cap, st));
    *hook = br_think_cap_hook(c->cap);
    return BR_OK;
}
