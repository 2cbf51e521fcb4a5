/* lower_make.c - see lower_make.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_make.h"

#include <string.h>

#include "t.h"

static br_arena manifest_arena;

const br_json *
lm_manifest(void)
{
    const char *dir = t_vectors("amk");
    br_status st = {0};
    br_json *m;
    char *text;
    size_t n;

    if (!dir)
        return NULL;
    text = t_read(t_printf("%s/manifest.json", dir), &n);
    br_arena_init(&manifest_arena, 0);
    t_ok(br_json_parse(&m, &manifest_arena, text, n, BR_JSON_LAX, &st), &st);
    return m;
}

void
lm_manifest_done(void)
{
    br_arena_fini(&manifest_arena);
}

static int64_t
num(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    ck_assert_msg(v && v->kind == BR_J_INT, "%s is an integer", key);
    return v->i;
}

static double
real(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    ck_assert_msg(v && (v->kind == BR_J_FLOAT || v->kind == BR_J_INT), "%s",
                  key);
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static const br_json *
given(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    return v && v->kind != BR_J_NULL ? v : NULL;
}

br_mega_prog *
lm_spec(const br_json *spec, br_status *st)
{
    const br_json *m = br_json_get(spec, "model");
    const br_json *quant = given(spec, "quant");
    const br_json *target = given(spec, "target");
    const br_json *dtype = br_json_get(spec, "dtype");
    br_mega_shape s = {
        .hidden = num(m, "hidden"),
        .n_heads = num(m, "n_heads"),
        .n_kv_heads = num(m, "n_kv_heads"),
        .head_dim = num(m, "head_dim"),
        .intermediate = num(m, "intermediate"),
        .vocab = num(m, "vocab"),
        .n_layers = num(m, "n_layers"),
        .max_seq = num(m, "max_seq"),
        .rms_eps = real(m, "rms_eps"),
        .rope_theta = real(m, "rope_theta"),
        .tied = br_json_get(spec, "tied")->b,
        .hf_keys = strcmp(br_json_get(spec, "key_scheme")->s, "toy") != 0,
        .source = br_json_get(spec, "source")->s,
    };
    br_mega_step step = {.batch = num(spec, "B"), .pos = num(spec, "pos")};
    br_mega_lower_opts o = {.style = BR_LOWER_AMK,
                            .config = given(spec, "config")};
    br_mega_prog *p = NULL;
    br_mega_net *net;

    step.dtype =
        (br_mega_dtype)br_mega_dtype_find((br_text){dtype->s, dtype->n});
    if (quant) {
        step.quant_bits = (int)num(quant, "bits");
        step.quant_group = num(quant, "group");
    }
    if (target)
        o.target = br_mega_target_find((br_text){target->s, target->n});
    if (br_mega_net_model(&net, &s, &step, st) != BR_OK)
        return NULL;
    (void)!br_mega_lower(&p, net, &o, NULL, st);
    br_mega_net_free(net);
    return p;
}
