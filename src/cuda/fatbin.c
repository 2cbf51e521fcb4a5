/* fatbin.c - PTX out of what compilers put into programs.
 *
 *   u32 0xba55ed50, u16 1, u16 header bytes, u64 bytes that follow
 *   { u16 kind, u16, u32 header bytes, u64 payload bytes, u32 packed bytes, ...
 *     28 u32 architecture, 40 u64 flags, 56 u64 unpacked bytes } payload ...
 *
 * Of the entries that are PTX the one for the newest architecture is taken.
 * Machine code for NVIDIA's processors is of no use here. An image may also be
 * the PTX itself, a text that ends with a NUL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx.h"
#include "cuda/cuda_int.h"

#include <string.h>
#ifdef BR_HAVE_LZ4
#    include <lz4.h>
#endif
#ifdef BR_HAVE_ZSTD
#    include <zstd.h>
#endif

enum { KIND_PTX = 1, HEAD = 16, ENTRY_MIN = 64, MAX_ENTRIES = 4096 };
enum { PACKED_LZ4 = 0x2000, PACKED_ZSTD = 0x8000 };
#define MAGIC_FATBIN 0xba55ed50u

static uint64_t
word(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    memcpy(&v, p, bytes);
    return v;
}

/* Bytes unpacked, or -1. */
static int64_t
unpack(char *to, size_t room, const uint8_t *p, size_t n, uint64_t flags)
{
#ifdef BR_HAVE_LZ4
    if (flags & PACKED_LZ4)
        return LZ4_decompress_safe((const char *)p, to, (int)n, (int)room);
#endif
#ifdef BR_HAVE_ZSTD
    if (flags & PACKED_ZSTD) {
        size_t got = ZSTD_decompress(to, room, p, n);

        return ZSTD_isError(got) ? -1 : (int64_t)got;
    }
#endif
    (void)to, (void)room, (void)p, (void)n, (void)flags;
    return -1;
}

static bool
have(uint64_t flags)
{
#ifdef BR_HAVE_LZ4
    flags &= ~(uint64_t)PACKED_LZ4;
#endif
#ifdef BR_HAVE_ZSTD
    flags &= ~(uint64_t)PACKED_ZSTD;
#endif
    return !(flags & (PACKED_LZ4 | PACKED_ZSTD));
}

/* The PTX of one entry; n: bytes of its payload. */
static br_code
ptx_of(const uint8_t *e, const uint8_t *data, uint64_t n, br_text *ptx,
       char **owned, br_status *st)
{
    uint64_t packed = word(e + 16, 4), flags = word(e + 40, 8);
    uint64_t room = word(e + 56, 8);
    int64_t got;

    if (!(flags & (PACKED_LZ4 | PACKED_ZSTD))) {
        const void *nul = memchr(data, 0, n);

        *ptx =
            (br_text){(const char *)data,
                      nul ? (size_t)((const uint8_t *)nul - data) : (size_t)n};
        return BR_OK;
    }
    if (!have(flags))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "fat binary: packed with %s, which this build lacks",
                       flags & PACKED_LZ4 ? "LZ4" : "zstd");
    if (packed > n || room > BR_PTX_MAX_BYTES)
        return br_fail(st, BR_E_FORMAT,
                       "fat binary: sizes of a packed entry do not fit");
    *owned = br_try_alloc((size_t)room + 1);
    if (!*owned)
        return br_fail(st, BR_E_OOM, "fat binary: out of memory");
    got = unpack(*owned, (size_t)room, data, (size_t)packed, flags);
    if (got < 0)
        return br_fail(st, BR_E_FORMAT,
                       "fat binary: a packed entry cannot be unpacked");
    *ptx = (br_text){*owned, strnlen(*owned, (size_t)got)};
    return BR_OK;
}

static br_code
entries(const uint8_t *p, uint64_t n, br_text *ptx, char **owned, br_status *st)
{
    const uint8_t *best = NULL;
    uint64_t at = 0, best_sm = 0, best_bytes = 0;
    unsigned count = 0, other = 0;

    while (n - at >= ENTRY_MIN && count++ < MAX_ENTRIES) {
        const uint8_t *e = p + at;
        uint64_t head = word(e + 4, 4), bytes = word(e + 8, 8);

        if (head < ENTRY_MIN || head > n - at || bytes > n - at - head)
            return br_fail(st, BR_E_FORMAT,
                           "fat binary: entry %u runs past its end", count);
        if (word(e, 2) != KIND_PTX) {
            other++;
        } else if (!best || word(e + 28, 4) > best_sm) {
            best = e;
            best_sm = word(e + 28, 4);
            best_bytes = bytes;
        }
        at += head + bytes;
    }
    if (!best)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "fat binary: no PTX in it, only machine code for "
                       "NVIDIA processors (%u entries): compile with -gencode "
                       "arch=compute_80,code=compute_80, and without "
                       "-rdc=true, of which nvcc leaves no PTX",
                       other);
    return ptx_of(best, best + word(best + 4, 4), best_bytes, ptx, owned, st);
}

br_code
br_fatbin_ptx(const void *image, size_t n, br_text *ptx, char **owned,
              br_status *st)
{
    const uint8_t *p = image;
    uint64_t room = n ? n : UINT64_MAX, head, size;

    *owned = NULL;
    if (room >= 4 && word(p, 4) == MAGIC_FATBIN) {
        head = room < HEAD ? 0 : word(p + 6, 2);
        size = head ? word(p + 8, 8) : 0;
        if (head < HEAD || head > room || size > room - head)
            return br_fail(st, BR_E_FORMAT,
                           "fat binary: its header says more than there is");
        return entries(p + head, size, ptx, owned, st);
    }
    if (room >= 4 && memcmp(p, "\177ELF", 4) == 0)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "the image is machine code for NVIDIA processors; only "
                       "PTX can be compiled here");
    *ptx = (br_text){image, n ? strnlen(image, n) : strlen(image)};
    return BR_OK;
}
