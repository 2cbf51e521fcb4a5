/* gcn_code.h - encoded instructions in nodes, and the passes over them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_CODE_H
#define BR_GCN_CODE_H

#include "cg/gcn/gcn_uses.h"

typedef struct gcn_line {
    br_gcn_inst in;
    int32_t target; /* node of a branch, or -1 */
    uint32_t line;  /* of the source */
} gcn_line;

typedef struct gcn_node {
    BR_VEC(gcn_line) code;
    const uint32_t *succ;
    size_t n_succ;
    uint32_t at; /* words before it */
} gcn_node;

typedef struct gcn_code {
    const br_gcn_isa *isa;
    gcn_node *node;
    size_t n;
    bool oom;
} gcn_code;

/* A row that the processor has. */
const br_gcn_row *gcn_row_named(const br_gcn_isa *isa, const char *name);
/* An instruction without registers, by name; its one number goes to simm16. */
void gcn_push(gcn_code *c, gcn_node *n, const char *name, uint32_t imm,
              uint32_t line);

/* gcn_wait.c: waits where registers or barriers need them. */
void gcn_pass_wait(gcn_code *c);
/* gcn_dual.c: two that issue as one. */
void gcn_pass_dual(gcn_code *c);
/* gcn_hazard.c: what the hardware does not look after. */
void gcn_pass_hazard(gcn_code *c);
/* gcn_delay.c: hints of what comes too early. */
void gcn_pass_delay(gcn_code *c);
/* gcn_short.c: encodings of four bytes where they do. */
void gcn_pass_short(gcn_code *c);

/* gcn_prove.c: that waits suffice on all ways through machine code, told by the
 * words alone. FAULT: the first place where they do not. */
br_code br_gcn_prove(const br_gcn_isa *isa, const uint32_t *w, size_t n,
                     br_status *st) BR_MUST_USE;

#endif
