/* gcn_image.c - operands of image instructions.
 *
 * How many registers hold data and address is nowhere in the words: it follows
 * from the row (a bias, a depth to compare with, derivatives, a level), from the
 * dimension, from dmask and from whether they are of 16 bits.
 *
 *   gfx11   v[4:6]              one after another, 12 at most, else 16
 *           [v4, v9, v[2:3]]    one more word: four more registers, the last of
 *                               them the first of all that is left
 *   gfx12   [v4, v9, v[2:3]]    always; VIMAGE has room for five, VSAMPLE for
 *                               four
 *
 * A ray (bvh) is five groups of registers: node, extent, origin, direction,
 * inverse direction; with 16 bits the last two are one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include <string.h>

enum { MOST_WORDS = 12, ALL_WORDS = 16, GROUPS = 5 };

static br_gcn_kind
vgprs(unsigned n)
{
    br_gcn_kind k = br_gcn_kinds[BR_GK_v1];

    k.width = (uint8_t)n;
    return k;
}

/* ---- data ------------------------------------------------------------- */

static unsigned
data_words(const br_gcn_ctx *c)
{
    unsigned mask = br_gcn_get(c->in, BR_GF_dmask);
    unsigned n = c->row->flags & BR_RF_IFOUR ? 4
                 : mask ? (unsigned)__builtin_popcount(mask)
                        : 1;

    if (br_gcn_get(c->in, BR_GF_d16))
        n = (n + 1) / 2;
    return n + br_gcn_get(c->in, BR_GF_tfe);
}

/* The components that an instruction may ask for: an atomic moves one or two
 * of what it works on, a gather one of each of four texels. */
static bool
mask_legal(const br_gcn_ctx *c)
{
    unsigned mask = br_gcn_get(c->in, BR_GF_dmask);
    bool pair = strstr(c->row->name, "cmpswap") != NULL;

    /* LLVM 19 reads back no atomic of three or five registers and no gather of
     * three. */
    if (c->row->flags & BR_RF_IFOUR && data_words(c) == 3)
        return false;
    if (c->row->flags & BR_RF_IATOM && mask != 1 &&
        br_gcn_get(c->in, BR_GF_tfe))
        return false;
    if (c->row->flags & BR_RF_IATOM)
        return pair ? mask == 3 || mask == 15 : mask == 1 || mask == 3;
    return !(c->row->flags & BR_RF_IFOUR) || (mask && !(mask & (mask - 1)));
}

/* Samples have no levels and are not filtered. */
static bool
dim_legal(const br_gcn_ctx *c)
{
    bool samples = br_gcn_get(c->in, BR_GF_dim) >= 6;
    bool level = c->row->flags & BR_RF_ILOD && !(c->row->flags & BR_RF_INOXY);

    if (c->row->flags & BR_RF_IMSAA)
        return samples;
    return !samples || !(level || c->row->o[3].field == BR_GF_samp);
}

static bool
idata_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    br_gcn_kind v = vgprs(data_words(c));

    (void)k;
    if (br_gcn_get(c->in, BR_GF_d16) && c->row->flags & BR_RF_INOD16)
        return false;
    return mask_legal(c) && dim_legal(c) && br_gcn_how_reg.legal(c, f, &v);
}

static void
idata_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    br_gcn_kind v = vgprs(data_words(c));

    (void)k;
    /* As LLVM prints an address in pieces of an instruction with a sampler. */
    if (c->row->fmt == BR_FMT_MIMG && br_gcn_get(c->in, BR_GF_nsa) &&
        c->row->o[3].field == BR_GF_samp)
        br_str_putc(c->out, ' ');
    br_gcn_how_reg.print(c, f, &v);
}

/* Reads 1 to most registers; 0: none. */
static unsigned
any_vgprs(br_gcn_ctx *c, br_gcn_field f, unsigned most)
{
    for (unsigned n = 1; n <= most; n++) {
        br_gcn_kind v = vgprs(n);

        if (br_gcn_how_reg.parse(c, f, &v))
            return n;
    }
    return 0;
}

static bool
idata_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    c->image_data = any_vgprs(c, f, 5);
    return c->image_data != 0;
}

const br_gcn_how br_gcn_how_idata = {idata_legal, idata_print, idata_parse,
                                     false};

/* ---- addresses -------------------------------------------------------- */

/* The registers of each group of a ray; how many groups. */
static unsigned
ray_groups(const br_gcn_ctx *c, unsigned group[GROUPS])
{
    group[0] = c->row->flags & BR_RF_IBVH64 ? 2 : 1;
    group[1] = 1;
    group[2] = group[3] = group[4] = 3;
    return br_gcn_get(c->in, BR_GF_a16) ? 4 : 5;
}

/* The registers of an address. */
static unsigned
address_words(const br_gcn_ctx *c)
{
    /* by dimension: 1D 2D 3D cube, arrays of 1D and 2D, of samples */
    static const uint8_t axes[] = {1, 2, 3, 3, 2, 3, 3, 4};
    static const uint8_t slopes[] = {2, 4, 6, 4, 2, 4, 4, 4};
    uint64_t is = c->row->flags;
    unsigned dim = br_gcn_get(c->in, BR_GF_dim) & 7, group[GROUPS], n = 0;

    if (is & (BR_RF_IBVH | BR_RF_IBVH64)) {
        for (unsigned k = ray_groups(c, group); k--;)
            n += group[k];
        return n;
    }
    n = (is & BR_RF_INOXY ? 0 : axes[dim]) + !!(is & BR_RF_ILOD);
    if (br_gcn_get(c->in, BR_GF_a16))
        n = (n + 1) / 2;
    if (is & BR_RF_IGRAD) /* pairs of 16 bits are of one direction */
        n += is & BR_RF_IG16 ? (slopes[dim] / 2u + 1) / 2 * 2 : slopes[dim];
    return n + (unsigned)(is >> BR_RF_IEXTRA_AT & 3);
}

static br_gcn_field
piece(unsigned k)
{
    static const uint8_t fields[GROUPS] = {
        BR_GF_vaddr0, BR_GF_vaddr1, BR_GF_vaddr2, BR_GF_vaddr3, BR_GF_vaddr4};

    return (br_gcn_field)fields[k];
}

/* Registers of each piece of an address; how many pieces. In pieces: gfx12, and
 * gfx11 with a word more. */
static unsigned
pieces(const br_gcn_ctx *c, bool in_pieces, unsigned n[GROUPS])
{
    unsigned all = address_words(c), k = 0;
    unsigned room = c->row->fmt == BR_FMT_VSAMPLE ? 4 : 5;

    if (!in_pieces) {
        n[0] = all > MOST_WORDS ? ALL_WORDS : all;
        return 1;
    }
    if (c->row->flags & (BR_RF_IBVH | BR_RF_IBVH64))
        return ray_groups(c, n);
    for (; k < room && all; k++) {
        n[k] = k == room - 1 ? all : 1;
        all -= n[k];
    }
    return k;
}

static bool
in_pieces(const br_gcn_ctx *c)
{
    return c->row->fmt != BR_FMT_MIMG || br_gcn_get(c->in, BR_GF_nsa);
}

static bool
iaddr_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned n[GROUPS], count = pieces(c, in_pieces(c), n), i = 0;

    (void)f, (void)k;
    if (c->row->fmt == BR_FMT_MIMG && br_gcn_get(c->in, BR_GF_nsa) &&
        (br_gcn_get(c->in, BR_GF_nsa) > 1 || count == 1))
        return false;
    for (; i < count; i++) {
        br_gcn_kind v = vgprs(n[i]);

        if (!br_gcn_how_reg.legal(c, piece(i), &v))
            return false;
    }
    for (; i < GROUPS; i++)
        if (br_gcn_has(c->in, piece(i)) && br_gcn_get(c->in, piece(i)))
            return false;
    return true;
}

static void
iaddr_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned n[GROUPS], count = pieces(c, in_pieces(c), n);

    (void)f, (void)k;
    br_str_puts(c->out, count > 1 ? "[" : "");
    for (unsigned i = 0; i < count; i++) {
        br_gcn_kind v = vgprs(n[i]);

        br_str_puts(c->out, i ? ", " : "");
        br_gcn_how_reg.print(c, piece(i), &v);
    }
    br_str_puts(c->out, count > 1 ? "]" : "");
}

/* What the dimension and the rest asks for is seen at the end. */
static bool
iaddr_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    bool ray = c->row->flags & (BR_RF_IBVH | BR_RF_IBVH64);

    (void)k;
    memset(c->image_n, 0, sizeof c->image_n);
    if (!ray && !memmem(c->p, (size_t)(c->end - c->p), "dim:", 4))
        return false;
    if (!br_gcn_eat(c, "[")) {
        c->image_n[0] = (uint8_t)any_vgprs(c, f, ALL_WORDS);
        return c->image_n[0] != 0;
    }
    if (c->row->fmt == BR_FMT_MIMG) {
        br_gcn_set(c->in, BR_GF_nsa, 1);
        c->in->words = 3;
    }
    for (unsigned i = 0; i < GROUPS && br_gcn_has(c->in, piece(i)); i++) {
        c->image_n[i] = (uint8_t)any_vgprs(c, piece(i), MOST_WORDS);
        if (!c->image_n[i])
            return false;
        if (br_gcn_eat(c, "]"))
            return i > 0;
        if (!br_gcn_eat(c, ","))
            return false;
    }
    return false;
}

const br_gcn_how br_gcn_how_iaddr = {iaddr_legal, iaddr_print, iaddr_parse,
                                     false};

/* ---- all -------------------------------------------------------------- */

unsigned
br_gcn_more_words(const br_gcn_inst *in)
{
    return in->row->fmt == BR_FMT_MIMG && br_gcn_get(in, BR_GF_nsa) ? 1 : 0;
}

bool
br_gcn_image_kept(br_gcn_ctx *c)
{
    const br_gcn_opnd *o = c->row->o;
    unsigned n[GROUPS] = {0}, count;

    if (br_gcn_kinds[o[1].kind].how != &br_gcn_how_iaddr)
        return true;
    count = pieces(c, in_pieces(c), n);
    for (unsigned k = 0; k < GROUPS; k++)
        if (c->image_n[k] != (k < count ? n[k] : 0))
            return false;
    return !c->image_data || (c->image_data == data_words(c) &&
                              idata_legal(c, BR_GF_vdata, NULL));
}
