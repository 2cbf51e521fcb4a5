/* pass_dce.c - what nobody uses goes.
 *
 * Requires  br_kir_verify.
 * Changes   deletes instructions without effect whose results no instruction
 *           with one needs, however many steps away; phis in a ring as well.
 * Cost      one work list over the arguments.
 *
 * A load has no effect, but a fault it might have had goes with it: so it is on
 * a GPU. An operation on other lanes stays, unless its results are unused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

static bool
must_stay(const br_kins *i)
{
    return br_kopinfo_of[i->op].props & (BR_KP_WRITE | BR_KP_TERM);
}

bool
br_kpass_dce(br_kir *m, br_kfn *f)
{
    bool any;
    uint8_t *gone = br_try_alloc(f->ins.n + 1);
    BR_VEC(uint32_t) todo = {0};

    if (!gone || !br_vec_reserve(&todo, f->ins.n + 1)) {
        m->oom = true;
        br_free(gone);
        return true;
    }
    for (size_t k = 0; k < f->ins.n; k++)
        gone[k] = 1;
    for (size_t b = 0; b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++)
            if (must_stay(&f->ins.at[f->blks.at[b].ins.at[k]])) {
                gone[f->blks.at[b].ins.at[k]] = 0;
                todo.at[todo.n++] = f->blks.at[b].ins.at[k];
            }
    while (todo.n) {
        const br_kins *i = &f->ins.at[todo.at[--todo.n]];

        for (unsigned a = 0; a < i->n_arg; a++) {
            const br_kval *v = &f->vals.at[br_kargs(f, i)[a]];

            if (v->kind == BR_KV_INS && gone[v->def]) {
                gone[v->def] = 0;
                todo.at[todo.n++] = v->def;
            }
        }
    }
    any = br_kfn_sweep(f, gone);
    br_vec_fini(&todo);
    br_free(gone);
    return any;
}
