/* host.cu - functions that CUDA's headers declare and the system has: printf,
 * malloc, free, assert. A back-end with no host to call in the midst of a
 * kernel takes them from here: calls of f become calls of brass_f.
 *
 *     make ptx    makes host.ptx of it
 *
 * printf    a record at the end of the ring, or -1 when that is full; the host
 *           reads them when the kernel is done. Texts of %s are copied, for
 *           nobody knows what stands there by then.
 * malloc    blocks of 16 << class bytes with a head of 16: a list of free ones
 *           for each class, then what was never given out. Lists are heads with
 *           a tag that each change raises, so that one that was taken and came
 *           back is not mistaken for one that stayed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host_block.h"

#define DEVICE extern "C" __attribute__((device))

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

DEVICE br_host_block brass_host;

enum { GIVEN = 0x67697600, FREE = 0x66726500 }; /* and the class */

struct head {
    u32 state, next, pad[2];
};

static __attribute__((device)) u64
get64(u64 *p)
{
    return __nvvm_atom_add_gen_ll((long long *)p, 0);
}

static __attribute__((device)) bool
swap64(u64 *p, u64 was, u64 is)
{
    return (u64)__nvvm_atom_cas_gen_ll((long long *)p, (long long)was,
                                       (long long)is) == was;
}

/* ---- printf --------------------------------------------------------------- */

/* The characters of a set, a bit each: of 0 to 63, of 64 to 127. */
static constexpr u64
bits(const char *set, char half)
{
    u64 b = 0;

    for (; *set; set++)
        b |= *set >> 6 == half ? 1ull << (*set & 63) : 0;
    return b;
}

static __attribute__((device)) bool
one_of(char c, u64 low, u64 high)
{
    return c > 0 && (c < 64 ? low : high) >> (c & 63) & 1;
}

#define AMONG(c, set)                                     \
    ([](char x) {                                         \
        constexpr u64 low = bits(set, 0), up = bits(set, 1); \
        return one_of(x, low, up);                        \
    }(c))

/* From behind a % to behind its conversion. '*' takes 4 bytes each. */
static __attribute__((device)) const char *
conversion(const char *f, char *kind, u32 *stars, bool *wide)
{
    *kind = 0;
    *stars = 0;
    *wide = false;
    for (; *f; f++) {
        if (*f == '*')
            ++*stars;
        else if (AMONG(*f, "ljzt"))
            *wide = true;
        else if (!AMONG(*f, "h-+ #0123456789."))
            break;
    }
    if (!*f)
        return f;
    *kind = *f;
    *wide |= AMONG(*f, "fFeEgGaAsp");
    return f + 1;
}

/* The arguments' bytes; the texts' bytes to *texts, and to `to` if there is. */
static __attribute__((device)) u32
walk(const char *f, const char *args, u32 *texts, char *to)
{
    u32 at = 0, n = 0;

    while (*f) {
        char kind;
        u32 stars;
        bool wide;

        if (*f++ != '%')
            continue;
        if (*f == '%') {
            f++;
            continue;
        }
        f = conversion(f, &kind, &stars, &wide);
        at += 4 * stars;
        if (!AMONG(kind, "diouxXcfFeEgGaAsp"))
            continue;
        at = wide ? (at + 7) & ~7u : at;
        if (kind == 's')
            for (const char *s = *(const char *const *)(args + at);; s++) {
                if (to)
                    to[n] = *s;
                n++;
                if (!*s)
                    break;
            }
        at += wide ? 8 : 4;
    }
    *texts = n;
    return at;
}

DEVICE int
brass_vprintf(const char *f, const char *args)
{
    u32 texts, n = walk(f, args, &texts, 0), bytes;
    u64 at;

    n = (n + 7) & ~7u;
    bytes = (u32)(sizeof(br_host_print) + n + texts + BR_HOST_GRAIN - 1) &
            ~(u32)(BR_HOST_GRAIN - 1);
    do {
        at = get64(&brass_host.used);
        if (bytes > BR_HOST_RING || at > BR_HOST_RING - bytes) {
            __nvvm_atom_add_gen_ll((long long *)&brass_host.used,
                                   BR_HOST_RING);
            return -1;
        }
    } while (!swap64(&brass_host.used, at, at + bytes));

    br_host_print *r = (br_host_print *)(brass_host.ring + at);
    char *to = (char *)(r + 1);

    r->arg_bytes = n;
    r->format = (u64)f;
    for (u32 k = 0; k < n; k += 4)
        *(u32 *)(to + k) = *(const u32 *)(args + k);
    walk(f, args, &texts, to + n);
    r->bytes = bytes;
    return 0;
}

/* ---- the heap ------------------------------------------------------------- */

static __attribute__((device)) head *
block_at(u32 place)
{
    return (head *)(brass_host.heap + (u64)place * BR_HOST_GRAIN);
}

static __attribute__((device)) head *
taken(u32 c)
{
    u64 *list = &brass_host.free[c], h;

    while (u32 place = (u32)(h = get64(list))) {
        head *b = block_at(place);
        u32 next = *(volatile u32 *)&b->next;

        if (swap64(list, h, ((h >> 32) + 1) << 32 | next))
            return b;
    }
    return 0;
}

static __attribute__((device)) head *
fresh(u32 c)
{
    u64 bytes = (u64)BR_HOST_GRAIN << c, at;

    do {
        at = get64(&brass_host.top);
        if (at > BR_HOST_HEAP - bytes)
            return 0;
    } while (!swap64(&brass_host.top, at, at + bytes));
    return (head *)(brass_host.heap + at);
}

DEVICE void *
brass_malloc(u64 n)
{
    u32 c = 1;
    head *b;

    if (!n || n > BR_HOST_HEAP / 2)
        return 0;
    while (((u64)BR_HOST_GRAIN << c) < n + sizeof(head))
        c++;
    b = taken(c);
    if (!b)
        b = fresh(c);
    if (!b)
        return 0;
    b->state = GIVEN + c;
    return b + 1;
}

static __attribute__((device, noreturn)) void
fault(u32 why, u64 what, u64 file, u32 line)
{
    if (__nvvm_atom_cas_gen_i((int *)&brass_host.fault, 0, (int)why) == 0) {
        brass_host.what = what;
        brass_host.file = file;
        brass_host.line = line;
    }
    __nvvm_membar_gl();
    __builtin_trap();
}

DEVICE void
brass_free(void *p)
{
    head *b = (head *)p - 1;
    u64 at = (u64)b - brass_host.heap, h, *list;
    u32 c, state;

    if (!p)
        return;
    if (at % BR_HOST_GRAIN || at < BR_HOST_GRAIN || at >= BR_HOST_HEAP)
        fault(BR_HOST_BAD_FREE, (u64)p, 0, 0);
    state = b->state;
    c = state - GIVEN;
    if (c >= BR_HOST_CLASSES ||
        __nvvm_atom_cas_gen_i((int *)&b->state, (int)state, (int)(FREE + c)) !=
            (int)state)
        fault(BR_HOST_BAD_FREE, (u64)p, 0, 0);
    list = &brass_host.free[c];
    do {
        h = get64(list);
        b->next = (u32)h;
        __nvvm_membar_gl();
    } while (!swap64(list, h, ((h >> 32) + 1) << 32 | (at / BR_HOST_GRAIN)));
}

DEVICE void
brass___assertfail(const char *what, const char *file, u32 line,
                   const char *function, u64 size)
{
    (void)function;
    (void)size;
    fault(BR_HOST_ASSERT, (u64)what, (u64)file, line);
}
