/* kinterp_mem.c - addresses, loads and stores, atomics, copies, mbarriers.
 *
 * A generic address names its space by its upper half: windows of 4 GiB for
 * shared, local and parameter memory, everything else is global. An mbarrier is
 * a 64-bit word of shared memory as we lay it out:
 *
 *   63       44 43       32 31        16 15         0
 *   [ bytes to come ][ phase ][ expected ][ to come ]
 *
 * Bytes may come before anybody expects them, so their number wraps around.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>

br_code
ki_fault(ki_run *r, const char *fmt, ...)
{
    const br_klaunch *l = r->l;
    char buf[300], where[120] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (r->w) {
        const ki_block *b = r->w->b;
        uint32_t t = r->w->id * KI_LANES + r->lane;

        snprintf(where, sizeof where,
                 "block %u,%u,%u thread %u,%u,%u: ", b->ctaid[0], b->ctaid[1],
                 b->ctaid[2], t % l->block[0], t / l->block[0] % l->block[1],
                 t / l->block[0] / l->block[1]);
    }
    if (r->ins && r->ins->line)
        return br_fail(r->st, BR_E_FAULT, "%s%sline %u: %s%s",
                       l->file ? l->file : "", l->file ? ": " : "",
                       r->ins->line, where, buf);
    return br_fail(r->st, BR_E_FAULT, "%s%s%s%s", l->file ? l->file : "",
                   l->file ? ": " : "", where, buf);
}

uint64_t
ki_window(unsigned space)
{
    switch (space) {
    case BR_KM_SPACE_SHARED: return KI_SHARED;
    case BR_KM_SPACE_LOCAL: return KI_LOCAL;
    case BR_KM_SPACE_PARAM: return KI_PARAM;
    default: return 0;
    }
}

static bool
whole(const void *p, unsigned bytes, size_t size)
{
    return bytes == size && (uintptr_t)p % size == 0;
}

bool
ki_says_shared(const br_kir *m, const br_kfn *f)
{
    for (size_t k = 0; k < f->ins.n; k++) {
        const br_kins *i = &f->ins.at[k];

        switch (i->op) {
        case BR_K_ADDR:
            if (!(i->sym & BR_KFN_SYM) &&
                m->vars.at[i->sym].space == BR_KM_SPACE_SHARED)
                return true;
            break;
        case BR_K_LD:
        case BR_K_ST:
        case BR_K_ATOM:
        case BR_K_CAS:
        case BR_K_CAS2:
        case BR_K_XCHG2:
            if (br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED)
                return true;
            break;
        case BR_K_TOGEN:
        case BR_K_CALL:
        case BR_K_CALLI:
        case BR_K_LDMATRIX:
        case BR_K_STMATRIX:
        case BR_K_CPASYNC:
        case BR_K_CPBULK:
        case BR_K_CPREDUCE:
        case BR_K_MBAR: return true;
        default: break;
        }
    }
    return false;
}

/* Blocks run on threads of their own and may look at what others write: whole
 * words, as a GPU's are, where they lie so. Costs nothing on x86-64. */
#define WORDS(as) as(uint32_t) as(uint64_t) as(uint16_t) as(uint8_t)

uint64_t
ki_load(const void *p, unsigned bytes)
{
    uint64_t v = 0;

#define LOAD(type)                     \
    if (whole(p, bytes, sizeof(type))) \
        return __atomic_load_n((const type *)p, __ATOMIC_RELAXED);
    WORDS(LOAD)
#undef LOAD
    memcpy(&v, p, bytes);
    return v;
}

void
ki_store(void *p, uint64_t v, unsigned bytes)
{
#define STORE(type)                                             \
    if (whole(p, bytes, sizeof(type))) {                        \
        __atomic_store_n((type *)p, (type)v, __ATOMIC_RELAXED); \
        return;                                                 \
    }
    WORDS(STORE)
#undef STORE
    memcpy(p, &v, bytes);
}

/* Local memory grows as frames and allocas do. */
br_code
ki_local_room(ki_run *r, ki_warp *w, uint64_t bytes)
{
    uint32_t cap = BR_MAX(w->local_bytes, 64u);
    uint8_t *at, *init = NULL;

    if (bytes <= w->local_bytes)
        return BR_OK;
    if (bytes > BR_KMAX_LOCAL)
        return ki_fault(r, "over %d bytes of local memory in a thread",
                        BR_KMAX_LOCAL);
    while (cap < bytes)
        cap *= 2;
    at = br_try_calloc(KI_LANES, cap);
    if (r->l->check)
        init = br_try_calloc(KI_LANES, cap);
    if (!at || (r->l->check && !init)) {
        br_free(at);
        br_free(init);
        return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
    }
    for (unsigned k = 0; k < KI_LANES && w->local_bytes; k++) {
        memcpy(at + (size_t)k * cap, w->local + (size_t)k * w->local_bytes,
               w->local_bytes);
        if (init)
            memcpy(init + (size_t)k * cap,
                   w->local_init + (size_t)k * w->local_bytes, w->local_bytes);
    }
    br_free(w->local);
    br_free(w->local_init);
    w->local = at;
    w->local_init = init;
    w->local_bytes = cap;
    return BR_OK;
}

/* The block of the cluster whose shared memory an address is of; NULL: it has ended, or
 * there is none. */
static const ki_block *
peer(const ki_run *r, uint64_t addr)
{
    const uint64_t rank = (addr >> KI_RANK_BIT) - 1;

    return rank < r->n_peers ? r->peers[rank] : NULL;
}

void *
ki_at(ki_run *r, ki_warp *w, unsigned space, uint64_t addr, unsigned bytes,
      ki_access how)
{
    const ki_block *b = w->b;
    uint64_t room;
    uint8_t *base;

    if (space == 0) { /* generic */
        space = addr >> 32 == KI_SHARED >> 32  ? BR_KM_SPACE_SHARED
                : addr >> 32 == KI_LOCAL >> 32 ? BR_KM_SPACE_LOCAL
                : addr >> 32 == KI_PARAM >> 32 ? BR_KM_SPACE_PARAM
                                               : BR_KM_SPACE_GLOBAL;
        addr -= ki_window(space);
    } else if (space == BR_KM_SPACE_SHARED || space == BR_KM_SPACE_LOCAL) {
        addr = (uint32_t)addr; /* so wide: -4, and 8 on, is 4 */
    }
    if (bytes && addr % bytes) {
        r->l->fault = BR_KFAULT_ALIGN;
        ki_fault(r, "misaligned %s of %u bytes at 0x%llx", ki_how_text(how),
                 bytes, (unsigned long long)addr);
        return NULL;
    }
    switch (space) {
    case BR_KM_SPACE_SHARED:
        if (addr >> KI_RANK_BIT && r->n_peers) {
            b = peer(r, addr);
            addr &= (1u << KI_RANK_BIT) - 1;
        }
        room = b ? b->shared_bytes : 0;
        base = b ? b->shared : NULL;
        break;
    case BR_KM_SPACE_LOCAL:
        room = w->local_bytes;
        base = w->local + (size_t)r->lane * w->local_bytes;
        break;
    case BR_KM_SPACE_PARAM:
        room = r->m->fns.at[r->l->fn].param_bytes;
        /* Stores to parameters are refused below. */
        memcpy(&base, &r->l->params, sizeof base);
        break;
    default: return ki_global_at(r, addr, bytes, how);
    }
    if (addr > room || room - addr < bytes ||
        (space == BR_KM_SPACE_PARAM && how != KI_READ)) {
        r->l->fault = BR_KFAULT_ADDRESS;
        if (!b)
            ki_fault(r,
                     "%s of %u bytes at 0x%llx of the shared memory of a block "
                     "that has ended, or is none of the cluster",
                     ki_how_text(how), bytes, (unsigned long long)addr);
        else
            ki_fault(
                r,
                "%s of %u bytes at 0x%llx of %s memory, which has %llu bytes",
                ki_how_text(how), bytes, (unsigned long long)addr,
                space == BR_KM_SPACE_SHARED  ? "shared"
                : space == BR_KM_SPACE_LOCAL ? "local"
                                             : "parameter",
                (unsigned long long)room);
        return NULL;
    }
    if (r->l->check && space == BR_KM_SPACE_SHARED && b == w->b)
        ki_check_shared(r, w, addr, bytes, how);
    if (r->l->check && space == BR_KM_SPACE_LOCAL)
        ki_check_local(r, w, addr, bytes, how);
    return base + addr;
}

/* ---- loads, stores, atomics --------------------------------------------- */

static uint64_t
extended(uint64_t v, unsigned t)
{
    return t == BR_KT_S8 ? (uint16_t)(int8_t)v : v;
}

static br_code
load_store(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);
    bool load = i->op == BR_K_LD;
    unsigned n = load ? i->n_res : i->n_arg - 1u;
    unsigned size = br_ktinfo_of[i->type].bytes;
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    const uint64_t *addr = ki_arg(f, i, 0);

    ki_each_lane(lane, exec)
    {
        uint8_t *p;

        r->lane = lane;
        p = ki_at(r, w, space, addr[lane] + (uint64_t)i->imm, n * size,
                  load ? KI_READ : KI_WRITE);
        if (!p)
            return BR_E_FAULT;
        for (unsigned k = 0; k < n; k++)
            if (load)
                f->vals[i->res + k][lane] =
                    extended(ki_load(p + k * size, size), i->type);
            else
                ki_store(p + k * size, ki_arg(f, i, k + 1)[lane], size);
    }
    return BR_OK;
}

/* Blocks run on threads of their own: what changes memory tries until nobody
 * came between. The address is aligned. */
static bool
swap(void *p, uint64_t *was, uint64_t to, unsigned bytes)
{
    uint16_t w2 = (uint16_t)*was;
    uint32_t w4 = (uint32_t)*was;
    bool done;

    if (bytes == 8)
        return __atomic_compare_exchange_n((uint64_t *)p, was, to, false,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (bytes == 4) {
        done =
            __atomic_compare_exchange_n((uint32_t *)p, &w4, (uint32_t)to, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *was = w4;
        return done;
    }
    done = __atomic_compare_exchange_n((uint16_t *)p, &w2, (uint16_t)to, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *was = w2;
    return done;
}

/* What br_keval_atom says, of the operations that programs do most: without it,
 * and with locks in shared memory, a histogram took 6.3 s of 3.8. */
static uint64_t
fold(unsigned op, br_ktype t, uint64_t a, uint64_t b)
{
    bool word = br_ktinfo_of[t].bytes == 4;
    union {
        uint32_t u;
        float f;
    } x = {(uint32_t)a}, y = {(uint32_t)b};

    if (t == BR_KT_F32 && op == BR_KM_ATOM_ADD) {
        x.f += y.f;
        if (x.f == x.f) /* a NaN has bits of its own */
            return x.u;
    } else if (br_ktinfo_of[t].kind != 'F' && br_ktinfo_of[t].bytes >= 4) {
        switch (op) {
        case BR_KM_ATOM_ADD: return word ? (uint32_t)(a + b) : a + b;
        case BR_KM_ATOM_AND: return a & b;
        case BR_KM_ATOM_OR: return a | b;
        case BR_KM_ATOM_XOR: return a ^ b;
        case BR_KM_ATOM_EXCH: return b;
        default: break;
        }
    }
    return br_keval_atom(op, t, a, b);
}

/* Others may change it meanwhile. Returns what was there. */
static uint64_t
change(void *p, const br_kins *i, uint64_t b)
{
    const unsigned size = br_ktinfo_of[i->type].bytes;
    uint64_t a = ki_load(p, size), to;

    do
        to = fold(br_kmod(i->mods, BR_KF_SUB), (br_ktype)i->type, a, b);
    while (!swap(p, &a, to, size));
    return a;
}

/* A block runs on one thread, so nobody comes between in shared memory. NULL:
 * it is not there, or has to be looked at closely. */
static void *
mine(const ki_run *r, const ki_warp *w, const br_kins *i, uint64_t addr)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    unsigned size = br_ktinfo_of[i->type].bytes;

    if (space == 0 && addr >> 32 == KI_SHARED >> 32)
        addr -= KI_SHARED;
    else if (space != BR_KM_SPACE_SHARED)
        return NULL;
    return !r->l->check && addr % size == 0 && addr < w->b->shared_bytes &&
                   w->b->shared_bytes - addr >= size
               ? w->b->shared + addr
               : NULL;
}

static br_code
atomic(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);
    unsigned size = br_ktinfo_of[i->type].bytes;
    unsigned op = br_kmod(i->mods, BR_KF_SUB);

    ki_each_lane(lane, exec)
    {
        uint64_t at = ki_arg(f, i, 0)[lane] + (uint64_t)i->imm;
        uint64_t a, to, b = ki_arg(f, i, 1)[lane];
        void *own = mine(r, w, i, at), *p = own;

        r->lane = lane;
        if (!p)
            p = ki_at(r, w, br_kmod(i->mods, BR_KF_SPACE), at, size, KI_ATOMIC);
        if (!p)
            return BR_E_FAULT;
        a = ki_load(p, size);
        do {
            to = i->op != BR_K_CAS ? fold(op, (br_ktype)i->type, a, b)
                 : a == b          ? ki_arg(f, i, 2)[lane]
                                   : a;
            if (own) {
                ki_store(p, to, size);
                break;
            }
        } while (!swap(p, &a, to, size));
        f->vals[i->res][lane] = a;
    }
    return BR_OK;
}

/* What is put into shared memory counts as written, though the operation reads, too. */
static void
counts_as_written(ki_block *b, const br_kins *i, uint64_t addr)
{
    if (br_kmod(i->mods, BR_KF_SPACE) == 0 && addr >> 32 == KI_SHARED >> 32)
        addr -= KI_SHARED;
    else if (br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_SHARED)
        return;
    if (b->shared_init && addr < b->shared_bytes &&
        b->shared_bytes - addr >= 16)
        memset(b->shared_init + addr, 1, 16);
}

/* Of 16 bytes. Not every processor changes so many at once: those that do here go one
 * after another, and nobody else looks at both halves. */
static br_code
atomic_16(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    static br_mutex one = BR_MUTEX;
    ki_frame *f = ki_top(w);
    const unsigned to = i->op == BR_K_CAS2 ? 3 : 1;

    ki_each_lane(lane, exec)
    {
        uint64_t at = ki_arg(f, i, 0)[lane] + (uint64_t)i->imm;
        uint64_t was[2],
            with[2] = {ki_arg(f, i, to)[lane], ki_arg(f, i, to + 1)[lane]};
        uint8_t *p;

        r->lane = lane;
        if (i->op == BR_K_XCHG2)
            counts_as_written(w->b, i, at);
        p = ki_at(r, w, br_kmod(i->mods, BR_KF_SPACE), at, 16, KI_ATOMIC);
        if (!p)
            return BR_E_FAULT;
        br_mutex_lock(&one);
        for (unsigned k = 0; k < 2; k++)
            was[k] = ki_load(p + 8 * k, 8);
        if (i->op == BR_K_XCHG2 || (was[0] == ki_arg(f, i, 1)[lane] &&
                                    was[1] == ki_arg(f, i, 2)[lane]))
            for (unsigned k = 0; k < 2; k++)
                ki_store(p + 8 * k, with[k], 8);
        br_mutex_unlock(&one);
        for (unsigned k = 0; k < 2; k++)
            f->vals[i->res + k][lane] = was[k];
    }
    return BR_OK;
}

/* The copy is done at once: between its start and its wait, any time is right. */
static br_code
copy(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    ki_each_lane(lane, exec)
    {
        uint64_t n = BR_MIN(ki_arg(f, i, 2)[lane], (uint64_t)i->imm);
        uint8_t *to, *from = NULL;

        r->lane = lane;
        to = ki_at(r, w, BR_KM_SPACE_SHARED, ki_arg(f, i, 0)[lane],
                   (unsigned)i->imm, KI_WRITE);
        if (to && n)
            from = ki_at(r, w, BR_KM_SPACE_GLOBAL, ki_arg(f, i, 1)[lane],
                         n == (uint64_t)i->imm ? (unsigned)n : 1, KI_READ);
        if (to && from && n != (uint64_t)i->imm &&
            !ki_global_at(r, ki_arg(f, i, 1)[lane] + n - 1, 1, KI_READ))
            return BR_E_FAULT;
        if (!to || (n && !from))
            return BR_E_FAULT;
        memset(to, 0, (size_t)i->imm);
        if (n)
            memcpy(to, from, n);
    }
    return BR_OK;
}

/* ---- mbarriers ---------------------------------------------------------- */

enum { MB_COME = 0, MB_EXPECT = 16, MB_PHASE = 32, MB_BYTES = 44 };

/* Whatever came: when nobody is missing, the next phase begins. */
static uint64_t
mb_turn(uint64_t v)
{
    if (v & 0xffff || v >> MB_BYTES)
        return v;
    v |= v >> MB_EXPECT & 0xffff;
    return (v & ~(0xfffull << MB_PHASE)) | (((v >> MB_PHASE) + 1) & 0xfff)
                                               << MB_PHASE;
}

static br_code
mb_change(ki_run *r, const br_kins *i, uint64_t *v, uint64_t n, uint64_t *state)
{
    *state = *v;
    if (i->op == BR_K_MBARRIVE) {
        if (n > (*v & 0xffff))
            return ki_fault(r, "more arrive at the mbarrier than it expects");
        *v = mb_turn(*v - n);
        return BR_OK;
    }
    switch (br_kmod(i->mods, BR_KF_SUB)) {
    case BR_KM_MB_INIT:
        if (n == 0 || n > 0xffff)
            return ki_fault(r, "an mbarrier expects 1 to 65535 arrivals");
        *v = n | n << MB_EXPECT;
        return BR_OK;
    case BR_KM_MB_INVAL: *v = 0; return BR_OK;
    case BR_KM_MB_EXPECT: *v += n << MB_BYTES; return BR_OK;
    case BR_KM_MB_DROP:
        if (n > (*v >> MB_EXPECT & 0xffff))
            return ki_fault(r, "more leave the mbarrier than it expects");
        *v -= n << MB_EXPECT;
        return BR_OK;
    default: *v = mb_turn(*v - (n << MB_BYTES)); return BR_OK;
    }
}

/* Sixteen bytes of a bulk copy, or of one that folds numbers. */
static br_code
piece(ki_run *r, ki_warp *w, const br_kins *i, uint64_t to, uint64_t from)
{
    const bool in = br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED;
    const unsigned size = br_ktinfo_of[i->type].bytes;
    uint8_t *a, *b;

    a = ki_at(r, w, in && !(to >> 32) ? BR_KM_SPACE_SHARED : 0, to, 16,
              i->op == BR_K_CPBULK ? KI_WRITE : KI_ATOMIC);
    b = a ? ki_at(r, w, !in && !(from >> 32) ? BR_KM_SPACE_SHARED : 0, from, 16,
                  KI_READ)
          : NULL;
    if (!b)
        return BR_E_FAULT;
    if (i->op == BR_K_CPBULK)
        memcpy(a, b, 16);
    else
        for (unsigned k = 0; k < 16; k += size)
            change(a + k, i, ki_load(b + k, size));
    return BR_OK;
}

/* A copy of any length, byte by byte of the checks; then the mbarrier hears. */
static br_code
bulk(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    ki_each_lane(lane, exec)
    {
        uint64_t to = ki_arg(f, i, 0)[lane], from = ki_arg(f, i, 1)[lane];
        uint64_t n = ki_arg(f, i, 2)[lane], v;
        void *mb;

        r->lane = lane;
        if (n % 16)
            return ki_fault(r,
                            "a bulk copy of %llu bytes, not a multiple of 16",
                            (unsigned long long)n);
        for (uint64_t k = 0; k < n; k += 16)
            BR_TRY(piece(r, w, i, to + k, from + k));
        if (i->n_arg < 4)
            continue;
        to = ki_arg(f, i, 3)[lane];
        mb = ki_at(r, w, to >> 32 ? 0 : BR_KM_SPACE_SHARED, to, 8, KI_ATOMIC);
        if (!mb)
            return BR_E_FAULT;
        v = ki_load(mb, 8);
        ki_store(mb, mb_turn(v - (n << MB_BYTES)), 8);
    }
    return BR_OK;
}

static br_code
mbarrier(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);
    bool test = i->op == BR_K_MBTEST || i->op == BR_K_MBPARITY;

    ki_each_lane(lane, exec)
    {
        uint64_t addr = ki_arg(f, i, 0)[lane] + (uint64_t)i->imm, v, state = 0;
        uint64_t n = ki_arg(f, i, 1)[lane], phase;
        void *p;

        r->lane = lane;
        p = ki_at(r, w, addr >> 32 ? 0 : BR_KM_SPACE_SHARED, addr, 8,
                  KI_ATOMIC);
        if (!p)
            return BR_E_FAULT;
        v = ki_load(p, 8);
        phase = v >> MB_PHASE & 0xfff;
        if (test) {
            f->vals[i->res][lane] = i->op == BR_K_MBPARITY
                                        ? (phase & 1) != (n & 1)
                                        : phase != (n >> MB_PHASE & 0xfff);
            r->gives_way |= !f->vals[i->res][lane];
            continue;
        }
        BR_TRY(mb_change(r, i, &v, n, &state));
        ki_store(p, v, 8);
        if (i->n_res)
            f->vals[i->res][lane] = state;
    }
    return BR_OK;
}

static br_code
stack(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    ki_each_lane(lane, exec)
    {
        uint64_t n, mask = (uint64_t)i->imm - 1;

        r->lane = lane;
        switch (i->op) {
        case BR_K_STACK: f->vals[i->res][lane] = f->top[lane]; break;
        case BR_K_UNSTACK:
            n = ki_arg(f, i, 0)[lane];
            if (n < f->base || n > f->top[lane])
                return ki_fault(r, "stackrestore of what was never the stack");
            f->top[lane] = (uint32_t)n;
            break;
        default:
            n = ki_arg(f, i, 0)[lane];
            if (n > BR_KMAX_LOCAL)
                return ki_fault(r, "over %d bytes of local memory in a thread",
                                BR_KMAX_LOCAL);
            f->vals[i->res][lane] = (f->top[lane] + mask) & ~mask;
            n += f->vals[i->res][lane];
            BR_TRY(ki_local_room(r, w, n));
            f->top[lane] = (uint32_t)n;
        }
    }
    return BR_OK;
}

br_code
ki_memory(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    switch (i->op) {
    case BR_K_LD:
    case BR_K_ST: return load_store(r, w, i, exec);
    case BR_K_ATOM:
    case BR_K_CAS: return atomic(r, w, i, exec);
    case BR_K_CAS2:
    case BR_K_XCHG2: return atomic_16(r, w, i, exec);
    case BR_K_FENCE: /* memory is in order */
    case BR_K_CPWAIT: return BR_OK;
    case BR_K_CPASYNC: return copy(r, w, i, exec);
    case BR_K_CPBULK:
    case BR_K_CPREDUCE: return bulk(r, w, i, exec);
    case BR_K_MBAR:
    case BR_K_MBARRIVE:
    case BR_K_MBTEST:
    case BR_K_MBPARITY: return mbarrier(r, w, i, exec);
    default: return stack(r, w, i, exec);
    }
}

/* ---- images ------------------------------------------------------------- */

typedef struct placing {
    br_kplace_fn fn; /* NULL: made-up addresses from top on */
    void *arg;
    uint64_t top;
} placing;

static br_code
place_var(br_kimage *im, uint32_t k, placing *to)
{
    const br_kvar *v = &im->m->vars.at[k];
    br_kregion g = {.bytes = v->bytes, .name = v->name.p};
    uint64_t mask = BR_MAX(v->align, 16u) - 1;
    void *host =
        to->fn ? to->fn(to->arg, v) : br_try_calloc((size_t)v->bytes + 1, 1);

    if (!host)
        return BR_E_OOM;
    if (!to->fn && !br_vec_push(&im->blocks, host)) {
        br_free(host);
        return BR_E_OOM;
    }
    to->top = (to->top + mask) & ~mask;
    g.addr = im->addr[k] = to->fn ? (uint64_t)(uintptr_t)host : to->top;
    g.read_only = v->space == BR_KM_SPACE_CONST;
    g.host = host;
    to->top += v->bytes + 256;
    if (v->init)
        memcpy(host, v->init, (size_t)v->bytes);
    return br_vec_push(&im->regions, g) ? BR_OK : BR_E_OOM;
}

/* Marks the variables that a kernel and what it calls may name: uses[v]. fns:
 * one byte a function. */
static void
names(const br_kir *m, uint32_t kernel, uint8_t *fns, uint8_t *uses)
{
    bool more = true;

    memset(fns, 0, m->fns.n);
    memset(uses, 0, m->vars.n);
    fns[kernel] = 1;
    while (more) {
        more = false;
        for (size_t f = 0; f < m->fns.n; f++) {
            if (fns[f] != 1)
                continue;
            fns[f] = 2;
            more = true;
            for (size_t k = 0; k < m->fns.at[f].ins.n; k++) {
                const br_kins *i = &m->fns.at[f].ins.at[k];

                if (i->op == BR_K_ADDR && !(i->sym & BR_KFN_SYM))
                    uses[i->sym] = 1;
                if (i->op == BR_K_CALL)
                    fns[i->sym & ~BR_KFN_SYM] |= 1;
                for (size_t g = 0; i->op == BR_K_CALLI && g < m->fns.n; g++)
                    fns[g] |= !m->fns.at[g].entry;
            }
        }
        for (size_t f = 0; f < m->fns.n; f++) /* marked again, and done */
            fns[f] = fns[f] == 3 ? 2 : fns[f];
    }
}

static uint64_t
place_one(br_kimage *im, size_t k, uint64_t at)
{
    const br_kvar *v = &im->m->vars.at[k];

    im->addr[k] = (at + v->align - 1u) & ~(uint64_t)(v->align - 1u);
    return im->addr[k] + v->bytes;
}

/* What several kernels name comes first; behind that each has its own, so that
 * a kernel has as much as it asks for, whatever others of the module do. The
 * dynamic part, one address for all who have it, starts on 16 bytes, or what
 * the most particular of its names asks for. */
static br_code
place_shared(br_kimage *im)
{
    const br_kir *m = im->m;
    uint8_t *fns = br_try_calloc(m->fns.n + 1, 1);
    uint8_t *uses = br_try_calloc(m->vars.n + 1, 1);
    uint8_t *many = br_try_calloc(m->vars.n + 1, 1);
    uint64_t common = 0, dynamic = 0, edge = 16;
    br_code code = fns && uses && many ? BR_OK : BR_E_OOM;

    for (int pass = 0; code == BR_OK && pass < 3; pass++) {
        for (uint32_t f = 0; f < m->fns.n; f++) {
            uint64_t at = 0;
            bool open = false; /* has a dynamic part */

            if (!m->fns.at[f].entry)
                continue;
            names(m, f, fns, uses);
            for (size_t k = 0; k < m->vars.n; k++) {
                const br_kvar *v = &m->vars.at[k];

                if (!uses[k] || v->space != BR_KM_SPACE_SHARED)
                    continue;
                if (pass == 0) {
                    many[k] = (uint8_t)BR_MIN(many[k] + 1, 2);
                } else if (v->external && pass == 2) {
                    im->shared[f] = im->addr[k] = dynamic;
                } else if (v->external) {
                    open = true;
                    edge = BR_MAX(edge, (uint64_t)v->align);
                } else if (pass == 1 && many[k] == 1) {
                    im->shared[f] = at = place_one(im, k, BR_MAX(at, common));
                } else if (pass == 1) {
                    im->shared[f] = BR_MAX(im->shared[f], common);
                }
            }
            if (open)
                dynamic = BR_MAX(dynamic, im->shared[f]);
        }
        for (size_t k = 0; pass == 0 && k < m->vars.n; k++)
            if (many[k] == 2 && !m->vars.at[k].external)
                common = place_one(im, k, common);
        dynamic = (dynamic + edge - 1) & ~(edge - 1);
    }
    br_free(fns);
    br_free(uses);
    br_free(many);
    return code;
}

static void
relocate(br_kimage *im)
{
    size_t at = 0;

    for (size_t k = 0; k < im->m->vars.n; k++) {
        const br_kvar *v = &im->m->vars.at[k];

        if (v->space == BR_KM_SPACE_SHARED)
            continue;
        for (size_t n = 0; n < v->relocs.n; n++) {
            const br_kreloc *rl = &v->relocs.at[n];
            uint32_t s = rl->sym & ~BR_KFN_SYM;
            uint64_t a =
                rl->sym & BR_KFN_SYM ? KI_CODE + 16ull * s : im->addr[s];

            if (!(rl->sym & BR_KFN_SYM) && rl->generic)
                a += ki_window(im->m->vars.at[s].space);
            ki_store(im->regions.at[at].host + rl->offset,
                     a + (uint64_t)rl->addend, rl->bytes);
        }
        at++;
    }
}

br_code
br_kimage_new(br_kimage **out, const br_kir *m, br_status *st)
{
    return br_kimage_new_at(out, m, NULL, NULL, st);
}

br_code
br_kimage_new_at(br_kimage **out, const br_kir *m, br_kplace_fn place,
                 void *arg, br_status *st)
{
    br_kimage *im = br_try_calloc(1, sizeof *im);
    placing to = {place, arg, KI_VARS};
    br_code code = BR_OK;

    *out = NULL;
    if (im) {
        im->addr = br_try_calloc(m->vars.n + 1, sizeof *im->addr);
        im->shared = br_try_calloc(m->fns.n + 1, sizeof *im->shared);
    }
    if (!im || !im->addr || !im->shared) {
        br_kimage_free(im);
        return br_fail(st, BR_E_OOM, "module: out of memory");
    }
    im->m = m;
    for (uint32_t k = 0; code == BR_OK && k < m->vars.n; k++)
        if (m->vars.at[k].space != BR_KM_SPACE_SHARED)
            code = place_var(im, k, &to);
    if (code == BR_OK)
        code = place_shared(im);
    if (code != BR_OK) {
        br_kimage_free(im);
        return br_fail(st, code, "module: out of memory");
    }
    relocate(im);
    *out = im;
    return BR_OK;
}

void
br_kimage_free(br_kimage *im)
{
    if (!im)
        return;
    for (size_t k = 0; k < im->blocks.n; k++)
        br_free(im->blocks.at[k]);
    br_vec_fini(&im->blocks);
    br_vec_fini(&im->regions);
    br_free(im->addr);
    br_free(im->shared);
    br_free(im);
}
