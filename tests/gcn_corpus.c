/* gcn_corpus.c - see gcn_corpus.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gcn_corpus.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define IN_AT   0x100000000ull
#define OUT_AT  0x200000000ull
#define WORK_AT 0x300000000ull
#define ARGS_AT 0x10000ull
#define CODE_AT 0x100000000000ull

static void
first(void *arg, const char *text)
{
    corpus_run *r = arg;

    if (!*r->finding)
        strncat(r->finding, text, sizeof r->finding - 1);
}

static void
fill(corpus_run *r)
{
    static uint32_t in[CORPUS_IN / 4];
    static bool filled;
    br_rng g;

    br_rng_init(&g, 7, 0);
    for (size_t k = 0; !filled && k < CORPUS_IN / 4; k++)
        in[k] = br_rng_u32(&g);
    filled = true;
    memcpy(r->in, in, sizeof in);
    memset(r->out, 0, sizeof r->out);
    memset(r->work, 0, sizeof r->work);
}

const char *
corpus_name(const br_kir *m, uint32_t nth, char buf[64])
{
    for (uint32_t f = 0; f < m->fns.n; f++)
        if (m->fns.at[f].entry && nth-- == 0) {
            snprintf(buf, 64, "%.*s", (int)m->fns.at[f].name.n,
                     m->fns.at[f].name.p);
            return buf;
        }
    return NULL;
}

br_code
corpus_run_object(corpus_run *r, const br_gcn_co *co, const char *kernel,
                  const uint32_t blocks[3], const uint32_t threads[3])
{
    /* Parameters, then what compilers hide behind them. */
    uint64_t args[64] = {IN_AT, OUT_AT, WORK_AT};
    br_kregion m[] = {
        {IN_AT, sizeof r->in, r->in, true, "in"},
        {OUT_AT, sizeof r->out, r->out, false, "out"},
        {WORK_AT, sizeof r->work, r->work, false, "work"},
        {ARGS_AT, sizeof args, (uint8_t *)args, true, "arguments"}};
    br_sim s = {.cpu = co->isa.cpu,
                .check = r->check,
                .seed = r->seed,
                .max_steps = r->max_steps,
                .mix = r->mix,
                .finding = first,
                .arg = r};
    const br_gcn_symbol *kd = br_gcn_kernel_find(co, kernel);
    br_aql_launch l = {.kernarg = ARGS_AT};
    br_aql_packet p;
    br_code c = BR_OK;

    memset(&r->st, 0, sizeof r->st);
    *r->finding = 0;
    r->seconds = 0;
    fill(r);
    if (!kd)
        return br_fail(&r->st, BR_E_NOT_FOUND, "no kernel %s", kernel);
    memcpy(l.groups, blocks, sizeof l.groups);
    memcpy(l.group, threads, sizeof l.group);
    memcpy(&l.group_bytes, co->image + kd->at, 4);
    memcpy(&l.private_bytes, co->image + kd->at + 4, 4);
    l.kernel = CODE_AT + kd->at;
    for (size_t k = 0; k < BR_COUNT(m) && c == BR_OK; k++)
        c = br_sim_map(&s, &m[k], &r->st);
    if (c == BR_OK)
        c = br_sim_load(&s, co, CODE_AT, &r->st);
    if (c == BR_OK)
        c = br_aql_fill(&p, &l, &r->st);
    for (unsigned k = 0; k <= r->repeat && c == BR_OK; k++) {
        clock_t begin;

        if (k)
            fill(r);
        begin = clock();
        c = br_sim_dispatch(&s, &p, &r->st);
        r->seconds += (double)(clock() - begin) / CLOCKS_PER_SEC;
    }
    r->steps = s.steps;
    r->hints = s.hints;
    r->findings = s.findings;
    br_sim_fini(&s);
    return c;
}

br_code
corpus_run_words(corpus_run *r, const br_gcn_isa *isa, const br_gcn_compiled *k,
                 const uint32_t *words, const uint32_t blocks[3],
                 const uint32_t threads[3])
{
    br_gcn_kernel changed = k->k;
    br_gcn_co co = {0};
    br_str o = {0};
    br_code c;

    changed.code = words;
    c = br_gcn_object(&o, isa, &changed, 1, &r->st);
    if (c == BR_OK)
        c = br_gcn_load(&co, o.at, o.n, &r->st);
    br_str_fini(&o);
    if (c == BR_OK)
        c = corpus_run_object(r, &co, k->k.name, blocks, threads);
    br_gcn_unload(&co);
    return c;
}

bool
corpus_same(const corpus_run *a, const corpus_run *b)
{
    return memcmp(a->out, b->out, sizeof a->out) == 0 &&
           memcmp(a->work, b->work, sizeof a->work) == 0;
}
