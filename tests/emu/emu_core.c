/* emu_core.c - libcuda.so.1 for a machine without a GPU, for tests.
 *
 * The driver calls of src/drv/cuda/cuda_api.def over host memory; a launch runs
 * every thread as a fiber, round robin, until all have returned: on the caller's
 * thread, or, if it is cooperative, on one of its own while the caller goes on, as
 * a kernel that stays asks the host what to do. Such a launch has all its blocks at
 * once, any other one block after another. So does a graph with a loop, which goes
 * round until a kernel says that it is over. A device is lost, once, when a launch finds
 * the file BR_EMU_LOST: the number in it is what all calls say until nobody has the
 * context any more. One that finds BR_EMU_HANG never ends, if its kernel's name begins with
 * what that file says, one of all blocks at once even in its midst, and a call that
 * would wait for it aborts; one of blocks that are there at once and finds BR_EMU_DROP
 * lacks the last of them. Whoever gives the context up has given all memory back, or the process
 * ends. Seven multiprocessors of an sm_90, or BR_EMU_SM, BR_EMU_MAJOR; a launch in
 * which nobody can go on is reported and ends with "launch failed". BR_EMU_UNEVEN, a
 * number: some warps are slower than others, which others by the number.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "emu_core.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Stacks lie no power of two apart: lines that are written at each turn would be of one
 * set of the caches. */
enum { STACK = (64 << 10) + 17 * 64, LAUNCH_FAILED = 719 };

struct emu_fiber *emu_me;
static void *home;
static const char *kernel;
static const void *kernel_found;
static void **kernel_params;
static uint64_t constants; /* the kernel's constant block */

/* Saves what a call preserves on the stack, swaps stacks, restores. */
void emu_swap(void **from, void *to);
__asm__(".text\n.globl emu_swap\n.type emu_swap,@function\nemu_swap:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

/* The threads of a launch; they take turns, each going on with the next one that may, the
 * last with `run`. */
static struct emu_fiber *fibers, *fibers_end;

static void change_block(struct emu_block *b);

static int
may_go_on(const struct emu_fiber *f)
{
    return !f->done && !(f->wait && *f->wait == f->old);
}

/* Warps that are slow now, of a device that is uneven: a third of them, others every few
 * rounds. */
static u32 uneven, rounds;

static int
is_slow(const struct emu_fiber *f)
{
    enum { ROUNDS = 48 };
    u32 h = uneven + rounds / ROUNDS * 0x9e3779b9u;

    if (uneven == 0)
        return 0;
    h = (h ^ (f->bid * 64 + f->tid / 32)) * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0xc2b2ae35u;
    return (h ^ h >> 13) % 3 == 0;
}

void
emu_yield(void)
{
    struct emu_fiber *me = emu_me, *f = me + 1;

    while (f < fibers_end && (!may_go_on(f) || is_slow(f)))
        f++;
    if (f == fibers_end) {
        emu_swap(&me->sp, home);
        return;
    }
    emu_me = f;
    change_block(f->block);
    emu_swap(&me->sp, f->sp);
}

void
emu_arrive(struct emu_bar *b, u32 n)
{
    const u32 gen = b->gen;

    if (++b->count == n) {
        b->count = 0;
        b->gen++;
        return;
    }
    emu_me->wait = &b->gen;
    emu_me->old = gen;
    while (b->gen == gen)
        emu_yield();
    emu_me->wait = NULL;
}

void
emu_pass(struct emu_bar *b, u32 n)
{
    if (++b->count < n)
        return;
    b->count = 0;
    b->gen++;
}

/* Threads of the cluster that have not arrived, nor returned; whoever is the
 * last lets all go on. */
static u32 cluster_left, cluster_here;
static struct emu_bar cluster_bar;

static void
cluster_settle(void)
{
    if (cluster_here < cluster_left || cluster_here == 0)
        return;
    cluster_here = 0;
    cluster_bar.gen++;
}

void
emu_cluster_arrive(void)
{
    cluster_here++;
    cluster_settle();
}

static size_t n_left; /* threads that have not returned */

static void
fiber_main(void)
{
    emu_call(kernel_found, kernel_params);
    cluster_left--;
    cluster_settle();
    emu_me->done = 1;
    n_left--;
    emu_yield();
    abort();
}

static void
fiber_start(struct emu_fiber *f, unsigned char *stack)
{
    void **sp = (void **)(void *)(stack + STACK - 64);

    *--sp = NULL; /* the frame above, 16-byte aligned as after a call */
    *--sp = (void *)(uintptr_t)fiber_main;
    sp -= 6;
    memset(sp, 0, 6 * sizeof *sp);
    f->sp = sp;
}

/* What kernels declare __shared__ is one place for all blocks: a block's own
 * numbers are there while its threads run. */
extern unsigned char __start_emu_shared[], __stop_emu_shared[];
static struct emu_block *there;

static void
change_block(struct emu_block *b)
{
    const size_t n = (size_t)(__stop_emu_shared - __start_emu_shared);

    if (b == there)
        return;
    if (there)
        memcpy(there->own, __start_emu_shared, n);
    memcpy(__start_emu_shared, b->own, n);
    there = b;
}

/* A thread has trapped: the launch ends. */
static int trapped;

void
emu_trap(void)
{
    trapped = 1;
    emu_swap(&emu_me->sp, home);
    abort();
}

static int hung;         /* what runs never ends */
__thread int emu_beside; /* a thread that runs launches, not the caller's */

int
emu_hung(void)
{
    return __atomic_load_n(&hung, __ATOMIC_ACQUIRE);
}

/* The files that are looked for, as the environment named them when the device was asked
 * for last: a launch on a thread of its own may not read what the caller changes. */
enum { HANG, LOST, DROP, N_FILES };
static char files[N_FILES][512];

static void
note_files(void)
{
    static const char *const names[] = {"BR_EMU_HANG", "BR_EMU_LOST",
                                        "BR_EMU_DROP"};

    for (int i = 0; i < N_FILES; i++) {
        const char *file = getenv(names[i]);

        if (strcmp(files[i], file ? file : "") != 0)
            snprintf(files[i], sizeof files[i], "%s", file ? file : "");
    }
}

/* Does the kernel that is launched, or runs, hang from here on? */
static void
look_for_hang(const char *fn)
{
    const char *file = files[HANG];
    char name[64] = "";
    FILE *f = *file && !emu_hung() ? fopen(file, "r") : NULL;

    if (!f)
        return;
    if (!fgets(name, sizeof name, f))
        name[0] = 0;
    fclose(f);
    if (strncmp(fn, name, strlen(name)) != 0)
        return;
    unlink(file);
    __atomic_store_n(&hung, 1, __ATOMIC_RELEASE);
}

/* On a thread of its own a launch that hangs is there for ever. */
static void
hang_here(void)
{
    while (emu_beside && emu_hung())
        pause();
}

/* Until all are done; 1: nobody could go on. A fiber that polls always can, so
 * its own limit on polls ends it. */
static int
run(struct emu_fiber *f, size_t n)
{
    enum { ROUNDS = 256 }; /* between two looks */
    int could;

    fibers = f;
    fibers_end = f + n;
    uneven = (u32)emu_from_env("BR_EMU_UNEVEN", 0);
    n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += !f[i].done;
    for (; n_left; rounds++) {
        if (emu_beside && rounds % ROUNDS == 0)
            look_for_hang(kernel);
        hang_here();
        could = 0;
        for (emu_me = f; emu_me < fibers_end; emu_me++)
            if (may_go_on(emu_me) && (could = 1, !is_slow(emu_me)))
                break;
        if (!could)
            return 1;
        if (emu_me == fibers_end)
            continue; /* until others are slow */
        change_block(emu_me->block);
        emu_swap(&home, emu_me->sp);
        if (trapped)
            return 1;
    }
    return 0;
}

/* Is there the file? It is looked at once. */
static int
asked_for(const char *file)
{
    return *file && unlink(file) == 0;
}

static int
launch(const struct shape *s, u32 first, u32 n_blocks)
{
    static unsigned char *stacks;
    static size_t n_stacks;
    size_t n = (size_t)n_blocks * s->threads;
    struct emu_fiber *f = calloc(n, sizeof *f);
    struct emu_block *b = calloc(n_blocks, sizeof *b);
    int rc;

    if (n > n_stacks) {
        if (stacks)
            munmap(stacks, n_stacks * STACK);
        stacks = mmap(NULL, n * STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        n_stacks = n;
    }
    there = NULL;
    for (u32 i = 0; i < n_blocks; i++)
        b[i].own = calloc((size_t)(__stop_emu_shared - __start_emu_shared), 1);
    for (u32 i = 0; i < n_blocks; i++)
        if (s->shared)
            b[i].shared = aligned_alloc(1024, (s->shared + 1023) / 1024 * 1024);
    for (size_t i = 0; i < n; i++) {
        const u32 at = first + (u32)(i / s->threads);
        f[i].block = &b[i / s->threads];
        f[i].cluster = b;
        f[i].cluster_size = n_blocks;
        f[i].cluster_bar = &cluster_bar;
        f[i].tid = (u32)(i % s->threads);
        f[i].bid = at % s->gx;
        f[i].bid_y = at / s->gx;
        f[i].block_dim = s->threads;
        f[i].grid_dim = s->gx;
        fiber_start(&f[i], stacks + i * STACK);
    }
    if (n_blocks > 1 && !s->cluster && asked_for(files[DROP]))
        for (size_t i = n - s->threads; i < n; i++)
            f[i].done = 1;
    cluster_left = (u32)n;
    cluster_here = 0;
    trapped = 0;
    rc = run(f, n);
    if (rc)
        fprintf(stderr, "emu: %s: %s\n", kernel,
                trapped ? "a trap" : "all threads wait");
    for (u32 i = 0; i < n_blocks; i++) {
        free(b[i].shared);
        free(b[i].own);
    }
    free(b);
    free(f);
    return rc ? LAUNCH_FAILED : 0;
}

/* ---- the driver --------------------------------------------------------- */

static pthread_mutex_t one;
static pthread_once_t one_made = PTHREAD_ONCE_INIT;

static void
make_one(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&one, &a);
}
void
emu_take(void)
{
    pthread_once(&one_made, make_one);
    pthread_mutex_lock(&one);
}
void
emu_give(int *unused)
{
    IGNORE(unused);
    pthread_mutex_unlock(&one);
}

static __thread void *current; /* context; a thread begins without */

int
emu_no_context(void)
{
    return current ? 0 : 201;
}

E(cuInit)(unsigned f)
{
    ONE_AT_A_TIME;
    note_files();
    return IGNORE(f), 0;
}
E(cuDriverGetVersion)(int *v)
{
    return *v = 12000, 0;
}
E(cuGetErrorName)(int rc, const char **t)
{
    return IGNORE(rc), *t = "EMU", 0;
}
E(cuGetErrorString)(int rc, const char **t)
{
    return *t = rc == LAUNCH_FAILED ? "launch failed"
                : rc == 1           ? "invalid argument"
                                    : "unsupported",
           0;
}
E(cuDeviceGetCount)(int *n)
{
    return *n = 1, 0;
}
E(cuDeviceGet)(int *d, int i)
{
    return IGNORE(i), *d = 0, 0;
}
E(cuDeviceGetName)(char *s, int n, int d)
{
    return IGNORE(d), snprintf(s, (size_t)n, "emulated device"), 0;
}
E(cuDeviceGetPCIBusId)(char *s, int n, int d)
{
    return IGNORE(d), snprintf(s, (size_t)n, "emulated-%d", (int)getppid()), 0;
}
/* Memory of the host that a copy is made of as late as it may be. */
enum { PINNED = 32 };
static struct pinned {
    const char *p;
    size_t n;
} pinned[PINNED];

static int
is_pinned(const void *p)
{
    for (int i = 0; i < PINNED; i++)
        if (pinned[i].p && (const char *)p >= pinned[i].p &&
            (const char *)p < pinned[i].p + pinned[i].n)
            return 1;
    return 0;
}

E(cuDeviceTotalMem_v2)(size_t *n, int d)
{
    return IGNORE(d), *n = 4ull << 30, 0;
}
int emu_lost;
static int n_contexts;

static void
look_for_loss(void)
{
    const char *name = files[LOST];
    FILE *f = *name && !emu_lost ? fopen(name, "r") : NULL;

    if (!f)
        return;
    if (fscanf(f, "%d", &emu_lost) ==
        1) /* it may be there and not yet written */
        unlink(name);
    fclose(f);
}
void
emu_look_for_loss(const char *fn)
{
    look_for_hang(fn);
    look_for_loss();
}
E(cuDevicePrimaryCtxRetain)(void **c, int d)
{
    ONE_AT_A_TIME;
    n_contexts++;
    return IGNORE(d), *c = &home, 0;
}
static void check_held(void);
static unsigned n_asked; /* for memory, since somebody has the device */

E(cuDevicePrimaryCtxRelease_v2)(int d)
{
    ONE_AT_A_TIME;
    if (--n_contexts == 0) {
        emu_make_all();
        check_held();
        emu_begin_anew();
        n_asked = 0;
    }
    return IGNORE(d), 0;
}
E(cuCtxSetCurrent)(void *c)
{
    return current = c, 0;
}
E(cuCtxSynchronize)(void)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    if (no)
        return no;
    emu_make_all();
    return emu_rc();
}
E(cuMemGetInfo_v2)(size_t *f, size_t *t)
{
    ONE_AT_A_TIME;
    *t = emu_from_env("BR_EMU_MEMORY", 4ull << 30); /* bytes */
    return *f = *t - emu_graph_bytes(), 0;
}
/* Every allocation, so that a copy out of bounds is the error that a device
 * gives. Behind each one is what no kernel may write: looked at when it is given
 * back. */
enum { BEHIND = 4096 };
static struct {
    uint64_t at;
    size_t n;
} held[4096];

static int
inside(uint64_t p, size_t n)
{
    for (size_t i = 0; i < 4096; i++)
        if (held[i].at && p >= held[i].at && p - held[i].at <= held[i].n &&
            n <= held[i].n - (p - held[i].at))
            return 1;
    return 0;
}

static void
look_behind(size_t i)
{
    const unsigned char *p = (void *)(uintptr_t)held[i].at;

    for (size_t k = 0; k < BEHIND; k++)
        if (p[held[i].n + k] != 0xa5) {
            fprintf(stderr, "emulated device: byte %zu of %zu was written\n",
                    held[i].n + k, held[i].n);
            abort();
        }
}

static void
check_held(void)
{
    for (size_t i = 0; i < 4096; i++)
        if (held[i].at) {
            fprintf(stderr, "emulated device: %zu bytes are left\n", held[i].n);
            abort();
        }
    for (size_t i = 0; i < PINNED; i++)
        if (pinned[i].p) {
            fprintf(stderr, "emulated device: %zu pinned bytes are left\n",
                    pinned[i].n);
            abort();
        }
}
/* BR_EMU_IDLE: memory is addresses alone, nothing is launched or copied; what comes back
 * is 1.0. Of models whose plan is looked at. */
int
emu_idle(void)
{
    return getenv("BR_EMU_IDLE") != NULL;
}
/* BR_EMU_NO_MEMORY: so many calls for memory until one fails. */
static int
no_memory(void)
{
    return getenv("BR_EMU_NO_MEMORY") &&
           ++n_asked == emu_from_env("BR_EMU_NO_MEMORY", 0);
}
E(cuMemAlloc_v2)(uint64_t *p, size_t n)
{
    ONE_AT_A_TIME;
    static uint64_t nowhere = 1 << 20;

    const int no = emu_barred(0);

    if (no)
        return no;
    if (no_memory())
        return 2;
    if (emu_idle()) {
        *p = nowhere;
        nowhere += (n + 255) / 256 * 256;
        return 0;
    }

    size_t i = 0;
    void *m = aligned_alloc(256, (n + BEHIND + 255) / 256 * 256);

    while (i < 4096 && held[i].at)
        i++;
    if (!m || i == 4096 || emu_lost)
        return free(m), emu_lost ? emu_lost : 2;
    memset(m, 0xa5, n + BEHIND); /* what nobody wrote is not zero */
    held[i].at = *p = (uint64_t)(uintptr_t)m;
    held[i].n = n;
    return 0;
}
E(cuMemFree_v2)(uint64_t p)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    if (no)
        return no;
    if (emu_idle())
        return 0;
    emu_make_all();
    for (size_t i = 0; i < 4096; i++)
        if (held[i].at == p) {
            look_behind(i);
            held[i].at = 0;
        }
    return free((void *)(uintptr_t)p), 0;
}
static int
to_device(uint64_t d, const void *s, size_t n)
{
    if (emu_lost || emu_idle())
        return emu_lost;
    emu_make_all();
    return inside(d, n) || d == constants
               ? (memcpy((void *)(uintptr_t)d, s, n), 0)
               : 1;
}
E(cuMemcpyHtoD_v2)(uint64_t d, const void *s, size_t n)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    return no ? no : to_device(d, s, n);
}
E(cuMemcpyHtoDAsync_v2)
(uint64_t d, const void *s, size_t n, struct stream *q)
{
    ONE_AT_A_TIME;
    const int late = !emu_idle() && is_pinned(s) && inside(d, n);
    int rc;

    if (!emu_into(q, !late, &rc))
        return rc;
    return late ? emu_copy_later(q, d, s, n) : to_device(d, s, n);
}
E(cuMemAllocHost_v2)(void **p, size_t n)
{
    ONE_AT_A_TIME;
    int i = 0;

    const int no = emu_barred(0);

    if (no)
        return no;
    while (i < PINNED && pinned[i].p)
        i++;
    *p = i == PINNED || no_memory() ? NULL : calloc(n, 1);
    if (*p)
        pinned[i] = (struct pinned){*p, n};
    return *p ? 0 : 2;
}
E(cuMemFreeHost)(void *p)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    if (no)
        return no;
    emu_make_all();
    for (int i = 0; i < PINNED; i++)
        if (pinned[i].p == p)
            pinned[i].p = 0;
    return free(p), 0;
}
static int
to_host(void *d, uint64_t s, size_t n)
{
    if (emu_lost)
        return emu_lost;
    for (size_t i = 0; emu_idle() && i < n / 4; i++)
        ((float *)d)[i] = 1;
    if (emu_idle())
        return 0;
    emu_make_all();
    return inside(s, n) ? (memcpy(d, (const void *)(uintptr_t)s, n), 0) : 1;
}
E(cuMemcpyDtoH_v2)(void *d, uint64_t s, size_t n)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    return no ? no : to_host(d, s, n);
}
E(cuMemcpyDtoHAsync_v2)(void *d, uint64_t s, size_t n, struct stream *q)
{
    ONE_AT_A_TIME;
    int rc;

    return emu_into(q, 1, &rc) ? to_host(d, s, n) : rc;
}
E(cuMemcpyDtoD_v2)(uint64_t d, uint64_t s, size_t n)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    if (no)
        return no;
    emu_make_all();
    if (!inside(d, n) || !inside(s, n))
        return 1;
    return memcpy((void *)(uintptr_t)d, (const void *)(uintptr_t)s, n), 0;
}
static int
set(uint64_t p, unsigned v, size_t n)
{
    if (emu_idle())
        return 0;
    emu_make_all();
    if (!inside(p, n * 4))
        return 1;
    for (size_t i = 0; i < n; i++)
        ((unsigned *)(uintptr_t)p)[i] = v;
    return 0;
}
E(cuMemsetD32_v2)(uint64_t p, unsigned v, size_t n)
{
    ONE_AT_A_TIME;
    const int no = emu_barred(1);

    return no ? no : set(p, v, n);
}
E(cuMemsetD32Async)(uint64_t p, unsigned v, size_t n, struct stream *q)
{
    ONE_AT_A_TIME;
    int rc;

    return emu_into(q, 1, &rc) ? set(p, v, n) : rc;
}
E(cuModuleLoadDataEx)(void **m, const void *i, unsigned n, int *o, void **v)
{
    return IGNORE(i, n, o, v), *m = &kernel, 0;
}
E(cuModuleUnload)(void *m)
{
    ONE_AT_A_TIME;
    emu_make_all();
    return IGNORE(m), 0;
}
E(cuModuleGetFunction)(void **f, void *m, const char *name)
{
    IGNORE(m);
    name = emu_has(name);
    memcpy(f, &name, sizeof name); /* a function is its name */
    return name ? 0 : 500;
}
E(cuModuleGetGlobal_v2)(uint64_t *p, size_t *n, void *m, const char *name)
{
    ONE_AT_A_TIME;
    Dl_info di;
    const ElfW(Sym) *sym = NULL;
    Dl_info self;
    void *lib, *at = NULL;

    IGNORE(m);
    if (dladdr((void *)(uintptr_t)&launch, &self) &&
        (lib = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD)) != NULL)
        at = dlsym(lib, name);
    if (!at || !dladdr1(at, &di, (void **)(void *)&sym, RTLD_DL_SYMENT) || !sym)
        return 500;
    *p = constants = (uint64_t)(uintptr_t)at;
    *n = sym->st_size;
    return 0;
}
E(cuFuncSetAttribute)(void *f, int a, int v)
{
    return IGNORE(f, a, v), 0;
}
E(cuFuncGetAttribute)(int *v, int a, void *f)
{
    enum { MOST_THREADS = 0, REGS = 4 };

    *v = a == MOST_THREADS ? 1024 : a == REGS ? 80 : 0;
    return IGNORE(f), 0;
}
int
emu_launch_blocks(void *fn, const struct shape *s, void **params, int together)
{
    const u32 n = s->gx * s->gy;
    const u32 each = together ? n : s->cluster ? s->cluster : 1;
    int rc = 0;

    emu_look_for_loss(fn);
    if (emu_lost)
        return emu_lost;
    hang_here();
    if (emu_hung())
        return 0;
    kernel = fn;
    kernel_found = emu_find(fn);
    kernel_params = params;
    for (u32 i = 0; i < n && !rc; i += each)
        rc = launch(s, i, each);
    return rc;
}

int
emu_launch_together(void *fn, const struct shape *s, void **params)
{
    kernel = fn;
    kernel_found = emu_find(fn);
    kernel_params = params;
    return launch(s, 0, s->gx * s->gy);
}

static int
launch_all(struct stream *to, void *fn, const struct shape *s, void **params)
{
    ONE_AT_A_TIME;
    int rc;

    if (emu_no_context())
        return emu_no_context();
    if (emu_idle())
        return 0;
    if (s->cluster && s->gx % s->cluster)
        return 1;
    if (to->captured)
        return emu_note(to->captured, fn, s, params, 0);
    if (!emu_into(to, 1, &rc))
        return rc;
    rc = emu_launch_blocks(fn, s, params, 0);
    to->stuck = emu_hung();
    return rc;
}

E(cuLaunchKernel)
(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
 unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    struct shape s = {gx, gy, bx, shared, 0};

    IGNORE(extra);
    return gz == 1 && by == 1 && bz == 1 ? launch_all(stream, fn, &s, params)
                                         : 801;
}
struct attr { /* br_cuda_attr */
    int id, pad;
    unsigned value[16];
};
struct how { /* br_cuda_launch */
    unsigned gx, gy, gz, bx, by, bz, shared;
    void *stream;
    struct attr *attrs;
    unsigned n_attrs;
};
enum { CLUSTER = 4 /* attribute: blocks of a cluster */ };
E(cuLaunchKernelEx)
(const struct how *h, void *fn, void **params, void **extra)
{
    struct shape s = {h->gx, h->gy, h->bx, h->shared, 0};

    for (unsigned i = 0; i < h->n_attrs; i++)
        if (h->attrs[i].id == CLUSTER)
            s.cluster = h->attrs[i].value[0];
    if (s.cluster > 8 || (h->n_attrs && emu_major() < 9))
        return 1;

    IGNORE(extra);
    return h->gz == 1 && h->by == 1 && h->bz == 1
               ? launch_all(h->stream, fn, &s, params)
               : 801;
}
E(cuLaunchCooperativeKernel)
(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
 unsigned bz, unsigned shared, struct stream *stream, void **params)
{
    ONE_AT_A_TIME;
    struct shape s = {gx, gy, bx, shared, 0};
    int rc;

    IGNORE(gz, by, bz);
    if (emu_no_context())
        return emu_no_context();
    if (emu_idle())
        return 0;
    if (stream->captured)
        return gx * gy > (u32)emu_n_sm()
                   ? 720
                   : emu_note(stream->captured, fn, &s, params, 1);
    emu_look_for_loss(fn);
    if (!emu_into(stream, 1, &rc) || emu_rc())
        return emu_rc();
    if (shared > EMU_SHARED || gx * gy > (u32)emu_n_sm())
        return 720;
    /* more parameters than one: the caller's, now */
    return emu_size(fn) ? emu_launch_beside(stream, fn, &s, params)
                        : emu_launch_together(fn, &s, params);
}
