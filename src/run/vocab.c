/* vocab.c - see vocab.h. 150,000 tokens: 40 ms, 5 MB.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/vocab.h"

#include "run/toolcall.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    br_text text;
    int32_t id;
} row;

static int
by_text(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int d = memcmp(x->text.p, y->text.p, BR_MIN(x->text.n, y->text.n));

    if (d)
        return d;
    if (x->text.n != y->text.n)
        return x->text.n < y->text.n ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static bool
is_text(const br_tok *t, const br_tool_syntax *tools, int32_t id)
{
    br_tok_type type = br_tok_type_of(t, id);
    size_t n = br_tok_bytes(t, id).n;

    if (tools && type == BR_TOK_CONTROL && !br_tok_is_eog(t, id) &&
        n <= BR_VOCAB_DEEPEST && br_tool_syntax_has(tools, br_tok_bytes(t, id)))
        return true;
    return n > 0 && n <= BR_VOCAB_DEEPEST && type != BR_TOK_UNUSED &&
           !br_tok_is_special(t, id) && !br_tok_is_eog(t, id);
}

static size_t
common(br_text a, br_text b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.p[n] == b.p[n])
        n++;
    return n;
}

/* Rows in order; room for `most` nodes. */
static void
plant(br_vocab *v, const row *rows, size_t n)
{
    uint32_t path[BR_VOCAB_DEEPEST + 1] = {0};
    br_text last = {0};
    size_t deep = 0;

    v->token[0] = -1;
    v->n_nodes = 1;
    for (size_t i = 0; i < n; i++) {
        br_text t = rows[i].text;
        size_t same = common(last, t);
        uint32_t at;

        for (; deep > same; deep--)
            v->skip[path[deep]] = v->n_nodes;
        while (deep < t.n) {
            at = v->n_nodes++;
            v->byte[at] = (uint8_t)t.p[deep];
            path[++deep] = at;
            v->depth[at] = (uint8_t)deep;
            v->token[at] = -1;
        }
        at = path[deep];
        v->same[rows[i].id] = v->token[at];
        v->token[at] = rows[i].id | (v->token[at] < 0 ? 0 : BR_VOCAB_MORE);
        last = t;
    }
    for (;; deep--) {
        v->skip[path[deep]] = v->n_nodes;
        if (deep == 0)
            break;
    }
}

static br_code
fill(br_vocab *v, const br_tool_syntax *tools, row *rows, br_status *st)
{
    size_t n = 0, bytes = 1;

    for (int32_t id = 0; id < (int32_t)v->n_tokens; id++) {
        if (!is_text(v->tok, tools, id))
            continue;
        rows[n] = (row){br_tok_bytes(v->tok, id), id};
        bytes += rows[n++].text.n; /* below 2^28, the tokenizer's limit */
    }
    if (n)
        qsort(rows, n, sizeof *rows, by_text);
    v->byte = br_try_calloc(bytes, 1);
    v->depth = br_try_calloc(bytes, 1);
    v->skip = br_try_calloc(bytes, sizeof *v->skip);
    v->token = br_try_calloc(bytes, sizeof *v->token);
    v->same = br_try_calloc((size_t)v->n_tokens + 1, sizeof *v->same);
    if (!v->byte || !v->depth || !v->skip || !v->token || !v->same)
        return br_fail(st, BR_E_OOM, "vocabulary: out of memory");
    plant(v, rows, n);
    return BR_OK;
}

br_code
br_vocab_new(br_vocab **out, const br_tok *tok, const br_tool_syntax *tools,
             br_status *st)
{
    br_vocab *v = br_try_calloc(1, sizeof *v);
    size_t n = (size_t)br_tok_count(tok);
    row *rows = br_try_calloc(n + 1, sizeof *rows);
    br_code code;

    *out = NULL;
    if (!v || !rows) {
        br_free(v);
        br_free(rows);
        return br_fail(st, BR_E_OOM, "vocabulary: out of memory");
    }
    v->tok = tok;
    v->n_tokens = (uint32_t)n;
    code = fill(v, tools, rows, st);
    br_free(rows);
    if (code != BR_OK)
        br_vocab_free(v);
    else
        *out = v;
    return code;
}

void
br_vocab_free(br_vocab *v)
{
    if (!v)
        return;
    br_free(v->byte);
    br_free(v->depth);
    br_free(v->skip);
    br_free(v->token);
    br_free(v->same);
    br_free(v);
}
