/* test_lint.c - every rule of tools/lint fires on a planted fault, in the
 * place it names, and stays silent beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>
#include <sys/stat.h>

#define HEAD(file) "/* " file " - planted.\n * SPDX-License-Identifier: x */\n"
#define GOOD                                   \
    HEAD("good.c")                             \
    "int\ngood(int a, int b)\n{\n"             \
    "    /* strcpy(a, b) */ say(\"atoi(1)\");" \
    "\n    x->free(a);\n}\n"

static void
put(const char *path, const char *text)
{
    char *p = t_printf("%s/%s", t_tmpdir(), path);

    for (char *s = p + strlen(t_tmpdir()) + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        mkdir(p, 0777);
        *s = '/';
    }
    t_write(p, text, strlen(text));
}

static void
run(t_proc *r)
{
    const char *lint = t_repo("tools/lint");

    t_exec(r, (const char *[]){lint, t_tmpdir(), NULL}, NULL, 0);
    ck_assert_str_eq(r->err, "");
}

/* The tree as it stands gives exactly this output. */
static void
says(int exit_code, const char *want)
{
    t_proc r;

    run(&r);
    ck_assert_str_eq(r.out, want);
    ck_assert_int_eq(r.exit, exit_code);
}

static const char *
repeat(const char *s, int n)
{
    char *all = t_printf("%s", "");

    for (int i = 0; i < n; i++)
        all = t_printf("%s%s", all, s);
    return all;
}

TEST(lint_likes_a_clean_tree)
{
    put("src/base/good.c", GOOD);
    put("README.md", "[a](src/base/good.c#L1) [b](https://x.org/) `[c](d)`\n");
    says(0, "lint: 0 errors, 0 warnings\n");
}

TEST(lint_sees_layering)
{
    put("src/mega/a.c", HEAD("a.c") "#include \"base/base.h\"\n"
                                    "#include \"mega/mega.h\"\n"
                                    "#include \"run/run.h\"\n"
                                    "#include \"amk/abi.h\"\n");
    put("src/cellar/b.c", HEAD("b.c"));
    says(1, "src/cellar/b.c:1: layer: src/cellar is not a room of the plan\n"
            "src/mega/a.c:5: layer: mega may not include run/run.h\n"
            "lint: 2 errors, 0 warnings\n");
}

TEST(lint_sees_long_files)
{
    put("src/base/a.c", t_printf("%s%s", HEAD("a.c"), repeat("\n", 899)));
    put("src/base/b.h", t_printf("%s%s", HEAD("b.h"), repeat("\n", 1499)));
    says(1, "src/base/a.c:1: file (warning): 901 lines, aim at 900\n"
            "src/base/b.h:1: file: 1501 lines, at most 1500\n"
            "lint: 1 errors, 1 warnings\n");
}

TEST(lint_sees_long_functions)
{
    put("src/base/a.c",
        t_printf("%sint\nf(void)\n{\n%s}\n\nint\ng(int a,\n  int b)\n{\n%s}\n",
                 HEAD("a.c"), repeat("    x;\n", 71), repeat("    x;\n", 121)));
    says(1, "src/base/a.c:5: function (warning): f: 71 lines, aim at 70\n"
            "src/base/a.c:82: function: g: 121 lines, at most 120\n"
            "lint: 1 errors, 1 warnings\n");
}

TEST(lint_counts_parameters)
{
    put("src/base/a.c",
        HEAD("a.c") "int\nsix(int a, int b, int c, int d, int e, int f)\n{\n}\n"
                    "int\nseven(int a, int b, int c, int d, int e,\n"
                    "      void (*f)(int, int, int), int g)\n{\n}\n"
                    "int\nnine(int a, int b, int c, int d, int e, int f,\n"
                    "     int g, int h, int i)\n{\n}\n"
                    "int\nfails(int a, int b, int c, int d, int e, int f,\n"
                    "      br_status *st)\n{\n}\n");
    says(1, "src/base/a.c:10: params (warning): seven: 7 parameters, aim at 6\n"
            "src/base/a.c:15: params: nine: 9 parameters, at most 8\n"
            "lint: 1 errors, 1 warnings\n");
}

TEST(lint_sees_banned_calls)
{
    static const char *const names[] = {
        "strcpy",  "strcat", "sprintf", "vsprintf", "strtok", "atoi",
        "atol",    "atof",   "gets",    "alloca",   "getenv", "system",
        "malloc",  "calloc", "realloc", "free",     "printf", "puts",
        "putchar", "strdup", "vprintf", "asprintf",
    };
    t_proc r;

    for (size_t i = 0; i < BR_COUNT(names); i++) {
        put("src/base/a.c",
            t_printf("%sint\nf(void)\n{\n    x = %s(y);\n    br_%s(y);\n}\n",
                     HEAD("a.c"), names[i], names[i]));
        run(&r);
        ck_assert_int_eq(r.exit, 1);
        ck_assert_msg(
            strstr(r.out, t_printf("src/base/a.c:6: call: %s: ", names[i])),
            "%s", r.out);
        ck_assert(strstr(r.out, "\nlint: 1 errors, 0 warnings\n"));
    }
    put("src/base/a.c", HEAD("a.c") "int\nf(void)\n{\n"
                                    "    fprintf(stdout, \"x\");\n}\n");
    run(&r);
    ck_assert(strstr(r.out, "src/base/a.c:6: call: stdout: "));
}

TEST(lint_knows_where_calls_belong)
{
    put("src/base/mem.c", HEAD("mem.c") "void\nf(void)\n{\n    free(p);\n}\n");
    put("src/base/options.c",
        HEAD("options.c") "void\nf(void)\n{\n    getenv(p);\n}\n");
    put("src/cli/a.c", HEAD("a.c") "void\nf(void)\n{\n    printf(p);\n}\n");
    put("tests/b.c", HEAD("b.c") "void\nf(void)\n{\n    free(p);\n}\n");
    says(0, "lint: 0 errors, 0 warnings\n");
}

TEST(lint_sees_small_things)
{
    put("src/base/a.c", "/* b.c - other.\n * SPDX-License-Identifier: x */\n");
    put("src/mega/a.c", "/* a.c - it. */\n\tint x; \n"
                        "/* TODO: later, FIXME; TODO(#7): fine */\n");
    put("src/mega/b.c", HEAD("b.c") "/* TODO(#7) fine */\n/* TODO no */\n");
    put("src/mega/c.c", t_printf("%s/*%s*/\n/*%s%s*/\n", HEAD("c.c"),
                                 repeat("x", 97), repeat("x", 95), "\xc3\xa4"));
    says(1, "src/base/a.c:1: head: the first line is /* a.c - what it is for\n"
            "src/mega/a.c:1: name: same basename as src/base/a.c\n"
            "src/mega/a.c:2: space: tab\n"
            "src/mega/a.c:2: space: trailing blank\n"
            "src/mega/a.c:1: spdx: no SPDX-License-Identifier\n"
            "src/mega/b.c:4: todo: an open end names its issue: TODO(#12)\n"
            "src/mega/c.c:3: width (warning): 101 columns\n"
            "lint: 6 errors, 1 warnings\n");
}

TEST(lint_sees_dead_links_and_stops)
{
    put("src/base/good.c", GOOD);
    put("docs/tour.md", "1. `src/base/good.c:good` - notice\n"
                        "2. `src/base/good.c:bad` - gone\n"
                        "3. `src/base/gone.c:good` - gone\n"
                        "[up](../src/base/good.c), [no](../no.md#x)\n"
                        "```\n[not](a-link)\n```\nTODO write\n");
    says(1, "docs/tour.md:4: link: ../no.md#x leads nowhere\n"
            "docs/tour.md:8: todo: an open end names its issue: TODO(#12)\n"
            "docs/tour.md:2: stop: src/base/good.c has no function bad\n"
            "docs/tour.md:3: stop: src/base/gone.c has no function good\n"
            "lint: 4 errors, 0 warnings\n");
}

TEST(lint_sees_folders_of_one_machine)
{
    const char *home = "/ho"
                       "me/ann/brass";

    put("a.md",
        t_printf("cd %s\nsee [it](a.md), http://x.org%s\n", home, home));
    says(1, "a.md:1: path: names a folder of one machine\n"
            "lint: 1 errors, 0 warnings\n");
}

TEST(lint_allows_what_has_a_reason)
{
    put("src/base/a.c",
        HEAD("a.c") "int\nf(void)\n{\n    free(p);\n    getenv(q);\n}\n");
    put("tools/lint.allow", "# comment\n\n"
                            "call src/base/a.c:free  the other library's\n"
                            "call src/base/a.c:getenv\n"
                            "name src/base/b.c  not there\n");
    says(1, "tools/lint.allow:4: allow: an exception needs a reason\n"
            "tools/lint.allow:5: allow: excuses nothing any more\n"
            "lint: 2 errors, 0 warnings\n");
}
