/* abi.h - the records a task program is on a device, and the rules its tasks
 * and workers keep. Version 0.2; shared by the host and every device's VM.
 *
 *   host                                         device
 *   task program --export--> tables  --copy-->   each worker s:
 *     buffers      [n_buffers]                      for i in sm_queue[s]:
 *     instructions [n_instructions]                   wait for i's counters
 *     sm_queue     [num_sms][..]                      run i
 *     counters     zero before a launch               signal i's out_counter
 *
 * Plain C11; also clean as C++ and CUDA. Fields are little-endian with natural
 * alignment, and the records of the tables (params, buffer, instruction) hold
 * no hidden padding; every size and offset is asserted below. Codes are
 * frozen: a code never changes its meaning, new ones are appended. Codes from
 * AMK_OP_EXT and AMK_DTYPE_EXT up belong to Brass; a VM refuses a code it does
 * not know.
 *
 * THE CONTRACT
 *
 * Counters. A counter is a 32-bit number in memory that all workers see. It is
 * zero when a launch begins and only grows. A task adds 1 to its out_counter,
 * once, after all it writes. A wait names a counter and a threshold fixed in
 * advance. With several producers the threshold is their number: a count does
 * not say WHO has finished, only how many.
 *
 * signal(c), after every thread of the worker has stored its outputs:
 *     a barrier of the worker's threads;
 *     in one thread, a release at device scope that orders all those stores
 *     before an atomic increment of counters[c] at device scope.
 *     (Counters shared between devices: system scope.)
 * wait(c, t), before the first load of an input:
 *     in one thread, an acquire load of counters[c] at device scope, repeated
 *     until it is >= t. The load must be one that a compiler may not hoist;
 *     between tries the thread backs off, and looks at *abort_flag;
 *     a barrier, after which all threads take the same path. When abort_flag
 *     is not zero the whole worker leaves; no thread stays behind a barrier.
 * The release of the producer's signal and the acquire that reads its count
 * form one edge, so what was stored before is seen after. Block scope is not
 * enough, and neither is a plain or volatile load on a device whose model
 * gives it no order.
 *
 * Queues. Each worker runs its queue front to back. All queues follow one
 * topological order of the program, so no worker waits for a count that only
 * its own later entry could give.
 *
 * Tasks. A task reads its inputs, its params and the shapes in the buffer
 * table, and writes its outputs; it touches no counter and no other buffer,
 * and starts no work. All threads of the worker run it together.
 *
 * Launch. Workers wait for each other, so all must be resident at once: the
 * launcher proves it (cooperative launch, occupancy) or refuses. Pointers are
 * fixed before the launch; nothing is allocated during it. One launch is one
 * forward pass; KV caches live on from launch to launch. A task that cannot
 * run (unknown code) sets *abort_flag to -(op + 1); a watchdog sets a positive
 * value; either way the results of the launch are void.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AMK_ABI_H
#define AMK_ABI_H

#include <stddef.h>
#include <stdint.h>

#define AMK_ABI_VERSION_MAJOR 0
#define AMK_ABI_VERSION_MINOR 2

/* Places in a record; a program that needs more is refused by the host. */
#define AMK_MAX_INPUTS        8
#define AMK_MAX_OUTPUTS       4
#define AMK_MAX_WAITS         8
#define AMK_MAX_RANK          4

typedef enum {
    AMK_F32 = 0,
    AMK_F16 = 1,
    AMK_BF16 = 2,
    AMK_F8E4M3 = 3,
    AMK_F8E5M2 = 4,
    AMK_I32 = 5,
    AMK_I8 = 6,
    AMK_I4 = 7, /* two in a byte, the even element in the low half */
    AMK_U8 = 8,
    AMK_BOOL = 9,
    AMK_DTYPE_END_0_2 = 10,
    AMK_DTYPE_EXT = 32 /* Brass's own from here */
} amk_dtype_t;

typedef enum {
    AMK_HBM = 0,
    AMK_GLOBAL_SCRATCH = 1,
    AMK_SMEM = 2,
    AMK_REGISTER = 3
} amk_memspace_t;

typedef enum {
    AMK_OP_NOP = 0,
    AMK_OP_COPY = 1,
    AMK_OP_EMBED = 2,
    AMK_OP_RMSNORM = 3,
    AMK_OP_LAYERNORM = 4,
    AMK_OP_GEMV_TILE = 5,
    AMK_OP_GEMM_TILE = 6,
    AMK_OP_ATTENTION_TILE = 7,
    AMK_OP_ROPE = 8,
    AMK_OP_SILU_MUL = 9,
    AMK_OP_GELU = 10,
    AMK_OP_ADD = 11,
    AMK_OP_MUL = 12,
    AMK_OP_DEQUANT = 13,
    AMK_OP_SOFTMAX = 14,
    AMK_OP_ALLREDUCE_SHARD = 15,
    AMK_OP_KV_APPEND = 16,
    AMK_OP_SAMPLE_ARGMAX = 17,
    AMK_OP_ATTENTION_COMBINE = 18,
    AMK_OP_FUSED = 19,
    AMK_OP_END_0_2 = 20,
    AMK_OP_EXT = 32 /* Brass's own from here */
} amk_opcode_t;

/* params.flags. Bit 0 (causal) is accepted and changes nothing. */
#define AMK_FLAG_PARTIAL 2 /* attention writes acc|max|sum, to be combined */
/* Bits 16-31: which pattern a FUSED task is on the device. The recipe itself
 * stays on the host. */
#define AMK_FUSED_SHIFT  16
typedef enum {
    AMK_FUSED_NONE = 0,
    AMK_FUSED_GEMV_ADD = 1 /* x @ W.T + inputs[2], summed in f32 */
} amk_fused_pattern_t;

typedef uint32_t amk_counter_t;

/* Scalars of a task; each opcode reads the ones its row requires. */
typedef struct {
    int32_t K, N, M;        /* sizes of the whole product */
    int32_t N_tile, M_tile; /* of this tile. M_tile of a GEMV_TILE: how many
                               instructions ahead its weights may be fetched */
    int32_t n_off, m_off;   /* place of this tile in the output */
    int32_t hidden, vocab;
    int32_t head_dim, n_heads, n_kv_heads;
    int32_t kv_start, kv_len, pos;
    int32_t qdtype; /* amk_dtype_t of the quantised operand */
    int32_t group;  /* elements that share a scale */
    int32_t flags;
    int32_t dim; /* axis of a reduction */
    float eps, scale, theta;
} amk_params_t;

/* A tensor. Strides count elements; places beyond rank are zero. */
typedef struct {
    void *ptr;
    int64_t numel;
    int32_t rank;
    int32_t dtype; /* amk_dtype_t */
    int32_t space; /* amk_memspace_t */
    int32_t pad;
    int64_t shape[AMK_MAX_RANK];
    int64_t stride[AMK_MAX_RANK];
} amk_buffer_t;

/* A task. Places beyond the counts are zero. */
typedef struct {
    int32_t op; /* amk_opcode_t */
    int32_t n_inputs, n_outputs, n_waits;
    int32_t inputs[AMK_MAX_INPUTS];   /* indices of buffers */
    int32_t outputs[AMK_MAX_OUTPUTS]; /* likewise */
    int32_t wait_counter[AMK_MAX_WAITS];
    int32_t wait_threshold[AMK_MAX_WAITS]; /* >= 1 */
    int32_t out_counter;
    int32_t sm; /* the worker, >= 0 */
    amk_params_t params;
} amk_instruction_t;

typedef struct {
    const amk_buffer_t *buffers;
    int32_t n_buffers;
    amk_counter_t *counters; /* zeroed by the host before each launch */
    int32_t n_counters;
    const amk_instruction_t *instructions;
    int32_t n_instructions;
    const int32_t *const *sm_queue; /* [num_sms][sm_queue_len[s]] */
    const int32_t *sm_queue_len;    /* [num_sms] */
    int32_t num_sms;
    void *scratch;
    int64_t scratch_bytes;
    int32_t *abort_flag; /* not zero: every worker leaves */
} amk_program_t;

/* ---- sizes and offsets ------------------------------------------------ */

#ifdef __cplusplus
#    define AMK_ASSERT(c) static_assert(c, #    c)
#else
#    define AMK_ASSERT(c) _Static_assert(c, #    c)
#endif
#define AMK_AT(type, field, at) AMK_ASSERT(offsetof(type, field) == (at))

AMK_ASSERT(sizeof(amk_counter_t) == 4);
AMK_ASSERT(sizeof(amk_params_t) == 88);
AMK_AT(amk_params_t, K, 0);
AMK_AT(amk_params_t, N_tile, 12);
AMK_AT(amk_params_t, n_off, 20);
AMK_AT(amk_params_t, hidden, 28);
AMK_AT(amk_params_t, head_dim, 36);
AMK_AT(amk_params_t, kv_start, 48);
AMK_AT(amk_params_t, qdtype, 60);
AMK_AT(amk_params_t, group, 64);
AMK_AT(amk_params_t, flags, 68);
AMK_AT(amk_params_t, dim, 72);
AMK_AT(amk_params_t, eps, 76);
AMK_AT(amk_params_t, scale, 80);
AMK_AT(amk_params_t, theta, 84);

AMK_ASSERT(sizeof(void *) == 8);
AMK_ASSERT(sizeof(amk_buffer_t) == 96);
AMK_AT(amk_buffer_t, ptr, 0);
AMK_AT(amk_buffer_t, numel, 8);
AMK_AT(amk_buffer_t, rank, 16);
AMK_AT(amk_buffer_t, dtype, 20);
AMK_AT(amk_buffer_t, space, 24);
AMK_AT(amk_buffer_t, pad, 28);
AMK_AT(amk_buffer_t, shape, 32);
AMK_AT(amk_buffer_t, stride, 64);

AMK_ASSERT(sizeof(amk_instruction_t) == 224);
AMK_AT(amk_instruction_t, op, 0);
AMK_AT(amk_instruction_t, n_inputs, 4);
AMK_AT(amk_instruction_t, n_outputs, 8);
AMK_AT(amk_instruction_t, n_waits, 12);
AMK_AT(amk_instruction_t, inputs, 16);
AMK_AT(amk_instruction_t, outputs, 48);
AMK_AT(amk_instruction_t, wait_counter, 64);
AMK_AT(amk_instruction_t, wait_threshold, 96);
AMK_AT(amk_instruction_t, out_counter, 128);
AMK_AT(amk_instruction_t, sm, 132);
AMK_AT(amk_instruction_t, params, 136);

AMK_ASSERT(sizeof(amk_program_t) == 96);
AMK_AT(amk_program_t, buffers, 0);
AMK_AT(amk_program_t, n_buffers, 8);
AMK_AT(amk_program_t, counters, 16);
AMK_AT(amk_program_t, n_counters, 24);
AMK_AT(amk_program_t, instructions, 32);
AMK_AT(amk_program_t, n_instructions, 40);
AMK_AT(amk_program_t, sm_queue, 48);
AMK_AT(amk_program_t, sm_queue_len, 56);
AMK_AT(amk_program_t, num_sms, 64);
AMK_AT(amk_program_t, scratch, 72);
AMK_AT(amk_program_t, scratch_bytes, 80);
AMK_AT(amk_program_t, abort_flag, 88);

#undef AMK_AT
#undef AMK_ASSERT

#endif
