/* logits_kit.c - see logits_kit.h. SPDX-License-Identifier: Apache-2.0 */
#include "logits_kit.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/gguf_write.h"
#include "t.h"

static const char *
folder(void)
{
    const char *dir = t_vectors("logits");

    return dir ? dir : t_repo("tests/data/logits");
}

static br_arena arenas[2];
static br_json *docs[2];

void
lk_end(void)
{
    for (int i = 0; i < 2; i++)
        if (docs[i]) {
            br_arena_fini(&arenas[i]);
            docs[i] = NULL;
        }
}

static br_json *
document(const char *name)
{
    int at = strcmp(name, "cases.json") != 0;
    br_status st = {0};
    size_t n;

    if (!docs[at]) {
        const char *text = t_read(t_printf("%s/%s", folder(), name), &n);

        br_arena_init(&arenas[at], 0);
        t_ok(br_json_parse(&docs[at], &arenas[at], text, n, BR_JSON_LAX, &st),
             &st);
    }
    return docs[at];
}

size_t
lk_count(void)
{
    return document("cases.json")->n;
}

static double
number(const br_json *v)
{
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static const char *
text(const br_json *c, const char *key)
{
    return br_json_get(c, key)->s;
}

static void
read_greedy(lk_case *c, const br_json *j)
{
    const br_json *ids = br_json_get(j, "greedy");
    const br_json *gaps = br_json_get(j, "greedy_margin");

    c->n_greedy = BR_MIN(ids->n, 16u);
    for (uint32_t i = 0; i < c->n_greedy; i++) {
        c->greedy[i] = (int32_t)br_json_at(ids, i)->i;
        c->margin[i] = number(br_json_at(gaps, i));
    }
}

lk_case
lk_get(size_t i)
{
    const br_json *all = document("cases.json"), *j = br_json_at(all, i);
    const br_json *tokens;
    lk_case c = {0};
    size_t n;

    if (!j && !lk_complete())
        t_skip("no ../shared/vectors here, so not this model");
    ck_assert_ptr_nonnull(j);
    tokens = br_json_get(j, "tokens");
    c.name = text(j, "name");
    c.arch = text(j, "arch");
    c.file = t_read(t_printf("%s/%s", folder(), text(j, "model")), &c.file_n);
    c.n_tokens = BR_MIN(tokens->n, 64u);
    for (uint32_t k = 0; k < c.n_tokens; k++)
        c.tokens[k] = (int32_t)br_json_at(tokens, k)->i;
    c.n_vocab = (uint32_t)br_json_get(j, "n_vocab")->i;
    c.want = (const void *)t_read(
        t_printf("%s/%s", folder(), text(j, "logits")), &n);
    ck_assert_uint_eq(n, (size_t)c.n_tokens * c.n_vocab * sizeof(float));
    read_greedy(&c, j);
    c.tol_quantised = number(br_json_get(
        br_json_get(j, "tol_nmse"), "llama_cpp_like_quantised_activations"));
    c.arch_first = 1;
    for (size_t k = 0; k < i; k++)
        if (strcmp(text(br_json_at(all, k), "arch"), c.arch) == 0)
            c.arch_first = 0;
    return c;
}

size_t
lk_find(const char *name)
{
    const br_json *all = document("cases.json");

    for (size_t i = 0; i < all->n; i++)
        if (strcmp(text(br_json_at(all, i), "name"), name) == 0)
            return i;
    return all->n;
}

size_t
lk_of_arch(br_arch_id id, size_t from)
{
    const br_json *all = document("cases.json");

    while (from < all->n && strcmp(text(br_json_at(all, from), "arch"),
                                   br_arch_of(id)->name) != 0)
        from++;
    return from;
}

bool
lk_complete(void)
{
    return t_vectors("logits") != NULL;
}

br_code
lk_open(lk_run *r, const lk_case *c, const br_oracle_config *config)
{
    br_oracle_config none = {.act = BR_REF_F32};
    br_code code;

    memset(r, 0, sizeof *r);
    code = br_model_open_mem(&r->model, c->file, c->file_n, &r->st);
    if (code != BR_OK)
        return code;
    code = br_oracle_open(&r->o, r->model, config ? config : &none, &r->st);
    if (code != BR_OK) {
        br_model_close(r->model);
        r->model = NULL;
    }
    return code;
}

void
lk_close(lk_run *r)
{
    br_oracle_close(&r->o);
    br_model_close(r->model);
}

float *
lk_logits(lk_run *r, const lk_case *c, uint32_t n, uint32_t chunk)
{
    float *l = t_keep(calloc((size_t)n * c->n_vocab, sizeof *l));

    br_oracle_reset(&r->o, 0);
    t_ok(br_oracle_feed(&r->o, 0, 0, c->tokens, n, chunk, l, &r->st), &r->st);
    return l;
}

br_cpu_pool *
lk_pool(uint32_t n)
{
    br_status st = {0};
    br_cpu_pool *p;

    t_ok(br_cpu_pool_new(&p, n, &st), &st);
    return p;
}

bool
lk_skips(const lk_case *c, size_t i)
{
    return !c->arch_first || (t_sanitized() && i % 4 != 0);
}

void
lk_same(const lk_case *c, const float *a, const float *b, const char *what)
{
    size_t n = (size_t)c->n_tokens * c->n_vocab, i = 0;

    while (i < n && memcmp(&a[i], &b[i], sizeof *a) == 0)
        i++;
    ck_assert_msg(i == n, "%s: %s: token %zu, logit %zu is %.9g, not %.9g",
                  c->name, what, i / c->n_vocab, i % c->n_vocab, (double)a[i],
                  (double)b[i]);
}

static int
ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

lk_error
lk_compare(const float *got, const float *want, uint32_t n, uint32_t n_vocab)
{
    double pos[64], e = 0, s = 0;

    for (uint32_t t = 0; t < n; t++) {
        double pe = 0, ps = 0;

        for (size_t v = (size_t)t * n_vocab; v < (t + 1ull) * n_vocab; v++) {
            double d = (double)got[v] - (double)want[v];

            pe += d * d;
            ps += (double)want[v] * (double)want[v];
        }
        pos[t] = pe / ps;
        e += pe;
        s += ps;
    }
    qsort(pos, n, sizeof *pos, ascending);
    /* NaN anywhere must not pass: it makes e NaN, and NaN < x is false. */
    return (lk_error){e / s, pos[n / 2]};
}

bool
lk_sensitivity(const char *name, size_t i, const char **key, double *nmse)
{
    const br_json *c = br_json_get(document("sensitivity.json"), name);
    const br_json *v = c ? c->child : NULL; /* an object: no br_json_at() */

    for (; v && i > 0; i--)
        v = v->next;
    if (!v)
        return false;
    *key = v->key;
    *nmse = number(v);
    return true;
}

static float added[4][4];
static size_t n_added;

void
lk_add_four(br_gguf_writer *w, const char *name, const float *v)
{
    br_gguf_w_info info = {br_text_z(name), BR_Q_F32, 1, {4}};

    ck_assert_uint_lt(n_added, BR_COUNT(added));
    memcpy(added[n_added++], v, sizeof added[0]);
    br_gguf_w_tensor(w, &info);
}

void
lk_rewrite(lk_case *c, void (*set)(br_gguf_writer *w))
{
    br_gguf_writer *w = br_gguf_w_new();
    br_str out = {0};
    br_status st = {0};
    br_gguf *g;

    ck_assert_ptr_nonnull(w);
    t_ok(br_gguf_open_mem(&g, c->file, c->file_n, &st), &st);
    for (size_t i = 0; i < br_gguf_n_kv(g); i++)
        br_gguf_w_copy(w, br_gguf_kv_at(g, i));
    n_added = 0;
    set(w);
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        br_gguf_w_info info = {t->name, t->type, t->n_dims, {0}};

        memcpy(info.dim, t->dim, sizeof info.dim);
        br_gguf_w_tensor(w, &info);
    }
    t_ok(br_gguf_w_begin_mem(w, &out, &st), &st);
    for (size_t i = 0; i < n_added; i++)
        t_ok(br_gguf_w_data(w, added[i], sizeof added[i], &st), &st);
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);

        t_ok(br_gguf_w_data(w, t->data, t->bytes, &st), &st);
    }
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    br_gguf_close(g);
    c->file = t_keep(malloc(out.n));
    c->file_n = out.n;
    memcpy(c->file, out.at, out.n);
    br_str_fini(&out);
}
