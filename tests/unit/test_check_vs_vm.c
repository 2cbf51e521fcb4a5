/* test_check_vs_vm.c - the static check against the VM, on random programs.
 *
 * The check proves, the VM looks: what the check accepts has to run in every
 * order, read nothing unwritten and give the same bits. Programs are small and
 * careless (waits left out, tiles that overlap, pages shared at random), so
 * both verdicts come often.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <string.h>

enum { WIDTH = 6, MAX_TASKS = 9 };

static uint64_t seed;

static int
pick(int lo, int hi)
{
    return lo + (int)(t_rand(&seed) % (uint64_t)(hi - lo + 1));
}

typedef struct maker {
    kit k;
    int made[16], n_made;    /* buffers that some task writes */
    int by[16][4], n_by[16]; /* who writes them */
    int care;                /* of 8 waits, how many are not forgotten */
} maker;

/* A buffer that is there to read, with the waits for it. */
static int
source(maker *m, br_str *waits)
{
    int i = pick(-1, m->n_made - 1);

    if (i < 0)
        return 0; /* the program's input */
    for (int w = 0; w < m->n_by[i]; w++)
        if (pick(0, 7) < m->care)
            br_str_printf(waits, "%s%d>=1", waits->n ? ", " : "", m->by[i][w]);
    return m->made[i];
}

/* One op, or a buffer made by two tiles (that may overlap). */
static void
grow(maker *m, int kind)
{
    int out = kit_buf(&m->k, kind, BR_MDT_F32, "1, 6"), cut = pick(1, 5);
    int at = m->n_made, op = pick(0, 3);
    const char *to = t_printf("%d", out), *from;
    br_str w = {0};

    m->n_by[at] = 0;
    if (op < 2) {
        from = t_printf("%d, 1", source(m, &w));
        m->by[at][m->n_by[at]++] =
            kit_task(&m->k, "GEMV_TILE", from, to,
                     t_printf("\"K\": 6, \"N_tile\": %d, \"n_off\": 0", cut),
                     br_str_z(&w));
        m->by[at][m->n_by[at]++] = kit_task(
            &m->k, "GEMV_TILE", from, to,
            t_printf("\"K\": 6, \"N_tile\": %d, \"n_off\": %d",
                     WIDTH - cut + (pick(0, 9) == 0 && cut < 5 ? -1 : 0),
                     cut - (pick(0, 9) == 0)),
            br_str_z(&w));
    } else if (op == 2) {
        from = t_printf("%d", source(m, &w));
        m->by[at][m->n_by[at]++] =
            kit_task(&m->k, "MUL", from, to, "\"scale\": 1.25", br_str_z(&w));
    } else {
        int a = source(m, &w);

        m->by[at][m->n_by[at]++] =
            kit_task(&m->k, "ADD", t_printf("%d, %d", a, source(m, &w)), to, "",
                     br_str_z(&w));
    }
    m->made[m->n_made++] = out;
    br_str_fini(&w);
}

/* Activations on pages of 24 bytes, drawn from a few. */
static const char *
pages(const maker *m, int n_acts)
{
    int n = pick(1, 4);
    br_str s = {0};
    const char *text;

    br_str_puts(&s, "{\"buffer_to_page\": {");
    for (int i = 0; i < n_acts; i++)
        br_str_printf(&s, "%s\"%d\": %d", i ? ", " : "", m->made[i],
                      pick(0, n - 1));
    br_str_puts(&s, "}, \"pages\": [");
    for (int i = 0; i < n; i++)
        br_str_printf(&s,
                      "%s{\"id\": %d, \"space\": \"HBM\", \"nbytes\": 24, "
                      "\"live_start\": -1, \"live_end\": -1}",
                      i ? ", " : "", i);
    br_str_puts(&s, "]}");
    text = t_printf("%s", s.at);
    br_str_fini(&s);
    return text;
}

typedef struct tally {
    int accepted, faults, paged;
} tally;

static void
one_program(tally *n)
{
    static const double w[36] = {1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 3, 0,
                                 0, 0, 1, 4, 0, 0, 0, 0, 5, 1, 0, 0,
                                 0, 6, 0, 0, 1, 0, 7, 0, 0, 0, 0, 1};
    static const double x[6] = {1, 2, 3, 4, 5, 6};
    maker m = {.care = pick(5, 8)};
    br_mega_report r = {.ok = false};
    int acts = pick(1, 4);
    bool paged = pick(0, 1), fault;

    kit_buf(&m.k, BR_MBK_IO_INPUT, BR_MDT_F32, "1, 6");
    kit_buf(&m.k, BR_MBK_WEIGHT, BR_MDT_F32, "6, 6");
    for (int i = 0; i < acts; i++)
        grow(&m, BR_MBK_ACTIVATION);
    grow(&m, BR_MBK_IO_OUTPUT);
    if (paged)
        m.k.pages = pages(&m, acts);
    kit_load(&m.k);
    kit_bind(&m.k, 0, x, 6);
    kit_bind(&m.k, 1, w, 36);
    t_ok(br_mega_check(m.k.p, BR_MEGA_SOUND, &r, &m.k.st), &m.k.st);
    fault = br_mega_vm_adversarial(m.k.vm, 8, BR_MEGA_ORDER_SWEEP, seed,
                                   &m.k.st) != BR_OK;
    if (r.ok && fault)
        ck_abort_msg("accepted, but %s\n%s", m.k.st.msg, kit_text(&m.k));
    n->accepted += r.ok;
    n->paged += r.ok && paged;
    n->faults += fault;
    br_mega_report_fini(&r);
    kit_end(&m.k);
}

TEST_WITHIN(check_accepts_only_what_the_vm_can_run, 60)
{
    int rounds = t_sanitized() ? 600 : 2500;
    tally n = {0};

    seed = 21;
    for (int i = 0; i < rounds; i++)
        one_program(&n);
    ck_assert_msg(n.accepted > rounds / 10 && n.paged > rounds / 20 &&
                      n.faults > rounds / 5,
                  "%d accepted (%d with pages), %d faults", n.accepted, n.paged,
                  n.faults);
}
