/* tok_kit.c - vocabularies made for a test.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tok_kit.h"

#include "model/tok_int.h"
#include "model/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t
tk_add(tk_vocab *v, const char *text, br_tok_type type, float score)
{
    ck_assert_uint_lt(v->n, BR_COUNT(v->text));
    v->text[v->n] = br_text_z(text);
    v->type[v->n] = (int32_t)type;
    v->score[v->n] = score;
    return (int32_t)v->n++;
}

void
tk_merge(tk_vocab *v, const char *merge)
{
    ck_assert_uint_lt(v->n_merges, BR_COUNT(v->merge));
    v->merge[v->n_merges++] = br_text_z(merge);
}

void
tk_add_letters(tk_vocab *v)
{
    for (uint32_t b = 0; b < 256; b++) {
        char c[5] = {0};

        br_utf8_put(c, br_gpt2_letter((uint8_t)b));
        tk_add(v, t_printf("%s", c), BR_TOK_NORMAL, 0);
    }
}

void
tk_add_bytes(tk_vocab *v)
{
    for (unsigned b = 0; b < 256; b++)
        tk_add(v, t_printf("<0x%02X>", b), BR_TOK_BYTE, 0);
}

void
tk_file(const tk_vocab *v, tk_more more, br_str *out)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};

    ck_assert_ptr_nonnull(w);
    br_gguf_w_str(w, "tokenizer.ggml.model", br_text_z(v->model));
    if (v->pre)
        br_gguf_w_str(w, "tokenizer.ggml.pre", br_text_z(v->pre));
    br_gguf_w_strs(w, "tokenizer.ggml.tokens", v->text, v->n);
    br_gguf_w_array(w, "tokenizer.ggml.token_type", BR_GGUF_I32, v->type, v->n);
    if (v->scores)
        br_gguf_w_array(w, "tokenizer.ggml.scores", BR_GGUF_F32, v->score,
                        v->n);
    if (v->n_merges)
        br_gguf_w_strs(w, "tokenizer.ggml.merges", v->merge, v->n_merges);
    if (more)
        more(w);
    t_ok(br_gguf_w_begin_mem(w, out, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
}

br_code
tk_load(br_tok **t, const br_str *file, const char *pre, br_status *st)
{
    br_gguf *g;
    br_code code = br_gguf_open_mem(&g, file->at, file->n, st);

    *t = NULL;
    if (code != BR_OK)
        return code;
    code = br_tok_from_gguf(t, g, pre, st);
    br_gguf_close(g);
    return code;
}

br_tok *
tk_open(const tk_vocab *v, tk_more more)
{
    br_str file = {0};
    br_status st = {0};
    br_tok *t;

    tk_file(v, more, &file);
    t_ok(tk_load(&t, &file, NULL, &st), &st);
    br_str_fini(&file);
    return t;
}

br_tok *
tk_data(const char *name)
{
    br_status st = {0};
    br_tok *t;

    t_ok(
        br_tok_open(&t, t_repo(t_printf("tests/data/tok/%s", name)), NULL, &st),
        &st);
    return t;
}

const char *
tk_ids_n(const br_tok *t, br_text text, int flags)
{
    br_tok_work *w = br_tok_work_new();
    br_tok_ids ids = {0};
    br_status st = {0};
    br_str s = {0};
    const char *kept;

    ck_assert_ptr_nonnull(w);
    t_ok(br_tok_encode(t, w, text, flags, &ids, &st), &st);
    for (size_t i = 0; i < ids.n; i++)
        br_str_printf(&s, "%s%d", i ? " " : "", ids.at[i]);
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    br_vec_fini(&ids);
    br_tok_work_free(w);
    return kept;
}

const char *
tk_ids(const br_tok *t, const char *text, int flags)
{
    return tk_ids_n(t, br_text_z(text), flags);
}

const char *
tk_text(const br_tok *t, const char *ids, int flags)
{
    br_tok_ids v = {0};
    br_status st = {0};
    br_str s = {0};
    const char *kept;
    char *end;

    for (long id; (id = strtol(ids, &end, 10)), end != ids; ids = end)
        ck_assert(br_vec_push(&v, (int32_t)id));
    t_ok(br_tok_decode(t, v.at, v.n, flags, &s, &st), &st);
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    br_vec_fini(&v);
    return kept;
}
