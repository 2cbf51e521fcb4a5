/* test_cuda_upload.c - weights on their way through two pinned buffers, on the
 * emulated device, which makes a copy from pinned memory as late as it may.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/rng.h"
#include "drv/cuda/cuda_upload.h"

#include <stdlib.h>
#include <string.h>

/* Pieces around the size of a slice, of a buffer, of both: the file's bytes
 * arrive, each at its place, though the source is changed at once. */
TEST_WITHIN(cuda_weights_arrive_through_two_buffers, 60)
{
    static const size_t sizes[] = {1,
                                   0,
                                   4096,
                                   (1 << 19) + 1,
                                   (16 << 20) - 5,
                                   16 << 20,
                                   (33 << 20) + 3,
                                   7,
                                   (16 << 20) + 1,
                                   1 << 19};
    uint64_t to, at = 0, total = 0;
    br_cuda_upload *u;
    uint8_t *want, *piece, *got;
    br_status st = {0};
    br_cuda cu;
    br_rng r;

    for (size_t i = 0; i < BR_COUNT(sizes); i++)
        total += sizes[i];
    want = t_keep(malloc(total + 8));
    got = t_keep(malloc(total));
    piece = t_keep(malloc(total));
    br_rng_init(&r, 11, 0);
    for (uint64_t i = 0; i < total; i += 8) {
        const uint64_t v = br_rng_u64(&r);
        memcpy(want + i, &v, 8);
    }
    t_emulate_cuda();
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cuda_alloc(&cu, &to, total, &st), &st);
    t_ok(br_cuda_upload_new(&u, &cu, &st), &st);
    for (size_t i = 0; i < BR_COUNT(sizes); i++) {
        memcpy(piece, want + at, sizes[i]);
        t_ok(br_cuda_upload_put(u, to + at, piece, sizes[i], &st), &st);
        memset(piece, 0x5a, sizes[i]);
        at += sizes[i];
    }
    br_cuda_upload_free(u);
    t_ok(BR_CU(&cu, &st, cuMemcpyDtoH(got, to, total)), &st);
    ck_assert_mem_eq(got, want, total);
    /* what the driver refuses is said: no room for the last byte */
    t_ok(br_cuda_upload_new(&u, &cu, &st), &st);
    ck_assert_int_eq(br_cuda_upload_put(u, to + total, piece, 1, &st), BR_E_IO);
    ck_assert_ptr_nonnull(strstr(st.msg, "cuMemcpyHtoDAsync"));
    br_cuda_upload_free(u);
    br_cuda_free(&cu, to);
    br_cuda_close(&cu);
    t_emulate_end();
}
