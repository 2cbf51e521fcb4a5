/* cuda_int.h - the CUDA runtime inside: one device, which is this processor.
 *
 *   API call -> op -> a stream's queue -> the stream's thread -> exec, memcpy
 *
 * Device memory is host memory at its own address. All state is in bc_rt under
 * one lock; ops run without it. An op starts when the ops are done that it has
 * to come after: those before it in its stream, what the null stream's rules
 * add, and events. Kernels run one at a time.
 *
 * The runtime API (rt_*.c) and the driver API (drv_*.c) are thin: both call
 * bc_ functions, which return a cudaError_t; most codes of the driver are the
 * same numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_INT_H
#define BR_CUDA_INT_H

#include "base/thread.h"
#include "cg/kcache.h"
#include "cuda/cuda_runtime_api.h"

enum {
    BC_MAX_SHARED = 48 << 10,    /* of a block, unless it opts in */
    BC_SHARED_OPTIN = 227 << 10, /* on this processor: bc_shared_optin */
    BC_MAX_THREADS = 1024,
    BC_SM_THREADS = 2048,
    BC_SM_BLOCKS = 32,
    BC_PRINTF_BYTES = 1 << 20,
    BC_HEAP_BYTES = 8 << 20
};

/* ---- memory (dev_mem.c) ------------------------------------------------- */

typedef enum bc_kind {
    BC_MEM_DEVICE,
    BC_MEM_MANAGED,
    BC_MEM_HOST,       /* pinned, ours */
    BC_MEM_REGISTERED, /* pinned, the program's */
    BC_MEM_VARIABLE,   /* of a module */
    BC_MEM_HEAP,       /* of a kernel's malloc */
    BC_MEM_ARRAY,      /* an array, a texture or a surface object */
    BC_MEM_MAPPED      /* by the program, at addresses it reserved */
} bc_kind;

typedef struct bc_mem {
    uint64_t addr, bytes;
    uint8_t kind;
    bool dead;
    unsigned flags;
} bc_mem;

/* All with the lock held. */
cudaError_t bc_mem_get(void **p, uint64_t bytes, uint64_t align, bc_kind kind,
                       unsigned flags);
/* InvalidValue unless p is the start of memory of that kind. */
cudaError_t bc_mem_put(void *p, bc_kind kind);
cudaError_t bc_mem_register(void *p, uint64_t bytes, bc_kind kind,
                            unsigned flags);
/* Forgets what is mapped there. */
void bc_mem_unmapped(uint64_t addr, uint64_t bytes);
const bc_mem *bc_mem_find(const void *p); /* that holds the byte at p */
/* Whether all n bytes from p lie in one piece of memory, or outside of all. */
bool bc_mem_fits(const void *p, uint64_t n);
uint64_t bc_mem_total(void);
uint64_t bc_mem_used(void);
uint64_t bc_mem_flagged(unsigned flags); /* of device memory with them */
br_kregion *bc_mem_regions(size_t *n); /* a copy to br_free; NULL: none left */
/* What lies behind pieces of the range is let through. */
void bc_mem_gaps(br_klaunch *l);
void bc_mem_reset(void);

/* ---- hints (cu_hints.c) -------------------------------------------------- */

typedef enum bc_hint_kind {
    BC_HINT_READ_MOSTLY,
    BC_HINT_PREFERRED, /* a device, cudaCpuDeviceId, none */
    BC_HINT_DEVICE_READS,
    BC_HINT_HOST_READS,
    BC_HINT_FETCHED,
    BC_HINTS
} bc_hint_kind;
void bc_hint(const void *p, size_t n, bc_hint_kind kind, int value);
void bc_hints_forget(uint64_t addr, uint64_t bytes); /* the memory goes */

/* ---- streams (cu_stream.c) ---------------------------------------------- */

typedef struct bc_op bc_op;
typedef struct bc_wait {
    struct CUstream_st *s;
    uint64_t seq;
} bc_wait;

/* One thing for a stream to do. run gets its payload, which lies behind. */
struct bc_op {
    bc_op *next;
    uint64_t seq;
    cudaError_t (*run)(void *payload);
    void (*drop)(void *payload); /* NULL: nothing to give back */
    bool always;                 /* also after an error that stays */
    BR_VEC(bc_wait) waits;
    cudaGraphNodeType type; /* for graphs */
};
/* A zeroed payload of so many bytes; NULL: out of memory. */
void *bc_op_new(size_t payload, cudaError_t (*run)(void *));
bc_op *bc_op_of(void *payload);
void bc_op_free(void *payload);

/* Whether nothing is in front of it. Of what was just issued, before the lock is let go. */
bool bc_is_next(const struct CUstream_st *s, const void *payload);

struct CUstream_st {
    struct CUstream_st *next;
    bool used, blocking;
    unsigned flags;
    int priority;
    uint64_t id; /* another for each that was made */
    uint64_t issued, done;
    bc_op *head, **tail;
    br_thread thread;
    bool started, busy;           /* busy: an op of its own is at work */
    struct CUgraph_st *capture;   /* NULL: not capturing */
    BR_VEC(cudaGraphNode_t) deps; /* what is captured next comes after them */
    cudaAccessPolicyWindow window;
};
struct CUevent_st {
    struct CUevent_st *next;
    bool used, recorded, timing;
    unsigned flags;
    bc_wait at;      /* when this is done, the event has happened */
    uint64_t record; /* the last one issued; older ones do not set the time */
    int64_t ns;
    struct CUgraph_st *graph;     /* recorded while a stream was capturing */
    BR_VEC(cudaGraphNode_t) deps; /* what had been captured there */
};

/* The null stream is this thread's own during the call. (rt_per_thread.c) */
extern _Thread_local bool bc_own_null;
/* What a handle means to this thread; NULL: it is none. */
struct CUstream_st *bc_stream_of(cudaStream_t s);
/* Takes the payload, whatever happens. With the lock held. */
cudaError_t bc_issue(struct CUstream_st *s, void *payload);
/* The same of what nobody asked for, so that no capture has to do with it. */
cudaError_t bc_queue(struct CUstream_st *s, void *payload);
/* Waits and tells what is wrong with the device; the lock is let go of. */
cudaError_t bc_stream_sync(cudaStream_t s);
cudaError_t bc_wait_all(void);
cudaError_t bc_device_sync(void); /* the same as a program asks for it */
cudaError_t bc_wait_seq(struct CUstream_st *s, uint64_t seq);
void bc_streams_end(void);
bool bc_done(const bc_wait *w);
bool bc_wait_for(bc_op *o, struct CUstream_st *s, uint64_t seq); /* first */
cudaError_t bc_stream_new(cudaStream_t *out, unsigned flags, int priority);
cudaError_t bc_stream_end(cudaStream_t s);
cudaError_t bc_stream_query(cudaStream_t s);
cudaError_t bc_stream_wait_event(cudaStream_t s, cudaEvent_t e);
cudaError_t bc_host_fn(cudaStream_t s, cudaHostFn_t fn, void *user);
/* A payload, and of one what it calls; NULL: a library's own. */
void *bc_host_op(cudaHostFn_t fn, void *user);
const cudaHostNodeParams *bc_host_params(const void *payload);
cudaError_t bc_callback(cudaStream_t s, cudaStreamCallback_t fn, void *user);
struct CUevent_st *bc_event_of(cudaEvent_t e);
cudaError_t bc_event_new(cudaEvent_t *out, unsigned flags);
cudaError_t bc_event_end(cudaEvent_t e);
cudaError_t bc_event_record(cudaEvent_t e, cudaStream_t s);
cudaError_t bc_event_sync(cudaEvent_t e);
cudaError_t bc_event_query(cudaEvent_t e);
cudaError_t bc_event_elapsed(float *ms, cudaEvent_t a, cudaEvent_t b);

/* ---- copies (cu_copy.c): checked, then issued --------------------------- */

typedef struct bc_rect { /* planes of rows; a plain copy is one row */
    void *dst;
    const void *src; /* NULL: fill */
    uint64_t width, height, depth;
    uint64_t dpitch, spitch, dslice, sslice;
    uint32_t value;
    unsigned element; /* bytes of value: 1 2 4 */
} bc_rect;
cudaError_t bc_copy(const bc_rect *r, cudaMemcpyKind kind, cudaStream_t s,
                    bool async);
cudaError_t bc_copy_line(void *dst, const void *src, size_t n,
                         cudaMemcpyKind kind, cudaStream_t s, bool async);
cudaError_t bc_fill(void *p, unsigned value, unsigned element, size_t n,
                    cudaStream_t s, bool async);
/* A payload. as: how the program said it, or NULL. */
void *bc_rect_op(const bc_rect *r, const cudaMemcpy3DParms *as);
cudaError_t bc_rect_3d(const cudaMemcpy3DParms *p, bc_rect *out);
cudaError_t bc_rect_check(const bc_rect *r, cudaMemcpyKind kind);
/* What such a payload does, as a program says it. */
cudaError_t bc_copy_params(const void *payload, cudaMemcpy3DParms *out);
void bc_fill_params(const void *payload, cudaMemsetParams *out);

/* ---- arrays (rt_texture.c) ---------------------------------------------- */

typedef struct bc_box { /* where in an array; x in bytes */
    size_t x, y, z;
} bc_box;
/* The place of r's width, height and depth from there, and its strides. */
cudaError_t bc_array_box(const bc_box *b, cudaArray_const_t a, const bc_rect *r,
                         void **at, uint64_t *pitch, uint64_t *slice);
unsigned bc_array_texel(cudaArray_const_t a); /* bytes; 0: it is none */
/* Into a reference's variable, when kernels are done with what was there. */
cudaError_t bc_texture_bind(void *at, const cudaResourceDesc *r,
                            const cudaTextureDesc *how);

/* ---- modules (cu_module.c) ---------------------------------------------- */

typedef struct bc_module {
    struct bc_module *next;
    const void *image; /* PTX, fatbin */
    br_kir *m;         /* NULL: not loaded yet */
    br_kimage *at;
    const br_ktarget *on;        /* from the first launch on; code: for it */
    br_kcode *code;              /* NULL: interpreted */
    char key[BR_KCACHE_KEY];     /* in the cache; "": none */
    cudaError_t error;           /* of loading, said once */
    bool used, registered, mine; /* mine: image is a copy */
    size_t image_n;              /* its bytes, 0: it says itself */
    BR_VEC(struct CUfunc_st *) fns;
    BR_VEC(struct bc_var) vars;
    BR_VEC(const void *) parts; /* images that are linked, instead of one */
    size_t works;               /* payloads that are launches of its kernels */
    bool gone;                  /* nobody has it but those */
} bc_module;
typedef struct bc_parts { /* of launches of before CUDA 4 (drv_first.c) */
    uint32_t block[3];
    unsigned shared, bytes;
    uint8_t params[4096];
} bc_parts;
struct CUfunc_st {
    bc_module *mod;
    const void *host; /* NULL: of the driver API */
    const char *name;
    uint32_t fn; /* when found */
    bool found;
    int max_dynamic, carveout;
    bool large_clusters; /* of over 8 blocks */
    bool interpreted;    /* the target has no code for it */
    bc_parts *parts;     /* NULL: never asked for */
};
typedef struct bc_var {
    const void *host;
    const char *name;
    size_t bytes;
    void **managed; /* where its address goes; NULL: none */
} bc_var;

bc_module *bc_module_new(const void *image);
cudaError_t bc_module_load(bc_module *mod);
/* The same; st says what it is that cannot be loaded. */
cudaError_t bc_module_read(bc_module *mod, br_status *st);
/* Its kernels run no more; graphs may have some, and then what they are stays. */
void bc_module_free(bc_module *mod);
void bc_module_drop(bc_module *mod); /* one payload less */
/* Of the driver's texture references those of a module that goes. (drv_texture.c) */
void bc_refs_forget(const bc_module *mod);
/* Of a host symbol or handle; with the module loaded. */
cudaError_t bc_kernel_of(const void *host, struct CUfunc_st **out);
cudaError_t bc_kernel_ready(struct CUfunc_st *f);
cudaError_t bc_function(bc_module *mod, const char *name,
                        struct CUfunc_st **out);
cudaError_t bc_variable(bc_module *mod, const char *name, void **p, size_t *n);
cudaError_t bc_symbol(const void *host, void **p, size_t *n);
const br_kfn *bc_kfn(const struct CUfunc_st *f);

/* ---- fat binaries (fatbin.c) -------------------------------------------- */

/* The PTX of the newest architecture in an image: itself, or unpacked. *owned
 * is to br_free. n: bytes of the image that are there; 0: it says itself. */
br_code br_fatbin_ptx(const void *image, size_t n, br_text *ptx, char **owned,
                      br_status *st) BR_MUST_USE;

/* ---- launches (cu_launch.c) --------------------------------------------- */

typedef struct bc_launch {
    struct CUfunc_st *f;
    uint32_t grid[3], block[3];
    size_t shared;
    bool cooperative;
    uint32_t cluster[3]; /* 0: as the kernel says */
    void **args;         /* one pointer for each parameter, or */
    const void *packed;  /* the parameters themselves */
    size_t packed_bytes;
} bc_launch;
const br_kcache *bc_cache(void);
/* What an attribute asks for. Hints say how and when; what else is not done here is
 * an error, and what nobody knows may be such. */
cudaError_t bc_launch_attr(bc_launch *l, const cudaLaunchAttribute *a);
cudaError_t bc_launch_op(const bc_launch *l, void **payload);
/* What such a payload does; its arguments stay in it. */
void bc_kernel_params(void *payload, cudaKernelNodeParams *out);
const char *bc_kernel_name(const void *payload);
bool bc_kernel_gone(const void *payload); /* with its module */
bool bc_is_cooperative(const void *payload);
cudaError_t bc_launch_on(const bc_launch *l, cudaStream_t s);
/* What a block may have at most, where kernels run. */
size_t bc_shared_optin(void);
cudaError_t bc_attributes(struct CUfunc_st *f, cudaFuncAttributes *a);
cudaError_t bc_set_attribute(struct CUfunc_st *f, cudaFuncAttribute attr,
                             int value);
cudaError_t bc_occupancy(struct CUfunc_st *f, int block, size_t shared,
                         int *blocks);

/* ---- device, errors (cu_device.c) --------------------------------------- */

typedef struct bc_state {
    br_mutex lock;
    pthread_cond_t moved; /* an op is done or came */
    br_mutex exec;        /* a kernel runs */
    cudaError_t sticky;
    bool per_thread; /* the null stream is the thread's own */
    bool quit;       /* threads of streams end */
    uint64_t resets;
    struct CUstream_st *streams, null;
    struct CUevent_st *events;
    bc_module *modules;
    br_str printed;              /* by kernels, not yet on stdout */
    struct br_host_block *block; /* of printf and malloc on AMD processors */
    uint64_t printf_bytes, heap_bytes, heap_used, stack_bytes;
    unsigned flags;
} bc_state;
extern bc_state bc_rt;

static inline void
bc_lock(void)
{
    br_mutex_lock(&bc_rt.lock);
}
static inline void
bc_unlock(void)
{
    br_mutex_unlock(&bc_rt.lock);
}

/* The runtime's own: notes the thread's last error, and that it was called. */
cudaError_t bc_end(cudaError_t e);
extern _Thread_local bool bc_touched;
/* The body of a function of the runtime: one expression under the lock. */
#define BC_API(expr)          \
    do {                      \
        cudaError_t bc_e_;    \
                              \
        bc_lock();            \
        bc_e_ = (expr);       \
        bc_unlock();          \
        return bc_end(bc_e_); \
    } while (0)
cudaError_t bc_last(bool clear);
/* What the thread's calls of the runtime left: that there were any, the last error. */
typedef struct bc_traces {
    bool touched;
    cudaError_t last;
} bc_traces;
bc_traces bc_traces_of(void);
void bc_traces_set(bc_traces t);
void bc_flush_printf(void);
void bc_print(void *arg, const char *text, size_t n);
const cudaDeviceProp *bc_device(void);
cudaError_t bc_attr(int *value, int attr);
cudaError_t bc_limit_set(cudaLimit limit, size_t value);
cudaError_t bc_limit_get(size_t *value, cudaLimit limit);
cudaError_t bc_reset(void);
void bc_say(const char *fmt, ...) BR_PRINTF(1, 2); /* a line on stderr */

#endif
