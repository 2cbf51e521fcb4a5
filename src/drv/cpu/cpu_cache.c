/* cpu_cache.c - packed weights as a file, so that the next start maps them.
 *
 *   FOLDER/<16 hex digits of the model's stamp>.pack
 *   0       head: key, bytes of weights, where the model was, boot, settled
 *   4096    the weights, as cpu_pack.c lays them out
 *
 * The key is a digest of what the weights were made from: the model's files
 * with their inode, size and time, and every matrix with its type, shape and
 * place. What has another key is packed again and written over. The file is
 * ours alone (folder of the user, mode 0600 by umask); its contents are not
 * checked, as those of the model file are not.
 *
 * Weights are packed into the new file's own memory and it gets its name at
 * once, so that nobody waits for the disk at the end. A thread brings it there
 * meanwhile and then marks it as settled; a run that ends before leaves that to
 * the next one. A file that is not settled counts until the machine boots
 * again, for only then can pages of it have been lost.
 *
 * Before a file is made, those go whose model is gone or changed, then the
 * least recently used, until all fit into the limit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/hash.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096, BOOT = 36, PATH_BYTES = 3960 };

typedef struct head {
    char magic[8];
    uint8_t key[BR_BLAKE2B_BYTES];
    uint64_t bytes, loose; /* all planned as loose: br_mat_desc */
    char boot[BOOT], settled, zero[3];
    uint64_t device, inode, size;
    int64_t written_s;
    char model[PATH_BYTES]; /* first file of it, absolute */
} head;
_Static_assert(sizeof(head) <= HEAD, "weights begin at a page");

/* ---- what the file should be --------------------------------------------- */

static void
put_model(const char *path, head *h)
{
    struct stat s;
    char real[PATH_MAX];

    if (path && realpath(path, real) && strlen(real) < PATH_BYTES &&
        stat(real, &s) == 0) {
        h->device = (uint64_t)s.st_dev;
        h->inode = (uint64_t)s.st_ino;
        h->size = (uint64_t)s.st_size;
        h->written_s = (int64_t)s.st_mtim.tv_sec;
        memcpy(h->model, real, strlen(real));
    }
}

static void
put_head(const br_cpu *c, head *h)
{
    br_status none = {0};
    char *boot;
    size_t n;

    *h =
        (head){.magic = "BRPACK3", .bytes = c->packed_bytes, .loose = c->loose};
    memcpy(h->key, c->kept_key, sizeof h->key);
    put_model(br_gguf_path(c->v.m->gguf), h);
    if (br_file_read("/proc/sys/kernel/random/boot_id", 64, &boot, &n, &none) !=
        BR_OK)
        return;
    memcpy(h->boot, boot, BR_MIN(n, BOOT));
    br_free(boot);
}

/* Where the file lies and its key; false: nothing to keep weights under. */
static bool
name_file(br_cpu *c)
{
    br_str s = {0};
    uint8_t stamp[BR_BLAKE2B_BYTES];
    char name[17];
    bool ok;

    if (!c->c.cache.folder || c->packed_bytes < c->c.cache.from ||
        c->packed_bytes + HEAD > c->c.cache.most ||
        !br_gguf_stamp(c->v.m->gguf, stamp))
        return false;
    br_str_printf(&s, "%d", BR_MAT_LAYOUT);
    br_str_put(&s, (const char *)stamp, sizeof stamp);
    for (uint32_t v = 0; v < c->v.g->n_values; v++) {
        const cpu_mat *m = &c->mat[v];

        if (m->t)
            br_str_printf(&s, "%.*s %d %d %u %u %llu\n", (int)m->t->name.n,
                          m->t->name.p, m->m.type, m->m.tight, m->m.n_in,
                          m->m.n_out, (unsigned long long)m->slices);
    }
    if (!s.oom)
        br_blake2b(s.at, s.n, c->kept_key);
    br_str_printf(&c->kept_path, "%s/", c->c.cache.folder);
    br_hex(stamp, 8, name);
    br_str_puts(&c->kept_path, name);
    br_str_puts(&c->kept_path, ".pack");
    ok = !s.oom && !c->kept_path.oom;
    br_str_fini(&s);
    return ok;
}

/* ---- to the disk --------------------------------------------------------- */

static void
settle(void *arg)
{
    br_cpu *c = arg;

    /* What fails here is tried again at the next start. */
    (void)br_file_settle(c->kept_path.at, offsetof(head, settled), &c->stop);
}

static void
start_settling(br_cpu *c)
{
    br_status none = {0};

    c->settles =
        br_thread_start(&c->settler, "brass-keep", settle, c, &none) == BR_OK;
}

/* ---- what is there ------------------------------------------------------- */

bool
cpu_cache_find(br_cpu *c)
{
    br_status none = {0};
    const head *h;
    head want;

    c->keeps = name_file(c);
    if (!c->keeps ||
        br_file_map_open(&c->kept, c->kept_path.at, &none) != BR_OK)
        return false;
    h = (const void *)c->kept.p;
    if (c->kept.n >= HEAD && h->loose && !c->loose &&
        memcmp(h->key, c->kept_key, sizeof h->key) == 0 &&
        cpu_loosen(c, &none) != BR_OK) {
        br_file_map_close(&c->kept);
        return false;
    }
    put_head(c, &want);
    if (c->kept.n == HEAD + c->packed_bytes &&
        memcmp(h, &want, offsetof(head, boot)) == 0 &&
        (h->settled || memcmp(h->boot, want.boot, BOOT) == 0)) {
        c->packed = c->kept.p + HEAD;
        c->keeps = false;
        (void)utimensat(AT_FDCWD, c->kept_path.at, NULL, 0); /* used now */
        if (!h->settled)
            start_settling(c);
        return true;
    }
    br_file_map_close(&c->kept);
    return false;
}

/* A pack whose model is not where it was, or another one now; or no pack. */
static bool
is_stale(const char *path)
{
    br_status none = {0};
    br_file_map m;
    struct stat s;
    const head *h;
    bool stale;

    if (br_file_map_open(&m, path, &none) != BR_OK)
        return false;
    h = (const void *)m.p;
    stale = m.n < HEAD || memcmp(h->magic, "BRPACK3", 8) != 0 ||
            h->model[PATH_BYTES - 1] != 0;
    if (!stale && h->model[0])
        stale = stat(h->model, &s) == 0
                    ? (uint64_t)s.st_dev != h->device ||
                          (uint64_t)s.st_ino != h->inode ||
                          (uint64_t)s.st_size != h->size ||
                          (int64_t)s.st_mtim.tv_sec != h->written_s
                    : errno == ENOENT;
    br_file_map_close(&m);
    return stale;
}

/* The pack that will be written over does not count. */
static br_verdict
judge(void *arg, const char *path, const char *name)
{
    const br_cpu *c = arg;

    if (strlen(name) != 21 || strcmp(path, c->kept_path.at) == 0)
        return BR_IT_IS_LEFT;
    return is_stale(path) ? BR_IT_GOES : BR_IT_COUNTS;
}

/* ---- what is new --------------------------------------------------------- */

uint8_t *
cpu_cache_room(br_cpu *c)
{
    size_t n = HEAD + c->packed_bytes;
    br_status st = {0};
    br_code code;

    if (!c->keeps)
        return NULL;
    c->keeps = false;
    if (n > c->c.cache.most) /* packed anew, they are more than they were */
        return NULL;
    (void)br_folder_trim(c->c.cache.folder, ".pack", c->c.cache.most - n, judge,
                         c);
    code = br_out_begin(&c->out, c->kept_path.at, &st);
    if (code == BR_OK) {
        code = br_out_map(&c->out, n, &c->room, &st);
        c->room_bytes = n;
        c->keeps = code == BR_OK;
        if (!c->keeps)
            br_out_drop(&c->out);
    }
    if (code == BR_OK)
        return c->room + HEAD;
    br_log(BR_EV_cpu_not_kept, "%s", st.msg);
    return NULL;
}

void
cpu_cache_unroom(br_cpu *c)
{
    if (!c->room)
        return;
    br_out_drop(&c->out);
    br_file_unmap(c->room, c->room_bytes);
    c->room = NULL;
}

void
cpu_cache_keep(br_cpu *c)
{
    br_status st = {0};
    head h;

    if (!c->keeps)
        return;
    c->keeps = false;
    put_head(c, &h);
    memcpy(c->room, &h, sizeof h);
    if (br_out_end(&c->out, &st) == BR_OK)
        start_settling(c);
    else
        br_log(BR_EV_cpu_not_kept, "%s", st.msg);
}

void
cpu_cache_end(br_cpu *c)
{
    /* relaxed: nothing else is told by it */
    atomic_store_explicit(&c->stop, true, memory_order_relaxed);
    if (c->settles)
        br_thread_join(&c->settler);
    if (c->keeps && c->room)
        br_out_drop(&c->out);
    if (c->room)
        br_file_unmap(c->room, c->room_bytes);
    br_file_map_close(&c->kept);
    br_str_fini(&c->kept_path);
}
