/* model_info.c - brass model info: what a model file holds.
 *
 * Reads the header alone, so it takes as long for 400 GB as for 4 MB. What the
 * file says of itself is shown as it says it; nothing here needs the
 * architecture to be known, but whether it is known, and verified, is told.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/catalogue.h"
#include "model/gguf.h"
#include "model/model.h"
#include "model/qmix.h"
#include "model/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct type_sum {
    uint64_t tensors, weights, bytes;
} type_sum;

typedef struct info {
    const br_gguf *g;
    const char *path;
    br_text arch; /* "" when the key is not there */
    type_sum all, type[BR_Q_LIMIT];
} info;

/* ---- facts -------------------------------------------------------------- */

static uint64_t
weights_of(const br_gguf_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static void
gather(info *f, const br_gguf *g, const char *path)
{
    *f = (info){.g = g, .path = path, .arch = {"", 0}};
    br_gguf_str(br_gguf_find(g, "general.architecture"), 0, &f->arch);
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        type_sum *sums[2] = {&f->all, &f->type[t->type]};

        for (int k = 0; k < 2; k++) {
            sums[k]->tensors++;
            sums[k]->weights += weights_of(t);
            sums[k]->bytes += t->bytes;
        }
    }
}

/* The key "ARCH.rest"; NULL: not there. */
static const br_gguf_kv *
arch_key(const info *f, const char *rest)
{
    char key[256];

    if (f->arch.n + strlen(rest) + 2 > sizeof key)
        return NULL;
    snprintf(key, sizeof key, "%.*s.%s", (int)f->arch.n, f->arch.p, rest);
    return br_gguf_find(f->g, key);
}

/* A number of the model; the largest of a list with one for each layer. */
static bool
number(const info *f, const char *rest, int64_t *out)
{
    const br_gguf_kv *kv = arch_key(f, rest);
    int64_t v;

    *out = 0;
    for (uint64_t i = 0; kv && i < kv->n; i++) {
        if (!br_gguf_i64(kv, i, &v))
            return false;
        *out = BR_MAX(*out, v);
    }
    return kv && kv->n > 0;
}

static br_text
text_of(const info *f, const char *key)
{
    br_text t = {"", 0};

    br_gguf_str(br_gguf_find(f->g, key), 0, &t);
    return t;
}

static uint64_t
tokens_of(const info *f)
{
    const br_gguf_kv *kv = br_gguf_find(f->g, "tokenizer.ggml.tokens");

    return kv ? kv->n : 0;
}

static const char *
file_type_of(const info *f)
{
    int64_t code;
    const char *name = NULL;

    if (br_gguf_i64(br_gguf_find(f->g, "general.file_type"), 0, &code))
        name = br_qmix_code_name(code);
    return name ? name : "";
}

/* ---- text --------------------------------------------------------------- */

/* At most `max` bytes of what a file says, control characters shown. */
static void
put_clean(FILE *out, br_text t, size_t max)
{
    for (size_t i = 0; i < t.n && i < max; i++) {
        unsigned char c = (unsigned char)t.p[i];

        if (c < 32 || c == 127)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    if (t.n > max)
        fputs("...", out);
}

static void
put_row(FILE *out, const char *name, br_text value)
{
    if (value.n == 0)
        return;
    fprintf(out, "%-14s ", name);
    put_clean(out, value, 60);
    fputc('\n', out);
}

/* 8030261248 as "8.03 G", bytes as "4.58 GiB". */
static const char *
short_form(char out[32], uint64_t n, double step, const char *unit)
{
    static const char *const prefix[] = {"", "K", "M", "G", "T", "P", "E"};
    double v = (double)n;
    size_t k = 0;

    while (v >= step && k + 1 < BR_COUNT(prefix)) {
        v /= step;
        k++;
    }
    if (k)
        snprintf(out, 32, "%.2f %s%s%s", v, prefix[k], step > 1000 ? "i" : "",
                 unit);
    else
        snprintf(out, 32, "%.0f%s%s", v, *unit ? " " : "", unit);
    return out;
}

static const char *
bytes_form(char out[32], uint64_t n)
{
    return short_form(out, n, 1024, "B");
}

/* Of the row of arch.def: does Brass run it, and was that checked? */
static const char *
arch_state(const info *f)
{
    int id = br_arch_find(f->arch);

    if (id < 0)
        return "unknown";
    return br_arch_of((br_arch_id)id)->verified ? "verified" : "untested";
}

static void
put_shape(FILE *out, const info *f)
{
    int64_t layers, width, heads, kv, experts, used;

    if (number(f, "block_count", &layers) &&
        number(f, "embedding_length", &width))
        fprintf(out, "%-14s %lld of width %lld", "layers", (long long)layers,
                (long long)width);
    else
        return;
    if (number(f, "attention.head_count", &heads)) {
        fprintf(out, ", %lld heads", (long long)heads);
        if (number(f, "attention.head_count_kv", &kv))
            fprintf(out, " over %lld of keys and values", (long long)kv);
    }
    if (number(f, "expert_count", &experts) && experts > 0) {
        fprintf(out, ", %lld experts", (long long)experts);
        if (number(f, "expert_used_count", &used))
            fprintf(out, ", %lld at a time", (long long)used);
    }
    fputc('\n', out);
}

static void
put_tokenizer(FILE *out, const info *f)
{
    br_text kind = text_of(f, "tokenizer.ggml.model");
    br_text pre = text_of(f, "tokenizer.ggml.pre");
    br_text chat = text_of(f, "tokenizer.chat_template");

    if (kind.n) {
        fprintf(out, "%-14s ", "tokenizer");
        put_clean(out, kind, 30);
        if (pre.n) {
            fputs(", ", out);
            put_clean(out, pre, 30);
        }
        fprintf(out, ", %llu tokens\n", (unsigned long long)tokens_of(f));
    }
    if (chat.n)
        fprintf(out, "%-14s %zu bytes\n", "chat template", chat.n);
    else
        fprintf(out, "%-14s none\n", "chat template");
}

static void
put_types(FILE *out, const info *f)
{
    char n[32], b[32];

    fprintf(out, "\n%-8s %8s %12s %12s %8s\n", "format", "tensors", "weights",
            "size", "bits");
    for (int i = 0; i < BR_Q_LIMIT; i++) {
        const type_sum *s = &f->type[i];

        if (s->tensors)
            fprintf(out, "%-8s %8llu %12s %12s %8.3f\n", br_qinfo_of(i)->name,
                    (unsigned long long)s->tensors,
                    short_form(n, s->weights, 1000, ""),
                    bytes_form(b, s->bytes),
                    8.0 * (double)s->bytes / (double)s->weights);
    }
}

static void
put_tensors(FILE *out, const info *f)
{
    char b[32], shape[96];

    fprintf(out, "\n%-44s %-8s %-24s %12s\n", "tensor", "format", "shape",
            "size");
    for (size_t i = 0; i < br_gguf_n_tensors(f->g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(f->g, i);
        size_t n = 0;

        shape[0] = 0;
        for (uint32_t d = 0; d < t->n_dims; d++)
            n +=
                (size_t)snprintf(shape + n, sizeof shape - n, "%s%llu",
                                 d ? " x " : "", (unsigned long long)t->dim[d]);
        put_clean(out, t->name, 64);
        fprintf(out, "%*s %-8s %-24s %12s\n",
                t->name.n < 44 ? (int)(44 - t->name.n) : 0, "",
                br_qinfo_of(t->type)->name, shape, bytes_form(b, t->bytes));
    }
}

/* The fewest digits that read back as the same f32. */
static void
put_f32(FILE *out, float f)
{
    char text[32];
    int digits = 5; /* %g drops zeros: 0.5, 10000 */

    do
        snprintf(text, sizeof text, "%.*g", ++digits, (double)f);
    while (digits < 9 && strtof(text, NULL) != f);
    fputs(text, out);
}

/* Of a u64, which may be above the range of i64. */
static bool
u64_of(const br_gguf_kv *kv, uint64_t i, uint64_t *out)
{
    if (kv->elem != BR_GGUF_U64)
        return false;
    *out = 0;
    for (int k = 7; k >= 0; k--)
        *out = *out << 8 | kv->data[8 * i + (uint64_t)k];
    return true;
}

static void
put_value(FILE *out, const br_gguf_kv *kv, uint64_t i)
{
    char repr[32];
    uint64_t u;
    int64_t v;
    double d;
    br_text t;

    if (br_gguf_str(kv, i, &t)) {
        put_clean(out, t, 60);
    } else if (u64_of(kv, i, &u)) {
        fprintf(out, "%llu", (unsigned long long)u);
    } else if (br_gguf_i64(kv, i, &v)) {
        if (kv->elem == BR_GGUF_BOOL)
            fputs(v ? "true" : "false", out);
        else
            fprintf(out, "%lld", (long long)v);
    } else if (br_gguf_f64(kv, i, &d)) {
        if (kv->elem == BR_GGUF_F32) {
            put_f32(out, (float)d);
        } else {
            br_f64_repr(repr, d);
            fputs(repr, out);
        }
    }
}

static void
put_keys(FILE *out, const info *f)
{
    enum { SHOWN = 4 }; /* elements of a list */

    fprintf(out, "\nkeys\n");
    for (size_t i = 0; i < br_gguf_n_kv(f->g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(f->g, i);

        put_clean(out, kv->key, 100);
        fputs(kv->type == BR_GGUF_ARR ? " = [" : " = ", out);
        for (uint64_t k = 0; k < kv->n && k < SHOWN; k++) {
            if (k)
                fputs(", ", out);
            put_value(out, kv, k);
        }
        if (kv->type == BR_GGUF_ARR)
            fprintf(out, kv->n > SHOWN ? ", ... %llu in all]" : "]",
                    (unsigned long long)kv->n);
        fputc('\n', out);
    }
}

static void
print_text(br_cli *cli, const info *f)
{
    FILE *out = cli->out;
    char b[32];
    int64_t context;

    fprintf(out, "%-14s GGUF %u, %s", "file", br_gguf_version(f->g),
            bytes_form(b, br_gguf_bytes(f->g)));
    if (br_gguf_n_splits(f->g) > 1)
        fprintf(out, " in %u files", br_gguf_n_splits(f->g));
    fputc('\n', out);
    put_row(out, "name", text_of(f, "general.name"));
    if (f->arch.n) {
        fprintf(out, "%-14s ", "architecture");
        put_clean(out, f->arch, 60);
        fprintf(out, " (%s)\n", arch_state(f));
    }
    put_row(out, "mixture", br_text_z(file_type_of(f)));
    fprintf(out, "%-14s %s in %llu tensors\n", "weights",
            short_form(b, f->all.weights, 1000, ""),
            (unsigned long long)f->all.tensors);
    put_shape(out, f);
    if (number(f, "context_length", &context))
        fprintf(out, "%-14s %lld tokens\n", "context", (long long)context);
    put_tokenizer(out, f);
    put_types(out, f);
    if (br_opt_bool(cli, BR_OPT_tensors))
        put_tensors(out, f);
    if (br_opt_bool(cli, BR_OPT_keys))
        put_keys(out, f);
}

/* ---- JSON --------------------------------------------------------------- */

static void
json_text(br_json_writer *w, const char *key, br_text t)
{
    br_json_w_key(w, key);
    if (t.n)
        br_json_w_str(w, t);
    else
        br_json_w_null(w);
}

static void
json_number(br_json_writer *w, const info *f, const char *name,
            const char *rest)
{
    int64_t v;

    br_json_w_key(w, name);
    if (number(f, rest, &v))
        br_json_w_i64(w, v);
    else
        br_json_w_null(w);
}

static void
json_types(br_json_writer *w, const info *f)
{
    br_json_w_key(w, "types");
    br_json_w_obj(w);
    for (int i = 0; i < BR_Q_LIMIT; i++) {
        const type_sum *s = &f->type[i];

        if (!s->tensors)
            continue;
        br_json_w_key(w, br_qinfo_of(i)->name);
        br_json_w_obj(w);
        br_json_w_key_u64(w, "tensors", s->tensors);
        br_json_w_key_u64(w, "parameters", s->weights);
        br_json_w_key_u64(w, "bytes", s->bytes);
        br_json_w_obj_end(w);
    }
    br_json_w_obj_end(w);
}

static void
json_tensors(br_json_writer *w, const info *f)
{
    br_json_w_key(w, "tensors");
    br_json_w_arr(w);
    for (size_t i = 0; i < br_gguf_n_tensors(f->g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(f->g, i);

        br_json_w_obj(w);
        json_text(w, "name", t->name);
        br_json_w_key_strz(w, "type", br_qinfo_of(t->type)->name);
        br_json_w_key(w, "shape");
        br_json_w_arr(w);
        for (uint32_t d = 0; d < t->n_dims; d++)
            br_json_w_u64(w, t->dim[d]);
        br_json_w_arr_end(w);
        br_json_w_key_u64(w, "bytes", t->bytes);
        br_json_w_key_u64(w, "file", t->split);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
}

static void
json_value(br_json_writer *w, const br_gguf_kv *kv, uint64_t i)
{
    uint64_t u;
    int64_t v;
    double d;
    br_text t;

    if (br_gguf_str(kv, i, &t))
        br_json_w_str(w, t);
    else if (u64_of(kv, i, &u))
        br_json_w_u64(w, u);
    else if (kv->elem == BR_GGUF_BOOL && br_gguf_i64(kv, i, &v))
        br_json_w_bool(w, v != 0);
    else if (br_gguf_i64(kv, i, &v))
        br_json_w_i64(w, v);
    else if (br_gguf_f64(kv, i, &d) && isfinite(d))
        br_json_w_f64(w, d);
    else
        br_json_w_null(w); /* JSON has neither NaN nor infinity */
}

static void
json_keys(br_json_writer *w, const info *f)
{
    br_json_w_key(w, "keys");
    br_json_w_obj(w);
    for (size_t i = 0; i < br_gguf_n_kv(f->g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(f->g, i);

        br_json_w_key_n(w, kv->key);
        if (kv->type != BR_GGUF_ARR) {
            json_value(w, kv, 0);
            continue;
        }
        br_json_w_arr(w);
        for (uint64_t k = 0; k < kv->n; k++)
            json_value(w, kv, k);
        br_json_w_arr_end(w);
    }
    br_json_w_obj_end(w);
}

static int
print_json(br_cli *cli, const info *f)
{
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_json_w_begin(&w, &doc, 2);
    br_json_w_obj(&w);
    json_text(&w, "file", br_text_z(f->path));
    br_json_w_key_u64(&w, "version", br_gguf_version(f->g));
    br_json_w_key_u64(&w, "files", br_gguf_n_splits(f->g));
    br_json_w_key_u64(&w, "bytes", br_gguf_bytes(f->g));
    br_json_w_key_u64(&w, "alignment", br_gguf_alignment(f->g));
    json_text(&w, "name", text_of(f, "general.name"));
    json_text(&w, "architecture", f->arch);
    br_json_w_key_strz(&w, "architecture_state", arch_state(f));
    json_text(&w, "mixture", br_text_z(file_type_of(f)));
    br_json_w_key_u64(&w, "parameters", f->all.weights);
    json_number(&w, f, "layers", "block_count");
    json_number(&w, f, "width", "embedding_length");
    json_number(&w, f, "heads", "attention.head_count");
    json_number(&w, f, "kv_heads", "attention.head_count_kv");
    json_number(&w, f, "experts", "expert_count");
    json_number(&w, f, "experts_used", "expert_used_count");
    json_number(&w, f, "context", "context_length");
    br_json_w_key(&w, "tokenizer");
    br_json_w_obj(&w);
    json_text(&w, "model", text_of(f, "tokenizer.ggml.model"));
    json_text(&w, "pre", text_of(f, "tokenizer.ggml.pre"));
    br_json_w_key_u64(&w, "tokens", tokens_of(f));
    br_json_w_obj_end(&w);
    br_json_w_key_bool(&w, "chat_template",
                       text_of(f, "tokenizer.chat_template").n > 0);
    json_types(&w, f);
    br_json_w_key_u64(&w, "n_tensors", f->all.tensors);
    if (br_opt_bool(cli, BR_OPT_tensors))
        json_tensors(&w, f);
    if (br_opt_bool(cli, BR_OPT_keys))
        json_keys(&w, f);
    br_json_w_obj_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return ret;
}

int
br_cmd_model_info(br_cli *cli)
{
    br_status st = {0};
    br_str path = {0};
    br_gguf *g;
    info f;
    int ret = 0;

    if (br_cli_model(cli, cli->args[0], &path, &st) != BR_OK ||
        br_gguf_open(&g, path.at, &st) != BR_OK) {
        br_str_fini(&path);
        return br_cli_fail(cli, &st);
    }
    gather(&f, g, path.at);
    if (br_opt_bool(cli, BR_OPT_json))
        ret = print_json(cli, &f);
    else
        print_text(cli, &f);
    br_gguf_close(g);
    br_str_fini(&path);
    return ret;
}
