/* amd_node.c - the kernel's topology: which GPUs there are, and their sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/amd_dev.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

static const struct {
    const char *key;
    size_t at;
    bool must;
} keys[] = {
#define NODE(field, key, must) {key, offsetof(br_amd_node, field), must},
#include "drv/amd/node.def"
#undef NODE
};

/* "key number\n"; false: the text ends, or is no such line (*bad). */
static bool
line(const char **text, char key[64], uint64_t *value, bool *bad)
{
    const char *p = *text;
    size_t n = strcspn(p, " \n");
    char *end;

    if (!*p)
        return false;
    *bad = n == 0 || n > 63 || p[n] != ' ' || p[n + 1] < '0' || p[n + 1] > '9';
    if (*bad)
        return false;
    memcpy(key, p, n);
    key[n] = 0;
    errno = 0;
    *value = strtoull(p + n + 1, &end, 10);
    *bad = errno != 0 || (*end != '\n' && *end);
    *text = end + (*end == '\n');
    return !*bad;
}

br_code
br_amd_node_read(br_amd_node *out, const char *text, br_status *st)
{
    bool seen[BR_COUNT(keys)] = {false}, bad = false;
    char key[64];
    uint64_t v;

    while (line(&text, key, &v, &bad))
        for (size_t k = 0; k < BR_COUNT(keys); k++)
            if (strcmp(key, keys[k].key) == 0) {
                memcpy((char *)out + keys[k].at, &v, sizeof v);
                seen[k] = v != 0;
            }
    if (bad)
        return br_fail(st, BR_E_FORMAT, "no line \"key number\": %.40s", text);
    for (size_t k = 0; k < BR_COUNT(keys); k++)
        if (keys[k].must && !seen[k])
            return br_fail(st, BR_E_FORMAT, "no %s", keys[k].key);
    if (out->gfx > 999999 || out->simds > 1 << 16 || out->xccs > 16 ||
        out->arrays > 1 << 10 || out->arrays_per_engine > out->arrays ||
        out->simds_per_cu > out->simds || out->scratch_slots > 1 << 10)
        return br_fail(st, BR_E_LIMIT, "numbers that no processor has");
    out->xccs = BR_MAX(out->xccs, 1u);
    snprintf(out->name, sizeof out->name, "gfx%u%u%x",
             (unsigned)(out->gfx / 10000), (unsigned)(out->gfx / 100 % 100),
             (unsigned)(out->gfx % 100));
    return BR_OK;
}

/* Banks of the GPU's own memory: type 1 the CPU reaches, type 2 it does not. */
static br_code
banks(br_amd_node *n, const br_amd_os *os, char *text, br_status *st)
{
    for (unsigned b = 0; b < n->banks && b < BR_AMD_MAX_BANKS; b++) {
        uint64_t v, bytes = 0, type = 0;
        const char *p = text;
        char key[64], path[160];
        bool bad = false;

        snprintf(path, sizeof path, NODES "/%u/mem_banks/%u/properties",
                 n->index, b);
        if (os->read(os->ctx, path, text, BR_AMD_MAX_TEXT) < 0)
            continue;
        while (line(&p, key, &v, &bad)) {
            type = strcmp(key, "heap_type") == 0 ? v : type;
            bytes = strcmp(key, "size_in_bytes") == 0 ? v : bytes;
        }
        if (bad)
            return br_fail(st, BR_E_FORMAT, "%s: no line \"key number\"", path);
        if (type != 1 && type != 2)
            continue;
        n->vram_bytes += bytes;
        n->small_bar |= type == 2;
    }
    return BR_OK;
}

static br_code
read_node(br_amd_node *n, const br_amd_os *os, char *text, br_status *st)
{
    char path[160];
    int got;

    snprintf(path, sizeof path, NODES "/%u/properties", n->index);
    got = os->read(os->ctx, path, text, BR_AMD_MAX_TEXT);
    if (got < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: %s", path, strerror(-got));
    if (br_amd_node_read(n, text, st) != BR_OK)
        return br_prefix(st, "%s", path);
    return banks(n, os, text, st);
}

br_code
br_amd_node_get(br_amd_node *out, const br_amd_os *os, unsigned n,
                br_status *st)
{
    char *text = br_try_alloc(BR_AMD_MAX_TEXT);
    br_code c = BR_OK;
    bool found = false;

    if (!text)
        return br_fail(st, BR_E_OOM, "no memory for the topology");
    for (unsigned k = 0; k < BR_AMD_MAX_NODES && !found; k++) {
        char path[160];
        int got;

        snprintf(path, sizeof path, NODES "/%u/gpu_id", k);
        got = os->read(os->ctx, path, text, BR_AMD_MAX_TEXT);
        if (got == -ENOENT && k == 0)
            c = br_fail(st, BR_E_NO_DEVICE,
                        "no " NODES ": the amdgpu driver is not there");
        if (got == -ENOENT)
            break;
        /* 0: a processor; not readable: another container's GPU */
        if (got < 0 || strtoul(text, NULL, 10) == 0 || n-- != 0)
            continue;
        *out = (br_amd_node){.index = k,
                             .gpu_id = (uint32_t)strtoul(text, NULL, 10)};
        found = true;
        c = read_node(out, os, text, st);
    }
    br_free(text);
    return c == BR_OK && !found
               ? br_fail(st, BR_E_NOT_FOUND, "no more GPUs in the topology")
               : c;
}

static uint64_t
round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* As the kernel computes it (kfd_queue.c): 32 waves a CU, whatever the number
 * of slots; 384 KiB of registers on the large chips, 256 on the others. */
br_kfd_sizes
br_kfd_sizes_of(uint32_t gfx, uint64_t cus, uint64_t xccs)
{
    bool large =
        gfx == 110000 || gfx == 110001 || gfx == 120000 || gfx == 120001;
    uint64_t vgprs = large ? 0x60000 : 0x40000, waves = cus * 32;
    uint64_t wg =
        round_up(cus * (vgprs + 0x4000 + 0x10000 + 0x1000), BR_KFD_PAGE);
    br_kfd_sizes s = {.ctl = round_up(waves * 12 + 8 + 40, BR_KFD_PAGE),
                      .debug = round_up(waves * 32, 64)};

    s.cwsr = s.ctl + wg;
    s.area = round_up((s.cwsr + s.debug) * xccs, BR_KFD_PAGE);
    return s;
}
