/* gcn_mem.c - operands of loads and stores.
 *
 * Here one field says how another is read: without scalar base a global
 * address is a pair, a buffer has as many address registers as idxen and offen
 * say, and tfe adds a register to the data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include <string.h>

enum { NO_SADDR = 124, EXEC_HI = 127 };

static const br_gcn_kind *
kind(br_gcn_kindid id)
{
    return &br_gcn_kinds[id];
}

static const br_gcn_kind *
vgprs(unsigned n)
{
    static const uint8_t ids[] = {0,        BR_GK_v1, BR_GK_v2,
                                  BR_GK_v3, BR_GK_v4, BR_GK_v5,
                                  BR_GK_v6, BR_GK_v7, BR_GK_v8};

    return n < BR_COUNT(ids) && n ? kind((br_gcn_kindid)ids[n]) : NULL;
}

/* Reads 1 to most vector registers; *n: how many. */
static bool
any_vgprs(br_gcn_ctx *c, br_gcn_field f, unsigned most, unsigned *n)
{
    for (*n = 1; *n <= most; ++*n)
        if (br_gcn_how_reg.parse(c, f, vgprs(*n)))
            return true;
    return false;
}

/* ---- global, scratch -------------------------------------------------- */

static unsigned
gaddr_dwords(const br_gcn_ctx *c)
{
    return br_gcn_get(c->in, BR_GF_saddr) == NO_SADDR ? 2 : 1;
}

static bool
gaddr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return br_gcn_how_reg.legal(c, f, vgprs(gaddr_dwords(c)));
}

static void
gaddr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    br_gcn_how_reg.print(c, f, vgprs(gaddr_dwords(c)));
}

static bool
gaddr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return any_vgprs(c, f, 2, &c->n_addr);
}

const br_gcn_how br_gcn_how_gaddr = {gaddr_legal, gaddr_print, gaddr_parse,
                                     false};

/* arg: dwords of the scalar base. */
static const br_gcn_kind *
saddr_kind(const br_gcn_kind *k)
{
    return kind(k->arg == 2 ? BR_GK_s2 : BR_GK_s1);
}

static bool
saddr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return br_gcn_get(c->in, f) == NO_SADDR ||
           (br_gcn_get(c->in, f) != EXEC_HI &&
            br_gcn_how_reg.legal(c, f, saddr_kind(k)));
}

static void
saddr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (br_gcn_get(c->in, f) == NO_SADDR)
        br_str_puts(c->out, "off");
    else
        br_gcn_how_reg.print(c, f, saddr_kind(k));
}

static bool
saddr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (br_gcn_word(c, "off"))
        br_gcn_set(c->in, f, NO_SADDR);
    else if (!br_gcn_how_reg.parse(c, f, saddr_kind(k)) ||
             br_gcn_get(c->in, f) == NO_SADDR ||
             br_gcn_get(c->in, f) == EXEC_HI)
        return false;
    return k->arg != 2 || !c->n_addr || c->n_addr == gaddr_dwords(c);
}

const br_gcn_how br_gcn_how_saddr = {saddr_legal, saddr_print, saddr_parse,
                                     false};

static void
svaddr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (br_gcn_get(c->in, BR_GF_sve))
        br_gcn_how_reg.print(c, f, vgprs(1));
    else
        br_str_puts(c->out, "off");
}

static bool
svaddr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return br_gcn_get(c->in, BR_GF_sve) || br_gcn_get(c->in, f) == 0;
}

static bool
svaddr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (br_gcn_word(c, "off"))
        return true;
    br_gcn_set(c->in, BR_GF_sve, 1);
    return br_gcn_how_reg.parse(c, f, vgprs(1));
}

const br_gcn_how br_gcn_how_svaddr = {svaddr_legal, svaddr_print, svaddr_parse,
                                      false};

/* ---- buffers ---------------------------------------------------------- */

static unsigned
baddr_dwords(const br_gcn_ctx *c)
{
    return br_gcn_get(c->in, BR_GF_idxen) + br_gcn_get(c->in, BR_GF_offen);
}

static bool
bvaddr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned n = baddr_dwords(c);

    (void)k;
    return n ? br_gcn_how_reg.legal(c, f, vgprs(n)) : br_gcn_get(c->in, f) == 0;
}

static void
bvaddr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (baddr_dwords(c))
        br_gcn_how_reg.print(c, f, vgprs(baddr_dwords(c)));
    else
        br_str_puts(c->out, "off");
}

static bool
bvaddr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    c->buffer = true;
    c->n_addr = 0;
    return br_gcn_word(c, "off") || any_vgprs(c, f, 2, &c->n_addr);
}

const br_gcn_how br_gcn_how_bvaddr = {bvaddr_legal, bvaddr_print, bvaddr_parse,
                                      false};

/* arg: dwords without tfe. */
static unsigned
bdata_dwords(const br_gcn_ctx *c, const br_gcn_kind *k)
{
    return (unsigned)k->arg + br_gcn_get(c->in, BR_GF_tfe);
}

static bool
bdata_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return br_gcn_how_reg.legal(c, f, vgprs(bdata_dwords(c, k)));
}

static void
bdata_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    br_gcn_how_reg.print(c, f, vgprs(bdata_dwords(c, k)));
}

static bool
bdata_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned n;

    if (!any_vgprs(c, f, (unsigned)k->arg + 1, &n) || n < (unsigned)k->arg)
        return false;
    c->extra_data = n - (unsigned)k->arg;
    return true;
}

const br_gcn_how br_gcn_how_bdata = {bdata_legal, bdata_print, bdata_parse,
                                     false};

/* ---- flags and offsets ------------------------------------------------ */

/* tfe adds a register to the data; what does not load data has no tfe. There
 * is no global data share after gfx11. */
static bool
flag_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (f == BR_GF_gds && br_gcn_get(c->in, f) && c->isa->cpu->gen > 11)
        return false;
    return f != BR_GF_tfe || !br_gcn_get(c->in, f) ||
           br_gcn_kinds[c->row->o[0].kind].how == &br_gcn_how_bdata ||
           br_gcn_kinds[c->row->o[0].kind].how == &br_gcn_how_idata;
}

static void
flag_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (br_gcn_get(c->in, f))
        br_str_printf(c->out, " %s", k->name);
}

static bool
flag_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (!br_gcn_word(c, k->name))
        return false;
    br_gcn_set(c->in, f, 1);
    return flag_legal(c, f, k);
}

const br_gcn_how br_gcn_how_flag = {flag_legal, flag_print, flag_parse, true};

/* width: bits; arg: 1 signed, 16 hexadecimal; allow: always printed. The value
 * is in the low bits of its field, the rest has to be zero. */
static int32_t
offset_get(const br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    if (k->arg & 1 && v >> (k->width - 1) & 1)
        return (int32_t)v - (1 << k->width);
    return (int32_t)v;
}

static bool
offset_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return k->width == 32 || !(br_gcn_get(c->in, f) >> k->width);
}

static void
offset_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int32_t v = offset_get(c, f, k);

    if (!v && !k->allow)
        return;
    if (k->arg & 16)
        br_str_printf(c->out, " %s:%s0x%x", k->name, v < 0 ? "-" : "",
                      v < 0 ? -v : v);
    else
        br_str_printf(c->out, " %s:%d", k->name, v);
}

static bool
offset_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int64_t lo = k->arg & 1 ? -(1ll << (k->width - 1)) : 0, v;
    int64_t hi = (1ll << (k->width - (k->arg & 1))) - 1;

    if (!br_gcn_word(c, k->name) || !br_gcn_eat(c, ":") ||
        !br_gcn_int(c, lo, hi, &v))
        return false;
    br_gcn_set(c->in, f, (uint32_t)v & ((1u << k->width) - 1));
    return true;
}

const br_gcn_how br_gcn_how_offset = {offset_legal, offset_print, offset_parse,
                                      true};

/* ---- ds_swizzle_b32 ---------------------------------------------------
 * Bit 15: four lanes by 2 bits each. Else and, or, xor masks of 5 bits on the
 * lane number; masks that only swap, reverse or broadcast have names. */

static void
put_masks(br_gcn_ctx *c, uint32_t v)
{
    br_str_puts(c->out, "BITMASK_PERM,\"");
    for (int bit = 4; bit >= 0; bit--) {
        bool and = v >> bit & 1, or = v >> (5 + bit) & 1,
             xor = v >> (10 + bit) & 1;

        br_str_putc(c->out, !and? (or ^xor) ? '1' : '0' : or ? (xor? '0' : '1')
                                                      : xor  ? 'i'
                                                             : 'p');
    }
    br_str_putc(c->out, '"');
}

static void
swizzle_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f), and = v & 31, or = v >> 5 & 31;
    uint32_t xor = v >> 10 & 31, size = 32 - and;

    (void)k;
    if (!v)
        return;
    if (v & 0x8000 && v & 0x7f00) {
        br_str_printf(c->out, " offset:%u", v);
        return;
    }
    br_str_puts(c->out, " offset:swizzle(");
    if (v & 0x8000)
        br_str_printf(c->out, "QUAD_PERM,%u,%u,%u,%u", v & 3, v >> 2 & 3,
                      v >> 4 & 3, v >> 6 & 3);
    else if (and == 31 && ! or &&__builtin_popcount(xor) == 1)
        br_str_printf(c->out, "SWAP,%u", xor);
    else if (and == 31 && ! or &&xor&&!(xor&(xor+1)))
        br_str_printf(c->out, "REVERSE,%u", xor+1);
    else if (size > 1 && !(size & (size - 1)) && or < size && !xor)
        br_str_printf(c->out, "BROADCAST,%u,%u", size, or);
    else
        put_masks(c, v);
    br_str_putc(c->out, ')');
}

/* "name" and then n numbers, each after a comma. */
static bool
swizzle_args(br_gcn_ctx *c, const char *name, int64_t *v, int n)
{
    if (!br_gcn_word(c, name))
        return false;
    for (int i = 0; i < n; i++)
        if (!br_gcn_eat(c, ",") || !br_gcn_int(c, 0, 32, &v[i]))
            return false;
    return true;
}

static bool
masks_parse(br_gcn_ctx *c, uint32_t *out)
{
    static const struct {
        char letter;
        uint16_t bits; /* and, or << 5, xor << 10 of lane bit 0 */
    } letters[] = {{'0', 0}, {'1', 1 << 5}, {'p', 1}, {'i', 1 | 1 << 10}};
    const char *p;

    if (!br_gcn_word(c, "BITMASK_PERM") || !br_gcn_eat(c, ",") ||
        !br_gcn_eat(c, "\"") || c->end - c->p < 6 || c->p[5] != '"')
        return false;
    p = c->p;
    *out = 0;
    for (int bit = 4; bit >= 0; bit--, p++) {
        size_t i = 0;

        while (i < BR_COUNT(letters) && letters[i].letter != *p)
            i++;
        if (i == BR_COUNT(letters))
            return false;
        *out |= (uint32_t)letters[i].bits << bit;
    }
    c->p = p + 1;
    return true;
}

static bool
swizzle_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int64_t a[4];
    uint32_t v;

    (void)k;
    if (!br_gcn_word(c, "offset") || !br_gcn_eat(c, ":"))
        return false;
    if (br_gcn_int(c, 0, 0xffff, &a[0])) {
        br_gcn_set(c->in, f, (uint32_t)a[0]);
        return true;
    }
    if (!br_gcn_word(c, "swizzle") || !br_gcn_eat(c, "("))
        return false;
    if (swizzle_args(c, "QUAD_PERM", a, 4)) {
        v = (uint32_t)(0x8000 | a[0] | a[1] << 2 | a[2] << 4 | a[3] << 6);
        if ((a[0] | a[1] | a[2] | a[3]) & ~3)
            return false;
    } else if (swizzle_args(c, "SWAP", a, 1) ||
               swizzle_args(c, "REVERSE", a, 1)) {
        bool swap = c->p[-1] && memmem(c->p - 8, 8, "SWAP", 4);

        if (a[0] < (swap ? 1 : 2) || a[0] > (swap ? 16 : 32) ||
            a[0] & (a[0] - 1))
            return false;
        v = (uint32_t)(31 | (swap ? a[0] : a[0] - 1) << 10);
    } else if (swizzle_args(c, "BROADCAST", a, 2)) {
        if (a[0] < 2 || a[0] & (a[0] - 1) || a[1] >= a[0])
            return false;
        v = (uint32_t)((32 - a[0]) | a[1] << 5);
    } else if (!masks_parse(c, &v)) {
        return false;
    }
    br_gcn_set(c->in, f, v);
    return br_gcn_eat(c, ")");
}

const br_gcn_how br_gcn_how_swizzle = {NULL, swizzle_print, swizzle_parse,
                                       true};

/* ---- scalar loads ----------------------------------------------------- */

static unsigned
smem_bits(const br_gcn_ctx *c)
{
    return br_gcn_width(c->in, BR_GF_ioffset);
}

static int32_t
smem_offset(const br_gcn_ctx *c)
{
    uint32_t v = br_gcn_get(c->in, BR_GF_ioffset);
    unsigned bits = smem_bits(c);

    return v >> (bits - 1) ? (int32_t)v - (1 << bits) : (int32_t)v;
}

static void
put_hex(br_gcn_ctx *c, int32_t v)
{
    br_str_printf(c->out, "%s0x%x", v < 0 ? "-" : "", v < 0 ? -v : v);
}

static bool
smoff_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return br_gcn_how_reg.legal(c, f, kind(BR_GK_s1));
}

/* A scalar register, or no register and the number. */
static void
smoff_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int32_t v = smem_offset(c);
    bool none = br_gcn_get(c->in, f) == NO_SADDR;

    (void)k;
    if (none && (v || c->isa->cpu->gen > 11))
        put_hex(c, v);
    else
        br_gcn_how_reg.print(c, f, kind(BR_GK_s1));
}

/* Buffers of gfx11 have no negative offsets. */
static bool
smofs_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    (void)k;
    return c->isa->cpu->gen > 11 || !strstr(c->row->name, "buffer") ||
           smem_offset(c) >= 0;
}

static bool
smem_int(br_gcn_ctx *c)
{
    int64_t half = 1ll << (smem_bits(c) - 1), v;
    bool buffer = c->isa->cpu->gen == 11 && strstr(c->row->name, "buffer");

    if (!br_gcn_int(c, buffer ? 0 : -half, half - 1, &v))
        return false;
    br_gcn_set(c->in, BR_GF_ioffset, (uint32_t)v & (uint32_t)(2 * half - 1));
    return true;
}

static bool
smoff_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (!br_gcn_how_reg.parse(c, f, kind(BR_GK_s1))) {
        br_gcn_set(c->in, f, NO_SADDR);
        return smem_int(c);
    }
    return true;
}

const br_gcn_how br_gcn_how_smoff = {smoff_legal, smoff_print, smoff_parse,
                                     false};

static void
smofs_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int32_t v = smem_offset(c);

    (void)f;
    (void)k;
    if (br_gcn_get(c->in, BR_GF_soffset) == NO_SADDR ||
        (!v && c->isa->cpu->gen == 11))
        return;
    br_str_puts(c->out, " offset:");
    put_hex(c, v);
}

static bool
smofs_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    (void)k;
    return br_gcn_get(c->in, BR_GF_soffset) != NO_SADDR &&
           br_gcn_word(c, "offset") && br_gcn_eat(c, ":") && smem_int(c);
}

const br_gcn_how br_gcn_how_smofs = {smofs_legal, smofs_print, smofs_parse,
                                     true};

/* The offset of a prefetch, an operand of its own. */
static void
smimm_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    (void)k;
    put_hex(c, smem_offset(c));
}

static bool
smimm_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    (void)k;
    return smem_int(c);
}

const br_gcn_how br_gcn_how_smimm = {NULL, smimm_print, smimm_parse, false};

/* ---- attributes and exports ------------------------------------------- */

static const char channels[] = "xyzw";

static void
attr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    br_str_printf(c->out, "attr%u.%c", br_gcn_get(c->in, f),
                  channels[br_gcn_get(c->in, BR_GF_attr_chan)]);
}

static bool
attr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return br_gcn_get(c->in, f) <= 32;
}

static bool
attr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    const char *at;
    int64_t v = 0;
    int digits = 0;

    (void)k;
    if (!br_gcn_eat(c, "attr"))
        return false;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9' && digits < 3;
         digits++)
        v = v * 10 + *c->p++ - '0';
    if (!digits || v > 32 || c->p + 1 >= c->end || *c->p++ != '.')
        return false;
    at = memchr(channels, *c->p++, 4);
    if (!at)
        return false;
    br_gcn_set(c->in, f, (uint32_t)v);
    br_gcn_set(c->in, BR_GF_attr_chan, (uint32_t)(at - channels));
    return true;
}

const br_gcn_how br_gcn_how_attr = {attr_legal, attr_print, attr_parse, false};

/* arg: which bit of `en` switches the source on. */
static void
expsrc_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (br_gcn_get(c->in, BR_GF_en) >> k->arg & 1)
        br_gcn_how_reg.print(c, f, vgprs(1));
    else
        br_str_puts(c->out, "off");
}

static bool
expsrc_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return br_gcn_get(c->in, BR_GF_en) >> k->arg & 1 ||
           br_gcn_get(c->in, f) == 0;
}

static bool
expsrc_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    if (br_gcn_word(c, "off"))
        return true;
    br_gcn_set(c->in, BR_GF_en, br_gcn_get(c->in, BR_GF_en) | 1u << k->arg);
    return br_gcn_how_reg.parse(c, f, vgprs(1));
}

const br_gcn_how br_gcn_how_expsrc = {expsrc_legal, expsrc_print, expsrc_parse,
                                      false};
