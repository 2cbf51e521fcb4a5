/* hf_kit.c - see hf_kit.h. SPDX-License-Identifier: Apache-2.0 */
#include "hf_kit.h"

#include "base/half.h"
#include "base/json.h"
#include "t.h"
#include "tok_kit.h"

#include <stdlib.h>
#include <string.h>

void
hfk_put(const char *dir, const char *name, const char *text)
{
    t_write(t_printf("%s/%s", dir, name), text, strlen(text));
}

void
hfk_json_vocab(br_str *s, const tk_vocab *v)
{
    br_json_writer w;

    for (size_t i = 0; i < v->n; i++) {
        br_str one = {0};

        br_json_w_begin(&w, &one, 0);
        br_json_w_str(&w, v->text[i]);
        br_str_printf(s, "%s%s:%zu", i ? "," : "", br_str_z(&one), i);
        br_str_fini(&one);
    }
}

void
hfk_put_bpe(const char *dir, const char *pattern, const char *more)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_str s = {0};

    tk_add_letters(v);
    br_str_printf(
        &s,
        "{\"added_tokens\":[{\"id\":258,\"content\":\"<s>\",\"special\":true},"
        "{\"id\":260,\"content\":\"</s>\",\"special\":true}],"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},"
        "\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"model\":{\"type\":\"BPE\"%s,\"merges\":[\"a b\",\"ab c\"],"
        "\"vocab\":{",
        pattern, more);
    hfk_json_vocab(&s, v);
    br_str_puts(&s, ",\"ab\":256,\"abc\":257}}}");
    hfk_put(dir, "tokenizer.json", br_str_z(&s));
    br_str_fini(&s);
    hfk_put(dir, "tokenizer_config.json",
            "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
            "\"chat_template\":\"{{ messages }}\"}");
}

void
hfk_add_bf16(st_make *m, const char *name, uint64_t rows, uint64_t cols)
{
    const uint64_t dims[2] = {rows, cols};
    const uint64_t n = rows * (cols ? cols : 1);
    uint16_t *p = t_keep(malloc(n * 2));

    for (uint64_t i = 0; i < n; i++)
        p[i] = br_f32_to_bf16(cols ? (float)(i * 37 % 101) / 101 - 0.5f : 1.0f);
    st_add(m, name, "BF16", dims, cols ? 2 : 1, p, n * 2);
}

void
hfk_put_tensors(const char *dir, st_make *m)
{
    br_text t = st_file(m);

    t_write(t_printf("%s/model.safetensors", dir), t.p, t.n);
}
br_hf_stats hfk_stats;

br_gguf *
hfk_convert_ok(const char *dir)
{
    char *out = t_printf("%s/out.gguf", dir);
    br_hf_desc d = {0};
    br_status st = {0};
    br_gguf *g;

    t_ok(br_hf_convert(dir, out, &d, &hfk_stats, &st), &st);
    t_ok(br_gguf_open(&g, out, &st), &st);
    return g;
}

double
hfk_number(const br_gguf *g, const char *key)
{
    double v = -12345;

    ck_assert_msg(br_gguf_f64(br_gguf_find(g, key), 0, &v), "no number %s",
                  key);
    return v;
}

const char *
hfk_text(const br_gguf *g, const char *key)
{
    br_text t;

    ck_assert_msg(br_gguf_str(br_gguf_find(g, key), 0, &t), "no text %s", key);
    return t_printf("%.*s", (int)t.n, t.p);
}
