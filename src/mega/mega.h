/* mega.h - the task program: tasks on workers, ordered by counters.
 *
 *   JSON --load--> program --check--> verdict
 *                     |   \--simulate, interp, cost, show
 *   graph + config --lower--> program --pages--> program
 *
 * Data model and rules: docs/mega.md. A program is built once and then read
 * by many; nothing here keeps global state. Ids in the lists are the file's:
 * a program is well formed only if buffers, counters and tasks are numbered
 * 0..n-1 in order, so that an id is an index (br_mega_check insists).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_H
#define BR_MEGA_H

#include "base/base.h"
#include "base/json.h"

/* ---- codes ------------------------------------------------------------ */

typedef enum br_mega_op {
#define X(name, code, lo, hi, out, req, doc) BR_MOP_##name = code,
#include "mega/minst.def"
#undef X
/* From 32 up: tiles of the nodes of a transformer graph (mega/step.h). */
#define X(name, code, in, out, attrs, doc) BR_MOP_STEP_##name = 32 + (code),
#include "ir/ops.def"
#undef X
    BR_MOP_STEP = 32,
    BR_MOP_LIMIT = 128
} br_mega_op;

/* Index of a known parameter: bit of br_mega_task.param_mask, json.tag - 1. */
typedef enum br_mega_param {
#define P(name, type) BR_MP_##name,
#include "mega/param.def"
#undef P
    BR_MP_COUNT
} br_mega_param;

typedef enum br_mega_dtype {
    BR_MDT_F32,
    BR_MDT_F16,
    BR_MDT_BF16,
    BR_MDT_F8E4M3,
    BR_MDT_F8E5M2,
    BR_MDT_I32,
    BR_MDT_I8,
    BR_MDT_I4,
    BR_MDT_U8,
    BR_MDT_BOOL,
    BR_MDT_COUNT
} br_mega_dtype;
enum { BR_MDT_BLOCK = 32 }; /* from here on 32 + br_qtype, of those not above */

typedef enum br_mega_space {
    BR_MSP_HBM,
    BR_MSP_GLOBAL_SCRATCH,
    BR_MSP_SMEM,
    BR_MSP_REGISTER,
    BR_MSP_COUNT
} br_mega_space;

typedef enum br_mega_kind {
    BR_MBK_WEIGHT,
    BR_MBK_ACTIVATION,
    BR_MBK_KV_CACHE,
    BR_MBK_IO_INPUT,
    BR_MBK_IO_OUTPUT,
    BR_MBK_CONST,
    BR_MBK_COUNT
} br_mega_kind;

enum {
    BR_MEGA_MAX_INPUTS = 8,
    BR_MEGA_MAX_OUTPUTS = 4,
    BR_MEGA_MAX_WAITS = 8,
    BR_MEGA_MAX_RANK = 4,
    /* Limits on a file; larger is BR_E_LIMIT with the number in the text. */
    BR_MEGA_MAX_TASKS = 4 << 20,
    BR_MEGA_MAX_BUFFERS = 4 << 20,
    BR_MEGA_MAX_COUNTERS = 4 << 20,
    BR_MEGA_MAX_PAGES = 4 << 20, /* and entries of buffer_to_page */
    BR_MEGA_MAX_FILE_BYTES = 1 << 30,
    /* A loaded program takes at most this many bytes for each of the file,
     * plus 64 KiB: the worst case is a list of tiny misfits. */
    BR_MEGA_MAX_GROWTH = 64,
    /* The sound check holds at most EACH bytes for each task, buffer, counter,
     * operand and wait, and what it keeps of hard cases: FIXED. */
    BR_MEGA_CHECK_EACH = 128,
    BR_MEGA_CHECK_FIXED = 192 << 20,
};
#define BR_MEGA_SM_NONE      INT64_MIN /* "sm": null */
#define BR_MEGA_FLAG_PARTIAL 2         /* flags bit 1: writes acc|m|l */

typedef struct br_mega_opinfo { /* a row of minst.def; name NULL: no op */
    const char *name, *doc;
    int8_t min_in, max_in, n_out; /* max_in -1: variadic; n_out -1: the
                                     graph's node says */
    uint8_t n_req;
    uint8_t req[6];    /* br_mega_param */
    uint32_t req_mask; /* bit per br_mega_param */
} br_mega_opinfo;

const br_mega_opinfo *br_mega_opinfo_of(int op); /* never NULL */
const char *br_mega_op_name(int op);
const char *br_mega_dtype_name(int dt);
const char *br_mega_space_name(int sp);
const char *br_mega_kind_name(int k);
const char *br_mega_param_name(int p);
char br_mega_param_type(int p);    /* 'I' 'F' 'R' 'E' */
int br_mega_op_find(br_text name); /* -1: none; likewise below */
int br_mega_dtype_find(br_text name);
int br_mega_space_find(br_text name);
int br_mega_kind_find(br_text name);
int br_mega_param_find(br_text name);
int br_mega_dtype_bits(int dt);        /* of a block format: rounded up */
int br_mega_dtype_of_qtype(int qtype); /* -1: none */
/* ceil(count * bits / 8); -1 when it overflows or count < 0 */
int64_t br_mega_dtype_bytes(int dt, int64_t count);

/* ---- the program ------------------------------------------------------ */

typedef struct br_mega_buffer {
    int64_t id;
    const char *name;
    const char *source; /* NULL: null */
    const int64_t *shape;
    uint32_t name_n, source_n;
    uint32_t rank; /* as in the file; may exceed BR_MEGA_MAX_RANK */
    uint8_t kind, dtype, space;
} br_mega_buffer;

typedef struct br_mega_counter {
    int64_t id, init;
    const char *note;
    uint32_t note_n;
} br_mega_counter;

typedef struct br_mega_wait {
    int64_t counter, threshold;
} br_mega_wait;

typedef struct br_mega_task {
    int64_t id;
    const int64_t *in, *out; /* buffer ids */
    const br_mega_wait *waits;
    br_json *params; /* an object, never NULL; each member's tag is its
                        br_mega_param + 1, or 0 when unknown */
    const char *label;
    int64_t out_counter;
    int64_t sm; /* BR_MEGA_SM_NONE: unassigned */
    int64_t est_bytes, est_flops;
    uint32_t n_in, n_out, n_waits;
    uint32_t label_n;
    uint32_t param_mask; /* known parameters present */
    uint8_t op;
} br_mega_task;

typedef struct br_mega_page {
    int64_t id, nbytes, live_start, live_end;
    uint8_t space;
} br_mega_page;

typedef struct br_mega_bind { /* an entry of buffer_to_page */
    int64_t buffer, page;
} br_mega_bind;

/* The reference is dynamically typed: it accepts "sm": 1.5 or "name": 7 and
 * writes them back. Such a value is kept here, and the typed field holds a
 * default (0, "", none). The sound check rejects every misfit; the compatible
 * one judges it as the reference would; the writer writes it back. */
typedef enum br_mega_field {
    BR_MF_BUF_ID,
    BR_MF_BUF_NAME,
    BR_MF_BUF_SHAPE, /* sub: dimension */
    BR_MF_BUF_SOURCE,
    BR_MF_CTR_ID,
    BR_MF_CTR_INIT,
    BR_MF_CTR_NOTE,
    BR_MF_TASK_ID,
    BR_MF_TASK_IN,
    BR_MF_TASK_OUT, /* sub: position */
    BR_MF_TASK_OUT_COUNTER,
    BR_MF_TASK_WAIT_CTR,
    BR_MF_TASK_WAIT_THR,
    BR_MF_TASK_PARAMS,
    BR_MF_TASK_SM,
    BR_MF_TASK_EST_BYTES,
    BR_MF_TASK_EST_FLOPS,
    BR_MF_TASK_LABEL,
    BR_MF_PAGE_ID,
    BR_MF_PAGE_NBYTES,
    BR_MF_PAGE_START,
    BR_MF_PAGE_END,
    BR_MF_BIND_BUFFER, /* index: entry of buffer_to_page */
    BR_MF_BIND_PAGE,
    BR_MF_COUNT
} br_mega_field;

typedef struct br_mega_misfit {
    br_mega_field field;
    uint32_t index, sub; /* which buffer, counter, task...; which element */
    const br_json *value;
} br_mega_misfit;

/* Target and configuration keep their values as JSON nodes, because 896 and
 * 896.0 are different bytes. NULL node: the field's default. */
typedef enum br_mega_target_field {
#define T(name, def) BR_MT_##name,
#include "mega/target_field.def"
#undef T
    BR_MT_COUNT
} br_mega_target_field;

typedef enum br_mega_config_field {
    BR_MC_tiling,
    BR_MC_fusion_grouping,
    BR_MC_sm_assignment,
    BR_MC_pipelining_depth,
    BR_MC_page_allocation,
    BR_MC_threads_per_block,
    BR_MC_smem_bytes_per_block,
    BR_MC_COUNT
} br_mega_config_field;

typedef struct br_mega_prog {
    br_arena arena; /* owns all below */
    const char *ir_version, *abi_version;
    uint32_t ir_version_n, abi_version_n; /* lengths: a NUL may be inside */
    br_json *meta;                        /* never NULL; may be no object */
    const br_json *const *target;         /* [BR_MT_COUNT], or NULL: null */
    const br_json *const *config;         /* [BR_MC_COUNT], or NULL: null */
    br_mega_buffer *buffers;
    br_mega_counter *counters;
    br_mega_task *tasks;
    br_mega_page *pages;
    br_mega_bind *binds;     /* buffer_to_page in file order */
    br_mega_misfit *misfits; /* sorted by (field, index, sub) */
    size_t n_buffers, n_counters, n_tasks, n_pages, n_binds, n_misfits;
    bool has_pages;      /* "pages" is not null */
    struct br_ir *graph; /* of meta.extensions (step.h), or NULL */
    uint32_t rows;       /* of a step at most, where there is a graph */
} br_mega_prog;

/* ---- load and save (load.c, save.c) ------------------------------------ */

/* Errors name the place ("tasks[3].waits[0]: missing 'threshold'"). */
br_code br_mega_load(br_mega_prog **out, const char *text, size_t n,
                     br_status *st) BR_MUST_USE;
br_code br_mega_load_file(br_mega_prog **out, const char *path,
                          br_status *st) BR_MUST_USE;
void br_mega_free(br_mega_prog *p);
/* Byte-exact with the reference's to_json(indent=2); no newline at the end. */
br_code br_mega_save(const br_mega_prog *p, br_str *out,
                     br_status *st) BR_MUST_USE;
/* An empty program to build into (build.c): versions set, arena ready. */
br_mega_prog *br_mega_new(size_t arena_limit);

/* Typed access to a task's scalars; false when absent or of another type. */
bool br_mega_get_i(const br_mega_task *t, br_mega_param p, int64_t *out);
bool br_mega_get_f(const br_mega_task *t, br_mega_param p, double *out);
int64_t br_mega_get_i_or(const br_mega_task *t, br_mega_param p, int64_t def);
/* -1 when a dimension is negative or the product overflows. */
int64_t br_mega_numel(const br_mega_buffer *b);
int64_t br_mega_nbytes(const br_mega_buffer *b);
int64_t br_mega_weight_bytes(const br_mega_prog *p);
static inline bool
br_mega_kind_readonly(int kind)
{
    return kind == BR_MBK_WEIGHT || kind == BR_MBK_CONST ||
           kind == BR_MBK_IO_INPUT;
}

/* ---- check (check.c and check_*.c) ------------------------------------- */

typedef enum br_mega_mode {
    BR_MEGA_SOUND,      /* ours: rejects everything that can go wrong */
    BR_MEGA_COMPAT_0_2, /* the reference's verdict, holes included */
} br_mega_mode;

typedef struct br_mega_report {
    BR_VEC(char *) errors; /* each owned by the report; a NUL is C0 80 */
    BR_VEC(char *) warnings;
    bool ok;
    bool acyclic, sm_assigned;
    int64_t n_edges;
    int64_t weight_bytes;
    double weight_mb;   /* two decimals, as the reference rounds */
    size_t more_errors; /* errors beyond the kept maximum, counted */
} br_mega_report;

/* Never aborts on a malformed program. Returns a code only for OOM. */
br_code br_mega_check(const br_mega_prog *p, br_mega_mode mode,
                      br_mega_report *r, br_status *st) BR_MUST_USE;
/* REJECTED with the first error of the sound check. */
br_code br_mega_accept(const br_mega_prog *p, br_status *st) BR_MUST_USE;
void br_mega_report_fini(br_mega_report *r);
/* {"ok":..,"errors":[..],"warnings":[..],"stats":{..}} */
void br_mega_report_json(const br_mega_prog *p, const br_mega_report *r,
                         br_str *out);

/* ---- the dependency graph (graph.c) ------------------------------------ */

/* Task a precedes task b when b waits on a's counter. Kept in compressed form
 * through the counters: N producers and M waiters cost N + M, not N * M. */
typedef struct br_mega_graph {
    uint32_t n_tasks, n_counters;
    const uint32_t *prod_off, *prod;   /* counter -> producing tasks, asc */
    const uint32_t *wait_off, *waiter; /* counter -> waiting tasks, asc, no
                                          duplicates */
    const uint32_t *topo; /* Kahn, FIFO seeded by ascending id; NULL: cyclic */
    const uint32_t *rank; /* place of a task in topo */
} br_mega_graph;

/* Needs ids in range where they are used; out-of-range waits are ignored. */
br_code br_mega_graph_build(br_mega_graph *g, const br_mega_prog *p,
                            br_arena *a, br_status *st) BR_MUST_USE;
int64_t br_mega_graph_edges(const br_mega_graph *g);

/* ---- simulate (simulate.c) --------------------------------------------- */

typedef struct br_mega_sim {
    BR_VEC(uint32_t) order;
    BR_VEC(uint32_t) stuck;
    BR_VEC(char *) violations; /* sorted, unique */
} br_mega_sim;

/* Sweeps in list order until nothing moves, as the reference. */
br_code br_mega_simulate(const br_mega_prog *p, br_mega_sim *s,
                         br_status *st) BR_MUST_USE;
br_code br_mega_simulate_adversarial(const br_mega_prog *p, int seeds,
                                     br_mega_sim *s, br_status *st) BR_MUST_USE;
void br_mega_sim_fini(br_mega_sim *s);

#endif
