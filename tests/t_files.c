/* t_files.c - files, folders, golden texts and programs, for tests.
 *
 * What is handed out lives in `kept` until the test ends. Plain malloc, not
 * br_try_alloc: helpers must not count as allocations of the code under test.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *root, *conf;
static char *tmpdir;
static void **kept;
static size_t n_kept;

void
t_files_root(const char *root_dir, const char *conf_name)
{
    root = root_dir;
    conf = conf_name;
}

void
t_files_start(const char *id)
{
    tmpdir = t_printf("%s/build/%s/tmp-%s", root, conf, id);
}

static int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb, (void)type, (void)ftw;
    return remove(path);
}

void
t_files_end(void)
{
    nftw(tmpdir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < n_kept; i++)
        free(kept[i]);
    free(kept);
    kept = NULL;
    n_kept = 0;
}

void *
t_keep(void *p)
{
    void **more = realloc(kept, (n_kept + 1) * sizeof *kept);

    br_check(p && more && "out of memory in a test");
    kept = more;
    return kept[n_kept++] = p;
}

size_t
t_kept_bytes(void)
{
    size_t n = kept ? malloc_usable_size(kept) : 0;

    for (size_t i = 0; i < n_kept; i++)
        n += malloc_usable_size(kept[i]);
    return n;
}

char *
t_printf(const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return t_keep(s);
}

const char *
t_repo(const char *path)
{
    return t_printf("%s/%s", root, path);
}

const char *
t_vectors(const char *path)
{
    char *p = t_printf("%s/../shared/vectors/%s", root, path);

    return access(p, R_OK) == 0 ? p : NULL;
}

void
t_emulate_cuda(void)
{
    const char *lib = t_repo(t_printf("build/%s/emu/libcuda.so.1", conf));

    if (access(lib, R_OK) != 0)
        t_skip("no emulated CUDA device in this build");
    /* The library that is open already is the one that the tier finds. */
    ck_assert_msg(dlopen(lib, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
}

/* The device has the name of its process's parent. */
static void
forget_card(pid_t parent)
{
    unlink(t_printf("/run/lock/brass-gpu-emulated-%d.lock", (int)parent));
    unlink(t_printf("/tmp/brass-gpu-emulated-%d.lock", (int)parent));
}

void
t_emulate_end(void)
{
    forget_card(getppid());
}

const char *
t_conf(void)
{
    return conf;
}

bool
t_sanitized(void)
{
    return strstr(conf, "address") || strstr(conf, "undefined") ||
           strstr(conf, "thread");
}

bool
t_tsan(void)
{
    return strstr(conf, "thread") != NULL;
}

const char *
t_brass(void)
{
    return t_printf("%s/build/%s/brass", root, conf);
}

static char *
slurp(FILE *f, size_t *n)
{
    size_t cap = 1 << 16, at = 0, got;
    char *p = malloc(cap + 1);

    while (p && (got = fread(p + at, 1, cap - at, f)) > 0) {
        at += got;
        if (at == cap) {
            char *q = realloc(p, (cap *= 2) + 1);

            if (!q)
                free(p);
            p = q;
        }
    }
    br_check(p && "out of memory in a test");
    p[at] = 0;
    if (n)
        *n = at;
    return t_keep(p);
}

char *
t_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p;
    bool bad;

    if (!f)
        ck_abort_msg("%s: %s", path, strerror(errno));
    p = slurp(f, n);
    bad = ferror(f) != 0;
    fclose(f);
    if (bad)
        ck_abort_msg("%s: cannot be read", path);
    return p;
}

void
t_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(p, 1, n, f) == n;

    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        ck_abort_msg("%s: %s", path, strerror(errno));
}

const char *
t_tmpdir(void)
{
    if (mkdir(tmpdir, 0777) != 0 && errno != EEXIST)
        ck_abort_msg("%s: %s", tmpdir, strerror(errno));
    return tmpdir;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **
t_ls(const char *dir, const char *ends)
{
    size_t n = 0, cap = 64, ne = strlen(ends), nd;
    char **names = malloc((cap + 1) * sizeof *names);
    struct dirent *e;
    DIR *d = opendir(dir);

    if (!d)
        ck_abort_msg("%s: %s", dir, strerror(errno));
    while (names && (e = readdir(d))) {
        nd = strlen(e->d_name);
        if (e->d_name[0] == '.' || nd < ne ||
            strcmp(e->d_name + nd - ne, ends) != 0)
            continue;
        if (n == cap)
            names = realloc(names, ((cap *= 2) + 1) * sizeof *names);
        if (names)
            names[n++] = t_printf("%s", e->d_name);
    }
    closedir(d);
    t_keep(names);
    qsort(names, n, sizeof *names, by_name);
    names[n] = NULL;
    return names;
}

/* ---- golden texts -------------------------------------------------------- */

static void
make_folders(const char *path)
{
    char *p = t_printf("%s", path);

    for (char *s = p + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        mkdir(p, 0777);
        *s = '/';
    }
}

void
t_golden_n(const char *path, const char *text, size_t n)
{
    const char *want = t_repo(path), *update = getenv("T_GOLDEN_UPDATE");
    const char *got = t_printf("%s/golden", t_tmpdir());
    const char *is;
    size_t n_want;
    t_proc r;

    if (update && strcmp(update, "1") == 0) {
        make_folders(want);
        t_write(want, text, n);
        return;
    }
    if (access(want, F_OK) != 0)
        ck_abort_msg("%s: no such golden file; `make golden-update` writes it",
                     path);
    is = t_read(want, &n_want);
    if (n_want == n && memcmp(is, text, n) == 0)
        return;
    t_write(got, text, n);
    t_exec(&r,
           (const char *[]){"diff", "-u", "--label", path, "--label", "got",
                            want, got, NULL},
           NULL, 0);
    if (r.n_out > 3000)
        memcpy(r.out + 3000, "\n...", 5);
    ck_abort_msg("differs from its golden file (`make golden-update` accepts "
                 "the new text):\n%s%s",
                 r.out, r.err);
}

void
t_golden(const char *path, const char *text)
{
    t_golden_n(path, text, strlen(text));
}

/* ---- programs ------------------------------------------------------------ */

bool
t_have_program(const char *name)
{
    char *dirs = t_printf("%s", getenv("PATH") ? getenv("PATH") : "/bin");
    char *save = NULL;

    for (char *d = strtok_r(dirs, ":", &save); d;
         d = strtok_r(NULL, ":", &save))
        if (access(t_printf("%s/%s", d, name), X_OK) == 0)
            return true;
    return false;
}

static FILE *
scratch_file(const void *p, size_t n)
{
    FILE *f = tmpfile();

    if (!f || fwrite(p, 1, n, f) != n || fflush(f) != 0)
        ck_abort_msg("scratch file: %s", strerror(errno));
    rewind(f);
    return f;
}

/* Files, not pipes: nothing to poll and no order of reads to get wrong. The
 * child stays in the test's process group, so a timeout ends it as well. */
void
t_exec(t_proc *r, const char *const *argv, const char *in, size_t n_in)
{
    FILE *f[3] = {scratch_file(in ? in : "", n_in), scratch_file("", 0),
                  scratch_file("", 0)};
    struct rusage used = {0};
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 3; i++)
            dup2(fileno(f[i]), i);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0)
        ck_abort_msg("fork: %s", strerror(errno));
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    r->most_bytes = (uint64_t)used.ru_maxrss << 10;
    rewind(f[1]);
    rewind(f[2]);
    r->out = slurp(f[1], &r->n_out);
    r->err = slurp(f[2], &r->n_err);
    r->exit =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    for (int i = 0; i < 3; i++)
        fclose(f[i]);
    if (r->exit == 127)
        ck_abort_msg("cannot run %s", argv[0]);
}

void
t_run_emulated(t_proc *r, const char *const *args, const char *in, size_t n_in)
{
    const char *dir = t_repo(t_printf("build/%s", conf));
    const char *argv[32] = {"env", t_printf("LD_LIBRARY_PATH=%s/emu", dir),
                            t_printf("%s/brass", dir)};

    if (access(t_printf("%s/emu/libcuda.so.1", dir), R_OK) != 0)
        t_skip("no emulated CUDA device in this build");
    for (size_t n = 3; *args; args++) {
        ck_assert_uint_lt(n, BR_COUNT(argv) - 1);
        argv[n++] = *args;
    }
    t_exec(r, argv, in, n_in);
    forget_card(getpid());
}

uint64_t
t_rand(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
