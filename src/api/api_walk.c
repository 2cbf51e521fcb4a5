/* api_walk.c - the C library: dry runs of a task program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

struct br_walk {
    br_mega_sim sim, hurt; /* in the order of the list; in unkind ones */
};

br_walk *
br_program_walk(const br_program *p, int seeds, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_walk *w = NULL;

    if (seeds < 0) {
        br_fail(st, BR_E_USAGE, "seeds: %d, at least 0", seeds);
        return NULL;
    }
    w = br_api_handle(sizeof *w, st);
    if (w && br_mega_simulate(p->mega, &w->sim, st) == BR_OK &&
        (seeds == 0 ||
         br_mega_simulate_adversarial(p->mega, seeds, &w->hurt, st) == BR_OK)) {
        return w;
    }
    br_walk_free(w);
    return NULL;
}

void
br_walk_free(br_walk *w)
{
    if (!w)
        return;
    br_mega_sim_fini(&w->sim);
    br_mega_sim_fini(&w->hurt);
    br_free(w);
}

size_t
br_walk_tasks(const br_walk *w)
{
    return w->sim.order.n;
}

size_t
br_walk_task(const br_walk *w, size_t i)
{
    return i < w->sim.order.n ? w->sim.order.at[i] : (size_t)-1;
}

size_t
br_walk_stuck(const br_walk *w)
{
    return w->sim.stuck.n;
}

size_t
br_walk_stuck_task(const br_walk *w, size_t i)
{
    return i < w->sim.stuck.n ? w->sim.stuck.at[i] : (size_t)-1;
}

size_t
br_walk_violations(const br_walk *w)
{
    return w->hurt.violations.n;
}

const char *
br_walk_violation(const br_walk *w, size_t i)
{
    return i < w->hurt.violations.n ? w->hurt.violations.at[i] : NULL;
}
