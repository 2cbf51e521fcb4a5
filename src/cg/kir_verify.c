/* kir_verify.c - what kernel IR is legal; run on whatever comes from text and
 * after every pass.
 *
 *   types      the operation takes its types; modifiers are of its groups
 *   arguments  as many and of the classes that the signature says
 *   results    made by one instruction each, in one block
 *   uses       dominated by the definition; a phi's, at the end of the
 *              predecessor that it came along
 *   blocks     all reachable, block 0 without predecessors; phis first; one
 *              terminator, last, with as many targets as it needs; a barrier
 *              stands right before its terminator
 *   numbers    symbols, special registers, truth tables, sizes in range
 *   variables  a space, a power of two as alignment, relocations inside
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"

#include <string.h>

enum { FINE = 64 }; /* a power of two */

typedef struct verifier {
    const br_kir *m;
    const br_kfn *f;
    br_status *st;
    uint32_t *rpo, *place, *idom; /* per block */
    uint32_t *def_blk, *def_at;   /* per value: where it is made */
    uint32_t n;                   /* blocks reached */
    uint64_t fine[FINE];          /* instructions that break no rule */
} verifier;

static br_code
bad(const verifier *v, const br_kins *i, const char *rule)
{
    br_str text = {0};

    if (i)
        br_kins_print(v->m, v->f, i, &text);
    br_fail(v->st, BR_E_REJECTED, "function %.*s: %s%s%.160s",
            (int)BR_MIN(v->f->name.n, (size_t)60), v->f->name.p, rule,
            i ? ": " : "", i ? br_str_z(&text) : "");
    br_str_fini(&text);
    return BR_E_REJECTED;
}

/* ---- one instruction ---------------------------------------------------- */

static const char *
type_rule(const br_kins *i)
{
    const char *types = br_kopinfo_of[i->op].types;
    const char *slash = strchr(types, '/');
    size_t n1 = slash ? (size_t)(slash - types) : strlen(types);

    if (i->type >= BR_KT_COUNT || i->type2 >= BR_KT_COUNT)
        return "a type that is not there";
    if (n1 ? !i->type || !memchr(types, br_ktinfo_of[i->type].cat, n1)
           : i->type != 0)
        return "the operation does not take this type";
    if (slash ? !i->type2 || !strchr(slash + 1, br_ktinfo_of[i->type2].cat)
              : i->type2 != 0)
        return "the operation does not take this second type";
    if (i->op == BR_K_MULWIDE && br_ktinfo_of[i->type].bytes == 8)
        return "nothing is twice as wide as 64 bits";
    if ((i->op == BR_K_PACK || i->op == BR_K_UNPACK) && i->type == BR_KT_B16)
        return "nothing is half as wide as 16 bits";
    return NULL;
}

const char *
br_kins_rule(const br_kins *i)
{
    const char *groups = br_kopinfo_of[i->op].groups;
    const char *wrong = type_rule(i);
    uint32_t known = 0;

    if (wrong)
        return wrong;
    /* Values first: of a module's time, looking at letters took a third. */
    for (const br_kminfo *m = br_kminfo_of; i->mods && m->letter; m++)
        if (br_kmod(i->mods, m->field) == m->value && m->value &&
            strchr(groups, m->letter))
            known |= br_kmod_put(m->field, m->value);
    if (known != i->mods)
        return "a modifier that the operation does not have";
    if (i->op == BR_K_SETP && !br_kmod(i->mods, BR_KF_CMP))
        return "setp needs a comparison";
    if (*groups && !br_kmod(i->mods, BR_KF_SUB) && strpbrk(groups, "2456780"))
        return "the operation needs its modifier";
    return NULL;
}

/* br_kins_rule, of what was not looked at lately: a module has few of them, and
 * they were half of the verifier's time. */
static const char *
rule_of(verifier *v, const br_kins *i)
{
    uint64_t key = (uint64_t)i->mods << 32 | (uint32_t)i->op << 16 |
                   (uint32_t)i->type2 << 8 | i->type;
    uint64_t *at = &v->fine[(key * 0x9e3779b97f4a7c15ull >> 32) % FINE];
    const char *wrong = *at == key + 1 ? NULL : br_kins_rule(i);

    if (!wrong)
        *at = key + 1;
    return wrong;
}

static br_code
check_args(const verifier *v, const br_kins *i)
{
    const char *sig = strchr(br_kopinfo_of[i->op].sig, ':') + 1;
    unsigned a = 0;

    if (i->n_arg > BR_KMAX_ARGS || i->res > v->f->vals.n ||
        (size_t)i->arg + i->n_arg > v->f->args.n ||
        (size_t)i->res + i->n_res > v->f->vals.n)
        return bad(v, NULL, "arguments or results out of range");
    for (; a < i->n_arg && *sig; a++) {
        uint32_t x = br_kargs(v->f, i)[a];

        if (x >= v->f->vals.n)
            return bad(v, NULL, "an argument that is no value");
        if (v->f->vals.at[x].cls != br_kclass_of(*sig, i))
            return bad(v, i, "an argument of the wrong class");
        if (sig[1] != '*')
            sig++;
    }
    if (a < i->n_arg || (*sig && sig[1] != '*'))
        return bad(v, i, "the number of arguments is wrong");
    sig = br_kopinfo_of[i->op].sig;
    if (sig[1] == '*' && (i->n_res == 0 || i->n_res > 8))
        return bad(v, i, "one to eight results");
    for (a = 0; a < i->n_res && *sig != ':'; a++, sig += sig[1] != '*')
        if (v->f->vals.at[i->res + a].cls != br_kclass_of(*sig, i))
            return bad(v, NULL, "a result of the wrong class");
    if (a < i->n_res || (*sig != ':' && sig[1] != '*'))
        return bad(v, NULL, "the number of results is wrong");
    if ((i->op == BR_K_ST || i->op == BR_K_STMATRIX) &&
        (i->n_arg < 2 || i->n_arg > 9))
        return bad(v, i, "one to eight values to store");
    return BR_OK;
}

static br_code
check_numbers(const verifier *v, const br_kins *i)
{
    unsigned props = br_kopinfo_of[i->op].props;
    bool fn = i->sym != BR_KNONE && (i->sym & BR_KFN_SYM);
    uint32_t s = i->sym & ~BR_KFN_SYM;

    if (!(props & BR_KP_SYM) != (i->sym == BR_KNONE))
        return bad(v, NULL, "a symbol too many or too few");
    if ((props & BR_KP_SYM) && s >= (fn ? v->m->fns.n : v->m->vars.n))
        return bad(v, NULL, "a symbol that is not there");
    if (i->op == BR_K_CALL &&
        (!fn || v->m->fns.at[s].entry || v->m->fns.at[s].params.n != i->n_arg))
        return bad(v, i, "a call does not fit the function");
    if ((props & BR_KP_SREG) &&
        (i->imm < 0 || i->imm >= BR_KS_COUNT ||
         br_ksreg_class[i->imm] != br_ktinfo_of[i->type].cls))
        return bad(v, NULL, "a special register of another class");
    if (i->op == BR_K_LOP3 && (i->imm < 0 || i->imm > 255))
        return bad(v, i, "a truth table has eight bits");
    if (i->op == BR_K_TRAP && (i->imm < 0 || i->imm > (int64_t)v->m->notes.n))
        return bad(v, i, "a trap without its note");
    if (i->op == BR_K_CPASYNC && i->imm != 4 && i->imm != 8 && i->imm != 16)
        return bad(v, i, "4, 8 or 16 bytes are copied");
    if ((i->op == BR_K_CPBULK || i->op == BR_K_CPREDUCE) && i->n_arg > 4)
        return bad(v, i, "one mbarrier hears of a copy");
    if (i->op == BR_K_ALLOCA &&
        (i->imm < 1 || i->imm > 4096 || (i->imm & (i->imm - 1))))
        return bad(v, i, "an alignment is a power of two up to 4096");
    return BR_OK;
}

/* ---- one function ------------------------------------------------------- */

static br_code
check_defs(verifier *v)
{
    for (size_t x = 0; x < v->f->vals.n; x++)
        v->def_blk[x] = BR_KNONE;
    for (uint32_t b = 0; b < v->f->blks.n; b++) {
        const br_kblk *k = &v->f->blks.at[b];

        for (uint32_t at = 0; at < k->ins.n; at++) {
            const char *wrong;
            const br_kins *i;

            if (k->ins.at[at] >= v->f->ins.n)
                return bad(v, NULL, "a block names no instruction");
            i = &v->f->ins.at[k->ins.at[at]];
            if (i->op >= BR_K_COUNT)
                return bad(v, NULL, "an operation that is not there");
            wrong = rule_of(v, i);
            if (wrong)
                return bad(v, NULL, wrong);
            BR_TRY(check_numbers(v, i));
            BR_TRY(check_args(v, i));
            for (unsigned r = 0; r < i->n_res; r++) {
                const br_kval *x = &v->f->vals.at[i->res + r];

                if (v->def_blk[i->res + r] != BR_KNONE ||
                    x->kind != BR_KV_INS || x->def != k->ins.at[at])
                    return bad(v, i, "a result that is made twice");
                v->def_blk[i->res + r] = b;
                v->def_at[i->res + r] = at;
            }
        }
    }
    return BR_OK;
}

static br_code
check_uses(const verifier *v, uint32_t b, uint32_t at, const br_kins *i)
{
    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t x = br_kargs(v->f, i)[a], use = b;
        bool ok;

        if (v->f->vals.at[x].kind != BR_KV_INS)
            continue;
        if (v->def_blk[x] == BR_KNONE)
            return bad(v, i, "an argument that nothing makes");
        if (i->op == BR_K_PHI)
            use = v->f->blks.at[b].pred.at[a];
        ok = v->def_blk[x] == use && i->op != BR_K_PHI
                 ? v->def_at[x] < at
                 : br_kdominates(v->idom, v->place, v->def_blk[x], use);
        if (!ok)
            return bad(v, i, "an argument is used before it is made");
    }
    return BR_OK;
}

static br_code
check_shape(const verifier *v, uint32_t b)
{
    const br_kblk *k = &v->f->blks.at[b];
    bool phis = true;

    if (v->place[b] == BR_KNONE)
        return bad(v, NULL, "a block that nothing reaches");
    if (b == 0 && k->pred.n)
        return bad(v, NULL, "the first block has a predecessor");
    if (k->ins.n == 0)
        return bad(v, NULL, "an empty block");
    for (uint32_t at = 0; at < k->ins.n; at++) {
        const br_kins *i = &v->f->ins.at[k->ins.at[at]];
        unsigned props = br_kopinfo_of[i->op].props;
        size_t s = k->succ.n;

        if (!(props & BR_KP_TERM) != (at + 1 < k->ins.n))
            return bad(v, i, "a block ends with its one terminator");
        if ((props & BR_KP_BAR) && at + 2 != k->ins.n)
            return bad(v, i, "a barrier stands right before the terminator");
        if ((props & BR_KP_TERM) && (i->op == BR_K_BR       ? s != 1
                                     : i->op == BR_K_CBR    ? s != 2
                                     : i->op == BR_K_SWITCH ? s == 0
                                                            : s != 0))
            return bad(v, i, "the number of targets is wrong");
        if (i->op == BR_K_PHI && (!phis || i->n_arg != k->pred.n))
            return bad(v, i, "phis come first, with a value for each edge");
        phis = phis && i->op == BR_K_PHI;
        BR_TRY(check_uses(v, b, at, i));
    }
    return BR_OK;
}

/* The edges as succ says, counted against pred. */
static br_code
check_edges(const verifier *v)
{
    size_t succ = 0, pred = 0;

    for (uint32_t b = 0; b < v->f->blks.n; b++) {
        const br_kblk *k = &v->f->blks.at[b];

        succ += k->succ.n;
        pred += k->pred.n;
        for (size_t s = 0; s < k->succ.n; s++)
            if (k->succ.at[s] >= v->f->blks.n)
                return bad(v, NULL, "a target that is not there");
        for (size_t p = 0; p < k->pred.n; p++) {
            bool there = false;

            if (k->pred.at[p] >= v->f->blks.n)
                return bad(v, NULL, "a predecessor that is not there");
            for (size_t s = 0; s < v->f->blks.at[k->pred.at[p]].succ.n; s++)
                there |= v->f->blks.at[k->pred.at[p]].succ.at[s] == b;
            if (!there)
                return bad(v, NULL, "a predecessor that does not lead here");
        }
    }
    if (succ != pred)
        return bad(v, NULL, "predecessors and successors disagree");
    return BR_OK;
}

static br_code
check_fn(verifier *v)
{
    const br_kfn *f = v->f;
    size_t nb = f->blks.n, nv = f->vals.n;
    uint32_t *mem;
    br_code code;

    if (f->external ? nb != 0 : nb == 0)
        return bad(v, NULL, "a function has blocks, an external one none");
    for (size_t i = 0; i < f->params.n; i++) {
        const br_kparam *p = &f->params.at[i];
        uint64_t room = f->entry ? f->param_bytes : f->frame_bytes;

        if (!f->external && (uint64_t)p->offset + p->bytes > room)
            return bad(v, NULL, "a parameter outside of its place");
    }
    if (nb == 0)
        return BR_OK;
    BR_TRY(check_edges(v));
    mem = br_try_calloc(3 * nb + 2 * nv + 1, sizeof *mem);
    if (!mem)
        return br_fail(v->st, BR_E_OOM, "kernel IR: out of memory");
    v->rpo = mem;
    v->place = mem + nb;
    v->idom = mem + 2 * nb;
    v->def_blk = mem + 3 * nb;
    v->def_at = v->def_blk + nv;
    v->n = br_kfn_rpo(f, v->rpo, v->place);
    br_kfn_idom(f, v->rpo, v->n, v->place, v->idom);
    code = check_defs(v);
    for (uint32_t b = 0; code == BR_OK && b < nb; b++)
        code = check_shape(v, b);
    br_free(mem);
    return code;
}

static br_code
check_var(const br_kir *m, const br_kvar *x, br_status *st)
{
    if (!x->space || x->space > BR_KM_SPACE_CONST || !x->align ||
        (x->align & (x->align - 1)) || x->bytes > BR_KMAX_BYTES)
        return br_fail(st, BR_E_REJECTED,
                       "variable %.*s: space, alignment or size is wrong",
                       (int)BR_MIN(x->name.n, (size_t)60), x->name.p);
    for (size_t i = 0; i < x->relocs.n; i++) {
        const br_kreloc *r = &x->relocs.at[i];
        bool fn = r->sym & BR_KFN_SYM;

        if (!x->init || (r->bytes != 4 && r->bytes != 8) ||
            (uint64_t)r->offset + r->bytes > x->bytes ||
            (r->sym & ~BR_KFN_SYM) >= (fn ? m->fns.n : m->vars.n))
            return br_fail(st, BR_E_REJECTED,
                           "variable %.*s: an address outside of it",
                           (int)BR_MIN(x->name.n, (size_t)60), x->name.p);
    }
    return BR_OK;
}

br_code
br_kir_verify(const br_kir *m, br_status *st)
{
    for (size_t i = 0; i < m->vars.n; i++)
        BR_TRY(check_var(m, &m->vars.at[i], st));
    for (size_t i = 0; i < m->fns.n; i++) {
        verifier v = {.m = m, .f = &m->fns.at[i], .st = st};

        BR_TRY(check_fn(&v));
    }
    return BR_OK;
}
