/* store.c - the folder of models, and which of them is active.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/catalogue.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH_BYTES = 4096 };

bool
br_store_plain(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);

    return n > 0 && n <= BR_CATALOGUE_MAX_NAME && *name != '.' &&
           strspn(name, plain) == n;
}

br_code
br_store_dir(const br_cli *cli, br_str *dir, br_status *st)
{
    /* run and chat have no room for the flag on their screens. */
    const char *given =
        cli->options.taken && cli->options.taken[BR_OPT_models_dir]
            ? br_opt_str(cli, BR_OPT_models_dir)
            : br_cli_env(cli, "BRASS_MODELS");

    if (given)
        br_str_puts(dir, given);
    else if (!br_cli_folder(cli, "XDG_DATA_HOME", ".local/share", dir))
        return br_fail(st, BR_E_NOT_FOUND,
                       "no place for models: neither --models nor HOME is set");
    else
        br_str_puts(dir, "/models");
    return dir->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_store_make(br_str *dir, br_status *st)
{
    int why = br_folder_make(dir);

    return why == 0 ? BR_OK
                    : br_fail(st, BR_E_IO,
                              "%s: cannot make this folder of models: %s",
                              dir->at, strerror(why));
}

/* ---- by name ------------------------------------------------------------- */

/* May name a file of the folder, which the user filled: with blanks, too. */
static bool
is_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/') &&
           strlen(name) <= NAME_MAX;
}

/* links: one that leads nowhere is here, too. */
static bool
is_here(const br_str *dir, const char *file, bool links, br_str *path)
{
    struct stat info;

    br_str_clear(path);
    br_str_printf(path, "%s/%s", dir->at, file);
    return !path->oom &&
           (links ? lstat(path->at, &info) == 0 : access(path->at, F_OK) == 0);
}

static bool
find(const br_catalogue *c, const br_str *dir, const char *name, bool links,
     br_str *file, br_str *path)
{
    bool here = false;

    br_str_clear(file);
    if (is_name(name)) {
        br_str_printf(file, "%s.gguf", name);
        here = is_here(dir, br_str_z(file), links, path) ||
               is_here(dir, name, links, path);
    }
    /* A name has files of several formats: the first that is here. */
    for (size_t i = 0; !here && i < c->rows.n; i++) {
        const br_catalogue_row *r = &c->rows.at[i];
        size_t n = strlen(r->name);

        if (strncmp(r->name, name, n) != 0 ||
            (name[n] &&
             (name[n] != ':' || strcmp(name + n + 1, r->quant) != 0)))
            continue;
        br_str_clear(file);
        br_catalogue_file(r, file);
        here = is_here(dir, br_str_z(file), links, path);
    }
    return here;
}

static br_code
not_here(const br_catalogue *c, const char *name, const br_str *dir,
         br_status *st)
{
    char hint[100];

    if (br_catalogue_find(c, name))
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s is not here yet; brass model pull %s gets it", name,
                       name);
    br_catalogue_hint(c, name, hint);
    return br_fail(st, BR_E_NOT_FOUND,
                   "%s: no such file, and no such model in %s or in the "
                   "catalogue%s",
                   name, dir->at,
                   *hint ? hint : "; brass model list shows both");
}

br_code
br_store_find(const br_cli *cli, const char *name, br_str *path, br_status *st)
{
    br_str dir = {0}, file = {0};
    br_catalogue c = {0};
    bool here = false;
    br_code code = br_store_dir(cli, &dir, st);

    if (code == BR_OK)
        code = br_catalogue_load(&c, cli, st);
    /* A link that leads nowhere is taken last: rm removes it, others say so. */
    if (code == BR_OK)
        here = find(&c, &dir, name, false, &file, path) ||
               find(&c, &dir, name, true, &file, path);
    if (code == BR_OK && (path->oom || file.oom))
        code = br_fail(st, BR_E_OOM, "out of memory");
    else if (code == BR_OK && !here)
        code = not_here(&c, name, &dir, st);
    br_catalogue_free(&c);
    br_str_fini(&dir);
    br_str_fini(&file);
    return code;
}

/* ---- the active one ------------------------------------------------------ */

static br_code
active_file(const br_cli *cli, bool make, br_str *out, br_status *st)
{
    BR_TRY(br_store_dir(cli, out, st));
    if (make)
        BR_TRY(br_store_make(out, st));
    br_str_puts(out, "/active");
    return out->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_store_active(const br_cli *cli, br_str *path, br_status *st)
{
    br_str file = {0};
    char *text = NULL;
    size_t n = 0;
    br_code code = active_file(cli, false, &file, st);

    if (code == BR_OK && access(file.at, F_OK) != 0)
        code = br_fail(st, BR_E_NOT_FOUND,
                       "no model is named and none is active; brass model use "
                       "NAME makes one so");
    if (code == BR_OK)
        code = br_file_read_disk(file.at, MAX_PATH_BYTES, &text, &n, st);
    if (code == BR_OK) {
        br_str_put(path, text, strcspn(text, "\n"));
        if (path->oom)
            code = br_fail(st, BR_E_OOM, "out of memory");
    }
    br_free(text);
    br_str_fini(&file);
    return code;
}

br_code
br_store_set_active(const br_cli *cli, const char *path, br_status *st)
{
    br_str file = {0}, text = {0};
    br_code code = active_file(cli, path != NULL, &file, st);

    if (code == BR_OK && !path) {
        (void)unlink(file.at);
    } else if (code == BR_OK) {
        br_str_printf(&text, "%s\n", path);
        code = text.oom ? br_fail(st, BR_E_OOM, "out of memory")
                        : br_file_write(file.at, text.at, text.n, st);
    }
    br_str_fini(&text);
    br_str_fini(&file);
    return code;
}

/* A folder of another's, a script: what nobody means who names a model. */
static bool
no_model(const char *path)
{
    char begin[4];
    br_str config = {0};
    ssize_t n;
    int fd;
    bool no;

    br_str_printf(&config, "%s/config.json", path);
    no = !config.oom && access(config.at, F_OK) != 0;
    br_str_fini(&config);
    fd = no ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return false; /* who opens it says why not */
    n = read(fd, begin, sizeof begin);
    close(fd);
    return n != sizeof begin || memcmp(begin, "GGUF", sizeof begin) != 0;
}

br_code
br_cli_model(const br_cli *cli, const char *given, br_str *path, br_status *st)
{
    br_status none = {0};

    if (!given)
        return br_store_active(cli, path, st) == BR_E_NOT_FOUND
                   ? (st->code = BR_E_USAGE)
                   : st->code;
    if ((is_name(given) || strchr(given, ':')) && !strstr(given, ".gguf")) {
        if (access(given, F_OK) != 0)
            return br_store_find(cli, given, path, st);
        if (no_model(given) && br_store_find(cli, given, path, &none) == BR_OK)
            return BR_OK;
        br_str_clear(path);
    }
    br_str_puts(path, given);
    return path->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}
