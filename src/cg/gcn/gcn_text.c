/* gcn_text.c - an instruction from words, to words, to text, from text.
 *
 * A row lists its operands, its format the modifiers that may follow. Reading
 * words checks each of them and that no other bit differs from what a fresh
 * instruction of the row has; so what is accepted encodes to the same words,
 * but for a literal that could have been an inline constant.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include <ctype.h>
#include <string.h>

const br_gcn_kind br_gcn_kinds[BR_GK_COUNT] = {
#define V      BR_A_V
#define S      BR_A_S
#define NULL_  BR_A_NULL
#define M0     BR_A_M0
#define EXEC   BR_A_EXEC
#define CONST  BR_A_CONST
#define SPEC   BR_A_SPEC
#define LIT    BR_A_LIT
#define LOW    BR_A_LOW
#define HALF   BR_A_HALF
#define NOSCC  BR_A_NOSCC
#define SPREAD BR_GCN_SPREAD
#define KIND(name, width, allow, style, arg, how) \
    [BR_GK_##                                     \
        name] = {#name, width, allow, BR_S_##style, arg, &br_gcn_how_##how},
#define KIND_(name, text, width, allow, style, arg, how) \
    [BR_GK_##name] = {text, width, allow, BR_S_##style, arg, &br_gcn_how_##how},
#include "cg/gcn/kinds.def"
#undef KIND
#undef KIND_
};

bool
br_gcn_has(const br_gcn_inst *in, br_gcn_field f)
{
    return f >= BR_GF_lit || br_gcn_formats[in->row->fmt].f[f].end;
}

const br_gcn_opnd *
br_gcn_next(const br_gcn_row *row, const br_gcn_opnd *o)
{
    const br_gcn_opnd *mods = br_gcn_formats[row->fmt].mods;

    o = o ? o + 1 : row->o;
    if (o->kind == BR_GK_END && !(row->flags & BR_RF_NOMODS) && o >= row->o &&
        o < row->o + BR_GCN_MAX_OPNDS)
        o = mods;
    return o->kind == BR_GK_END ? NULL : o;
}

void
br_gcn_fresh(br_gcn_inst *in, const br_gcn_row *row, const br_gcn_row *row_y,
             br_gcn_ext ext)
{
    const br_gcn_format *f = &br_gcn_formats[row->fmt];

    memset(in, 0, sizeof *in);
    in->row = row;
    in->row_y = row_y;
    in->ext = (uint8_t)ext;
    in->words = (uint8_t)(f->words + (ext != BR_EXT_NONE));
    in->w[0] = f->value;
    if (f->op_end > f->op_lo)
        in->w[0] |= (uint32_t)row->op << f->op_lo;
    if (row_y)
        br_gcn_set(in, BR_GF_opy, row_y->op);
    if (row->fmt == BR_FMT_VOP3P && !(row->flags & BR_RF_MIX)) {
        br_gcn_set(in, BR_GF_opsel_hi, 3);
        br_gcn_set(in, BR_GF_opsel_hi2, 1);
    }
    if (br_gcn_has(in, BR_GF_format))
        br_gcn_set(in, BR_GF_format, 1);
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o))
        if (br_gcn_kinds[o->kind].how == &br_gcn_how_fixed)
            br_gcn_set(in, o->field, (uint32_t)br_gcn_kinds[o->kind].arg);
    if (ext == BR_EXT_DPP8)
        br_gcn_set(in, BR_GF_src0, 233);
    if (ext == BR_EXT_DPP16) {
        br_gcn_set(in, BR_GF_src0, 250);
        br_gcn_set(in, BR_GF_xbank, 15);
        br_gcn_set(in, BR_GF_xrow, 15);
    }
}

/* ---- from words ------------------------------------------------------- */

static br_gcn_ext
ext_of(const br_gcn_inst *in, const br_gcn_row *row)
{
    br_gcn_ext ext = BR_EXT_NONE;
    const br_gcn_kind *k;

    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++) {
        uint32_t v = o->field < BR_GF_lit && o->field != BR_GF_none
                         ? br_gcn_get(in, o->field)
                         : 0;

        k = &br_gcn_kinds[o->kind];
        if (k->how == &br_gcn_how_literal || (k->allow & BR_A_LIT && v == 255))
            return BR_EXT_LIT;
        if (o->field != BR_GF_src0)
            continue;
        if ((v == 233 || v == 234) && row->flags & BR_RF_DPP8)
            ext = BR_EXT_DPP8;
        if (v == 250 && row->flags & BR_RF_DPP16)
            ext = BR_EXT_DPP16;
    }
    return ext;
}

static bool
dpp_ctrl_legal(uint32_t v)
{
    return v < 0x100 || (v > 0x100 && v < 0x130 && v & 15) || v == 0x140 ||
           v == 0x141 || (v >= 0x150 && v < 0x170);
}

/* Every operand of one row is legal; copies their fields to `copy`. */
static bool
row_legal(br_gcn_ctx *c, const br_gcn_row *row, br_gcn_inst *copy)
{
    c->row = row;
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o)) {
        const br_gcn_kind *k = &br_gcn_kinds[o->kind];

        if (k->how->legal && !k->how->legal(c, o->field, k))
            return false;
        if (o->field != BR_GF_none && k->how != &br_gcn_how_fixed)
            br_gcn_set(copy, o->field, br_gcn_get(c->in, o->field));
    }
    return true;
}

static bool
ext_legal(const br_gcn_inst *in, br_gcn_inst *copy)
{
    uint32_t w = in->w[in->words - 1], signs = 0;

    if (in->ext == BR_EXT_NONE)
        return true;
    copy->w[in->words - 1] = w;
    if (in->ext == BR_EXT_DPP8)
        br_gcn_set(copy, BR_GF_src0, br_gcn_get(in, BR_GF_src0));
    if (in->ext != BR_EXT_DPP16)
        return true;
    if (!br_gcn_has(in, BR_GF_neg))
        signs = (uint32_t)(in->row->flags >> 22 & 3);
    signs = (signs & 1) * 0x300000 + (signs >> 1) * 0xc00000;
    return dpp_ctrl_legal(br_gcn_get(in, BR_GF_xctrl)) &&
           !(w & (0xf20000 & ~signs));
}

static bool
try_row(const br_gcn_isa *isa, const br_gcn_row *row, const uint32_t *w,
        size_t n, br_gcn_inst *out)
{
    br_gcn_ctx c = {.isa = isa, .in = out};
    unsigned base = br_gcn_formats[row->fmt].words;
    const br_gcn_row *row_y = NULL;
    br_gcn_inst copy;
    br_gcn_ext ext;

    if (!br_gcn_row_here(isa->cpu, row) || row->flags & BR_RF_ALIAS || n < base)
        return false;
    memset(out, 0, sizeof *out);
    out->row = row;
    memcpy(out->w, w, base * 4);
    ext = ext_of(out, row);
    if (row->fmt == BR_FMT_VOPD) {
        row_y =
            br_gcn_row_of(isa->cpu, BR_FMT_VOPDY, br_gcn_get(out, BR_GF_opy));
        if (!row_y)
            return false;
        ext = ext == BR_EXT_NONE ? ext_of(out, row_y) : ext;
    }
    out->row_y = row_y;
    out->ext = (uint8_t)ext;
    out->words =
        (uint8_t)(base + (ext != BR_EXT_NONE) + br_gcn_more_words(out));
    if (n < out->words || out->words > BR_GCN_MAX_WORDS)
        return false;
    memcpy(out->w, w, out->words * 4u);
    br_gcn_fresh(&copy, row, row_y, ext);
    copy.words = out->words;
    return row_legal(&c, row, &copy) &&
           (!row_y || row_legal(&c, row_y, &copy)) && ext_legal(out, &copy) &&
           memcmp(copy.w, out->w, sizeof copy.w) == 0 && br_gcn_together(&c);
}

unsigned
br_gcn_decode(const br_gcn_isa *isa, const uint32_t *w, size_t n,
              br_gcn_inst *out)
{
    unsigned gen = isa->cpu->gen == 11 ? 1 : 2;
    size_t n_rows;
    const br_gcn_row *rows = br_gcn_rows(isa->cpu, &n_rows), *r;

    for (unsigned f = 0; n && f < BR_FMT_COUNT; f++) {
        const br_gcn_format *fm = &br_gcn_formats[f];
        unsigned op =
            fm->op_end > fm->op_lo
                ? *w >> fm->op_lo & ((1u << (fm->op_end - fm->op_lo)) - 1)
                : 0;

        if (!(fm->gens & gen) || (*w & fm->mask) != fm->value)
            continue;
        r = br_gcn_row_of(isa->cpu, (br_gcn_fmt)f, op);
        for (; r && r < rows + n_rows && r->fmt == f && r->op == op; r++)
            if (try_row(isa, r, w, n, out))
                return out->words;
    }
    memset(out, 0, sizeof *out);
    return 0;
}

/* ---- to text ---------------------------------------------------------- */

static size_t
stem(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);

    return n > s && strcmp(name + n - s, suffix) == 0 ? n - s : n;
}

static void
put_name(const br_gcn_inst *in, const br_gcn_row *row, br_str *out)
{
    bool dpp = in->ext == BR_EXT_DPP8 || in->ext == BR_EXT_DPP16;
    size_t n = strlen(row->name), e32 = stem(row->name, "_e32");

    if (!dpp) {
        br_str_put(out, row->name, n);
    } else if (br_gcn_has(in, BR_GF_src1)) {
        br_str_put(out, row->name, stem(row->name, "_e64"));
        br_str_puts(out, "_e64_dpp");
    } else {
        br_str_put(out, row->name, e32);
        br_str_puts(out, row->fmt == BR_FMT_VOPC ? "" : "_dpp");
    }
}

static void
put_dpp(const br_gcn_inst *in, br_str *out)
{
    uint32_t v;

    if (in->ext == BR_EXT_DPP8) {
        v = br_gcn_get(in, BR_GF_xlanes);
        for (unsigned k = 0; k < 8; k++)
            br_str_printf(out, "%s%u", k ? "," : " dpp8:[", v >> 3 * k & 7);
        br_str_puts(out, br_gcn_get(in, BR_GF_src0) == 234 ? "] fi:1" : "]");
        return;
    }
    v = br_gcn_get(in, BR_GF_xctrl);
    if (v < 0x100)
        br_str_printf(out, " quad_perm:[%u,%u,%u,%u]", v & 3, v >> 2 & 3,
                      v >> 4 & 3, v >> 6);
    else if (v == 0x140 || v == 0x141)
        br_str_puts(out, v & 1 ? " row_half_mirror" : " row_mirror");
    else
        br_str_printf(out, " %s:%u",
                      v < 0x110   ? "row_shl"
                      : v < 0x120 ? "row_shr"
                      : v < 0x130 ? "row_ror"
                      : v < 0x160 ? "row_share"
                                  : "row_xmask",
                      v & 15);
    br_str_printf(out, " row_mask:0x%x bank_mask:0x%x",
                  br_gcn_get(in, BR_GF_xrow), br_gcn_get(in, BR_GF_xbank));
    br_str_puts(out, br_gcn_get(in, BR_GF_xbc) ? " bound_ctrl:1" : "");
    br_str_puts(out, br_gcn_get(in, BR_GF_xfi) ? " fi:1" : "");
}

static void
put_row(br_gcn_ctx *c, const br_gcn_row *row)
{
    size_t begin, comma;
    bool first = true, spaced = false; /* an export's target has no comma */

    c->row = row;
    put_name(c->in, row, c->out);
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o)) {
        const br_gcn_kind *k = &br_gcn_kinds[o->kind];

        if (!k->how->print || k->how->mod)
            continue;
        begin = c->out->n;
        br_str_puts(c->out, first || spaced ? " " : ", ");
        comma = c->out->n;
        k->how->print(c, o->field, k);
        if (c->out->n == comma && c->out->at)
            c->out->at[c->out->n = begin] = 0;
        else
            first = false;
        spaced = k->how == &br_gcn_how_target;
    }
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o)) {
        const br_gcn_kind *k = &br_gcn_kinds[o->kind];

        if (k->how->print && k->how->mod)
            k->how->print(c, o->field, k);
    }
}

void
br_gcn_print(const br_gcn_isa *isa, const br_gcn_inst *in, br_str *out)
{
    br_gcn_inst copy = *in;
    br_gcn_ctx c = {.isa = isa, .in = &copy, .out = out};

    put_row(&c, in->row);
    if (in->row_y) {
        br_str_puts(out, " :: ");
        put_row(&c, in->row_y);
    }
    if (in->ext == BR_EXT_DPP8 || in->ext == BR_EXT_DPP16)
        put_dpp(in, out);
}

/* ---- from text -------------------------------------------------------- */

/* What a mnemonic asks for: a name without suffix, and which encoding. */
typedef struct wanted {
    char name[64];
    size_t n;
    bool e32, e64, dpp;
} wanted;

static bool
suffix(wanted *w, const char *z)
{
    size_t n = stem(w->name, z);

    if (n == w->n)
        return false;
    w->name[w->n = n] = 0;
    return true;
}

static bool
read_name(br_gcn_ctx *c, wanted *w)
{
    memset(w, 0, sizeof *w);
    br_gcn_space(c);
    while (c->p < c->end && w->n < sizeof w->name - 1 &&
           (isalnum((unsigned char)*c->p) || *c->p == '_'))
        w->name[w->n++] = *c->p++;
    w->dpp = suffix(w, "_dpp");
    w->e64 = suffix(w, "_e64");
    w->e32 = !w->dpp && !w->e64 && suffix(w, "_e32");
    return w->n > 0;
}

/* The name that an older one has now. */
static void
renew(const br_gcn_isa *isa, wanted *w)
{
    static const struct {
        uint8_t gens;
        const char *old, *now;
    } names[] = {
#define OLD(gens, old, now) {gens, #old, #now},
#include "cg/gcn/old.def"
#undef OLD
    };
    const unsigned gen = isa->cpu->gen == 11 ? 1 : 2;

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (names[k].gens & gen && strcmp(names[k].old, w->name) == 0) {
            w->n = strlen(names[k].now);
            memcpy(w->name, names[k].now, w->n + 1);
            return;
        }
}

static bool
is_name(const br_gcn_row *row, const wanted *w)
{
    size_t n;
    bool vop3 = br_gcn_formats[row->fmt].f[BR_GF_src1].end != 0;

    if (strncmp(row->name, w->name, w->n) != 0)
        return false; /* nearly always */
    n = stem(row->name, "_e32");
    n = n == strlen(row->name) ? stem(row->name, "_e64") : n;
    return n == w->n && memcmp(row->name, w->name, n) == 0 &&
           !(w->e32 && vop3) && !(w->e64 && !vop3) &&
           !(w->dpp && !w->e64 && vop3);
}

static br_gcn_ext
dpp_wanted(const br_gcn_ctx *c)
{
    static const char *const words[] = {
        "dpp8:",      "quad_perm:",      "row_shl:",   "row_shr:",  "row_ror:",
        "row_mirror", "row_half_mirror", "row_share:", "row_xmask:"};
    size_t n = (size_t)(c->end - c->p);

    for (size_t k = 0; k < BR_COUNT(words); k++)
        if (memmem(c->p, n, words[k], strlen(words[k])))
            return k ? BR_EXT_DPP16 : BR_EXT_DPP8;
    return BR_EXT_NONE;
}

/* The field that was written; none: there is nothing of the kind. */
static br_gcn_field
dpp8_parse(br_gcn_ctx *c)
{
    uint32_t lanes = 0;
    int64_t v;

    if (br_gcn_word(c, "fi")) {
        if (!br_gcn_eat(c, ":") || !br_gcn_int(c, 0, 1, &v))
            return BR_GF_none;
        br_gcn_set(c->in, BR_GF_src0, 233 + (uint32_t)v);
        return BR_GF_src0;
    }
    if (!br_gcn_word(c, "dpp8") || !br_gcn_eat(c, ":") || !br_gcn_eat(c, "["))
        return BR_GF_none;
    for (unsigned k = 0; k < 8; k++) {
        if ((k && !br_gcn_eat(c, ",")) || !br_gcn_int(c, 0, 7, &v))
            return BR_GF_none;
        lanes |= (uint32_t)v << 3 * k;
    }
    br_gcn_set(c->in, BR_GF_xlanes, lanes);
    return br_gcn_eat(c, "]") ? BR_GF_xlanes : BR_GF_none;
}

static bool
quad_parse(br_gcn_ctx *c)
{
    uint32_t q = 0;
    int64_t v;

    for (unsigned k = 0; k < 4; k++) {
        if (!br_gcn_eat(c, k ? "," : "[") || !br_gcn_int(c, 0, 3, &v))
            return false;
        q |= (uint32_t)v << 2 * k;
    }
    br_gcn_set(c->in, BR_GF_xctrl, q);
    return br_gcn_eat(c, "]");
}

static br_gcn_field
dpp16_parse(br_gcn_ctx *c)
{
    static const struct {
        const char *name;
        uint16_t field, base, lo, hi;
    } words[] = {
        {"row_shl", BR_GF_xctrl, 0x100, 1, 15},
        {"row_shr", BR_GF_xctrl, 0x110, 1, 15},
        {"row_ror", BR_GF_xctrl, 0x120, 1, 15},
        {"row_share", BR_GF_xctrl, 0x150, 0, 15},
        {"row_xmask", BR_GF_xctrl, 0x160, 0, 15},
        {"row_mask", BR_GF_xrow, 0, 0, 15},
        {"bank_mask", BR_GF_xbank, 0, 0, 15},
        {"bound_ctrl", BR_GF_xbc, 0, 0, 1},
        {"fi", BR_GF_xfi, 0, 0, 1},
    };
    int64_t v;

    if (br_gcn_word(c, "quad_perm"))
        return br_gcn_eat(c, ":") && quad_parse(c) ? BR_GF_xctrl : BR_GF_none;
    if (br_gcn_word(c, "row_mirror") || br_gcn_word(c, "row_half_mirror")) {
        br_gcn_set(c->in, BR_GF_xctrl, c->p[-8] == 'f' ? 0x141 : 0x140);
        return BR_GF_xctrl;
    }
    for (size_t k = 0; k < BR_COUNT(words); k++)
        if (br_gcn_word(c, words[k].name)) {
            if (!br_gcn_eat(c, ":") ||
                !br_gcn_int(c, words[k].lo, words[k].hi, &v))
                return BR_GF_none;
            br_gcn_set(c->in, (br_gcn_field)words[k].field,
                       words[k].base + (uint32_t)v);
            return (br_gcn_field)words[k].field;
        }
    return BR_GF_none;
}

/* No field twice: which of the two was meant? */
static bool
dpp_parse(br_gcn_ctx *c, bool *had)
{
    br_gcn_field f = c->in->ext == BR_EXT_DPP8    ? dpp8_parse(c)
                     : c->in->ext == BR_EXT_DPP16 ? dpp16_parse(c)
                                                  : BR_GF_none;

    if (f == BR_GF_none || had[f])
        return false;
    had[f] = true;
    return true;
}

static bool
parse_mods(br_gcn_ctx *c, const br_gcn_row *row)
{
    bool had[BR_GF_COUNT] = {false};
    uint32_t seen = 0;

    for (br_gcn_space(c); c->p < c->end && *c->p != ':'; br_gcn_space(c)) {
        const char *p = c->p;
        unsigned at = 0;
        bool ok = false;

        for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o && !ok;
             o = br_gcn_next(row, o), at++) {
            const br_gcn_kind *k = &br_gcn_kinds[o->kind];

            ok = k->how->mod && k->how->parse && !(seen >> at & 1) &&
                 k->how->parse(c, o->field, k);
            if (ok)
                seen |= 1u << at;
            else
                c->p = p;
        }
        if (!ok && !dpp_parse(c, had)) {
            c->p = p;
            return false;
        }
    }
    return true;
}

static bool
parse_row(br_gcn_ctx *c, const br_gcn_row *row)
{
    bool first = true, spaced = false;

    c->row = row;
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o)) {
        const br_gcn_kind *k = &br_gcn_kinds[o->kind];
        const char *p = c->p;

        if (k->how->mod || !k->how->parse)
            continue;
        if ((!first && !spaced && !br_gcn_eat(c, ",")) ||
            !k->how->parse(c, o->field, k)) {
            c->p = p;
            return false;
        }
        first = false;
        spaced = k->how == &br_gcn_how_target;
    }
    return parse_mods(c, row);
}

/* The second half of a dual instruction. */
static const br_gcn_row *
find_y(const br_gcn_cpu *cpu, const wanted *w)
{
    size_t n;
    const br_gcn_row *r = br_gcn_rows(cpu, &n);

    for (size_t k = 0; k < n; k++)
        if (r[k].fmt == BR_FMT_VOPDY && is_name(&r[k], w))
            return &r[k];
    return NULL;
}

/* One candidate; *far is how far any candidate came. */
static bool
try_text(br_gcn_ctx *c, const wanted *w, const br_gcn_row *row, br_gcn_ext ext,
         const char **far)
{
    const br_gcn_row *row_y = NULL;
    const char *p = c->p;
    wanted wy;
    bool ok;

    br_gcn_fresh(c->in, row, NULL, ext);
    c->lit_set = c->buffer = false;
    c->th_scope = c->n_addr = c->extra_data = c->image_data = 0;
    ok = parse_row(c, row);
    if (ok && row->fmt == BR_FMT_VOPD) {
        ok = br_gcn_eat(c, "::") && read_name(c, &wy);
        row_y = ok ? find_y(c->isa->cpu, &wy) : NULL;
        ok = row_y != NULL;
        if (ok) {
            c->in->row_y = row_y;
            br_gcn_set(c->in, BR_GF_opy, row_y->op);
            ok = parse_row(c, row_y);
        }
    }
    br_gcn_space(c);
    ok = ok && c->p == c->end && !(w->dpp && ext == BR_EXT_NONE);
    if (c->p > *far)
        *far = c->p;
    ok = ok && br_gcn_together(c);
    c->p = p;
    return ok;
}

br_code
br_gcn_parse(const br_gcn_isa *isa, const char *text, size_t n,
             br_gcn_inst *out, br_status *st)
{
    br_gcn_ctx c = {.isa = isa, .in = out, .p = text, .end = text + n};
    size_t n_rows, known = 0;
    const br_gcn_row *rows = br_gcn_rows(isa->cpu, &n_rows);
    const char *far = text;
    br_gcn_ext ext;
    wanted w;

    if (n > BR_GCN_MAX_TEXT)
        return br_fail(st, BR_E_FORMAT, "a line of more than %d bytes",
                       BR_GCN_MAX_TEXT);
    if (!read_name(&c, &w))
        return br_fail(st, BR_E_FORMAT, "no mnemonic");
    renew(isa, &w);
    ext = dpp_wanted(&c);
    for (size_t k = 0; k < n_rows; k++) {
        if (!is_name(&rows[k], &w) || !br_gcn_row_here(isa->cpu, &rows[k]) ||
            rows[k].fmt == BR_FMT_VOPDY)
            continue;
        known++;
        if ((ext == BR_EXT_DPP8 && !(rows[k].flags & BR_RF_DPP8)) ||
            (ext == BR_EXT_DPP16 && !(rows[k].flags & BR_RF_DPP16)))
            continue;
        if (try_text(&c, &w, &rows[k], ext, &far))
            return BR_OK;
    }
    memset(out, 0, sizeof *out);
    out->far = known ? (uint16_t)(far - text) : 0;
    if (!known)
        return br_fail(st, BR_E_FORMAT, "%s: no instruction of %s", w.name,
                       isa->cpu->name);
    if (far == c.end)
        return br_fail(st, BR_E_FORMAT, "%s: %s", w.name,
                       c.apart ? c.apart : "an operand is missing");
    return br_fail(st, BR_E_FORMAT, "%s: wrong operand at '%.*s'", w.name,
                   (int)BR_MIN(40, text + n - far), far);
}
