/* test_mega_show.c - the pictures: golden for small programs, well formed for
 * all, bounded in size, harmless whatever a label holds.
 *
 * Golden pictures have no target, so they do not move with the cost model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "unit/prog_make.h"

#include "mega/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static char *
show(const br_mega_prog *p, br_mega_show_format f, const char *target)
{
    br_mega_show_opts o = {.format = f};
    br_mega_target t;
    br_status st = {0};
    br_str out = {0};
    char *z;

    if (target) {
        bool slow = strcmp(target, "slow") == 0; /* 1 ms for a byte */

        t_ok(br_mega_target_get(&t, br_text_z(slow ? "h100" : target), &st),
             &st);
        if (slow)
            t.hbm_bandwidth_gbs = t.measured_bw_gbs = 1e-6;
        o.target = &t;
    }
    t_ok(br_mega_show(p, &o, &out, &st), &st);
    z = t_keep(strdup(br_str_z(&out)));
    ck_assert_uint_eq(strlen(z), out.n);
    br_str_fini(&out);
    return z;
}

/* ---- well-formed XML --------------------------------------------------- */

static void
expect(bool c, const char *at, const char *what)
{
    if (!c)
        ck_abort_msg("%s at: %.60s", what, at);
}

static const char *
entity(const char *p)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};

    for (size_t i = 0; i < BR_COUNT(known); i++)
        if (!strncmp(p, known[i], strlen(known[i])))
            return p + strlen(known[i]);
    expect(false, p, "an ampersand that is no entity");
    return p;
}

static const char *
text_char(const char *p)
{
    uint8_t c = (uint8_t)*p;
    int n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    if (c == '&')
        return entity(p);
    expect(c >= 0x20 || c == '\n', p, "a control character");
    expect(c < 0x80 || (c >= 0xc2 && c < 0xf5), p, "no UTF-8");
    expect(!(c == 0xed && (uint8_t)p[1] >= 0xa0), p, "a surrogate");
    for (int i = 1; i < n; i++)
        expect(((uint8_t)p[i] & 0xc0) == 0x80, p, "no UTF-8");
    return p + n;
}

/* p behind "<name"; returns behind ">", and whether it ended in "/>". */
static const char *
attributes(const char *p, bool *closed)
{
    *closed = false;
    for (;;) {
        while (*p == ' ' || *p == '\n')
            p++;
        if (*p == '>')
            return p + 1;
        if (p[0] == '/' && p[1] == '>') {
            *closed = true;
            return p + 2;
        }
        expect(strcspn(p, "= <>\"") > 0, p, "an attribute without name");
        p += strcspn(p, "= <>\"");
        expect(p[0] == '=' && p[1] == '"', p, "an attribute without value");
        for (p += 2; *p != '"';) {
            expect(*p && *p != '<', p, "a value that does not end");
            p = text_char(p);
        }
        p++;
    }
}

static void
check_xml(const char *z)
{
    char stack[16][16];
    int depth = 0, roots = 0;
    const char *p = z;

    while (*p) {
        size_t n;
        bool closed;
        if (*p != '<') {
            expect(depth || *p == '\n', p, "text outside");
            p = text_char(p);
            continue;
        }
        if (p[1] == '/') {
            n = strcspn(p + 2, ">");
            expect(depth && strlen(stack[depth - 1]) == n &&
                       !strncmp(stack[depth - 1], p + 2, n),
                   p, "an end without its beginning");
            depth--;
            p += n + 3;
            continue;
        }
        n = strcspn(p + 1, " \n/>");
        expect(n > 0 && n < 16 && depth < 16, p, "an odd element");
        roots += depth == 0;
        memcpy(stack[depth], p + 1, n);
        stack[depth][n] = 0;
        p = attributes(p + 1 + n, &closed);
        depth += !closed;
    }
    ck_assert_int_eq(depth, 0);
    ck_assert_int_eq(roots, 1);
}

static size_t
occurs(const char *z, const char *what)
{
    size_t n = 0;

    for (; (z = strstr(z, what)); z++)
        n++;
    return n;
}

/* ---- programs ---------------------------------------------------------- */

/* norm -> four tiles on three workers -> swiglu -> residual */
static mk
small(bool assigned)
{
    static const int sm[] = {0, 0, 1, 2, 2, 1, 0};
    mk m = mk_new(8, 4, 7);
    br_json *meta = m.p->meta;

    ck_assert(
        br_json_put(&m.p->arena, meta, "model",
                    br_json_new_str(&m.p->arena, BR_TEXT("small <one>"))));
    mk_buf(&m, "x", BR_MBK_IO_INPUT, 4);
    for (int i = 0; i < 4; i++) {
        mk_buf(&m, "a", i < 3 ? BR_MBK_ACTIVATION : BR_MBK_IO_OUTPUT, 4);
        mk_ctr(&m);
    }
    m.p->counters[1].note = "gate (4 tiles)";
    m.p->counters[1].note_n = 14;
    mk_label(&m, mk_task(&m, BR_MOP_RMSNORM, 0, MK(0, 0), MK(1), MK_NONE),
             "L0.norm");
    for (int i = 0; i < 4; i++)
        mk_label(&m,
                 mk_task(&m, BR_MOP_GEMV_TILE, 1, MK(1, 0), MK(2), MK(0, 1)),
                 t_printf("L0.gate[t%d]", i));
    mk_label(&m, mk_task(&m, BR_MOP_GELU, 2, MK(2), MK(3), MK(1, 4)),
             "L0.gelu & \"more\"");
    mk_task(&m, BR_MOP_ADD, 3, MK(3, 1), MK(4), MK(2, 1, 0, 1));
    for (size_t i = 0; i < 7 && assigned; i++)
        m.p->tasks[i].sm = sm[i];
    return m;
}

/* `layers` layers of `tiles` tiles and a norm. */
static mk
large(int64_t layers, int64_t tiles)
{
    char z[64];
    mk m = mk_new(2, (size_t)layers * 2, (size_t)(layers * (tiles + 1)));

    mk_buf(&m, "x", BR_MBK_ACTIVATION, 64);
    for (int64_t l = 0; l < layers; l++) {
        mk_ctr(&m);
        mk_ctr(&m);
        snprintf(z, sizeof z, "L%d.norm", (int)l);
        mk_label(&m,
                 mk_task(&m, BR_MOP_RMSNORM, 2 * l, MK(0, 0), MK(0),
                         l ? MK(2 * l - 1, tiles) : MK_NONE),
                 z);
        for (int64_t t = 0; t < tiles; t++) {
            br_mega_task *x = mk_task(&m, BR_MOP_GEMV_TILE, 2 * l + 1, MK(0, 0),
                                      MK(0), MK(2 * l, 1));
            snprintf(z, sizeof z, "L%d.proj[t%d]", (int)l, (int)t);
            mk_label(&m, x, z);
            x->est_bytes = 1 << 20;
        }
    }
    return m;
}

/* ---- golden ------------------------------------------------------------ */

TEST(show_small_programs_as_drawn_before)
{
    mk a = small(true), u = small(false);

    t_golden("tests/golden/mega/show_assigned.svg",
             show(a.p, BR_SHOW_SVG, NULL));
    t_golden("tests/golden/mega/show_assigned.dot",
             show(a.p, BR_SHOW_DOT, NULL));
    t_golden("tests/golden/mega/show_assigned.txt",
             show(a.p, BR_SHOW_TEXT, NULL));
    t_golden("tests/golden/mega/show_free.svg", show(u.p, BR_SHOW_SVG, NULL));
    t_golden("tests/golden/mega/show_free.dot", show(u.p, BR_SHOW_DOT, NULL));
    t_golden("tests/golden/mega/show_free.txt", show(u.p, BR_SHOW_TEXT, NULL));
    br_mega_free(a.p);
    br_mega_free(u.p);
}

TEST(show_large_programs_as_drawn_before)
{
    mk m = large(40, 80);

    t_golden("tests/golden/mega/show_layers.txt",
             show(m.p, BR_SHOW_TEXT, NULL));
    br_mega_free(m.p);
}

/* ---- what is drawn ----------------------------------------------------- */

TEST(show_svg_has_a_box_and_a_tooltip_for_every_task)
{
    mk m = small(true);
    char *z = show(m.p, BR_SHOW_SVG, "h100");

    check_xml(z);
    ck_assert_uint_eq(occurs(z, "<title>task "), 7);
    ck_assert_ptr_nonnull(strstr(z, "small &lt;one&gt;</title>"));
    ck_assert_ptr_nonnull(strstr(z, "L0.gelu &amp; &quot;more&quot;"));
    ck_assert_ptr_nonnull(strstr(z, "prefers-color-scheme:dark"));
    ck_assert_ptr_nonnull(strstr(z, ">w2</text>"));
    ck_assert_ptr_nonnull(strstr(z, "h100"));
    ck_assert_uint_ge(occurs(z, "class=\"crit\""), 4);
    ck_assert_uint_eq(occurs(z, "class=\"edge\""), 3);
    ck_assert_uint_eq(occurs(z, "<script"), 0);
    ck_assert_uint_eq(occurs(z, "href"), 0);
    br_mega_free(m.p);
}

TEST(show_svg_of_many_tasks_is_an_overview_and_one_layer)
{
    mk m = large(60, 100);
    char *z = show(m.p, BR_SHOW_SVG, "h200");

    check_xml(z);
    ck_assert_ptr_nonnull(strstr(z, "Busy workers"));
    ck_assert_ptr_nonnull(strstr(z, "Layer 30 in lanes"));
    ck_assert_ptr_nonnull(strstr(z, "class=\"win\""));
    /* the layer, and neighbours that reach into its time */
    ck_assert_uint_ge(occurs(z, "<title>task "), 101);
    ck_assert_uint_le(occurs(z, "<title>task "), 303);
    br_mega_free(m.p);
}

TEST(show_dot_gathers_many_tasks_into_stages)
{
    mk s = small(true), m = large(60, 100);
    char *z = show(s.p, BR_SHOW_DOT, NULL);

    ck_assert_uint_eq(occurs(z, "subgraph cluster_w"), 3);
    ck_assert_uint_eq(occurs(z, "fillcolor"), 7);
    z = show(m.p, BR_SHOW_DOT, NULL);
    ck_assert_uint_eq(occurs(z, "fillcolor"), 120);
    ck_assert_uint_eq(occurs(z, "100 x GEMV_TILE"), 60);
    ck_assert_uint_eq(occurs(z, " -> "), 119);
    br_mega_free(s.p);
    br_mega_free(m.p);
}

TEST(show_graphviz_reads_the_dot)
{
    mk m = small(true);
    char *z = show(m.p, BR_SHOW_DOT, NULL);
    t_proc r;

    if (!t_have_program("dot")) {
        br_mega_free(m.p);
        t_skip("no graphviz here");
    }
    t_exec(&r, (const char *[]){"dot", "-Tplain", NULL}, z, strlen(z));
    ck_assert_int_eq(r.exit, 0);
    ck_assert_uint_eq(occurs(r.out, "\nnode t"), 7);
    br_mega_free(m.p);
}

TEST(show_text_is_ascii_in_80_columns)
{
    mk m = large(60, 100);
    const char *targets[] = {NULL, "h200", "cpu"};

    m.p->tasks[0].label = "L0.\xc3\xa4\x01\xf0\x9f\x98\x80 a name that does "
                          "not end where one would like it to end";
    m.p->tasks[0].label_n = (uint32_t)strlen(m.p->tasks[0].label);
    for (size_t i = 0; i < BR_COUNT(targets); i++) {
        const char *z = show(m.p, BR_SHOW_TEXT, targets[i]);
        size_t col = 0;
        for (; *z; z++) {
            ck_assert(*z == '\n' || (*z >= 0x20 && *z < 0x7f));
            col = *z == '\n' ? 0 : col + 1;
            ck_assert_uint_le(col, 80);
        }
    }
    br_mega_free(m.p);
}

/* Anything may stand in a label; the picture stays a picture. */
TEST(show_escapes_whatever_a_label_holds)
{
    uint64_t r = 5;

    for (int i = 0; i < 200; i++) {
        mk m = small(i % 2);
        char junk[40];
        for (size_t k = 0; k < sizeof junk; k++) {
            static const char spice[] = "<>&\"'\\]\n\0L0.[(";
            uint64_t x = t_rand(&r);
            junk[k] =
                x % 3 ? (char)(x >> 8) : spice[(x >> 8) % (sizeof spice - 1)];
        }
        m.p->tasks[2].label = junk;
        m.p->tasks[2].label_n = (uint32_t)(t_rand(&r) % sizeof junk);
        m.p->counters[2].note = junk + 5;
        m.p->counters[2].note_n = 30;
        check_xml(show(m.p, BR_SHOW_SVG, i % 3 ? NULL : "rtx5090"));
        (void)show(m.p, BR_SHOW_DOT, NULL);
        (void)show(m.p, BR_SHOW_TEXT, NULL);
        br_mega_free(m.p);
    }
}

TEST(show_cuts_long_names)
{
    mk m = small(true);
    size_t n = 3 << 20;
    char *big = t_keep(malloc(n));

    memset(big, 'x', n);
    m.p->tasks[1].label = big;
    m.p->tasks[1].label_n = (uint32_t)n;
    m.p->counters[0].note = big;
    m.p->counters[0].note_n = (uint32_t)n;
    ck_assert_uint_lt(strlen(show(m.p, BR_SHOW_SVG, NULL)), 40000);
    ck_assert_uint_lt(strlen(show(m.p, BR_SHOW_DOT, NULL)), 10000);
    ck_assert_uint_lt(strlen(show(m.p, BR_SHOW_TEXT, NULL)), 10000);
    br_mega_free(m.p);
}

TEST(show_of_many_tasks_is_bounded)
{
    mk wide = large(4, 5000), deep = large(4000, 4);

    ck_assert_uint_lt(strlen(show(wide.p, BR_SHOW_SVG, NULL)), 3 << 20);
    ck_assert_uint_lt(strlen(show(deep.p, BR_SHOW_SVG, NULL)), 1 << 20);
    ck_assert_uint_lt(strlen(show(deep.p, BR_SHOW_DOT, NULL)), 1 << 20);
    ck_assert_uint_lt(strlen(show(deep.p, BR_SHOW_TEXT, NULL)), 10000);
    br_mega_free(wide.p);
    br_mega_free(deep.p);
}

TEST(show_without_layers_takes_the_middle)
{
    mk m = large(60, 100);
    char *z;

    for (size_t i = 0; i < m.p->n_tasks; i++)
        m.p->tasks[i].label_n = 0;
    z = show(m.p, BR_SHOW_SVG, NULL);
    check_xml(z);
    ck_assert_ptr_nonnull(strstr(z, "The middle in lanes"));
    ck_assert_ptr_nonnull(
        strstr(show(m.p, BR_SHOW_TEXT, NULL), "lanes in the middle"));
    br_mega_free(m.p);
}

TEST(show_of_nothing)
{
    mk m = mk_new(0, 0, 0);

    check_xml(show(m.p, BR_SHOW_SVG, NULL));
    ck_assert_str_eq(show(m.p, BR_SHOW_TEXT, NULL),
                     "task program: 0 tasks, not assigned, up to 0 at once\n"
                     "0 units; without a target every task takes one; critical "
                     "path 0 tasks\n");
    (void)show(m.p, BR_SHOW_DOT, NULL);
    br_mega_free(m.p);
}

TEST(show_refuses_what_cannot_run)
{
    static const br_mega_wait loop[] = {{3, 1}};
    br_mega_show_opts o = {.format = BR_SHOW_SVG};
    br_status st = {0};
    br_str out = {0};
    mk m = small(true);

    m.p->tasks[0].waits = loop;
    m.p->tasks[0].n_waits = 1;
    ck_assert_int_eq(br_mega_show(m.p, &o, &out, &st), BR_E_REJECTED);
    ck_assert_str_eq(st.msg, "tasks wait for each other in a circle (see prog "
                             "check)");
    m.p->tasks[0].n_waits = 0;
    m.p->tasks[3].out_counter = 77;
    st = (br_status){0};
    ck_assert_int_eq(br_mega_show(m.p, &o, &out, &st), BR_E_REJECTED);
    ck_assert_str_eq(st.msg, "tasks[3]: an id that points nowhere (see prog "
                             "check)");
    br_str_fini(&out);
    br_mega_free(m.p);
}

static br_code
show_all(void *arg, br_status *st)
{
    br_mega_target t;
    br_code rc = br_mega_target_get(&t, BR_TEXT("h100"), st);

    for (int i = 0; i < 6 && rc == BR_OK; i++) {
        br_mega_show_opts o = {.format = (br_mega_show_format)(i % 3),
                               .target = i < 3 ? &t : NULL};
        br_str out = {0};
        rc = br_mega_show(arg, &o, &out, st);
        br_str_fini(&out);
    }
    return rc;
}

static br_code
show_overview(void *arg, br_status *st)
{
    br_mega_show_opts o = {.format = BR_SHOW_SVG};
    br_str out = {0};
    br_code rc = br_mega_show(arg, &o, &out, st);

    br_str_fini(&out);
    return rc;
}

/* Where a task took so long that the next is as good as begun with it, the ticks
 * of a ruler come to an end all the same. */
TEST(show_counts_the_ticks_of_very_long_programs)
{
    for (int64_t tile = 64; tile < 20000; tile = tile * 5 / 4) {
        mk m = large(40, 2); /* of which the middle one is shown */

        for (size_t t = 0; t < m.p->n_tasks; t++)
            m.p->tasks[t].est_bytes = t % 3 ? 0 : t ? tile : INT64_MAX;
        for (int f = BR_SHOW_TEXT; f <= BR_SHOW_SVG; f++)
            (void)show(m.p, (br_mega_show_format)f, "slow");
        br_mega_free(m.p);
    }
}

TEST(show_survives_every_failing_allocation)
{
    mk s = small(true), m = large(30, 70);

    t_each_oom(show_all, s.p);
    t_each_oom(show_overview, m.p);
    br_mega_free(s.p);
    br_mega_free(m.p);
}

TEST(show_is_the_same_every_time)
{
    mk m = large(30, 70);

    ck_assert_str_eq(show(m.p, BR_SHOW_SVG, "h100"),
                     show(m.p, BR_SHOW_SVG, "h100"));
    br_mega_free(m.p);
}

/* ---- the command ------------------------------------------------------- */

TEST(prog_show_writes_where_it_is_told)
{
    mk m = small(true);
    const char *dir = t_tmpdir(), *in = t_printf("%s/p.json", dir);
    const char *out = t_printf("%s/p.svg", dir);
    br_status st = {0};
    br_str json = {0};
    t_proc r;

    t_ok(br_mega_save(m.p, &json, &st), &st);
    t_write(in, json.at, json.n);
    br_str_fini(&json);
    t_run(&r, "prog", "show", in, "--svg", "-o", out);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_uint_eq(r.n_out, 0);
    check_xml(t_read(out, NULL));
    t_run(&r, "prog", "show", in);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, show(m.p, BR_SHOW_TEXT, NULL));
    t_run(&r, "prog", "show", in, "--dot", "--target", "h100");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "on h100"));
    t_run(&r, "prog", "show", in, "--dot", "--svg");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "prog", "show", in, "--target", "abacus");
    ck_assert_int_ne(r.exit, 0);
    br_mega_free(m.p);
}
