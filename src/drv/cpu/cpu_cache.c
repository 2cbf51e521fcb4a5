/* cpu_cache.c - packed weights as a file, so that the next start maps them.
 *
 *   FOLDER/<16 hex digits of the model's stamp>.pack
 *   0       "BRPACK1\0" | key, 32 bytes | bytes of weights, u64
 *   4096    the weights, as cpu_pack.c lays them out
 *
 * The key is a digest of what the weights were made from: the model's files
 * with their inode, size and time, and every matrix with its type, shape and
 * place. What has another key is packed again and written over. The file is
 * ours alone (folder of the user, mode 0600 by umask); its contents are not
 * checked, as those of the model file are not.
 *
 * A thread writes it while the model already runs: beside the target, synced,
 * then renamed (br_out). br_cpu_free waits for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/hash.h"
#include "base/log.h"

#include <string.h>

enum { HEAD = 4096 };

typedef struct head {
    char magic[8];
    uint8_t key[BR_BLAKE2B_BYTES];
    uint64_t bytes;
} head;

static void
put_head(const br_cpu *c, uint8_t to[HEAD])
{
    head h = {.bytes = c->packed_bytes};

    memcpy(h.magic, "BRPACK1", 8);
    memcpy(h.key, c->kept_key, sizeof h.key);
    memset(to, 0, HEAD);
    memcpy(to, &h, sizeof h);
}

/* Where the file lies and its key; false: nothing to keep weights under. */
static bool
name_file(br_cpu *c)
{
    br_str s = {0};
    uint8_t stamp[BR_BLAKE2B_BYTES];
    bool ok;

    if (!c->c.cache.folder || c->packed_bytes < c->c.cache.from ||
        !br_gguf_stamp(c->v.m->gguf, stamp))
        return false;
    br_str_printf(&s, "%d", BR_MAT_LAYOUT);
    br_str_put(&s, (const char *)stamp, sizeof stamp);
    for (uint32_t v = 0; v < c->v.g->n_values; v++) {
        const cpu_mat *m = &c->mat[v];

        if (m->t)
            br_str_printf(&s, "%.*s %d %u %u %llu %llu\n", (int)m->t->name.n,
                          m->t->name.p, m->m.type, m->m.n_in, m->m.n_out,
                          (unsigned long long)m->slices,
                          (unsigned long long)m->at);
    }
    if (!s.oom)
        br_blake2b(s.at, s.n, c->kept_key);
    br_str_printf(&c->kept_path, "%s/", c->c.cache.folder);
    for (int i = 0; i < 8; i++)
        br_str_printf(&c->kept_path, "%02x", stamp[i]);
    br_str_puts(&c->kept_path, ".pack");
    ok = !s.oom && !c->kept_path.oom;
    br_str_fini(&s);
    return ok;
}

bool
cpu_cache_find(br_cpu *c)
{
    br_status none = {0};
    uint8_t first[HEAD];

    c->keeps = name_file(c);
    if (!c->keeps ||
        br_file_map_open(&c->kept, c->kept_path.at, &none) != BR_OK)
        return false;
    put_head(c, first);
    if (c->kept.n == HEAD + c->packed_bytes &&
        memcmp(c->kept.p, first, HEAD) == 0) {
        c->packed = c->kept.p + HEAD;
        c->keeps = false;
        return true;
    }
    br_file_map_close(&c->kept);
    return false;
}

static br_code
write_file(br_cpu *c, br_status *st)
{
    uint8_t first[HEAD];
    br_out o;
    br_code code;

    put_head(c, first);
    BR_TRY(br_out_begin(&o, c->kept_path.at, st));
    code = br_out_put(&o, first, sizeof first, st);
    if (code == BR_OK)
        code = br_out_put(&o, c->packed, c->packed_bytes, st);
    if (code == BR_OK)
        return br_out_end(&o, st);
    br_out_drop(&o);
    return code;
}

static void
keep(void *arg)
{
    br_status st = {0};

    if (write_file(arg, &st) != BR_OK)
        br_log(BR_EV_cpu_not_kept, "%s", st.msg);
}

void
cpu_cache_keep(br_cpu *c)
{
    br_status st = {0};

    if (c->keeps &&
        br_thread_start(&c->keeper, "brass-keep", keep, c, &st) != BR_OK) {
        br_log(BR_EV_cpu_not_kept, "%s", st.msg);
        c->keeps = false;
    }
}

void
cpu_cache_end(br_cpu *c)
{
    if (c->keeps)
        br_thread_join(&c->keeper);
    br_file_map_close(&c->kept);
    br_str_fini(&c->kept_path);
}
