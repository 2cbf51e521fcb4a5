/* cuda_upload.c - see cuda_upload.h.
 *
 * A buffer is filled again once the event behind its copy has come. Small pieces
 * share a buffer: it is handed on when it is full, or when a piece ends, and the
 * rest of it is used by the next.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_upload.h"

#include "drv/cpu/cpu_pool.h"

#include <string.h>

enum {
    BUFFER = 16 << 20,
    SLICE = 1 << 19, /* of a thread's turn */
    THREADS = 8 /* one copies 6 to 8 GB/s out of the page cache, eight 35 */
};

struct br_cuda_upload {
    br_cuda *cu;
    br_cpu_pool *pool;
    uint8_t *buffer[2];
    void *there[2]; /* events: its copies are done */
    bool sent[2];
    uint32_t turn; /* the buffer that is being filled, up to at */
    size_t at;
    struct { /* what is being copied into it */
        uint8_t *to;
        const uint8_t *from;
        size_t bytes;
    } piece;
};

br_code
br_cuda_upload_new(br_cuda_upload **out, br_cuda *cu, br_status *st)
{
    br_cuda_upload *u = br_try_calloc(1, sizeof *u);
    const uint32_t n = (uint32_t)BR_MIN(br_cpu_count(), (int)THREADS);
    br_code code = BR_OK;

    *out = NULL;
    if (!u)
        return br_fail(st, BR_E_OOM, "weights: out of memory");
    u->cu = cu;
    code = br_cpu_pool_new(&u->pool, n, st);
    for (int i = 0; code == BR_OK && i < 2; i++) {
        code = BR_CU(cu, st, cuMemAllocHost((void **)&u->buffer[i], BUFFER));
        if (code == BR_OK)
            code = BR_CU(cu, st, cuEventCreate(&u->there[i], 0));
    }
    if (code != BR_OK)
        br_cuda_upload_free(u);
    else
        *out = u;
    return code;
}

static uint32_t
slices(void *ctx, uint32_t phase)
{
    const br_cuda_upload *u = ctx;

    (void)phase;
    return (uint32_t)((u->piece.bytes + SLICE - 1) / SLICE);
}

static void
copy_slice(void *ctx, uint32_t phase, uint32_t i, uint32_t worker)
{
    const br_cuda_upload *u = ctx;
    const size_t at = (size_t)i * SLICE;

    (void)phase, (void)worker;
    memcpy(u->piece.to + at, u->piece.from + at,
           BR_MIN(u->piece.bytes - at, (size_t)SLICE));
}

static void
fill(br_cuda_upload *u, uint8_t *to, const uint8_t *from, size_t bytes)
{
    const br_cpu_job job = {
        .ctx = u, .n_phases = 1, .begin = slices, .tile = copy_slice};

    u->piece.to = to;
    u->piece.from = from;
    u->piece.bytes = bytes;
    if (bytes > SLICE)
        br_cpu_pool_run(u->pool, &job);
    else
        memcpy(to, from, bytes);
}

/* The other buffer, which the device may still be reading. */
static br_code
turn(br_cuda_upload *u, br_status *st)
{
    BR_TRY(BR_CU(u->cu, st, cuEventRecord(u->there[u->turn], u->cu->stream)));
    u->sent[u->turn] = true;
    u->turn ^= 1;
    u->at = 0;
    if (!u->sent[u->turn])
        return BR_OK;
    return br_cuda_wait_event(u->cu, u->there[u->turn], st);
}

br_code
br_cuda_upload_put(br_cuda_upload *u, uint64_t to, const void *from,
                   size_t bytes, br_status *st)
{
    const uint8_t *p = from;

    while (bytes) {
        const size_t n = BR_MIN(bytes, BUFFER - u->at);
        uint8_t *b = u->buffer[u->turn] + u->at;

        fill(u, b, p, n);
        BR_TRY(BR_CU(u->cu, st, cuMemcpyHtoDAsync(to, b, n, u->cu->stream)));
        p += n, to += n, bytes -= n, u->at += n;
        if (u->at == BUFFER)
            BR_TRY(turn(u, st));
    }
    return BR_OK;
}

void
br_cuda_upload_free(br_cuda_upload *u)
{
    if (!u)
        return;
    /* what it says was said, or will be, by who waits for the weights */
    (void)!br_cuda_wait(u->cu, NULL);
    for (int i = 0; i < 2 && !br_cuda_hung(u->cu); i++) {
        if (u->there[i])
            u->cu->cuEventDestroy(u->there[i]);
        if (u->buffer[i])
            u->cu->cuMemFreeHost(u->buffer[i]);
    }
    br_cpu_pool_free(u->pool);
    br_free(u);
}
