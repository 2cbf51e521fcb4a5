/* tier_diff.c - see tier_diff.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tier_diff.h"

#include <math.h>
#include <string.h>

typedef struct record {
    uint32_t node;
    size_t at; /* in the numbers */
    uint32_t rows, cols;
} record;

/* What was seen of one tier. */
typedef struct recorder {
    const br_ir *g;
    const bool *wanted; /* [n_nodes]: keep what it writes */
    uint64_t *digest;   /* [n_nodes] of what every node writes */
    BR_VEC(record) list;
    BR_VEC(float) numbers;
    bool oom;
} recorder;

/* FNV-1a by words: no adversary here, only bits that should be the same. */
static uint64_t
digest(uint64_t h, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t u;

        memcpy(&u, &x[i], sizeof u);
        h = (h ^ u) * 0x100000001b3u;
    }
    return h;
}

static void
on_seen(void *ctx, uint32_t node, const float *value, int64_t cols,
        uint32_t n_rows)
{
    recorder *r = ctx;
    const br_ir_node *n = &r->g->nodes[node];
    const br_ir_bind *b = &n->bind[n->n_in];
    record e = {node, r->numbers.n, n_rows, b->width * b->count};
    size_t more = (size_t)e.rows * e.cols;
    uint64_t *h = &r->digest[node];
    float *to;

    *h = 0xcbf29ce484222325u;
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t k = 0; k < b->count; k++)
            *h = digest(*h, value + t * (size_t)cols + b->off + k * b->stride,
                        b->width);
    if (!r->wanted[node] || r->oom)
        return;
    if (!br_vec_reserve(&r->numbers, r->numbers.n + more) ||
        !br_vec_push(&r->list, e)) {
        r->oom = true;
        return;
    }
    to = r->numbers.at + r->numbers.n;
    r->numbers.n += more;
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t k = 0; k < b->count; k++, to += b->width)
            memcpy(to, value + t * (size_t)cols + b->off + k * b->stride,
                   b->width * sizeof *to);
}

static br_code
run(br_oracle *o, const int32_t *tokens, uint32_t n, float *logits, recorder *r,
    br_status *st)
{
    int32_t slots[BR_VALIDATE_TOKENS] = {0}, positions[BR_VALIDATE_TOKENS];
    br_step step = {n, slots, positions, tokens, NULL, NULL, false, NULL};
    br_watch watch = {on_seen, r};
    br_code code;

    for (uint32_t i = 0; i < n; i++)
        positions[i] = (int32_t)i;
    br_oracle_reset(o, 0);
    br_oracle_watch(o, &watch);
    code = br_oracle_step(o, &step, BR_IR_PREFILL, logits, st);
    br_oracle_watch(o, NULL);
    if (code == BR_OK && r->oom)
        code = br_fail(st, BR_E_OOM, "validate: out of memory");
    return code;
}

static bool
same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static br_layer_diff
compare(const recorder *a, const recorder *b, const record *e)
{
    size_t n = (size_t)e->rows * e->cols;
    br_layer_diff d = {.layer = a->g->nodes[e->node].layer, .equal = true};
    double err = 0, sum = 0;

    for (size_t i = e->at; i < e->at + n; i++) {
        double x = (double)a->numbers.at[i], y = (double)b->numbers.at[i];

        d.equal = d.equal && same(a->numbers.at[i], b->numbers.at[i]);
        err += (x - y) * (x - y);
        sum += x * x;
    }
    d.nmse = d.equal ? 0 : err / sum;
    return d;
}

static bool
beyond(const br_layer_diff *d, double bound)
{
    return bound > 0 ? !(d->nmse <= bound) : !d->equal;
}

/* The node of each layer that wrote last, and the last of all. */
static void
want_ends(const br_ir *g, bool *wanted)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].n_out == 0)
            continue;
        if (g->nodes[i].layer != g->nodes[last].layer)
            wanted[last] = true;
        last = i;
    }
    wanted[last] = true;
}

/* A layer is equal when all its nodes are: one may round a difference away. */
static br_code
pass_1(br_diff *d, const recorder *a, const recorder *b, double bound,
       int64_t n_layers, br_status *st)
{
    uint32_t node = 0;

    for (size_t i = 0; i < a->list.n; i++) {
        br_layer_diff l = compare(a, b, &a->list.at[i]);

        for (; node <= a->list.at[i].node; node++)
            l.equal = l.equal && a->digest[node] == b->digest[node];
        if (l.layer < 0 && i > 0)
            l.layer = (int32_t)n_layers;
        if (!br_vec_push(&d->layers, l))
            return br_fail(st, BR_E_OOM, "validate: out of memory");
    }
    for (size_t i = 0; i < d->layers.n && !d->first; i++)
        if (beyond(&d->layers.at[i], bound))
            d->first = &d->layers.at[i];
    return BR_OK;
}

/* A node is to blame when it is beyond the bound; where no node of the layer
 * is, the one that is farthest off. */
static void
pass_2(br_diff *d, const recorder *a, const recorder *b, double bound)
{
    const record *found = NULL;
    double worst = -1;

    for (size_t i = 0; i < a->list.n; i++) {
        br_layer_diff l = compare(a, b, &a->list.at[i]);

        if (beyond(&l, bound)) {
            found = &a->list.at[i];
            break;
        }
        if (l.nmse > worst) {
            worst = l.nmse;
            found = &a->list.at[i];
        }
    }
    if (!found)
        return;
    d->node = found->node;
    for (size_t i = found->at;
         i < found->at + found->rows * (size_t)found->cols; i++)
        if (!same(a->numbers.at[i], b->numbers.at[i])) {
            d->row = (uint32_t)((i - found->at) / found->cols);
            d->col = (uint32_t)((i - found->at) % found->cols);
            d->want = a->numbers.at[i];
            d->got = b->numbers.at[i];
            return;
        }
}

static br_code
pass(br_diff *d, br_oracle *const o[2], const int32_t *tokens, uint32_t n,
     const bool *wanted, double bound, br_status *st)
{
    const br_ir *g = o[0]->graph[BR_IR_PREFILL];
    size_t vocab = (size_t)o[0]->model->hp.n_vocab;
    float *logits = br_try_calloc(n * vocab, sizeof *logits);
    uint64_t *digests = br_try_calloc(2 * (size_t)g->n_nodes + 1, 8);
    recorder r[2] = {{.g = g, .wanted = wanted, .digest = digests},
                     {.g = g, .wanted = wanted}};
    br_code code = logits && digests
                       ? BR_OK
                       : br_fail(st, BR_E_OOM, "validate: out of memory");

    r[1].digest = digests ? digests + g->n_nodes : NULL;
    for (int i = 0; i < 2 && code == BR_OK; i++)
        code = run(o[i], tokens, n, logits, &r[i], st);
    br_free(logits);
    if (code == BR_OK && !d->first)
        code = pass_1(d, &r[0], &r[1], bound, o[0]->model->hp.n_layer, st);
    else if (code == BR_OK)
        pass_2(d, &r[0], &r[1], bound);
    br_free(digests);
    for (int i = 0; i < 2; i++) {
        br_vec_fini(&r[i].list);
        br_vec_fini(&r[i].numbers);
    }
    return code;
}

br_code
br_validate(br_diff *d, br_oracle *want, br_oracle *got, const int32_t *tokens,
            uint32_t n, double bound, br_status *st)
{
    br_oracle *const o[2] = {want, got};
    const br_ir *g = want->graph[BR_IR_PREFILL];
    bool *wanted = br_try_calloc(g->n_nodes + 1, sizeof *wanted);
    int32_t layer;
    br_code code;

    br_check(n > 0 && n <= BR_VALIDATE_TOKENS &&
             g->n_nodes == got->graph[BR_IR_PREFILL]->n_nodes);
    *d = (br_diff){0};
    if (!wanted)
        return br_fail(st, BR_E_OOM, "validate: out of memory");
    want_ends(g, wanted);
    code = pass(d, o, tokens, n, wanted, bound, st);
    if (code == BR_OK && d->first) {
        bool head = d->first->layer == want->model->hp.n_layer, past = false;

        layer = head ? -1 : d->first->layer;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
            past = past || g->nodes[i].layer >= 0;
            wanted[i] = g->nodes[i].layer == layer && (!head || past);
        }
        code = pass(d, o, tokens, n, wanted, bound, st);
    }
    br_free(wanted);
    if (code != BR_OK)
        br_diff_fini(d);
    return code;
}

void
br_diff_fini(br_diff *d)
{
    br_vec_fini(&d->layers);
    *d = (br_diff){0};
}

double
br_nmse(const float *x, const float *want, size_t n)
{
    double e = 0, s = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)want[i];

        e += d * d;
        s += (double)want[i] * (double)want[i];
    }
    return s > 0 ? e / s : (double)NAN;
}

uint32_t
br_argmax(const float *x, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}
