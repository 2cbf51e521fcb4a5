/* ir_text.c - a graph as text, and back to the same block of bytes.
 *
 *   graph llama-decode stage=decode
 *   value model.attn.q_weight[0] BF16 [64,64] layer=0
 *   value t.q[0] F32 [T,64] layer=0
 *   const model.rope.freq 0x1p+0 0x1.99999ap-4 ...
 *   node ROPE layer=0 t.q[0] step.position model.rope.freq -> t.q_rope[0]
 *       heads=2 head_dim=32 n_rot=32 kind=2 scale=0x1p+0
 *
 * A line each (the node's is one line in truth). A binding is a name, with its
 * columns where they are not all: t.qkv[0]{0:64} or, for columns that stand
 * apart, t.q[0]{0:64/128*4} (width 64 every 128, 4 times). - is a binding left
 * out. Floats are hexadecimal, so that every bit comes back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/words.h"
#include "ir/ir_int.h"
#include "model/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ----------------------------------------------------------- */

static void
put_name(const br_ir *g, uint32_t v, br_str *out)
{
    br_text t = br_ir_value_name(g, v);

    br_str_put(out, t.p, t.n);
}

static void
put_dims(const br_ir_value *v, br_str *out)
{
    br_str_putc(out, '[');
    for (int i = 0; i < v->rank; i++) {
        if (i)
            br_str_putc(out, ',');
        switch (v->dim[i]) {
        case BR_DIM_T: br_str_putc(out, 'T'); break;
        case BR_DIM_POS: br_str_putc(out, 'P'); break;
        case BR_DIM_S: br_str_putc(out, 'S'); break;
        default: br_str_printf(out, "%lld", (long long)v->dim[i]); break;
        }
    }
    br_str_putc(out, ']');
}

static void
put_f64(br_str *out, double v)
{
    char text[32];

    br_str_put(out, text, br_f64_hex(text, v));
}

static void
put_value(const br_ir *g, uint32_t i, br_str *out)
{
    const br_ir_value *v = &g->values[i];
    int64_t n = v->data == BR_IR_NONE ? 0 : br_ir_cols(v) * v->dim[0];

    br_str_puts(out, v->data == BR_IR_NONE ? "value " : "const ");
    put_name(g, i, out);
    br_str_printf(out, " %s ", br_qinfo_of(v->dtype)->name);
    put_dims(v, out);
    if (v->layer >= 0)
        br_str_printf(out, " layer=%d", v->layer);
    for (int64_t k = 0; k < n; k++) {
        br_str_putc(out, ' ');
        put_f64(out, (double)g->data[v->data + k]);
    }
    br_str_putc(out, '\n');
}

static void
put_bind(const br_ir *g, const br_ir_bind *b, br_str *out)
{
    br_str_putc(out, ' ');
    if (b->value == BR_IR_NONE) {
        br_str_putc(out, '-');
        return;
    }
    put_name(g, b->value, out);
    if (b->count == 1 && b->off == 0 && b->stride == b->width &&
        b->width == br_ir_cols(&g->values[b->value]))
        return;
    br_str_printf(out, "{%u:%u", b->off, b->width);
    if (b->count != 1 || b->stride != b->width)
        br_str_printf(out, "/%u*%u", b->stride, b->count);
    br_str_putc(out, '}');
}

static void
put_node(const br_ir *g, const br_ir_node *n, br_str *out)
{
    br_str_printf(out, "node %s", br_ir_opinfo_of(n->op)->name);
    if (n->layer >= 0)
        br_str_printf(out, " layer=%d", n->layer);
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        if (i == n->n_in)
            br_str_puts(out, " ->");
        put_bind(g, &n->bind[i], out);
    }
    for (int a = 0; a < BR_IA_COUNT; a++) {
        if (!br_ir_has(n, (br_ir_attr)a))
            continue;
        br_str_printf(out, " %s=", br_ir_attr_name(a));
        if (br_ir_attr_type(a) == 'I')
            br_str_printf(out, "%lld", (long long)br_ir_i(n, (br_ir_attr)a, 0));
        else
            put_f64(out, br_ir_f(n, (br_ir_attr)a, 0));
    }
    br_str_putc(out, '\n');
}

void
br_ir_print(const br_ir *g, br_str *out)
{
    br_str_printf(out, "graph %s stage=%s\n", g->name,
                  g->stage == BR_IR_DECODE ? "decode" : "prefill");
    for (uint32_t i = 0; i < g->n_values; i++)
        put_value(g, i, out);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        put_node(g, &g->nodes[i], out);
}

/* ---- parsing ------------------------------------------------------------ */

enum { MAX_WORDS = 32, MAX_CONST = 1 << 20 };

typedef struct parser {
    br_ir_builder *b;
    br_status *st;
    br_words in;
} parser;

static br_code
wrong(const parser *p, const char *rule, br_text word)
{
    return br_words_wrong(&p->in, rule, word, p->st);
}

/* Digits, maybe after a minus; advances. */
static bool
number(br_text *t, int64_t *out)
{
    bool minus = t->n && t->p[0] == '-';
    size_t i = minus, from = i;
    int64_t v = 0;

    for (; i < t->n && t->p[i] >= '0' && t->p[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, t->p[i] - '0', &v))
            return false;
    if (i == from)
        return false;
    *out = minus ? -v : v;
    *t = (br_text){t->p + i, t->n - i};
    return true;
}

static bool
number_u32(br_text *t, uint32_t *out)
{
    int64_t v;

    if (!number(t, &v) || v < 0 || v >= UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool
eat(br_text *t, char c)
{
    if (t->n == 0 || t->p[0] != c)
        return false;
    *t = (br_text){t->p + 1, t->n - 1};
    return true;
}

static bool
float_of(br_text t, float *out)
{
    double v;

    if (!br_f64_read(t, &v))
        return false;
    *out = (float)v;
    return (double)*out == v;
}

static bool
dims(br_text t, br_ir_desc *d)
{
    if (!eat(&t, '['))
        return false;
    do {
        int64_t *to = &d->dim[d->rank];

        if (d->rank == BR_IR_MAX_RANK)
            return false;
        d->rank++;
        if (eat(&t, 'T'))
            *to = BR_DIM_T;
        else if (eat(&t, 'P'))
            *to = BR_DIM_POS;
        else if (eat(&t, 'S'))
            *to = BR_DIM_S;
        else if (!number(&t, to) || *to < 1)
            return false;
    } while (eat(&t, ','));
    return eat(&t, ']') && t.n == 0;
}

static bool
layer_word(parser *p, int *layer)
{
    const char *at = p->in.w;
    br_text w = br_words_next(&p->in);
    int64_t v;

    *layer = -1;
    if (w.n > 6 && memcmp(w.p, "layer=", 6) == 0) {
        w = (br_text){w.p + 6, w.n - 6};
        if (!number(&w, &v) || w.n || v < 0 || v > 1 << 20)
            return false;
        *layer = (int)v;
        return true;
    }
    p->in.w = at;
    return true;
}

static br_code
const_data(parser *p, br_ir_desc *d, float **out)
{
    int64_t n = 1;
    br_text w;

    for (int i = 0; i < d->rank; i++)
        if (d->dim[i] < 1 || __builtin_mul_overflow(n, d->dim[i], &n) ||
            n > MAX_CONST)
            return wrong(p, "a constant has 1..1048576 numbers", (br_text){0});
    *out = br_try_calloc((size_t)n, sizeof **out);
    if (!*out)
        return br_fail(p->st, BR_E_OOM, "constant: out of memory");
    for (int64_t i = 0; i < n; i++) {
        w = br_words_next(&p->in);
        if (!float_of(w, *out + i))
            return wrong(p, "there has to be an f32 number", w);
    }
    d->data = *out;
    return BR_OK;
}

static br_code
value_line(parser *p, bool constant)
{
    char name[BR_IR_MAX_NAME_BYTES + 1];
    br_ir_desc d = {.name = name};
    br_text w = br_words_next(&p->in);
    float *data = NULL;
    br_code code = BR_OK;

    if (w.n == 0 || w.n > BR_IR_MAX_NAME_BYTES || memchr(w.p, 0, w.n))
        return wrong(p, "a name has 1..255 bytes", w);
    memcpy(name, w.p, w.n);
    name[w.n] = 0;
    w = br_words_next(&p->in);
    d.dtype = br_qtype_find(w);
    if (d.dtype < 0)
        return wrong(p, "no such number format", w);
    w = br_words_next(&p->in);
    if (!dims(w, &d))
        return wrong(p, "a shape is [numbers, T, P or S]", w);
    if (!layer_word(p, &d.layer))
        return wrong(p, "layer= wants a number", (br_text){0});
    if (constant)
        code = const_data(p, &d, &data);
    if (code == BR_OK && (w = br_words_next(&p->in)).n)
        code = wrong(p, "nothing more may come", w);
    if (code == BR_OK)
        (void)br_ir_add_value(p->b, &d);
    br_free(data);
    return code;
}

static br_code
bind_word(parser *p, br_text w, br_ir_bind *out)
{
    char name[BR_IR_MAX_NAME_BYTES + 1];
    const char *brace = memchr(w.p, '{', w.n);
    size_t n = brace ? (size_t)(brace - w.p) : w.n;
    br_text cut = {w.p + n, w.n - n};
    uint32_t v;

    *out = br_ir_none();
    if (br_text_is(w, "-"))
        return BR_OK;
    if (n == 0 || n > BR_IR_MAX_NAME_BYTES)
        return wrong(p, "no such value", w);
    memcpy(name, w.p, n);
    name[n] = 0;
    v = br_ir_find_value(p->b, name);
    if (v == BR_IR_NONE)
        return wrong(p, "no such value", w);
    *out = br_ir_all(p->b, v);
    if (!brace)
        return BR_OK;
    if (!eat(&cut, '{') || !number_u32(&cut, &out->off) || !eat(&cut, ':') ||
        !number_u32(&cut, &out->width))
        return wrong(p, "columns are {from:width/every*times}", w);
    out->stride = out->width;
    if (eat(&cut, '/') && (!number_u32(&cut, &out->stride) || !eat(&cut, '*') ||
                           !number_u32(&cut, &out->count)))
        return wrong(p, "columns are {from:width/every*times}", w);
    return eat(&cut, '}') && cut.n == 0
               ? BR_OK
               : wrong(p, "columns are {from:width/every*times}", w);
}

static br_code
attr_word(parser *p, br_text w)
{
    const char *eq = memchr(w.p, '=', w.n);
    br_text val;
    int64_t i;
    float f;
    int a;

    if (!eq)
        return wrong(p, "an attribute is name=number", w);
    a = br_ir_attr_find((br_text){w.p, (size_t)(eq - w.p)});
    if (a < 0)
        return wrong(p, "no such attribute", w);
    val = (br_text){eq + 1, (size_t)(w.p + w.n - eq - 1)};
    if (br_ir_attr_type(a) == 'F') {
        if (!float_of(val, &f))
            return wrong(p, "there has to be an f32 number", w);
        br_ir_set_f(p->b, (br_ir_attr)a, f);
        return BR_OK;
    }
    if (!number(&val, &i) || val.n)
        return wrong(p, "there has to be an integer", w);
    br_ir_set_i(p->b, (br_ir_attr)a, i);
    return BR_OK;
}

static br_code
node_line(parser *p)
{
    br_ir_node_desc d = {0};
    br_text w = br_words_next(&p->in);
    int op = br_ir_op_find(w);
    bool out = false;

    if (op < 0)
        return wrong(p, "no such opcode", w);
    d.op = (br_ir_op)op;
    if (!layer_word(p, &d.layer))
        return wrong(p, "layer= wants a number", (br_text){0});
    for (w = br_words_next(&p->in); w.n && !(out || memchr(w.p, '=', w.n));
         w = br_words_next(&p->in)) {
        if (br_text_is(w, "->")) {
            out = true;
            continue;
        }
        if (d.n_in == BR_IR_MAX_BINDINGS)
            return wrong(p, "more than 8 bindings", w);
        BR_TRY(bind_word(p, w, &d.in[d.n_in++]));
    }
    for (; w.n && !memchr(w.p, '=', w.n); w = br_words_next(&p->in)) {
        if (d.n_out == BR_IR_MAX_BINDINGS)
            return wrong(p, "more than 8 bindings", w);
        BR_TRY(bind_word(p, w, &d.out[d.n_out++]));
    }
    if (br_ir_add_node(p->b, &d) == BR_IR_NONE)
        return BR_OK; /* the builder knows why */
    for (; w.n; w = br_words_next(&p->in))
        BR_TRY(attr_word(p, w));
    return BR_OK;
}

static br_code
body(parser *p)
{
    while (br_words_line(&p->in)) {
        br_text w = br_words_next(&p->in);

        if (w.n == 0 || w.p[0] == ';')
            continue;
        if (br_text_is(w, "value"))
            BR_TRY(value_line(p, false));
        else if (br_text_is(w, "const"))
            BR_TRY(value_line(p, true));
        else if (br_text_is(w, "node"))
            BR_TRY(node_line(p));
        else
            return wrong(p, "a line is value, const or node", w);
        if (br_ir_builder_status(p->b)->code != BR_OK)
            return br_fail(p->st, br_ir_builder_status(p->b)->code,
                           "line %u: %s", p->in.line,
                           br_ir_builder_status(p->b)->msg);
    }
    return BR_OK;
}

br_code
br_ir_parse(br_ir **out, const char *text, size_t n, br_status *st)
{
    parser p = {.st = st, .in = {.p = text, .end = text + n, .gaps = " "}};
    char name[BR_IR_MAX_NAME_BYTES + 1];
    br_text w, stage;
    br_code code;

    *out = NULL;
    if (!br_words_line(&p.in) ||
        (w = br_words_next(&p.in), !br_text_is(w, "graph")))
        return br_fail(st, BR_E_FORMAT,
                       "line 1: 'graph NAME stage=...' has to "
                       "begin it");
    w = br_words_next(&p.in);
    stage = br_words_next(&p.in);
    if (w.n == 0 || w.n > BR_IR_MAX_NAME_BYTES || memchr(w.p, 0, w.n))
        return wrong(&p, "a name has 1..255 bytes", w);
    if (!br_text_is(stage, "stage=decode") &&
        !br_text_is(stage, "stage=prefill"))
        return wrong(&p, "stage= is decode or prefill", stage);
    memcpy(name, w.p, w.n);
    name[w.n] = 0;
    p.b = br_ir_builder_new(
        name, br_text_is(stage, "stage=decode") ? BR_IR_DECODE : BR_IR_PREFILL);
    if (!p.b)
        return br_fail(st, BR_E_OOM, "graph: out of memory");
    code = body(&p);
    if (code == BR_OK)
        code = br_ir_freeze(p.b, out, st);
    br_ir_builder_free(p.b);
    return code;
}
