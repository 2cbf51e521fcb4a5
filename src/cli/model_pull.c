/* model_pull.c - brass model pull: a model file from the net, whole or not at
 * all.
 *
 *   .part-NAME.gguf   what has come so far; its bytes are hashed as they come
 *   .from-NAME.gguf   where it comes from: URL, the server's ETag, its length
 *   NAME.gguf         appears by a rename, after size, SHA-256 and the file's
 *                     own header were found right
 *
 * A set of files (-00001-of-00003) comes one by one and appears when all are
 * there and open as one; the first file last, as the name of the set is its.
 *
 * A part is gone on with only if nothing else can come of it: the URL is the
 * same, and either the catalogue knows the SHA-256 or the server the ETag. A
 * server that cannot go on sends all of it again. A transfer that breaks off
 * is tried again; TRIES times in a row without a new byte is the end, and the
 * next pull goes on where this one stopped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "cli/http_get.h"
#include "cli/progress.h"
#include "model/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    TRIES = 4,
    PAUSE_MS = 200, /* doubled with each try */
    MAX_FROM_BYTES = 8192,
};
#define MAX_MODEL_BYTES ((uint64_t)8 << 40)

typedef struct pull {
    br_cli *cli;
    const char *source;          /* URL of the model, or of a file of its set */
    uint32_t count;              /* files of the set; 0: no set */
    const br_catalogue_row *row; /* NULL: a URL was given */
    br_catalogue catalogue;
    br_str dir, name; /* of the model's file, of a set without its suffix */
    /* one file */
    br_str url, file, path, part, from;
    const char *sha256;   /* NULL: not known */
    uint64_t told, bytes; /* by the catalogue; by anybody yet. 0: not known */
    br_os_lock lock;
    int fd; /* of the part */
    uint64_t have;
    br_sha256 sha;
    char etag[128];
    br_progress progress;
    br_str report; /* a line for each file */
    br_status *st;
} pull;

static br_code
fail_io(br_status *st, const char *path, const char *verb)
{
    return br_fail(st, BR_E_IO, "%s: cannot %s: %s", path, verb,
                   strerror(errno));
}

/* ---- what to pull, and where to ------------------------------------------ */

/* ".../some-model.gguf?download=true" */
static br_code
name_of_url(pull *p, br_status *st)
{
    br_text name = br_url_name(p->source);

    br_str_put(&p->name, name.p, name.n);
    if (p->name.oom)
        return BR_OK; /* said by who asks for all the names */
    if (name.n < 6 || strcmp(p->name.at + name.n - 5, ".gguf") != 0 ||
        !br_store_plain(p->name.at))
        return br_fail(st, BR_E_USAGE,
                       "%s: the URL has to end in the name of a .gguf file of "
                       "letters, digits and ._-",
                       p->source);
    return BR_OK;
}

static br_code
choose(pull *p, const char *what, br_status *st)
{
    BR_TRY(br_store_dir(p->cli, &p->dir, st));
    BR_TRY(br_catalogue_load(&p->catalogue, p->cli, st));
    if (strncmp(what, "http://", 7) == 0 || strncmp(what, "https://", 8) == 0) {
        p->source = what;
        BR_TRY(name_of_url(p, st));
    } else if ((p->row = br_catalogue_find(&p->catalogue, what))) {
        p->source = p->row->url;
        br_catalogue_file(p->row, &p->name);
    } else {
        char hint[100];

        br_catalogue_hint(&p->catalogue, what, hint);
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s: not in the catalogue, and no http:// or https:// "
                       "URL%s",
                       what,
                       *hint ? hint : "; brass model list shows the names");
    }
    if (p->name.oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    p->count = br_set_of(br_url_name(p->source), NULL);
    if (p->count > BR_GGUF_MAX_SPLITS)
        return br_fail(st, BR_E_LIMIT, "%s: over %d files", p->source,
                       BR_GGUF_MAX_SPLITS);
    p->name.n -= p->count ? BR_SET_SUFFIX : 5; /* ".gguf" */
    return BR_OK;
}

/* Names of file i of the model, from 0. */
static br_code
turn_to(pull *p, uint32_t i, br_status *st)
{
    br_text old = br_url_name(p->source);
    size_t before =
        (size_t)(old.p - p->source) + old.n - (p->count ? BR_SET_SUFFIX : 5);
    br_str *all[] = {&p->url, &p->file, &p->path, &p->part, &p->from};
    char suffix[32] = ".gguf";
    bool oom = false;

    if (p->count)
        snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", i + 1, p->count);
    for (size_t k = 0; k < BR_COUNT(all); k++)
        br_str_clear(all[k]);
    br_str_put(&p->url, p->source, before);
    br_str_printf(&p->url, "%s%s", suffix, old.p + old.n);
    br_str_put(&p->file, p->name.at, p->name.n);
    br_str_puts(&p->file, suffix);
    br_str_printf(&p->path, "%s/%s", p->dir.at, br_str_z(&p->file));
    br_str_printf(&p->part, "%s/.part-%s", p->dir.at, br_str_z(&p->file));
    br_str_printf(&p->from, "%s/.from-%s", p->dir.at, br_str_z(&p->file));
    for (size_t k = 0; k < BR_COUNT(all); k++)
        oom = oom || all[k]->oom;
    p->sha256 = p->row ? p->row->sha256 : NULL;
    p->told = p->row ? p->row->bytes : 0;
    if (p->count) {
        p->sha256 = p->row && p->row->parts ? p->row->parts[i].sha256 : NULL;
        p->told = p->row && p->row->parts ? p->row->parts[i].bytes : 0;
    }
    p->bytes = p->told;
    return oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

/* ---- the part ------------------------------------------------------------ */

/* Whether what lies there may be gone on with. */
static bool
same_source(pull *p)
{
    br_status none = {0};
    char *text, *etag, *length;
    size_t n;
    int64_t bytes;
    bool same = false;

    if (br_file_read(p->from.at, MAX_FROM_BYTES, &text, &n, &none) != BR_OK)
        return false;
    etag = memchr(text, '\n', n);
    length = etag ? strchr(etag + 1, '\n') : NULL;
    if (length) {
        *etag++ = 0;
        *length++ = 0;
        length[strcspn(length, "\n")] = 0;
        snprintf(p->etag, sizeof p->etag, "%s", etag);
        same = strcmp(text, p->url.at) == 0 && (p->sha256 || *p->etag);
        if (same && !p->bytes && br_json_to_i64(br_text_z(length), &bytes) &&
            bytes > 0)
            p->bytes = (uint64_t)bytes;
    }
    br_free(text);
    return same;
}

static br_code
restart(pull *p, br_status *st)
{
    p->have = 0;
    p->bytes = p->told;
    p->etag[0] = 0;
    br_sha256_begin(&p->sha);
    if (ftruncate(p->fd, 0) != 0 || lseek(p->fd, 0, SEEK_SET) != 0)
        return fail_io(st, p->part.at, "write");
    return BR_OK;
}

static br_code
hash_part(pull *p, br_status *st)
{
    enum { PIECE = 1 << 20 };
    char *piece = br_try_alloc(PIECE);
    ssize_t n = 0;

    if (!piece)
        return br_fail(st, BR_E_OOM, "out of memory");
    while ((n = read(p->fd, piece, PIECE)) > 0) {
        br_sha256_add(&p->sha, piece, (size_t)n);
        p->have += (uint64_t)n;
    }
    br_free(piece);
    return n < 0 ? fail_io(st, p->part.at, "read") : BR_OK;
}

static br_code
open_part(pull *p, br_status *st)
{
    bool same = same_source(p);

    p->have = 0;
    p->fd = open(p->part.at, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (p->fd < 0)
        return fail_io(st, p->part.at, "open");
    br_sha256_begin(&p->sha);
    if (!same)
        return restart(p, st);
    BR_TRY(hash_part(p, st));
    return p->bytes && p->have > p->bytes ? restart(p, st) : BR_OK;
}

/* ---- the transfer -------------------------------------------------------- */

static br_code
check_room(pull *p)
{
    struct statvfs v;
    uint64_t room;

    if (p->bytes > MAX_MODEL_BYTES)
        return br_fail(p->st, BR_E_LIMIT, "%s: over %llu bytes", p->url.at,
                       (unsigned long long)MAX_MODEL_BYTES);
    if (statvfs(p->dir.at, &v) != 0)
        return BR_OK; /* a write will tell */
    room = (uint64_t)v.f_bavail * v.f_frsize;
    if (p->bytes > p->have && p->bytes - p->have > room)
        return br_fail(p->st, BR_E_IO,
                       "%s: %llu bytes are to come and %llu are free",
                       p->dir.at, (unsigned long long)(p->bytes - p->have),
                       (unsigned long long)room);
    return BR_OK;
}

static bool
on_head(void *ctx, const br_http_head *h)
{
    pull *p = ctx;
    br_str text = {0};
    bool ok;

    if (h->status != 206 && restart(p, p->st) != BR_OK)
        return false;
    if (h->status == 206 && h->first != p->have) {
        br_fail(p->st, BR_E_FORMAT,
                "%s: the server sends from byte %llu on, not from %llu",
                p->url.at, (unsigned long long)h->first,
                (unsigned long long)p->have);
        return false;
    }
    if (p->told && h->total && h->total != p->told) {
        br_fail(p->st, BR_E_FORMAT,
                "%s: the server has %llu bytes, not the %llu of the catalogue",
                p->url.at, (unsigned long long)h->total,
                (unsigned long long)p->told);
        return false;
    }
    p->bytes = p->told ? p->told : h->total;
    p->progress.total = p->bytes;
    p->progress.begin = p->have;
    snprintf(p->etag, sizeof p->etag, "%s", h->etag);
    br_str_printf(&text, "%s\n%s\n%llu\n", p->url.at, p->etag,
                  (unsigned long long)p->bytes);
    ok = check_room(p) == BR_OK && !text.oom &&
         br_file_write(p->from.at, text.at, text.n, p->st) == BR_OK;
    br_str_fini(&text);
    return ok;
}

static bool
on_data(void *ctx, const void *data, size_t n)
{
    pull *p = ctx;
    uint64_t most = p->bytes ? p->bytes : MAX_MODEL_BYTES;
    const char *at = data;

    if (n > most - p->have) {
        br_fail(p->st, BR_E_FORMAT, "%s: the server sends more than %llu bytes",
                p->url.at, (unsigned long long)most);
        (void)unlink(p->part.at);
        return false;
    }
    br_sha256_add(&p->sha, data, n);
    while (n > 0) {
        ssize_t put = write(p->fd, at, n);

        if (put < 0 && errno != EINTR) {
            fail_io(p->st, p->part.at, "write");
            return false;
        }
        if (put < 0)
            continue;
        at += put;
        n -= (size_t)put;
        p->have += (uint64_t)put;
    }
    br_progress_at(&p->progress, p->have, br_now_ns());
    return true;
}

/* One try. *again: it is worth another. */
static br_code
try_once(pull *p, bool *again, br_status *st)
{
    br_http_get g = {p->url.at, p->have, *p->etag ? p->etag : NULL,
                     on_head,   on_data, p};
    char why[256];
    long status;

    *again = false;
    p->st = st;
    switch (br_http_fetch(&g, &status, why)) {
    case BR_HTTP_STOPPED: return st->code ? st->code : BR_E_OOM;
    case BR_HTTP_NEVER: return br_fail(st, BR_E_IO, "%s: %s", p->url.at, why);
    case BR_HTTP_DONE:
        if (status == 416 && p->have) { /* more than there is */
            *again = true;
            return restart(p, st);
        }
        if (status >= 300)
            return br_fail(st, status == 404 ? BR_E_NOT_FOUND : BR_E_IO,
                           "%s: the server answers %ld", p->url.at, status);
        if (p->have >= p->bytes)
            return BR_OK;
        snprintf(why, sizeof why, "the server stops after %llu of %llu bytes",
                 (unsigned long long)p->have, (unsigned long long)p->bytes);
        break;
    case BR_HTTP_AGAIN: break;
    }
    *again = true;
    return br_fail(st, BR_E_IO, "%s: %s", p->url.at, why);
}

static br_code
transfer(pull *p, br_status *st)
{
    int tries = 0;

    for (;;) {
        br_status now = {0};
        uint64_t before = p->have;
        bool again;
        br_code code;

        if (p->bytes && p->have == p->bytes)
            return BR_OK;
        code = try_once(p, &again, &now);
        if (code == BR_OK && !again)
            return BR_OK;
        tries = p->have > before ? 1 : tries + 1;
        if (!again || tries >= TRIES)
            return br_fail(
                st, code, "%s%s", now.msg,
                again && p->have ? "; the next pull goes on from here" : "");
        br_sleep_ns((int64_t)(PAUSE_MS << (tries - 1)) * 1000000);
    }
}

/* ---- the end ------------------------------------------------------------- */

static br_code
check_sum(pull *p, br_status *st)
{
    uint8_t sum[BR_SHA256_BYTES];
    char hex[BR_SHA256_HEX];

    br_sha256_end(&p->sha, sum);
    br_hex(sum, sizeof sum, hex);
    if (p->sha256 && strcmp(hex, p->sha256) != 0) {
        (void)unlink(p->part.at);
        (void)unlink(p->from.at);
        return br_fail(st, BR_E_FORMAT,
                       "%s: the SHA-256 is %s, not the %s of the catalogue; "
                       "what came is thrown away",
                       p->url.at, hex, p->sha256);
    }
    br_str_printf(&p->report, "%s: %llu bytes, SHA-256 %s%s\n", p->path.at,
                  (unsigned long long)p->have, hex,
                  p->sha256 ? ", as in the catalogue" : ", compared with none");
    return BR_OK;
}

/* One file until it is whole and right, below its passing name. */
static br_code
get_file(pull *p, br_status *st)
{
    br_code code;

    /* Of a set that was whole, and not yet all in its place. */
    if (access(p->path.at, F_OK) == 0 && same_source(p) &&
        rename(p->path.at, p->part.at) != 0)
        return fail_io(st, p->path.at, "move");
    if (access(p->path.at, F_OK) == 0)
        return br_fail(st, BR_E_USAGE,
                       "%s is in the way: it is none of this pull", p->path.at);
    BR_TRY(open_part(p, st));
    br_progress_begin(&p->progress, p->cli, p->file.at, p->bytes);
    p->progress.bytes = true;
    code = transfer(p, st);
    br_progress_end(&p->progress);
    if (code == BR_OK)
        code = check_sum(p, st);
    if (code == BR_OK && fsync(p->fd) != 0)
        code = fail_io(st, p->part.at, "sync");
    close(p->fd);
    p->fd = -1;
    if (code != BR_OK && p->have == 0) { /* nothing to go on with */
        (void)unlink(p->part.at);
        (void)unlink(p->from.at);
    }
    return code;
}

/* Does to each file of the model, the first last. */
static br_code
each_file(pull *p, br_code (*fn)(pull *p, br_status *st), br_status *st)
{
    for (uint32_t i = BR_MAX(p->count, 1u); i-- > 0;) {
        BR_TRY(turn_to(p, i, st));
        BR_TRY(fn(p, st));
    }
    return BR_OK;
}

static br_code
put_in_place(pull *p, br_status *st)
{
    if (rename(p->part.at, p->path.at) != 0)
        return fail_io(st, p->path.at, "make");
    return BR_OK;
}

static br_code
forget_source(pull *p, br_status *st)
{
    (void)st;
    (void)unlink(p->from.at);
    return BR_OK;
}

static br_code
throw_away(pull *p, br_status *st)
{
    (void)unlink(p->part.at);
    return forget_source(p, st);
}

static br_code
get_all(pull *p, br_status *st)
{
    br_status none = {0};
    br_gguf *g;

    BR_TRY(each_file(p, get_file, st));
    if (p->report.oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    if (br_gguf_open(&g, p->part.at, st) != BR_OK) {
        (void)br_prefix(st, "%s: what came is thrown away", p->source);
        (void)each_file(p, throw_away, &none);
        return st->code;
    }
    br_gguf_close(g);
    BR_TRY(each_file(p, put_in_place, st));
    BR_TRY(each_file(p, forget_source, st));
    fputs(p->report.at, p->cli->out);
    return BR_OK;
}

static br_code
run(pull *p, br_status *st)
{
    br_str lock = {0};
    br_code code;

    BR_TRY(choose(p, p->cli->args[0], st));
    BR_TRY(turn_to(p, 0, st));
    if (access(p->path.at, F_OK) == 0) {
        fprintf(p->cli->out, "%s is here already\n", p->path.at);
        return BR_OK;
    }
    if (!br_http_here())
        return br_fail(st, BR_E_UNSUPPORTED,
                       "this build downloads nothing: install "
                       "libcurl4-openssl-dev and pkg-config, then make");
    BR_TRY(br_store_make(&p->dir, st));
    br_str_printf(&lock, "%s/.pull.lock", p->dir.at);
    code = lock.oom ? br_fail(st, BR_E_OOM, "out of memory")
                    : br_os_lock_take(&p->lock, lock.at, st);
    br_str_fini(&lock);
    return code == BR_OK ? get_all(p, st) : code;
}

int
br_cmd_model_pull(br_cli *cli)
{
    pull p = {.cli = cli, .fd = -1, .lock.fd = -1};
    br_status st = {0};
    br_code code = run(&p, &st);

    if (p.fd >= 0)
        close(p.fd);
    br_os_lock_drop(&p.lock);
    br_catalogue_free(&p.catalogue);
    br_str_fini(&p.dir);
    br_str_fini(&p.name);
    br_str_fini(&p.report);
    br_str_fini(&p.url);
    br_str_fini(&p.file);
    br_str_fini(&p.path);
    br_str_fini(&p.part);
    br_str_fini(&p.from);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
