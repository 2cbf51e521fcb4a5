/* state_plan.c - which page or slot piece holds each state of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/drv.h"

static br_code
group_of(br_state_plan *p, int64_t window, uint32_t *out, br_status *st)
{
    for (uint32_t g = 0; g < p->n_groups; g++)
        if (p->group[g].window == window) {
            *out = g;
            return BR_OK;
        }
    if (p->n_groups == BR_MAX_KV_GROUPS)
        return br_fail(st, BR_E_LIMIT, "more than %d sizes of window",
                       BR_MAX_KV_GROUPS);
    *out = p->n_groups++;
    p->group[*out] = (br_kv_group){.window = window};
    return BR_OK;
}

static br_code
place_pages(br_state_plan *p, const br_ir *g, const br_ir_node *n,
            br_status *st)
{
    uint32_t group = 0;

    BR_TRY(group_of(p, br_ir_i(n, BR_IA_window, 0), &group, st));
    for (int i = 0; i < n->n_in; i++) {
        uint32_t v = n->bind[i].value;

        if (v == BR_IR_NONE || g->values[v].kind != BR_IK_STATE)
            continue;
        if (p->place[v].at != UINT64_MAX)
            return br_fail(st, BR_E_REJECTED, "%.*s: two nodes write it",
                           (int)br_ir_value_name(g, v).n,
                           br_ir_value_name(g, v).p);
        p->place[v] = (br_state_place){group, p->group[group].page_elems};
        p->group[group].page_elems +=
            BR_PAGE_TOKENS * (uint64_t)br_ir_cols(&g->values[v]);
        p->group[group].n_values++;
    }
    return BR_OK;
}

br_code
br_state_plan_of(br_state_plan *p, const br_ir *g, br_status *st)
{
    br_code code = BR_OK;

    *p = (br_state_plan){0};
    p->place = br_try_calloc(g->n_values + 1, sizeof *p->place);
    if (!p->place)
        return br_fail(st, BR_E_OOM, "states: out of memory");
    for (uint32_t v = 0; v < g->n_values; v++)
        p->place[v].at = UINT64_MAX;
    for (uint32_t i = 0; i < g->n_nodes && code == BR_OK; i++)
        if (g->nodes[i].op == BR_IR_KV_WRITE_BATCHED ||
            g->nodes[i].op == BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE)
            code = place_pages(p, g, &g->nodes[i], st);
    for (uint32_t v = 0; v < g->n_values && code == BR_OK; v++) {
        const br_ir_value *x = &g->values[v];

        if (x->kind == BR_IK_STATE && x->dim[0] == BR_DIM_POS &&
            p->place[v].at == UINT64_MAX)
            code = br_fail(st, BR_E_REJECTED, "%.*s: no node writes it",
                           (int)br_ir_value_name(g, v).n,
                           br_ir_value_name(g, v).p);
        if (x->kind != BR_IK_STATE || x->dim[0] != BR_DIM_S)
            continue;
        p->place[v] = (br_state_place){BR_IR_NONE, p->slot_elems};
        p->slot_elems += (uint64_t)br_ir_cols(x);
    }
    if (code != BR_OK)
        br_state_plan_fini(p);
    return code;
}

void
br_state_plan_fini(br_state_plan *p)
{
    br_free(p->place);
    p->place = NULL;
}

bool
br_state_plan_same(const br_state_plan *a, const br_state_plan *b)
{
    bool same = a->n_groups == b->n_groups && a->slot_elems == b->slot_elems;

    for (uint32_t g = 0; same && g < a->n_groups; g++)
        same = a->group[g].window == b->group[g].window &&
               a->group[g].page_elems == b->group[g].page_elems;
    return same;
}

br_code
br_step_check(const br_step *step, int64_t n_vocab, uint32_t n_slots,
              uint32_t n_groups, br_status *st)
{
    for (uint32_t t = 0; t < step->n_rows; t++) {
        if (step->token[t] < 0 || step->token[t] >= n_vocab)
            return br_fail(st, BR_E_FORMAT,
                           "step row %u: token %d is not in 0..%lld", t,
                           step->token[t], (long long)n_vocab - 1);
        if (step->slot[t] < 0 || (uint32_t)step->slot[t] >= n_slots)
            return br_fail(st, BR_E_FORMAT, "step row %u: no slot %d", t,
                           step->slot[t]);
        if (step->position[t] < 0)
            return br_fail(st, BR_E_FORMAT, "step row %u: position %d", t,
                           step->position[t]);
        for (uint32_t g = 0; g < n_groups; g++)
            if (!step->pages ||
                !step->pages[(uint32_t)step->slot[t] * n_groups + g])
                return br_fail(st, BR_E_FORMAT, "step row %u: no pages", t);
    }
    return BR_OK;
}
