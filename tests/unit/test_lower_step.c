/* test_lower_step.c - models as task programs: made, proved, kept.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logits_kit.h"
#include "mega/interp.h"
#include "mega/lower.h"
#include "mega/step.h"
#include "t.h"

T_ONE_THREAD();

static br_ir *
graph_of(size_t i, br_ir_stage stage)
{
    lk_case c = lk_get(i);
    br_status st = {0};
    br_ir *g;
    lk_run r;

    t_ok(lk_open(&r, &c, NULL), &r.st);
    t_ok(br_ir_of_model(&g, r.model, stage, 256, &st), &st);
    lk_close(&r);
    return g;
}

static br_mega_prog *
lowered(const br_ir *g, int64_t workers, int64_t rows, int64_t tile)
{
    br_step_config c = {workers, rows, tile};
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_lower_graph(&p, g, &c, &st), &st);
    return p;
}

/* "" or the first error. */
static const char *
verdict(const br_mega_prog *p)
{
    static char text[400];
    br_mega_report r;
    br_status st = {0};

    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    snprintf(text, sizeof text, "%s", r.ok ? "" : r.errors.at[0]);
    br_mega_report_fini(&r);
    return text;
}

TEST_WITHIN(every_architecture_lowers_to_a_program_that_is_accepted, 60)
{
    static const int64_t cfg[][3] = {{1, 1, 0}, {3, 1, 24}, {16, 64, 5}};

    for (size_t i = 0; i < lk_count(); i++) {
        if (!lk_get(i).arch_first)
            continue;
        for (int s = 0; s < BR_IR_STAGE_COUNT; s++) {
            br_ir *g = graph_of(i, (br_ir_stage)s);

            for (size_t k = 0; k < BR_COUNT(cfg); k++) {
                br_mega_prog *p = lowered(g, cfg[k][0], cfg[k][1], cfg[k][2]);

                ck_assert_msg(!*verdict(p), "%s: %s", g->name, verdict(p));
                for (size_t t = 0; t < p->n_tasks; t++)
                    ck_assert_int_lt(p->tasks[t].sm, cfg[k][0]);
                br_mega_free(p);
            }
            br_ir_free(g);
        }
    }
    lk_end();
}

TEST(a_program_of_a_model_is_saved_and_loaded_byte_for_byte)
{
    br_ir *g = graph_of(0, BR_IR_DECODE);
    br_mega_prog *p = lowered(g, 4, 1, 0), *q;
    br_str a = {0}, b = {0};
    br_status st = {0};

    t_ok(br_mega_save(p, &a, &st), &st);
    t_ok(br_mega_load(&q, a.at, a.n, &st), &st);
    t_ok(br_mega_save(q, &b, &st), &st);
    ck_assert_uint_eq(a.n, b.n);
    ck_assert(memcmp(a.at, b.at, a.n) == 0);
    ck_assert_uint_eq(q->graph->block_bytes, g->block_bytes);
    ck_assert(memcmp(q->graph->block, g->block, g->block_bytes) == 0);
    ck_assert_str_eq(verdict(q), "");
    br_mega_free(p);
    br_mega_free(q);
    br_ir_free(g);
    br_str_fini(&a);
    br_str_fini(&b);
    lk_end();
}

/* The number of tasks is a matter of columns, not of rows. */
TEST(more_rows_make_no_more_tasks)
{
    br_ir *g = graph_of(0, BR_IR_PREFILL);
    br_mega_prog *a = lowered(g, 4, 64, 16), *b = lowered(g, 4, 8192, 16);

    ck_assert_uint_eq(a->n_tasks, b->n_tasks);
    br_mega_free(a);
    br_mega_free(b);
    br_ir_free(g);
    lk_end();
}

/* Every wait is needed, as far as any is: without one the proof fails, or the
 * order is there by another way. Most have no other way. */
TEST_WITHIN(a_program_without_one_of_its_waits_is_refused, 60)
{
    br_ir *g = graph_of(0, BR_IR_DECODE);
    br_mega_prog *p = lowered(g, 4, 1, 16);
    size_t refused = 0, waits = 0;

    for (size_t t = 0; t < p->n_tasks; t++)
        for (uint32_t w = 0; w < p->tasks[t].n_waits; w++) {
            br_mega_task *task = &p->tasks[t], keep = *task;
            br_mega_wait less[BR_MEGA_MAX_WAITS];
            uint32_t n = 0;

            for (uint32_t k = 0; k < keep.n_waits; k++)
                if (k != w)
                    less[n++] = keep.waits[k];
            task->waits = less;
            task->n_waits = n;
            waits++;
            refused += *verdict(p) != 0;
            *task = keep;
        }
    ck_assert_msg(refused * 10 >= waits * 7, "%zu of %zu", refused, waits);
    br_mega_free(p);
    br_ir_free(g);
    lk_end();
}

/* ---- run ----------------------------------------------------------------- */

typedef struct run_config {
    int64_t workers, tile;
    uint64_t order;
    bool fused;
} run_config;

/* Logits of programs, decoding and in chunks, are those of the graph. */
static void
same_bits(lk_case *c, br_ref_act act, const run_config *k, size_t n_k)
{
    size_t bytes = 7 * (size_t)c->n_vocab * sizeof(float);
    br_oracle_config config = {.act = act, .max_rows = 8};
    const float *want;
    lk_run r;

    t_ok(lk_open(&r, c, &config), &r.st);
    want = lk_logits(&r, c, 7, 4);
    lk_close(&r);
    for (size_t i = 0; i < n_k; i++) {
        config.workers = (uint32_t)k[i].workers;
        config.tile = (uint32_t)k[i].tile;
        config.order = k[i].order;
        config.fused = k[i].fused;
        t_ok(lk_open(&r, c, &config), &r.st);
        ck_assert_msg(memcmp(lk_logits(&r, c, 7, i % 2 ? 4 : 1), want, bytes) ==
                          0,
                      "%s: %d workers, tiles of %d, order %d", c->name,
                      (int)k[i].workers, (int)k[i].tile, (int)k[i].order);
        lk_close(&r);
    }
}

TEST_WITHIN(programs_of_every_architecture_give_the_graphs_bits, 120)
{
    static const run_config k[] = {
        {1, 0, 0, false}, {3, 5, 1, true}, {16, 0, 2, false}, {4, 40, 3, true}};

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);

        if (c.arch_first)
            same_bits(&c, BR_REF_F32, k, BR_COUNT(k));
    }
    lk_end();
}

TEST_WITHIN(programs_give_the_graphs_bits_with_quantised_activations, 120)
{
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);

        if (strstr(c.name, "-q-"))
            same_bits(&c, BR_REF_QUANTISED, &(run_config){5, 7, i + 1, i % 2},
                      1);
    }
    lk_end();
}

/* The tier behind its interface, a program for each stage. */
TEST(the_reference_executor_runs_programs)
{
    lk_case c = lk_get(0);
    const br_mega_prog *p[2];
    br_exec_config ec = {.programs = p, .n_programs = 2};
    br_exec_state *s;
    br_exec *x;
    const float *want;
    float *got;
    void *save;
    lk_run r;

    t_ok(lk_open(&r, &c, NULL), &r.st);
    want = lk_logits(&r, &c, 2, 1);
    p[0] = lowered(r.o.graph[BR_IR_DECODE], 2, 1, 0);
    p[1] = lowered(r.o.graph[BR_IR_PREFILL], 2, 64, 0);
    t_ok(br_ref_exec.open(&x, r.model, &ec, &r.st), &r.st);
    t_ok(x->ops->state_new(x, &s, 1, (uint32_t[8]){8, 8, 8, 8, 8, 8, 8, 8},
                           &r.st),
         &r.st);
    got = t_keep(calloc(2u * c.n_vocab, sizeof *got));
    save = t_keep(calloc(1, x->ops->slot_bytes(x, s) + 1));
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < 2; i++) {
            int32_t slot = 0, pos = (int32_t)i;
            br_step step = {
                1,     &slot, &pos, &c.tokens[i], NULL, br_kv_tables(r.o.kv),
                false, NULL};

            t_ok(x->ops->step(x, i, s, &step, got + i * c.n_vocab, &r.st),
                 &r.st);
        }
        ck_assert_mem_eq(got, want, 2 * c.n_vocab * sizeof *got);
        x->ops->slot_reset(x, s, 0);
        x->ops->slot_save(x, s, 0, save);
        x->ops->slot_restore(x, s, 0, save);
    }
    x->ops->state_free(x, s);
    x->ops->close(x);
    for (int i = 0; i < 2; i++) {
        union {
            const br_mega_prog *from;
            br_mega_prog *to;
        } cast = {p[i]};

        br_mega_free(cast.to);
    }
    lk_close(&r);
    lk_end();
}

/* ---- what a file may hold ------------------------------------------------ */

static void
refused(br_mega_prog *p, const char *part)
{
    const char *why = verdict(p);

    ck_assert_msg(strstr(why, part), "'%s' does not say '%s'", why, part);
}

static br_json *
param(br_mega_task *t, const char *key)
{
    for (br_json *m = t->params->child; m; m = m->next)
        if (m->key_n == strlen(key) && memcmp(m->key, key, m->key_n) == 0)
            return m;
    ck_abort_msg("no %s", key);
}

static size_t
task_of(const br_mega_prog *p, int op)
{
    for (size_t t = 0; t < p->n_tasks; t++)
        if (p->tasks[t].op == BR_MOP_STEP + op)
            return t;
    ck_abort_msg("no such task");
}

TEST(tiles_that_do_not_fit_their_node_are_refused)
{
    br_ir *g = graph_of(lk_find("llama-untied-spm"), BR_IR_DECODE);
    br_mega_prog *p = lowered(g, 4, 1, 16);
    br_mega_task *m = &p->tasks[task_of(p, BR_IR_MATMUL)];
    br_mega_task *a = &p->tasks[task_of(p, BR_IR_FLASH_ATTN)];
    br_ir *graph = p->graph;
    int64_t out, *shape;

    ck_assert_str_eq(verdict(p), "");
    param(m, "n_off")->i = 8;
    refused(p, "starts at column 8, the one before it ended at 0");
    param(m, "n_off")->i = -16;
    refused(p, "columns [-16,0) are no whole grains of 1 within");
    param(m, "n_off")->i = 0;
    param(m, "N_tile")->i = 8;
    refused(p, "starts at column 16, the one before it ended at 8");
    param(m, "N_tile")->i = INT32_MAX;
    refused(p, "no whole grains");
    param(m, "N_tile")->i = 16;
    param(a, "N_tile")->i -= 1;
    refused(p, "no whole grains of 32");
    param(a, "N_tile")->i += 1;
    param(m, "node")->i = 1 << 20;
    refused(p, "node is not one of the graph's");
    param(m, "node")->i = -1;
    refused(p, "node is not one of the graph's");
    param(m, "node")->i = 0;
    refused(p, "the graph's node has another opcode");
    p->graph = NULL;
    refused(p, "carries no graph");
    p->graph = graph;
    param(m, "node")->i = 2;
    out = m->out[0];
    m->out = a->out;
    refused(p, "has the outputs [");
    m->out = &out;
    m->n_in = 1;
    refused(p, "has the inputs [");
    m->n_in = 2;
    ck_assert_str_eq(verdict(p), "");
    p->n_tasks--; /* the last tile of the head */
    refused(p, "columns");
    p->n_tasks++;
    shape = t_keep(calloc(1, sizeof *shape));
    *shape = 7;
    p->buffers[out].shape = shape;
    refused(p, "has another number of elements than value");
    br_mega_free(p);
    br_ir_free(g);
    lk_end();
}

static void
load_fails(const char *ext, const char *part)
{
    char text[400];
    br_status st = {0};
    br_mega_prog *p;

    snprintf(text, sizeof text,
             "{\"ir_version\":\"0.2.0\",\"abi_version\":\"0.2\",\"buffers\":[],"
             "\"counters\":[],\"tasks\":[],\"meta\":{\"extensions\":{\"step\":"
             "%s}}}",
             ext);
    ck_assert_int_ne(br_mega_load(&p, text, strlen(text), &st), BR_OK);
    ck_assert_ptr_null(p);
    ck_assert_msg(strstr(st.msg, part), "'%s'", st.msg);
}

TEST(an_extension_that_is_no_graph_is_refused)
{
    load_fails("1", "has to hold rows");
    load_fails("{\"rows\":1}", "has to hold rows");
    load_fails("{\"rows\":0,\"graph\":[]}", "has to hold rows");
    load_fails("{\"rows\":1,\"graph\":[1]}", "no line of text");
    load_fails("{\"rows\":1,\"graph\":[\"a\\nb\"]}", "no line of text");
    load_fails("{\"rows\":1,\"graph\":[\"nonsense\"]}", "step.graph: ");
}

/* A value of 20 pieces: whoever reads it waits for 20 nodes, 8 at a time. */
TEST(more_than_eight_waits_go_through_joins)
{
    br_str text = {0};
    br_status st = {0};
    br_mega_prog *p;
    size_t joins = 0;
    br_ir *g;

    br_str_puts(&text, "graph wide stage=decode\n"
                       "value step.token I32 [T,1]\n"
                       "value model.embed_table F32 [64,32]\n"
                       "value t.x F32 [T,32]\n"
                       "value t.parts F32 [T,20]\n"
                       "value model.out_weight F32 [64,20]\n"
                       "value step.logits F32 [T,64]\n"
                       "node EMBED step.token model.embed_table -> t.x\n");
    for (int i = 0; i < 20; i++)
        br_str_printf(&text, "node COPY t.x{%d:1} -> t.parts{%d:1}\n", i, i);
    br_str_puts(&text, "node LM_HEAD t.parts model.out_weight - -> "
                       "step.logits\n");
    t_ok(br_ir_parse(&g, text.at, text.n, &st), &st);
    p = lowered(g, 3, 1, 0);
    for (size_t t = 0; t < p->n_tasks; t++) {
        ck_assert_uint_le(p->tasks[t].n_waits, BR_MEGA_MAX_WAITS);
        joins += p->tasks[t].op == BR_MOP_NOP;
    }
    ck_assert_uint_eq(joins, 2); /* 20 = 8 + 8 + 4, and two joins */
    ck_assert_str_eq(verdict(p), "");
    br_mega_free(p);
    br_ir_free(g);
    br_str_fini(&text);
}

/* What runs tensors has no tier; a recipe's steps are upstream's ops. */
TEST(step_tasks_run_on_tiers_alone)
{
    br_ir *g = graph_of(0, BR_IR_DECODE);
    br_mega_prog *p = lowered(g, 1, 1, 0);
    br_status st = {0};
    br_mega_vm *vm;

    ck_assert_int_eq(br_mega_vm_new(&vm, p, NULL, &st), BR_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(st.msg, "tasks[0]: STEP_EMBED is of a model"));
    br_mega_free(p);
    br_ir_free(g);
    lk_end();
}

static br_code
lower_once(void *arg, br_status *st)
{
    br_step_config c = {3, 1, 0};
    br_mega_prog *p;
    br_str text = {0};
    br_code code = br_mega_lower_graph(&p, arg, &c, st);

    if (code == BR_OK) {
        code = br_mega_save(p, &text, st);
        br_mega_free(p);
    }
    if (code == BR_OK) {
        code = br_mega_load(&p, text.at, text.n, st);
        if (code == BR_OK)
            br_mega_free(p);
    }
    br_str_fini(&text);
    return code;
}

TEST_WITHIN(lowering_says_when_memory_is_out, 60)
{
    static const char text[] =
        "graph small stage=decode\n"
        "value step.token I32 [T,1]\n"
        "value model.embed.weight Q8_0 [64,32]\n"
        "value t.x F32 [T,32]\n"
        "value step.logits F32 [T,64]\n"
        "node EMBED step.token model.embed.weight -> t.x\n"
        "node LM_HEAD t.x model.embed.weight - -> step.logits\n";
    br_status st = {0};
    br_ir *g;

    t_ok(br_ir_parse(&g, text, strlen(text), &st), &st);
    t_each_oom(lower_once, g);
    br_ir_free(g);
}

/* Every pattern of the pass is met by some architecture. */
TEST_WITHIN(every_fused_opcode_comes_out_of_fusing, 60)
{
    static const int ops[] = {
        BR_IR_RMS_NORM_FUSED_QKV, BR_IR_RMS_NORM_FUSED_MLP_GATE_UP,
        BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE, BR_IR_RESIDUAL_RMS_NORM};
    size_t seen[BR_COUNT(ops)] = {0}, residuals = 0, models = 0;

    for (size_t i = 0; i < lk_count(); i++) {
        br_status st = {0};
        br_ir *g, *f;

        if (!lk_get(i).arch_first)
            continue;
        models++;
        g = graph_of(i, BR_IR_DECODE);
        t_ok(br_ir_fuse(&f, g, &st), &st);
        ck_assert_uint_lt(f->n_nodes, g->n_nodes);
        for (uint32_t n = 0; n < f->n_nodes; n++) {
            for (size_t k = 0; k < BR_COUNT(ops); k++)
                seen[k] += f->nodes[n].op == ops[k];
            residuals += f->nodes[n].op == BR_IR_MOE_DOWN_ACC &&
                         f->nodes[n].bind[6].value != BR_IR_NONE;
        }
        br_ir_free(f);
        br_ir_free(g);
    }
    for (size_t k = 0; models > 3 && k < BR_COUNT(ops); k++)
        ck_assert_msg(seen[k], "no %s", br_ir_opinfo_of(ops[k])->name);
    ck_assert(models <= 3 || residuals);
    lk_end();
}

static br_code
fuse_once(void *arg, br_status *st)
{
    br_ir *f;
    br_code code = br_ir_fuse(&f, arg, st);

    if (code == BR_OK)
        br_ir_free(f);
    return code;
}

TEST_WITHIN(fusing_says_when_memory_is_out, 60)
{
    br_ir *g = graph_of(0, BR_IR_DECODE);

    t_each_oom(fuse_once, g);
    br_ir_free(g);
    lk_end();
}

TEST(a_config_out_of_range_is_refused)
{
    static const br_step_config bad[] = {
        {0, 1, 0}, {1, 0, 0}, {1, 1, -1}, {1, 1 << 21, 0}, {1 << 21, 1, 0}};
    br_ir *g = graph_of(0, BR_IR_DECODE);

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};
        br_mega_prog *p;

        ck_assert_int_eq(br_mega_lower_graph(&p, g, &bad[i], &st), BR_E_FORMAT);
        ck_assert_ptr_null(p);
    }
    br_ir_free(g);
    lk_end();
}

/* step.def has a letter for each binding of each opcode that tasks compute. */
TEST(every_opcode_has_its_parts)
{
    for (int op = 0; op < BR_IR_OP_LIMIT; op++) {
        br_ir_node n = {.op = (uint16_t)op};
        br_ir_role role;
        br_step_cut cut;

        while (br_ir_role_at(op, false, n.n_in, &role))
            n.n_in++;
        while (br_ir_role_at(op, true, n.n_out, &role))
            n.n_out++;
        for (int b = 0; b < BR_IR_MAX_BINDINGS; b++)
            n.bind[b] = (br_ir_bind){BR_IR_NONE, 0, 1, 1, 1};
        if (br_step_cut_of(&n, &cut))
            ck_assert_int_eq(br_step_parts(&n), n.n_in + n.n_out);
    }
}

TEST(block_formats_are_dtypes_from_32_up)
{
    ck_assert_int_eq(br_mega_dtype_find(BR_TEXT("Q4_K")), 32 + 12);
    ck_assert_str_eq(br_mega_dtype_name(32 + 12), "Q4_K");
    ck_assert_int_eq(br_mega_dtype_bits(32 + 12), 5); /* 4.5 */
    ck_assert_int_eq(br_mega_dtype_bytes(32 + 12, 512), 288);
    ck_assert_int_eq(br_mega_dtype_bytes(32 + 12, 257), 288);
    ck_assert_int_eq(br_mega_dtype_bytes(32 + 8, INT64_MAX), -1);
    ck_assert_int_eq(br_mega_dtype_of_qtype(0), BR_MDT_F32);
    ck_assert_int_eq(br_mega_dtype_of_qtype(12), 44);
    ck_assert_int_eq(br_mega_dtype_of_qtype(63), 95);
    ck_assert_str_eq(br_mega_dtype_name(95), "F8_E5M2");
    ck_assert_int_eq(br_mega_dtype_of_qtype(61), -1);
    ck_assert_str_eq(br_mega_dtype_name(93), "?");
}
