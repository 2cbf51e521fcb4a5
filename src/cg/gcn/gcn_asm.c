/* gcn_asm.c - a file of assembly to a code object.
 *
 *     label:  instruction  ; comment, or // or block comments
 *             .directive   gcn_dirs.c; .macro and .if: gcn_macro.c
 *
 * Two steps: lines give bytes, labels and places to mend; then branches and
 * references are mended and everything goes to br_gcn_link. Code ends with
 * 256 bytes of s_code_end, added where the file has none, for the hardware
 * fetches ahead.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_asm.h"

#include <ctype.h>
#include <string.h>

enum { CODE_ALIGN = 256, S_CODE_END = (int)0xbf9f0000u };

br_code
br_gcn_asm_fail(br_gcn_asm *a, const char *p, const char *fmt, ...)
{
    char msg[300];
    br_str s = {0};
    va_list ap;

    va_start(ap, fmt);
    br_str_vprintf(&s, fmt, ap);
    va_end(ap);
    memcpy(msg, br_str_z(&s), BR_MIN(s.n + 1, sizeof msg));
    msg[sizeof msg - 1] = 0;
    br_str_fini(&s);
    if (a->depth) { /* in the lines of a macro: where the outermost is used */
        br_text m = a->from[a->depth - 1].macro;

        return br_fail(a->st, BR_E_FORMAT, "%u:1: in %.*s: %s", a->number,
                       (int)BR_MIN(m.n, 60u), m.p, msg);
    }
    return br_fail(a->st, BR_E_FORMAT, "%u:%u: %s", a->number,
                   (unsigned)(p - a->line) + 1, msg);
}

static bool
is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

br_text
br_gcn_asm_name(br_gcn_asm *a)
{
    br_text t = {0};

    br_gcn_space(&a->scan);
    t.p = a->scan.p;
    if (t.p < a->scan.end && *t.p == '"') {
        const char *e = memchr(t.p + 1, '"', (size_t)(a->scan.end - t.p - 1));

        if (e) {
            a->scan.p = e + 1;
            return (br_text){t.p + 1, (size_t)(e - t.p - 1)};
        }
        return t;
    }
    if (t.p < a->scan.end && isdigit((unsigned char)*t.p))
        return t;
    while (a->scan.p < a->scan.end && is_name_char(*a->scan.p))
        a->scan.p++;
    t.n = (size_t)(a->scan.p - t.p);
    return t;
}

uint32_t
br_gcn_asm_label(br_gcn_asm *a, br_text name)
{
    br_gcn_label l = {.name = name};
    bool fresh;
    br_map_value *v = br_map_put(&a->by_name, name, &fresh);

    if (!v)
        return UINT32_MAX;
    if (fresh) {
        v->u = a->labels.n;
        if (a->labels.n >= BR_GCN_MAX_SYMBOLS || !br_vec_push(&a->labels, l))
            return UINT32_MAX;
    }
    return (uint32_t)v->u;
}

/* ---- lines ------------------------------------------------------------ */

/* The end of what counts in a line: before its comment. */
static const char *
comment(const char *p, const char *end)
{
    for (bool in = false; p < end; p++) {
        if (*p == '"')
            in = !in;
        if (!in && (*p == ';' || *p == '#' ||
                    (*p == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*'))))
            return p;
    }
    return end;
}

bool
br_gcn_asm_line(br_gcn_asm *a)
{
    const char *e;

    for (; a->next == a->end; a->depth--) {
        if (!a->depth)
            return false;
        a->next = a->from[a->depth - 1].next;
        a->end = a->from[a->depth - 1].end;
    }
    a->line = a->next;
    e = memchr(a->line, '\n', (size_t)(a->end - a->line));
    a->next = e ? e + 1 : a->end;
    a->number += !a->depth;
    a->scan.p = a->line;
    a->scan.end = comment(a->line, e ? e : a->end);
    while (a->scan.end > a->line && isspace((unsigned char)a->scan.end[-1]))
        a->scan.end--;
    br_gcn_space(&a->scan);
    return true;
}

/* ---- instructions ----------------------------------------------------- */

/* Instructions whose last operand is where to go. */
static bool
is_branch(const char *p, size_t n)
{
    static const char *const names[] = {"s_branch", "s_cbranch_", "s_call_b64",
                                        "s_subvector_loop_"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (n >= strlen(names[k]) && memcmp(p, names[k], strlen(names[k])) == 0)
            return true;
    return false;
}

typedef struct operand {
    const char *p, *end; /* where the name stands; p NULL: there is none */
    br_gcn_fix fix;
} operand;

/* NAME@rel32@lo+4 */
static br_code
relative(br_gcn_asm *a, operand *o)
{
    const char *at =
        memmem(a->scan.p, (size_t)(a->scan.end - a->scan.p), "@rel32@", 7);
    const char *p = at, *begin = a->scan.p;

    if (!at)
        return BR_OK;
    while (p > begin && is_name_char(p[-1]))
        p--;
    o->p = p;
    a->scan.p = at + 7;
    o->fix.kind = br_gcn_word(&a->scan, "hi") ? BR_FIX_HIGH : BR_FIX_LOW;
    if (p == at ||
        (o->fix.kind == BR_FIX_LOW && !br_gcn_word(&a->scan, "lo")) ||
        (br_gcn_eat(&a->scan, "+") &&
         !br_gcn_int(&a->scan, 0, INT32_MAX, &o->fix.add)))
        return br_gcn_asm_fail(a, p, "NAME@rel32@lo+N or @hi+N is expected");
    o->end = a->scan.p;
    a->scan.p = begin;
    o->fix.label = br_gcn_asm_label(a, (br_text){p, (size_t)(at - p)});
    return BR_OK;
}

/* The label of a branch. */
static br_code
target(br_gcn_asm *a, operand *o)
{
    const char *p = a->scan.end;
    size_t n = 0;

    while (a->scan.p + n < a->scan.end && is_name_char(a->scan.p[n]))
        n++;
    if (!is_branch(a->scan.p, n))
        return BR_OK;
    while (p > a->scan.p + n && is_name_char(p[-1]))
        p--;
    if (p == a->scan.end || isdigit((unsigned char)*p) ||
        (p > a->scan.p && p[-1] == '-'))
        return BR_OK;
    o->p = p;
    o->end = a->scan.end;
    o->fix.kind = BR_FIX_BRANCH;
    o->fix.label = br_gcn_asm_label(a, (br_text){p, (size_t)(o->end - p)});
    return BR_OK;
}

static br_code
instruction(br_gcn_asm *a)
{
    char text[BR_GCN_MAX_TEXT + 64];
    const char *p = a->scan.p;
    size_t n = (size_t)(a->scan.end - p), before;
    operand o = {0};
    br_gcn_inst in;
    br_status st = {0};

    if (a->place != BR_GCN_TEXT)
        return br_gcn_asm_fail(a, p, "an instruction outside .text");
    if (n > BR_GCN_MAX_TEXT)
        return br_gcn_asm_fail(a, p, "a line of more than %d bytes",
                               BR_GCN_MAX_TEXT);
    BR_TRY(relative(a, &o));
    if (!o.p)
        BR_TRY(target(a, &o));
    if (o.p && o.fix.label == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    before = o.p ? (size_t)(o.p - p) : n;
    memcpy(text, p, before);
    if (o.p) { /* a number stands for the name: a literal, where one is due */
        const char *number = o.fix.kind == BR_FIX_BRANCH ? "0" : "0x7fffffff";

        memcpy(text + before, number, strlen(number));
        before += strlen(number);
        n = (size_t)(a->scan.end - o.end);
        memcpy(text + before, o.end, n);
        n += before;
    }
    if (br_gcn_parse(&a->isa, text, n, &in, &st) != BR_OK)
        return br_gcn_asm_fail(a, p + BR_MIN(in.far, n), "%s", st.msg);
    br_str_put(&a->text, (const char *)in.w, in.words * 4u);
    if (!o.p || a->text.oom)
        return BR_OK;
    if (o.fix.kind != BR_FIX_BRANCH && in.ext != BR_EXT_LIT)
        return br_gcn_asm_fail(a, o.p, "no literal can stand here");
    o.fix.at = a->text.n - 4;
    o.fix.line = a->number;
    o.fix.column = (uint32_t)(o.p - a->line) + 1;
    if (!br_vec_push(&a->fixes, o.fix))
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    return BR_OK;
}

static br_code
define(br_gcn_asm *a, br_text name)
{
    uint32_t k = br_gcn_asm_label(a, name);
    br_gcn_label *l;

    if (k == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    l = &a->labels.at[k];
    if (l->place != BR_GCN_NOWHERE || l->constant)
        return br_gcn_asm_fail(a, name.p, "%.*s is there already",
                               (int)BR_MIN(name.n, 60u), name.p);
    l->place = (uint8_t)a->place;
    l->at = a->place == BR_GCN_TEXT ? a->text.n : a->data.n;
    return BR_OK;
}

/* Labels, then a directive or an instruction. */
static br_code
statement(br_gcn_asm *a)
{
    const char *p = a->scan.p;
    br_text name;

    while (a->scan.p < a->scan.end) {
        p = a->scan.p;
        name = br_gcn_asm_name(a);
        if (!name.n || !br_gcn_eat(&a->scan, ":"))
            break;
        if (a->place == BR_GCN_NOWHERE)
            return br_gcn_asm_fail(a, p, "a label in section %.*s",
                                   (int)a->place_name.n, a->place_name.p);
        BR_TRY(define(a, name));
        br_gcn_space(&a->scan);
        p = a->scan.p;
    }
    a->scan.p = p;
    if (p == a->scan.end)
        return BR_OK;
    return *p == '.' ? br_gcn_directive(a) : instruction(a);
}

/* ---- the second step -------------------------------------------------- */

static br_code
mend(br_gcn_asm *a, br_gcn_fix *f)
{
    const br_gcn_label *l = &a->labels.at[f->label];
    int64_t way;

    if (l->place == BR_GCN_NOWHERE)
        return br_fail(a->st, BR_E_FORMAT, "%u:%u: %.*s is nowhere", f->line,
                       f->column, (int)BR_MIN(l->name.n, 60u), l->name.p);
    if (f->kind != BR_FIX_BRANCH)
        return BR_OK;
    way = ((int64_t)l->at - (int64_t)f->at - 4) / 4;
    if (l->place != BR_GCN_TEXT || (l->at - f->at) % 4 || way < INT16_MIN ||
        way > INT16_MAX)
        return br_fail(a->st, BR_E_FORMAT,
                       "%u:%u: %.*s: a branch does not reach it", f->line,
                       f->column, (int)BR_MIN(l->name.n, 60u), l->name.p);
    memcpy(a->text.at + f->at, &(uint16_t){(uint16_t)way}, 2);
    return BR_OK;
}

/* Kernels begin at 256 bytes; what the hardware fetches ahead is there. */
static br_code
padding(br_gcn_asm *a)
{
    const uint32_t end = (uint32_t)S_CODE_END;
    size_t n = 0;
    uint32_t w;

    while (a->text.n % 4 && !a->text.oom)
        br_str_putc(&a->text, 0);
    while (n < CODE_ALIGN && a->text.n >= n + 4) {
        memcpy(&w, a->text.at + a->text.n - n - 4, 4);
        if (w != end)
            break;
        n += 4;
    }
    for (; n < CODE_ALIGN && !a->text.oom; n += 4)
        br_str_put(&a->text, (const char *)&end, 4);
    for (size_t k = 0; k < a->kernels.n; k++) {
        const br_gcn_kernel_kd *kd = &a->kernels.at[k];
        const br_gcn_label *l = &a->labels.at[br_gcn_asm_label(a, kd->name)];

        if (l->place != BR_GCN_TEXT || l->at % CODE_ALIGN)
            return br_fail(a->st, BR_E_FORMAT,
                           "%u:1: kernel %.*s does not begin at 256 bytes of "
                           ".text",
                           kd->line, (int)BR_MIN(kd->name.n, 60u), kd->name.p);
    }
    return BR_OK;
}

/* NAME or NAME.kd into the pool of names; its place there. */
static size_t
keep_name(br_gcn_asm *a, br_text name, const char *tail)
{
    size_t at = a->names.n;

    br_str_put(&a->names, name.p, name.n);
    br_str_put(&a->names, tail, strlen(tail) + 1);
    return at;
}

static br_code
symbols(br_gcn_asm *a, br_gcn_symbol *s)
{
    size_t at = 0;

    for (size_t k = 0; k < a->labels.n; k++)
        keep_name(a, a->labels.at[k].name, "");
    for (size_t k = 0; k < a->kernels.n; k++)
        keep_name(a, a->kernels.at[k].name, ".kd");
    if (a->names.oom || a->text.oom || a->data.oom || a->note.oom)
        return br_fail(a->st, BR_E_OOM, "no memory for a code object");
    for (size_t k = 0; k < a->labels.n; k++, s++) {
        const br_gcn_label *l = &a->labels.at[k];

        *s = (br_gcn_symbol){.name = a->names.at + at,
                             .at = l->at,
                             .bytes = l->bytes,
                             .place = l->constant ? 0 : l->place,
                             .local = !l->global || l->hidden ||
                                      memcmp(a->names.at + at, ".L", 2) == 0};
        if (s->place &&
            l->bytes >
                (s->place == BR_GCN_TEXT ? a->text.n : a->data.n) - l->at)
            return br_fail(a->st, BR_E_FORMAT,
                           "%.60s: its .size goes past the section's end",
                           s->name);
        at += strlen(s->name) + 1;
    }
    for (size_t k = 0; k < a->kernels.n; k++, s++) {
        uint32_t fn = br_gcn_asm_label(a, a->kernels.at[k].name);

        *s = (br_gcn_symbol){.name = a->names.at + at,
                             .at = a->kernels.at[k].at,
                             .bytes = BR_GCN_KD_BYTES,
                             .entry = fn + 1,
                             .place = BR_GCN_DATA};
        at += strlen(s->name) + 1;
    }
    return BR_OK;
}

static br_code
link_all(br_gcn_asm *a, br_str *out)
{
    size_t n = a->labels.n + a->kernels.n, n_rel = 0;
    br_gcn_symbol *s = br_try_calloc(n + 1, sizeof *s);
    br_gcn_reloc *r = br_try_calloc(a->fixes.n + 1, sizeof *r);
    br_code c = s && r ? symbols(a, s)
                       : br_fail(a->st, BR_E_OOM, "no memory for symbols");

    for (size_t k = 0; c == BR_OK && k < a->fixes.n; k++) {
        const br_gcn_fix *f = &a->fixes.at[k];

        if (f->kind != BR_FIX_BRANCH)
            r[n_rel++] =
                (br_gcn_reloc){f->at, f->add, f->label, f->kind == BR_FIX_HIGH};
    }
    if (c == BR_OK)
        c = br_gcn_link(out,
                        &(br_gcn_pieces){.cpu = a->isa.cpu,
                                         .text = {a->text.at, a->text.n},
                                         .data = {a->data.at, a->data.n},
                                         .note = {a->note.at, a->note.n},
                                         .sym = s,
                                         .n_sym = n,
                                         .reloc = r,
                                         .n_reloc = n_rel},
                        a->st);
    br_free(s);
    br_free(r);
    return c;
}

static br_code
all(br_gcn_asm *a, br_str *out)
{
    bool done;

    while (br_gcn_asm_line(a)) {
        BR_TRY(br_gcn_asm_before(a, &done));
        if (!done)
            BR_TRY(statement(a));
    }
    if (a->n_ifs)
        return br_gcn_asm_fail(a, a->line, ".endif is missing");
    if (a->in_kd)
        return br_gcn_asm_fail(a, a->line, ".end_amdhsa_kernel is missing");
    if (a->text.oom)
        return br_fail(a->st, BR_E_OOM, "no memory for a code object");
    for (size_t k = 0; k < a->fixes.n; k++)
        BR_TRY(mend(a, &a->fixes.at[k]));
    BR_TRY(padding(a));
    return link_all(a, out);
}

br_code
br_gcn_assemble(br_str *out, const br_gcn_cpu *cpu, const char *text, size_t n,
                br_status *st)
{
    /* Instructions come before the directive that says how wide a wave is. */
    const char *wave =
        n ? memmem(text, n, ".amdhsa_wavefront_size32", 24) : NULL;
    br_gcn_asm a = {.isa = {.cpu = cpu},
                    .line = text,
                    .next = text,
                    .end = text + n,
                    .place = BR_GCN_TEXT,
                    .st = st};
    br_code c;

    if (wave)
        for (const char *p = wave + 24; p < a.end && *p != '\n'; p++)
            if (*p != ' ' && *p != '\t') {
                a.isa.wave64 = *p == '0';
                break;
            }
    br_arena_init(&a.texts, BR_GCN_MAX_MACRO_TEXT);
    c = all(&a, out);
    br_arena_fini(&a.texts);
    br_vec_fini(&a.macros);
    br_str_fini(&a.text);
    br_str_fini(&a.data);
    br_str_fini(&a.note);
    br_str_fini(&a.names);
    br_vec_fini(&a.labels);
    br_vec_fini(&a.fixes);
    br_vec_fini(&a.kernels);
    br_map_fini(&a.by_name);
    return c;
}
