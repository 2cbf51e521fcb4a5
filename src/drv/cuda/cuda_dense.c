/* cuda_dense.c - matrices of tiles once more, dense (node_dense.cuh): three quarters of
 * their bytes, for steps of few rows, which are bound by those. Prompts read tiles: taking
 * numbers apart costs them a tenth (packed weights, an H200).
 *
 *   which    those that products of tiles read, in long runs, and none of whose pieces
 *            lists too much: a first look at all of them says so, before memory is
 *            asked for
 *   room     not of the last quarter of the device's memory, or of what is given
 *   bits     a step's are the same either way
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/log.h"

typedef struct dense {
    br_cun *x;
    br_status *st;
    uint64_t too_many; /* [launch] pieces that list too much, on the device */
    uint32_t *seen;    /* the same here */
    uint32_t *
        first; /* [launch] the first that reads its matrix; NONE: of no matrix */
    uint64_t bytes;
} dense;
#define NONE UINT32_MAX

/* One whose blocks all run at once, with so few 64s of columns that these are there before
 * the launch ahead has ended, waits for no bytes, but would for their being taken apart
 * (H200, 1B at 1 and 64 rows: .76, 1.33 ms a step with q k v and out among them, .73, 1.30
 * without). */
static bool
is_product(const br_cun *x, const cun_launch *l)
{
    enum { AHEAD = 8 };

    return l->grid == CUN_PRODUCT && l->a.m.kind == BR_ND_TILES &&
           (l->a.m.block > AHEAD || !cun_at_once(x, l));
}

/* Whether there are any. */
static bool
find_first(dense *d)
{
    const br_cun *x = d->x;
    bool any = false;

    for (uint32_t i = 0; i < x->launches.n; i++) {
        const cun_launch *l = &x->launches.at[i];

        d->first[i] = is_product(x, l) ? i : NONE;
        for (uint32_t k = 0; k < i && d->first[i] == i; k++)
            if (d->first[k] == k && x->launches.at[k].a.m.q == l->a.m.q)
                d->first[i] = k;
        any |= d->first[i] == i;
    }
    return any;
}

/* Launch i is the first of a matrix that can be dense. */
static bool
makes(const dense *d, size_t i)
{
    return d->first[i] == i && d->seen[i] == 0;
}

static uint64_t
bytes_of(const struct br_nd_mat *m)
{
    return (uint64_t)(m->sub / 16) * (m->n_in / 64) * BR_ND_DENSE_BYTES;
}

/* Launch i's matrix to memory `to`; 0: counted alone. */
static br_code
make(const dense *d, size_t i, uint64_t to)
{
    br_cun *x = d->x;
    struct br_nd_args a = {.m = x->launches.at[i].a.m,
                           .xq = (void *)(uintptr_t)to,
                           .met = (void *)(uintptr_t)(d->too_many + 4 * i)};

    return BR_CU(&x->cu, d->st,
                 cuLaunchKernel(x->fn[CUN_dense], a.m.sub / 16, a.m.n_in / 64,
                                1, BR_ND_WARPS * 32, 1, 1, 0, x->cu.stream,
                                (void *[]){&a}, NULL));
}

/* Which matrices can be dense: seen[i] is 0. */
static br_code
look(dense *d)
{
    br_cun *x = d->x;
    const size_t n = x->launches.n;

    BR_TRY(br_cuda_alloc(&x->cu, &d->too_many, 4 * n, d->st));
    BR_TRY(cun_zero(x, d->too_many, n, d->st));
    for (size_t i = 0; i < n; i++)
        if (d->first[i] == i)
            BR_TRY(make(d, i, 0));
    BR_TRY(cun_get(x, d->seen, d->too_many, 4 * n, d->st));
    for (size_t i = 0; i < n; i++)
        if (makes(d, i))
            d->bytes += bytes_of(&x->launches.at[i].a.m);
    return BR_OK;
}

static bool
has_room(const br_cun *x, uint64_t bytes)
{
    size_t is_free = 0, all = 0;
    uint64_t cap = x->cu.limit, used = x->cu.used;

    if (!cap) {
        if (x->cu.cuMemGetInfo(&is_free, &all))
            return false;
        cap = all;
        used = all - is_free;
    }
    return used + bytes + cun_pick_bytes(x) <= cap / 4 * 3;
}

static br_code
make_all(dense *d)
{
    br_cun *x = d->x;

    BR_TRY(cun_pile_up(x, CUN_DENSE, d->bytes, d->st));
    x->costs.dense = d->bytes;
    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];

        if (makes(d, i)) {
            BR_TRY(cun_take(x, CUN_DENSE, &l->dense, bytes_of(&l->a.m), d->st));
            BR_TRY(make(d, i, l->dense));
            x->spared +=
                (uint64_t)l->a.m.sub * 8 * l->a.m.n_in * 2 - bytes_of(&l->a.m);
        } else if (d->first[i] != NONE) {
            l->dense = x->launches.at[d->first[i]].dense;
        }
    }
    br_log(BR_EV_cuda_dense, "%.1f MB", br_mb(d->bytes));
    return cun_wait(x, d->st);
}

br_code
cun_dense(br_cun *x, br_status *st)
{
    const bool asked = x->c.dense == BR_CUN_DENSE_YES; /* and is told why not */
    dense d = {.x = x, .st = st};
    br_code code;

    if (x->c.dense == BR_CUN_DENSE_NO || x->launches.n == 0)
        return BR_OK;
    if (cun_exact_form(x)) {
        if (asked)
            br_log(BR_EV_cuda_not_dense,
                   "for fast arithmetic on tensor cores alone");
        return BR_OK;
    }
    d.seen = br_try_calloc(x->launches.n, 2 * sizeof *d.seen);
    if (!d.seen)
        return br_fail(st, BR_E_OOM, "weights: out of memory");
    d.first = d.seen + x->launches.n;
    code = find_first(&d) ? look(&d) : BR_OK;
    if (code == BR_OK && d.bytes && has_room(x, d.bytes))
        code = make_all(&d);
    else if (code == BR_OK && asked && d.bytes)
        br_log(BR_EV_cuda_not_dense,
               "with %.1f MB more less than a quarter of memory would be free",
               br_mb(d.bytes));
    else if (code == BR_OK && asked)
        br_log(BR_EV_cuda_not_dense, "no matrix of BF16 fits 12 bits a weight");
    br_cuda_free(&x->cu, d.too_many);
    br_free(d.seen);
    return code;
}
