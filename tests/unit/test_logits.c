/* test_logits.c - models in the reference tier against golden logits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "logits_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

/* A sanitizer sees nothing new in an architecture's second model. */
static bool
seen(const lk_case *c)
{
    return t_sanitized() && !c->arch_first;
}

/* ---- right -------------------------------------------------------------- */

TEST_WITHIN(logits_are_the_golden_ones, 120)
{
    t_not_for_tsan(NULL);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        lk_error e;
        lk_run r;

        if (seen(&c))
            continue;
        t_ok(lk_open(&r, &c, NULL), &r.st);
        e = lk_compare(lk_logits(&r, &c, c.n_tokens, 0), c.want, c.n_tokens,
                       c.n_vocab);
        ck_assert_msg(e.nmse < 1e-8, "%s: NMSE %g", c.name, e.nmse);
        lk_close(&r);
    }
    lk_end();
}

TEST_WITHIN(greedy_continuation_is_the_golden_one, 120)
{
    t_not_for_tsan(NULL);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        const float *l;
        lk_run r;

        if (seen(&c))
            continue;
        t_ok(lk_open(&r, &c, NULL), &r.st);
        l = lk_logits(&r, &c, c.n_tokens, 0) +
            (size_t)(c.n_tokens - 1) * c.n_vocab;
        for (uint32_t k = 0; k < c.n_greedy && c.margin[k] > 1e-3; k++) {
            float *next = t_keep(calloc(c.n_vocab, sizeof *next));
            int32_t best = 0;

            for (uint32_t v = 1; v < c.n_vocab; v++)
                best = l[v] > l[best] ? (int32_t)v : best;
            ck_assert_msg(best == c.greedy[k], "%s: step %u says %d, not %d",
                          c.name, k, best, c.greedy[k]);
            t_ok(br_oracle_feed(&r.o, 0, c.n_tokens + k, &best, 1, 1, next,
                                &r.st),
                 &r.st);
            l = next;
        }
        lk_close(&r);
    }
    lk_end();
}

/* ---- rows of arch.def ---------------------------------------------------- */

/* The first case of a row. False: it has none, and says so; a row that is
 * called verified and has none is the end of the test. Without the shared
 * vectors most rows have none here. */
static bool
case_of_row(br_arch_id id, size_t *i)
{
    const br_arch *a = br_arch_of(id);
    bool has = (*i = lk_of_arch(id, 0)) < lk_count();

    if (lk_complete())
        ck_assert_msg(has == a->verified, "%s is %s and has %s golden logits",
                      a->name, a->verified ? "VERIFIED" : "UNTESTED",
                      has ? "some" : "no");
    return has;
}

TEST(rows_are_verified_that_have_golden_logits)
{
    size_t i, rows = 0;

    for (int id = 0; id < BR_ARCH_COUNT; id++)
        rows += case_of_row((br_arch_id)id, &i);
    ck_assert_uint_ge(rows, lk_complete() ? 22 : 3);
    for (i = 0; i < lk_count(); i++)
        ck_assert_int_ge(br_arch_find(br_text_z(lk_get(i).arch)), 0);
    lk_end();
}

/* ---- the same, whatever happens around it ------------------------------- */

static void
chunks_of_row(br_arch_id id, br_ref_act act)
{
    static const uint32_t chunks[] = {1, 7, 16};
    size_t i;

    if (!case_of_row(id, &i))
        return;
    for (; i < lk_count(); i = lk_of_arch(id, i + 1)) {
        lk_case c = lk_get(i);
        br_oracle_config config = {.act = act};
        const float *all;
        lk_run r;

        if (seen(&c))
            continue;
        t_ok(lk_open(&r, &c, &config), &r.st);
        all = lk_logits(&r, &c, c.n_tokens, 0);
        for (size_t k = 0; k < BR_COUNT(chunks); k++)
            ck_assert_msg(
                memcmp(all, lk_logits(&r, &c, c.n_tokens, chunks[k]),
                       (size_t)c.n_tokens * c.n_vocab * sizeof *all) == 0,
                "%s: chunks of %u change the logits", c.name, chunks[k]);
        lk_close(&r);
    }
}

static void
same_for_chunks(br_ref_act act)
{
    for (int id = 0; id < BR_ARCH_COUNT; id++)
        chunks_of_row((br_arch_id)id, act);
}

TEST_WITHIN(chunks_of_the_prompt_change_no_bit, 120)
{
    t_not_for_tsan(NULL);
    same_for_chunks(BR_REF_F32);
    lk_end();
}

TEST_WITHIN(chunks_change_no_bit_with_quantised_activations, 120)
{
    t_not_for_tsan(NULL);
    same_for_chunks(BR_REF_QUANTISED);
    lk_end();
}

/* Three sequences in one step, at different positions, in slots and pages in
 * disorder: each gets the logits it gets alone. */
TEST_WITHIN(company_and_pages_change_no_bit, 120)
{
    t_not_for_tsan(NULL);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_oracle_config config = {.act = BR_REF_F32, .n_slots = 4};
        const float *alone;
        float *got;
        uint32_t at[3] = {0, 0, 0};
        lk_run r;

        if (!c.arch_first)
            continue;
        t_ok(lk_open(&r, &c, &config), &r.st);
        alone = lk_logits(&r, &c, c.n_tokens, 0);
        got = t_keep(calloc(64u * c.n_vocab, sizeof *got));
        br_oracle_reset(&r.o, 0);
        while (at[0] < c.n_tokens) {
            int32_t slot[64], pos[64], tok[64];
            br_step s = {0, slot, pos, tok, NULL, NULL, false, NULL};

            for (uint32_t k = 0; k < 3; k++) /* 1, 2 and 3 rows at a time */
                for (uint32_t j = 0; j <= k && at[k] < c.n_tokens; j++) {
                    slot[s.n_rows] = (int32_t)(3 - k);
                    pos[s.n_rows] = (int32_t)at[k];
                    tok[s.n_rows++] = c.tokens[at[k]++];
                }
            t_ok(br_oracle_step(&r.o, &s, BR_IR_PREFILL, got, &r.st), &r.st);
            for (uint32_t t = 0; t < s.n_rows; t++)
                ck_assert_msg(memcmp(got + (size_t)t * c.n_vocab,
                                     alone + (size_t)pos[t] * c.n_vocab,
                                     c.n_vocab * sizeof *got) == 0,
                              "%s: slot %d, position %d", c.name, slot[t],
                              pos[t]);
        }
        lk_close(&r);
    }
    lk_end();
}

TEST(a_slot_goes_on_from_its_checkpoint)
{
    lk_case c = lk_get(lk_find("mamba2"));
    const float *all;
    float *again;
    void *save;
    lk_run r;

    t_ok(lk_open(&r, &c, NULL), &r.st);
    all = lk_logits(&r, &c, c.n_tokens, 0);
    save = t_keep(calloc(1, br_slot_bytes(r.o.state)));
    (void)lk_logits(&r, &c, 20, 0);
    br_slot_save(r.o.state, 0, save);
    again = t_keep(calloc(28u * c.n_vocab, sizeof *again));
    t_ok(br_oracle_feed(&r.o, 0, 20, c.tokens, 9, 0, NULL, &r.st), &r.st);
    br_slot_restore(r.o.state, 0, save);
    t_ok(br_oracle_feed(&r.o, 0, 20, c.tokens + 20, 28, 0, again, &r.st),
         &r.st);
    ck_assert_mem_eq(again, all + 20 * (size_t)c.n_vocab,
                     28 * (size_t)c.n_vocab * sizeof *all);
    lk_close(&r);
    lk_end();
}

/* ---- quantised activations ---------------------------------------------- */

TEST_WITHIN(quantised_activations_stay_within_their_tolerance, 120)
{
    t_not_for_tsan(NULL);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_oracle_config config = {.act = BR_REF_QUANTISED};
        lk_error e;
        lk_run r;

        if (seen(&c))
            continue;
        t_ok(lk_open(&r, &c, &config), &r.st);
        e = lk_compare(lk_logits(&r, &c, c.n_tokens, 0), c.want, c.n_tokens,
                       c.n_vocab);
        ck_assert_msg(e.median < c.tol_quantised || e.median < 1e-8,
                      "%s: median NMSE %g, not %g", c.name, e.median,
                      c.tol_quantised);
        lk_close(&r);
    }
    lk_end();
}

/* ---- nothing in a file is ignored --------------------------------------- */

static void
set_float(const br_gguf_kv *kv, double factor, double add)
{
    union {
        const uint8_t *c;
        uint8_t *p;
    } at = {kv->data};
    double v;

    ck_assert(br_gguf_f64(kv, 0, &v));
    if (kv->type == BR_GGUF_F32) {
        float f = (float)(v * factor + add);

        memcpy(at.p, &f, sizeof f);
    } else if (kv->type == BR_GGUF_BOOL) {
        *at.p = !*at.p;
    } else {
        uint32_t u = (uint32_t)(v * factor + add);

        ck_assert(kv->type == BR_GGUF_U32 || kv->type == BR_GGUF_I32);
        memcpy(at.p, &u, sizeof u);
    }
}

/* A wrong value of this key; false: none is known. */
static bool
spoil_key(const br_gguf *g, const char *arch, const char *key)
{
    static const struct {
        const char *end;
        double factor, add;
    } how[] = {{"_epsilon", 10, 0},        {"freq_base", 1.5, 0},
               {"freq_base_swa", 1.5, 0},  {"_used_count", 1, -1},
               {"gating_func", -1, 3},     {"weights_norm", 0, 0},
               {"weights_scale", 1.05, 0}, {"dimension_count", 0.5, 0},
               {"sliding_window", 1, 8},   {"softcapping", 1.1, 0},
               {"scaling.factor", 1.5, 0}, {"original_context_length", 64, 0},
               {"scale", 1.1, 0},          {"log_multiplier", 0.5, 0},
               {"attn_factor", 1.1, 0}};
    const br_gguf_kv *kv = br_gguf_find(g, t_printf("%s.%s", arch, key));

    for (size_t i = 0; kv && i < BR_COUNT(how); i++) {
        size_t n = strlen(how[i].end), m = strlen(key);

        if (m >= n && strcmp(key + m - n, how[i].end) == 0) {
            set_float(kv, how[i].factor, how[i].add);
            return true;
        }
    }
    return false;
}

/* The tensors of this name in every layer, 5 % of noise; zeros get ones. */
static int
spoil_tensors(const br_gguf *g, const char *stem)
{
    uint64_t seed = 7;
    int n = 0;

    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        uint64_t elems = t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
        size_t m = strlen(stem);
        float *f;
        union {
            const uint8_t *c;
            uint8_t *p;
        } at = {t->data};

        if (t->name.n < m || memcmp(t->name.p + t->name.n - m, stem, m) != 0 ||
            (t->name.n > m && t->name.p[t->name.n - m - 1] != '.'))
            continue;
        f = malloc(elems * sizeof *f);
        br_dequant(t->type, t->data, f, elems);
        for (uint64_t k = 0; k < elems; k++) {
            float noise = (float)(t_rand(&seed) % 2001) / 1000.0f - 1;

            if (strncmp(stem, "exp_probs_b", 11) == 0)
                f[k] = 0; /* it only chooses: 5 % may choose the same */
            else
                f[k] = f[k] == 0 ? 0.5f * noise : f[k] * (1 + 0.1f * noise);
        }
        for (uint64_t row = 0; row < elems / t->dim[0]; row++) {
            uint64_t bytes = t->bytes / (elems / t->dim[0]);

            ck_assert(br_quant(t->type, f + row * t->dim[0], at.p + row * bytes,
                               t->dim[0], NULL));
        }
        free(f);
        n++;
    }
    return n;
}

static void
check_sensitive(lk_case *c, const char *key, double golden)
{
    bool kv = key[0] == 'k';
    uint32_t n = kv ? c->n_tokens : 24;
    char *whole = t_keep(malloc(c->file_n));
    br_status st = {0};
    br_gguf *g;
    lk_error e;
    lk_run r;

    memcpy(whole, c->file, c->file_n);
    t_ok(br_gguf_open_mem(&g, c->file, c->file_n, &st), &st);
    if (kv)
        ck_assert_msg(spoil_key(g, c->arch, key + 3), "%s: %s", c->name, key);
    else
        ck_assert_msg(spoil_tensors(g, key + 2) > 0, "%s: %s", c->name, key);
    br_gguf_close(g);
    if (lk_open(&r, c, NULL) == BR_OK) { /* else it is caught already */
        e = lk_compare(lk_logits(&r, c, n, 0), c->want, n, c->n_vocab);
        if (golden > 1e-8)
            ck_assert_msg(e.nmse > 1e-8, "%s: %s changes nothing, NMSE %g",
                          c->name, key, e.nmse);
        else
            ck_assert_msg(e.nmse < 1e-8, "%s: %s has no business here", c->name,
                          key);
        lk_close(&r);
    }
    memcpy(c->file, whole, c->file_n);
}

static void
check_sensitivity(size_t part, size_t parts)
{
    const char *key;
    double golden;
    int n = 0;

    for (size_t i = part; i < lk_count(); i += parts) {
        lk_case c = lk_get(i);

        if (seen(&c))
            continue;
        for (size_t k = 0; lk_sensitivity(c.name, k, &key, &golden); k++, n++)
            check_sensitive(&c, key, golden);
    }
    if (n == 0 && !lk_complete())
        t_skip("no ../shared/vectors here, and few models without");
    ck_assert_msg(n > (!lk_complete()  ? 10
                       : t_sanitized() ? 50
                                       : 100),
                  "only %d entries were found", n);
}

TEST_WITHIN(every_key_and_tensor_matters_1_of_4, 120)
{
    t_not_for_tsan(NULL);
    check_sensitivity(0, 4);
    lk_end();
}
TEST_WITHIN(every_key_and_tensor_matters_2_of_4, 120)
{
    t_not_for_tsan(NULL);
    check_sensitivity(1, 4);
    lk_end();
}
TEST_WITHIN(every_key_and_tensor_matters_3_of_4, 120)
{
    t_not_for_tsan(NULL);
    check_sensitivity(2, 4);
    lk_end();
}
TEST_WITHIN(every_key_and_tensor_matters_4_of_4, 120)
{
    t_not_for_tsan(NULL);
    check_sensitivity(3, 4);
    lk_end();
}

/* ---- bad models --------------------------------------------------------- */

static char *
find_bytes(lk_case *c, const char *what, size_t n)
{
    return memmem(c->file, c->file_n, what, n);
}

TEST(unknown_architecture_is_named)
{
    lk_case c = lk_get(lk_find("mamba2"));
    char *at = find_bytes(&c, "general.architecture", 20);
    lk_run r;

    ck_assert_ptr_nonnull(at);
    memcpy(at + 20 + 4 + 8, "mambo2", 6);
    ck_assert_int_eq(lk_open(&r, &c, NULL), BR_E_UNSUPPORTED);
    ck_assert_str_eq(r.st.msg, "architecture 'mambo2' is not known to this "
                               "build; did you mean 'mamba2'?");
    lk_end();
}

/* A tensor under another name is missing: either that is said by name, or the
 * model can be without it and then says something else. */
static void
check_missing(lk_case *c, const char *name)
{
    size_t n = strlen(name);
    char *at = c->file;
    lk_error e;
    lk_run r;

    do { /* the entry of the table: its length stands before the name */
        at = memmem(at + 1, (size_t)(c->file + c->file_n - at - 1), name, n);
        ck_assert_msg(at != NULL, "%s", name);
    } while ((uint8_t)at[-8] != n || at[-7] || at[-6]);
    at[n - 1] ^= 1;
    if (lk_open(&r, c, NULL) != BR_OK) {
        ck_assert_msg(strstr(r.st.msg, name) != NULL, "%s: %s: %s", c->name,
                      name, r.st.msg);
    } else {
        e = lk_compare(lk_logits(&r, c, 40, 0), c->want, 40, c->n_vocab);
        /* A scale of the last layer is undone by the norm after it. */
        if (!strstr(name, "layer_output"))
            ck_assert_msg(e.nmse > 1e-8, "%s: %s is not missed", c->name, name);
        lk_close(&r);
    }
    at[n - 1] ^= 1;
}

/* Another shape: a matrix of as many elements, or half a vector. False: this
 * one has no such sister. */
static bool
check_shape(lk_case *c, const char *name)
{
    size_t n = strlen(name);
    char *at = c->file, *dims;
    uint32_t n_dims;
    uint64_t d[2], was[2];
    lk_run r;

    do {
        at = memmem(at + 1, (size_t)(c->file + c->file_n - at - 1), name, n);
        ck_assert_msg(at != NULL, "%s", name);
    } while ((uint8_t)at[-8] != n || at[-7] || at[-6]);
    memcpy(&n_dims, at + n, 4);
    dims = at + n + 4;
    memcpy(d, dims, 16);
    memcpy(was, dims, 16);
    if (d[n_dims > 1] % 2)
        return false;
    d[n_dims > 1] /= 2;
    if (n_dims > 1)
        d[0] *= 2;
    memcpy(dims, d, n_dims > 1 ? 16 : 8);
    ck_assert_msg(lk_open(&r, c, NULL) != BR_OK, "%s: %s", c->name, name);
    ck_assert_msg(strstr(r.st.msg, name) != NULL, "%s: %s: %s", c->name, name,
                  r.st.msg);
    memcpy(dims, was, 16);
    return true;
}

static void
check_tensors_of_row(br_arch_id id)
{
    BR_VEC(char *) names = {0};
    br_status st = {0};
    size_t i, shapes = 0;
    lk_case c;
    br_gguf *g;

    if (!case_of_row(id, &i))
        return;
    c = lk_get(i);
    t_ok(br_gguf_open_mem(&g, c.file, c.file_n, &st), &st);
    for (size_t k = 0; k < br_gguf_n_tensors(g); k++) {
        br_text t = br_gguf_tensor_at(g, k)->name;

        ck_assert(br_vec_push(&names, t_printf("%.*s", (int)t.n, t.p)));
    }
    br_gguf_close(g);
    for (size_t k = 0; k < names.n; k++) {
        check_missing(&c, names.at[k]);
        shapes += check_shape(&c, names.at[k]);
    }
    ck_assert_msg(shapes * 10 > names.n * 9, "%s: %zu of %zu shapes", c.name,
                  shapes, names.n);
    br_vec_fini(&names);
}

static void
check_tensors(int part, int parts)
{
    for (int id = part; id < BR_ARCH_COUNT; id += parts)
        check_tensors_of_row((br_arch_id)id);
}

TEST_WITHIN(missing_or_misshapen_tensors_are_named_1_of_2, 120)
{
    t_not_for_tsan(NULL);
    check_tensors(0, 2);
    lk_end();
}

TEST_WITHIN(missing_or_misshapen_tensors_are_named_2_of_2, 120)
{
    t_not_for_tsan(NULL);
    check_tensors(1, 2);
    lk_end();
}

TEST(missing_key_is_named)
{
    lk_case c = lk_get(lk_find("mamba2"));
    char *at = find_bytes(&c, "mamba2.block_count", 18);
    lk_run r;

    at[17] = 'x';
    ck_assert_int_eq(lk_open(&r, &c, NULL), BR_E_FORMAT);
    ck_assert_str_eq(r.st.msg, "mamba2.block_count: there has to be this key");
    lk_end();
}

/* Files that lack what a model needs, or contradict themselves. Those that are
 * bad for a tokenizer only are its tests' business. */
TEST(bad_models_are_refused)
{
    static const char *const names[] = {"nokey_architecture",
                                        "nokey_embedding_length",
                                        "nokey_context_length",
                                        "notensor_token_embd_weight",
                                        "notensor_blk_0_attn_q_weight",
                                        "notensor_blk_0_attn_norm_weight",
                                        "shape_blk_0_attn_q_weight_32x16",
                                        "shape_token_embd_weight_16x288",
                                        "shape_blk_0_ffn_down_weight_64x32",
                                        "key_architecture_not-an-arch",
                                        "key_block_count_0",
                                        "key_block_count_two",
                                        "key_head_count_3",
                                        "key_embedding_length_2147483648",
                                        "key_dimension_count_64"};
    const char *dir = t_vectors("gguf_bad");

    if (!dir)
        t_skip("no ../shared/vectors here");
    for (size_t i = 0; i < BR_COUNT(names) + 1; i++) {
        lk_case c = {.name = i < BR_COUNT(names) ? names[i] : "ok_model"};
        lk_run r;

        c.file = t_read(t_printf("%s/%s.gguf", dir, c.name), &c.file_n);
        if (i == BR_COUNT(names)) {
            t_ok(lk_open(&r, &c, NULL), &r.st);
            lk_close(&r);
        } else {
            ck_assert_msg(lk_open(&r, &c, NULL) != BR_OK, "%s", c.name);
        }
    }
}

TEST(rope_factors_that_divide_by_nothing_are_refused)
{
    static const float bad[] = {0, -1, NAN};
    lk_case c = lk_get(lk_find("phi3-long"));
    br_status st = {0};
    br_gguf *g;
    size_t at;

    t_ok(br_gguf_open_mem(&g, c.file, c.file_n, &st), &st);
    at = (size_t)((const char *)br_gguf_tensor_find(g,
                                                    "rope_factors_long.weight")
                      ->data -
                  c.file);
    br_gguf_close(g);
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        lk_run r;

        memcpy(c.file + at + 3 * sizeof *bad, &bad[i], sizeof *bad);
        ck_assert_int_eq(lk_open(&r, &c, NULL), BR_E_FORMAT);
        ck_assert_str_eq(
            r.st.msg, t_printf("rope_factors_long.weight: number 3 is %g, has "
                               "to be above 0",
                               (double)bad[i]));
    }
    lk_end();
}

TEST(cli_logits_writes_rows_of_f32)
{
    lk_case c = lk_get(lk_find("mamba2"));
    const char *model = t_repo("tests/data/logits/mamba2.gguf");
    const char *out = t_printf("%s/l.f32", t_tmpdir());
    const char *list =
        t_printf("%d,%d %d", c.tokens[0], c.tokens[1], c.tokens[2]);
    const float *got;
    t_proc p;
    size_t n;

    t_run(&p, "logits", model, "--tokens", list, "-o", out, "--chunk", "2");
    ck_assert_msg(p.exit == 0, "%s", p.err);
    got = (const void *)t_read(out, &n);
    ck_assert_uint_eq(n, 3 * c.n_vocab * sizeof(float));
    ck_assert(lk_compare(got, c.want, 3, c.n_vocab).nmse < 1e-8);
    t_run(&p, "logits", model, "--tokens", "1,x", "-o", out);
    ck_assert_int_eq(p.exit, 2);
    t_run(&p, "logits", model, "--tokens", "1,320", "-o", out);
    ck_assert_int_eq(p.exit, 3);
    ck_assert_ptr_nonnull(strstr(p.err, "token 320 is not in 0..319"));
    t_run(&p, "logits", t_repo("models/demo.gguf"), "--tokens", "1", "--tier",
          "cuda", "-o", out);
    ck_assert_int_eq(p.exit, 5);
    lk_end();
}

/* Every way to name the tokens, every piece: the same bytes; --arith exact
 * means quantised activations, on every tier. */
TEST_WITHIN(cli_logits_are_the_same_from_tokens_text_and_file, 80)
{
    static const char text[] = "Once upon a time there was";
    const char *model = t_repo("models/demo.gguf"), *want;
    const char *ids = t_printf("%s/ids", t_tmpdir());
    const char *out = t_printf("%s/l.f32", t_tmpdir());
    size_t n, m;
    t_proc p;

    t_run(&p, "tokenize", model, "--ids", text);
    t_write(ids, p.out, p.n_out);
    t_run(&p, "logits", model, "-p", text, "-o", out);
    ck_assert_msg(p.exit == 0, "%s", p.err);
    want = t_read(out, &n);
    t_run(&p, "logits", model, "--tokens-file", ids, "-o", out, "--chunk", "2");
    ck_assert_msg(p.exit == 0, "%s", p.err);
    ck_assert_mem_eq(t_read(out, &m), want, n);
    ck_assert_uint_eq(m, n);
    t_run(&p, "logits", model, "-p", text, "--arith", "fast", "--act", "f32");
    ck_assert_uint_eq(p.n_out, n);
    ck_assert_mem_eq(p.out, want, n);
    t_run(&p, "logits", model, "-p", text, "--act", "quantised", "-o", out);
    ck_assert_int_ne(memcmp(t_read(out, &m), want, n), 0);
    want = t_read(out, &m);
    t_run(&p, "logits", model, "-p", text, "--arith", "exact");
    ck_assert_uint_eq(p.n_out, n);
    ck_assert_mem_eq(p.out, want, n);
    t_run(&p, "logits", model, "-p", text, "--arith", "exact", "--tier", "cpu",
          "-t", "3", "--chunk", "3");
    ck_assert_msg(p.n_out == n, "%s", p.err);
    ck_assert_mem_eq(p.out, want, n);
    t_run(&p, "logits", model, "-p", text, "--tier", "cpu", "--act", "f32");
    ck_assert_int_eq(p.exit, 2);
    t_run(&p, "logits", model, "-p", text, "--tokens", "1");
    ck_assert_str_eq(p.err, "brass logits: expected one of --tokens, "
                            "--tokens-file and --prompt (see brass logits "
                            "--help)\n");
    ck_assert_int_eq(p.exit, 2);
    t_run(&p, "logits", model, "-p", text, "--arith", "quick");
    ck_assert_int_eq(p.exit, 2);
}

TEST(cli_ir_show_reads_what_it_prints)
{
    const char *model = t_repo("tests/data/logits/gpt-oss.gguf");
    const char *file = t_printf("%s/g.ir", t_tmpdir());
    t_proc a, b;

    t_run(&a, "ir", "show", model);
    ck_assert_msg(a.exit == 0, "%s", a.err);
    t_write(file, a.out, a.n_out);
    t_run(&b, "ir", "show", file);
    ck_assert_str_eq(a.out, b.out);
    t_run(&b, "ir", "show", model, "--svg", "--dot");
    ck_assert_int_eq(b.exit, 2);
}

static br_code
open_once(void *arg, br_status *st)
{
    lk_run r;
    br_code code =
        lk_open(&r, arg, &(br_oracle_config){.n_ctx = 16, .max_rows = 1});

    if (code != BR_OK)
        return br_fail(st, code, "%s", r.st.msg);
    lk_close(&r);
    return BR_OK;
}

TEST_WITHIN(opening_a_model_survives_any_lack_of_memory, 120)
{
    t_not_for_tsan(NULL);
    lk_case c = lk_get(lk_find("mamba2"));

    t_each_oom(open_once, &c);
    lk_end();
}

TEST(a_step_that_does_not_fit_is_refused)
{
    lk_case c = lk_get(lk_find("gpt-oss"));
    int32_t slot = 0, pos = 0, tok = (int32_t)c.n_vocab;
    br_step s = {1, &slot, &pos, &tok, NULL, NULL, false, NULL};
    lk_run r;

    t_ok(lk_open(&r, &c, NULL), &r.st);
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_DECODE, NULL, &r.st),
                     BR_E_FORMAT);
    r.st = (br_status){0};
    tok = 0;
    slot = 1;
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_DECODE, NULL, &r.st),
                     BR_E_FORMAT);
    r.st = (br_status){0};
    slot = 0;
    pos = 5000;
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_DECODE, NULL, &r.st),
                     BR_E_LIMIT);
    lk_close(&r);
    lk_end();
}
