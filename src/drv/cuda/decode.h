/* decode.h - a model's weights on a CUDA device and the launches of a step.
 *
 *   new -> put every matrix -> norms -> seek(token, position) -> run ...
 *
 * Mega runs any number of steps in one cooperative launch; packets runs each
 * phase as a launch of the same kernel over the same tables, so both give the
 * same bits. Resident is a mega that stays: it takes its steps from a ring in the
 * host's memory, a token and a place each, or the most likely token of the step
 * before, and waits there when the ring is empty.
 *
 *   enter -> next, next ... (a token each, no launch) -> leave
 *         seek (another token, position, sequence) -> next
 *         seek, post, seek, post ... (known tokens) -> next, next ...
 *         cancel (the device is free, in a step's midst) -> resume
 *
 * One thread owns it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_DECODE_H
#define BR_CUDA_DECODE_H

#include "drv/cuda/cuda_api.h"
#include "drv/cuda/stream_plan.h"

enum br_cu_mode { BR_CU_MEGA, BR_CU_PACKETS };

typedef struct br_cu_decode {
    br_cuda *cu;
    br_cu_shape shape;
    br_stream_plan plan;
    void *mega_mod, *setup_mod, *pick_mod, *fn, *repack, *pick;
    uint64_t inst, stream, stream_chunks, words, embed, norms, qk_norms, rope,
        kv, pages, tokens, logits, step, tile_at, profile, hints, pick_space,
        pick_weights, pick_told, odd, more;
    uint64_t args;           /* the kernel's constant block */
    struct br_mk_host *host; /* pinned */
    struct br_pick_how *how; /* pinned: of draws, by turn */
    uint32_t *hints_now;     /* pinned: what the counters are to be */
    void *graph[6];          /* of launches that are alike (decode_told.c) */
    uint32_t heard;  /* steps before this epoch have read what they are told */
    uint32_t picked; /* and draws up to this one */
    bool resident, left; /* a launch stays; did, with none since */
    uint32_t epoch, max_pos, regs, local_bytes, picks;
    bool sought; /* the next step begins with this token */
    uint32_t token;
    uint32_t pos, block; /* of the next step that is queued; of 256 positions:
                            where its sequence begins */
    uint32_t posted;     /* epoch of the last step in the ring */
    uint32_t phase;    /* with which the next launch begins: it was cut there */
    uint32_t serial;   /* of the last launch */
    uint32_t patience; /* looks at the ring before a launch ends by itself */
    uint64_t launches; /* of the megakernel so far */
} br_cu_decode;

/* mega_image: PTX or cubin of mega_decode; NULL takes the built-in one. */
br_code br_cu_decode_new(br_cu_decode *d, br_cuda *cu, const br_cu_shape *s,
                         uint32_t max_pos, const void *mega_image,
                         br_status *st) BR_MUST_USE;
void br_cu_decode_free(br_cu_decode *d);
/* Bytes of the buffer that matrices pass through while they are loaded. */
uint64_t br_cu_way(const br_cu_shape *s);
/* Row-major on the device, in the format of a model file, re-laid into the streams.
 * b: the up matrix of GLU, else 0. */
br_code br_cu_decode_put(br_cu_decode *d, uint32_t layer, enum br_cu_matrix m,
                         uint64_t a, uint64_t b, br_status *st) BR_MUST_USE;
/* Of BF16 matrices that were put, 12 bits a weight (mega_table.h). */
typedef struct br_cu_odd {
    uint32_t
        chunks; /* with more to list than there is room for: the model is to be
                         loaded again, shape.plain */
    uint32_t weights; /* that are listed */
    uint32_t groups;  /* of them, beside the streams */
} br_cu_odd;
br_code br_cu_decode_odd(br_cu_decode *d, br_cu_odd *out,
                         br_status *st) BR_MUST_USE;
/* Where the next step begins; sent with it. */
void br_cu_decode_seek(br_cu_decode *d, uint32_t token, uint32_t pos);
/* The same of the sequence whose positions are those from 256 * block on. */
void br_cu_decode_seek_in(br_cu_decode *d, uint32_t block, uint32_t token,
                          uint32_t pos);
/* Queues n_steps; asynchronous. */
br_code br_cu_decode_run(br_cu_decode *d, enum br_cu_mode mode,
                         uint32_t n_steps, br_status *st) BR_MUST_USE;
/* Waits for what is queued. TIMEOUT: the kernel gave up waiting. */
br_code br_cu_decode_wait(br_cu_decode *d, br_status *st) BR_MUST_USE;
/* Launches the kernel that stays, with the step that is next. */
br_code br_cu_decode_enter(br_cu_decode *d, br_status *st) BR_MUST_USE;
/* One more step into the ring, of which 63 may be ahead of next: the one that was
 * sought, or the one that follows with the most likely token. */
void br_cu_decode_post(br_cu_decode *d);
/* Steps that follow without being asked for: the next one's keys and values are
 * on their way while this one's logits are computed. */
enum { BR_CU_AHEAD = 2 };
/* The most likely token after the next step; that and `ahead` more are in the
 * ring then. With 0 the kernel waits after it, for 20 ms, for seek, next or leave.
 * INTERNAL: as below. */
br_code br_cu_decode_next(br_cu_decode *d, uint32_t ahead, uint32_t *out,
                          br_status *st) BR_MUST_USE;
/* Ends the launch that stays at a layer's border, three layers later at most, in
 * the midst of a step; the device is free then. next has what was ready, and
 * CANCELLED for more. Resume goes on at that layer, with the same bits. */
br_code br_cu_decode_cancel(br_cu_decode *d, br_status *st) BR_MUST_USE;
br_code br_cu_decode_resume(br_cu_decode *d, br_status *st) BR_MUST_USE;
/* Does not wait for a launch that waits; cuts one that runs: what ran ahead is
 * forgotten, so seek before the next step. */
br_code br_cu_decode_leave(br_cu_decode *d, br_status *st) BR_MUST_USE;
/* The most likely tokens of the last n steps, 64 at most, as soon as they are
 * there: the launch may still be ending. */
br_code br_cu_decode_tokens(br_cu_decode *d, uint32_t *out, uint32_t n,
                            br_status *st) BR_MUST_USE;

/* What the host's sampler knows too: src/run/sample.h says what they mean. */
typedef struct br_cu_pick {
    uint64_t seed;
    float temperature, top_p, min_p;
    int32_t top_k;
} br_cu_pick;
/* Queues the draw of the next token from the logits of the step before, which
 * the next step then begins with. */
br_code br_cu_decode_pick(br_cu_decode *d, const br_cu_pick *p,
                          br_status *st) BR_MUST_USE;
/* The same after one step, in one call: nobody looks at logits in between. */
br_code br_cu_decode_run_pick(br_cu_decode *d, const br_cu_pick *p,
                              br_status *st) BR_MUST_USE;
/* Waits for it. INTERNAL: a logit is no number; REJECTED: all are -inf. */
br_code br_cu_decode_picked(br_cu_decode *d, uint32_t *out,
                            br_status *st) BR_MUST_USE;

extern const char br_ptx_mega_decode[], br_ptx_setup[], br_ptx_pick[];
extern const char br_cubin_mega_decode[], br_cubin_setup[], br_cubin_pick[];

#endif
