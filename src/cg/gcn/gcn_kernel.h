/* gcn_kernel.h - a kernel of KIR as machine code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_KERNEL_H
#define BR_GCN_KERNEL_H

#include "cg/gcn/gcn_code.h"
#include "cg/gcn/gcn_mir.h"
#include "cg/ktarget.h"

typedef struct gcn_words {
    uint32_t *at;
    size_t n, cap;
} gcn_words;

bool gm_encode(gm_fn *g, gcn_code *c);
void gcn_code_fini(gcn_code *c);
/* gcn_layout.c: all nodes in order. */
br_code gcn_layout(gcn_code *c, gcn_words *out, br_status *st) BR_MUST_USE;

/* A kernel and what it asks for; k.name, k.code and k.args are its own. */
typedef struct br_gcn_compiled {
    br_gcn_kernel k;
    gcn_words words;
    BR_VEC(br_gcn_arg) args;
    /* Whose addresses end the kernarg block; one that the module does not have
     * is the host's block. */
    BR_VEC(uint32_t) vars;
    char *name;
} br_gcn_compiled;
/* UNSUPPORTED names the instruction that has no code on this processor. */
br_code br_gcn_compile(br_gcn_compiled *out, const br_gcn_isa *isa,
                       const br_kir *m, uint32_t fn, br_status *st) BR_MUST_USE;
void br_gcn_compiled_fini(br_gcn_compiled *k);

/* What br_kcode is here: kernels are compiled when somebody asks for their
 * code, for a module may hold some that this processor has no code for. */
typedef struct br_gcn_module {
    br_gcn_isa isa;
    const br_kir *m;
    /* What its kernels ask of the host: kernels/host/host_block.h, made by who
     * launches the first that does, freed with the module. */
    struct br_host_block *host;
    bool host_of_all; /* the launch's */
} br_gcn_module;

#endif
