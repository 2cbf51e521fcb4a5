/* fuzz_hf.c - any config.json and any tensors as a Hugging Face folder.
 *
 *   config.json | 0 | header of model.safetensors | 0 | data
 *
 * Data is repeated as far as the header's offsets reach, 128 KiB at most, and the header
 * gets its length: what a file may have wrong with those is fuzz_safetensors.c's. A folder
 * that opens says the same in memory as converted, BF16 there for weights of eight bits
 * here, and those are numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "model/gguf.h"
#include "model/hf.h"
#include "model/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 17, ROW = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[256];

static const char *
path(const char *name)
{
    static char full[300];

    snprintf(full, sizeof full, "%s/%s", folder, name);
    return full;
}

static void
put(const char *name, const void *p, size_t n)
{
    br_status st = {0};
    br_code code = br_file_write(path(name), p, n, &st);

    br_check(code == BR_OK);
}

static void
leave(void)
{
    static const char *const names[] = {"config.json", "tokenizer.json",
                                        "generation_config.json",
                                        "model.safetensors", "out.gguf"};

    for (size_t i = 0; i < BR_COUNT(names); i++)
        (void)unlink(path(names[i]));
    (void)rmdir(folder);
}

/* Nine tokens: what is fuzzed does not look at them. */
static void
begin(void)
{
    static const char vocab[] =
        "{\"added_tokens\":[{\"id\":8,\"content\":\"</s>\",\"special\":true}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"merges\":[],"
        "\"unk_token\":\"a\","
        "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,"
        "\"h\":7}}}";
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%.200s/brass-fuzz-XXXXXX",
             tmp ? tmp : "/tmp");
    br_check(mkdtemp(folder));
    (void)atexit(leave);
    put("tokenizer.json", vocab, sizeof vocab - 1);
    put("generation_config.json", "{\"eos_token_id\":8}", 18);
}

/* The largest number of the text, MOST at most: no offset is more than that. */
static size_t
reach(const uint8_t *p, size_t n)
{
    size_t most = 0, v = 0;

    for (size_t i = 0; i < n; i++) {
        v = p[i] >= '0' && p[i] <= '9' && v <= MOST ? v * 10 + p[i] - '0' : 0;
        most = v <= MOST ? BR_MAX(most, v) : most;
    }
    return most;
}

/* Up to a NUL, which is left out. */
static br_text
part(const uint8_t **p, size_t *n)
{
    const uint8_t *end = *n ? memchr(*p, 0, *n) : NULL;
    br_text t = {(const char *)*p, end ? (size_t)(end - *p) : *n};

    *p += t.n + (end != NULL);
    *n -= t.n + (end != NULL);
    return t;
}

static void
put_tensors(const uint8_t *p, size_t n)
{
    const br_text head = part(&p, &n);
    const size_t bytes = reach((const uint8_t *)head.p, head.n);
    br_str s = {0};

    for (int i = 0; i < 8; i++)
        br_str_putc(&s, (char)((uint64_t)head.n >> 8 * i));
    br_str_put(&s, head.p, head.n);
    for (size_t i = 0; i < bytes; i++)
        br_str_putc(&s, n ? (char)p[i % n] : '8');
    br_check(!s.oom);
    put("model.safetensors", s.at, s.n);
    br_str_fini(&s);
}

/* What is there of eight bits is in the file as BF16. */
static void
same_numbers(const br_gguf_tensor *in, const br_gguf_tensor *out)
{
    static float x[ROW];
    const uint64_t rows = in->dim[1] * in->dim[2] * in->dim[3];
    const uint64_t cols = in->dim[0];

    br_check(out->type == BR_Q_BF16 && cols % 64 == 0);
    for (uint64_t r = 0; r < rows && cols <= ROW; r++) {
        br_dequant(in->type, in->data + in->bytes / rows * r, x, cols);
        for (uint64_t c = 0; c < cols; c++) {
            const uint8_t *want = out->data + (r * cols + c) * 2;

            br_check(isfinite(x[c]) && "codes and scales are numbers");
            br_check(br_f32_to_bf16(x[c]) ==
                     (uint16_t)(want[0] | want[1] << 8));
        }
    }
}

static void
compare(const br_gguf *in, const br_gguf *out)
{
    br_check(br_gguf_n_tensors(in) == br_gguf_n_tensors(out));
    for (size_t i = 0; i < br_gguf_n_tensors(in); i++) {
        const br_gguf_tensor *a = br_gguf_tensor_at(in, i);
        const br_gguf_tensor *b = br_gguf_tensor_at(out, i);

        br_check(a->name.n == b->name.n && a->n_dims == b->n_dims &&
                 memcmp(a->name.p, b->name.p, a->name.n) == 0 &&
                 memcmp(a->dim, b->dim, sizeof a->dim) == 0);
        if (a->type == BR_Q_F8_E4M3 || a->type == BR_Q_F8_E5M2)
            same_numbers(a, b);
        else
            br_check(a->type == b->type && a->bytes == b->bytes &&
                     memcmp(a->data, b->data, a->bytes) == 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *p = data;
    br_status st = {0}, other = {0};
    br_hf_stats stats;
    br_gguf *in, *out;
    br_code code;
    br_text config;
    char file[300];

    if (!folder[0])
        begin();
    config = part(&p, &size);
    put("config.json", config.p, config.n);
    put_tensors(p, size);
    snprintf(file, sizeof file, "%s", path("out.gguf"));
    code = br_hf_convert(folder, file, NULL, &stats, &other);
    if (br_gguf_open(&in, folder, &st) != BR_OK) {
        br_check(code != BR_OK && st.msg[0] && other.msg[0]);
        return 0;
    }
    br_check(code == BR_OK);
    code = br_gguf_open(&out, file, &st);
    br_check(code == BR_OK);
    compare(in, out);
    br_gguf_close(out);
    br_gguf_close(in);
    return 0;
}
