/* cu_hints.c - what programs said about where memory should lie: told again when they
 * ask (cudaMemRangeGetAttribute), and else of no use, as all memory is everywhere.
 *
 * A list of ranges, the newest last. What a new one covers goes, so that a program which
 * fetches the same memory for ever has one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

typedef struct hint {
    uint64_t from, to;
    uint8_t kind;
    int value;
} hint;
static BR_VEC(hint) hints;

static uint64_t
address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* Ranges of a kind, or of all (BC_HINTS), that lie inside. */
static void
strike(uint64_t from, uint64_t to, unsigned kind)
{
    size_t kept = 0;

    for (size_t k = 0; k < hints.n; k++) {
        hint h = hints.at[k];

        if (h.from < from || h.to > to || (kind != BC_HINTS && h.kind != kind))
            hints.at[kept++] = h;
    }
    hints.n = kept;
}

/* It is a hint: where there is no room for it, it was none. */
void
bc_hint(const void *p, size_t n, bc_hint_kind kind, int value)
{
    hint h = {address(p), address(p) + n, (uint8_t)kind, value};

    strike(h.from, h.to, kind);
    (void)br_vec_push(&hints, h);
}

void
bc_hints_forget(uint64_t addr, uint64_t bytes)
{
    strike(addr, addr + bytes, BC_HINTS);
}

/* What holds for each byte of the range; `none` where that is not one thing. */
static int
of_range(const void *p, size_t n, bc_hint_kind kind, int none)
{
    const uint64_t from = address(p), to = from + n;

    for (size_t k = hints.n; k-- > 0;) {
        const hint *h = &hints.at[k];

        if (h->kind == kind && h->from < to && h->to > from)
            return h->from <= from && h->to >= to ? h->value : none;
    }
    return none;
}

static int
type_of(int device)
{
    return device == cudaInvalidDeviceId ? cudaMemLocationTypeInvalid
           : device == cudaCpuDeviceId   ? cudaMemLocationTypeHost
                                         : cudaMemLocationTypeDevice;
}

/* Devices, as many as there is room for; the rest is none. */
static void
accessed_by(int *out, size_t room, const void *p, size_t n)
{
    size_t k = 0;

    if (of_range(p, n, BC_HINT_DEVICE_READS, 0) && k < room)
        out[k++] = 0;
    if (of_range(p, n, BC_HINT_HOST_READS, 0) && k < room)
        out[k++] = cudaCpuDeviceId;
    while (k < room)
        out[k++] = cudaInvalidDeviceId;
}

static cudaError_t
attribute(int *out, size_t bytes, cudaMemRangeAttribute attr, const void *p,
          size_t n)
{
    const bc_mem *m = bc_mem_find(p);
    int at;

    if (!out || !n || !m || !bc_mem_fits(p, n) || bytes < sizeof *out ||
        bytes % sizeof *out ||
        (m->kind != BC_MEM_MANAGED && m->kind != BC_MEM_VARIABLE))
        return cudaErrorInvalidValue;
    if (attr == cudaMemRangeAttributeAccessedBy) {
        accessed_by(out, bytes / sizeof *out, p, n);
        return cudaSuccess;
    }
    if (bytes != sizeof *out)
        return cudaErrorInvalidValue;
    at = of_range(p, n,
                  attr == cudaMemRangeAttributeLastPrefetchLocation ||
                          attr >= cudaMemRangeAttributeLastPrefetchLocationType
                      ? BC_HINT_FETCHED
                      : BC_HINT_PREFERRED,
                  cudaInvalidDeviceId);
    switch (attr) {
    case cudaMemRangeAttributeReadMostly:
        *out = of_range(p, n, BC_HINT_READ_MOSTLY, 0);
        return cudaSuccess;
    case cudaMemRangeAttributePreferredLocation:
    case cudaMemRangeAttributeLastPrefetchLocation: *out = at; break;
    case cudaMemRangeAttributePreferredLocationType:
    case cudaMemRangeAttributeLastPrefetchLocationType:
        *out = type_of(at);
        break;
    case cudaMemRangeAttributePreferredLocationId: /* of a device alone */
    case cudaMemRangeAttributeLastPrefetchLocationId:
        *out = at == 0 ? 0 : cudaInvalidDeviceId;
        break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t
cudaMemRangeGetAttribute(void *data, size_t bytes, cudaMemRangeAttribute attr,
                         const void *p, size_t n)
{
    BC_API(attribute(data, bytes, attr, p, n));
}

cudaError_t
cudaMemRangeGetAttributes(void **data, size_t *bytes,
                          cudaMemRangeAttribute *attrs, size_t n_attrs,
                          const void *p, size_t n)
{
    cudaError_t e =
        data && bytes && attrs && n_attrs ? cudaSuccess : cudaErrorInvalidValue;

    bc_lock();
    for (size_t k = 0; e == cudaSuccess && k < n_attrs; k++)
        e = attribute(data[k], bytes[k], attrs[k], p, n);
    bc_unlock();
    return bc_end(e);
}
