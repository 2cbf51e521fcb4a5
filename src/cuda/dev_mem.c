/* dev_mem.c - the device's memory: a range of addresses of this process.
 *
 *   base [ 4096 free | used | 4096 free | used | dead | ... | top ... ] end
 *
 * The range is reserved once, pages are had when touched. Memory is taken from
 * the top; only when that has reached the end are gaps looked for. Between two
 * pieces, and in front of the first, 4096 bytes stay free, so that no access past
 * one's end lands in the next; kernels may touch them, as a GPU's pages go on,
 * too (decisions/0042). What a kernel's malloc gets are many small pieces, 512
 * bytes apart.
 * Freed pieces are marked and thrown out when they are half of all, so that a
 * free costs a search and no move. What the program registers lies elsewhere, in
 * the same sorted list.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#include <string.h>
#include <sys/mman.h>

#define RANGE_AT    0x7e9000000000ull
#define RANGE_BYTES (256ull << 30)
enum { GAP = 4096, HEAP_GAP = 512, ALIGN = 256, PAGE = 4096 };

static struct {
    uint8_t *base;
    uint64_t top, total, used;
    BR_VEC(bc_mem) list; /* by address */
    size_t dead;
} mem;

static bool
ready(void)
{
    uint64_t free_bytes;
    void *p;

    if (mem.base)
        return true;
    p = mmap((void *)RANGE_AT, RANGE_BYTES, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    mem.base = p;
    br_os_memory(&mem.total, &free_bytes);
    if (!mem.total || mem.total > RANGE_BYTES / 2)
        mem.total = RANGE_BYTES / 2;
    return true;
}

/* The first piece that ends after addr. */
static size_t
place_of(uint64_t addr)
{
    size_t lo = 0, hi = mem.list.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const bc_mem *m = &mem.list.at[mid];

        if (m->addr + m->bytes <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void
sweep(void)
{
    size_t n = 0;

    for (size_t k = 0; k < mem.list.n; k++)
        if (!mem.list.at[k].dead)
            mem.list.at[n++] = mem.list.at[k];
    mem.list.n = n;
    mem.dead = 0;
}

static cudaError_t
insert(bc_mem m)
{
    size_t at;

    if (!br_vec_reserve(&mem.list, mem.list.n + 1))
        return cudaErrorMemoryAllocation;
    at = place_of(m.addr);
    memmove(mem.list.at + at + 1, mem.list.at + at,
            (mem.list.n - at) * sizeof m);
    mem.list.at[at] = m;
    mem.list.n++;
    return cudaSuccess;
}

static uint64_t
gap_of(unsigned kind)
{
    return kind == BC_MEM_HEAP ? HEAP_GAP : GAP;
}

static uint64_t
first_place(void)
{
    return (uint64_t)(uintptr_t)mem.base + GAP;
}

/* Where n bytes fit between two pieces of the range; 0: nowhere. */
static uint64_t
gap_for(uint64_t n, uint64_t align)
{
    uint64_t at = first_place(), end = at - GAP + RANGE_BYTES;

    sweep();
    for (size_t k = 0; k <= mem.list.n; k++) {
        const bc_mem *m = k < mem.list.n ? &mem.list.at[k] : NULL;
        uint64_t to = m && m->addr < end ? m->addr : end;

        if (m && m->addr < (uint64_t)(uintptr_t)mem.base)
            continue;
        at = (at + align - 1) & ~(align - 1);
        if (at < to && to - at >= n + GAP)
            return at;
        if (to == end)
            break;
        at = m->addr + m->bytes + gap_of(m->kind);
    }
    return 0;
}

cudaError_t
bc_mem_get(void **p, uint64_t bytes, uint64_t align, bc_kind kind,
           unsigned flags)
{
    bc_mem m = {.bytes = bytes, .kind = (uint8_t)kind, .flags = flags};
    uint64_t end, first;
    cudaError_t e;

    *p = NULL;
    if (!ready() || bytes > mem.total || mem.total - mem.used < bytes)
        return cudaErrorMemoryAllocation;
    align = BR_MAX(align, bytes >= 16 * PAGE ? PAGE : (uint64_t)ALIGN);
    end = (uint64_t)(uintptr_t)mem.base + RANGE_BYTES;
    m.addr = BR_MAX(mem.top, first_place());
    m.addr = (m.addr + align - 1) & ~(align - 1);
    if (end - m.addr < bytes + GAP)
        m.addr = gap_for(bytes, align);
    if (!m.addr)
        return cudaErrorMemoryAllocation;
    first = (m.addr - GAP) & ~(uint64_t)(PAGE - 1);
    if (mprotect((void *)(uintptr_t)first, m.addr + bytes + GAP - first,
                 PROT_READ | PROT_WRITE) != 0)
        return cudaErrorMemoryAllocation;
    e = insert(m);
    if (e != cudaSuccess)
        return e;
    mem.top = BR_MAX(mem.top, m.addr + bytes + gap_of(kind));
    mem.used += bytes;
    *p = (void *)(uintptr_t)m.addr;
    return cudaSuccess;
}

cudaError_t
bc_mem_register(void *p, uint64_t bytes, bc_kind kind, unsigned flags)
{
    bc_mem m = {.addr = (uint64_t)(uintptr_t)p,
                .bytes = bytes,
                .kind = (uint8_t)kind,
                .flags = flags};
    size_t at;

    if (!p || !bytes || m.addr + bytes < m.addr)
        return cudaErrorInvalidValue;
    sweep();
    at = place_of(m.addr);
    if (at < mem.list.n && mem.list.at[at].addr < m.addr + bytes)
        return cudaErrorHostMemoryAlreadyRegistered;
    return insert(m);
}

void
bc_mem_unmapped(uint64_t addr, uint64_t bytes)
{
    for (size_t k = place_of(addr); k < mem.list.n; k++) {
        bc_mem *m = &mem.list.at[k];

        if (m->addr >= addr + bytes)
            return;
        m->dead |= m->kind == BC_MEM_MAPPED;
    }
}

const bc_mem *
bc_mem_find(const void *p)
{
    uint64_t addr = (uint64_t)(uintptr_t)p;
    size_t at = place_of(addr);

    if (at == mem.list.n || mem.list.at[at].addr > addr || mem.list.at[at].dead)
        return NULL;
    return &mem.list.at[at];
}

bool
bc_mem_fits(const void *p, uint64_t n)
{
    uint64_t addr = (uint64_t)(uintptr_t)p;
    uint64_t base = (uint64_t)(uintptr_t)mem.base;
    const bc_mem *m = bc_mem_find(p);

    if (m)
        return n <= m->addr + m->bytes - addr;
    return !mem.base || addr >= base + RANGE_BYTES ||
           (addr < base && (n <= base - addr));
}

cudaError_t
bc_mem_put(void *p, bc_kind kind)
{
    uint64_t addr = (uint64_t)(uintptr_t)p, end, first;
    size_t at = place_of(addr);
    bc_mem *m = at < mem.list.n ? &mem.list.at[at] : NULL;
    bool same = m && (m->kind == kind ||
                      (kind == BC_MEM_DEVICE && m->kind == BC_MEM_MANAGED));

    if (!m || m->dead || m->addr != addr || !same)
        return cudaErrorInvalidValue;
    m->dead = true;
    bc_hints_forget(addr, m->bytes);
    if (m->kind != BC_MEM_REGISTERED) {
        mem.used -= m->bytes;
        first = (addr + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        end = (addr + m->bytes) & ~(uint64_t)(PAGE - 1);
        if (end > first)
            madvise((void *)(uintptr_t)first, end - first, MADV_DONTNEED);
    }
    if (++mem.dead > 64 && mem.dead > mem.list.n / 2)
        sweep();
    return cudaSuccess;
}

uint64_t
bc_mem_total(void)
{
    return ready() ? mem.total : 0;
}

uint64_t
bc_mem_used(void)
{
    return mem.used;
}

uint64_t
bc_mem_flagged(unsigned flags)
{
    uint64_t n = 0;

    for (size_t k = 0; k < mem.list.n; k++)
        if (!mem.list.at[k].dead && mem.list.at[k].kind == BC_MEM_DEVICE &&
            mem.list.at[k].flags == flags)
            n += mem.list.at[k].bytes;
    return n;
}

void
bc_mem_gaps(br_klaunch *l)
{
    l->gaps_from = (uint64_t)(uintptr_t)mem.base;
    l->gaps_to = l->gaps_from + RANGE_BYTES;
    l->gap = GAP;
}

br_kregion *
bc_mem_regions(size_t *n)
{
    static const char *const names[] = {
        "device memory", "managed memory",      "pinned memory",
        "pinned memory", "a module's variable", "memory of malloc",
        "an array",      "mapped memory"};
    br_kregion *r = br_try_alloc((mem.list.n + 1) * sizeof *r);

    *n = 0;
    for (size_t k = 0; r && k < mem.list.n; k++) {
        const bc_mem *m = &mem.list.at[k];

        if (!m->dead)
            r[(*n)++] = (br_kregion){.addr = m->addr,
                                     .bytes = m->bytes,
                                     .host = (void *)(uintptr_t)m->addr,
                                     .name = names[m->kind]};
    }
    return r;
}

/* What modules and the program itself put there stays. */
void
bc_mem_reset(void)
{
    mem.used = 0;
    bc_hints_forget(0, UINT64_MAX);
    for (size_t k = 0; k < mem.list.n; k++) {
        bc_mem *m = &mem.list.at[k];

        m->dead |= m->kind != BC_MEM_VARIABLE && m->kind != BC_MEM_REGISTERED;
        if (!m->dead && m->kind == BC_MEM_VARIABLE)
            mem.used += m->bytes;
    }
    sweep();
    if (mem.list.n)
        return;
    br_vec_fini(&mem.list);
    mem.top = 0;
    if (mem.base)
        madvise(mem.base, RANGE_BYTES, MADV_DONTNEED);
}
