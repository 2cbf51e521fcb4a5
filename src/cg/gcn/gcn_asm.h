/* gcn_asm.h - what the assembler's lines and its directives share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_ASM_H
#define BR_GCN_ASM_H

#include "base/map.h"
#include "cg/gcn/gcn_file.h"
#include "cg/gcn/gcn_kinds.h"

typedef struct br_gcn_label {
    br_text name;
    uint64_t at; /* or the value of .set */
    uint64_t bytes;
    uint8_t place; /* br_gcn_place */
    bool constant, global, hidden;
} br_gcn_label;

/* A word of text that a label's place goes into. */
typedef struct br_gcn_fix {
    uint64_t at;
    int64_t add;
    uint32_t label, line, column;
    enum { BR_FIX_BRANCH, BR_FIX_LOW, BR_FIX_HIGH } kind;
} br_gcn_fix;

typedef struct br_gcn_kernel_kd {
    br_text name;
    uint64_t at; /* in data */
    uint32_t line;
} br_gcn_kernel_kd;

typedef struct br_gcn_macro {
    br_text name, params, body;
} br_gcn_macro;

/* What is read after a macro's lines. */
typedef struct br_gcn_source {
    br_text macro;
    const char *next, *end;
    unsigned n_ifs; /* conditions that were open */
} br_gcn_source;

enum {
    BR_GCN_MAX_NEST = 16, /* of macros in macros */
    BR_GCN_MAX_IFS = 64,
    BR_GCN_MAX_MACRO_TEXT = 16 << 20, /* bytes of lines of macros in use */
};

typedef struct br_gcn_asm {
    br_gcn_isa isa;
    br_gcn_ctx scan;         /* where in the line we are: p and end */
    const char *line, *next; /* its begin; where the next begins */
    const char *end;
    uint32_t number;
    br_gcn_place place;
    br_text place_name; /* of a section that nothing may be put into */
    br_str text, data, note, names;
    BR_VEC(br_gcn_label) labels;
    br_map by_name; /* label -> index */
    BR_VEC(br_gcn_fix) fixes;
    BR_VEC(br_gcn_kernel_kd) kernels;
    br_gcn_kd kd;
    bool in_kd;
    BR_VEC(br_gcn_macro) macros;
    br_gcn_source from[BR_GCN_MAX_NEST];
    uint8_t ifs[BR_GCN_MAX_IFS];
    unsigned depth, n_ifs; /* macros, conditions that are open */
    uint32_t uses;         /* of macros */
    br_arena texts;        /* their lines */
    br_status *st;
} br_gcn_asm;

/* Fails with the place of p in the current line. */
br_code br_gcn_asm_fail(br_gcn_asm *a, const char *p, const char *fmt, ...)
    BR_PRINTF(3, 4);
/* A name at the scan's place; n 0: none is there. */
br_text br_gcn_asm_name(br_gcn_asm *a);
/* The label's number, new where it was never named; UINT32_MAX: no memory. */
uint32_t br_gcn_asm_label(br_gcn_asm *a, br_text name);
/* Sums and differences that are a number in the end. gcn_dirs.c */
br_code br_gcn_asm_value(br_gcn_asm *a, int64_t *v);
/* Moves to the next line; false: there is none. */
bool br_gcn_asm_line(br_gcn_asm *a);
/* gcn_macro.c: what decides of lines; done: nothing is left of this one. */
br_code br_gcn_asm_before(br_gcn_asm *a, bool *done);
/* gcn_dirs.c: a line that begins with a point. */
br_code br_gcn_directive(br_gcn_asm *a);

#endif
