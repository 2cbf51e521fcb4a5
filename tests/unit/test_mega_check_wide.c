/* test_mega_check_wide.c - the sound check on joins so wide that it buys
 * answers for all tasks at once (br_deal): many writers, then many readers,
 * then many writers again, with trees of NOPs between them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/lower.h"
#include "prog_text.h"

T_ONE_THREAD();

enum { N = 300, NONE = -1 };

/* A join leaves one task out; who comes after may wait for that one itself. */
typedef struct wide {
    int skip[3];   /* of writers, readers, writers again; or NONE */
    int waited[2]; /* how many of those who come next wait for it */
    bool early;    /* the very last write does not wait for the last read */
    bool page;     /* the last writes are to another buffer of the page */
} wide;

/* NOPs that join tasks [first, first + n) but skip; the last one. */
static int
join(br_str *s, int *next, int first, int n, int skip)
{
    while (n > 1) {
        int from = *next;

        for (int i = 0; i < n; i += 8) {
            const char *sep = " w";

            br_str_puts(s, "t NOP >");
            for (int j = i; j < BR_MIN(i + 8, n); j++)
                if (first + j != skip) {
                    br_str_printf(s, "%s%d:1", sep, first + j);
                    sep = ",";
                }
            br_str_puts(s, "\n");
            ++*next;
        }
        first = from;
        n = (n + 7) / 8;
    }
    return first;
}

static void
tiles(br_str *s, int *next, const char *what, int root, int n, int also)
{
    for (int i = 0; i < N; i++) {
        br_str_printf(s, "t GEMV_TILE %s", what);
        if (root != NONE)
            br_str_printf(s, " w%d:1", root);
        if (i < n)
            br_str_printf(s, ",%d:1", also);
        br_str_printf(s, " {'K':%d,'N_tile':1,'n_off':%d}\n",
                      *what == '0' ? 4 : N, i);
        ++*next;
    }
}

/* Task 0 .. N-1 write buffer 3, later ones read it; buffer 6 is the third. */
static char *
make(const wide *w)
{
    br_str s = {0};
    int next = 0, first, root;
    char *text;

    br_str_printf(&s,
                  "b x IO_INPUT F32 [1,4]\nb w WEIGHT F32 [%d,4]\n"
                  "b v WEIGHT F32 [%d,%d]\nb m ACTIVATION F32 [1,%d]\n"
                  "b o IO_OUTPUT F32 [1,%d]\nb p IO_OUTPUT F32 [1,%d]\n"
                  "b n ACTIVATION F32 [1,%d]\n",
                  N, N, N, N, N, N, N);
    tiles(&s, &next, "0,1 > 3", NONE, 0, 0);
    root = join(&s, &next, 0, N, w->skip[0]);
    first = next;
    tiles(&s, &next, "3,2 > 4", root, w->waited[0], w->skip[0]);
    root = join(&s, &next, first, N, first + w->skip[1]);
    tiles(&s, &next, w->page ? "0,1 > 6" : "0,1 > 3", root, w->waited[1],
          first + w->skip[1]);
    first = next - N;
    root = join(&s, &next, first, N, first + w->skip[2]);
    br_str_printf(&s, "t COPY %d > 5 w%d:1\n", w->page ? 6 : 3, root);
    if (!w->page)
        br_str_printf(&s,
                      "t GEMV_TILE 0,1 > 3 w%d:1 {'K':4,'N_tile':%d,"
                      "'n_off':0}\n",
                      w->early ? root : next, N);
    if (w->page)
        br_str_printf(&s,
                      "+ 'pages': {'buffer_to_page':{'3':0,'6':0},"
                      "'pages':[{'id':0,'space':'HBM','nbytes':%d}]}\n",
                      4 * N);
    text = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return text;
}

TEST(check_accepts_wide_joins)
{
    pt_accepts(make(&(wide){.skip = {NONE, NONE, NONE}}));
    pt_accepts(make(&(wide){.skip = {NONE, NONE, NONE}, .page = true}));
}

TEST(check_adds_up_what_a_join_leaves_out)
{
    for (int page = 0; page < 2; page++)
        pt_accepts(make(&(wide){{257, 3, NONE}, {N, N}, false, page}));
}

/* All the others come after the one left out, so the answer is bought and
 * must be no for the last. */
TEST(check_sees_what_a_wide_join_leaves_out)
{
    static const int who[] = {256, 0, N - 1};

    for (size_t i = 0; i < (t_sanitized() ? 1 : BR_COUNT(who)); i++) {
        pt_refuses(
            make(&(wide){{who[i], NONE, NONE}, {N - 1, 0}, false, false}),
            t_printf("writer task(s) [%d] are NOT ordered", who[i]));
        pt_refuses(
            make(&(wide){{NONE, who[i], NONE}, {0, N - 1}, false, false}),
            "NOT ordered before");
        pt_refuses(make(&(wide){{NONE, who[i], NONE}, {0, N - 1}, false, true}),
                   "page 0 reused");
        pt_refuses(make(&(wide){{NONE, NONE, who[i]}, {0, 0}, false, false}),
                   "reads buffer #3 ('m') but writer task(s)");
    }
    pt_refuses(make(&(wide){{NONE, NONE, NONE}, {0, 0}, true, false}),
               "NOT ordered before");
}

/* Task 7 overwrites what four tasks read and so pays for an answer about the
 * two reads that are left: #5, whose counter it completes itself, and #6, whose
 * counter is complete late. Task 8 has the place right after. */
static char *
right_after(bool waits)
{
    br_str s = {0};
    char *text;

    br_str_puts(&s, "b x IO_INPUT F32 [3,2]\nb w WEIGHT F32 [4,2]\n"
                    "b v WEIGHT F32 [2,2]\nb a ACTIVATION F32 [3,2]\n"
                    "b m ACTIVATION F32 [3,4]\nb o IO_OUTPUT F32 [3,2]\n"
                    "b p IO_OUTPUT F32 [3,4]\nt COPY 0 > 3 c0\n");
#define ROW " {'M_tile':1,'K':2,'m_off':%d,'N_tile':%d,'n_off':%d}\n"
    for (int i = 0; i < 4; i++)
        br_str_printf(&s, "t GEMM_TILE 3,1 > 4 c%d w0:1" ROW, i + 1, 0, 1, i);
    br_str_printf(&s, "t GEMM_TILE 3,1 > 4 c5 w0:1" ROW, 1, 4, 0);
    br_str_printf(&s, "t GEMM_TILE 3,1 > 4 c6 w0:1" ROW, 2, 4, 0);
    br_str_printf(&s, "t GEMM_TILE 0,2 > 3 c5 w1:1,2:1,3:1,4:1" ROW, 0, 2, 0);
    br_str_printf(&s, "t GEMM_TILE 0,2 > 3 c7 w5:2%s" ROW, waits ? ",6:1" : "",
                  2, 2, 0);
#undef ROW
    br_str_printf(&s,
                  "t NOP > c%d w7:1\nt COPY 3 > 5 c8 w7:1,5:2\n"
                  "t COPY 4 > 6 c9 w1:1,2:1,3:1,4:1,5:2,6:%d\n",
                  waits ? 10 : 6, waits ? 1 : 2);
    text = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return text;
}

TEST(check_sees_the_place_right_after_what_was_bought)
{
    pt_accepts(right_after(true));
    pt_refuses(right_after(false), "NOT ordered before");
}

/* ---- memory ------------------------------------------------------------- */

static size_t
records(const br_mega_prog *p)
{
    size_t n = p->n_tasks + p->n_buffers + p->n_counters;

    for (size_t t = 0; t < p->n_tasks; t++)
        n += p->tasks[t].n_in + p->tasks[t].n_out + p->tasks[t].n_waits;
    return n;
}

/* The most that a check holds is below `fixed` and EACH for a record. */
static void
holds(br_mega_prog *p, size_t fixed)
{
    size_t before = t_mem_bytes(), most;
    br_status st = {0};
    br_mega_report r;

    t_mem_most();
    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    most = t_mem_most() - before;
    ck_assert(r.ok);
    ck_assert_uint_le(most, fixed + BR_MEGA_CHECK_EACH * records(p));
    br_mega_report_fini(&r);
    br_mega_free(p);
}

TEST(check_holds_little_memory)
{
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_lower_shape(&p, "llama-3-8b", BR_LOWER_AMK, &st), &st);
    ck_assert_uint_gt(p->n_tasks, 12000);
    holds(p, 1 << 16); /* no hard case at all */
    t_ok(br_mega_lower_shape(&p, "llama-3.2-1b", BR_LOWER_HOUSE, &st), &st);
    holds(p, 1 << 20);
}

/* The tiles of a band one by one, unordered, and who reads them all. */
TEST(check_holds_a_bounded_memory_of_hard_cases)
{
    holds(pt_load(make(&(wide){.skip = {NONE, NONE, NONE}})), 1 << 20);
    holds(pt_load(make(&(wide){.skip = {NONE, NONE, NONE}, .page = true})),
          1 << 20);
    ck_assert_uint_le(1 << 20, BR_MEGA_CHECK_FIXED);
}
