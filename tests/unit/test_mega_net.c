/* test_mega_net.c - networks: shapes are inferred and checked, graph files
 * are read strictly and written back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdlib.h>
#include <string.h>

#include "lower_make.h"

T_ONE_THREAD();

/* A GPT-like block: layer norms with biases, GELU, no rope, argmax. */
static const char graph[] =
    "{'name':'tiny','dtype':'F32','batch':1,'pos':2,'max_seq':8,"
    "'inputs':{'token_id':{'shape':[1]}},"
    "'weights':{'wte':{'shape':[20,8]},'ln.w':{'shape':[8]},"
    "'ln.b':{'shape':[8]},'qkv.q':{'shape':[8,8]},'qkv.k':{'shape':[8,8]},"
    "'qkv.v':{'shape':[8,8]},'o':{'shape':[8,8]},'o.b':{'shape':[8]},"
    "'fc':{'shape':[24,8]},'fc.b':{'shape':[24]},'proj':{'shape':[8,24]}},"
    "'nodes':["
    "{'op':'embed','in':['token_id'],'out':'h','weight':'wte'},"
    "{'op':'layernorm','in':['h'],'out':'n','weight':'ln.w','bias':'ln.b',"
    "'eps':1e-5},"
    "{'op':'linear','role':'q_proj','in':['n'],'out':'q','weight':'qkv.q'},"
    "{'op':'linear','role':'k_proj','in':['n'],'out':'k','weight':'qkv.k'},"
    "{'op':'linear','role':'v_proj','in':['n'],'out':'v','weight':'qkv.v'},"
    "{'op':'heads','in':['q'],'out':'qh','heads':2,'head_dim':4,'which':'q'},"
    "{'op':'kv_append','in':['k'],'out':'kc','kv_heads':2,'head_dim':4},"
    "{'op':'kv_append','in':['v'],'out':'vc','kv_heads':2,'head_dim':4},"
    "{'op':'attention','in':['qh','kc','vc'],'out':'a','heads':2,'kv_heads':2,"
    "'head_dim':4,'scale':0.5},"
    "{'op':'linear','in':['a'],'out':'ao','weight':'o','bias':'o.b'},"
    "{'op':'add','in':['h','ao'],'out':'r'},"
    "{'op':'linear','in':['r'],'out':'f','weight':'fc','bias':'fc.b'},"
    "{'op':'gelu','in':['f'],'out':'g'},"
    "{'op':'mul','in':['g'],'out':'gs','scale':2},"
    "{'op':'linear','in':['gs'],'out':'p','weight':'proj'},"
    "{'op':'add','name':'last','in':['r','p'],'out':'r2'},"
    "{'op':'linear','role':'lm_head','in':['r2'],'out':'logits',"
    "'weight':'wte'},"
    "{'op':'argmax','in':['logits'],'out':'next'}],"
    "'outputs':['logits','next']}";

static char *
quoted(const char *text)
{
    char *s = t_keep(strdup(text));

    for (char *c = s; *c; c++)
        if (*c == '\'')
            *c = '"';
    return s;
}

static br_mega_net *
parse(const char *text)
{
    char *s = quoted(text);
    br_status st = {0};
    br_mega_net *n;

    t_ok(br_mega_net_parse(&n, s, strlen(s), &st), &st);
    return n;
}

TEST(net_reads_a_graph_file)
{
    br_mega_net *n = parse(graph);
    const br_net_tensor *t = n->tensors.at;

    ck_assert_str_eq(n->source, "tiny");
    ck_assert_uint_eq(n->nodes.n, 18);
    ck_assert_int_eq(t[br_net_find(n, "qh")].rank, 2);
    ck_assert_int_eq(t[br_net_find(n, "kc")].shape[0], 8);
    ck_assert_int_eq(t[br_net_find(n, "f")].shape[1], 24);
    ck_assert_int_eq(t[br_net_find(n, "next")].dtype, BR_MDT_I32);
    ck_assert_int_eq(t[br_net_find(n, "logits")].kind, BR_MBK_IO_OUTPUT);
    ck_assert_str_eq(n->nodes.at[0].name, "h"); /* no name: the output's */
    br_mega_net_free(n);
}

TEST(net_of_another_family_lowers_and_runs)
{
    br_mega_net *n = parse(graph);
    br_mega_prog *p = lm_lower(n, "h100", NULL, NULL);
    br_mega_prog *q =
        lm_lower(n, "cpu",
                 "{'tiling':{'gemv':{'N_tile':24}},"
                 "'fusion_grouping':[['linear','gelu','mul','linear','last']]}",
                 NULL);
    size_t np, nq;
    float *a = lm_run(p, &np), *b = lm_run(q, &nq);

    ck_assert_uint_eq(np, 20);
    ck_assert_int_eq(memcmp(a, b, np * sizeof *a), 0);
    ck_assert_int_eq(q->tasks[q->n_tasks - 3].op, BR_MOP_FUSED);
    br_mega_free(p);
    br_mega_free(q);
    br_mega_net_free(n);
    lm_forget();
}

/* The graph with one piece of its text replaced. */
static char *
with(const char *from, const char *to)
{
    const char *at = strstr(graph, from);

    ck_assert_msg(at != NULL, "'%s' is in the graph", from);
    return t_printf("%.*s%s%s", (int)(at - graph), graph, to,
                    at + strlen(from));
}

/* The logits are a result, and the group reads them: they need a buffer. */
TEST(net_a_result_that_is_read_again_keeps_a_group_from_fusing)
{
    br_mega_net *n = parse(with("['logits','next']", "['logits']"));
    br_mega_lower_stats stats;
    br_mega_prog *p = lm_lower(
        n, "cpu",
        "{'tiling':{'gemv':{'N_tile':24}},'fusion_grouping':[['lm_head',"
        "'argmax']]}",
        &stats);

    ck_assert_uint_eq(stats.fused_groups, 0);
    ck_assert_uint_eq(stats.resident_groups, 1);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

/* ---- what is refused ----------------------------------------------------- */

TEST(net_refuses_graphs_that_do_not_fit)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {"'max_seq':8", "'max_seq':2", "pos 2 is not in 0..1"},
        {"'batch':1", "'batch':0", "batch 0"},
        {"'batch':1", "'batch':99999", "batch 99999"},
        {"'batch':1", "'batsh':1", "no field 'batsh'"},
        {"'dtype':'F32'", "'dtype':'F33'", "'F33' is no dtype"},
        {"'dtype':'F32'", "'dtype':7", "dtype: an integer, not a string"},
        {"'fc':{'shape':[24,8]}", "'fc':{'shape':[24,9]}",
         "nodes[11]: 'fc' [24, 9]: does not have as many columns"},
        {"'fc':{'shape':[24,8]}", "'fc':{'shape':[24,0]}", "dimension 0"},
        {"'fc':{'shape':[24,8]}", "'fc':{'shape':[]}", "fc.shape"},
        {"'fc':{'shape':[24,8]}", "'fc':{'shape':[24,'8']}", "fc.shape"},
        {"'fc':{'shape':[24,8]}", "'fc':{'shape':[2147483647,2147483647]}",
         "2^40"},
        {"'fc.b':{'shape':[24]}", "'fc.b':{'shape':[23]}", "bias per row"},
        {"'ln.b':{'shape':[8]}", "'ln.b':{'shape':[8],'quant':true}",
         "only false"},
        {"'ln.w':{'shape':[8]}", "'ln.w':{'shape':[8],'dtype':'I4'}",
         "neither F32, F16 nor BF16"},
        {"'op':'gelu'", "'op':'gelou'", "nodes[12].op: 'gelou'"},
        {"'op':'gelu'", "'op':'swiglu'", "swiglu takes 2..2 inputs"},
        {"'in':['f']", "'in':['zz']", "no tensor 'zz' so far"},
        {"'in':['f']", "'in':['wte']", "a weight cannot be an input"},
        {"'in':['f']", "'in':['kc']", "caches are read by attention alone"},
        {"'in':['f']", "'in':['token_id']", "integers"},
        {"'in':['f']", "'in':[]", "nodes[12].in"},
        {"'out':'g'}", "'out':'f'}", "there are two of them"},
        {"'out':'g'}", "'out':''}", "a name is empty"},
        {"'out':'g'}", "'out':'g','scale':1}", "gelu has none"},
        {"'scale':2}", "'skale':2}", "no field 'skale'"},
        {",'eps':1e-5", "", "nodes[1].eps: missing"},
        {"'eps':1e-5", "'eps':true", "nodes[1].eps"},
        {"'eps':1e-5", "'eps':-1", "eps -1 is negative"},
        {"'heads':2,'head_dim':4,'which':'q'",
         "'heads':3,'head_dim':4,"
         "'which':'q'",
         "neither these heads"},
        {"'which':'q'", "'which':'z'", "neither \"q\" nor \"k\""},
        {"'kv_heads':2,'head_dim':4},{'op':'kv_append','in':['v']",
         "'kv_heads':4,'head_dim':4},{'op':'kv_append','in':['v']",
         "no row of this cache"},
        {"'in':['qh','kc','vc']", "'in':['q','kc','vc']", "not cut into"},
        {"'in':['qh','kc','vc']", "'in':['qh','kc','h']",
         "caches are read by attention alone"},
        {"'weight':'proj'}", "'weight':'h'}", "'h' is no weight"},
        {"'weight':'proj'}", "'bias':'proj'}", "needs a weight"},
        {"'op':'gelu','in':['f'],'out':'g'",
         "'op':'gelu','in':['f'],"
         "'out':'g','weight':'fc'",
         "takes no weight"},
        {"['logits','next']", "[]", "it has no output"},
        {"['logits','next']", "['h','h']", "named twice"},
        {"['logits','next']", "['wte']", "no node computes it"},
        {"['logits','next']", "'logits'", "outputs: a string"},
        {"'name':'tiny'", "'quant':{'bits':5,'group':8}", "quant"},
        {"'name':'tiny'", "'quant':{'bits':8,'group':0}", "group 0"},
        {"'name':'tiny'", "'quant':{'bits':8,'group':8}", "takes no bias"},
        {"{'name'", "[{'name'", "line"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        char *s = quoted(with(bad[i].from, bad[i].to));
        br_status st = {0};
        br_mega_net *n;

        if (br_mega_net_parse(&n, s, strlen(s), &st) == BR_OK)
            ck_abort_msg("%s -> %s was accepted", bad[i].from, bad[i].to);
        ck_assert_ptr_null(n);
        if (!strstr(st.msg, bad[i].says))
            ck_abort_msg("%s -> %s: '%s'", bad[i].from, bad[i].to, st.msg);
    }
}

/* ---- writing ------------------------------------------------------------- */

static char *
written(const br_mega_net *n)
{
    br_str s = {0};
    char *out;

    br_mega_net_write(n, &s);
    ck_assert(!s.oom);
    out = t_keep(strdup(br_str_z(&s)));
    br_str_fini(&s);
    return out;
}

TEST(net_written_and_read_lowers_to_the_same_bytes)
{
    uint64_t seed = 99;

    for (int i = 0; i < 30; i++) {
        br_mega_net *n = lm_random_net(&seed), *m;
        char *text = written(n);
        br_status st = {0};
        br_mega_prog *p, *q;

        t_ok(br_mega_net_parse(&m, text, strlen(text), &st), &st);
        ck_assert_str_eq(written(m), text);
        p = lm_lower(n, "l4", NULL, NULL);
        q = lm_lower(m, "l4", NULL, NULL);
        ck_assert_str_eq(lm_text(p), lm_text(q));
        br_mega_free(p);
        br_mega_free(q);
        br_mega_net_free(n);
        br_mega_net_free(m);
    }
    lm_forget();
}

TEST(net_weights_that_a_table_shares_stay_floats)
{
    br_mega_shape s = *br_mega_shape_find(BR_TEXT("smollm2-135m"));
    br_mega_step step = {
        .dtype = BR_MDT_F16, .quant_bits = 8, .quant_group = 64};
    br_status st = {0};
    br_mega_net *n;
    int32_t id;

    s.n_layers = 1;
    t_ok(br_mega_net_model(&n, &s, &step, &st), &st);
    id = br_net_find(n, "model.embed_tokens.weight"); /* the head as well */
    ck_assert(!n->tensors.at[id].quant);
    id = br_net_find(n, "model.layers.0.mlp.up_proj.weight");
    ck_assert(n->tensors.at[id].quant);
    br_mega_net_free(n);
}

TEST(net_shapes_out_of_range_are_named)
{
    br_mega_step step = {.dtype = BR_MDT_F32};
    br_mega_shape s = *br_mega_shape_find(BR_TEXT("toy"));
    br_status st = {0}, st2 = {0}, st3 = {0};
    br_mega_net *n;

    s.hidden = 0;
    ck_assert_int_eq(br_mega_net_model(&n, &s, &step, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "hidden 0"));
    s = *br_mega_shape_find(BR_TEXT("toy"));
    s.head_dim = 7;
    ck_assert_int_eq(br_mega_net_model(&n, &s, &step, &st2), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st2.msg, "odd"));
    s = *br_mega_shape_find(BR_TEXT("toy"));
    s.n_kv_heads = 3;
    ck_assert_int_eq(br_mega_net_model(&n, &s, &step, &st3), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st3.msg, "share"));
}

static br_code
parse_oom(void *arg, br_status *st)
{
    const char *s = arg;
    br_mega_net *n;

    BR_TRY(br_mega_net_parse(&n, s, strlen(s), st));
    br_mega_net_free(n);
    return BR_OK;
}

static br_code
model_oom(void *arg, br_status *st)
{
    br_mega_step step = {
        .dtype = BR_MDT_F32, .quant_bits = 4, .quant_group = 16};
    br_mega_net *n;

    BR_TRY(br_mega_net_model(&n, arg, &step, st));
    br_mega_net_free(n);
    return BR_OK;
}

TEST(net_survives_any_failed_allocation)
{
    br_mega_shape s = *br_mega_shape_find(BR_TEXT("toy"));

    t_each_oom(parse_oom, quoted(graph));
    t_each_oom(model_oom, &s);
}

/* Names decide nothing but identity: many of them, found again. */
TEST(net_finds_ten_thousand_names)
{
    br_net_open o = {.source = "many", .batch = 1, .max_seq = 1};
    br_status st = {0};
    br_mega_net *n;
    int32_t id;

    t_ok(br_mega_net_open(&n, &o, &st), &st);
    for (int i = 0; i < 10000; i++) {
        br_net_tensor t = {.name = t_printf("w%d", i),
                           .kind = BR_MBK_WEIGHT,
                           .rank = 1,
                           .shape = {1}};

        t_ok(br_net_add_tensor(n, &t, &id, &st), &st);
    }
    for (int i = 0; i < 10000; i += 7)
        if (br_net_find(n, t_printf("w%d", i)) != i)
            ck_abort_msg("w%d", i);
    ck_assert_int_eq(br_net_find(n, "w10000"), BR_NET_NONE);
    br_mega_net_free(n);
}
