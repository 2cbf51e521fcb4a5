/* zrt.c - .zrt files: 64 bytes of header, code, name, parts.
 *
 *    0 magic "ZRT\0"       4 abi u16 = 1         6 target u16
 *    8 bytes of code      12 entry              16 buffers
 *   20 other parameters'  24 lanes of a warp    28 32 36 threads, 0: any
 *   40 bytes of LDS       44 vgprs  48 sgprs    52 threads at most
 *   56 offset of the name, 60 its bytes
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/zrt.h"

#include "base/hash.h"

#include <string.h>

enum { HEADER = 64, ABI = 1, PART = 8, SLOT_ROW = 12 };
#define TAG(a, b, c, d)                                         \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | \
     (uint32_t)(d) << 24)
#define TAG_SLOT TAG('S', 'L', 'O', 'T')
#define TAG_DBUG TAG('D', 'B', 'U', 'G')
#define TAG_SUM  TAG('S', 'U', 'M', '1')

static const uint8_t magic[4] = {'Z', 'R', 'T', 0};
/* Against accidents: whoever can write the file can write the sum. */
static const br_hash_key sum_key = {0x5a52543073756d31, 0x6272617373};

static const struct {
    uint16_t number;
    const char *name;
} targets[] = {
#define X(number, name) {number, name},
#include "cg/zrt.def"
#undef X
};

const char *
br_zrt_target_name(uint16_t target)
{
    for (size_t k = 0; k < BR_COUNT(targets); k++)
        if (targets[k].number == target)
            return targets[k].name;
    return NULL;
}

uint16_t
br_zrt_target(const char *name)
{
    for (size_t k = 0; k < BR_COUNT(targets); k++)
        if (strcmp(targets[k].name, name) == 0)
            return targets[k].number;
    return 0;
}

bool
br_zrt_is(const void *file, size_t n)
{
    return n >= sizeof magic && memcmp(file, magic, sizeof magic) == 0;
}

/* ---- written -------------------------------------------------------------- */

static void
put(br_str *out, uint64_t v, unsigned bytes)
{
    for (unsigned k = 0; k < bytes; k++)
        br_str_putc(out, (char)(v >> 8 * k));
}

static void
put_part(br_str *out, uint32_t tag, br_text t)
{
    put(out, tag, 4);
    put(out, t.n, 4);
    br_str_put(out, t.p, t.n);
    put(out, 0, -t.n & 3);
}

static void
put_header(br_str *out, const br_zrt *z)
{
    const uint32_t words[] = {(uint32_t)z->code.n,
                              z->entry,
                              z->buffers,
                              z->push_bytes,
                              z->subgroup,
                              z->workgroup[0],
                              z->workgroup[1],
                              z->workgroup[2],
                              z->lds_bytes,
                              z->vgprs,
                              z->sgprs,
                              z->occupancy,
                              HEADER + (uint32_t)z->code.n,
                              (uint32_t)z->name.n};

    br_str_put(out, (const char *)magic, sizeof magic);
    put(out, ABI, 2);
    put(out, z->target, 2);
    for (size_t k = 0; k < BR_COUNT(words); k++)
        put(out, words[k], 4);
}

br_code
br_zrt_write(br_str *out, const br_zrt *z, br_status *st)
{
    size_t from = out->n;
    br_str slots = {0};

    if (z->code.n + z->debug.n > BR_ZRT_MAX_BYTES / 2 ||
        z->name.n > BR_ZRT_MAX_NAME || z->slots.n > BR_ZRT_MAX_SLOTS)
        return br_fail(st, BR_E_LIMIT,
                       ".zrt: %zu bytes of code, %zu of lines and a name of "
                       "%zu are more than it takes",
                       z->code.n, z->debug.n, z->name.n);
    put_header(out, z);
    br_str_put(out, z->code.p, z->code.n);
    br_str_put(out, z->name.p, z->name.n);
    put(out, 0, (from - out->n) & 3);
    for (size_t k = 0; k < z->slots.n; k++) {
        const br_zrt_slot *s = &z->slots.at[k];

        put(&slots, s->at, 4);
        put(&slots, s->bytes, 4);
        put(&slots, s->name.n, 4);
        br_str_put(&slots, s->name.p, s->name.n);
    }
    if (slots.n)
        put_part(out, TAG_SLOT, (br_text){slots.at, slots.n});
    if (z->debug.n)
        put_part(out, TAG_DBUG, z->debug);
    put(out, TAG_SUM, 4);
    put(out, 8, 4);
    out->oom |= slots.oom;
    if (!out->oom)
        put(out, br_siphash13(sum_key, out->at + from, out->n - from), 8);
    br_str_fini(&slots);
    return out->oom ? br_fail(st, BR_E_OOM, ".zrt: out of memory") : BR_OK;
}

/* ---- read ----------------------------------------------------------------- */

static uint64_t
get(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned k = 0; k < bytes; k++)
        v |= (uint64_t)p[k] << 8 * k;
    return v;
}

static br_code
bad(br_status *st, const char *rule)
{
    return br_fail(st, BR_E_FORMAT, ".zrt: %s", rule);
}

static br_code
read_header(br_zrt *z, const uint8_t *p, size_t n, br_status *st)
{
    uint32_t *const words[] = {
        &z->entry,        &z->buffers,      &z->push_bytes,   &z->subgroup,
        &z->workgroup[0], &z->workgroup[1], &z->workgroup[2], &z->lds_bytes,
        &z->vgprs,        &z->sgprs,        &z->occupancy};
    uint32_t code, name_at, name_n;

    if (n >= 4 && memcmp(p, "TRZ", 4) == 0)
        return bad(st, "the magic is TRZ: its bytes are the wrong way round");
    if (!br_zrt_is(p, n))
        return bad(st, "the magic is not ZRT");
    if (n < HEADER)
        return bad(st, "shorter than its header of 64 bytes");
    if (get(p + 4, 2) != ABI)
        return br_fail(st, BR_E_UNSUPPORTED, ".zrt: abi version %u is not 1",
                       (unsigned)get(p + 4, 2));
    z->target = (uint16_t)get(p + 6, 2);
    code = (uint32_t)get(p + 8, 4);
    for (size_t k = 0; k < BR_COUNT(words); k++)
        *words[k] = (uint32_t)get(p + 12 + 4 * k, 4);
    name_at = (uint32_t)get(p + 56, 4);
    name_n = (uint32_t)get(p + 60, 4);
    if (!br_zrt_target_name(z->target))
        return br_fail(st, BR_E_UNSUPPORTED, ".zrt: there is no target 0x%x",
                       z->target);
    if (code > n - HEADER)
        return bad(st, "the code is longer than the file");
    if (code == 0 || z->entry >= code)
        return bad(st, "the entry lies outside of the code");
    if (name_n > BR_ZRT_MAX_NAME || name_at < HEADER + code || name_at > n ||
        name_n > n - name_at)
        return bad(st, "the name lies outside of its place");
    if (z->subgroup != 0 && z->subgroup != 32 && z->subgroup != 64)
        return bad(st,
                   "a warp has 32 lanes, or 64, or 0: as many as there are");
    if (z->lds_bytes > BR_ZRT_MAX_LDS)
        return bad(st, "more than 64 KiB of LDS");
    z->code = (br_text){(const char *)p + HEADER, code};
    z->name = (br_text){(const char *)p + name_at, name_n};
    return BR_OK;
}

static br_code
read_slots(br_zrt *z, const uint8_t *p, size_t n, br_status *st)
{
    while (n) {
        br_zrt_slot s;
        uint32_t name_n;

        if (n < SLOT_ROW || z->slots.n == BR_ZRT_MAX_SLOTS)
            return bad(st, "slots that end early, or too many of them");
        s.at = (uint32_t)get(p, 4);
        s.bytes = (uint32_t)get(p + 4, 4);
        name_n = (uint32_t)get(p + 8, 4);
        p += SLOT_ROW;
        n -= SLOT_ROW;
        if (name_n > n || name_n > BR_ZRT_MAX_NAME)
            return bad(st, "the name of a slot is longer than its part");
        if (s.at > z->code.n || s.bytes > z->code.n - s.at)
            return bad(st, "a slot lies outside of the code");
        s.name = (br_text){(const char *)p, name_n};
        p += name_n;
        n -= name_n;
        if (!br_vec_push(&z->slots, s))
            return br_fail(st, BR_E_OOM, ".zrt: out of memory");
    }
    return BR_OK;
}

br_code
br_zrt_read(br_zrt *z, const void *file, size_t n, br_status *st)
{
    const uint8_t *p = file;
    size_t at;

    memset(z, 0, sizeof *z);
    if (n > BR_ZRT_MAX_BYTES)
        return br_fail(st, BR_E_LIMIT, ".zrt: more than %d bytes",
                       BR_ZRT_MAX_BYTES);
    BR_TRY(read_header(z, p, n, st));
    at = (size_t)((const uint8_t *)z->name.p - p) + z->name.n;
    at = (at + 3) & ~(size_t)3;
    while (at < n) {
        uint32_t tag, bytes;

        if (n - at < PART || z->summed)
            return bad(st, "something lies behind its last part");
        tag = (uint32_t)get(p + at, 4);
        bytes = (uint32_t)get(p + at + 4, 4);
        if (bytes > n - at - PART)
            return bad(st, "a part is longer than the file");
        if (tag == TAG_SLOT)
            BR_TRY(read_slots(z, p + at + PART, bytes, st));
        else if (tag == TAG_DBUG)
            z->debug = (br_text){(const char *)p + at + PART, bytes};
        else if (tag != TAG_SUM || bytes != 8)
            return bad(st, "a part that is not known");
        else if (get(p + at + PART, 8) != br_siphash13(sum_key, p, at + PART))
            return bad(st, "the sum does not fit: the file was damaged");
        z->summed = tag == TAG_SUM;
        at += PART + (((size_t)bytes + 3) & ~(size_t)3);
    }
    return BR_OK;
}

void
br_zrt_fini(br_zrt *z)
{
    br_vec_fini(&z->slots);
}
