/* folder.c - folders: the user's, made, and kept below a size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
br_folder_make(br_str *path)
{
    struct stat is;
    int why = 0;

    for (size_t i = 1; !path->oom && i <= path->n; i++) {
        char c = path->at[i];

        if (c && c != '/')
            continue;
        path->at[i] = 0;
        if (mkdir(path->at, 0700) != 0 && errno != EEXIST && !why)
            why = errno;
        path->at[i] = c;
    }
    if (path->oom)
        return ENOMEM;
    if (path->n && stat(path->at, &is) == 0)
        return S_ISDIR(is.st_mode) ? 0 : ENOTDIR;
    return why ? why : ENOENT;
}

const char *
br_env_find(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1])
            return *env + n + 1;
    return NULL;
}

bool
br_folder_user(char *const *env, const char *xdg, const char *home_path,
               br_str *out)
{
    const char *given = br_env_find(env, xdg), *home = br_env_find(env, "HOME");

    if (given)
        br_str_printf(out, "%s/brass", given);
    else if (home)
        br_str_printf(out, "%s/%s/brass", home, home_path);
    return given || home;
}

bool
br_out_is_left_over(const char *name)
{
    char *end;
    long pid;

    if (strncmp(name, ".brass-", 7) != 0)
        return false;
    pid = strtol(name + 7, &end, 10);
    return pid > 0 && *end == '-' && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

typedef struct kept_file {
    int64_t used_ns;
    uint64_t bytes;
    char *path;
} kept_file;

static int
by_use(const void *x, const void *y)
{
    const kept_file *a = x, *b = y;

    return (a->used_ns > b->used_ns) - (a->used_ns < b->used_ns);
}

br_folder_sum
br_folder_trim(const char *folder, const char *ending, uint64_t most,
               br_folder_judge *judge, void *arg)
{
    DIR *d = opendir(folder);
    BR_VEC(kept_file) files = {0};
    br_folder_sum sum = {0, 0};
    br_str path = {0};

    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name), tail = strlen(ending);
        bool ours = n > tail && strcmp(e->d_name + n - tail, ending) == 0;
        br_verdict it = BR_IT_COUNTS;
        struct stat s;

        br_str_clear(&path);
        br_str_printf(&path, "%s/%s", folder, e->d_name);
        if (path.oom)
            break;
        ours = ours && stat(path.at, &s) == 0 && S_ISREG(s.st_mode);
        if (ours && judge)
            it = judge(arg, path.at, e->d_name);
        if (br_out_is_left_over(e->d_name) || (ours && it == BR_IT_GOES)) {
            (void)unlink(path.at);
        } else if (ours && it == BR_IT_COUNTS) {
            kept_file f = {s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec,
                           (uint64_t)s.st_size, path.at};

            if (!br_vec_push(&files, f))
                break;
            path = (br_str){0}; /* the row has it */
            sum.bytes += f.bytes;
            sum.files++;
        }
    }
    if (files.n && sum.bytes > most)
        qsort(files.at, files.n, sizeof *files.at, by_use);
    for (size_t k = 0; k < files.n; k++) {
        if (sum.bytes > most && unlink(files.at[k].path) == 0) {
            sum.bytes -= files.at[k].bytes;
            sum.files--;
        }
        br_free(files.at[k].path);
    }
    if (d)
        closedir(d);
    br_vec_fini(&files);
    br_str_fini(&path);
    return sum;
}
