/* fuzz_gguf.c - any bytes as a GGUF file.
 *
 * What opens is good for what its tables say, and copied by the writer it
 * opens again with the same keys, the same tensors and the same data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf_write.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sink; /* so that no read is optimised away */

static void
read_value(const br_gguf_kv *kv, uint64_t i)
{
    int64_t v = 0;
    double d = 0;
    br_text t = {NULL, 0};

    sink += br_gguf_i64(kv, i, &v) + br_gguf_f64(kv, i, &d);
    sink += (uint64_t)v + (d > 0);
    if (br_gguf_str(kv, i, &t))
        for (size_t k = 0; k < t.n; k++)
            sink += (uint8_t)t.p[k];
    sink += br_gguf_i64_layer(kv, i, &v);
}

static void
read_all(const br_gguf *g)
{
    for (size_t i = 0; i < br_gguf_n_kv(g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(g, i);

        br_check(br_gguf_type_name(kv->type)[0] && kv->key.n);
        for (uint64_t k = 0; k <= kv->n; k++)
            read_value(kv, k);
    }
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);

        for (size_t k = 0; k < t->bytes; k++)
            sink += t->data[k];
    }
}

static void
copy(const br_gguf *g, br_str *out)
{
    br_gguf_writer *w = br_gguf_w_new();

    br_check(w);
    for (size_t i = 0; i < br_gguf_n_kv(g); i++)
        br_gguf_w_copy(w, br_gguf_kv_at(g, i));
    /* the writer wants the u32 of the specification */
    if (br_gguf_alignment(g) != BR_GGUF_DEFAULT_ALIGNMENT)
        br_gguf_w_u32(w, "general.alignment", br_gguf_alignment(g));
    else
        br_gguf_w_remove(w, "general.alignment");
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        br_gguf_w_info info = {t->name, t->type, t->n_dims, {0}};

        memcpy(info.dim, t->dim, sizeof info.dim);
        br_gguf_w_tensor(w, &info);
    }
    br_check(br_gguf_w_begin_mem(w, out, NULL) == BR_OK);
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);

        br_check(br_gguf_w_data(w, t->data, t->bytes, NULL) == BR_OK);
    }
    br_check(br_gguf_w_end(w, NULL) == BR_OK);
    br_gguf_w_free(w);
}

static void
expect_same(const br_gguf *a, const br_gguf *b)
{
    br_check(br_gguf_n_tensors(a) == br_gguf_n_tensors(b));
    for (size_t i = 0; i < br_gguf_n_tensors(a); i++) {
        const br_gguf_tensor *x = br_gguf_tensor_at(a, i);
        const br_gguf_tensor *y = br_gguf_tensor_at(b, i);

        br_check(br_text_eq(x->name, y->name) && x->bytes == y->bytes);
        br_check(memcmp(x->data, y->data, x->bytes) == 0);
    }
    for (size_t i = 0; i < br_gguf_n_kv(a); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(a, i);
        char key[256];

        if (kv->key.n >= sizeof key || memchr(kv->key.p, 0, kv->key.n) ||
            br_text_is(kv->key, "general.alignment"))
            continue;
        memcpy(key, kv->key.p, kv->key.n);
        key[kv->key.n] = 0;
        br_check(br_gguf_find(b, key) && br_gguf_find(b, key)->n == kv->n);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_status st = {0};
    br_str out = {0};
    br_gguf *g, *again;

    if (br_gguf_open_mem(&g, data, size, &st) != BR_OK) {
        br_check(!g && st.msg[0] && "a failure says something");
        return 0;
    }
    read_all(g);
    if (br_gguf_alignment(g) <= 4096) { /* else all is padding */
        copy(g, &out);
        br_check(br_gguf_open_mem(&again, out.at, out.n, &st) == BR_OK);
        expect_same(g, again);
        br_gguf_close(again);
    }
    br_gguf_close(g);
    br_str_fini(&out);
    return 0;
}
