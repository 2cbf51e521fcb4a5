/* runner.c - runs the tests of one program: main() of every test binary.
 *
 *   runner --fork--> shard 0..j-1 --check: fork--> one test
 *      ^                 |                            |  skip reason
 *      '---- results in shared memory, one row per test
 *
 * Shards take the next test from a shared counter, those first that may take
 * longest, lest one of them begin when all others are over; the runner prints
 * rows in the order of files as they become ready: seconds by the clock, then
 * those of the processors. check gives the process per test, the timeout and
 * the assertions; the skipping, filtering, leak check and the longer timeout
 * beside a load are ours. The last line is `N passed, M failed[, K skipped]`;
 * ./test reads it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <errno.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SLOW 4
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define SLOW 4
#    endif
#endif
#ifndef SLOW
#    define SLOW 1
#endif
/* A test that hangs is to be found while CI runs, which has 25 minutes for all: what
 * a load adds ends at so many times and at so many seconds. */
#define MOST_SLOWER 8.0
#define MOST_LOADED 300.0
#if defined(__SANITIZE_THREAD__)
enum { TSAN = 1 };
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
enum { TSAN = 1 };
#    else
enum { TSAN = 0 };
#    endif
#else
enum { TSAN = 0 };
#endif

typedef enum outcome { WAITING, PASSED, FAILED, SKIPPED } outcome;

typedef struct row {
    atomic_int outcome;   /* release: the rest of the row is written */
    bool skip;            /* set in the test's own process */
    double seconds, busy; /* busy: of processors, its programs' too */
    char why[4096];
} row;

typedef struct board { /* shared by all processes of a run */
    atomic_size_t next;
    row rows[];
} board;

static t_case *list; /* as registered */
static t_case **cases;
static size_t *order; /* in which they are begun */
static size_t n_cases;
static board *shared;
static struct {
    const char *file;
    const char *other; /* whose threads they are, or NULL: there is one */
} blind[200];
static size_t n_blind;
static row *mine; /* the row of the test that runs in this process */
static struct {
    const char *pattern;
    double timeout;
    int jobs;
    bool list, verbose, no_fork;
} opt = {NULL, 20, 1, false, false, false};

void
t_register(t_case *c)
{
    c->next = list;
    list = c;
    n_cases++;
}

void
t_threads_of(const char *file, const char *other)
{
    br_check(n_blind < BR_COUNT(blind));
    blind[n_blind].file = file;
    blind[n_blind++].other = other;
}

/* Ends a test of a file in which TSan has nothing to see but in `other`. */
static void
leave_blind(const t_case *c)
{
    for (size_t i = 0; i < n_blind; i++)
        if (strcmp(blind[i].file, c->file) == 0 &&
            (!blind[i].other || strcmp(blind[i].other, c->name) != 0))
            t_not_for_tsan(blind[i].other);
}

/* That a test has one thread is believed under TSan and seen elsewhere: the linker
 * hands calls of pthread_create here. */
static atomic_int n_threads;
static bool says_one_thread;

#ifdef T_COUNTS_THREADS
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a,
                          void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a,
                          void *(*fn)(void *), void *arg);

int
__wrap_pthread_create(pthread_t *t, const pthread_attr_t *a,
                      void *(*fn)(void *), void *arg)
{
    atomic_fetch_add(&n_threads, 1);
    return __real_pthread_create(t, a, fn, arg);
}
#endif

void
t_not_for_tsan(const char *other)
{
    says_one_thread = says_one_thread || !other;
    if (!TSAN)
        return;
    if (other)
        t_skip("its threads are those of %s", other);
    t_skip("one thread: nothing for TSan to see");
}

void
t_skip(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(mine->why, sizeof mine->why, fmt, ap);
    va_end(ap);
    mine->skip = true;
    if (opt.no_fork) /* check's longjmp is the only way out */
        ck_abort_msg("skipped");
    fflush(NULL);
    _exit(0);
}

static void
run_test(int i)
{
    mine = &shared->rows[i];
    says_one_thread = false;
    atomic_store(&n_threads, 0);
    leave_blind(cases[i]);
    _mark_point(cases[i]->file, cases[i]->line); /* check's buffer is there */
    t_mem_start();
    cases[i]->fn();
    t_mem_end();
    if (says_one_thread && atomic_load(&n_threads))
        ck_abort_msg("%s keeps it from TSan, but it starts a thread",
                     cases[i]->file);
    if (!opt.no_fork && t_mem_as_before()) {
        fflush(NULL);
        _exit(0);
    }
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double
most_seconds(const t_case *c)
{
    return c->seconds > 0 ? c->seconds : opt.timeout;
}

/* How many times as long a test takes beside what the machine does, this minute
 * and now. */
static double
slower(void)
{
    double load = 0, running = 0, n = (double)sysconf(_SC_NPROCESSORS_ONLN);
    FILE *f = fopen("/proc/loadavg", "r");

    if (f) {
        (void)!fscanf(f, "%lf %*f %*f %lf", &load, &running);
        (void)fclose(f);
    }
    return BR_MIN(BR_MAX(BR_MAX(load, running) / BR_MAX(n, 1.0), 1.0),
                  MOST_SLOWER);
}

static double
timeout_of(const t_case *c)
{
    double alone = most_seconds(c) * SLOW;

    return BR_MAX(alone, BR_MIN(alone * slower(), MOST_LOADED));
}

/* Of the processes that have ended below this one. */
static double
busy_below(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void
run_case(size_t i)
{
    t_case *c = cases[i];
    row *r = &shared->rows[i];
    TTest tt = {c->name, run_test, c->file, c->line};
    TCase *tc = tcase_create(c->name);
    Suite *s = suite_create(c->file);
    SRunner *sr = srunner_create(s);
    TestResult **res;
    double t0 = now(), busy0 = busy_below();
    outcome o = FAILED;
    char id[64];

    snprintf(id, sizeof id, "%d-%zu", (int)getpid(), i);
    t_files_start(id);
    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, timeout_of(c));
    tcase_add_loop_test(tc, &tt, (int)i, (int)i + 1);
    srunner_set_fork_status(sr, opt.no_fork ? CK_NOFORK : CK_FORK);
    fflush(NULL);
    srunner_run_all(sr, CK_SILENT);
    r->seconds = now() - t0;
    r->busy = busy_below() - busy0;
    res = srunner_results(sr);
    if (r->skip)
        o = SKIPPED;
    else if (srunner_ntests_run(sr) != 1)
        snprintf(r->why, sizeof r->why, "%s:%d: did not run", c->file, c->line);
    else if (tr_rtype(res[0]) == CK_PASS)
        o = PASSED;
    else
        snprintf(r->why, sizeof r->why, "%s:%d: %s", tr_lfile(res[0]),
                 tr_lno(res[0]), tr_msg(res[0]));
    free(res);
    srunner_free(sr);
    t_files_end();
    atomic_store_explicit(&r->outcome, o, memory_order_release);
}

/* ---- choosing ------------------------------------------------------------ */

static int
by_place(const void *pa, const void *pb)
{
    const t_case *a = *(t_case *const *)pa, *b = *(t_case *const *)pb;
    int d = strcmp(a->file, b->file);

    return d ? d : strcmp(a->name, b->name);
}

static bool
chosen(const t_case *c)
{
    char id[512];

    if (!opt.pattern)
        return true;
    snprintf(id, sizeof id, "%s:%s", c->file, c->name);
    if (strpbrk(opt.pattern, "*?["))
        return fnmatch(opt.pattern, c->name, 0) == 0 ||
               fnmatch(opt.pattern, id, 0) == 0;
    return strstr(id, opt.pattern) != NULL;
}

/* What may take longest, then as they are printed. */
static int
by_length(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double la = most_seconds(cases[a]), lb = most_seconds(cases[b]);

    return la != lb ? (la > lb ? -1 : 1) : a < b ? -1 : 1;
}

static void
choose(void)
{
    size_t n = 0;

    cases = calloc(n_cases + 1, sizeof *cases);
    order = calloc(n_cases + 1, sizeof *order);
    br_check(cases && order && "out of memory");
    for (t_case *c = list; c; c = c->next)
        if (chosen(c))
            cases[n++] = c;
    n_cases = n;
    qsort(cases, n, sizeof *cases, by_place);
    for (size_t i = 1; i < n; i++)
        if (by_place(&cases[i - 1], &cases[i]) == 0) {
            fprintf(stderr, "%s: two tests named %s\n", cases[i]->file,
                    cases[i]->name);
            exit(1);
        }
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort(order, n, sizeof *order, by_length);
}

/* ---- running and printing ------------------------------------------------ */

/* So many tests, then another shard comes in its place: check leaves a shard
 * with more memory after each, under ASan half a gigabyte after 900, which every
 * test copies and at its end searches for leaks: 0.3 s of a test of 0.03. */
enum { SHARD_TESTS = 24 };

static void
run_shard(size_t most)
{
    size_t i;

    while (most-- > 0 && (i = atomic_fetch_add(&shared->next, 1)) < n_cases)
        run_case(order[i]);
}

/* The runner itself stays single-threaded and tests run below the shards, so
 * every fork, under TSan too, is a fork of a process with one thread. */
static pid_t
start_shard(void)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        run_shard(SHARD_TESTS);
        fflush(NULL);
        _exit(0);
    }
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    return pid;
}

static int
shards_left(pid_t *pids)
{
    int left = 0;

    for (int j = 0; j < opt.jobs; j++) {
        if (pids[j] > 0 && waitpid(pids[j], NULL, WNOHANG) == pids[j])
            pids[j] = atomic_load(&shared->next) < n_cases ? start_shard() : 0;
        left += pids[j] > 0;
    }
    return left;
}

static outcome
wait_for(size_t i, pid_t *pids)
{
    row *r = &shared->rows[i];
    outcome o;

    for (;;) {
        bool running = pids && shards_left(pids) > 0;

        o = (outcome)atomic_load_explicit(&r->outcome, memory_order_acquire);
        if (o != WAITING)
            return o;
        if (!running) {
            snprintf(r->why, sizeof r->why, "the runner's shard died");
            return FAILED;
        }
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

static int
run_all(void)
{
    size_t count[SKIPPED + 1] = {0}, in_file = 0;
    pid_t *pids = calloc((size_t)opt.jobs, sizeof *pids);
    double seconds = 0, busy = 0;

    br_check(pids && "out of memory");
    if (opt.no_fork)
        run_shard(n_cases);
    for (int j = 0; j < opt.jobs && !opt.no_fork; j++)
        pids[j] = start_shard();
    for (size_t i = 0; i < n_cases; i++) {
        const t_case *c = cases[i];
        const row *r = &shared->rows[i];
        outcome o = wait_for(i, opt.no_fork ? NULL : pids);

        count[o]++;
        in_file++;
        seconds += r->seconds;
        busy += r->busy;
        if (o == FAILED)
            printf("FAIL %s\n     %s\n", c->name, r->why);
        else if (o == SKIPPED)
            printf("skip %s: %s\n", c->name, r->why);
        else if (opt.verbose)
            printf("ok   %s (%.2f s, %.2f s busy)\n", c->name, r->seconds,
                   r->busy);
        if (i + 1 == n_cases || strcmp(c->file, cases[i + 1]->file) != 0) {
            printf("%-36s %4zu test%s %7.2f s %7.2f s busy\n", c->file, in_file,
                   in_file == 1 ? " " : "s", seconds, busy);
            in_file = 0;
            seconds = busy = 0;
        }
        fflush(stdout);
    }
    free(pids);
    if (n_cases == 0)
        fprintf(stderr, "no test matches '%s'\n",
                opt.pattern ? opt.pattern : "");
    printf("%zu passed, %zu failed", count[PASSED], count[FAILED]);
    if (count[SKIPPED])
        printf(", %zu skipped", count[SKIPPED]);
    printf("\n");
    return count[FAILED] || n_cases == 0 ? 1 : 0;
}

/* ---- start --------------------------------------------------------------- */

static void
usage(const char *me)
{
    fprintf(stderr,
            "usage: %s [-k PATTERN] [-l] [-v] [-j N] [-t SECONDS] [--no-fork]\n"
            "  -k PATTERN  only tests whose file:name holds it (or matches it,"
            " as a glob)\n"
            "  -l          list them\n"
            "  -v          one line per test\n"
            "  -j N        N at a time\n"
            "  -t SECONDS  timeout of a test (default 20; x4 with a sanitizer,"
            " up to x8 and 300 beside a load)\n"
            "  --no-fork   all in this process, for a debugger\n",
            me);
    exit(2);
}

static void
parse_args(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = argv[i + 1];
        bool takes_value = strlen(a) == 2 && a[0] == '-' && strchr("kjt", a[1]);

        if (takes_value && !v)
            usage(argv[0]);
        if (strcmp(a, "-k") == 0)
            opt.pattern = v;
        else if (strcmp(a, "-j") == 0)
            opt.jobs = (int)strtol(v, NULL, 10);
        else if (strcmp(a, "-t") == 0)
            opt.timeout = strtod(v, NULL);
        else if (strcmp(a, "-l") == 0)
            opt.list = true;
        else if (strcmp(a, "-v") == 0)
            opt.verbose = true;
        else if (strcmp(a, "--no-fork") == 0)
            opt.no_fork = true;
        else
            usage(argv[0]);
        i += takes_value;
    }
    if (opt.jobs < 1 || opt.jobs > 256 || !(opt.timeout > 0))
        usage(argv[0]);
}

/* The binary lies at ROOT/build/CONF/NAME; tests run in ROOT. */
static void
find_root(const char *argv0)
{
    static char root[PATH_MAX], conf[PATH_MAX];

    if (!realpath("/proc/self/exe", root) && !realpath(argv0, root)) {
        perror(argv0);
        exit(1);
    }
    dirname(root);
    strcpy(conf, strrchr(root, '/') + 1);
    dirname(dirname(root));
    if (chdir(root) != 0) {
        perror(root);
        exit(1);
    }
    t_files_root(root, conf);
}

int
main(int argc, char **argv)
{
    size_t size;

    parse_args(argc, argv);
    find_root(argv[0]);
    unsetenv("CK_RUN_SUITE");
    unsetenv("CK_RUN_CASE");
    setenv("BRASS_KERNEL_CACHE_BYTES", "0", 1); /* the user's stays as it is */
    setenv("LC_ALL", "C", 1); /* bash warns of one that is not installed */
    signal(SIGHUP, SIG_DFL);  /* nohup ignores it, and so would what we start */
    signal(SIGINT, SIG_DFL);  /* so does a shell that starts us behind it */
    choose();
    if (opt.list) {
        for (size_t i = 0; i < n_cases; i++)
            printf("%s:%d: %s\n", cases[i]->file, cases[i]->line,
                   cases[i]->name);
        return n_cases ? 0 : 1;
    }
    size = sizeof *shared + (n_cases + 1) * sizeof(row);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    return run_all();
}
