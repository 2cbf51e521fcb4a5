/* ptx_data.c - variables: declarations, initialisers, where they live.
 *
 *   .visible .global .align 4 .u32 tab[2][2] = {{1, 2}, {3}};
 *   .global .u64 p = generic(tab) + 8;
 *   .extern .shared .align 16 .b8 sh[];         the dynamic part
 *
 * A variable inside a function is the module's, with the function's name before
 * its own; .local and .param ones are bytes of the frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ALIGN = 1 << 20, REG_SPACE = 7 };

typedef struct px_late { /* an address in an initialiser */
    uint32_t var, reloc;
    br_text name;
    uint32_t line;
} px_late;

static unsigned
space_word(const px_parser *p)
{
    return px_is(p, ".global")   ? BR_KM_SPACE_GLOBAL
           : px_is(p, ".shared") ? BR_KM_SPACE_SHARED
           : px_is(p, ".const")  ? BR_KM_SPACE_CONST
           : px_is(p, ".local")  ? BR_KM_SPACE_LOCAL
           : px_is(p, ".param")  ? BR_KM_SPACE_PARAM
           : px_is(p, ".reg")    ? REG_SPACE
                                 : 0;
}

br_code
px_place(px_parser *p, uint32_t *top, uint64_t bytes, uint32_t align,
         uint32_t *at)
{
    uint64_t from = ((uint64_t)*top + align - 1) & ~(uint64_t)(align - 1);

    if (from + bytes > BR_KMAX_BYTES)
        return px_fail(p, "over %d bytes in one place", BR_KMAX_BYTES);
    *at = (uint32_t)from;
    *top = (uint32_t)(from + bytes);
    return BR_OK;
}

static br_code
number(px_parser *p, uint64_t most, uint64_t *out)
{
    px_opnd n;

    BR_TRY(px_constant(p, &n));
    if (n.kind != O_INT || n.imm > most)
        return px_fail(p, "a number up to %llu has to stand here",
                       (unsigned long long)most);
    *out = n.imm;
    return BR_OK;
}

static br_code
attributes(px_parser *p, px_decl *d)
{
    uint64_t n = 0;

    for (;;) {
        if (px_is(p, ".align")) {
            BR_TRY(px_next(p));
            BR_TRY(number(p, MAX_ALIGN, &n));
            if (n == 0 || (n & (n - 1)))
                return px_fail(p, "an alignment is a power of two");
            d->align = (uint32_t)n;
        } else if (px_is(p, ".ptr")) { /* .ptr .global .align 16 */
            BR_TRY(px_next(p));
            if (space_word(p))
                BR_TRY(px_next(p));
            if (px_is(p, ".align")) {
                BR_TRY(px_next(p));
                BR_TRY(px_next(p));
            }
        } else if (px_is(p, ".attribute")) {
            while (p->tok && p->tok != ')')
                BR_TRY(px_next(p));
            BR_TRY(px_expect(p, ')'));
        } else if (px_is(p, ".v2") || px_is(p, ".v4")) {
            d->vec = (uint32_t)(p->word.p[2] - '0');
            BR_TRY(px_next(p));
        } else if (p->tok == 'w' && p->word.p[0] == '.' && !d->type) {
            d->type = px_type((br_text){p->word.p + 1, p->word.n - 1});
            if (px_is(p, ".texref") || px_is(p, ".surfref")) {
                d->type = BR_KT_B64; /* the runtime knows what lies there */
                d->vec = BR_PTX_REF_BYTES / 8;
            }
            if (px_is(p, ".b128")) {
                d->type = BR_KT_B64;
                d->vec = 2;
            }
            if (!d->type || d->type == BR_KT_PRED)
                return px_fail(p, "'%.*s' is no type of a variable",
                               (int)BR_MIN(p->word.n, (size_t)40), p->word.p);
            BR_TRY(px_next(p));
        } else {
            return BR_OK;
        }
    }
}

/* From the space's word to what follows the name and its dimensions. */
br_code
px_declaration(px_parser *p, px_decl *d)
{
    uint64_t n = 0;

    *d = (px_decl){.space = space_word(p), .vec = 1};
    if (!d->space)
        return px_fail(p, "'%.*s' does not belong here",
                       (int)BR_MIN(p->word.n, (size_t)40), p->word.p);
    BR_TRY(px_next(p));
    if (p->tok == '[') { /* .const[2]: banks are one */
        BR_TRY(px_next(p));
        BR_TRY(px_next(p));
        BR_TRY(px_expect(p, ']'));
    }
    BR_TRY(attributes(p, d));
    if (p->tok != 'w' || !d->type)
        return px_fail(p, "a type and a name have to stand here");
    d->name = p->word;
    BR_TRY(px_next(p));
    BR_TRY(attributes(p, d));
    d->bytes = (uint64_t)br_ktinfo_of[d->type].bytes * d->vec;
    if (!d->align)
        d->align = (uint32_t)d->bytes;
    while (p->tok == '[') {
        BR_TRY(px_next(p));
        n = 0;
        d->open |= p->tok == ']';
        if (p->tok != ']')
            BR_TRY(number(p, BR_KMAX_BYTES, &n));
        if (br_mul_overflows(d->bytes, n, &d->bytes) ||
            d->bytes > BR_KMAX_BYTES)
            return px_fail(p, "a variable of over %d bytes", BR_KMAX_BYTES);
        BR_TRY(px_expect(p, ']'));
    }
    return BR_OK;
}

/* ---- initialisers ------------------------------------------------------- */

typedef BR_VEC(uint8_t) bytes;

static br_code
put_bytes(px_parser *p, bytes *b, uint64_t at, uint64_t v, unsigned n)
{
    if (at + n > BR_KMAX_BYTES || !br_vec_reserve(b, (size_t)at + n))
        return px_oom(p);
    while (b->n < at + n)
        b->at[b->n++] = 0;
    memcpy(b->at + at, &v, n);
    return BR_OK;
}

/* generic(name) + 4, name - 8 */
static br_code
address(px_parser *p, uint32_t var, uint64_t at, unsigned size)
{
    br_kreloc r = {.offset = (uint32_t)at, .bytes = size};
    br_kvar *v = &p->m->vars.at[var];
    bool paren = px_is(p, "generic");
    uint64_t plus = 0;
    px_late late = {
        .var = var, .reloc = (uint32_t)v->relocs.n, .line = p->line};

    if (size != 4 && size != 8)
        return px_fail(p, "an address has 32 or 64 bits");
    r.generic = paren;
    if (paren) {
        BR_TRY(px_next(p));
        BR_TRY(px_expect(p, '('));
    }
    late.name = p->word;
    if (p->tok != 'w')
        return px_fail(p, "a name has to stand here");
    BR_TRY(px_next(p));
    if (paren)
        BR_TRY(px_expect(p, ')'));
    BR_TRY(px_sum(p, &plus));
    r.addend = (int64_t)plus;
    if (r.addend > BR_KMAX_BYTES || r.addend < -BR_KMAX_BYTES)
        return px_fail(p, "over %d bytes from a name", BR_KMAX_BYTES);
    if (p->n_late == p->cap_late) {
        size_t cap = p->cap_late ? 2 * p->cap_late : 16;
        void *more = br_try_realloc(p->late, cap * sizeof *p->late);

        if (!more)
            return px_oom(p);
        p->late = more;
        p->cap_late = cap;
    }
    p->late[p->n_late++] = late;
    return br_vec_push(&v->relocs, r) ? BR_OK : px_oom(p);
}

static br_code
value(px_parser *p, const px_decl *d, uint32_t var, bytes *b, uint64_t at)
{
    unsigned size = br_ktinfo_of[d->type].bytes;
    px_opnd n;

    if (p->tok == 'w' && !px_is_number(p)) {
        BR_TRY(put_bytes(p, b, at, 0, size));
        return address(p, var, at, size);
    }
    BR_TRY(px_constant(p, &n));
    if (n.kind != O_INT && strchr("US", br_ktinfo_of[d->type].kind))
        return px_fail(p, "a decimal for a whole number of '.%s'",
                       br_ktinfo_of[d->type].text);
    if (n.kind == O_F64 && (d->type == BR_KT_F32 || d->type == BR_KT_B32))
        n.imm = br_f32_bits((float)br_f64_of(n.imm));
    return put_bytes(p, b, at, n.imm, size);
}

/* One level of braces at a time: `stride` bytes an element of this level. Where
 * a level is not written to its end, the rest is zeros. */
static br_code
initialiser(px_parser *p, const px_decl *d, uint32_t var, bytes *b)
{
    uint64_t at = 0;
    unsigned depth = 0, size = br_ktinfo_of[d->type].bytes;

    if (p->tok != '{')
        return value(p, d, var, b, 0);
    do {
        if (p->tok == '{') {
            if (++depth > 8)
                return px_fail(p, "braces over 8 deep");
            BR_TRY(px_next(p));
        } else if (p->tok == '}') {
            depth--;
            BR_TRY(px_next(p));
        } else if (p->tok == ',') {
            BR_TRY(px_next(p));
        } else {
            BR_TRY(value(p, d, var, b, at));
            at += size;
        }
    } while (depth);
    return BR_OK;
}

static br_code
initialise(px_parser *p, const px_decl *d, uint32_t var)
{
    bytes b = {0};
    br_code code = initialiser(p, d, var, &b);
    br_kvar *v = &p->m->vars.at[var];
    uint8_t *at;

    if (code == BR_OK && (d->open || v->bytes == 0))
        v->bytes = b.n;
    if (code == BR_OK && b.n > v->bytes)
        code = px_fail(p, "more values than the variable has room for");
    if (code == BR_OK) {
        at = br_arena_zero(&p->m->arena, (size_t)v->bytes + 1, 1);
        if (at && b.n)
            memcpy(at, b.at, b.n);
        v->init = at;
        code = at ? BR_OK : px_oom(p);
    }
    br_vec_fini(&b);
    return code;
}

/* ---- variables ---------------------------------------------------------- */

/* "fn.name", and with a number after it if that is taken. */
static br_text
inner_name(px_parser *p, br_text name, char *buf, size_t size)
{
    br_text fn = p->m->fns.at[p->fn].name;
    int n = snprintf(buf, size, "%.*s.%.*s", (int)BR_MIN(fn.n, size / 2 - 16),
                     fn.p, (int)BR_MIN(name.n, size / 2 - 16), name.p);
    unsigned k = 1;

    while (br_kir_find_var(p->m, (br_text){buf, strlen(buf)}) != BR_KNONE)
        snprintf(buf + n, size - (size_t)n, ".%u", k++);
    return br_text_z(buf);
}

static br_code
module_variable(px_parser *p, const px_decl *d, unsigned linkage, bool inner)
{
    char buf[400];
    uint32_t var = inner ? BR_KNONE : br_kir_find_var(p->m, d->name);
    br_kvar *v;

    if (var == BR_KNONE) {
        br_text name =
            inner ? inner_name(p, d->name, buf, sizeof buf) : d->name;

        var = br_kir_var(p->m, name);
        if (p->m->oom)
            return px_oom(p);
        BR_TRY(px_declare(p, d->name, S_VAR, var, 0, NULL));
    }
    v = &p->m->vars.at[var];
    v->space = (uint8_t)d->space;
    v->align = BR_MAX(v->align, d->align);
    v->bytes = BR_MAX(v->bytes, d->bytes);
    v->external = linkage == 2 && d->space == BR_KM_SPACE_SHARED;
    if (p->tok == '=') {
        BR_TRY(px_next(p));
        BR_TRY(initialise(p, d, var));
    }
    return BR_OK;
}

br_code
px_variable(px_parser *p, unsigned linkage)
{
    bool inner = p->scope != 0; /* braces are open */
    px_decl d;

    BR_TRY(px_declaration(p, &d));
    for (;;) {
        if (d.space == BR_KM_SPACE_LOCAL || d.space == BR_KM_SPACE_PARAM) {
            uint32_t at = 0;

            if (!inner)
                return px_fail(p, "this variable belongs into a function");
            BR_TRY(px_place(p, &p->m->fns.at[p->fn].frame_bytes, d.bytes,
                            d.align, &at));
            BR_TRY(px_declare(p, d.name, S_FRAME, at, 0, NULL));
        } else {
            BR_TRY(module_variable(p, &d, linkage, inner));
        }
        if (p->tok != ',')
            return px_expect(p, ';');
        BR_TRY(px_next(p));
        if (p->tok != 'w')
            return px_fail(p, "a name has to stand here");
        d.name = p->word;
        d.bytes = (uint64_t)br_ktinfo_of[d.type].bytes * d.vec;
        BR_TRY(px_next(p));
        if (p->tok == '[')
            return px_fail(p, "arrays have a declaration of their own");
    }
}

br_code
px_late_symbols(px_parser *p)
{
    uint64_t consts = 0;

    for (size_t k = 0; k < p->m->vars.n; k++)
        if (p->m->vars.at[k].space == BR_KM_SPACE_CONST)
            consts += p->m->vars.at[k].bytes;
    if (consts > BR_PTX_MAX_CONST)
        return px_fail(p, "%llu bytes of .const, over %d",
                       (unsigned long long)consts, BR_PTX_MAX_CONST);
    for (size_t k = 0; k < p->n_late; k++) {
        const px_late *l = &p->late[k];
        uint32_t var = br_kir_find_var(p->m, l->name);
        uint32_t fn = br_kir_find_fn(p->m, l->name);

        if (var == BR_KNONE && fn == BR_KNONE) {
            p->line = l->line;
            return px_fail(p, "an initialiser names '%.*s', which is not there",
                           (int)BR_MIN(l->name.n, (size_t)60), l->name.p);
        }
        p->m->vars.at[l->var].relocs.at[l->reloc].sym =
            var != BR_KNONE ? var : fn | BR_KFN_SYM;
    }
    return BR_OK;
}
