/* ptx_kit.c - PTX for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "drv/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

br_kir *
ptx_load(const char *text)
{
    br_status st = {0};
    br_kir *m;

    t_ok(br_ptx_parse(&m, text, strlen(text), NULL, &st), &st);
    return m;
}

static void
first_finding(void *arg, const char *text)
{
    br_status *st = arg;

    if (!*st->msg)
        (void)br_fail(st, BR_E_FAULT, "%s", text);
}

static void
read_cases(ptx_set *s, char *tsv)
{
    char *line, *save = NULL;

    s->cases = t_keep(calloc(2000, sizeof *s->cases));
    for (line = strtok_r(tsv, "\n", &save); line && s->n < 2000;
         line = strtok_r(NULL, "\n", &save)) {
        ptx_case *c = &s->cases[s->n++];

        ck_assert_int_ge(sscanf(line, "%*d\t%99[^\t]\t%15[^\t]\t%39[^\t]",
                                c->what, c->dst, c->src),
                         1);
    }
}

void
ptx_vectors(ptx_set *s, const char *name)
{
    const char *dir = t_vectors("ptx"), *argv[5] = {"gzip", "-dc"};
    br_status st = {0};
    size_t n;
    char *text;
    t_proc p;

    if (!dir)
        t_skip("no ../shared/vectors here");
    if (!t_have_program("gzip"))
        t_skip("no gzip here");
    *s = (ptx_set){0};
    text = t_read(t_printf("%s/%s.ptx", dir, name), &n);
    t_ok(br_ptx_parse(&s->m, text, n, &(br_ptx_opts){.strict = true}, &st),
         &st);
    text = t_read(t_printf("%s/inputs.bin", dir), &n);
    ck_assert_uint_eq(n, sizeof s->in);
    memcpy(s->in, text, n);
    read_cases(s, t_read(t_printf("%s/%s.tsv", dir, name), NULL));
    argv[2] = t_printf("%s/%s.out.gz", dir, name);
    t_exec(&p, argv, NULL, 0);
    ck_assert_uint_eq(p.n_out, (size_t)s->n * PTX_ROWS * 8);
    s->out = (const uint64_t *)(void *)p.out;
}

void
ptx_target(ptx_set *s, const char *name)
{
    br_status st = {0};
    br_code code;

    s->on = br_sim_target(&s->sim, name) ? &s->sim : br_ktarget_find(name);
    ck_assert(s->on != NULL);
    code = s->on->compile(&s->code, s->m, &st);
    if (code == BR_E_NO_DEVICE)
        t_skip("%s", st.msg);
    t_ok(code, &st);
}

void
ptx_fini(ptx_set *s)
{
    if (s->on)
        s->on->free(s->code);
    br_kir_free(s->m);
}

const char *
ptx_run_case(const ptx_set *s, const br_kir *m, int n, uint64_t *out)
{
    static br_status st;
    uint64_t params[2] = {0x100000000, 0x200000000};
    uint64_t in[PTX_ROWS * 3];
    br_kregion regions[2] = {
        {params[0], sizeof s->in, (uint8_t *)in, true, "in"},
        {params[1], PTX_ROWS * 8, (uint8_t *)out, false, "out"}};
    br_klaunch l = {.grid = {8, 1, 1},
                    .block = {128, 1, 1},
                    .params = (const uint8_t *)params,
                    .regions = regions,
                    .n_regions = 2,
                    .check = s->check,
                    .finding = first_finding,
                    .arg = &st};
    br_kimage *im;
    char name[16];

    st = (br_status){0};
    memcpy(in, s->in, sizeof in);
    memset(out, 0, PTX_ROWS * 8);
    snprintf(name, sizeof name, "k_%d", n);
    l.fn = br_kir_find_fn(m, br_text_z(name));
    ck_assert_uint_ne(l.fn, BR_KNONE);
    t_ok(br_kimage_new(&im, m, &st), &st);
    l.image = im;
    if ((s->on ? s->on->launch(s->code, &l, &st) : br_kinterp_run(&l, &st)) !=
        BR_OK) {
        br_kimage_free(im);
        return st.msg;
    }
    br_kimage_free(im);
    return st.msg;
}
