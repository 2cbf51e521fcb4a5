/* gcn_kd.c - kernel descriptors from directives, and directives from them.
 *
 * What LLVM 19 lacks: inst_pref_size, which it prints nowhere and a fetching
 * processor takes as 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <string.h>

typedef struct kd_row {
    const char *name;
    uint8_t word, lo, bits, gens, start, users;
} kd_row;

static const kd_row rows[] = {
#define KD(name, word, lo, bits, gens, start, users) \
    {#name, word, lo, bits, gens, start, users},
#include "cg/gcn/kd.def"
#undef KD
};

enum { WAVE32_WORD = 56, WAVE32_BIT = 10, MAX_VGPRS = 256, MAX_SGPRS = 106 };

static uint32_t
mask_of(const kd_row *r)
{
    return (uint32_t)((1ull << r->bits) - 1);
}

static uint32_t
get(const uint8_t *kd, const kd_row *r)
{
    uint32_t v;

    memcpy(&v, kd + r->word, 4);
    return v >> r->lo & mask_of(r);
}

static void
put(uint8_t *kd, const kd_row *r, uint32_t v)
{
    uint32_t w;

    memcpy(&w, kd + r->word, 4);
    w = (w & ~(mask_of(r) << r->lo)) | v << r->lo;
    memcpy(kd + r->word, &w, 4);
}

static bool
is_here(const kd_row *r, const br_gcn_isa *isa)
{
    return r->gens & (isa->cpu->gen == 11 ? 1 : 2);
}

static const kd_row *
row_of(const br_gcn_isa *isa, br_text name)
{
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (br_text_is(name, rows[k].name) && is_here(&rows[k], isa))
            return &rows[k];
    return NULL;
}

void
br_gcn_kd_begin(br_gcn_kd *kd, const br_gcn_isa *isa)
{
    memset(kd, 0, sizeof *kd);
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (is_here(&rows[k], isa))
            put(kd->bytes, &rows[k], rows[k].start);
    if (isa->wave64)
        put(kd->bytes, row_of(isa, BR_TEXT("wavefront_size32")), 0);
}

static br_code
registers(br_gcn_kd *kd, const br_gcn_isa *isa, bool vector, int64_t v,
          br_status *st)
{
    int64_t most = vector ? MAX_VGPRS : MAX_SGPRS,
            granule = isa->wave64 ? 4 : 8;

    if (v < 0 || v > most)
        return br_fail(st, BR_E_LIMIT, "%lld registers, %lld are there",
                       (long long)v, (long long)most);
    if (!vector) {
        kd->sgprs_said = true;
        return BR_OK;
    }
    kd->vgprs_said = true;
    v = v ? (v + granule - 1) / granule - 1 : 0;
    put(kd->bytes, row_of(isa, BR_TEXT("next_free_vgpr")), (uint32_t)v);
    return BR_OK;
}

br_code
br_gcn_kd_set(br_gcn_kd *kd, const br_gcn_isa *isa, br_text name, int64_t v,
              br_status *st)
{
    const kd_row *r = row_of(isa, name);

    if (br_text_is(name, "next_free_vgpr") ||
        br_text_is(name, "next_free_sgpr"))
        return registers(kd, isa, name.p[10] == 'v', v, st);
    if (br_text_is(name, "reserve_vcc") && (v == 0 || v == 1))
        return BR_OK; /* no processor here counts SGPRs */
    if (!r)
        return br_fail(st, BR_E_FORMAT, ".amdhsa_%.*s: no directive of %s",
                       (int)BR_MIN(name.n, 60u), name.p, isa->cpu->name);
    if (v < 0 || (uint64_t)v > mask_of(r))
        return br_fail(st, BR_E_FORMAT, ".amdhsa_%s: %lld is out of range",
                       r->name, (long long)v);
    if (br_text_is(name, "wavefront_size32") && (v == 0) != isa->wave64)
        return br_fail(st, BR_E_FORMAT,
                       "kernels of wave32 and wave64 in one file");
    if (br_text_is(name, "user_sgpr_count"))
        kd->users_said = true;
    if (v)
        kd->users += r->users;
    put(kd->bytes, r, (uint32_t)v);
    return BR_OK;
}

br_code
br_gcn_kd_end(br_gcn_kd *kd, br_status *st)
{
    uint32_t w;

    if (!kd->vgprs_said || !kd->sgprs_said)
        return br_fail(st, BR_E_FORMAT, ".amdhsa_next_free_%cgpr is missing",
                       kd->vgprs_said ? 's' : 'v');
    memcpy(&w, kd->bytes + 52, 4);
    if (!kd->users_said)
        w |= kd->users << 1;
    else if ((w >> 1 & 31) < kd->users)
        return br_fail(st, BR_E_FORMAT,
                       "user_sgpr_count is %u, what is asked for takes %u",
                       w >> 1 & 31, kd->users);
    memcpy(kd->bytes + 52, &w, 4);
    return BR_OK;
}

br_code
br_gcn_kd_text(br_str *out, const br_gcn_isa *isa,
               const uint8_t bytes[BR_GCN_KD_BYTES], br_status *st)
{
    uint8_t copy[BR_GCN_KD_BYTES] = {0};

    memcpy(copy + 16, bytes + 16, 8); /* the way to the code */
    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        const kd_row *r = &rows[k];
        uint32_t v;

        if (!is_here(r, isa))
            continue;
        v = get(bytes, r);
        put(copy, r, v);
        if (strcmp(r->name, "next_free_vgpr") == 0) {
            v = (v + 1) * (isa->wave64 ? 4 : 8);
            if (v > MAX_VGPRS)
                return br_fail(st, BR_E_FORMAT, "a kernel of %u VGPRs", v);
            br_str_printf(out, "\t\t.amdhsa_next_free_sgpr %d\n", MAX_SGPRS);
        }
        br_str_printf(out, "\t\t.amdhsa_%s %u\n", r->name, v);
    }
    if (memcmp(copy, bytes, sizeof copy) != 0)
        return br_fail(st, BR_E_FORMAT,
                       "a descriptor with bits that mean nothing on %s",
                       isa->cpu->name);
    return BR_OK;
}
