/* show_dot.c - a task program for graphviz.
 *
 *   up to ALL_TASKS    a node per task in a cluster per worker; a counter of
 *                      many producers and waiters is a dot between them
 *   up to ALL_STAGES   a node per stage: the tasks of one counter
 *   beyond             the stages of the layer in the middle
 *
 *   brass prog show P.json --dot | dot -Tsvg > P.svg
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_int.h"

enum {
    ALL_TASKS = 400,
    ALL_STAGES = 1500,
    KNOT = 6, /* producers * waiters above which a counter gets a node */
};

static void
graph_head(const br_show *s, br_str *o)
{
    br_text model = br_show_model(s);

    br_str_puts(o, "digraph program {\n  label=\"");
    br_show_quoted(o, model.n ? model : BR_TEXT("task program"), 70);
    if (s->timed)
        br_str_printf(o, " on %s, %.1f us", s->target.name, s->total);
    br_str_puts(o,
                "\";\n  labelloc=t; rankdir=LR; fontname=\"Helvetica\"; "
                "fontsize=16; nodesep=0.15; ranksep=0.35;\n"
                "  node [shape=box, style=\"rounded,filled\", "
                "fontname=\"Helvetica\", fontsize=10, height=0.3, "
                "margin=\"0.08,0.04\", color=\"#59636e\", penwidth=0.5];\n"
                "  edge [color=\"#59636e\", arrowsize=0.5, penwidth=0.7];\n");
}

/* ---- tasks ------------------------------------------------------------- */

static void
task_node(const br_show *s, br_str *o, uint32_t t)
{
    const br_mega_task *x = &s->p->tasks[t];

    br_str_printf(o, "    t%u [label=\"", t);
    br_show_quoted(o, br_show_label(x), 40);
    if (x->label_n) {
        br_str_puts(o, "\\n");
        br_show_quoted(o, br_show_op(x->op), 40);
    }
    br_str_printf(o, "\", fillcolor=\"%s\"", br_show_color(x->op));
    if (s->on_path[t])
        br_str_puts(o, ", color=\"#1f2328\", penwidth=2");
    br_str_puts(o, "];\n");
}

static void
task_nodes(const br_show *s, br_str *o)
{
    for (uint32_t l = 0; l < s->n_lanes; l++) {
        if (s->assigned)
            br_str_printf(o,
                          "  subgraph cluster_w%lld {\n    label=\"worker "
                          "%lld\"; style=\"rounded,filled\"; "
                          "color=\"#f0f2f5\"; fontname=\"Helvetica\"; "
                          "fontsize=10;\n",
                          (long long)s->lane_sm[l], (long long)s->lane_sm[l]);
        for (uint32_t i = 0; i < s->n; i++)
            if (s->lane[s->by_time[i]] == l)
                task_node(s, o, s->by_time[i]);
        if (s->assigned)
            br_str_puts(o, "  }\n");
    }
}

static void
task_edge(const br_show *s, br_str *o, uint32_t a, uint32_t b)
{
    bool path = false;

    for (uint32_t i = 1; i < s->n_path; i++)
        path = path || (s->path[i - 1] == a && s->path[i] == b);
    br_str_printf(o, "  t%u -> t%u%s;\n", a, b,
                  path ? " [color=\"#1f2328\", penwidth=2]" : "");
}

static void
task_edges(const br_show *s, br_str *o)
{
    const br_mega_graph *g = &s->g;

    for (uint32_t c = 0; c < g->n_counters; c++) {
        const uint32_t *p = g->prod + g->prod_off[c];
        const uint32_t *w = g->waiter + g->wait_off[c];
        uint32_t np = g->prod_off[c + 1] - g->prod_off[c];
        uint32_t nw = g->wait_off[c + 1] - g->wait_off[c];
        bool knot = np > 1 && nw > 1 && (size_t)np * nw > KNOT;
        if (!np || !nw)
            continue;
        if (knot)
            br_str_printf(o, "  c%u [shape=point, width=0.05, label=\"\"];\n",
                          c);
        for (uint32_t i = 0; i < np; i++) {
            if (knot)
                br_str_printf(o, "  t%u -> c%u [arrowhead=none];\n", p[i], c);
            for (uint32_t j = 0; j < nw && !knot; j++)
                task_edge(s, o, p[i], w[j]);
        }
        for (uint32_t j = 0; j < nw && knot; j++)
            br_str_printf(o, "  c%u -> t%u;\n", c, w[j]);
    }
}

/* ---- stages ------------------------------------------------------------ */

static void
stage_node(const br_show *s, br_str *o, const br_show_stage *g)
{
    uint32_t layer = br_show_layer(s, g->task);
    int op = s->p->tasks[g->task].op;

    br_str_printf(o, "  s%u [label=\"", g->counter);
    if (layer != BR_SHOW_NONE)
        br_str_printf(o, "L%u.", layer);
    br_show_quoted(o, g->name, 40);
    br_str_puts(o, "\\n");
    if (g->tasks > 1)
        br_str_printf(o, "%u x ", g->tasks);
    br_show_quoted(o, br_show_op(op), 40);
    br_str_printf(o, "\", fillcolor=\"%s\"%s];\n", br_show_color(op),
                  g->critical ? ", color=\"#1f2328\", penwidth=2" : "");
}

/* Stage c waits for stage d when some task of c does; each pair once. in[c]:
 * c is drawn; seen[d] = c + 1: the edge is. */
static void
stage_edges(const br_show *s, br_str *o, const bool *in, uint32_t *seen)
{
    for (uint32_t c = 0; c < s->g.n_counters; c++) {
        if (!in[c])
            continue;
        for (uint32_t i = s->g.prod_off[c]; i < s->g.prod_off[c + 1]; i++) {
            const br_mega_task *x = &s->p->tasks[s->g.prod[i]];
            for (uint32_t k = 0; k < x->n_waits; k++) {
                uint32_t d = (uint32_t)x->waits[k].counter;
                if (!in[d] || seen[d] == c + 1)
                    continue;
                seen[d] = c + 1;
                br_str_printf(o, "  s%u -> s%u;\n", d, c);
            }
        }
    }
}

static br_code
stage_graph(const br_show *s, br_str *o, br_status *st)
{
    uint32_t nc = s->g.n_counters;
    br_show_stage *g = br_try_calloc(ALL_STAGES, sizeof *g);
    bool *in = br_try_calloc(nc + 1, sizeof *in);
    uint32_t *seen = br_try_calloc(nc + 1, sizeof *seen);
    double from = 0, to = s->total;
    size_t n = 0;

    if (g && in && seen) {
        n = br_show_stages(s, from, to, g, ALL_STAGES);
        if (n > ALL_STAGES) {
            (void)br_show_middle(s, &from, &to);
            br_str_printf(o, "  // %zu stages; these run in the middle\n", n);
            n = br_show_stages(s, from, to, g, ALL_STAGES);
        }
        n = BR_MIN(n, (size_t)ALL_STAGES);
        for (size_t i = 0; i < n; i++) {
            stage_node(s, o, &g[i]);
            in[g[i].counter] = true;
        }
        stage_edges(s, o, in, seen);
    }
    br_free(g);
    br_free(in);
    br_free(seen);
    return n ? BR_OK : br_fail(st, BR_E_OOM, "show: no memory");
}

br_code
br_show_dot(const br_show *s, br_str *out, br_status *st)
{
    graph_head(s, out);
    if (s->n > ALL_TASKS) {
        BR_TRY(stage_graph(s, out, st));
    } else {
        task_nodes(s, out);
        task_edges(s, out);
    }
    br_str_puts(out, "}\n");
    return BR_OK;
}
