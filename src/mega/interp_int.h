/* interp_int.h - shared by the parts of the reference VM.
 *
 *   interp.c          buffers, binding, results
 *   interp_run.c      a run, task by task
 *   interp_access.c   every read and write of an element, and its checks
 *   interp_ops.c      moves, element-wise, norms, softmax, argmax
 *   interp_ops_mat.c  GEMV, GEMM, DEQUANT
 *   interp_ops_att.c  ROPE, KV_APPEND, attention
 *   interp_fused.c    recipes
 *   interp_sum.c      dot products and sums
 *
 * An op reads whole operands as f32, computes into scratch, and stores at the
 * end. So an output that is also an input (in place, or through a page) gives
 * what the reference gives, and no op has to think about aliasing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_INTERP_INT_H
#define BR_MEGA_INTERP_INT_H

#include <stdatomic.h>

#include "mega/dtype.h"
#include "mega/interp.h"

/* Steps of a FUSED recipe; each may name a scratch of its own. */
enum { BR_VM_MAX_STEPS = 1024 };

typedef struct br_vm_bits {
    _Atomic uint64_t word;
} br_vm_bits;

/* What a task may touch: a buffer, or the scratch of a recipe. */
typedef struct br_vmt {
    int64_t shape[BR_MEGA_MAX_RANK];
    int64_t numel;
    int64_t rows, row; /* row: the last dimension (1 for a scalar) */
    int64_t row_bytes;
    int64_t id; /* of the buffer; -1: scratch */
    unsigned char *data;
    size_t nbytes;
    /* A bit per element; NULL: all are. Tasks at once share words: relaxed,
     * since counters order what the bits say. */
    br_vm_bits *written;
    struct br_vmt *page_next;     /* ring of the buffers on one page, or NULL */
    _Atomic int64_t clobbered_by; /* buffer that last overwrote a part; -1 */
    const char *name;
    uint8_t dtype; /* br_mega_dtype or BR_DT_F64 */
    uint8_t rank;
    uint8_t kind;
    bool bound;
} br_vmt;

typedef struct br_vm_worker {
    br_arena tmp;
    uint64_t work;
} br_vm_worker;

struct br_mega_vm {
    br_mega_store store;
    const br_mega_prog *prog;
    br_vmt *tensors;
    br_mega_walk *walk;
    br_vm_worker *workers;
    uint32_t n_workers;
    uint64_t bytes, max_bytes, max_work;
    float (*dot)(const float *a, const float *b, size_t n);
    br_code (*op)(void *ctx, struct br_vm_call *c);
    void *ctx;
    br_mega_runner *ran; /* what the last run was by */
};

/* One op in flight: a task, or a step of its recipe. */
typedef struct br_vm_call {
    const br_mega_task *task; /* for messages */
    const br_json *params;    /* an object, or NULL: none */
    br_vmt *in[BR_MEGA_MAX_INPUTS];
    br_vmt *out[BR_MEGA_MAX_OUTPUTS];
    uint32_t n_in, n_out;
    int op;
    int step;      /* of a recipe; -1: the task itself */
    br_arena *tmp; /* reset after the task */
    br_status *st; /* never NULL */
    uint64_t *work, max_work;
    const br_mega_vm *vm;
    char text[2][112]; /* of br_vm_operand: two in one message */
    int turn;
} br_vm_call;

/* ---- interp_access.c -------------------------------------------------- */

/* "task 3 (GEMV_TILE): ..."; returns the code. FORMAT: the program makes no
 * sense. REJECTED: it breaks a rule that br_mega_check should have seen. */
br_code br_vm_fail(br_vm_call *c, br_code code, const char *fmt, ...)
    BR_PRINTF(3, 4);
/* Input k (or, from 100 on, output k - 100) as messages call it. */
const char *br_vm_operand(br_vm_call *c, uint32_t k);
/* Counts n element steps against the run's limit. */
br_code br_vm_work(br_vm_call *c, int64_t n) BR_MUST_USE;
/* Product that sticks at INT64_MAX: never equal to a size in memory. */
int64_t br_vm_mul(int64_t a, int64_t b);

/* Parameters: an int32 as the device has it, or a real. The plain forms are
 * for required ones, the _or forms take a default when absent. */
br_code br_vm_int(br_vm_call *c, br_mega_param p, int64_t *out) BR_MUST_USE;
br_code br_vm_int_or(br_vm_call *c, br_mega_param p, int64_t def,
                     int64_t *out) BR_MUST_USE;
br_code br_vm_real(br_vm_call *c, br_mega_param p, float *out) BR_MUST_USE;
br_code br_vm_real_or(br_vm_call *c, br_mega_param p, float def,
                      float *out) BR_MUST_USE;

/* Elements off .. off + n of input k as f32. The pointer is into the buffer
 * where that holds f32, else into buf (n floats), else, when buf is NULL, into
 * scratch. NULL: failed, c->st says why. n may be 0. */
const float *br_vm_f32(br_vm_call *c, uint32_t k, int64_t off, int64_t n,
                       float *buf) BR_MUST_USE;
/* The whole operand. */
const float *br_vm_all(br_vm_call *c, uint32_t k) BR_MUST_USE;
/* n floats of scratch, uninitialised; NULL: failed. */
float *br_vm_scratch(br_vm_call *c, int64_t n) BR_MUST_USE;
/* Packed bytes of one row of an I4 (or U8) operand. */
const unsigned char *br_vm_row_bytes(br_vm_call *c, uint32_t k,
                                     int64_t row) BR_MUST_USE;
/* One element, exactly; for ids and positions. */
br_code br_vm_index(br_vm_call *c, uint32_t k, int64_t i,
                    int64_t *out) BR_MUST_USE;

/* Writes to output 0. Casts as the reference: to a float dtype by rounding to
 * nearest even, to an integer one towards zero, and what that does not hold
 * is an error. */
br_code br_vm_store(br_vm_call *c, int64_t off, int64_t n,
                    const float *v) BR_MUST_USE;
br_code br_vm_store_f64(br_vm_call *c, int64_t off, int64_t n,
                        const double *v) BR_MUST_USE;
/* Elements of input k exactly, as doubles. */
br_code br_vm_f64(br_vm_call *c, uint32_t k, int64_t off, int64_t n,
                  double *out) BR_MUST_USE;
/* Moves elements from input k to output 0: the same bits where the dtypes are
 * equal, else one rounding. Through scratch, so the ranges may overlap. */
br_code br_vm_move(br_vm_call *c, uint32_t k, int64_t in_off, int64_t out_off,
                   int64_t n) BR_MUST_USE;

void br_vm_mark(br_vmt *t, int64_t off, int64_t n);   /* written */
void br_vm_unmark(br_vmt *t, int64_t off, int64_t n); /* not any more */
int64_t br_vm_unwritten(const br_vmt *t, int64_t off, int64_t n); /* or -1 */

/* ---- interp.c --------------------------------------------------------- */

/* From dtype, rank and shape: the sizes. False: a dimension is negative, or
 * the whole is beyond what a machine holds (2^48 elements). */
bool br_vm_layout(br_vmt *t) BR_MUST_USE;
/* n zeroed elements of the VM's memory, counted; out: where the pointer goes */
br_code br_vm_take(br_mega_vm *vm, size_t n, size_t size, void *out,
                   br_status *st) BR_MUST_USE;

/* ---- the ops ---------------------------------------------------------- */

/* Checks the number of operands and runs c->op. */
br_code br_vm_dispatch(br_vm_call *c) BR_MUST_USE;
#define X(name, code, lo, hi, out, req, doc) \
    br_code br_vmop_##name(br_vm_call *c) BR_MUST_USE;
#include "mega/minst.def"
#undef X

/* Sums of the numbers contract (interp_sum.c): 16 lanes by index mod 16,
 * ascending in each, joined 8-4-2-1; fused multiply-add in the dot product. */
float br_vm_dot(const float *a, const float *b, size_t n);
float br_vm_sum(const float *a, int64_t n);

#endif
