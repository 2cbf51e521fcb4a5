/* model_pull.c - brass model pull: a model file from the net, whole or not at
 * all.
 *
 *   .NAME.gguf.part   what has come so far; its bytes are hashed as they come
 *   .NAME.gguf.from   where it comes from: URL, and the server's ETag
 *   NAME.gguf         appears by a rename, after size, SHA-256 and the file's
 *                     own header were found right
 *
 * A part is gone on with only if nothing else can come of it: the URL is the
 * same, and either the catalogue knows the SHA-256 or the server the ETag. A
 * server that cannot go on sends all of it again. A transfer that breaks off
 * is tried again; TRIES times in a row without a new byte is the end, and the
 * next pull goes on where this one stopped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
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
    const char *url, *sha256; /* sha256 NULL: not known */
    uint64_t bytes;           /* 0: not known yet */
    br_catalogue catalogue;
    br_str dir, file, path, part, from;
    br_os_lock lock;
    int fd; /* of the part */
    uint64_t have;
    br_sha256 sha;
    char etag[128];
    br_progress progress;
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
    size_t n = strcspn(p->url, "?#");
    const char *slash = memrchr(p->url, '/', n);
    const char *name = slash ? slash + 1 : p->url;

    n -= (size_t)(name - p->url);
    br_str_put(&p->file, name, n);
    if (p->file.oom)
        return BR_OK; /* said by who asks for all the names */
    if (n < 6 || strcmp(p->file.at + n - 5, ".gguf") != 0 ||
        !br_store_plain(p->file.at))
        return br_fail(st, BR_E_USAGE,
                       "%s: the URL has to end in the name of a .gguf file of "
                       "letters, digits and ._-",
                       p->url);
    if (strstr(p->file.at, "-of-"))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s is one of a set of files; pull takes whole models",
                       p->file.at);
    return BR_OK;
}

static br_code
choose(pull *p, const char *what, br_status *st)
{
    const br_catalogue_row *row;

    BR_TRY(br_store_dir(p->cli, &p->dir, st));
    BR_TRY(br_catalogue_load(&p->catalogue, p->cli, st));
    if (strncmp(what, "http://", 7) == 0 || strncmp(what, "https://", 8) == 0) {
        p->url = what;
        BR_TRY(name_of_url(p, st));
    } else if ((row = br_catalogue_find(&p->catalogue, what))) {
        p->url = row->url;
        p->sha256 = row->sha256;
        p->bytes = row->bytes;
        br_catalogue_file(row, &p->file);
    } else {
        char hint[100];

        br_catalogue_hint(&p->catalogue, what, hint);
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s: not in the catalogue, and no http:// or https:// "
                       "URL%s",
                       what,
                       *hint ? hint : "; brass model list shows the names");
    }
    br_str_printf(&p->path, "%s/%s", p->dir.at, br_str_z(&p->file));
    br_str_printf(&p->part, "%s/.%s.part", p->dir.at, br_str_z(&p->file));
    br_str_printf(&p->from, "%s/.%s.from", p->dir.at, br_str_z(&p->file));
    return p->file.oom || p->path.oom || p->part.oom || p->from.oom
               ? br_fail(st, BR_E_OOM, "out of memory")
               : BR_OK;
}

/* ---- the part ------------------------------------------------------------ */

/* Whether what lies there may be gone on with. */
static bool
same_source(pull *p)
{
    br_status none = {0};
    char *text, *etag;
    size_t n;
    bool same = false;

    if (br_file_read(p->from.at, MAX_FROM_BYTES, &text, &n, &none) != BR_OK)
        return false;
    etag = memchr(text, '\n', n);
    if (etag) {
        *etag++ = 0;
        etag[strcspn(etag, "\n")] = 0;
        snprintf(p->etag, sizeof p->etag, "%s", etag);
        same = strcmp(text, p->url) == 0 && (p->sha256 || *p->etag);
    }
    br_free(text);
    return same;
}

static br_code
restart(pull *p, br_status *st)
{
    p->have = 0;
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
        return br_fail(p->st, BR_E_LIMIT, "%s: over %llu bytes", p->url,
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
                "%s: the server sends from byte %llu on, not from %llu", p->url,
                (unsigned long long)h->first, (unsigned long long)p->have);
        return false;
    }
    if (p->bytes && h->total && h->total != p->bytes) {
        br_fail(p->st, BR_E_FORMAT,
                "%s: the server has %llu bytes, not the %llu of the catalogue",
                p->url, (unsigned long long)h->total,
                (unsigned long long)p->bytes);
        return false;
    }
    p->bytes = p->bytes ? p->bytes : h->total;
    p->progress.total = p->bytes;
    p->progress.begin = p->have;
    snprintf(p->etag, sizeof p->etag, "%s", h->etag);
    br_str_printf(&text, "%s\n%s\n", p->url, p->etag);
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
                p->url, (unsigned long long)most);
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
    br_http_get g = {p->url,  p->have, *p->etag ? p->etag : NULL,
                     on_head, on_data, p};
    char why[256];
    long status;

    *again = false;
    p->st = st;
    switch (br_http_fetch(&g, &status, why)) {
    case BR_HTTP_STOPPED: return st->code ? st->code : BR_E_OOM;
    case BR_HTTP_NEVER: return br_fail(st, BR_E_IO, "%s: %s", p->url, why);
    case BR_HTTP_DONE:
        if (status == 416 && p->have) { /* more than there is */
            *again = true;
            return restart(p, st);
        }
        if (status >= 300)
            return br_fail(st, status == 404 ? BR_E_NOT_FOUND : BR_E_IO,
                           "%s: the server answers %ld", p->url, status);
        if (p->have >= p->bytes)
            return BR_OK;
        snprintf(why, sizeof why, "the server stops after %llu of %llu bytes",
                 (unsigned long long)p->have, (unsigned long long)p->bytes);
        break;
    case BR_HTTP_AGAIN: break;
    }
    *again = true;
    return br_fail(st, BR_E_IO, "%s: %s", p->url, why);
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
verify(pull *p, char hex[BR_SHA256_HEX], br_status *st)
{
    uint8_t sum[BR_SHA256_BYTES];
    br_gguf *g;
    br_code code;

    br_sha256_end(&p->sha, sum);
    for (int i = 0; i < BR_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    if (p->sha256 && strcmp(hex, p->sha256) != 0)
        return br_fail(st, BR_E_FORMAT,
                       "%s: the SHA-256 is %s, not the %s of the catalogue; "
                       "what came is thrown away",
                       p->url, hex, p->sha256);
    code = br_gguf_open(&g, p->part.at, st);
    if (code != BR_OK)
        return br_prefix(st, "%s: what came is thrown away", p->url);
    br_gguf_close(g);
    return BR_OK;
}

static br_code
finish(pull *p, br_status *st)
{
    char hex[BR_SHA256_HEX];

    if (verify(p, hex, st) != BR_OK) {
        (void)unlink(p->part.at);
        (void)unlink(p->from.at);
        return st->code;
    }
    if (fsync(p->fd) != 0)
        return fail_io(st, p->part.at, "sync");
    if (rename(p->part.at, p->path.at) != 0)
        return fail_io(st, p->path.at, "make");
    (void)unlink(p->from.at);
    fprintf(p->cli->out, "%s: %llu bytes, SHA-256 %s%s\n", p->path.at,
            (unsigned long long)p->have, hex,
            p->sha256 ? ", as in the catalogue" : "");
    return BR_OK;
}

static br_code
run(pull *p, br_status *st)
{
    br_str lock = {0};
    br_code code;

    BR_TRY(choose(p, p->cli->args[0], st));
    if (access(p->path.at, F_OK) == 0) {
        fprintf(p->cli->out, "%s is here already\n", p->path.at);
        return BR_OK;
    }
    if (!br_http_here())
        return br_fail(st, BR_E_UNSUPPORTED,
                       "this build downloads nothing: install "
                       "libcurl4-openssl-dev and pkg-config, then make");
    br_str_printf(&lock, "%s/.pull.lock", p->dir.at);
    code = lock.oom ? br_fail(st, BR_E_OOM, "out of memory")
                    : br_os_lock_take(&p->lock, lock.at, st);
    br_str_fini(&lock);
    BR_TRY(code);
    BR_TRY(open_part(p, st));
    br_progress_begin(&p->progress, p->cli, p->file.at, p->bytes);
    p->progress.bytes = true;
    code = transfer(p, st);
    br_progress_end(&p->progress);
    return code == BR_OK ? finish(p, st) : code;
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
    br_str_fini(&p.file);
    br_str_fini(&p.path);
    br_str_fini(&p.part);
    br_str_fini(&p.from);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
