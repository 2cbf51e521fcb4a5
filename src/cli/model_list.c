/* model_list.c - brass model list, use, active, rm: the models of this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "model/gguf.h"
#include "model/model.h"
#include "model/qmix.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 10000 }; /* of the folder */

typedef struct entry {
    char name[BR_CATALOGUE_MAX_NAME * 2 + 8]; /* what a command takes */
    char quant[BR_CATALOGUE_MAX_NAME + 1];
    char file[BR_CATALOGUE_MAX_NAME * 2 + 32];
    char bad[120]; /* why it cannot be read, or "" */
    uint64_t bytes;
    const br_catalogue_row *row; /* NULL: a file the catalogue does not know */
    bool here, active;
} entry;

typedef struct listing {
    br_cli *cli;
    br_str dir, active;
    br_catalogue catalogue;
    BR_VEC(entry) at;
    uint64_t memory, left;
} listing;

/* ---- gathering ----------------------------------------------------------- */

static br_code
gather_catalogue(listing *l, br_status *st)
{
    br_str file = {0};
    br_code code = BR_OK;

    for (size_t i = 0; code == BR_OK && i < l->catalogue.rows.n; i++) {
        const br_catalogue_row *r = &l->catalogue.rows.at[i];
        entry e = {.row = r, .bytes = r->bytes};

        snprintf(e.name, sizeof e.name, "%s:%s", r->name, r->quant);
        snprintf(e.quant, sizeof e.quant, "%s", r->quant);
        br_str_clear(&file);
        br_catalogue_file(r, &file);
        snprintf(e.file, sizeof e.file, "%s", br_str_z(&file));
        if (file.oom || !br_vec_push(&l->at, e))
            code = br_fail(st, BR_E_OOM, "out of memory");
    }
    br_str_fini(&file);
    return code;
}

static bool
same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* The header of a file that is here: what it says it is. */
static void
look_into(listing *l, entry *e)
{
    br_status st = {0};
    br_str path = {0};
    const char *quant = NULL;
    int64_t code;
    br_gguf *g;

    br_str_printf(&path, "%s/%s", l->dir.at, e->file);
    e->active = !path.oom && l->active.n && same_file(path.at, l->active.at);
    if (path.oom || br_gguf_open(&g, path.at, &st) != BR_OK) {
        snprintf(e->bad, sizeof e->bad, "%.*s", (int)sizeof e->bad - 1,
                 path.oom ? "out of memory" : st.msg + path.n);
    } else {
        e->bytes = br_gguf_bytes(g);
        if (br_gguf_i64(br_gguf_find(g, "general.file_type"), 0, &code))
            quant = br_qmix_code_name(code);
        if (!e->row)
            snprintf(e->quant, sizeof e->quant, "%s", quant ? quant : "?");
        br_gguf_close(g);
    }
    br_str_fini(&path);
}

/* Of a set of files the first stands for all. */
static bool
is_model(const char *file)
{
    size_t n = strlen(file);
    uint32_t no;

    if (n < 6 || strcmp(file + n - 5, ".gguf") != 0 ||
        n >= sizeof((entry *)0)->file || *file == '.')
        return false;
    return !br_set_of((br_text){file, n}, &no) || no == 1;
}

static br_code
add_file(listing *l, const char *file, br_status *st)
{
    entry e = {.here = true};

    for (size_t i = 0; i < l->catalogue.rows.n; i++)
        if (strcmp(l->at.at[i].file, file) == 0) {
            l->at.at[i].here = true;
            look_into(l, &l->at.at[i]);
            return BR_OK;
        }
    snprintf(e.file, sizeof e.file, "%s", file);
    snprintf(e.name, sizeof e.name, "%.*s", (int)strlen(file) - 5, file);
    look_into(l, &e);
    return br_vec_push(&l->at, e) ? BR_OK
                                  : br_fail(st, BR_E_OOM, "out of memory");
}

static br_code
gather_files(listing *l, br_status *st)
{
    DIR *d = opendir(l->dir.at);
    br_code code = BR_OK;
    struct dirent *f;

    if (!d)
        return errno == ENOENT
                   ? BR_OK
                   : br_fail(st, BR_E_IO, "%s: %s", l->dir.at, strerror(errno));
    while (code == BR_OK && (f = readdir(d)))
        if (is_model(f->d_name))
            code = l->at.n < MAX_FILES
                       ? add_file(l, f->d_name, st)
                       : br_fail(st, BR_E_LIMIT, "%s: over %d files", l->dir.at,
                                 MAX_FILES);
    closedir(d);
    return code;
}

/* What is here comes first. */
static int
by_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->here != y->here)
        return x->here ? -1 : 1;
    if (!x->row != !y->row || !x->row)
        return !x->row != !y->row ? (x->row ? -1 : 1)
                                  : strcmp(x->name, y->name);
    return x->row < y->row ? -1 : x->row > y->row;
}

static br_code
gather(listing *l, br_status *st)
{
    br_status none = {0};

    br_os_memory(&l->memory, &l->left);
    BR_TRY(br_store_dir(l->cli, &l->dir, st));
    BR_TRY(br_catalogue_load(&l->catalogue, l->cli, st));
    if (br_store_active(l->cli, &l->active, &none) == BR_E_OOM)
        return br_fail(st, BR_E_OOM, "out of memory");
    BR_TRY(gather_catalogue(l, st));
    BR_TRY(gather_files(l, st));
    if (l->at.n)
        qsort(l->at.at, l->at.n, sizeof *l->at.at, by_name);
    return BR_OK;
}

/* ---- list ---------------------------------------------------------------- */

static const char *
fit_of(const listing *l, const entry *e)
{
    if (!e->bytes)
        return "?";
    if (!br_model_fits(e->bytes, l->memory))
        return "too big";
    return br_model_fits(e->bytes, l->left) ? "fits" : "if free";
}

static void
print_text(const listing *l)
{
    FILE *out = l->cli->out;
    bool listed = l->active.n == 0;

    fprintf(out, "  %-30s %-8s %10s  %-8s %s\n", "model", "quant", "size",
            "memory", "state");
    for (size_t i = 0; i < l->at.n; i++) {
        const entry *e = &l->at.at[i];
        char size[32] = "?";

        if (e->bytes)
            snprintf(size, sizeof size, "%.2f GB", (double)e->bytes / 1e9);
        fprintf(out, "%c %-30s %-8s %10s  %-8s %s%s\n", e->active ? '*' : ' ',
                e->name, e->quant, size, fit_of(l, e),
                *e->bad   ? "damaged"
                : e->here ? "here"
                          : "to pull",
                e->bad);
        listed |= e->active;
    }
    if (!listed)
        fprintf(out, "* %s\n", l->active.at);
    fprintf(out, "%.1f GB of memory, %.1f GB free; models are in %s\n",
            (double)l->memory / 1e9, (double)l->left / 1e9, l->dir.at);
}

static void
put_entry(br_json_writer *w, const listing *l, const entry *e)
{
    br_json_w_obj(w);
    br_json_w_key_strz(w, "name", e->name);
    br_json_w_key_strz(w, "quant", e->quant);
    br_json_w_key_u64(w, "bytes", e->bytes);
    br_json_w_key_bool(w, "fits", br_model_fits(e->bytes, l->memory));
    br_json_w_key_bool(w, "fits_now", br_model_fits(e->bytes, l->left));
    br_json_w_key_bool(w, "here", e->here);
    br_json_w_key_bool(w, "active", e->active);
    br_json_w_key_strz(w, "file", e->file);
    br_json_w_key(w, "url");
    if (e->row)
        br_json_w_strz(w, e->row->url);
    else
        br_json_w_null(w);
    br_json_w_key(w, "error");
    if (*e->bad)
        br_json_w_strz(w, e->bad);
    else
        br_json_w_null(w);
    br_json_w_obj_end(w);
}

static int
print_json(const listing *l)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 2);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "folder", l->dir.at);
    br_json_w_key_u64(&w, "memory_bytes", l->memory);
    br_json_w_key_u64(&w, "free_bytes", l->left);
    br_json_w_key(&w, "active");
    if (l->active.n)
        br_json_w_strz(&w, l->active.at);
    else
        br_json_w_null(&w);
    br_json_w_key(&w, "models");
    br_json_w_arr(&w);
    for (size_t i = 0; i < l->at.n; i++)
        put_entry(&w, l, &l->at.at[i]);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(l->cli, &doc);
    br_str_fini(&doc);
    return code;
}

int
br_cmd_model_list(br_cli *cli)
{
    listing l = {.cli = cli};
    br_status st = {0};
    int code = 0;

    if (gather(&l, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else if (br_opt_bool(cli, BR_OPT_json))
        code = print_json(&l);
    else
        print_text(&l);
    br_vec_fini(&l.at);
    br_catalogue_free(&l.catalogue);
    br_str_fini(&l.dir);
    br_str_fini(&l.active);
    return code;
}

/* ---- use, active, rm ----------------------------------------------------- */

/* The file is a model, and is named so that it is found from everywhere. */
static br_code
use(br_cli *cli, br_str *path, br_status *st)
{
    char real[PATH_MAX];
    br_model *m;

    BR_TRY(br_cli_model(cli, cli->args[0], path, st));
    BR_TRY(br_model_open(&m, path->at, st)); /* not one that nothing runs */
    br_model_close(m);
    if (!realpath(path->at, real))
        return br_fail(st, BR_E_IO, "%s: %s", path->at, strerror(errno));
    BR_TRY(br_store_set_active(cli, real, st));
    fprintf(cli->out, "%s is active\n", real);
    return BR_OK;
}

static br_code
active(br_cli *cli, br_str *path, br_status *st)
{
    BR_TRY(br_store_active(cli, path, st));
    if (access(path->at, F_OK) != 0)
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s is active and is not there any more", path->at);
    fprintf(cli->out, "%s\n", path->at);
    return BR_OK;
}

static br_code
rm(br_cli *cli, br_str *path, br_status *st)
{
    br_status none = {0};
    br_str now = {0};
    uint32_t count;
    br_code code;

    /* A name is of this folder. A file elsewhere may be there, and stays. */
    if (strchr(cli->args[0], '/'))
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s: is a path, no name; brass model list shows the "
                       "names of what can be removed",
                       cli->args[0]);
    BR_TRY(br_store_find(cli, cli->args[0], path, st));
    count = br_set_of((br_text){path->at, path->n}, NULL);
    for (uint32_t i = BR_MAX(count, 1u); i > 0; i--) {
        if (count) {
            path->n -= BR_SET_SUFFIX;
            br_str_printf(path, "-%05u-of-%05u.gguf", i, count);
        }
        if (unlink(path->at) != 0 && (i == 1 || errno != ENOENT))
            return br_fail(st, BR_E_IO, "%s: %s", path->at, strerror(errno));
    }
    fprintf(cli->out, "%s is gone%s\n", path->at,
            count ? ", and so is its set" : "");
    code = br_store_active(cli, &now, &none);
    if (code == BR_OK && access(now.at, F_OK) != 0)
        code = br_store_set_active(cli, NULL, st);
    br_str_fini(&now);
    return code == BR_E_OOM ? br_fail(st, code, "out of memory") : BR_OK;
}

static int
with_path(br_cli *cli, br_code (*run)(br_cli *, br_str *, br_status *))
{
    br_status st = {0};
    br_str path = {0};
    br_code code = run(cli, &path, &st);

    br_str_fini(&path);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}

int
br_cmd_model_use(br_cli *cli)
{
    return with_path(cli, use);
}

int
br_cmd_model_active(br_cli *cli)
{
    return with_path(cli, active);
}

int
br_cmd_model_rm(br_cli *cli)
{
    return with_path(cli, rm);
}
