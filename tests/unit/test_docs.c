/* test_docs.c - what the documents show is what happens. In README.md and
 * docs/ a block
 *
 *     $ ./brass prog sim examples/mlp.json
 *     order    9 tasks: 0-8
 *
 * is run, in a folder that has ./brass and examples/, and its output compared.
 * Commands of one file share the folder. `...` alone stands for any lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>
#include <unistd.h>

T_THREADS_OF("amd_tiers_have_the_reference_bits");

typedef struct transcript {
    const char *file, *dir;
    char *command, *want;
    int n; /* commands run */
} transcript;

static void
run_command(transcript *t)
{
    const char *script = t_printf("cd '%s' && %s", t->dir, t->command);
    const char *dots = strstr(t->want, "...\n");
    size_t head = dots ? (size_t)(dots - t->want) : strlen(t->want);
    bool same;
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    r.out = t_printf("%s%s", r.out, r.err);
    same = strncmp(r.out, t->want, head) == 0;
    if (dots) {
        size_t tail = strlen(dots + 4), n = strlen(r.out);

        same =
            same && n >= head + tail && strcmp(r.out + n - tail, dots + 4) == 0;
    } else {
        same = same && r.out[head] == 0;
    }
    if (!same)
        ck_abort_msg("%s shows for\n$ %s\n%s-- but it prints\n%s", t->file,
                     t->command, t->want, r.out);
    t->n++;
}

static int
check_transcripts(const char *file)
{
    transcript t = {.file = file, .dir = t_tmpdir()};
    char *save = NULL, *text = t_read(t_repo(file), NULL);

    symlink(t_brass(), t_printf("%s/brass", t.dir));
    symlink(t_repo("examples"), t_printf("%s/examples", t.dir));
    for (char *s = strtok_r(text, "\n", &save); s;
         s = strtok_r(NULL, "\n", &save)) {
        bool shown = strncmp(s, "    ", 4) == 0;

        if (t.command && (!shown || s[4] == '$')) {
            run_command(&t);
            t.command = NULL;
        }
        if (shown && strncmp(s + 4, "$ ", 2) == 0) {
            t.command = s + 6;
            t.want = t_printf("%s", "");
        } else if (shown && t.command) {
            t.want = t_printf("%s%s\n", t.want, s + 4);
        }
    }
    if (t.command)
        run_command(&t);
    return t.n;
}

TEST(docs_readme_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("README.md"), 0);
}

TEST(docs_tour_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("docs/tour-program.md"), 0);
}

TEST(docs_mega_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("docs/mega.md"), 0);
}

TEST(docs_schedule_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("docs/schedule.md"), 10);
}

TEST(docs_graph_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("docs/graph.md"), 0);
}

TEST(docs_amd_shows_what_happens)
{
    ck_assert_int_gt(check_transcripts("docs/amd-first-run.md"), 0);
}
