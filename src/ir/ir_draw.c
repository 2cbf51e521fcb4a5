/* ir_draw.c - a graph as JSON, DOT and SVG.
 *
 * The SVG is a column of nodes per layer, in order, with the values between
 * them: what flows is drawn where it flows, weights are written beside.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "ir/ir_int.h"
#include "model/quant.h"

#include <stdio.h>
#include <string.h>

/* ---- JSON --------------------------------------------------------------- */

static void
json_dims(br_json_writer *w, const br_ir_value *v)
{
    br_json_w_key(w, "shape");
    br_json_w_arr(w);
    for (int i = 0; i < v->rank; i++) {
        if (v->dim[i] == BR_DIM_T)
            br_json_w_strz(w, "T");
        else if (v->dim[i] == BR_DIM_POS)
            br_json_w_strz(w, "P");
        else if (v->dim[i] == BR_DIM_S)
            br_json_w_strz(w, "S");
        else
            br_json_w_i64(w, v->dim[i]);
    }
    br_json_w_arr_end(w);
}

static void
json_value(br_json_writer *w, const br_ir *g, uint32_t i)
{
    const br_ir_value *v = &g->values[i];

    br_json_w_obj(w);
    br_json_w_key(w, "name");
    br_json_w_str(w, br_ir_value_name(g, i));
    br_json_w_key_strz(w, "dtype", br_qinfo_of(v->dtype)->name);
    json_dims(w, v);
    if (v->layer >= 0) {
        br_json_w_key_i64(w, "layer", v->layer);
    }
    br_json_w_obj_end(w);
}

static void
json_bind(br_json_writer *w, const br_ir_bind *b)
{
    if (b->value == BR_IR_NONE) {
        br_json_w_null(w);
        return;
    }
    br_json_w_obj(w);
    br_json_w_key_u64(w, "value", b->value);
    br_json_w_key(w, "columns");
    br_json_w_arr(w);
    br_json_w_u64(w, b->off);
    br_json_w_u64(w, b->width);
    br_json_w_u64(w, b->stride);
    br_json_w_u64(w, b->count);
    br_json_w_arr_end(w);
    br_json_w_obj_end(w);
}

static void
json_node(br_json_writer *w, const br_ir_node *n)
{
    br_json_w_obj(w);
    br_json_w_key_strz(w, "op", br_ir_opinfo_of(n->op)->name);
    br_json_w_key_i64(w, "code", n->op);
    if (n->layer >= 0) {
        br_json_w_key_i64(w, "layer", n->layer);
    }
    for (int part = 0; part < 2; part++) {
        br_json_w_key(w, part ? "out" : "in");
        br_json_w_arr(w);
        for (int i = part ? n->n_in : 0; i < n->n_in + (part ? n->n_out : 0);
             i++)
            json_bind(w, &n->bind[i]);
        br_json_w_arr_end(w);
    }
    br_json_w_key(w, "attrs");
    br_json_w_obj(w);
    for (int a = 0; a < BR_IA_COUNT; a++) {
        if (!br_ir_has(n, (br_ir_attr)a))
            continue;
        br_json_w_key(w, br_ir_attr_name(a));
        if (br_ir_attr_type(a) == 'I')
            br_json_w_i64(w, br_ir_i(n, (br_ir_attr)a, 0));
        else
            br_json_w_f64(w, br_ir_f(n, (br_ir_attr)a, 0));
    }
    br_json_w_obj_end(w);
    br_json_w_obj_end(w);
}

void
br_ir_json(const br_ir *g, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "graph", g->name);
    br_json_w_key_strz(&w, "stage",
                       g->stage == BR_IR_DECODE ? "decode" : "prefill");
    br_json_w_key(&w, "values");
    br_json_w_arr(&w);
    for (uint32_t i = 0; i < g->n_values; i++)
        json_value(&w, g, i);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "nodes");
    br_json_w_arr(&w);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        json_node(&w, &g->nodes[i]);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    br_str_putc(out, '\n');
}

/* ---- DOT ---------------------------------------------------------------- */

/* The node that wrote a value last before node `before`; -1: none did. A state
 * counts as written by what changes it in place. */
static int64_t
writer_of(const br_ir *g, uint32_t value, uint32_t before)
{
    for (int64_t i = (int64_t)before - 1; i >= 0; i--) {
        const br_ir_node *n = &g->nodes[i];
        br_ir_role role;

        for (int b = 0; b < n->n_in + n->n_out; b++) {
            if (n->bind[b].value != value)
                continue;
            if (b >= n->n_in)
                return i;
            if (br_ir_role_at(n->op, false, b, &role) && role.inplace)
                return i;
        }
    }
    return -1;
}

static bool
flows(const br_ir *g, uint32_t v)
{
    return g->values[v].kind != BR_IK_MODEL;
}

static void
dot_text(br_text t, br_str *out)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] == '"' || t.p[i] == '\\')
            br_str_putc(out, '\\');
        br_str_putc(out, t.p[i]);
    }
}

void
br_ir_dot(const br_ir *g, br_str *out)
{
    br_str_puts(out, "digraph \"");
    dot_text(br_text_z(g->name), out);
    br_str_puts(out, "\" {\n  node [shape=box fontname=\"sans-serif\"]\n");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        br_str_printf(out, "  n%u [label=\"%s", i,
                      br_ir_opinfo_of(n->op)->name);
        for (int b = 0; b < n->n_in; b++)
            if (n->bind[b].value != BR_IR_NONE && !flows(g, n->bind[b].value)) {
                br_str_puts(out, "\\n");
                dot_text(br_ir_value_name(g, n->bind[b].value), out);
            }
        br_str_puts(out, "\"]\n");
        for (int b = 0; b < n->n_in; b++) {
            uint32_t v = n->bind[b].value;
            int64_t w = v == BR_IR_NONE ? -1 : writer_of(g, v, i);

            if (v == BR_IR_NONE || !flows(g, v))
                continue;
            if (w >= 0)
                br_str_printf(out, "  n%lld -> n%u", (long long)w, i);
            else
                br_str_printf(out, "  \"%.*s\" -> n%u",
                              (int)br_ir_value_name(g, v).n,
                              br_ir_value_name(g, v).p, i);
            br_str_puts(out, " [label=\"");
            dot_text(br_ir_value_name(g, v), out);
            br_str_puts(out, "\"]\n");
        }
    }
    br_str_puts(out, "}\n");
}

/* ---- SVG ---------------------------------------------------------------- */

enum { BOX_W = 250, BOX_H = 34, GAP_X = 70, GAP_Y = 14, TOP = 64, LEFT = 24 };

static const char svg_style[] =
    "<style>text{font:11px sans-serif;fill:#1a1a1a}"
    ".t{font-weight:bold}.s{font-size:9px;fill:#555}"
    ".h{font-size:16px;font-weight:bold}"
    "rect{stroke:#444;stroke-width:1;rx:4}"
    "path{fill:none;stroke:#8a8a8a;stroke-width:1}"
    ".far{stroke:#c06a1f;stroke-dasharray:4 3}</style>\n";

static const char *
colour(int op)
{
    switch (op) {
    case BR_IR_MATMUL:
    case BR_IR_LM_HEAD:
    case BR_IR_HEAD_MATMUL:
    case BR_IR_MOE_GATE_UP:
    case BR_IR_MOE_DOWN_ACC:
    case BR_IR_SHARED_EXPERT: return "#cfe3f7";
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED:
    case BR_IR_SSM_DELTA_NET:
    case BR_IR_SSM_SCAN:
    case BR_IR_SSM_CONV1D: return "#f7dccf";
    case BR_IR_RMS_NORM:
    case BR_IR_SSM_GATED_NORM: return "#e2f0d4";
    case BR_IR_KV_WRITE_BATCHED:
    case BR_IR_BARRIER: return "#f3ecc2";
    default: return "#eeeeee";
    }
}

static void
svg_text(br_text t, size_t most, br_str *out)
{
    size_t n = t.n > most ? most - 1 : t.n;

    for (size_t i = 0; i < n; i++)
        switch (t.p[i]) {
        case '<': br_str_puts(out, "&lt;"); break;
        case '>': br_str_puts(out, "&gt;"); break;
        case '&': br_str_puts(out, "&amp;"); break;
        default: br_str_putc(out, t.p[i]); break;
        }
    if (n < t.n)
        br_str_puts(out, "\xe2\x80\xa6");
}

typedef struct spot {
    int x, y;
} spot;

/* Columns: before the layers, each layer, after them. */
static int
column_of(const br_ir *g, uint32_t i, int layers)
{
    int l = g->nodes[i].layer;

    if (l >= 0)
        return l + 1;
    for (uint32_t k = 0; k < i; k++)
        if (g->nodes[k].layer >= 0)
            return layers + 1;
    return 0;
}

static void
svg_box(const br_ir *g, uint32_t i, spot at, br_str *out)
{
    const br_ir_node *n = &g->nodes[i];
    br_text sub = {"", 0};

    for (int b = n->n_in - 1; b >= 0; b--)
        if (n->bind[b].value != BR_IR_NONE && !flows(g, n->bind[b].value))
            sub = br_ir_value_name(g, n->bind[b].value);
    if (n->n_out && sub.n == 0)
        sub = br_ir_value_name(g, n->bind[n->n_in].value);
    br_str_printf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                  "fill=\"%s\"/><text class=\"t\" x=\"%d\" y=\"%d\">%s</text>",
                  at.x, at.y, BOX_W, BOX_H, colour(n->op), at.x + 8, at.y + 14,
                  br_ir_opinfo_of(n->op)->name);
    br_str_printf(out, "<text class=\"s\" x=\"%d\" y=\"%d\">", at.x + 8,
                  at.y + 27);
    svg_text(sub, 44, out);
    br_str_puts(out, "</text>\n");
}

/* From the bottom of a box straight to the next one, else round its side. */
static void
svg_edge(spot a, spot b, br_str *out)
{
    int ax = a.x + BOX_W / 2, ay = a.y + BOX_H, bx = b.x + BOX_W / 2;
    int far = b.y - a.y, side = 8 + far / 12 % 40;

    if (a.x != b.x) {
        br_str_printf(out,
                      "<path class=\"far\" d=\"M%d %d C%d %d %d %d %d %d\"/>\n",
                      a.x + BOX_W, a.y + BOX_H / 2, a.x + BOX_W + GAP_X / 2,
                      a.y + BOX_H / 2, b.x - GAP_X / 2, b.y + BOX_H / 2, b.x,
                      b.y + BOX_H / 2);
        return;
    }
    if (far == BOX_H + GAP_Y)
        br_str_printf(out, "<path d=\"M%d %d V%d\"/>\n", ax, ay, b.y);
    else
        br_str_printf(out, "<path d=\"M%d %d h%d V%d H%d\"/>\n", a.x + BOX_W,
                      a.y + BOX_H / 2, side, b.y + BOX_H / 2, bx + BOX_W / 2);
}

static spot *
svg_place(const br_ir *g, br_arena *a, int *layers, int *height)
{
    spot *at = br_arena_new(a, spot, g->n_nodes + 1);
    int *rows;

    *layers = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        *layers = BR_MAX(*layers, g->nodes[i].layer + 1);
    rows = br_arena_new(a, int, (size_t)*layers + 2);
    *height = 0;
    if (!at || !rows)
        return NULL;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        int c = column_of(g, i, *layers);

        at[i].x = LEFT + c * (BOX_W + GAP_X);
        at[i].y = TOP + rows[c]++ * (BOX_H + GAP_Y);
        *height = BR_MAX(*height, at[i].y + BOX_H + 24);
    }
    return at;
}

static void
svg_heads(const br_ir *g, int layers, br_str *out)
{
    br_str_printf(out, "<text class=\"h\" x=\"%d\" y=\"26\">", LEFT);
    svg_text(br_text_z(g->name), 80, out);
    br_str_printf(out,
                  "</text><text class=\"s\" x=\"%d\" y=\"42\">%u nodes, "
                  "%u values</text>\n",
                  LEFT, g->n_nodes, g->n_values);
    for (int l = 0; l < layers; l++)
        br_str_printf(out,
                      "<text class=\"t\" x=\"%d\" y=\"56\">layer %d"
                      "</text>\n",
                      LEFT + (l + 1) * (BOX_W + GAP_X), l);
}

void
br_ir_svg(const br_ir *g, br_str *out)
{
    int layers, height;
    br_arena a;
    spot *at;

    br_arena_init(&a, 0);
    at = svg_place(g, &a, &layers, &height);
    if (!at) {
        out->oom = true;
        br_arena_fini(&a);
        return;
    }
    int width = 2 * LEFT + (layers + 2) * (BOX_W + GAP_X) - GAP_X;

    br_str_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\" "
                  "stroke=\"none\"/>\n%s",
                  width, height, width, height, svg_style);
    svg_heads(g, layers, out);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int b = 0; b < g->nodes[i].n_in; b++) {
            uint32_t v = g->nodes[i].bind[b].value;
            int64_t w =
                v == BR_IR_NONE || !flows(g, v) ? -1 : writer_of(g, v, i);

            if (w >= 0)
                svg_edge(at[w], at[i], out);
        }
    for (uint32_t i = 0; i < g->n_nodes; i++)
        svg_box(g, i, at[i], out);
    br_str_puts(out, "</svg>\n");
    br_arena_fini(&a);
}
