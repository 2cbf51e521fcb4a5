/* kir_parse.c - the kernel IR from its text (kir_print.c shows it).
 *
 * One pass. An argument may name a result further down (a phi's), so %N is
 * kept as a number until the function ends; constants take the class that the
 * signature gives them. What comes out is verified before anybody sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"
#include "cg/kir.h"

#include <string.h>

enum { MAX_BLOCKS = 1 << 20 };
#define LATE 0x80000000u /* in an argument: a number of the text */

typedef struct parser {
    br_kir *m;
    br_kfn *f; /* NULL between functions */
    uint32_t fn;
    br_status *st;
    br_words in;
    uint32_t blk;
    BR_VEC(uint32_t) num; /* number -> value */
    /* phi arguments say their block; checked when the edges are known. */
    BR_VEC(uint32_t) from; /* its own block, place, the block it names */
    /* symbols of functions may stand further down. */
    struct {
        uint32_t fn, ins; /* ins BR_KNONE: a reloc of variable fn */
        uint32_t place;
        br_text name;
    } * late;
    size_t n_late, cap_late;
} parser;

static br_code
wrong(const parser *p, const char *rule, br_text word)
{
    return br_words_wrong(&p->in, rule, word, p->st);
}

static bool
number(br_text t, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    bool hex = t.n > 2 && t.p[0] == '0' && t.p[1] == 'x';

    if (t.n == (hex ? 2 : 0) || t.n > 20)
        return false;
    for (i = hex ? 2 : 0; i < t.n; i++) {
        char c = t.p[i];
        unsigned d = c >= '0' && c <= '9'          ? (unsigned)(c - '0')
                     : hex && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                   : 99;

        if (d == 99 || __builtin_mul_overflow(v, hex ? 16u : 10u, &v) ||
            __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return true;
}

static bool
number32(br_text t, uint32_t *out)
{
    uint64_t v;

    if (!number(t, &v) || v >= LATE)
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool
integer(br_text t, int64_t *out)
{
    bool minus = t.n && t.p[0] == '-';
    uint64_t v;

    if (!number((br_text){t.p + minus, t.n - minus}, &v) ||
        v > (uint64_t)INT64_MAX + minus)
        return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static br_text
rest(br_text t, size_t n)
{
    return (br_text){t.p + n, t.n - n};
}

static br_code
late(parser *p, uint32_t fn, uint32_t ins, uint32_t place, br_text name)
{
    if (p->n_late == p->cap_late) {
        size_t cap = p->cap_late ? 2 * p->cap_late : 16;
        void *at = br_try_realloc(p->late, cap * sizeof *p->late);

        if (!at)
            return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
        p->late = at;
        p->cap_late = cap;
    }
    p->late[p->n_late].fn = fn;
    p->late[p->n_late].ins = ins;
    p->late[p->n_late].place = place;
    p->late[p->n_late++].name = name;
    return BR_OK;
}

/* ---- variables ------------------------------------------------------------ */

static unsigned
space_of(br_text t)
{
    for (const br_kminfo *m = br_kminfo_of; m->letter; m++)
        if (m->field == BR_KF_SPACE && br_text_is(t, m->text))
            return m->value;
    return 0;
}

static br_code
init_bytes(parser *p, br_kvar *v, br_text hex)
{
    uint8_t *at;

    if (hex.n != 2 * v->bytes)
        return wrong(p, "there have to be two digits for each byte", hex);
    at = br_arena_get(&p->m->arena, (size_t)v->bytes + 1);
    if (!at)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    for (size_t i = 0; i < v->bytes; i++) {
        char digits[4] = {'0', 'x', hex.p[2 * i], hex.p[2 * i + 1]};
        uint64_t b;

        if (!number((br_text){digits, 4}, &b))
            return wrong(p, "not hexadecimal", (br_text){hex.p + 2 * i, 2});
        at[i] = (uint8_t)b;
    }
    v->init = at;
    return BR_OK;
}

static br_code
var_line(parser *p)
{
    unsigned space = space_of(br_words_next(&p->in));
    br_text name = br_words_next(&p->in), w;
    uint32_t at;
    br_kvar *v;

    if (!space || !name.n)
        return wrong(p, "var SPACE NAME", name);
    if (br_kir_find_var(p->m, name) != BR_KNONE)
        return wrong(p, "two variables of one name", name);
    at = br_kir_var(p->m, name);
    if (p->m->oom)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    v = &p->m->vars.at[at];
    v->space = (uint8_t)space;
    while ((w = br_words_next(&p->in)).n) {
        if (br_text_is(w, "extern"))
            v->external = true;
        else if (br_text_is(w, "align") &&
                 number32(br_words_next(&p->in), &v->align))
            continue;
        else if (br_text_is(w, "bytes") &&
                 number(br_words_next(&p->in), &v->bytes) &&
                 v->bytes <= BR_KMAX_BYTES)
            continue;
        else if (br_text_is(w, "init"))
            BR_TRY(init_bytes(p, v, br_words_next(&p->in)));
        else
            return wrong(p, "not a property of a variable", w);
    }
    return BR_OK;
}

static br_code
at_line(parser *p)
{
    br_kvar *v = p->m->vars.n ? &p->m->vars.at[p->m->vars.n - 1] : NULL;
    br_kreloc r = {0};
    br_text name;

    if (!v || p->fn != BR_KNONE)
        return wrong(p, "at: there is no variable", BR_TEXT(""));
    if (!number32(br_words_next(&p->in), &r.offset) ||
        !br_text_is(br_words_next(&p->in), "bytes") ||
        !number32(br_words_next(&p->in), &r.bytes) ||
        !br_text_is(br_words_next(&p->in), "sym"))
        return wrong(p, "at N bytes N sym NAME N", BR_TEXT(""));
    name = br_words_next(&p->in);
    if (!integer(br_words_next(&p->in), &r.addend))
        return wrong(p, "a symbol needs a number after it", name);
    r.generic = br_text_is(br_words_next(&p->in), "generic");
    if (!br_vec_push(&v->relocs, r))
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    return late(p, (uint32_t)p->m->vars.n - 1, BR_KNONE,
                (uint32_t)v->relocs.n - 1, name);
}

/* ---- functions ------------------------------------------------------------ */

static br_code
func_line(parser *p)
{
    br_text name = br_words_next(&p->in), w;

    if (!name.n || br_kir_find_fn(p->m, name) != BR_KNONE)
        return wrong(p, "a function needs a name of its own", name);
    p->fn = br_kir_fn(p->m, name);
    if (p->m->oom)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    p->f = &p->m->fns.at[p->fn];
    p->blk = BR_KNONE;
    p->num.n = p->from.n = 0;
    while ((w = br_words_next(&p->in)).n) {
        uint32_t *to = br_text_is(w, "line")          ? &p->f->line
                       : br_text_is(w, "param_bytes") ? &p->f->param_bytes
                       : br_text_is(w, "frame_bytes") ? &p->f->frame_bytes
                       : br_text_is(w, "max_threads") ? &p->f->max_threads
                       : br_text_is(w, "req_threads") ? &p->f->req_threads
                       : br_text_is(w, "block_x")     ? &p->f->req_block[0]
                       : br_text_is(w, "block_y")     ? &p->f->req_block[1]
                       : br_text_is(w, "block_z")     ? &p->f->req_block[2]
                       : br_text_is(w, "max_cluster") ? &p->f->max_cluster
                       : br_text_is(w, "cluster_x")   ? &p->f->cluster[0]
                       : br_text_is(w, "cluster_y")   ? &p->f->cluster[1]
                       : br_text_is(w, "cluster_z")   ? &p->f->cluster[2]
                                                      : NULL;

        if (br_text_is(w, "entry"))
            p->f->entry = true;
        else if (br_text_is(w, "extern"))
            p->f->external = true;
        else if (!to || !number32(br_words_next(&p->in), to))
            return wrong(p, "not a property of a function", w);
    }
    return BR_OK;
}

static br_code
param_line(parser *p, bool result)
{
    br_kparam q = {.result = result};
    br_text name = br_words_next(&p->in);
    char *s;

    if (!number32(br_words_next(&p->in), &q.offset) ||
        !number32(br_words_next(&p->in), &q.bytes) ||
        !number32(br_words_next(&p->in), &q.align))
        return wrong(p, "param NAME OFFSET BYTES ALIGN", name);
    s = br_arena_str(&p->m->arena, name.p, name.n);
    q.name = (br_text){s, name.n};
    if (!s || !br_vec_push(&p->f->params, q))
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    return BR_OK;
}

/* "add.rn.f32": the modifiers of the operation's groups, then the types. */
static br_code
operation(parser *p, br_text w, br_kins *i)
{
    size_t n = 0;
    br_text whole = w, part;

    for (unsigned k = 0, first = 1; w.n || first; first = 0) {
        for (n = 0; n < w.n && w.p[n] != '.'; n++)
            ;
        part = (br_text){w.p, n};
        w = n < w.n ? rest(w, n + 1) : (br_text){w.p + n, 0};
        if (first) {
            while (k < BR_K_COUNT && !br_text_is(part, br_kopinfo_of[k].text))
                k++;
            if (k == BR_K_COUNT)
                return wrong(p, "no such operation", part);
            i->op = (uint8_t)k;
            continue;
        }
        for (k = 0; br_kminfo_of[k].letter; k++)
            if (!i->type && br_text_is(part, br_kminfo_of[k].text) &&
                strchr(br_kopinfo_of[i->op].groups, br_kminfo_of[k].letter))
                break;
        if (br_kminfo_of[k].letter) {
            if (br_kmod(i->mods, br_kminfo_of[k].field))
                return wrong(p, "two modifiers of one kind", whole);
            i->mods |=
                br_kmod_put(br_kminfo_of[k].field, br_kminfo_of[k].value);
            continue;
        }
        for (k = 1; k < BR_KT_COUNT && !br_text_is(part, br_ktinfo_of[k].text);)
            k++;
        if (k == BR_KT_COUNT || i->type2)
            return wrong(p, "not a modifier or type of it", part);
        *(i->type ? &i->type2 : &i->type) = (uint8_t)k;
    }
    return BR_OK;
}

static br_code
argument(parser *p, br_kins *i, uint32_t *args, br_text w)
{
    const char *sig = strchr(br_kopinfo_of[i->op].sig, ':') + 1;
    char letter = 0;
    uint64_t v;

    for (unsigned a = 0; a <= i->n_arg && *sig; a++) {
        letter = *sig;
        if (sig[1] != '*')
            sig++;
    }
    if (i->n_arg == BR_KMAX_ARGS || (!*sig && !letter))
        return wrong(p, "too many arguments", w);
    if (i->op == BR_K_PHI) {
        const char *colon = memchr(w.p, ':', w.n);
        uint32_t b;

        if (!colon || w.p[0] != 'b' ||
            !number32((br_text){w.p + 1, (size_t)(colon - w.p - 1)}, &b))
            return wrong(p, "a phi's argument is bN:VALUE", w);
        if (!br_vec_push(&p->from, p->blk) ||
            !br_vec_push(&p->from, i->n_arg) || !br_vec_push(&p->from, b))
            return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
        w = rest(w, (size_t)(colon + 1 - w.p));
    }
    if (w.n && w.p[0] == '%') {
        uint32_t n;

        if (!number32(rest(w, 1), &n))
            return wrong(p, "not a value", w);
        args[i->n_arg++] = n | LATE;
    } else if (br_text_is(w, "undef")) {
        args[i->n_arg++] = br_kfn_undef(p->m, p->f, br_kclass_of(letter, i));
    } else if (number(w, &v)) {
        br_kclass c = br_kclass_of(letter, i);

        if (br_kclass_bits(c) < 64 && v >> br_kclass_bits(c))
            return wrong(p, "too large for its class", w);
        args[i->n_arg++] = br_kfn_const(p->m, p->f, c, v);
    } else {
        return wrong(p, "not a value", w);
    }
    return BR_OK;
}

static br_code
attribute(parser *p, br_kins *i, br_text w)
{
    unsigned props = br_kopinfo_of[i->op].props;
    uint32_t n;

    if (w.p[0] == '#' && (props & BR_KP_IMM) && integer(rest(w, 1), &i->imm))
        return BR_OK;
    if (w.p[0] == '!' && number32(rest(w, 1), &i->line))
        return BR_OK;
    if (w.p[0] == '@' && (props & BR_KP_SYM))
        return late(p, p->fn, (uint32_t)p->f->ins.n, 0, rest(w, 1));
    if (w.p[0] == '$' && (props & BR_KP_SREG)) {
        for (n = 0; n < BR_KS_COUNT; n++)
            if (br_text_is(rest(w, 1), br_ksreg_text[n])) {
                i->imm = n;
                return BR_OK;
            }
        return wrong(p, "no such special register", w);
    }
    if (w.p[0] == 'b' && (props & BR_KP_TERM) && number32(rest(w, 1), &n) &&
        n < MAX_BLOCKS) {
        br_kfn_edge(p->m, p->f, p->blk, n);
        return BR_OK;
    }
    return wrong(p, "does not belong here", w);
}

static br_code
results(parser *p, uint32_t *n_res)
{
    const char *at = p->in.w;
    br_text w = br_words_next(&p->in);

    *n_res = 0;
    while (w.n && w.p[0] == '%') {
        uint32_t n;

        if (!number32(rest(w, 1), &n) || n != p->num.n + *n_res)
            return wrong(p, "results are numbered in their order", w);
        ++*n_res;
        w = br_words_next(&p->in);
    }
    if (*n_res && !br_text_is(w, "="))
        return wrong(p, "there has to be a =", w);
    if (!*n_res)
        p->in.w = at;
    return *n_res > BR_KMAX_ARGS ? wrong(p, "too many results", w) : BR_OK;
}

static br_code
ins_line(parser *p)
{
    br_kins i = {.sym = BR_KNONE};
    uint32_t args[BR_KMAX_ARGS] = {0}, n_res, at;
    bool tail = false;
    br_text w;

    if (p->blk == BR_KNONE)
        return wrong(p, "an instruction before the first block", BR_TEXT(""));
    BR_TRY(results(p, &n_res));
    BR_TRY(operation(p, br_words_next(&p->in), &i));
    while ((w = br_words_next(&p->in)).n) {
        bool attr =
            strchr("#!@$", w.p[0]) || (w.p[0] == 'b' && !memchr(w.p, ':', w.n));

        tail = tail || attr;
        BR_TRY(tail ? attribute(p, &i, w) : argument(p, &i, args, w));
    }
    i.n_res = (uint8_t)n_res;
    at = br_kfn_ins(p->m, p->f, p->blk, &i, args);
    if (p->m->oom)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    if (p->f->ins.at[at].n_res != n_res)
        return wrong(p, "not so many results", BR_TEXT(""));
    for (uint32_t r = 0; r < n_res; r++)
        if (!br_vec_push(&p->num, p->f->ins.at[at].res + r))
            return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    return BR_OK;
}

static br_code
end_line(parser *p)
{
    br_kfn *f = p->f;

    for (size_t b = 0; b < f->blks.n; b++)
        for (size_t s = 0; s < f->blks.at[b].succ.n; s++)
            if (f->blks.at[b].succ.at[s] >= f->blks.n)
                return wrong(p, "a target that is not there", f->name);
    for (size_t a = 0; a < f->args.n; a++) {
        uint32_t v = f->args.at[a];

        if (!(v & LATE))
            continue;
        if ((v & ~LATE) >= p->num.n)
            return wrong(p, "an argument that nothing defines", f->name);
        f->args.at[a] = p->num.at[v & ~LATE];
    }
    br_kfn_preds(p->m, f);
    if (p->m->oom)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    for (size_t k = 0; k < p->from.n; k += 3) {
        const br_kblk *b = &f->blks.at[p->from.at[k]];

        if (p->from.at[k + 1] >= b->pred.n ||
            b->pred.at[p->from.at[k + 1]] != p->from.at[k + 2])
            return wrong(p, "a phi names a block that is not its predecessor",
                         f->name);
    }
    p->f = NULL;
    p->fn = BR_KNONE;
    return BR_OK;
}

static br_code
fn_line(parser *p, br_text first)
{
    const char *at = first.p;
    uint32_t n;

    if (br_text_is(first, "param") || br_text_is(first, "result"))
        return param_line(p, first.p[0] == 'r');
    if (br_text_is(first, "end"))
        return end_line(p);
    if (first.n > 2 && first.p[0] == 'b' && first.p[first.n - 1] == ':' &&
        number32((br_text){first.p + 1, first.n - 2}, &n)) {
        if (n != p->f->blks.n || n >= MAX_BLOCKS)
            return wrong(p, "blocks are numbered in their order", first);
        p->blk = br_kfn_blk(p->m, p->f);
        return p->m->oom ? br_fail(p->st, BR_E_OOM, "kernel IR: out of memory")
                         : BR_OK;
    }
    p->in.w = at;
    return ins_line(p);
}

static br_code
note_line(parser *p)
{
    uint32_t line;
    const char *from;

    if (!number32(br_words_next(&p->in), &line))
        return wrong(p, "note LINE \"TEXT\"", BR_TEXT(""));
    from = memchr(p->in.w, '"', (size_t)(p->in.w_end - p->in.w));
    if (!from || p->in.w_end[-1] != '"' || p->in.w_end - from < 2)
        return wrong(p, "note LINE \"TEXT\"", BR_TEXT(""));
    br_kir_note(p->m, line, "%.*s", (int)BR_MIN(p->in.w_end - from - 2, 390),
                from + 1);
    return BR_OK;
}

static br_code
any_line(parser *p)
{
    br_text w = br_words_next(&p->in), t;
    char *s;

    if (w.n == 0)
        return BR_OK;
    if (p->f)
        return fn_line(p, w);
    if (br_text_is(w, "func"))
        return func_line(p);
    if (br_text_is(w, "var"))
        return var_line(p);
    if (br_text_is(w, "at"))
        return at_line(p);
    if (br_text_is(w, "note"))
        return note_line(p);
    if (!br_text_is(w, "kir"))
        return wrong(p, "kir, note, var or func", w);
    t = br_words_next(&p->in);
    s = br_arena_str(&p->m->arena, t.p, t.n);
    if (!s)
        return br_fail(p->st, BR_E_OOM, "kernel IR: out of memory");
    p->m->target = (br_text){s, t.n};
    return BR_OK;
}

static br_code
symbols(parser *p)
{
    for (size_t i = 0; i < p->n_late; i++) {
        br_text name = p->late[i].name;
        bool fn = name.n && name.p[0] == '&';
        uint32_t s = fn ? br_kir_find_fn(p->m, rest(name, 1))
                        : br_kir_find_var(p->m, name);

        if (s == BR_KNONE)
            return br_fail(p->st, BR_E_FORMAT, "there is no symbol '%.*s'",
                           (int)BR_MIN(name.n, (size_t)60), name.p);
        s |= fn ? BR_KFN_SYM : 0;
        if (p->late[i].ins == BR_KNONE)
            p->m->vars.at[p->late[i].fn].relocs.at[p->late[i].place].sym = s;
        else
            p->m->fns.at[p->late[i].fn].ins.at[p->late[i].ins].sym = s;
    }
    return BR_OK;
}

br_code
br_kir_parse(br_kir **out, const char *text, size_t n, br_status *st)
{
    parser p = {.in = {.p = text, .end = text + n, .gaps = " ,"},
                .st = st,
                .fn = BR_KNONE};
    br_code code = BR_OK;

    *out = NULL;
    p.m = br_kir_new(st);
    if (!p.m)
        return BR_E_OOM;
    while (code == BR_OK && br_words_line(&p.in))
        code = any_line(&p);
    if (code == BR_OK && p.f)
        code = wrong(&p, "a function without its end", p.f->name);
    if (code == BR_OK)
        code = symbols(&p);
    if (code == BR_OK && p.m->oom)
        code = br_fail(st, BR_E_OOM, "kernel IR: out of memory");
    if (code == BR_OK)
        code = br_kir_verify(p.m, st);
    br_vec_fini(&p.num);
    br_vec_fini(&p.from);
    br_free(p.late);
    if (code != BR_OK)
        br_kir_free(p.m);
    else
        *out = p.m;
    return code;
}
