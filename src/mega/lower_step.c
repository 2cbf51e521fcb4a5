/* lower_step.c - a model's graph becomes a task program.
 *
 *   node      o  MATMUL  4096 columns          o  RMS_NORM
 *             |                                |
 *   tasks     [0,1024) [1024,2048) ...         [0,4096)
 *             '--------'-- one counter per node, one wait per node read
 *
 * Tasks stand in the order of the nodes, which is topological, so each worker
 * may walk its own in list order. A task waits for every node that writes
 * columns it reads; and to change a state, for all that touched it before. More
 * than 8 waits go through NOPs. Barriers of the graph are such waits already.
 *
 * Requires a verified graph; what comes out passes the sound check.
 * Cost      O(bindings * nodes that touch one value).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/assign.h"
#include "mega/builder.h"
#include "mega/lower.h"
#include "mega/pages.h"
#include "mega/step.h"

#include <stdio.h>
#include <string.h>

/* A tile of less is not worth a task: a wait costs about a microsecond, which
 * is 16 KiB from memory or 64 k multiplications. */
#define LEAST_BYTES 16384.0
#define LEAST_FLOPS 131072.0

typedef struct touch { /* a node that touches a value */
    uint32_t node, next;
    uint8_t bind;
    bool write;
} touch;

typedef struct low {
    br_mega_builder b;
    br_arena a; /* what follows */
    const br_ir *g;
    const br_step_config *c;
    int64_t *counter, *tiles; /* of each node; counter -1: no tasks */
    int64_t *inner;           /* of each value: see br_step_inner */
    uint32_t *touched;        /* of each value: its last touch, or NONE */
    touch *touch;
    uint32_t n_touch;
    BR_VEC(int64_t) wait; /* nodes, or ~counter of a join */
} low;

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "lowering: out of memory");
}

/* ---- buffers ------------------------------------------------------------ */

static void
find_inner(low *l)
{
    const br_ir *g = l->g;

    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int b = 0; b < g->nodes[i].n_in + g->nodes[i].n_out; b++) {
            uint32_t v = g->nodes[i].bind[b].value;
            int64_t s = br_step_inner(&g->nodes[i], b);

            if (s && !l->inner[v] && br_ir_cols(&g->values[v]) % s == 0)
                l->inner[v] = s;
        }
}

static void
add_buffer(low *l, uint32_t v)
{
    const br_ir_value *x = &l->g->values[v];
    br_text name = br_ir_value_name(l->g, v);
    int64_t shape[BR_IR_MAX_RANK], cols = br_ir_cols(x);
    br_mega_buffer b = {.name = name.p,
                        .name_n = (uint32_t)name.n,
                        .shape = shape,
                        .kind = (uint8_t)br_step_kind(l->g, v),
                        .dtype = (uint8_t)br_mega_dtype_of_qtype(x->dtype)};

    if (x->dim[0] > 0 || l->inner[v] == 0) {
        for (int i = x->dim[0] > 0 ? 0 : 1; i < x->rank; i++)
            shape[b.rank++] = x->dim[i];
    } else {
        shape[b.rank++] = cols / l->inner[v];
        shape[b.rank++] = l->inner[v];
    }
    if (b.kind == BR_MBK_WEIGHT) {
        b.source = b.name;
        b.source_n = b.name_n;
    }
    (void)br_mega_add_buffer(&l->b, &b);
}

/* ---- who waits for whom ------------------------------------------------- */

static uint64_t
end_of(const br_ir_bind *b)
{
    return b->off + (uint64_t)(b->count - 1) * b->stride + b->width;
}

/* Runs that keep step with each other stay apart if the first two do. */
static bool
overlap(const br_ir_bind *a, const br_ir_bind *b)
{
    if (a->count > 1 && a->count == b->count && a->stride == b->stride &&
        a->off / a->stride == b->off / b->stride)
        return a->off < b->off + b->width && b->off < a->off + a->width;
    return a->off < end_of(b) && b->off < end_of(a);
}

static bool
wait_for(low *l, int64_t node)
{
    for (size_t i = 0; i < l->wait.n; i++)
        if (l->wait.at[i] == node)
            return true;
    return br_vec_push(&l->wait, node);
}

/* The nodes that binding b of a node has to come after. */
static bool
wait_for_binding(low *l, const br_ir_node *n, int b, bool write)
{
    uint32_t v = n->bind[b].value;

    for (uint32_t i = l->touched[v]; i != BR_IR_NONE; i = l->touch[i].next) {
        const touch *t = &l->touch[i];
        const br_ir_bind *x = &l->g->nodes[t->node].bind[t->bind];

        if ((write || t->write) && overlap(&n->bind[b], x) &&
            !wait_for(l, t->node))
            return false;
    }
    return true;
}

static bool
is_written(const br_step_operands *o, int b)
{
    for (uint32_t k = 0; k < o->n_out; k++)
        if (o->out[k] == b)
            return true;
    return false;
}

static bool
find_waits(low *l, uint32_t node, const br_step_operands *o)
{
    const br_ir_node *n = &l->g->nodes[node];

    l->wait.n = 0;
    for (int b = 0; b < n->n_in + n->n_out; b++)
        if (n->bind[b].value != BR_IR_NONE &&
            !wait_for_binding(l, n, b, is_written(o, b)))
            return false;
    for (int b = 0; b < n->n_in + n->n_out; b++) {
        uint32_t v = n->bind[b].value;

        if (v == BR_IR_NONE || l->g->values[v].kind == BR_IK_MODEL)
            continue;
        l->touch[l->n_touch] =
            (touch){node, l->touched[v], (uint8_t)b, is_written(o, b)};
        l->touched[v] = l->n_touch++;
    }
    return true;
}

static br_mega_wait
wait_of(const low *l, int64_t w)
{
    return w < 0 ? (br_mega_wait){~w, 1}
                 : (br_mega_wait){l->counter[w], l->tiles[w]};
}

/* Folds eight waits into one until eight are left. */
static bool
join_waits(low *l)
{
    while (l->wait.n > BR_MEGA_MAX_WAITS) {
        br_mega_wait w[BR_MEGA_MAX_WAITS];
        br_mega_task t = {.op = BR_MOP_NOP,
                          .waits = w,
                          .n_waits = BR_MEGA_MAX_WAITS,
                          .params = br_mega_params(&l->b, NULL, 0),
                          .sm = BR_MEGA_SM_NONE,
                          .label = "join",
                          .label_n = 4};

        for (int i = 0; i < BR_MEGA_MAX_WAITS; i++)
            w[i] = wait_of(l, l->wait.at[i]);
        l->wait.n -= BR_MEGA_MAX_WAITS;
        memmove(l->wait.at, l->wait.at + BR_MEGA_MAX_WAITS,
                l->wait.n * sizeof *l->wait.at);
        t.out_counter = br_mega_add_counter(&l->b, BR_TEXT("join"));
        if (!t.params || !br_vec_push(&l->wait, ~t.out_counter))
            return false;
        (void)br_mega_add_task(&l->b, &t);
    }
    return true;
}

/* ---- tasks -------------------------------------------------------------- */

static int64_t
round_up(int64_t n, int64_t grain)
{
    return (n - 1) / grain * grain + grain;
}

/* Columns of a tile, of `cols` that are cut from the node's. */
static int64_t
tile_of(const low *l, const br_ir_node *n, const br_step_cut *cut, int64_t cols)
{
    br_step_work w = br_step_work_of(l->g, n, 0, cut->cols, l->c->rows);
    double worth = BR_MAX((w.weight + w.state + w.local) / LEAST_BYTES,
                          w.flops / LEAST_FLOPS);
    int64_t tile = l->c->tile, tiles = l->c->workers, grain = cut->grain;

    if (tile == 0) {
        if (worth < (double)tiles)
            tiles = worth > 1 ? (int64_t)worth : 1;
        tile = (cols - 1) / tiles + 1;
        grain = grain == 1 ? 16 : grain;
    }
    tile = round_up(tile, grain);
    /* Columns that are next to each other, of a value that is a matrix: whole
     * rows of it, or parts of one row. */
    for (int b = n->n_in; b < n->n_in + n->n_out; b++) {
        int64_t s = l->inner[n->bind[b].value];

        if (s && !br_step_inner(n, b) && s % tile)
            tile = round_up(round_up(tile, s), cut->grain);
    }
    return BR_MIN(tile, cols);
}

/* Tiles do not reach over the edge of one output to the next. */
static int64_t
edge_after(const br_ir_node *n, const br_step_cut *cut, int64_t at)
{
    int64_t edge = 0;

    for (int b = n->n_in; b < n->n_in + n->n_out; b++) {
        br_step_span s = br_step_columns(n, b, 0, cut->cols);

        edge += s.to - s.from;
        if (edge > at && edge < cut->cols && br_step_is_side(n))
            return edge;
    }
    return cut->cols;
}

static void
add_tile(low *l, uint32_t node, br_mega_task *t, int64_t c0, int64_t c1)
{
    const br_ir_node *n = &l->g->nodes[node];
    br_step_work w = br_step_work_of(l->g, n, c0, c1, l->c->rows);
    br_mega_pv params[] = {{.p = BR_MP_node, .i = node},
                           BR_PV_I(n_off, c0),
                           BR_PV_I(N_tile, c1 - c0)};

    t->params = br_mega_params(&l->b, params, BR_COUNT(params));
    t->est_bytes = (int64_t)(w.weight + w.state);
    t->est_flops = (int64_t)w.flops;
    if (t->params)
        (void)br_mega_add_task(&l->b, t);
}

static br_code
add_node(low *l, uint32_t node, br_status *st)
{
    const br_ir_node *n = &l->g->nodes[node];
    br_mega_wait waits[BR_MEGA_MAX_WAITS];
    int64_t in[BR_MEGA_MAX_INPUTS], out[BR_MEGA_MAX_INPUTS], tile, edge;
    br_mega_task t = {.op = (uint8_t)(BR_MOP_STEP + n->op),
                      .in = in,
                      .out = out,
                      .waits = waits,
                      .sm = BR_MEGA_SM_NONE};
    br_step_operands o;
    br_step_cut cut;
    br_text name;

    if (n->op == BR_IR_BARRIER)
        return BR_OK;
    if (!br_step_cut_of(n, &cut))
        return br_fail(st, BR_E_UNSUPPORTED, "nodes[%u]: no task computes %s",
                       node, br_ir_opinfo_of(n->op)->name);
    br_step_operands_of(n, &o);
    br_assert(o.n_out >= 1 && o.n_out <= BR_MEGA_MAX_OUTPUTS);
    for (; t.n_in < o.n_in; t.n_in++)
        in[t.n_in] = n->bind[o.in[t.n_in]].value;
    for (; t.n_out < o.n_out; t.n_out++)
        out[t.n_out] = n->bind[o.out[t.n_out]].value;
    if (!find_waits(l, node, &o) || !join_waits(l))
        return no_memory(st);
    for (; t.n_waits < l->wait.n; t.n_waits++)
        waits[t.n_waits] = wait_of(l, l->wait.at[t.n_waits]);
    name = br_ir_value_name(l->g, (uint32_t)out[0]);
    t.label = name.p;
    t.label_n = (uint32_t)name.n;
    t.out_counter = br_mega_add_counter(&l->b, name);
    l->counter[node] = t.out_counter;
    l->tiles[node] = 0;
    for (int64_t at = 0; at < cut.cols && l->b.code == BR_OK; at = edge) {
        edge = edge_after(n, &cut, at);
        tile = tile_of(l, n, &cut, edge - at);
        for (; at < edge && l->b.code == BR_OK; at += tile) {
            add_tile(l, node, &t, at, BR_MIN(at + tile, edge));
            l->tiles[node]++;
        }
    }
    return l->b.code;
}

/* ---- the graph goes along ----------------------------------------------- */

static bool
put_graph(br_mega_prog *p, const br_str *text, int64_t rows)
{
    br_json *ext = br_json_new(&p->arena, BR_J_OBJ);
    br_json *step = br_json_new(&p->arena, BR_J_OBJ);
    br_json *lines = br_json_new(&p->arena, BR_J_ARR);
    const char *at = text->at, *end = text->at + text->n, *nl;

    if (!ext || !step || !lines)
        return false;
    for (; at < end; at = nl + 1) {
        br_json *line;

        nl = memchr(at, '\n', (size_t)(end - at));
        br_assert(nl && "every line ends");
        line = br_json_new_str(&p->arena, (br_text){at, (size_t)(nl - at)});
        if (!line || !br_json_append(lines, line))
            return false;
    }
    return br_json_put(&p->arena, step, "rows",
                       br_json_new_i64(&p->arena, rows)) &&
           br_json_put(&p->arena, step, "graph", lines) &&
           br_json_put(&p->arena, ext, "step", step) &&
           br_json_put(&p->arena, p->meta, "model",
                       br_json_new_str(&p->arena, br_text_z(p->graph->name))) &&
           br_json_put(&p->arena, p->meta, "extensions", ext);
}

static br_code
keep_graph(low *l, br_status *st)
{
    br_mega_prog *p = l->b.prog;
    br_str text = {0};
    br_code code;

    br_ir_print(l->g, &text);
    code =
        text.oom ? no_memory(st) : br_ir_parse(&p->graph, text.at, text.n, st);
    if (code == BR_OK) {
        p->rows = (uint32_t)l->c->rows;
        code = put_graph(p, &text, l->c->rows) ? BR_OK : no_memory(st);
    }
    br_str_fini(&text);
    return code;
}

/* ---- all together ------------------------------------------------------- */

static br_code
check_config(const br_step_config *c, br_status *st)
{
    if (c->rows < 1 || c->rows > BR_STEP_MAX_ROWS)
        return br_fail(st, BR_E_FORMAT, "lowering: %lld rows are not in 1..%d",
                       (long long)c->rows, BR_STEP_MAX_ROWS);
    if (c->workers < 1 || c->workers > BR_ASSIGN_MAX_WORKERS)
        return br_fail(st, BR_E_FORMAT,
                       "lowering: %lld workers are not in 1..%d",
                       (long long)c->workers, BR_ASSIGN_MAX_WORKERS);
    if (c->tile < 0 || c->tile > INT32_MAX)
        return br_fail(st, BR_E_FORMAT,
                       "lowering: tiles of %lld columns are not in 0..%d",
                       (long long)c->tile, INT32_MAX);
    return BR_OK;
}

static br_code
lower(low *l, br_status *st)
{
    const br_ir *g = l->g;
    br_mega_assign_opts assign = {.workers = l->c->workers};

    l->counter = br_arena_new(&l->a, int64_t, g->n_nodes + 1);
    l->tiles = br_arena_new(&l->a, int64_t, g->n_nodes + 1);
    l->inner = br_arena_zero(&l->a, g->n_values + 1, sizeof *l->inner);
    l->touched = br_arena_new(&l->a, uint32_t, g->n_values + 1);
    l->touch =
        br_arena_new(&l->a, touch, (size_t)g->n_nodes * BR_IR_MAX_BINDINGS + 1);
    if (!l->counter || !l->tiles || !l->inner || !l->touched || !l->touch)
        return no_memory(st);
    memset(l->touched, 0xff, (g->n_values + 1) * sizeof *l->touched);
    find_inner(l);
    for (uint32_t v = 0; v < g->n_values; v++)
        add_buffer(l, v);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        BR_TRY(add_node(l, i, st));
    BR_TRY(l->b.code);
    BR_TRY(keep_graph(l, st));
    BR_TRY(br_mega_assign(l->b.prog, &assign, st));
    return br_mega_pages_allocate(l->b.prog, BR_MPP_GRAPH_COLOR, NULL, st);
}

br_code
br_mega_lower_graph(br_mega_prog **out, const br_ir *g, const br_step_config *c,
                    br_status *st)
{
    low l = {.g = g, .c = c};
    br_code code;

    *out = NULL;
    BR_TRY(check_config(c, st));
    BR_TRY(br_mega_builder_open(&l.b, st));
    br_arena_init(&l.a, 0);
    code = lower(&l, st);
    if (code == BR_OK)
        *out = br_mega_builder_take(&l.b);
    br_mega_builder_close(&l.b);
    br_arena_fini(&l.a);
    br_vec_fini(&l.wait);
    return code;
}
