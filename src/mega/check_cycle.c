/* check_cycle.c - a witness for a cyclic graph, found without recursion.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/check_int.h"

enum { WHITE, GRAY, BLACK };

typedef struct walk {
    const br_succs *g;
    uint8_t *color;
    uint32_t *path, *next, n; /* the gray nodes, and where each goes on */
} walk;

static void
enter(walk *w, uint32_t v)
{
    w->color[v] = GRAY;
    w->path[w->n] = v;
    w->next[w->n++] = w->g->lo[v];
}

/* True when the walk stands at an edge back into its path; *back is where. */
static bool
step(walk *w, uint32_t *back)
{
    uint32_t v = w->path[w->n - 1], *at = &w->next[w->n - 1];

    while (*at < w->g->hi[v]) {
        uint32_t to = w->g->succ[(*at)++];

        if (w->color[to] == GRAY) {
            *back = to;
            return true;
        }
        if (w->color[to] == WHITE) {
            enter(w, to);
            return false;
        }
    }
    w->color[v] = BLACK;
    w->n--;
    return false;
}

br_code
br_chk_cycle(br_chk *k, const br_succs *g, const uint32_t *roots,
             uint32_t n_roots, uint32_t **cycle, uint32_t *n)
{
    walk w = {.g = g};
    uint32_t back, from;

    *n = 0;
    w.color = br_chk_zero(k, g->n, 1);
    w.path = br_chk_get(k, (size_t)g->n + 1, sizeof *w.path);
    w.next = br_chk_get(k, (size_t)g->n + 1, sizeof *w.next);
    if (!w.color || !w.path || !w.next)
        return br_chk_oom(k);
    for (uint32_t i = 0; i < n_roots; i++) {
        if (w.color[roots[i]] != WHITE)
            continue;
        enter(&w, roots[i]);
        while (w.n) {
            if (!step(&w, &back))
                continue;
            for (from = 0; w.path[from] != back; from++)
                ;
            w.path[w.n++] = back;
            *cycle = w.path + from;
            *n = w.n - from;
            return BR_OK;
        }
    }
    return BR_OK;
}
