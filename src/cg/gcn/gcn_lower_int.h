/* gcn_lower_int.h - a copy of a kernel in the making: gcn_lower.c copies
 * functions, gcn_call.c puts them in where they are called, gcn_recurse.c where
 * they call themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_LOWER_INT_H
#define BR_GCN_LOWER_INT_H

#include "cg/gcn/gcn_lower.h"
#include "cg/kir_pass.h"

typedef struct edge {
    uint32_t from, val;
} edge;

typedef struct phi {
    uint32_t ins, blk, first, n; /* of edges */
} phi;

typedef struct lib {
    char *text;
    br_kir *m;
} lib;

typedef struct lower {
    br_kir *m; /* the copy */
    br_kfn *f;
    uint32_t cur, line; /* where instructions go */
    BR_VEC(edge) edges;
    BR_VEC(phi) phis;
    BR_VEC(br_kobj) objs;
    BR_VEC(lib) libs;
    unsigned depth;
    unsigned level;          /* of functions that call themselves, in such */
    BR_VEC(uint32_t) stacks; /* of each level */
    bool changed, wmma;
    bool tight;         /* frames of calls that are not open at once share */
    uint32_t own, most; /* tight: bytes of the kernel's own frame, of all */
    bool warps;         /* a wave has two */
    const br_kir *of;   /* what `calls` is about */
    uint8_t *calls;     /* of each function: 1 never itself, 2 itself; 0: ? */
    br_code code;
    br_status *st;
} lower;

struct gl_rec;

/* A function that is copied. */
typedef struct copy {
    const br_kir *m;
    const br_kfn *f;
    uint32_t base;         /* of its frame in ours */
    const uint64_t *param; /* where its parameters are; NULL: in its frame */
    uint32_t back;         /* where it returns to; BR_KNONE: it ends */
    uint32_t *val, *first, *last, *chain;
    const uint32_t *vars; /* number of its variables in ours; NULL: the same */
    /* Of one that calls itself: its frame is on a stack, and a value is there
     * between stretches, blocks or what lies between calls of itself. */
    struct gl_rec *rec;
    uint32_t stretch, *seen; /* the stretch in which val[] holds */
    uint32_t *slot;          /* of each value in the frame; 0: in none */
    uint32_t *in_slot;       /* of each phi: what edges bring */
    uint32_t frame, id_at;   /* bytes; where the number of the call is */
    uint32_t addr, addr_of;  /* the frame's address, in which stretch */
    uint32_t out;            /* the block that goes back */
} copy;

/* ---- gcn_lower.c ---------------------------------------------------------- */

void gl_fail(lower *l, const copy *c, const br_kins *i, const char *why);
uint32_t gl_emit(lower *l, const br_kins *proto, const uint32_t *args);
uint32_t gl_one(lower *l, br_kop op, br_ktype t, uint32_t mods, uint32_t a,
                uint32_t b, uint32_t c, unsigned n);
uint32_t gl_number(lower *l, br_kclass c, uint64_t v);
void gl_goto(lower *l, uint32_t blk);
/* To yes where p holds, else to no; no is current then. */
void gl_branch(lower *l, uint32_t p, uint32_t yes, uint32_t no);
/* What a value of the function is here. */
uint32_t gl_value(lower *l, copy *c, uint32_t v);
void gl_define(lower *l, copy *c, uint32_t v, uint32_t is);
/* Where a place of the function's frame is in ours. */
int64_t gl_frame_at(const copy *c, int64_t at);
uint32_t gl_frame(lower *l, uint64_t at); /* its address */
/* As many bytes at the end of our frame; one object. */
uint32_t gl_more_frame(lower *l, uint32_t bytes);
bool gl_object(lower *l, uint64_t at, uint64_t bytes);
uint32_t gl_load(lower *l, uint32_t addr, int64_t off, br_ktype t);
void gl_store(lower *l, uint32_t addr, int64_t off, br_ktype t, uint32_t v);
/* Of any class: predicates as words. */
uint32_t gl_take(lower *l, uint32_t addr, int64_t off, unsigned cls);
void gl_give(lower *l, uint32_t addr, int64_t off, uint32_t v);
/* A copy's blocks, then what is in them. */
bool gl_begin_copy(lower *l, copy *c);
void gl_walk(lower *l, copy *c);
void gl_free_copy(copy *c);

/* ---- gcn_call.c ----------------------------------------------------------- */

void gl_call(lower *l, copy *from, const br_kins *i, uint32_t fn,
             unsigned first);
void gl_call_any(lower *l, copy *from, const br_kins *i);
void gl_trap(lower *l, br_gcn_trap why);
bool gl_may_be(const br_kir *m, uint32_t fn, const br_kins *i); /* of CALLI */
void gl_from_lib(lower *l, copy *from, const br_kins *i, const br_str *text);
/* The address of the caller's place for an argument. False: it is none. */
bool gl_place(lower *l, copy *from, const br_kins *i, unsigned arg,
              uint32_t *addr);
/* A parameter's bytes. */
void gl_move(lower *l, uint32_t to, int64_t to_off, uint32_t from,
             int64_t from_off, const br_kparam *p);

/* ---- gcn_recurse.c -------------------------------------------------------- */

bool gl_calls_itself(lower *l, const br_kir *m, uint32_t fn);
void gl_recurse(lower *l, copy *from, const br_kins *i, uint32_t fn,
                unsigned first);
/* As gl_value, gl_define, of a copy with c->rec. */
uint32_t gl_rec_value(lower *l, copy *c, uint32_t v);
void gl_rec_define(lower *l, copy *c, uint32_t v);
uint32_t gl_rec_addr(lower *l, copy *c); /* of its frame */
/* What edges out of a block bring to phis. */
void gl_rec_edges(lower *l, copy *c, uint32_t blk);

#endif
