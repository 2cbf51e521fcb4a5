/* drv_map.c - the driver API: addresses, memory, and which lies where.
 *
 *   reserved [ mapped, accessible | mapped, not yet | free           ]
 *                 |                     |
 *               block                 block     a memfd each
 *
 * What neighbours and is accessible is one piece of device memory to all else
 * (dev_mem.c), so that copies may cross from one block into the next. A block
 * goes when its handle and its last mapping have gone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* As GPUs have it; programs round to what is asked. */
#define GRAIN      (2ull << 20)
#define MAX_BLOCKS 65536u

typedef struct block {
    struct block *next;
    uint64_t bytes;
    int fd;
    unsigned handles, maps;
    CUmemAllocationProp prop;
} block;

typedef struct mapping {
    uint64_t addr, bytes;
    block *of;
    CUmemAccess_flags access;
} mapping;

typedef struct range {
    uint64_t addr, bytes;
} range;

static struct {
    BR_VEC(range) ranges;
    BR_VEC(mapping) maps; /* by address */
    block *blocks;
    unsigned n_blocks;
} vm; /* under the lock */

static void *
at(uint64_t addr)
{
    return (void *)(uintptr_t)addr;
}

static bool
inside(uint64_t addr, uint64_t bytes, const range *r)
{
    return addr >= r->addr && bytes <= r->bytes &&
           addr - r->addr <= r->bytes - bytes;
}

static bool
reserved(uint64_t addr, uint64_t bytes)
{
    for (size_t k = 0; k < vm.ranges.n; k++)
        if (inside(addr, bytes, &vm.ranges.at[k]))
            return true;
    return false;
}

/* The first mapping that ends after addr. */
static size_t
map_at(uint64_t addr)
{
    size_t k = 0;

    while (k < vm.maps.n && vm.maps.at[k].addr + vm.maps.at[k].bytes <= addr)
        k++;
    return k;
}

static block *
block_of(CUmemGenericAllocationHandle h)
{
    block *b = vm.blocks;

    while (b && (uintptr_t)b != h)
        b = b->next;
    return b && b->handles ? b : NULL;
}

static void
let_go(block *b)
{
    block **p = &vm.blocks;

    if (b->handles || b->maps)
        return;
    while (*p != b)
        p = &(*p)->next;
    *p = b->next;
    vm.n_blocks--;
    close(b->fd);
    br_free(b);
}

/* The driver asks for no context here: memory may outlive all. */
#define VM_API(expr)                         \
    do {                                     \
        int n_;                              \
        CUresult e_ = cuDeviceGetCount(&n_); \
                                             \
        if (e_ != CUDA_SUCCESS)              \
            return e_;                       \
        bc_lock();                           \
        e_ = bd_error(expr);                 \
        bc_unlock();                         \
        return e_;                           \
    } while (0)

/* ---- addresses ----------------------------------------------------------- */

static cudaError_t
reserve(CUdeviceptr *p, uint64_t bytes, uint64_t align, uint64_t flags)
{
    uint64_t base, first;
    void *m;

    if (!p || !bytes || bytes % GRAIN || (align & (align - 1)) || flags ||
        bytes > 1ull << 46 || align > 1ull << 40)
        return cudaErrorInvalidValue;
    align = BR_MAX(align, GRAIN);
    if (!br_vec_reserve(&vm.ranges, vm.ranges.n + 1))
        return cudaErrorMemoryAllocation;
    m = mmap(NULL, bytes + align, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    base = (uint64_t)(uintptr_t)m;
    first = (base + align - 1) & ~(align - 1);
    if (first > base)
        munmap(m, first - base);
    munmap(at(first + bytes), base + align - first);
    vm.ranges.at[vm.ranges.n++] = (range){first, bytes};
    *p = first;
    return cudaSuccess;
}

/* The address is a wish, as it is on a GPU. */
CUresult
cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t align,
                    CUdeviceptr addr, unsigned long long flags)
{
    (void)addr;
    VM_API(reserve(p, bytes, align, flags));
}

static cudaError_t
address_free(uint64_t addr, uint64_t bytes)
{
    size_t m = map_at(addr);

    for (size_t k = 0; k < vm.ranges.n; k++) {
        range *r = &vm.ranges.at[k];

        if (r->addr != addr || r->bytes != bytes)
            continue;
        if (m < vm.maps.n && vm.maps.at[m].addr < addr + bytes)
            return cudaErrorInvalidValue; /* still mapped */
        munmap(at(addr), bytes);
        *r = vm.ranges.at[--vm.ranges.n];
        if (!vm.ranges.n)
            br_vec_fini(&vm.ranges);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

CUresult
cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
    VM_API(address_free(p, bytes));
}

/* ---- memory -------------------------------------------------------------- */

static bool
prop_ok(const CUmemAllocationProp *p)
{
    return p && p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           p->location.id == 0;
}

CUresult
cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                              CUmemAllocationGranularity_flags which)
{
    if (!bytes || !prop_ok(prop) ||
        (unsigned)which > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRAIN;
    return CUDA_SUCCESS;
}

/* Takes the descriptor, whatever happens. */
static cudaError_t
block_new(CUmemGenericAllocationHandle *out, int fd, uint64_t bytes,
          const CUmemAllocationProp *prop)
{
    block *b = vm.n_blocks < MAX_BLOCKS ? br_try_calloc(1, sizeof *b) : NULL;

    if (!b) {
        close(fd);
        return cudaErrorMemoryAllocation;
    }
    *b = (block){vm.blocks, bytes, fd, 1, 0, *prop};
    vm.blocks = b;
    vm.n_blocks++;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)b;
    return cudaSuccess;
}

static cudaError_t
create(CUmemGenericAllocationHandle *out, uint64_t bytes,
       const CUmemAllocationProp *prop, uint64_t flags)
{
    uint64_t total = bc_mem_total();
    int fd;

    if (!out || !bytes || bytes % GRAIN || !prop_ok(prop) || flags)
        return cudaErrorInvalidValue;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return cudaErrorNotSupported;
    for (const block *b = vm.blocks; b; b = b->next)
        total -= BR_MIN(total, b->bytes);
    if (bytes > total)
        return cudaErrorMemoryAllocation;
    fd = memfd_create("brass", MFD_CLOEXEC);
    if (fd < 0)
        return cudaErrorMemoryAllocation;
    if (ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return cudaErrorMemoryAllocation;
    }
    return block_new(out, fd, bytes, prop);
}

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
            const CUmemAllocationProp *prop, unsigned long long flags)
{
    VM_API(create(handle, bytes, prop, flags));
}

static cudaError_t
release(CUmemGenericAllocationHandle h)
{
    block *b = block_of(h);

    if (!b)
        return cudaErrorInvalidValue;
    b->handles--;
    let_go(b);
    return cudaSuccess;
}

CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
    VM_API(release(handle));
}

static cudaError_t
retain(CUmemGenericAllocationHandle *out, uint64_t addr)
{
    size_t k = map_at(addr);
    block *b;

    if (!out || k == vm.maps.n || vm.maps.at[k].addr > addr)
        return cudaErrorInvalidValue;
    b = vm.maps.at[k].of;
    b->handles++;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)b;
    return cudaSuccess;
}

CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    VM_API(retain(handle, (uint64_t)(uintptr_t)addr));
}

static cudaError_t
properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle h)
{
    const block *b = block_of(h);

    if (!prop || !b)
        return cudaErrorInvalidValue;
    *prop = b->prop;
    prop->allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
    return cudaSuccess;
}

CUresult
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                       CUmemGenericAllocationHandle handle)
{
    VM_API(properties(prop, handle));
}

/* ---- between processes --------------------------------------------------- */

static cudaError_t export(int *fd, CUmemGenericAllocationHandle h,
                          CUmemAllocationHandleType type)
{
    const block *b = block_of(h);

    if (!fd || !b || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(b->prop.requestedHandleTypes & type))
        return cudaErrorInvalidValue;
    *fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
    return *fd < 0 ? cudaErrorOperatingSystem : cudaSuccess;
}

CUresult
cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type,
                             unsigned long long flags)
{
    VM_API(flags ? cudaErrorInvalidValue : export(shared, handle, type));
}

/* The descriptor stays the program's. */
static cudaError_t
import(CUmemGenericAllocationHandle *out, int fd,
       CUmemAllocationHandleType type)
{
    static const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct stat s;
    int mine;

    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return cudaErrorInvalidValue;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size <= 0 ||
        (uint64_t)s.st_size % GRAIN)
        return cudaErrorInvalidValue;
    mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return mine < 0 ? cudaErrorOperatingSystem
                    : block_new(out, mine, (uint64_t)s.st_size, &prop);
}

CUresult
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                               void *shared, CUmemAllocationHandleType type)
{
    VM_API(import(handle, (int)(intptr_t)shared, type));
}

/* ---- mappings ------------------------------------------------------------ */

static cudaError_t
map(uint64_t addr, uint64_t bytes, uint64_t offset,
    CUmemGenericAllocationHandle h, uint64_t flags)
{
    block *b = block_of(h);
    size_t k = map_at(addr);

    if (!b || !bytes || (addr | bytes | offset) % GRAIN || flags ||
        offset > b->bytes || bytes > b->bytes - offset ||
        !reserved(addr, bytes))
        return cudaErrorInvalidValue;
    if (k < vm.maps.n && vm.maps.at[k].addr < addr + bytes)
        return cudaErrorInvalidValue;
    if (!br_vec_reserve(&vm.maps, vm.maps.n + 1))
        return cudaErrorMemoryAllocation;
    if (mmap(at(addr), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, b->fd,
             (off_t)offset) == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    for (size_t j = vm.maps.n; j > k; j--)
        vm.maps.at[j] = vm.maps.at[j - 1];
    vm.maps.at[k] = (mapping){addr, bytes, b, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    vm.maps.n++;
    b->maps++;
    return cudaSuccess;
}

CUresult
cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    VM_API(map(p, bytes, offset, handle, flags));
}

/* Tells the device's memory what can be reached now. */
static cudaError_t
tell(void)
{
    cudaError_t e = cudaSuccess;

    for (size_t k = 0; k < vm.ranges.n; k++)
        bc_mem_unmapped(vm.ranges.at[k].addr, vm.ranges.at[k].bytes);
    for (size_t k = 0, n; k < vm.maps.n && e == cudaSuccess; k = n) {
        uint64_t from = vm.maps.at[k].addr, to = from;

        for (n = k;
             n < vm.maps.n && vm.maps.at[n].addr == to && vm.maps.at[n].access;
             n++)
            to += vm.maps.at[n].bytes;
        if (n == k)
            n++;
        else
            e = bc_mem_register(at(from), to - from, BC_MEM_MAPPED, 0);
    }
    return e;
}

/* Whether mappings cover the range, none of them in part. */
static bool
covered(uint64_t addr, uint64_t bytes)
{
    uint64_t end = addr + bytes;
    size_t k = map_at(addr);

    for (; bytes && end > addr && k < vm.maps.n && vm.maps.at[k].addr == addr;
         k++) {
        addr += vm.maps.at[k].bytes;
        if (addr == end)
            return true;
        if (addr > end)
            return false;
    }
    return false;
}

static cudaError_t
unmap(uint64_t addr, uint64_t bytes)
{
    size_t k = map_at(addr), n = k;
    cudaError_t e = bc_wait_all();

    if (e != cudaSuccess)
        return e;
    if (!covered(addr, bytes))
        return cudaErrorInvalidValue;
    if (mmap(at(addr), bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    for (; n < vm.maps.n && vm.maps.at[n].addr < addr + bytes; n++) {
        vm.maps.at[n].of->maps--;
        let_go(vm.maps.at[n].of);
    }
    for (; n < vm.maps.n; n++, k++)
        vm.maps.at[k] = vm.maps.at[n];
    vm.maps.n = k;
    if (!k)
        br_vec_fini(&vm.maps);
    return tell();
}

CUresult
cuMemUnmap(CUdeviceptr p, size_t bytes)
{
    VM_API(unmap(p, bytes));
}

static cudaError_t
set_access(uint64_t addr, uint64_t bytes, const CUmemAccessDesc *d, size_t n)
{
    cudaError_t e = bc_wait_all();
    int prot;

    if (e != cudaSuccess)
        return e;
    if (!d || !n || !covered(addr, bytes))
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++)
        if (d[k].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            d[k].location.id != 0 ||
            (unsigned)d[k].flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
            d[k].flags == 2)
            return cudaErrorInvalidValue;
    /* A kernel's access is checked for where, not for what. */
    if (d[n - 1].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return cudaErrorNotSupported;
    prot = d[n - 1].flags ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mprotect(at(addr), bytes, prot) != 0)
        return cudaErrorMemoryAllocation;
    for (size_t k = map_at(addr);
         k < vm.maps.n && vm.maps.at[k].addr < addr + bytes; k++)
        vm.maps.at[k].access = d[n - 1].flags;
    return tell();
}

CUresult
cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc,
               size_t n)
{
    VM_API(set_access(p, bytes, desc, n));
}

static cudaError_t
get_access(unsigned long long *flags, const CUmemLocation *l, uint64_t addr)
{
    size_t k = map_at(addr);

    if (!flags || !l || l->type != CU_MEM_LOCATION_TYPE_DEVICE || l->id ||
        k == vm.maps.n || vm.maps.at[k].addr > addr)
        return cudaErrorInvalidValue;
    *flags = vm.maps.at[k].access;
    return cudaSuccess;
}

CUresult
cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
               CUdeviceptr p)
{
    VM_API(get_access(flags, location, p));
}
