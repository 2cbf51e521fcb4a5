/* bench_pairs.c - answers of several engines in turn, some tokens at a time, with
 * a read of memory between any two.
 *
 *   bench_pairs [-n PAIRS] [-c CYCLES] [-k TOKENS] [-t THREADS] -- OURS --
 *               OTHER [-- OTHER...]                    each a command, see below
 *
 *   read  ours k  read  other k  read  other k  read     a cycle; the next one
 *                                                        goes the other way round
 *
 * Memory of some machines switches between two speeds within seconds, and who is
 * faster when each was measured at another is chance. Here all of them run all
 * the time; one answers TOKENS (4) tokens while the others sleep, some .1 s. A
 * pair is CYCLES (8) cycles: all tokens of each by all its time. A cycle is even
 * if its reads, by all threads, are within 10 % of each other; a pair is made
 * longer by a cycle for each that was not, but for no more than twice as many.
 * Ahead is who is ahead of the fastest of the others: counted of all cycles, and
 * of even ones alone, and how many were not is said.
 *
 * A side is a program that says "ready" and then, to a line with a number, makes
 * so many tokens and says the nanoseconds that took; 0: the sequence is empty
 * again, as it is when a pair begins. The first token of each turn, by which
 * threads awake and caches fill, is not counted. bench_turn is such a program,
 * turn_llama.cc may be compiled into one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/cpu/cpu_pool.h"
#include "drv/cpu/cpu_probe.h"
#include "kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_SIDES = 6,
    READ_BYTES = 256 << 20, /* well over any cache; 5 ms */
    REST_MS = 10,           /* till who answered last has gone to sleep */
};

typedef struct side {
    pid_t pid;
    FILE *to, *from;
    const char *name;
    int64_t ns, even_ns; /* of a pair */
} side;

static side sides[MAX_SIDES];
static int n_sides;

static struct {
    int pairs, cycles, tokens, threads;
} opt = {10, 8, 4, 2};

static struct {
    br_cpu_pool *pool;
    uint8_t *p;
} memory;

static BR_NORETURN void
die(const char *why, const char *more)
{
    fprintf(stderr, "bench_pairs: %s%s\n", why, more);
    for (int i = 0; i < n_sides; i++)
        kill(sides[i].pid, SIGTERM);
    exit(1);
}

/* ---- the machine ---------------------------------------------------------- */

static uint32_t
parts(void *ctx, uint32_t phase)
{
    (void)ctx, (void)phase;
    return br_cpu_pool_threads(memory.pool);
}

static void
part(void *ctx, uint32_t phase, uint32_t i, uint32_t worker)
{
    size_t each = READ_BYTES / br_cpu_pool_threads(memory.pool) / 256 * 256;

    (void)ctx, (void)phase, (void)worker;
    (void)br_probe_read(memory.p + i * each, each);
}

/* GB/s of all threads, once they are awake: the median of three. */
static double
reads(void)
{
    br_cpu_job job = {.n_phases = 1, .begin = parts, .tile = part};
    double gb_s[3];

    br_cpu_pool_run(memory.pool, &job);
    for (int i = 0; i < 3; i++) {
        int64_t from = br_now_ns();

        br_cpu_pool_run(memory.pool, &job);
        gb_s[i] = READ_BYTES / (double)(br_now_ns() - from);
    }
    return BR_MAX(BR_MIN(gb_s[0], gb_s[1]),
                  BR_MIN(BR_MAX(gb_s[0], gb_s[1]), gb_s[2]));
}

static void
rest(void)
{
    usleep(REST_MS * 1000);
}

/* ---- sides ---------------------------------------------------------------- */

static int64_t
ask(side *s, int tokens)
{
    char line[64];

    fprintf(s->to, "%d\n", tokens);
    fflush(s->to);
    if (!fgets(line, sizeof line, s->from))
        die("it ended: ", s->name);
    return strtoll(line, NULL, 10);
}

static void
start(side *s, char **argv)
{
    int to[2], from[2];
    char line[64];

    s->name = argv[0];
    if (pipe(to) != 0 || pipe(from) != 0 || (s->pid = fork()) < 0)
        die("no process for ", s->name);
    if (s->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    s->to = fdopen(to[1], "w");
    s->from = fdopen(from[0], "r");
    if (!s->to || !s->from || !fgets(line, sizeof line, s->from) ||
        strcmp(line, "ready\n") != 0)
        die("it is not ready: ", s->name);
    (void)ask(s, opt.tokens); /* pages, threads */
}

/* ---- pairs ---------------------------------------------------------------- */

typedef struct span {
    double low, high;
} span;

static span
with(span s, double x)
{
    return (span){s.low == 0 || x < s.low ? x : s.low, BR_MAX(s.high, x)};
}

/* Whether memory read the same all the time; what it read goes to *all. */
static bool
cycle(bool back, span *all)
{
    int64_t ns[MAX_SIDES];
    span here = {0};
    bool even;

    rest();
    here = with(here, reads());
    for (int i = 0; i < n_sides; i++) {
        int which = back ? n_sides - 1 - i : i;
        side *s = &sides[which];

        rest();
        (void)ask(s, 1);
        ns[which] = ask(s, opt.tokens);
        rest();
        here = with(here, reads());
    }
    even = here.high <= here.low * 1.1;
    for (int i = 0; i < n_sides; i++) {
        sides[i].ns += ns[i];
        sides[i].even_ns += even ? ns[i] : 0;
    }
    *all = with(with(*all, here.low), here.high);
    return even;
}

/* How much faster the first is than the fastest of the others. */
static double
ahead(bool even)
{
    double best = 0;

    for (int i = 1; i < n_sides; i++) {
        double ns = (double)(even ? sides[i].even_ns : sides[i].ns);

        best = best == 0 || ns < best ? ns : best;
    }
    return best / (double)(even ? sides[0].even_ns : sides[0].ns);
}

typedef struct count {
    int ahead, even_ahead, even, cycles, uneven;
} count;

static void
pair(int number, count *c)
{
    int cycles = 0, even = 0;
    span all = {0};

    for (int i = 0; i < n_sides; i++) {
        sides[i].ns = sides[i].even_ns = 0;
        (void)ask(&sides[i], 0);
    }
    for (; even < opt.cycles && cycles < 2 * opt.cycles; cycles++)
        even += cycle(cycles % 2 == 1, &all);
    printf("pair %2d:", number);
    for (int i = 0; i < n_sides; i++)
        printf(" %6.2f", 1e9 * opt.tokens * cycles / (double)sides[i].ns);
    printf(" tokens/s; ahead %.2f, even %.2f (%d of %d cycles); reads %.1f to "
           "%.1f GB/s\n",
           ahead(false), even ? ahead(true) : 0, even, cycles, all.low,
           all.high);
    fflush(stdout);
    c->ahead += ahead(false) > 1;
    c->even += even > 0;
    c->even_ahead += even > 0 && ahead(true) > 1;
    c->cycles += cycles;
    c->uneven += cycles - even;
}

/* ---- the command line ----------------------------------------------------- */

static int
number(int argc, char **argv, int i)
{
    int n = i < argc ? atoi(argv[i]) : 0;

    if (n < 1 || n > 400)
        die("a number of 1 to 400, please: ", i < argc ? argv[i] : "");
    return n;
}

/* Options up to the first "--". */
static int
options(int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        int *to = !strcmp(argv[i], "-n")   ? &opt.pairs
                  : !strcmp(argv[i], "-c") ? &opt.cycles
                  : !strcmp(argv[i], "-k") ? &opt.tokens
                  : !strcmp(argv[i], "-t") ? &opt.threads
                                           : NULL;

        if (!to)
            die("no such option: ", argv[i]);
        *to = number(argc, argv, i + 1);
    }
    if ((opt.tokens + 1) * 2 * opt.cycles > 512)
        die("more than 512 tokens of a pair: less CYCLES or TOKENS", "");
    return i;
}

int
main(int argc, char **argv)
{
    br_status st = {0};
    count c = {0};

    signal(SIGPIPE, SIG_IGN);
    for (int i = options(argc, argv); i < argc;) {
        char **command = &argv[++i];

        for (; i < argc && strcmp(argv[i], "--") != 0; i++)
            ;
        argv[i] = NULL;
        if (n_sides == MAX_SIDES || !command[0])
            die("2 to 6 commands, please", "");
        start(&sides[n_sides++], command);
    }
    if (n_sides < 2)
        die("2 to 6 commands, please", "");
    must(br_cpu_pool_new(&memory.pool, (uint32_t)opt.threads, &st), &st);
    memory.p = br_try_pages(READ_BYTES, 1);
    if (!memory.p)
        die("out of memory", "");
    memset(memory.p, 1, READ_BYTES);
    for (int i = 1; i <= opt.pairs; i++)
        pair(i, &c);
    printf("ahead in %d of %d pairs; by even cycles in %d of %d; %d of %d "
           "cycles were uneven\n",
           c.ahead, opt.pairs, c.even_ahead, c.even, c.uneven, c.cycles);
    for (int i = 0; i < n_sides; i++) {
        fclose(sides[i].to);
        waitpid(sides[i].pid, NULL, 0);
    }
    br_cpu_pool_free(memory.pool);
    br_free(memory.p);
    return 0;
}
