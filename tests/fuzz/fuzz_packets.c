/* fuzz_packets.c - any bytes as packets of a queue: run or refused, no more.
 *
 * First byte: 0 PM4, 1 AQL (then how far write index and doorbell are off), 2 a
 * file of the topology. Memory of the GPU: a page with two signals, a page with
 * two descriptors and a kernel that ends at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { SLOTS = 8, DATA_AT = 0x10000, CODE_AT = 0x20000, CONTROL_AT = 0x30000 };

typedef struct world {
    _Alignas(4096) uint8_t data[4096], code[4096], control[4096];
    _Alignas(64) uint8_t ring[SLOTS * 128], shadow[SLOTS * 128];
    uint64_t doorbell;
    sim_bo bo[2];
} world;

static void
kd(uint8_t *at, uint32_t scratch, int64_t entry)
{
    uint32_t props = 1024;

    memcpy(at + 4, &scratch, 4);
    memcpy(at + 16, &entry, 8);
    memcpy(at + 56, &props, 4);
}

static void
fill(world *w, br_simgpu *g)
{
    br_amd_signal s = {.kind = 1, .mailbox = DATA_AT + 256, .event = 3};
    br_kregion data = {DATA_AT, 4096, w->data, false, "data"};
    br_kregion code = {CODE_AT, 4096, w->code, true, "code"};
    br_kregion control = {CONTROL_AT, 4096, w->control, false, "control"};
    uint32_t endpgm = 0xbfb00000;
    br_amd_control *c = (void *)w->control;

    memset(w, 0, sizeof *w);
    memcpy(w->data, &s, sizeof s);
    s.value = 1;
    s.mailbox = 0;
    memcpy(w->data + 64, &s, sizeof s);
    kd(w->code, 0, 256);
    kd(w->code + 64, 16, 192);
    memcpy(w->code + 256, &endpgm, 4);
    c->read_offset = (uint32_t)offsetof(br_amd_control, read);
    c->lane_bytes = 16;
    c->tmpring = 1 | 4 << 12;
    c->scratch = DATA_AT + 1024;
    if (br_sim_map(&g->waves, &data, NULL) != BR_OK ||
        sim_vm_code(&g->waves, &code, NULL) != BR_OK ||
        br_sim_map(&g->waves, &control, NULL) != BR_OK)
        br_check(false && "memory for three pages");
}

static void
pm4(sim_queue *q, world *w, const uint8_t *p, size_t n)
{
    br_amd_control *c = (void *)w->control;

    n = BR_MIN(n, sizeof w->ring) / 4;
    memcpy(w->ring, p, n * 4);
    q->slots = sizeof w->ring / 4;
    atomic_init(&c->write, n);
    w->doorbell = n;
    while (sim_cp_look(q)) {
    }
}

static void
aql(sim_queue *q, world *w, const uint8_t *p, size_t n)
{
    br_amd_control *c = (void *)w->control;
    size_t packets = (n - 2 + 63) / 64;

    for (int k = 0; k < SLOTS; k++)
        w->ring[k * 64] = BR_AQL_INVALID;
    memcpy(w->ring, p + 2, BR_MIN(n - 2, (size_t)SLOTS * 64));
    atomic_init(&c->write, packets + (int8_t)p[0]);
    w->doorbell = packets + (int8_t)p[1] - 1ull;
    for (size_t k = 0; k < SLOTS + 1 && sim_cp_look(q); k++) {
    }
}

typedef struct text {
    const uint8_t *p;
    size_t n;
} text;

/* Node 0 is a processor, node 1 a GPU of whom all files say the same. */
static int
read_text(void *ctx, const char *path, char *out, size_t size)
{
    const text *t = ctx;
    size_t n = strlen(path);

    if (strcmp(path + n - 6, "gpu_id") == 0)
        return snprintf(out, size, "%d\n", path[n - 8] - '0');
    n = BR_MIN(t->n, size - 1);
    memcpy(out, t->p, n);
    out[n] = 0;
    return (int)n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static world w;
    br_simgpu *g;
    br_amd_node node = {.index = 0};
    sim_queue q = {.slots = SLOTS, .shadow = w.shadow};

    if (n < 3)
        return 0;
    if (p[0] == 2) {
        text t = {p + 1, n - 1};
        br_amd_os os = {.ctx = &t, .read = read_text};

        if (br_amd_node_get(&node, &os, 0, NULL) == BR_OK)
            (void)br_kfd_sizes_of((uint32_t)node.gfx, node.simds, node.xccs);
        return 0;
    }
    if (br_simgpu_new(&g, &(br_simgpu_opts){.cpu = "gfx1201", .max_steps = 100},
                      NULL) != BR_OK)
        return 0;
    fill(&w, g);
    q.g = g;
    q.a.type = p[0] ? BR_KFD_QUEUE_AQL : BR_KFD_QUEUE_COMPUTE;
    q.a.read_pointer = CONTROL_AT + offsetof(br_amd_control, read);
    w.bo[0] = (sim_bo){.va = CONTROL_AT, .host = w.control};
    w.bo[1] = (sim_bo){.host = w.ring};
    q.bo[1] = &w.bo[0];
    q.bo[2] = &w.bo[1];
    q.write = &((br_amd_control *)(void *)w.control)->write;
    q.read = &((br_amd_control *)(void *)w.control)->read;
    q.doorbell = (_Atomic uint64_t *)&w.doorbell;
    if (p[0])
        aql(&q, &w, p + 1, n - 1);
    else
        pm4(&q, &w, p + 1, n - 1);
    br_simgpu_free(g);
    return 0;
}
