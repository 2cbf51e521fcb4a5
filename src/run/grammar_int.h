/* grammar_int.h - what grammar.c makes and gmatch.c runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GRAMMAR_INT_H
#define BR_GRAMMAR_INT_H

#include "run/grammar.h"

/* BYTE reads one of lo..hi and goes to a; SPLIT is at a and b at once; CALL
 * goes to a and, when that comes to its RET, to b. */
typedef enum gkind { G_BYTE, G_SPLIT, G_CALL, G_RET } gkind;

typedef struct gstate {
    uint8_t kind, lo, hi;
    uint32_t a, b;
} gstate;

/* A place on a stack: a state, and the place to go on at after its RET. */
typedef struct gnode {
    uint32_t state, parent;
    uint32_t mark; /* seen in the closure of this number */
    uint32_t pop;  /* the configuration of going on here, or 0 */
} gnode;

enum {
    G_NONE,
    G_BOTTOM, /* whatever called */
    G_TOP,    /* the answer is over */
    G_FIRST_NODE
};

/* Tokens allowed: bits, and nodes of the vocabulary at which the frame was
 * left, so that what called it decides about the rest. */
typedef struct gmask {
    uint64_t *bits; /* NULL: not kept */
    uint32_t *leaves;
    uint32_t n_leaves;
} gmask;

enum { G_ACCEPTS = 1, G_LEAVES = 2 };

/* All stacks that the text so far may have led to, as sorted nodes. */
typedef struct gconf {
    uint32_t at, n; /* of members */
    uint32_t next;  /* of nexts, by class of byte; 0: none yet */
    uint32_t hash;
    uint32_t mask; /* of masks; 0: none */
    uint8_t flags;
} gconf;

typedef BR_VEC(uint32_t) gwords;

struct br_grammar {
    const br_vocab *v;
    uint32_t refs;
    BR_VEC(gstate) states;
    uint32_t root;
    uint8_t class_of[256], byte_of[256]; /* bytes that no state tells apart */
    uint32_t n_classes;

    /* the cache: one thread's; emptied when over its limit */
    uint32_t generation;
    BR_VEC(gnode) nodes;
    BR_VEC(gconf) confs;
    BR_VEC(gmask) masks;
    gwords node_slots, conf_slots; /* hash tables of ids, powers of two */
    gwords members, nexts;
    gwords work, found, leaves; /* scratch */
    uint64_t *bits;
    size_t mask_bytes;
    uint32_t stamp, start;
    uint8_t flags; /* of the closure at hand */
    uint64_t spent, visited;
    br_code failed;
};

/* A rule's first state + 1; 0: nobody calls it. */
typedef struct grules {
    struct grule {
        br_text name;
        uint32_t start;
    } * at;
    uint32_t n;
} grules;

/* grammar_check.c */
br_code br_grammar_check(const br_grammar *g, const grules *rs, br_arena *a,
                         br_status *st) BR_MUST_USE;
/* gmatch.c, for who has no vocabulary: what the text so far has led to, byte
 * after byte. 0: it took too much (g->failed). */
enum { BR_CONF_DEAD = 1 };
uint32_t br_conf_first(br_grammar *g);
uint32_t br_conf_next(br_grammar *g, uint32_t conf, uint8_t byte);
bool br_conf_ends(const br_grammar *g, uint32_t conf);
/* The cache is freed. */
void br_grammar_cache_fini(br_grammar *g);

#endif
