/* gcn_sym.c - immediates with names: waits, messages, hardware registers.
 *
 * Three shapes cover them: a number (num), one of a table of names
 * (symbols.def) and a list of named groups of bits, where groups that say
 * nothing are left out: `vmcnt(0) lgkmcnt(1)`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include <string.h>

/* ---- tables of names -------------------------------------------------- */

typedef enum table {
    T_none,
    T_hwreg,
    T_msg,
    T_format,
    T_dim,
    T_instid,
    T_instskip,
    T_version,
    T_scope,
    T_th_load,
    T_th_store,
    T_th_atomic,
    T_target,
} table;

static const struct {
    uint8_t table, gens;
    uint16_t value;
    const char *name;
} symbols[] = {
#define SYM(table, gens, value, name) {T_##table, gens, value, name},
#include "cg/gcn/symbols.def"
#undef SYM
};

static unsigned
gens_of(const br_gcn_ctx *c)
{
    return c->isa->cpu->gen == 11 ? 1 : 2;
}

static const char *
name_of(const br_gcn_ctx *c, table t, unsigned v)
{
    for (size_t i = 0; i < BR_COUNT(symbols); i++)
        if (symbols[i].table == t && symbols[i].value == v &&
            symbols[i].gens & gens_of(c))
            return symbols[i].name;
    return NULL;
}

static bool
read_symbol(br_gcn_ctx *c, table t, unsigned *v)
{
    for (size_t i = 0; i < BR_COUNT(symbols); i++)
        if (symbols[i].table == t && symbols[i].gens & gens_of(c) &&
            br_gcn_word(c, symbols[i].name)) {
            *v = symbols[i].value;
            return true;
        }
    return false;
}

/* ---- numbers ---------------------------------------------------------- */

/* arg: 10 or 16, or 0: decimal up to 64, then hexadecimal. */
static void
num_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    if (k->arg == 1 && !v)
        return;
    br_str_printf(c->out, k->arg == 16 || (!k->arg && v > 64) ? "0x%x" : "%u",
                  v);
}

static bool
num_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned bits = BR_MIN(k->width, br_gcn_width(c->in, f));
    int64_t v, lo = bits == 16 ? -32768 : 0;

    if (k->arg == 1 && (br_gcn_space(c), c->p == c->end))
        return true;
    if (!br_gcn_int(c, lo, (1ll << bits) - 1, &v))
        return false;
    br_gcn_set(c->in, f, (uint32_t)v & (uint32_t)((1ull << bits) - 1));
    return true;
}

static bool
num_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return k->width >= br_gcn_width(c->in, f) ||
           !(br_gcn_get(c->in, f) >> k->width);
}

const br_gcn_how br_gcn_how_num = {num_legal, num_print, num_parse, false};

/* ---- groups of bits --------------------------------------------------- */

typedef struct group {
    const char *name;
    uint8_t lo, bits, table;
    uint16_t off; /* what says nothing */
} group;

static const struct {
    group g[7];
    uint16_t fresh;   /* all groups off, in the encoding */
    uint16_t unused;  /* bits that are no group */
    const char *join; /* between groups */
} lists[] = {
    /* s_waitcnt */
    {{{"vmcnt", 10, 6, 0, 63},
      {"expcnt", 0, 3, 0, 7},
      {"lgkmcnt", 4, 6, 0, 63}},
     0xfff7,
     0x0008,
     " "},
    /* s_waitcnt_depctr, s_wait_alu */
    {{{"depctr_hold_cnt", 7, 1, 0, 1},
      {"depctr_sa_sdst", 0, 1, 0, 1},
      {"depctr_va_vdst", 12, 4, 0, 15},
      {"depctr_va_sdst", 9, 3, 0, 7},
      {"depctr_va_ssrc", 8, 1, 0, 1},
      {"depctr_va_vcc", 1, 1, 0, 1},
      {"depctr_vm_vsrc", 2, 3, 0, 7}},
     0xff9f,
     0x0060,
     " "},
    /* s_delay_alu */
    {{{"instid0", 0, 4, T_instid, 0},
      {"instskip", 4, 3, T_instskip, 0},
      {"instid1", 7, 4, T_instid, 0}},
     0,
     0xf800,
     " | "},
};

static uint32_t
group_get(const group *g, uint32_t v)
{
    return v >> g->lo & ((1u << g->bits) - 1);
}

/* Lists whose unused bits may be set are then a plain number. */
static bool
list_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    for (const group *g = lists[k->arg].g; g < lists[k->arg].g + 7 && g->name;
         g++)
        if (g->table && !name_of(c, (table)g->table, group_get(g, v)))
            return false;
    return k->arg == 1 ||
           ((v ^ lists[k->arg].fresh) & lists[k->arg].unused) == 0;
}

static void
list_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f), fresh = lists[k->arg].fresh;
    const char *join = "";

    if ((v ^ fresh) & lists[k->arg].unused) {
        br_str_printf(c->out, "0x%x", v);
        return;
    }
    if (v == fresh && !fresh) {
        br_str_putc(c->out, '0');
        return;
    }
    for (const group *g = lists[k->arg].g; g < lists[k->arg].g + 7 && g->name;
         g++) {
        uint32_t x = group_get(g, v);

        if (x == g->off && v != fresh)
            continue;
        br_str_puts(c->out, join);
        join = lists[k->arg].join;
        if (g->table)
            br_str_printf(c->out, "%s(%s)", g->name,
                          name_of(c, (table)g->table, x));
        else
            br_str_printf(c->out, "%s(%u)", g->name, x);
    }
}

static bool
list_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = lists[k->arg].fresh, seen = 0;
    const group *g;
    unsigned sym;
    int64_t x;

    if (br_gcn_int(c, 0, 0xffff, &x)) {
        br_gcn_set(c->in, f, (uint32_t)x);
        return true;
    }
    do {
        for (g = lists[k->arg].g; g < lists[k->arg].g + 7 && g->name; g++)
            if (br_gcn_word(c, g->name))
                break;
        if (g == lists[k->arg].g + 7 || !g->name || seen >> g->lo & 1 ||
            !br_gcn_eat(c, "("))
            return false;
        seen |= 1u << g->lo;
        if (g->table) {
            if (!read_symbol(c, (table)g->table, &sym))
                return false;
            x = sym;
        } else if (!br_gcn_int(c, 0, (1 << g->bits) - 1, &x)) {
            return false;
        }
        if (!br_gcn_eat(c, ")"))
            return false;
        v = (v & ~(((1u << g->bits) - 1) << g->lo)) | (uint32_t)x << g->lo;
        br_gcn_space(c);
    } while (br_gcn_eat(c, "|") || br_gcn_eat(c, "&") || br_gcn_eat(c, ",") ||
             c->p < c->end);
    br_gcn_set(c->in, f, v);
    return true;
}

const br_gcn_how br_gcn_how_list = {list_legal, list_print, list_parse, false};

/* ---- messages, hardware registers, versions --------------------------- */

static bool
msg_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    (void)k;
    return v < 256 || !name_of(c, T_msg, v & 255);
}

static void
msg_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);
    const char *name = name_of(c, T_msg, v);

    (void)k;
    if (name)
        br_str_printf(c->out, "sendmsg(%s)", name);
    else
        br_str_printf(c->out, v < 256 ? "sendmsg(%u, 0, 0)" : "%u", v);
}

static bool
msg_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned bits = br_gcn_width(c->in, f), v;
    int64_t x, zero;

    (void)k;
    if (br_gcn_word(c, "sendmsg")) {
        if (!br_gcn_eat(c, "("))
            return false;
        if (read_symbol(c, T_msg, &v))
            x = v;
        else if (!br_gcn_int(c, 0, 255, &x))
            return false;
        while (br_gcn_eat(c, ","))
            if (!br_gcn_int(c, 0, 0, &zero))
                return false;
        if (!br_gcn_eat(c, ")"))
            return false;
    } else if (!br_gcn_int(c, 0, (1 << bits) - 1, &x)) {
        return false;
    }
    br_gcn_set(c->in, f, (uint32_t)x);
    return true;
}

const br_gcn_how br_gcn_how_msg = {msg_legal, msg_print, msg_parse, false};

static void
hwreg_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f), size = (v >> 11) + 1;
    const char *name = name_of(c, T_hwreg, v & 63);

    (void)k;
    if (name)
        br_str_printf(c->out, "hwreg(%s", name);
    else
        br_str_printf(c->out, "hwreg(%u", v & 63);
    if (size != 32 || v >> 6 & 31)
        br_str_printf(c->out, ", %u, %u", v >> 6 & 31, size);
    br_str_putc(c->out, ')');
}

static bool
hwreg_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int64_t id, off = 0, size = 32;
    unsigned v;

    (void)k;
    if (br_gcn_int(c, 0, 0xffff, &id)) {
        br_gcn_set(c->in, f, (uint32_t)id);
        return true;
    }
    if (!br_gcn_word(c, "hwreg") || !br_gcn_eat(c, "("))
        return false;
    if (read_symbol(c, T_hwreg, &v))
        id = v;
    else if (!br_gcn_int(c, 0, 63, &id))
        return false;
    if (br_gcn_eat(c, ",") &&
        (!br_gcn_int(c, 0, 31, &off) || !br_gcn_eat(c, ",") ||
         !br_gcn_int(c, 1, 32, &size)))
        return false;
    if (!br_gcn_eat(c, ")"))
        return false;
    br_gcn_set(c->in, f,
               (uint32_t)id | (uint32_t)off << 6 | (uint32_t)(size - 1) << 11);
    return true;
}

const br_gcn_how br_gcn_how_hwreg = {NULL, hwreg_print, hwreg_parse, false};

static void
version_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);
    const char *name = name_of(c, T_version, v & 0xff);
    int open = __builtin_popcount(v >> 13) - 1;

    (void)k;
    if (v & 0x1f00) {
        br_str_printf(c->out, "0x%x", v);
        return;
    }
    for (int n = 0; n < open; n++)
        br_str_putc(c->out, '(');
    if (name)
        br_str_puts(c->out, name);
    else
        br_str_printf(c->out, "%u", v & 0xff);
    for (unsigned bit = 13; bit < 16; bit++)
        if (v >> bit & 1) {
            br_str_printf(c->out, "|%s", name_of(c, T_version, 1u << bit));
            br_str_puts(c->out, open-- > 0 ? ")" : "");
        }
}

static bool
version_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = 0;
    unsigned sym, depth = 0;
    int64_t x;

    (void)k;
    do {
        while (br_gcn_eat(c, "("))
            depth++;
        if (read_symbol(c, T_version, &sym))
            v |= sym;
        else if (br_gcn_int(c, 0, 0xffff, &x))
            v |= (uint32_t)x;
        else
            return false;
        while (depth && br_gcn_eat(c, ")"))
            depth--;
    } while (br_gcn_eat(c, "|"));
    br_gcn_set(c->in, f, v);
    return depth == 0;
}

const br_gcn_how br_gcn_how_version = {NULL, version_print, version_parse,
                                       false};

/* ---- modifiers with names: format:[..] dim:.. th:.. scope:.. ---------- */

/* Which names `th` has: stores, atomics and the rest differ. */
static table
th_table(const br_gcn_ctx *c)
{
    return strstr(c->row->name, "store")    ? T_th_store
           : strstr(c->row->name, "atomic") ? T_th_atomic
                                            : T_th_load;
}

/* Above the table: what a value means together with the scope. */
static uint32_t
th_value(const br_gcn_ctx *c, uint32_t v, table t)
{
    bool sys = br_gcn_get(c->in, BR_GF_scope) == 3;

    if (t == T_th_atomic)
        return v >= 4 && br_gcn_get(c->in, BR_GF_scope) > 1 ? v + 8 : v;
    return v == 3 && sys ? 11 : v;
}

/* At system scope atomics with bit 2 have one name for two values; the odd ones
 * cannot be said. */
static bool
th_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);
    table t = th_table(c);

    (void)k;
    if (t == T_th_atomic && v == 3 && br_gcn_get(c->in, BR_GF_scope) == 3)
        return false;
    return !v || name_of(c, t, th_value(c, v, t));
}

static void
th_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);
    table t = th_table(c);

    (void)k;
    if (v)
        br_str_printf(c->out, " th:%s", name_of(c, t, th_value(c, v, t)));
}

static bool
th_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned v;

    (void)k;
    if (!br_gcn_word(c, "th") || !br_gcn_eat(c, ":") ||
        !read_symbol(c, th_table(c), &v))
        return false;
    c->th_scope = v < 8 ? 0 : th_table(c) == T_th_atomic ? 2 : 3;
    v = v >= 8 ? v - 8 : v;
    if (v >> br_gcn_width(c->in, f))
        return false;
    br_gcn_set(c->in, f, v);
    return true;
}

const br_gcn_how br_gcn_how_th = {th_legal, th_print, th_parse, true};

/* sym: arg is the table, width the value that is not printed.
 * Untyped loads and stores have the format of a fresh instruction. */
static bool
sym_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return k->arg != T_format || *c->row->name == 't' ||
           br_gcn_get(c->in, f) == 1;
}

static void
sym_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);
    const char *name = name_of(c, (table)k->arg, v);
    bool bracket = k->arg == T_format;

    if (v == k->width)
        return;
    if (name)
        br_str_printf(c->out, bracket ? " %s:[%s]" : " %s:%s", k->name, name);
    else
        br_str_printf(c->out, " %s:%u", k->name, v);
}

static bool
sym_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned v, bits = br_gcn_width(c->in, f);
    bool bracket;
    int64_t x;

    if (!br_gcn_word(c, k->name) || !br_gcn_eat(c, ":"))
        return false;
    bracket = k->arg == T_format && br_gcn_eat(c, "[");
    if (read_symbol(c, (table)k->arg, &v))
        x = v;
    else if (bracket || !br_gcn_int(c, 0, (1 << bits) - 1, &x))
        return false;
    br_gcn_set(c->in, f, (uint32_t)x);
    return sym_legal(c, f, k) && (!bracket || br_gcn_eat(c, "]"));
}

const br_gcn_how br_gcn_how_sym = {sym_legal, sym_print, sym_parse, true};

/* ---- exports ---------------------------------------------------------- */

static bool
target_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return name_of(c, T_target, br_gcn_get(c->in, f)) != NULL;
}

static void
target_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    br_str_puts(c->out, name_of(c, T_target, br_gcn_get(c->in, f)));
}

static bool
target_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    unsigned v;

    (void)k;
    if (!read_symbol(c, T_target, &v))
        return false;
    br_gcn_set(c->in, f, v);
    return true;
}

const br_gcn_how br_gcn_how_target = {target_legal, target_print, target_parse,
                                      false};
