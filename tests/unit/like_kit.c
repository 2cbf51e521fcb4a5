/* like_kit.c - see like_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "like_kit.h"

#include "model/gguf_write.h"
#include "model/quant.h"

#include <string.h>
#include <sys/mman.h>

#include "t.h"

static uint32_t
ff_of(const like *k, uint32_t l)
{
    return k->ff * (k->narrows ? k->layers - l : l + 1) / k->layers;
}

/* A tensor's dimensions in layer l. */
static void
resize(const like *k, uint32_t l, uint32_t ff, br_gguf_w_info *t)
{
    enum { FEW = 5 }; /* experts, as many as a token picks */

    if (k->rows && t->n_dims > 1 && t->dim[t->n_dims - 1] == 40)
        t->dim[t->n_dims - 1] = FEW;
    if (k->rows && t->n_dims == 3)
        t->dim[t->dim[1] == 64 ? 1 : 0] = k->rows; /* down has columns */
    for (uint32_t d = 0; k->ff && d < t->n_dims; d++)
        if (t->dim[d] == ff)
            t->dim[d] = ff_of(k, l);
}

uint8_t *
model_like(const br_gguf *g, const like *k, size_t *n)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_str head = {0};
    uint32_t wide[8];
    int64_t ff = 0;
    uint8_t *p;

    ck_assert_ptr_nonnull(w);
    ck_assert_uint_le(k->layers, BR_COUNT(wide));
    for (size_t i = 0; i < br_gguf_n_kv(g); i++)
        br_gguf_w_copy(w, br_gguf_kv_at(g, i));
    br_gguf_w_u32(w, t_printf("%s.block_count", k->arch), k->layers);
    if (k->rows) {
        br_gguf_w_u32(w, "qwen3moe.expert_feed_forward_length", k->rows);
        br_gguf_w_u32(w, "qwen3moe.expert_count", 5);
    }
    if (k->ff) {
        const char *key = t_printf("%s.feed_forward_length", k->arch);

        ck_assert(br_gguf_i64(br_gguf_find(g, key), 0, &ff));
        for (uint32_t l = 0; l < k->layers; l++)
            wide[l] = ff_of(k, l);
        br_gguf_w_array(w, key, BR_GGUF_U32, wide, k->layers);
    }
    *n = 0;
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        const bool layer = t->name.n > 6 && memcmp(t->name.p, "blk.0.", 6) == 0;

        for (uint32_t l = 0; l < (layer ? k->layers : 1); l++) {
            br_gguf_w_info info = {t->name, t->type, t->n_dims, {0}};
            uint64_t bytes, elems = 1;

            memcpy(info.dim, t->dim, sizeof info.dim);
            resize(k, l, (uint32_t)ff, &info);
            for (uint32_t d = 0; d < t->n_dims; d++)
                elems *= info.dim[d];
            ck_assert(br_qtype_bytes(t->type, elems, &bytes));
            if (layer)
                info.name = br_text_z(t_printf(
                    "blk.%u.%.*s", l, (int)t->name.n - 6, t->name.p + 6));
            *n += (bytes + 31) / 32 * 32;
            br_gguf_w_tensor(w, &info);
        }
    }
    t_ok(br_gguf_w_begin_mem(w, &head, &st), &st);
    *n += (head.n + 31) / 32 * 32;
    p = mmap(NULL, *n, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) { /* GBs of zeros are read, 4 KB of them a fault */
        (void)madvise(p, *n, MADV_HUGEPAGE);
        memcpy(p, head.at, head.n);
    }
    br_gguf_w_free(w);
    br_str_fini(&head);
    return p == MAP_FAILED ? NULL : p;
}
