/* test_file.c - whole files: reading with limits, replacing in one step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *
in_tmp(const char *name)
{
    return t_printf("%s/%s", t_tmpdir(), name);
}

/* How many names are in the test's folder, hidden ones too. */
static int
count_names(void)
{
    DIR *d = opendir(t_tmpdir());
    struct dirent *e;
    int n = 0;

    while ((e = readdir(d)))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static mode_t
mode_of(const char *path)
{
    struct stat s;

    ck_assert_int_eq(stat(path, &s), 0);
    return s.st_mode & 07777;
}

/* ---- reading ------------------------------------------------------------- */

TEST(file_reads_all_sizes)
{
    static const size_t sizes[] = {0,     1,     2,      65534,  65535,
                                   65536, 65537, 200000, 1 << 20};

    for (size_t i = 0; i < BR_COUNT(sizes); i++) {
        size_t n = sizes[i], got;
        char *p = t_keep(malloc(n + 1)), *q;
        br_status st = {0};

        for (size_t k = 0; k < n; k++)
            p[k] = (char)(k * 7);
        t_write(in_tmp("f"), p, n);
        t_ok(br_file_read(in_tmp("f"), n, &q, &got, &st), &st);
        ck_assert_uint_eq(got, n);
        ck_assert_int_eq(q[n], 0); /* a NUL behind, as a courtesy */
        ck_assert(memcmp(p, q, n) == 0);
        br_free(q);
        if (n == 0)
            continue;
        ck_assert_int_eq(br_file_read(in_tmp("f"), n - 1, &q, &got, &st),
                         BR_E_LIMIT);
        ck_assert_str_eq(st.msg, t_printf("%s: %zu bytes, the limit is %zu",
                                          in_tmp("f"), n, n - 1));
        ck_assert_ptr_null(q);
    }
}

TEST(file_read_names_what_is_wrong)
{
    br_status st = {0};
    char *p = NULL;
    size_t n;

    ck_assert_int_eq(br_file_read(in_tmp("no"), 10, &p, &n, &st),
                     BR_E_NOT_FOUND);
    ck_assert_str_eq(st.msg, t_printf("%s: cannot open: No such file or "
                                      "directory",
                                      in_tmp("no")));
    ck_assert_int_eq(st.sys, ENOENT);
    st = (br_status){0};
    ck_assert_int_eq(br_file_read(t_tmpdir(), 10, &p, &n, &st), BR_E_FORMAT);
    ck_assert_str_eq(st.msg,
                     t_printf("%s: cannot read: Is a directory", t_tmpdir()));
    st = (br_status){0};
    t_write(in_tmp("f"), "x", 1);
    ck_assert_int_eq(br_file_read(in_tmp("f/below"), 10, &p, &n, &st),
                     BR_E_NOT_FOUND);
    ck_assert_int_eq(br_file_read(in_tmp("no"), 10, &p, &n, NULL),
                     BR_E_NOT_FOUND);
    ck_assert_ptr_null(p);
}

TEST(a_models_folder_with_a_pipe_is_refused_and_nobody_waits)
{
    static const char *const names[] = {"config.json", "tokenizer.json",
                                        "tokenizer_config.json"};
    br_status st = {0};
    char *p = NULL;
    size_t n;
    t_proc r;

    for (int i = 0; i < 3; i++) {
        const char *dir = t_printf("%s/%d", t_tmpdir(), i);

        ck_assert_int_eq(mkdir(dir, 0700), 0);
        t_write(t_printf("%s/config.json", dir), "{}", 2);
        unlink(t_printf("%s/%s", dir, names[i]));
        ck_assert_int_eq(mkfifo(t_printf("%s/%s", dir, names[i]), 0600), 0);
        t_run(&r, i ? "tokenize" : "run", dir, "x");
        ck_assert_msg(strstr(r.err, "it is a pipe or device"), "%s", r.err);
        ck_assert_int_eq(r.exit, 3);
    }
    ck_assert_int_eq(br_file_read_disk(in_tmp("0/config.json"), 9, &p, &n, &st),
                     BR_E_FORMAT);
    st = (br_status){0};
    ck_assert_int_eq(br_file_read_disk(in_tmp("no"), 9, &p, &n, &st),
                     BR_E_NOT_FOUND);
    st = (br_status){0};
    t_write(in_tmp("f"), "abc", 3);
    t_ok(br_file_read_disk(in_tmp("f"), 9, &p, &n, &st), &st);
    ck_assert_str_eq(p, "abc");
    br_free(p);
}

/* Feeds n bytes into a pipe from a child; returns the end to read from. */
static int
pipe_of(size_t n)
{
    int fd[2];

    ck_assert_int_eq(pipe(fd), 0);
    if (fork() == 0) {
        close(fd[0]);
        for (size_t i = 0; i < n; i++) {
            char c = (char)(i * 7);

            if (i % 1000 == 0)
                usleep(1); /* come in pieces */
            if (write(fd[1], &c, 1) != 1)
                _exit(0);
        }
        _exit(0);
    }
    close(fd[1]);
    return fd[0];
}

TEST(file_reads_a_pipe_of_unknown_size)
{
    size_t want = 150000, n;
    char *p;

    for (int limited = 0; limited < 2; limited++) {
        int fd = pipe_of(want);
        br_status st = {0};
        const char *path = t_printf("/dev/fd/%d", fd);

        if (limited) {
            ck_assert_int_eq(br_file_read(path, want - 1, &p, &n, &st),
                             BR_E_LIMIT);
            ck_assert_str_eq(
                st.msg, t_printf("%s: more than %zu bytes", path, want - 1));
        } else {
            t_ok(br_file_read(path, want, &p, &n, &st), &st);
            ck_assert_uint_eq(n, want);
            for (size_t i = 0; i < n; i++)
                if (p[i] != (char)(i * 7))
                    ck_abort_msg("byte %zu", i);
            br_free(p);
        }
        close(fd);
        wait(NULL);
    }
}

TEST(file_dash_is_standard_input)
{
    br_status st = {0};
    char *p;
    size_t n;
    int fd = pipe_of(3), was = dup(0);

    ck_assert_int_eq(dup2(fd, 0), 0);
    t_ok(br_file_read("-", 100, &p, &n, &st), &st);
    ck_assert_uint_eq(n, 3);
    br_free(p);
    close(fd);
    fd = pipe_of(3);
    dup2(fd, 0);
    ck_assert_int_eq(br_file_read("-", 2, &p, &n, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "standard input: more than 2 bytes");
    dup2(was, 0);
    close(was);
    close(fd);
    while (wait(NULL) > 0)
        ;
}

static br_code
read_pipe(void *arg, br_status *st)
{
    int fd = pipe_of(70000);
    br_code code;
    size_t n;
    char *p;

    (void)arg;
    code = br_file_read(t_printf("/dev/fd/%d", fd), 1 << 20, &p, &n, st);
    br_free(p);
    close(fd);
    wait(NULL);
    return code;
}

TEST(file_read_survives_every_failed_allocation)
{
    t_each_oom(read_pipe, NULL);
}

/* ---- writing ------------------------------------------------------------- */

TEST(file_write_makes_and_replaces)
{
    char *path = in_tmp("out");
    br_status st = {0};
    size_t n;

    umask(022);
    t_ok(br_file_write(path, "first", 5, &st), &st);
    ck_assert_str_eq(t_read(path, &n), "first");
    ck_assert_int_eq(mode_of(path), 0644);
    chmod(path, 0600);
    t_ok(br_file_write(path, "second text", 11, &st), &st);
    ck_assert_str_eq(t_read(path, &n), "second text");
    ck_assert_int_eq(mode_of(path), 0600); /* a secret stays one */
    t_ok(br_file_write(path, NULL, 0, &st), &st);
    ck_assert_str_eq(t_read(path, &n), "");
    umask(077);
    t_ok(br_file_write(in_tmp("private"), "x", 1, &st), &st);
    ck_assert_int_eq(mode_of(in_tmp("private")), 0600);
    ck_assert_int_eq(count_names(), 2); /* nothing else is left */
}

TEST(file_write_takes_the_longest_name)
{
    char name[256], was[4096];
    br_status st = {0};

    memset(name, 'n', 255);
    name[255] = 0;
    t_ok(br_file_write(in_tmp(name), "x", 1, &st), &st);
    ck_assert_int_eq(count_names(), 1);
    /* and one in the current folder, which has no slash */
    ck_assert_ptr_nonnull(getcwd(was, sizeof was));
    ck_assert_int_eq(chdir(t_tmpdir()), 0);
    t_ok(br_file_write("plain", "y", 1, &st), &st);
    ck_assert_int_eq(chdir(was), 0);
    ck_assert_str_eq(t_read(in_tmp("plain"), NULL), "y");
}

TEST(file_write_follows_links)
{
    br_status st = {0};
    struct stat s;

    mkdir(in_tmp("d"), 0777);
    t_write(in_tmp("d/real"), "old", 3);
    ck_assert_int_eq(symlink("d/real", in_tmp("link")), 0);
    t_ok(br_file_write(in_tmp("link"), "new", 3, &st), &st);
    ck_assert_str_eq(t_read(in_tmp("d/real"), NULL), "new");
    ck_assert_int_eq(lstat(in_tmp("link"), &s), 0);
    ck_assert(S_ISLNK(s.st_mode));
}

/* As /dev/stdout is one where the output goes into a file that was unlinked. */
TEST(file_write_keeps_a_link_to_a_file_without_a_name)
{
    br_status st = {0};
    char got[8] = "";
    struct stat s;
    int fd;

    fd = open(in_tmp("gone"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(in_tmp("gone")), 0);
    ck_assert_int_eq(symlink(t_printf("/proc/self/fd/%d", fd), in_tmp("link")),
                     0);
    t_ok(br_file_write(in_tmp("link"), "new", 3, &st), &st);
    ck_assert_int_eq(lstat(in_tmp("link"), &s), 0);
    ck_assert(S_ISLNK(s.st_mode));
    ck_assert_int_eq((int)pread(fd, got, sizeof got - 1, 0), 3);
    ck_assert_str_eq(got, "new");
    ck_assert_int_eq(count_names(), 1);
    close(fd);
}

/* As >>, or several commands whose output goes into one file. */
TEST(file_write_to_an_open_file_goes_on_behind_what_is_there)
{
    br_status st = {0};
    int fd = open(in_tmp("log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "old ", 4), 4);
    t_ok(br_file_write(t_printf("/dev/fd/%d", fd), "new", 3, &st), &st);
    ck_assert_int_eq(symlink(t_printf("/proc/self/fd/%d", fd), in_tmp("one")),
                     0);
    ck_assert_int_eq(symlink(in_tmp("one"), in_tmp("two")), 0);
    t_ok(br_file_write(in_tmp("two"), "er", 2, &st), &st);
    ck_assert_int_eq(write(fd, " last", 5), 5);
    ck_assert_str_eq(t_read(in_tmp("log"), NULL), "old newer last");
    close(fd);
}

/* A service may be started without standard output: its name stays a link. */
TEST(file_write_to_what_is_not_open_replaces_no_link)
{
    br_status st = {0};
    struct stat s;
    int fd = open(in_tmp("log"), O_RDONLY | O_CREAT, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(symlink(t_printf("/proc/self/fd/%d", fd), in_tmp("link")),
                     0);
    for (int i = 0; i < 2; i++) {
        st = (br_status){0};
        ck_assert_int_eq(br_file_write(in_tmp("link"), "new", 3, &st), BR_E_IO);
        ck_assert_str_eq(
            st.msg,
            t_printf("%s: cannot write: Bad file descriptor", in_tmp("link")));
        ck_assert_int_eq(lstat(in_tmp("link"), &s), 0);
        ck_assert(S_ISLNK(s.st_mode));
        close(fd);
    }
}

TEST(file_write_keeps_devices_devices)
{
    br_status st = {0};
    struct stat s;

    t_ok(br_file_write("/dev/null", "x", 1, &st), &st);
    ck_assert_int_eq(stat("/dev/null", &s), 0);
    ck_assert(S_ISCHR(s.st_mode));
}

TEST(file_write_names_what_is_wrong)
{
    br_status st = {0};

    ck_assert_int_eq(br_file_write(t_tmpdir(), "x", 1, &st), BR_E_IO);
    ck_assert_str_eq(st.msg,
                     t_printf("%s: cannot write: Is a directory", t_tmpdir()));
    st = (br_status){0};
    ck_assert_int_eq(br_file_write(in_tmp("no/f"), "x", 1, &st),
                     BR_E_NOT_FOUND);
    ck_assert_str_eq(st.msg, t_printf("%s: cannot create a file beside: No "
                                      "such file or directory",
                                      in_tmp("no/f")));
    st = (br_status){0};
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(br_file_write("/dev/full", "x", 1, &st), BR_E_IO);
        ck_assert_str_eq(st.msg,
                         "/dev/full: cannot write: No space left on device");
        ck_assert_int_eq(st.sys, ENOSPC);
    }
}

/* A write that fails half way: the old file stands, nothing is left beside. */
TEST(file_write_that_fails_leaves_the_old)
{
    struct rlimit small = {1000, 1000};
    char *path = in_tmp("f"), *big = t_keep(calloc(1, 5000));
    int status;

    t_write(path, "old", 3);
    if (fork() == 0) {
        br_status st = {0};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        _exit(br_file_write(path, big, 5000, &st) == BR_E_IO && st.sys == EFBIG
                  ? 0
                  : 1);
    }
    wait(&status);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(t_read(path, NULL), "old");
    ck_assert_int_eq(count_names(), 1);
}

static br_code
write_once(void *arg, br_status *st)
{
    return br_file_write(arg, "x", 1, st);
}

TEST(file_write_survives_every_failed_allocation)
{
    t_each_oom(write_once, in_tmp("f"));
    ck_assert_int_eq(count_names(), 1);
}

TEST(file_out_in_pieces_or_not_at_all)
{
    const char *dir = t_tmpdir();
    char *path = t_printf("%s/x", dir);
    br_status st = {0};
    br_out o;

    t_write(path, "old", 3);
    t_ok(br_out_begin(&o, path, &st), &st);
    t_ok(br_out_put(&o, "new", 3, &st), &st);
    br_out_drop(&o);
    ck_assert_str_eq(t_read(path, NULL), "old");
    t_ok(br_out_begin(&o, path, &st), &st);
    t_ok(br_out_put(&o, "ne", 2, &st), &st);
    ck_assert_str_eq(t_read(path, NULL), "old");
    t_ok(br_out_put(&o, "wer", 3, &st), &st);
    t_ok(br_out_end(&o, &st), &st);
    ck_assert_str_eq(t_read(path, NULL), "newer");
    ck_assert_int_eq(br_out_begin(&o, dir, &st), BR_E_IO);
    ck_assert_ptr_null(t_ls(dir, ".tmp")[0]);
}

/* What is long in the making has a name, but not its own, and is nobody else's. */
TEST(file_out_as_a_part_that_has_a_name)
{
    char *path = in_tmp("x"), *part = in_tmp("x.part");
    br_status st = {0};
    struct stat is;
    br_out o, other;

    t_write(path, "old", 3);
    ck_assert_int_eq(chmod(path, 0640), 0);
    t_write(part, "of who was killed", 17);
    t_ok(br_out_begin_part(&o, path, &st), &st);
    ck_assert_int_eq(stat(part, &is), 0);
    ck_assert_int_eq(is.st_mode & 0777, 0600);
    t_ok(br_out_put(&o, "ne", 2, &st), &st);
    ck_assert_str_eq(t_read(part, NULL), "ne");
    ck_assert_int_eq(br_out_begin_part(&other, path, &st), BR_E_BUSY);
    ck_assert_str_eq(t_read(path, NULL), "old");
    t_ok(br_out_put(&o, "wer", 3, &st), &st);
    t_ok(br_out_end(&o, &st), &st);
    ck_assert_str_eq(t_read(path, NULL), "newer");
    ck_assert_int_eq(stat(path, &is), 0);
    ck_assert_int_eq(is.st_mode & 0777, 0640);
    ck_assert_int_ne(access(part, F_OK), 0);
    t_ok(br_out_begin_part(&o, path, &st), &st);
    t_ok(br_out_put(&o, "ne", 2, &st), &st);
    br_out_leave(&o);
    ck_assert_str_eq(t_read(path, NULL), "newer");
    ck_assert_str_eq(t_read(part, NULL), "ne");
    ck_assert_int_eq(unlink(part), 0);
    ck_assert_int_eq(mkfifo(part, 0600), 0);
    ck_assert_int_eq(br_out_begin_part(&o, path, NULL), BR_E_IO);
    ck_assert_int_eq(access(part, F_OK), 0);
}

/* Whoever is killed in the middle leaves nothing behind, where the file system
 * can hold a file without a name. */
TEST(file_out_leaves_nothing_when_its_process_is_killed)
{
    int status, fd = open(t_tmpdir(), O_TMPFILE | O_RDWR, 0600);
    char *path = in_tmp("f");

    if (fd < 0)
        t_skip("no files without a name here");
    close(fd);
    t_write(path, "old", 3);
    if (fork() == 0) {
        br_status st = {0};
        br_out o;

        if (br_out_begin(&o, path, &st) == BR_OK &&
            br_out_put(&o, "new", 3, &st) == BR_OK)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    wait(&status);
    ck_assert(WIFSIGNALED(status));
    ck_assert_str_eq(t_read(path, NULL), "old");
    ck_assert_int_eq(count_names(), 1);
}

#if defined __x86_64__ || defined __aarch64__
/* From here on openat() knows no O_TMPFILE, as on NFS. */
static bool
forbid_nameless(void)
{
    enum { FLAGS = offsetof(struct seccomp_data, args[2]) };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = BR_COUNT(code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* Elsewhere the next one that is written there removes what was left, but not
 * what is being written. */
TEST(file_out_removes_what_a_killed_process_left)
{
    char *path = in_tmp("f");
    br_status st = {0};
    br_out held, o;
    pid_t child;
    int status;

    if (!forbid_nameless())
        t_skip("no system calls can be forbidden here");
    ck_assert_int_eq(open(t_tmpdir(), O_TMPFILE | O_RDWR, 0600), -1);
    t_ok(br_out_begin(&held, in_tmp("g"), &st), &st);
    child = fork();
    if (child == 0) {
        if (br_out_begin(&o, path, &st) == BR_OK)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(count_names(), 2);
    t_ok(br_out_begin(&o, path, &st), &st);
    ck_assert_int_eq(count_names(), 2);
    t_ok(br_out_end(&o, &st), &st);
    t_ok(br_out_end(&held, &st), &st);
    ck_assert_int_eq(count_names(), 2);
    ck_assert_int_eq(access(in_tmp("g"), F_OK), 0);
}
#endif

TEST(file_map_is_what_the_file_holds)
{
    char *path = t_printf("%s/x", t_tmpdir());
    br_status st = {0};
    br_file_map m;

    t_write(path, "abc", 3);
    t_ok(br_file_map_open(&m, path, &st), &st);
    ck_assert_uint_eq(m.n, 3);
    ck_assert_mem_eq(m.p, "abc", 3);
    br_file_map_close(&m);
    t_write(path, "", 0);
    t_ok(br_file_map_open(&m, path, &st), &st);
    ck_assert_uint_eq(m.n, 0);
    ck_assert_ptr_nonnull(m.p);
    br_file_map_close(&m);
    br_file_map_close(&m);
    ck_assert_int_eq(br_file_map_open(&m, "no/such", &st), BR_E_NOT_FOUND);
    ck_assert_int_eq(st.sys, 2);
}

TEST(a_users_folder_is_what_the_environment_says)
{
    char homer[] = "HOMER=/no", h[] = "HOME=/h", x[] = "XDG_X=/x";
    char xy[] = "XDG_XY=/no", no_x[] = "XDG_X=", no_h[] = "HOME=";
    char *both[] = {homer, h, x, NULL}, *home[] = {no_x, xy, h, NULL};
    char *none[] = {no_h, xy, NULL};
    br_str s = {0};

    ck_assert(br_folder_user(both, "XDG_X", ".x", &s));
    ck_assert_str_eq(br_str_z(&s), "/x/brass");
    br_str_clear(&s);
    ck_assert(br_folder_user(home, "XDG_X", ".local/x", &s));
    ck_assert_str_eq(br_str_z(&s), "/h/.local/x/brass");
    br_str_clear(&s);
    ck_assert(!br_folder_user(none, "XDG_X", ".x", &s));
    ck_assert(!br_folder_user(NULL, "XDG_X", ".x", &s));
    ck_assert_str_eq(br_str_z(&s), "");
    br_str_fini(&s);
}
