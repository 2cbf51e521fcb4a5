/* ptx_parse.c - PTX from directives down to operands.
 *
 *   file      = { .version ... | .target ... | [linkage] variable
 *               | [linkage] .entry/.func ... | .file .section .pragma ... }
 *   function  = head "{" body "}"          body statements may nest in braces
 *   statement = .reg ... ; | .local/.shared/.param ... ; | label: | ins ;
 *   ins       = [ "@" ["!"] reg ] opcode [ operand { "," operand } ]
 *
 * Names are looked up as they are met, in the innermost scope first; what is
 * not known then is a label further down, or an error of that instruction.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

enum { MAX_OPNDS = 200, MAX_VEC = 128 /* wgmma of 256 columns has so many */ };

br_code
px_expect(px_parser *p, char tok)
{
    if (p->tok != tok)
        return px_fail(p, "there has to be a '%c', not '%.*s'", tok,
                       (int)BR_MIN(p->word.n ? p->word.n : 1, (size_t)40),
                       p->word.n ? p->word.p
                       : p->tok  ? (char[]){p->tok, 0}
                                 : "");
    return px_next(p);
}

/* ---- names -------------------------------------------------------------- */

px_sym *
px_find(px_parser *p, br_text name)
{
    br_map_value *at = br_map_get(&p->map, name);

    return at && at->u != BR_KNONE ? &p->syms.at[at->u] : NULL;
}

br_code
px_declare(px_parser *p, br_text name, px_symkind kind, uint32_t id,
           uint32_t count, px_sym **out)
{
    px_sym s = {.name = name, .kind = (uint8_t)kind, .id = id, .count = count};
    bool fresh;
    br_map_value *at =
        br_map_put(kind == S_RANGE ? &p->ranges : &p->map, name, &fresh);

    if (!at)
        return px_oom(p);
    s.hidden = fresh ? BR_KNONE : (uint32_t)at->u;
    at->u = p->syms.n;
    if (!br_vec_push(&p->syms, s))
        return px_oom(p);
    if (out)
        *out = &p->syms.at[p->syms.n - 1];
    return BR_OK;
}

/* The names go; the symbols stay, for instructions know them by number. */
static void
forget(px_parser *p, size_t down_to)
{
    for (size_t k = p->syms.n; k-- > down_to;) {
        px_sym *s = &p->syms.at[k];

        if (!s->gone)
            br_map_get(s->kind == S_RANGE ? &p->ranges : &p->map, s->name)->u =
                s->hidden;
        s->gone = true;
    }
}

static void
drop(px_parser *p, size_t down_to)
{
    forget(p, down_to);
    p->syms.n = down_to;
}

/* "%r12" of .reg %r<100>: the range, and *first register of it; NULL. Not one that
 * s, the symbol of that name, is inside of: of two declarations the inner one came
 * later. */
static const px_sym *
in_range(px_parser *p, br_text t, const px_sym *s, uint32_t *first)
{
    const uint32_t inner = s ? (uint32_t)(s - p->syms.at) : 0;
    size_t n = t.n;
    uint32_t v = 0;
    const br_map_value *at;
    uint32_t depth = 0; /* no more of a name are one inside of the other */

    while (n && t.n - n < 7 && t.p[n - 1] >= '0' && t.p[n - 1] <= '9')
        n--;
    for (size_t i = n; i < t.n; i++)
        v = v * 10 + (uint32_t)(t.p[i] - '0');
    if (n == t.n || (t.p[n] == '0' && t.n - n > 1))
        return NULL;
    at = br_map_get(&p->ranges, (br_text){t.p, n});
    for (uint32_t k = at ? (uint32_t)at->u : BR_KNONE;
         k != BR_KNONE && k >= inner && depth++ <= BR_PTX_MAX_DEPTH;
         k = p->syms.at[k].hidden) {
        const px_sym *range = &p->syms.at[k];

        if (v < range->count) {
            *first = range->id + v * range->vec;
            return range;
        }
    }
    return NULL;
}

static br_code
reg_line(px_parser *p)
{
    unsigned type, vec = 1;

    BR_TRY(px_next(p));
    if (px_is(p, ".v2") || px_is(p, ".v4")) {
        vec = (unsigned)(p->word.p[2] - '0');
        BR_TRY(px_next(p));
    }
    type = p->tok == 'w' && p->word.n > 1
               ? px_type((br_text){p->word.p + 1, p->word.n - 1})
               : 0;
    if (px_is(p, ".b128") && vec == 1) { /* as opcodes have it: ptx_op.c */
        type = BR_KT_B64;
        vec = 2;
    }
    if (!type)
        return px_fail(p, ".reg: '%.*s' is no type of a register",
                       (int)BR_MIN(p->word.n, (size_t)40), p->word.p);
    do {
        br_text name;
        px_opnd n = {.imm = 1};
        px_symkind kind = vec > 1 ? S_VREG : S_REG;
        px_sym *s;
        uint64_t all;

        BR_TRY(px_next(p));
        name = p->word;
        if (p->tok != 'w')
            return px_fail(p, ".reg: a name is missing");
        BR_TRY(px_next(p));
        if (p->tok == '<') {
            BR_TRY(px_next(p));
            if (p->tok != 'w' || !px_number(p->word, &n) || n.kind != O_INT)
                return px_fail(p, ".reg: a number has to follow <");
            BR_TRY(px_next(p));
            BR_TRY(px_expect(p, '>'));
            kind = S_RANGE;
        }
        all = BR_MIN(n.imm, (uint64_t)BR_PTX_MAX_REGS) * vec;
        if (n.imm > BR_PTX_MAX_REGS || p->regs.n + all > BR_PTX_MAX_REGS)
            return px_fail(p, "over %d registers in a function",
                           BR_PTX_MAX_REGS);
        BR_TRY(px_declare(p, name, kind, (uint32_t)p->regs.n,
                          (uint32_t)(kind == S_RANGE ? n.imm : all), &s));
        s->vec = (uint8_t)vec;
        if (!br_vec_reserve(&p->regs, p->regs.n + all))
            return px_oom(p);
        memset(p->regs.at + p->regs.n, (int)type, all);
        p->regs.n += all;
    } while (p->tok == ',');
    return px_expect(p, ';');
}

/* ---- operands ----------------------------------------------------------- */

static br_code operand(px_parser *p, px_opnd *o);

static br_code
push_opnd(px_parser *p, px_opnd o, uint32_t *at)
{
    *at = (uint32_t)p->ops.n;
    return br_vec_push(&p->ops, o) ? BR_OK : px_oom(p);
}

/* Registers side by side, as one operand. */
static br_code
side_by_side(px_parser *p, uint32_t first, uint32_t n, px_opnd *o)
{
    *o = (px_opnd){.kind = O_VEC, .a = (uint32_t)p->ops.n, .b = n};
    for (uint32_t k = 0; k < n; k++)
        if (!br_vec_push(&p->ops, ((px_opnd){.kind = O_REG, .a = first + k})))
            return px_oom(p);
    return px_next(p);
}

/* v.x: one register of some side by side; BR_KNONE: it is none. */
static uint32_t
part_of(px_parser *p, br_text w)
{
    static const char all[] = "xyzwrgba";
    const char *at = w.n > 2 && w.p[w.n - 2] == '.'
                         ? memchr(all, w.p[w.n - 1], sizeof all - 1)
                         : NULL;
    br_text name = {w.p, w.n - 2};
    uint32_t k = at ? (uint32_t)(at - all) % 4 : BR_KNONE, first;
    const px_sym *s = at ? px_find(p, name) : NULL,
                 *range = at ? in_range(p, name, s, &first) : NULL;

    if (range)
        return k < range->vec && range->vec > 1 ? first + k : BR_KNONE;
    return s && s->kind == S_VREG && k < s->count ? s->id + k : BR_KNONE;
}

/* %r1.b0 ... .b3, .h0, .h1 of a register, as video instructions have it. */
static bool
selected(px_parser *p, br_text w, px_opnd *o)
{
    const br_text name = {w.p, w.n > 3 ? w.n - 3 : 0};
    const char *s = w.p + name.n;
    const px_sym *sym, *range;
    uint32_t r;

    if (!name.n || s[0] != '.' ||
        !((s[1] == 'b' && s[2] >= '0' && s[2] <= '3') ||
          (s[1] == 'h' && s[2] >= '0' && s[2] <= '1')))
        return false;
    sym = px_find(p, name);
    range = in_range(p, name, sym, &r);
    if (range ? range->vec > 1 : !sym || sym->kind != S_REG)
        return false;
    *o = (px_opnd){.kind = O_REG,
                   .a = range ? r : sym->id,
                   .imm = (uint64_t)(s[2] - '0') + (s[1] == 'b' ? 1 : 5)};
    return true;
}

static br_code
word_operand(px_parser *p, px_opnd *o)
{
    br_text w = p->word;
    uint32_t r;
    bool special;
    const px_sym *s = px_find(p, w), *range = in_range(p, w, s, &r);

    if (br_text_is(w, "_")) {
        o->kind = O_SINK;
        return px_next(p);
    }
    if (range && range->vec > 1)
        return side_by_side(p, r, range->vec, o);
    if (!range && s && s->kind == S_VREG)
        return side_by_side(p, s->id, s->count, o);
    if (range || (s && s->kind == S_REG)) {
        *o = (px_opnd){.kind = O_REG, .a = range ? r : s->id};
        return px_next(p);
    }
    if (s) {
        *o = (px_opnd){.kind = O_VAR, .a = (uint32_t)(s - p->syms.at)};
        return px_next(p);
    }
    r = part_of(p, w);
    if (r != BR_KNONE) {
        *o = (px_opnd){.kind = O_REG, .a = r};
        return px_next(p);
    }
    if (selected(p, w, o))
        return px_next(p);
    BR_TRY(px_special(p, w, o, &special));
    if (special)
        return px_next(p);
    *o = (px_opnd){.kind = O_NAME, .a = (uint32_t)p->names.n};
    if (!br_vec_push(&p->names, ((px_name){w, p->scope})))
        return px_oom(p);
    return px_next(p);
}

/* A list in braces, brackets already open: elements go together. */
static br_code
list(px_parser *p, px_opnd *o, char close)
{
    px_opnd part[MAX_VEC];
    uint32_t n = 0;

    while (p->tok != close) {
        if (n == MAX_VEC)
            return px_fail(p, "over %d operands in a list", MAX_VEC);
        BR_TRY(operand(p, &part[n++]));
        if (p->tok != close)
            BR_TRY(px_expect(p, ','));
    }
    o->a = (uint32_t)p->ops.n;
    o->b = n;
    for (uint32_t k = 0; k < n; k++)
        if (!br_vec_push(&p->ops, part[k]))
            return px_oom(p);
    return px_next(p);
}

static br_code
memory(px_parser *p, px_opnd *o)
{
    px_opnd base;

    *o = (px_opnd){.kind = O_MEM, .a = BR_KNONE};
    BR_TRY(px_next(p));
    BR_TRY(operand(p, &base));
    BR_TRY(px_sum(p, &o->imm));
    if (base.kind == O_INT || base.kind == O_VAR) {
        o->imm += base.imm;
        base.imm = 0;
    }
    if (base.kind != O_INT)
        BR_TRY(push_opnd(p, base, &o->a));
    while (p->tok == ',') { /* coordinates of textures and tensors */
        BR_TRY(px_next(p));
        BR_TRY(operand(p, &base));
        o->neg = true;
    }
    return px_expect(p, ']');
}

/* !%p, or -%r as vmad has it; of a number, or a name of one, it is an operator. */
static br_code
negated(px_parser *p, px_opnd *o)
{
    const px_parser at = *p;

    BR_TRY(px_next(p));
    if (p->tok == 'w' && !px_is_number(p)) {
        BR_TRY(word_operand(p, o));
        o->neg = true;
        if (at.tok == '!')
            return BR_OK;
        if (o->kind == O_REG && p->regs.at[o->a] == BR_KT_PRED)
            return px_fail(p, "a predicate is negated by !");
        if (o->kind == O_REG)
            return BR_OK;
    }
    p->p = at.p;
    p->tok = at.tok;
    p->word = at.word;
    p->line = at.line;
    return px_constant(p, o);
}

static br_code
operand(px_parser *p, px_opnd *o)
{
    px_opnd second;

    *o = (px_opnd){.kind = O_SINK};
    if (++p->depth > BR_PTX_MAX_DEPTH)
        return px_fail(p, "operands nested over %d deep", BR_PTX_MAX_DEPTH);
    if (p->tok == '[') {
        BR_TRY(memory(p, o));
    } else if (p->tok == '{' || (p->tok == '(' && p->lists && p->depth == 1)) {
        char close = p->tok == '{' ? '}' : ')';

        o->kind = p->tok == '{' ? O_VEC : O_LIST;
        BR_TRY(px_next(p));
        BR_TRY(list(p, o, close));
    } else if (p->tok == '!' || p->tok == '-') {
        BR_TRY(negated(p, o));
    } else if (p->tok == '+' || p->tok == '~' || p->tok == '(' ||
               px_is_number(p)) {
        BR_TRY(px_constant(p, o));
    } else if (p->tok == 'w') {
        BR_TRY(word_operand(p, o));
    } else {
        return px_fail(p, "'%c' is no operand", p->tok ? p->tok : ' ');
    }
    if (o->kind == O_VAR)
        BR_TRY(px_sum(p, &o->imm));
    if (p->tok == '|') { /* of any number: each is as deep again */
        uint32_t a, b;

        BR_TRY(px_next(p));
        BR_TRY(operand(p, &second));
        BR_TRY(push_opnd(p, *o, &a));
        BR_TRY(push_opnd(p, second, &b));
        *o = (px_opnd){.kind = O_PAIR, .a = a, .b = b};
    }
    p->depth--;
    return BR_OK;
}

/* ---- statements --------------------------------------------------------- */

static br_code
instruction(px_parser *p)
{
    px_opnd ops[MAX_OPNDS], guard;
    px_ins i = {.line = p->line, .guard = BR_KNONE};
    uint32_t n = 0;

    if (p->tok == '@') {
        BR_TRY(px_next(p));
        i.guard_not = p->tok == '!';
        if (i.guard_not)
            BR_TRY(px_next(p));
        if (p->tok != 'w')
            return px_fail(p, "a predicate has to follow @");
        BR_TRY(word_operand(p, &guard));
        if (guard.kind != O_REG || guard.imm ||
            p->regs.at[guard.a] != BR_KT_PRED)
            return px_fail(p, "the guard is no predicate");
        i.guard = guard.a;
        i.line = p->line;
    }
    if (p->tok != 'w')
        return px_fail(p, "an instruction has to stand here");
    BR_TRY(px_opcode_of(p, p->word, &i.opcode));
    p->lists = p->word.n >= 4 && memcmp(p->word.p, "call", 4) == 0;
    BR_TRY(px_next(p));
    while (p->tok != ';') {
        if (n == MAX_OPNDS || p->tok == 0)
            return px_fail(p, p->tok ? "too many operands" : "a ; is missing");
        BR_TRY(operand(p, &ops[n++]));
        if (p->tok == ',')
            BR_TRY(px_next(p));
        else if (p->tok != ';')
            return px_fail(p, "a , or ; has to follow the operand");
    }
    i.n_op = (uint8_t)n;
    i.op = (uint32_t)p->ops.n;
    for (uint32_t k = 0; k < n; k++)
        if (!br_vec_push(&p->ops, ops[k]))
            return px_oom(p);
    if (!br_vec_push(&p->ins, i))
        return px_oom(p);
    return px_next(p);
}

static br_code
skip_to_semicolon(px_parser *p)
{
    while (p->tok && p->tok != ';')
        BR_TRY(px_next(p));
    return px_expect(p, ';');
}

/* L: .branchtargets A, B;   L: .callprototype ...; */
static br_code
label(px_parser *p, br_text name)
{
    px_label l = {name, (uint32_t)p->ins.n, p->scope};
    br_map_value *at;
    bool fresh;

    BR_TRY(px_next(p)); /* : */
    if (px_is(p, ".branchtargets")) {
        px_targets t = {name, (uint32_t)p->names.n, 0};

        do {
            BR_TRY(px_next(p));
            if (p->tok != 'w' ||
                !br_vec_push(&p->names, ((px_name){p->word, p->scope})))
                return p->tok == 'w' ? px_oom(p)
                                     : px_fail(p, "a label is missing");
            t.count++;
            BR_TRY(px_next(p));
        } while (p->tok == ',');
        if (!br_vec_push(&p->targets, t))
            return px_oom(p);
        return px_expect(p, ';');
    }
    if (px_is(p, ".callprototype") || px_is(p, ".calltargets"))
        return skip_to_semicolon(p);
    at = br_map_put(&p->label_names, name, &fresh);
    if (!at)
        return px_oom(p);
    if (fresh)
        at->u = p->labels.n;
    at = br_map_put_u64(&p->label_at, at->u << 32 | p->scope, &fresh);
    if (!at)
        return px_oom(p);
    if (!fresh)
        return px_fail(p, "a second label '%.*s'",
                       (int)BR_MIN(name.n, (size_t)60), name.p);
    at->u = p->labels.n;
    return br_vec_push(&p->labels, l) ? BR_OK : px_oom(p);
}

static br_code
line_directive(px_parser *p) /* .loc and .file end with their line */
{
    uint32_t line = p->line;

    do
        BR_TRY(px_next(p));
    while (p->tok && p->line == line);
    return BR_OK;
}

static br_code
body_directive(px_parser *p)
{
    if (px_is(p, ".reg"))
        return reg_line(p);
    if (px_is(p, ".loc") || px_is(p, ".file"))
        return line_directive(p);
    if (px_is(p, ".pragma"))
        return skip_to_semicolon(p);
    return px_variable(p, 0);
}

static br_code
body(px_parser *p)
{
    size_t marks[BR_PTX_MAX_DEPTH];
    uint32_t depth = 0;

    for (;;) {
        if (p->tok == '{') {
            if (depth == BR_PTX_MAX_DEPTH)
                return px_fail(p, "braces over %d deep", BR_PTX_MAX_DEPTH);
            marks[depth++] = p->syms.n;
            if (!br_vec_push(&p->outer, p->scope))
                return px_oom(p);
            p->scope = (uint32_t)p->outer.n - 1;
            BR_TRY(px_next(p));
        } else if (p->tok == '}') {
            forget(p, marks[--depth]);
            p->scope = p->outer.at[p->scope];
            BR_TRY(px_next(p));
            if (depth == 0)
                return BR_OK;
        } else if (p->tok == ';') {
            BR_TRY(px_next(p));
        } else if (p->tok == 'w' && p->word.p[0] == '.') {
            BR_TRY(body_directive(p));
        } else if (p->tok == 'w') {
            const char *at = p->p;
            br_text w = p->word;

            while (at < p->end && (*at == ' ' || *at == '\t'))
                at++;
            if (at < p->end && *at == ':') {
                BR_TRY(px_next(p));
                BR_TRY(label(p, w));
            } else {
                BR_TRY(instruction(p));
            }
        } else if (p->tok == '@') {
            BR_TRY(instruction(p));
        } else {
            return px_fail(p,
                           p->tok ? "'%c' does not belong into a function"
                                  : "the end of a function is missing",
                           p->tok);
        }
    }
}

/* ---- functions ---------------------------------------------------------- */

static br_code
parameter(px_parser *p, bool result)
{
    br_kfn *f = &p->m->fns.at[p->fn];
    br_kparam q = {.result = result};
    bool reg = px_is(p, ".reg") && !f->entry;
    px_decl d;

    BR_TRY(px_declaration(p, &d));
    if (d.space != BR_KM_SPACE_PARAM && !reg)
        return px_fail(p, "a parameter is .param or, of a .func, .reg");
    q.bytes = (uint32_t)d.bytes;
    q.align = d.align;
    BR_TRY(px_place(p, f->entry ? &f->param_bytes : &f->frame_bytes, d.bytes,
                    d.align, &q.offset));
    q.name =
        (br_text){br_arena_str(&p->m->arena, d.name.p, d.name.n), d.name.n};
    if (!q.name.p || !br_vec_push(&f->params, q))
        return px_oom(p);
    if (reg) {
        px_regparam rp = {(uint32_t)p->regs.n, q.offset, result};

        if (!br_vec_push(&p->regs, (uint8_t)d.type) ||
            !br_vec_push(&p->regparams, rp))
            return px_oom(p);
        return px_declare(p, d.name, S_REG, rp.reg, 1, NULL);
    }
    return px_declare(p, d.name, f->entry ? S_PARAM : S_FRAME, q.offset, 0,
                      NULL);
}

static br_code
parameters(px_parser *p, bool result)
{
    BR_TRY(px_next(p)); /* ( */
    while (p->tok != ')') {
        BR_TRY(parameter(p, result));
        if (p->tok == ',')
            BR_TRY(px_next(p));
        else if (p->tok != ')')
            return px_fail(p, "a , or ) has to follow the parameter");
    }
    return px_next(p);
}

static br_code
three_numbers(px_parser *p, uint32_t at[3], uint32_t *product)
{
    uint64_t all = 1;
    int d = 0;

    at[0] = at[1] = at[2] = 1; /* what is left out */
    do {
        px_opnd n;

        BR_TRY(px_next(p));
        if (p->tok != 'w' || !px_number(p->word, &n) || n.kind != O_INT ||
            n.imm > 1 << 16)
            return px_fail(p, "a number of threads has to stand here");
        if (d == 3)
            return px_fail(p, "there are three directions");
        at[d++] = (uint32_t)n.imm;
        all *= n.imm;
        if (all > UINT32_MAX)
            return px_fail(p, "too many threads");
        BR_TRY(px_next(p));
    } while (p->tok == ',');
    *product = (uint32_t)all;
    return BR_OK;
}

static br_code
blocks_of_cluster(px_parser *p, br_kfn *f)
{
    BR_TRY(three_numbers(p, f->cluster, &p->cluster));
    if (p->cluster == 0 || p->cluster > BR_KMAX_CLUSTER)
        return px_fail(p, "a cluster has 1 to %d blocks", BR_KMAX_CLUSTER);
    return BR_OK;
}

static br_code
head_directives(px_parser *p)
{
    br_kfn *f = &p->m->fns.at[p->fn];
    uint32_t any[3];

    while (p->tok == 'w' && p->word.p[0] == '.') {
        if (px_is(p, ".maxntid")) /* its product holds */
            BR_TRY(three_numbers(p, any, &f->max_threads));
        else if (px_is(p, ".reqntid"))
            BR_TRY(three_numbers(p, f->req_block, &f->req_threads));
        else if (px_is(p, ".maxclusterrank"))
            BR_TRY(three_numbers(p, any, &f->max_cluster));
        else if (px_is(p, ".reqnctapercluster"))
            BR_TRY(blocks_of_cluster(p, f));
        else if (px_is(p, ".pragma"))
            BR_TRY(skip_to_semicolon(p));
        else { /* .minnctapersm 2, .noreturn, .explicitcluster */
            if (px_is(p, ".explicitcluster") && !p->cluster)
                p->cluster = 1;
            BR_TRY(px_next(p));
            while (p->tok == ',' || (p->tok == 'w' && p->word.p[0] >= '0' &&
                                     p->word.p[0] <= '9'))
                BR_TRY(px_next(p));
        }
    }
    return BR_OK;
}

/* A function may be declared first and defined later: the same one. */
static br_code
function_named(px_parser *p, bool entry, br_text name)
{
    uint32_t at = br_kir_find_fn(p->m, name);
    br_kfn *f;

    if (at == BR_KNONE) {
        at = br_kir_fn(p->m, name);
        if (p->m->oom)
            return px_oom(p);
    } else if (!p->m->fns.at[at].external) {
        return px_fail(p, "a second function '%.*s'",
                       (int)BR_MIN(name.n, (size_t)60), name.p);
    }
    p->fn = at;
    f = &p->m->fns.at[at];
    f->entry = entry;
    f->external = true;
    f->line = p->line;
    f->params.n = 0;
    f->param_bytes = f->frame_bytes = 0;
    return BR_OK;
}

static br_code
function(px_parser *p)
{
    bool entry = px_is(p, ".entry");
    size_t mark = p->syms.n, before = p->m->fns.n;
    br_text name;

    p->ins.n = p->ops.n = p->labels.n = p->names.n = p->targets.n = 0;
    p->regs.n = p->outer.n = p->regparams.n = 0;
    p->scope = p->cluster = 0;
    br_map_fini(&p->label_names);
    br_map_fini(&p->label_at);
    if (!br_vec_push(&p->regs, (uint8_t)BR_KT_PRED) ||
        !br_vec_push(&p->outer, 0u))
        return px_oom(p);
    BR_TRY(px_next(p));
    if (p->tok == '(') {
        /* The results come before the name that they belong to. */
        const char *at = p->p;
        uint32_t line = p->line;

        while (p->tok && p->tok != ')')
            BR_TRY(px_next(p));
        BR_TRY(px_expect(p, ')'));
        name = p->word;
        if (p->tok != 'w')
            return px_fail(p, "the function has no name");
        BR_TRY(function_named(p, entry, name));
        p->p = at;
        p->line = line;
        p->tok = '(';
        BR_TRY(parameters(p, true));
    } else {
        name = p->word;
        if (p->tok != 'w')
            return px_fail(p, "the function has no name");
        BR_TRY(function_named(p, entry, name));
    }
    BR_TRY(px_next(p));
    if (p->tok == '(')
        BR_TRY(parameters(p, false));
    BR_TRY(head_directives(p));
    if (before < p->m->fns.n) { /* known from here on, to itself too */
        drop(p, mark);
        BR_TRY(px_declare(p, p->m->fns.at[p->fn].name, S_FN, p->fn, 0, NULL));
        mark = p->syms.n;
        for (size_t k = 0; k < p->m->fns.at[p->fn].params.n; k++) {
            br_kparam *q = &p->m->fns.at[p->fn].params.at[k];
            px_symkind kind = entry ? S_PARAM : S_FRAME;
            uint32_t id = q->offset;

            for (size_t r = 0; r < p->regparams.n; r++)
                if (p->regparams.at[r].offset == q->offset) {
                    kind = S_REG;
                    id = p->regparams.at[r].reg;
                }
            BR_TRY(px_declare(p, q->name, kind, id, 1, NULL));
        }
    }
    if (p->tok == ';') {
        drop(p, mark);
        return px_next(p);
    }
    p->m->fns.at[p->fn].external = false;
    BR_TRY(p->tok == '{' ? body(p) : px_expect(p, '{'));
    BR_TRY(px_lower_fn(p));
    drop(p, mark);
    return BR_OK;
}

/* ---- the file ----------------------------------------------------------- */

static br_code
section(px_parser *p)
{
    while (p->tok && p->tok != '{')
        BR_TRY(px_next(p));
    while (p->tok && p->tok != '}')
        BR_TRY(px_next(p));
    return px_expect(p, '}');
}

static br_code
target(px_parser *p)
{
    char *s;

    BR_TRY(px_next(p));
    s = br_arena_str(&p->m->arena, p->word.p, p->word.n);
    if (!s)
        return px_oom(p);
    if (p->tok != 'w')
        return px_fail(p, ".target: a name is missing");
    p->m->target = (br_text){s, p->word.n};
    BR_TRY(px_next(p));
    while (p->tok == ',') {
        BR_TRY(px_next(p));
        BR_TRY(px_next(p));
    }
    return BR_OK;
}

static br_code
top(px_parser *p)
{
    static const char *const words[] = {".visible", ".extern", ".weak",
                                        ".common"};
    unsigned linkage = 0;

    for (size_t k = 0; k < BR_COUNT(words); k++)
        if (px_is(p, words[k])) {
            linkage = (unsigned)k + 1;
            BR_TRY(px_next(p));
        }
    if (px_is(p, ".entry") || px_is(p, ".func"))
        return function(p);
    if (px_is(p, ".global") || px_is(p, ".shared") || px_is(p, ".const"))
        return px_variable(p, linkage);
    if (px_is(p, ".target"))
        return target(p);
    if (px_is(p, ".version") || px_is(p, ".address_size")) {
        BR_TRY(px_next(p));
        return px_next(p);
    }
    if (px_is(p, ".file") || px_is(p, ".loc"))
        return line_directive(p);
    if (px_is(p, ".section"))
        return section(p);
    if (px_is(p, ".pragma")) {
        BR_TRY(px_next(p));
        p->pairs |= p->tok == '"' && br_text_is(p->word, "brass fp64 emulate");
        return skip_to_semicolon(p);
    }
    if (px_is(p, ".alias"))
        return skip_to_semicolon(p);
    if (p->tok == ';')
        return px_next(p);
    return px_fail(p, "'%.*s' does not belong here",
                   (int)BR_MIN(p->word.n ? p->word.n : 1, (size_t)40),
                   p->word.n ? p->word.p : p->p - 1);
}

static void
fini(px_parser *p)
{
    br_map_fini(&p->map);
    br_map_fini(&p->ranges);
    br_map_fini(&p->opcodes_by_text);
    br_map_fini(&p->label_names);
    br_map_fini(&p->label_at);
    br_vec_fini(&p->syms);
    br_vec_fini(&p->opcodes);
    br_vec_fini(&p->outer);
    br_vec_fini(&p->ins);
    br_vec_fini(&p->ops);
    br_vec_fini(&p->regs);
    br_vec_fini(&p->labels);
    br_vec_fini(&p->names);
    br_vec_fini(&p->targets);
    br_vec_fini(&p->regparams);
    br_free(p->late);
}

br_code
br_ptx_parse(br_kir **out, const char *text, size_t n, const br_ptx_opts *opts,
             br_status *st)
{
    px_parser p = {.p = text, .end = text + n, .line = 1, .st = st};
    br_code code;

    *out = NULL;
    p.opts = opts;
    if (n > BR_PTX_MAX_BYTES)
        return br_fail(st, BR_E_LIMIT, "over %d bytes of PTX",
                       BR_PTX_MAX_BYTES);
    p.m = br_kir_new(st);
    if (!p.m)
        return BR_E_OOM;
    code = px_next(&p);
    while (code == BR_OK && p.tok)
        code = top(&p);
    if (code == BR_OK)
        code = px_late_symbols(&p);
    if (code == BR_OK && p.m->oom)
        code = px_oom(&p);
    if (code == BR_OK)
        code = br_kir_verify(p.m, st);
    fini(&p);
    if (code != BR_OK)
        br_kir_free(p.m);
    else
        *out = p.m;
    return code;
}
