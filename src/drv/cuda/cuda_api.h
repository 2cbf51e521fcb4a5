/* cuda_api.h - NVIDIA's driver, found at run time.
 *
 * No CUDA header is read and no CUDA library is linked: libcuda.so.1 is opened
 * when a device is asked for, and where it is not there the answer is
 * BR_E_NO_DEVICE with the reason. The few constants below are the driver's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_API_H
#define BR_CUDA_API_H

#include "base/thread.h"

enum { /* attributes and flags of the driver's interface */
       BR_CU_ATTR_SM_COUNT = 16,
       BR_CU_ATTR_SHARED_OPTIN = 97,
       BR_CU_ATTR_MAJOR = 75,
       BR_CU_ATTR_MINOR = 76,
       BR_CU_ATTR_L2_BYTES = 38,
       BR_CU_FUNC_THREADS = 0, /* most of a block */
       BR_CU_FUNC_LOCAL_BYTES = 3,
       BR_CU_FUNC_REGS = 4,
       BR_CU_FUNC_DYN_SHARED = 8,
       BR_CU_FUNC_CARVEOUT = 9,
       BR_CU_JIT_ERROR_LOG = 5,
       BR_CU_JIT_ERROR_LOG_BYTES = 6,
       BR_CU_CAPTURE_THREAD = 1,
       BR_CU_STREAM_APART = 1, /* does not wait for the legacy stream, nor it */
       BR_CU_NOT_READY = 600,
       BR_CU_LAUNCH_TIMEOUT = 702,
       BR_CU_OOM = 2,
       BR_CU_LAUNCH_CLUSTER = 4, /* attribute: so many blocks together */
       BR_CU_LAUNCH_EARLY = 6,   /* attribute: beside the launch before it */
};

typedef struct br_cuda_attr {
    int id, pad;
    union {
        int on;
        unsigned cluster[3];
        char room[64];
    } value;
} br_cuda_attr;

typedef struct br_cuda_launch {
    unsigned gx, gy, gz, bx, by, bz, shared;
    void *stream;
    br_cuda_attr *attrs;
    unsigned n_attrs;
} br_cuda_launch;

typedef struct br_cuda_piece {
    uint64_t at, bytes;
} br_cuda_piece;

typedef struct br_cuda {
#define F(name, symbol, args) int(*name) args;
#include "drv/cuda/cuda_api.def"
#undef F
    void *lib, *ctx, *stream;
    void *recorder; /* the stream of captures; nothing runs in it */
    void *running;  /* stream, while one takes its place */
    int dev, major, minor, n_sm, shared_optin, driver;
    size_t total_bytes;
    char device_name[128];
    uint32_t held; /* 1 + its place among the devices of this process */
    bool says;     /* when it asks something of it */
    /* Memory of the device that br_cuda_alloc gave and br_cuda_free has not seen; a
     * limit to that, or 0: what the device has. */
    uint64_t used, limit;
    /* Seconds after which what does not end counts as hung; 0: a minute. Then nothing
     * more is asked of the device, by anybody of this process: most calls would wait for
     * it, that which gives its context back among them. */
    uint32_t timeout_s;
    bool hung;
    uint64_t graphs; /* what the driver took for those that were made */
    BR_VEC(br_cuda_piece) pieces;
} br_cuda;

/* Opens device `ordinal`, makes its primary context current on this thread.
 * Several at once share that, each has a stream of its own. NO_DEVICE also
 * where another process of ours has it: two would share its memory and time
 * without knowing. The lock is on the card's place on the bus, because
 * CUDA_VISIBLE_DEVICES numbers cards anew, and ends with the process. */
br_code br_cuda_open(br_cuda *cu, int ordinal, br_status *st) BR_MUST_USE;
void br_cuda_close(br_cuda *cu);
/* Who says each time that it is going to ask something of the device, from now on, or
 * no more. */
void br_cuda_says(br_cuda *cu, bool on);
void br_cuda_say(br_cuda *cu);
/* Has nobody else of this process the device but such as say it? *hands: how often
 * another one has said so than the one before. */
bool br_cuda_alone(const br_cuda *cu, uint64_t *hands);
/* A capture may fail, and so may what breaks it, beside calls that wait for all of the
 * device, as who loads or gives back makes all the time. So true: nobody
 * else does, and who comes or goes waits for br_cuda_captured. */
bool br_cuda_may_capture(const br_cuda *cu) BR_MUST_USE;
void br_cuda_captured(const br_cuda *cu);
/* rc of a driver call to a code; the text names the call and the error. */
br_code br_cuda_check(const br_cuda *cu, int rc, const char *what,
                      br_status *st) BR_MUST_USE;
/* code, or TIMEOUT where a kernel has said in the host's memory that it waited in vain. */
br_code br_cuda_why(const br_cuda *cu, const unsigned *hung, br_code code,
                    br_status *st) BR_MUST_USE;
/* Has it been found so, by this model or another one of the process? */
bool br_cuda_hung(br_cuda *cu);
/* TIMEOUT: the device is hung, or is found to be, as somebody has waited for it so long;
 * and then asked it once more: the process may have been stopped meanwhile. */
br_code br_cuda_overdue(br_cuda *cu, int64_t waited_ns,
                        br_status *st) BR_MUST_USE;
/* Until what is queued has ended; TIMEOUT: it does not. */
br_code br_cuda_wait(br_cuda *cu, br_status *st) BR_MUST_USE;
/* Up to where it was when the event was recorded. */
br_code br_cuda_wait_event(br_cuda *cu, void *event, br_status *st) BR_MUST_USE;
#define BR_CU(cu, st, call) br_cuda_check((cu), (cu)->call, #call, (st))

/* OOM: the device has not so much, or the limit leaves less. */
br_code br_cuda_alloc(br_cuda *cu, uint64_t *p, size_t bytes,
                      br_status *st) BR_MUST_USE;
/* Once what is queued has ended; of a device that hangs nothing is freed. */
void br_cuda_free(br_cuda *cu, uint64_t p);
/* What a model takes of the device's memory, in all. */
typedef struct br_cuda_need {
    uint64_t weights, pages, states, rest;
} br_cuda_need;
/* Is that there, of which `had` is taken by now? *left: what is then free. OOM: no; says
 * what is needed of each, and `more` of it. */
br_code br_cuda_fits(br_cuda *cu, const br_cuda_need *need, uint64_t had,
                     const char *more, uint64_t *left,
                     br_status *st) BR_MUST_USE;
static inline double /* for messages */
br_mb(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}
/* What is launched into cu->stream from here on becomes part of a graph, a new one or
 * `into`; it is the recorder meanwhile. What others ask of the legacy stream, or to have
 * freed, waits for all streams of the context but such as that one: one that was captured
 * would make it fail, and it the capture. */
br_code br_cuda_record(br_cuda *cu, void *into, br_status *st) BR_MUST_USE;
/* Up to here. code: of those launches. *graph: NULL where it is an error; not asked for
 * where there was `into`. */
br_code br_cuda_recorded(br_cuda *cu, br_code code, void **graph,
                         br_status *st) BR_MUST_USE;
/* Copies, and numbers set to one, in the model's own stream: what waits for the context's
 * legacy stream waits for what other models have under way, and for ever where that hangs.
 * All but fill have ended when they return; TIMEOUT as br_cuda_wait. */
br_code br_cuda_put(br_cuda *cu, uint64_t to, const void *from, size_t bytes,
                    br_status *st) BR_MUST_USE;
br_code br_cuda_get(br_cuda *cu, void *to, uint64_t from, size_t bytes,
                    br_status *st) BR_MUST_USE;
br_code br_cuda_fill(br_cuda *cu, uint64_t to, uint32_t with, size_t numbers,
                     br_status *st) BR_MUST_USE;
/* What can be launched of a graph, which is given up; memory that the driver takes
 * meanwhile is counted. */
br_code br_cuda_graph(br_cuda *cu, void **exec, void *graph,
                      br_status *st) BR_MUST_USE;
/* image: PTX text (NUL-terminated) or a cubin. */
/* Of built-in kernels: the cubin (of sm_90a; begins with 0 where the build has none)
 * if this device takes it, else the PTX. */
const void *br_cuda_image(const br_cuda *cu, const char *ptx,
                          const char *cubin);
/* The kernel leaves all it can of a multiprocessor's memory to shared memory: one that
 * wants another share than the one before it waits until that has left. */
br_code br_cuda_all_shared(br_cuda *cu, void *fn, br_status *st) BR_MUST_USE;
br_code br_cuda_module(br_cuda *cu, void **mod, const char *name,
                       const void *image, br_status *st) BR_MUST_USE;

#endif
