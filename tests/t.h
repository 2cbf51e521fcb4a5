/* t.h - what a unit test may use. Assertions are check's: ck_assert_*.
 *
 *     #include "t.h"
 *
 *     TEST(arena_keeps_its_limit)     at column 0; nothing to register
 *     {
 *         ck_assert_int_eq(1 + 1, 2);
 *     }
 *
 * Every test is a process of its own with a timeout. All memory that Brass
 * takes in a test comes from a checking allocator (t_mem.c): fresh and freed
 * bytes hold junk, a write past the end is found, and a test that returns with
 * blocks still allocated fails. Memory that the helpers below hand out belongs
 * to the test run: do not free it.
 *
 * An assertion that holds still costs a system call (check notes the line, to
 * name it after a crash): in a loop over bytes, count and assert once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef T_H
#define T_H

#include <check.h>

#include "base/base.h"

/* A row of the runner's list; filled in by TEST. */
typedef struct t_case {
    const char *name, *file;
    int line;
    double seconds; /* timeout; 0: the runner's default */
    void (*fn)(void);
    struct t_case *next;
} t_case;

void t_register(t_case *c);

/* 20 s without a sanitizer, 80 s with one. */
#define TEST(name) TEST_WITHIN(name, 0)
#define TEST_WITHIN(name, seconds)                              \
    static void t_fn_##name(void);                              \
    __attribute__((constructor)) static void t_reg_##name(void) \
    {                                                           \
        static t_case c = {#name,   __FILE__,    __LINE__,      \
                           seconds, t_fn_##name, NULL};         \
        t_register(&c);                                         \
    }                                                           \
    static void t_fn_##name(void)

/* In a file whose tests start no second thread: TSan, which is 10 to 20 times
 * slower and would see nothing, skips them. Elsewhere a test that starts one fails.
 * T_THREADS_OF: in one whose threads do what those of that test, which may be of
 * the same file, do. */
#define T_ONE_THREAD() T_THREADS_OF(NULL)
#define T_THREADS_OF(other)                                         \
    __attribute__((constructor)) static void t_reg_threads_of(void) \
    {                                                               \
        t_threads_of(__FILE__, other);                              \
    }                                                               \
    typedef int t_threads_of_follows

void t_threads_of(const char *file, const char *other);

/* Ends the test here and counts it as skipped; the reason is printed. */
BR_NORETURN void t_skip(const char *fmt, ...) BR_PRINTF(1, 2);

/* ---- files -------------------------------------------------------------- */

/* Every test starts in the root of the repository. */
const char *t_repo(const char *path); /* absolute path of a file in it */
/* A folder of the vectors in ../shared/vectors; NULL where they are absent:
 *     const char *dir = t_vectors("amk/valid");
 *     if (!dir)
 *         t_skip("no ../shared/vectors here");                             */
const char *t_vectors(const char *path);
/* From now on tier cuda finds the emulated device of tests/emu; skips where the
 * build has none. End: gives its lock back. */
void t_emulate_cuda(void);
void t_emulate_end(void);
/* The whole file, with a NUL after it. n may be NULL. A file that cannot be
 * read fails the test. */
char *t_read(const char *path, size_t *n);
void t_write(const char *path, const void *p, size_t n);
/* An empty folder of this test's own, removed when it ends. */
const char *t_tmpdir(void);
/* Names of the files in a folder that end in `ends`, sorted, NULL last. */
char **t_ls(const char *dir, const char *ends);
/* malloc'ed memory that lives until the test ends. */
void *t_keep(void *p);
char *t_printf(const char *fmt, ...) BR_PRINTF(1, 2);

/* Compares text with the file `path` (from the root of the repository, as
 * "tests/golden/mega/show.txt"); shows the lines that differ. `make
 * golden-update` writes the file instead. */
void t_golden(const char *path, const char *text);
void t_golden_n(const char *path, const char *text, size_t n);

/* ---- programs ------------------------------------------------------------ */

typedef struct t_proc {
    char *out, *err; /* NUL-terminated */
    size_t n_out, n_err;
    int exit;            /* 128 + signal number when a signal ended it */
    uint64_t most_bytes; /* resident at once, at its peak */
} t_proc;

/* t_run(&r, "prog", "check", path) runs the brass of this build. */
#define t_run(r, ...) \
    t_exec((r), (const char *[]){t_brass(), __VA_ARGS__, NULL}, NULL, 0)
/* in: what it reads from standard input. argv[0] is looked up in PATH. */
void t_exec(t_proc *r, const char *const *argv, const char *in, size_t n_in);
/* brass with these arguments, up to a NULL, on the emulated device; skips as
 * t_emulate_cuda. */
void t_run_emulated(t_proc *r, const char *const *args, const char *in,
                    size_t n_in);
const char *t_brass(void);
bool t_have_program(const char *name); /* in PATH */
const char *t_conf(void); /* "release", "address-undefined", "thread", ... */
bool t_sanitized(void);
bool t_tsan(void); /* where work of one thread may be less */
/* The rest is not for TSan: the threads are those of another test, or NULL, there
 * is one (a test that starts another fails elsewhere). */
void t_not_for_tsan(const char *other);

/* ---- memory -------------------------------------------------------------- */

/* Runs fn(arg, st) with the 1st allocation failing, then the 2nd, and so on
 * until it gets by without meeting the failure, when it has to return BR_OK.
 * Each failure has to come back as BR_E_OOM in the code and in *st, with
 * every block given back. fn frees what it made before it returns. */
typedef br_code (*t_oom_fn)(void *arg, br_status *st);
void t_each_oom(t_oom_fn fn, void *arg);

/* Live blocks and bytes, and allocations so far, of the checking allocator. */
size_t t_mem_blocks(void);
size_t t_mem_bytes(void);
/* The most bytes that lived at once since the last call; one thread. */
size_t t_mem_most(void);
size_t t_mem_count(void);
/* The n-th allocation from now fails (0: none); true once it has failed. */
void t_mem_fail_at(size_t n);
bool t_mem_failed(void);

/* ---- random -------------------------------------------------------------- */

/* splitmix64: the same numbers on every machine. */
uint64_t t_rand(uint64_t *state);

/* Fails the test with the status's message unless the code is BR_OK. */
#define t_ok(expr, st)                                               \
    do {                                                             \
        br_code t_code_ = (expr);                                    \
        if (t_code_ != BR_OK)                                        \
            ck_abort_msg("%s: %s: %s", #expr, br_code_name(t_code_), \
                         (st)->msg);                                 \
    } while (0)

/* ---- for runner.c -------------------------------------------------------- */

void t_mem_start(void);
void t_mem_end(void); /* fails the test when blocks are left */
/* ASan: nothing that the test took of malloc, by whatever way, is left. */
bool t_mem_as_before(void);
size_t t_kept_bytes(void);
void t_files_root(const char *root, const char *conf);
/* Around one test, in the process that forks it: so that the folder of a test
 * that crashed is removed too. */
void t_files_start(const char *id);
void t_files_end(void);

#endif
