/* lm.h - a model at work, as whoever talks with it sees it.
 *
 * Tokens go in at a position of a slot; logits come out. Which tier computes
 * them is the affair of whoever filled in the table; tests fill in their own.
 *
 *   feed, keep   one slot at a time; the tier finds the pages (run, chat)
 *   step, ...    rows of many slots at once; the caller owns the pages and
 *                says which (the serving engine)
 *
 * Whoever uses one of the two ways does not use the other. One thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_H
#define BR_LM_H

#include "drv/drv.h"

/* A text's embedding: of all its tokens, the first, or the last one. Values as
 * in model files. */
typedef enum br_pooling {
    BR_POOLING_MEAN = 1,
    BR_POOLING_CLS = 2,
    BR_POOLING_LAST = 3,
} br_pooling;

struct br_sample_params;
struct br_nd_stats;

enum {                       /* in place of a token */
       BR_LM_NO_NUMBER = -1, /* a logit is NaN or +inf */
       BR_LM_NO_TOKEN = -2   /* all are -inf */
};

/* What a GPU asked of this process so far. */
typedef struct br_lm_gpu {
    uint64_t resident;  /* steps that a launch took which stays on the device */
    uint64_t entered;   /* such launches */
    uint64_t exited;    /* of them, ended because something else was to do */
    uint64_t ahead;     /* of those steps, told while the one before ran */
    uint64_t vain;      /* others, told so, that were for nothing */
    uint64_t device_ns; /* of those steps, on the device */
    uint64_t
        submit_ns; /* of all steps: this process's time to hand them over */
} br_lm_gpu;

typedef struct br_lm {
    void *ctx;
    int32_t n_vocab;
    uint32_t n_ctx;    /* tokens a slot can hold */
    uint32_t n_slots;  /* sequences at once */
    uint32_t chunk;    /* most tokens of one feed, most rows of a step */
    uint32_t max_want; /* most rows of a step that want logits */
    const char *tier;  /* "ref" */
    /* Tokens that its makers say are never to come. With some, a tier draws
     * none by itself: pick and draw are NULL. */
    const int32_t *never;
    size_t n_never;
    /* Appends n tokens, which get positions from, from + 1, ... The slot holds
     * exactly `from` tokens before. logits: [n_vocab] after the last, or NULL.
     */
    br_code (*feed)(void *ctx, uint32_t slot, uint32_t from,
                    const int32_t *tokens, uint32_t n, float *logits,
                    br_status *st);
    /* The token at `position`, which comes after what the latest feed ended
     * with, as a br_sampler draws it for br_sample_plain parameters; the logits
     * stay where they are. NULL: the tier cannot. */
    br_code (*pick)(void *ctx, const struct br_sample_params *p,
                    uint64_t position, int32_t *out, br_status *st);
    /* From now on a feed ends soon after *flag is true, CANCELLED; what the slot
     * holds then, keep says, which is less than `from` where its state cannot be
     * rewound. NULL: feeds run to their ends, as they do where this is NULL. */
    void (*until)(void *ctx, const _Atomic bool *flag);
    /* The slot forgets all but its first n tokens. Returns how many it could
     * keep: n, or fewer where its state cannot be rewound. */
    uint32_t (*keep)(void *ctx, uint32_t slot, uint32_t n);

    /* How pages and slots are laid out, and how many pages there are of each
     * group. NULL: the tier has no steps. */
    const br_state_plan *plan;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    /* A step as drv.h has it. logits: [rows that want them][n_vocab], in the
     * order of the rows. A step that fails has changed pages and states of its
     * own rows alone. */
    br_code (*step)(void *ctx, const br_step *step, float *logits,
                    br_status *st);
    /* A step whose logits nobody sees, n of whose rows want some: the token that
     * comes after each, at position[i], as a br_sampler draws it for
     * br_sample_plain parameters. BR_LM_NO_NUMBER, BR_LM_NO_TOKEN: why there is
     * none. One such step after another may be one launch that stays. NULL: the
     * tier cannot. */
    br_code (*draw)(void *ctx, const br_step *step,
                    const struct br_sample_params *const *p,
                    const uint32_t *position, uint32_t n, int32_t *out,
                    br_status *st);
    /* From now on each draw calls fn(arg), once, when the step is on its way and before
     * its tokens are waited for. NULL: nobody waits, or not in the caller's thread. */
    void (*meanwhile)(void *ctx, void (*fn)(void *arg), void *arg);
    /* From now on a draw asks fn(arg), now and then, late in its step and in the caller's
     * thread, whether the next call is a draw of the same rows, each a token on, with the
     * token that is drawn: a device may then go on with it. Rows that are left out, and
     * anything else that is called, cost no more than a step's time. NULL: none asks. */
    void (*ahead)(void *ctx, bool (*fn)(void *arg), void *arg);
    /* What the head read of each row of the latest step, [n_rows][n_embd], up
     * to the next one; NULL: st says why. No hook: out of reach. How it becomes
     * a text's embedding is the model's affair. */
    const float *(*hidden)(void *ctx, br_status *st);
    uint32_t n_embd;
    br_pooling pooling;
    /* What a slot has beside its pages (plan->slot_elems numbers): zeroed
     * before a new sequence; as bytes that can be put into any slot. */
    void (*reset)(void *ctx, uint32_t slot);
    void (*save)(void *ctx, uint32_t slot, float *out);
    void (*restore)(void *ctx, uint32_t slot, const float *from);
    /* What the host had to do with a GPU so far. NULL: none is there. */
    void (*stats)(void *ctx, struct br_nd_stats *out);
    /* The same of the CUDA tier. NULL: it is another one. */
    void (*gpu)(void *ctx, br_lm_gpu *out);
    /* A page as bytes, for who keeps them elsewhere: out of it or (in) back.
     * NULL: they are not within reach. */
    void (*page)(void *ctx, uint32_t group, uint32_t page, void *bytes,
                 bool in);
    size_t page_bytes[BR_MAX_KV_GROUPS];
} br_lm;

#endif
