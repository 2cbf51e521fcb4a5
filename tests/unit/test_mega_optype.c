/* test_mega_optype.c - what each opcode asks of its operands: for every rule a
 * task that breaks it, next to one that does not.
 *
 * A row is operands and a task, as prog_text.h has them; the operands of a
 * case come first, the last of them is the output. why NULL: accepted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prog_text.h"

#include <stdio.h>
#include <string.h>

#include "mega/footprint.h"

typedef struct row {
    const char *operands; /* "KIND DTYPE SHAPE; ..", the output last */
    const char *task;     /* op and parameters */
    const char *why;
} row;

/* "b0 IO_INPUT F32 [1,4]", ... then a task of them all. */
static void
try_row(const row *r)
{
    char *list = t_printf("%s", r->operands), *save = NULL, *one;
    const char *params = strchr(r->task, ' ') ? strchr(r->task, ' ') : "";
    br_str s = {0}, ids = {0};
    int n = 0;

    for (one = strtok_r(list, ";", &save); one;
         one = strtok_r(NULL, ";", &save))
        br_str_printf(&s, "b b%d %s\n", n++, one + strspn(one, " "));
    for (int i = 0; i < n - 1; i++)
        br_str_printf(&ids, "%s%d", i ? "," : "", i);
    br_str_printf(&s, "t %.*s %s > %d%s\n", (int)strcspn(r->task, " "), r->task,
                  br_str_z(&ids), n - 1, params);
    if (r->why)
        pt_refuses(br_str_z(&s), r->why);
    else
        pt_accepts(br_str_z(&s));
    br_str_fini(&s);
    br_str_fini(&ids);
}

#define TRY(...)                                    \
    do {                                            \
        static const row rows[] = {__VA_ARGS__};    \
        for (size_t i = 0; i < BR_COUNT(rows); i++) \
            try_row(&rows[i]);                      \
    } while (0)

#define X14 "IO_INPUT F32 [1,4]"
#define O14 "IO_OUTPUT F32 [1,4]"

TEST(op_copy_casts_and_broadcasts)
{
    TRY({X14 ";" O14, "COPY", NULL},
        {"IO_INPUT I32 [4];IO_OUTPUT F16 [2,4]", "COPY", NULL},
        {"IO_INPUT F32 [2,1];IO_OUTPUT F32 [2,4]", "COPY", NULL},
        {"IO_INPUT F32 [1,1,4];IO_OUTPUT F32 [2,4]", "COPY", NULL},
        {"IO_INPUT F32 [3];" O14, "COPY", "does not broadcast"},
        {"IO_INPUT F32 [4,1];" O14, "COPY", "does not broadcast"},
        {"IO_INPUT I4 [1,4];" O14, "COPY", "anything but packed I4"},
        {X14 ";IO_OUTPUT I4 [1,4]", "COPY", "which no op writes"});
}

TEST(op_embed_gathers_rows)
{
    TRY({"IO_INPUT I32 [3];WEIGHT F16 [9,4];IO_OUTPUT F32 [3,4]",
         "EMBED {'hidden':4}", NULL},
        /* rows of another shape: hidden is that of the output */
        {"IO_INPUT I32 [1];WEIGHT F16 [1,8];IO_OUTPUT F32 [2,4]",
         "EMBED {'hidden':4}", NULL},
        {"IO_INPUT I32 [3];WEIGHT F16 [9,4];IO_OUTPUT F32 [3,4]",
         "EMBED {'hidden':2}", "hidden=2 is neither"},
        {"IO_INPUT I32 [2];WEIGHT F16 [9,4];IO_OUTPUT F32 [3,4]",
         "EMBED {'hidden':4}", "2 ids x rows of 4 do not make 12"},
        {"IO_INPUT F32 [3];WEIGHT F16 [9,4];IO_OUTPUT F32 [3,4]",
         "EMBED {'hidden':4}", "ids has dtype F32, needs I32, I8 or U8"},
        {"IO_INPUT I32 [3];WEIGHT I4 [9,4];IO_OUTPUT F32 [3,4]",
         "EMBED {'hidden':4}", "the table has dtype I4"},
        {"IO_INPUT I32 [1];WEIGHT F16 [];IO_OUTPUT F32 [1]",
         "EMBED {'hidden':1}", "the table has no rows"});
}

TEST(op_norms_go_by_rows)
{
    TRY({X14 ";WEIGHT F16 [4];" O14, "RMSNORM {'eps':1e-6,'hidden':4}", NULL},
        {X14 ";WEIGHT F16 [1,4];" O14, "RMSNORM {'eps':0,'hidden':4}", NULL},
        {X14 ";WEIGHT F16 [4];" O14, "RMSNORM {'eps':-1e-6,'hidden':4}",
         "eps=-1e-06 must not be negative"},
        {X14 ";WEIGHT F16 [4];" O14, "RMSNORM {'eps':1e-6,'hidden':8}",
         "hidden=8 but a row of x is 4"},
        {X14 ";WEIGHT F16 [3];" O14, "RMSNORM {'eps':1e-6,'hidden':4}",
         "the weight has 3 elements for rows of 4"},
        {X14 ";WEIGHT I8 [4];" O14, "RMSNORM {'eps':1e-6,'hidden':4}",
         "the weight has dtype I8"},
        {"IO_INPUT F32 [];WEIGHT F32 [1];IO_OUTPUT F32 []",
         "RMSNORM {'eps':1e-6,'hidden':1}", "no row to normalise"},
        {X14 ";WEIGHT F32 [4];IO_OUTPUT F32 [4]",
         "RMSNORM {'eps':1e-6,'hidden':4}", "different shapes"},
        {X14 ";WEIGHT F16 [4];CONST F32 [4];" O14,
         "LAYERNORM {'eps':1e-6,'hidden':4}", NULL},
        {X14 ";WEIGHT F16 [4];CONST F32 [2,4];" O14,
         "LAYERNORM {'eps':1e-6,'hidden':4}",
         "the bias has 8 elements for rows of 4"},
        {"IO_INPUT I32 [1,4];WEIGHT F16 [4];" O14,
         "LAYERNORM {'eps':1e-6,'hidden':4}", "x has dtype I32"},
        {X14 ";WEIGHT F16 [4];IO_OUTPUT I32 [1,4]",
         "LAYERNORM {'eps':1e-6,'hidden':4}", "the output has dtype I32"});
}

#define GEMV "GEMV_TILE {'K':4,'N_tile':3,'n_off':0}"
#define O13  "IO_OUTPUT F32 [1,3]"

TEST(op_gemv_tiles_fit)
{
    TRY({X14 ";WEIGHT F16 [3,4];" O13, GEMV, NULL},
        {"IO_INPUT F32 [4];WEIGHT F16 [3,4];IO_OUTPUT F32 [3]", GEMV, NULL},
        {"IO_INPUT F32 [2,2,4];WEIGHT F16 [3,4];IO_OUTPUT F32 [4,3]", GEMV,
         NULL},
        {X14 ";WEIGHT F16 [3,4];CONST F32 [3];" O13, GEMV, NULL},
        {X14 ";WEIGHT F16 [3,5];" O13, GEMV,
         "K=4 but a row of the weight is 5"},
        {"IO_INPUT F32 [1,5];WEIGHT F16 [3,4];" O13, GEMV,
         "K=4 but a row of x is 5"},
        {X14 ";WEIGHT F16 [3,4];" O13, "GEMV_TILE {'K':0,'N_tile':3,'n_off':0}",
         "K=0 must be positive"},
        {X14 ";WEIGHT F16 [3,4];" O13, "GEMV_TILE {'K':4,'N_tile':0,'n_off':0}",
         "N_tile=0 must be positive"},
        {X14 ";WEIGHT F16 [3,4];" O13,
         "GEMV_TILE {'K':4,'N_tile':3,'n_off':-1}",
         "n_off=-1 must not be negative"},
        {X14 ";WEIGHT F16 [4,4];" O13, "GEMV_TILE {'K':4,'N_tile':4,'n_off':0}",
         "tile columns [0,4) outside the output's 3"},
        {X14 ";WEIGHT F16 [2,4];" O13, GEMV,
         "tile columns [0,3) outside the weight's 2 rows"},
        {X14 ";WEIGHT F16 [3,4];CONST F32 [2];" O13, GEMV,
         "tile columns [0,3) outside the bias's 2"},
        {X14 ";WEIGHT F16 [3,4];CONST I32 [3];" O13, GEMV, "the bias needs"},
        {X14 ";WEIGHT F16 [3,4];CONST F32 [3,1];" O13, GEMV, "the bias needs"},
        {"IO_INPUT F32 [2,4];WEIGHT F16 [3,4];" O13, GEMV,
         "x has 2 rows, the output 1"},
        {"IO_INPUT I32 [1,4];WEIGHT F16 [3,4];" O13, GEMV, "x has dtype I32"},
        {X14 ";WEIGHT F16 [3,4];IO_OUTPUT I32 [1,3]", GEMV,
         "the output has dtype I32"},
        {X14 ";WEIGHT F16 [1,3,4];" O13, GEMV, "the weight has rank 3"},
        {"IO_INPUT F32 [];WEIGHT F16 [3,4];" O13, GEMV, "x has rank 0"},
        {X14 ";WEIGHT I8 [3,4];" O13, GEMV, "the weight (without qdtype"});
}

#define Q8  "GEMV_TILE {'K':5,'N_tile':3,'n_off':0,'qdtype':6,'group':2}"
#define Q4  "GEMV_TILE {'K':5,'N_tile':3,'n_off':0,'qdtype':7,'group':2}"
#define X15 "IO_INPUT F32 [1,5]"

TEST(op_quantised_weights_have_scales)
{
    TRY({X15 ";WEIGHT I8 [3,5];WEIGHT F16 [3,3];" O13, Q8, NULL},
        {X15 ";WEIGHT I4 [3,5];WEIGHT F16 [3,3];" O13, Q4, NULL},
        {X15 ";WEIGHT U8 [3,3];WEIGHT F16 [3,3];" O13, Q4, NULL},
        {X15 ";WEIGHT I4 [3,5];WEIGHT F16 [3,1];" O13,
         "GEMV_TILE {'K':5,'N_tile':3,'n_off':0,'qdtype':7}", NULL},
        {X15 ";WEIGHT I8 [3,5];" O13, Q8, "without scales"},
        {X15 ";WEIGHT I4 [3,5];WEIGHT F16 [3,3];" O13, Q8,
         "qdtype=6 for a weight of dtype I4"},
        {X15 ";WEIGHT F16 [3,5];WEIGHT F16 [3,3];" O13, Q4,
         "qdtype=7 for a weight of dtype F16"},
        {X15 ";WEIGHT U8 [3,2];WEIGHT F16 [3,3];" O13, Q4,
         "K=5 but a row of the weight holds 2"},
        {X15 ";WEIGHT I8 [3,5];WEIGHT F16 [3,2];" O13, Q8,
         "K=5 in groups of 2 needs scales [3, 3]"},
        {X15 ";WEIGHT I8 [3,5];WEIGHT I32 [3,3];" O13, Q8,
         "the scales has dtype I32"},
        {X15 ";WEIGHT I8 [3,5];WEIGHT F16 [3,3];" O13,
         "GEMV_TILE {'K':5,'N_tile':3,'n_off':0,'qdtype':6,'group':0}",
         "group=0 must be positive"});
}

#define GEMM "GEMM_TILE {'M_tile':2,'K':4,'N_tile':3,'n_off':0,'m_off':0}"

TEST(op_gemm_tiles_fit)
{
    TRY({"IO_INPUT F32 [2,4];WEIGHT F16 [3,4];IO_OUTPUT F32 [2,3]", GEMM, NULL},
        {"IO_INPUT F32 [1,4];WEIGHT F16 [3,4];" O13, GEMM,
         "tile rows [0,2) outside the output's 1"},
        {"IO_INPUT F32 [2,4];WEIGHT F16 [3,4];IO_OUTPUT F32 [2,3]",
         "GEMM_TILE {'M_tile':2,'K':4,'N_tile':3,'n_off':0,'m_off':-1}",
         "tile rows [-1,1)"},
        {"IO_INPUT F32 [2,4];WEIGHT F16 [3,4];IO_OUTPUT F32 [2,3]",
         "GEMM_TILE {'M_tile':0,'K':4,'N_tile':3,'n_off':0}",
         "M_tile=0 must be positive"});
}

#define ATT                                                 \
    "ATTENTION_TILE {'head_dim':4,'kv_start':2,'kv_len':3," \
    "'scale':0.5,'n_heads':2,'n_kv_heads':1"
#define Q24 "IO_INPUT F32 [2,4]"
#define KV  "KV_CACHE F32 [5,1,4]"
#define O24 "IO_OUTPUT F32 [1,8]"

TEST(op_attention_windows_lie_in_the_cache)
{
    TRY({Q24 ";" KV ";" KV ";" O24, ATT "}", NULL},
        {"IO_INPUT F32 [3,2,4];KV_CACHE F32 [3,5,1,4];KV_CACHE F32 [3,5,1,4];"
         "IO_OUTPUT F32 [3,8]",
         ATT "}", NULL},
        {Q24 ";" KV ";" KV ";CONST F32 [1];" O24, ATT "}", NULL},
        {Q24 ";" KV ";" KV ";IO_OUTPUT F32 [2,6]", ATT ",'flags':2}", NULL},
        {Q24 ";" KV ";" KV ";IO_OUTPUT F32 [2,6]",
         "ATTENTION_TILE {'head_dim':4,'kv_start':5,'kv_len':0,'flags':2,"
         "'scale':0.5,'n_heads':2,'n_kv_heads':1}",
         NULL},
        {Q24 ";KV_CACHE F32 [4,1,4];" KV ";" O24, ATT "}",
         "slots [2,5) outside the key cache's 4"},
        {Q24 ";" KV ";KV_CACHE F32 [4,1,4];" O24, ATT "}",
         "slots [2,5) outside the value cache's 4"},
        {Q24 ";KV_CACHE F32 [5,2,4];" KV ";" O24, ATT "}",
         "a slot of the key cache is [2, 4], the op has 1 heads of 4"},
        {Q24 ";KV_CACHE F32 [5,4];" KV ";" O24, ATT "}",
         "the key cache has rank 2, needs 3"},
        {Q24 ";KV_CACHE I8 [5,1,4];" KV ";" O24, ATT "}",
         "the key cache has dtype I8"},
        {"IO_INPUT F32 [3,4];" KV ";" KV ";" O24, ATT "}", "q needs shape"},
        {"IO_INPUT F32 [1,8];" KV ";" KV ";" O24, ATT "}", "q needs shape"},
        {"IO_INPUT F32 [3,2,4];KV_CACHE F32 [2,5,1,4];KV_CACHE F32 [3,5,1,4];"
         "IO_OUTPUT F32 [3,8]",
         ATT "}", "or the batch differs"},
        {"IO_INPUT F32 [3,2,4];KV_CACHE F32 [3,5,1,4];KV_CACHE F32 [3,5,1,4];"
         "IO_OUTPUT F32 [3,8]",
         ATT ",'flags':2}", "a partial attention (flags bit 1) over a batch"},
        {Q24 ";" KV ";" KV ";" O24, ATT ",'flags':2}",
         "the output holds 8 elements, the op makes 12"},
        {Q24 ";" KV ";" KV ";IO_OUTPUT F32 [2,6]", ATT "}",
         "the output holds 12 elements, the op makes 8"},
        {Q24 ";" KV ";" KV ";" O24,
         "ATTENTION_TILE {'head_dim':4,'kv_start':2,'kv_len':0,'scale':0.5,"
         "'n_heads':2,'n_kv_heads':1}",
         "kv_len=0 must be positive"},
        {Q24 ";" KV ";" KV ";" O24,
         "ATTENTION_TILE {'head_dim':4,'kv_start':-1,'kv_len':1,'scale':0.5,"
         "'n_heads':2,'n_kv_heads':1}",
         "kv_start=-1 must not be negative"},
        {"IO_INPUT F32 [3,4];KV_CACHE F32 [5,2,4];KV_CACHE F32 [5,2,4];"
         "IO_OUTPUT F32 [1,12]",
         "ATTENTION_TILE {'head_dim':4,'kv_start':0,'kv_len':1,'scale':0.5,"
         "'n_heads':3,'n_kv_heads':2}",
         "n_heads=3 is no multiple of n_kv_heads=2"});
}

TEST(op_combine_takes_parts)
{
    TRY({"IO_INPUT F32 [2,6];IO_INPUT F32 [2,6];IO_OUTPUT F32 [1,8]",
         "ATTENTION_COMBINE {'head_dim':4}", NULL},
        {"IO_INPUT F32 [2,6];IO_INPUT F32 [2,6];IO_OUTPUT F32 [1,8]",
         "ATTENTION_COMBINE", "missing param 'head_dim'"},
        {"IO_INPUT F32 [2,6];IO_INPUT F32 [2,5];IO_OUTPUT F32 [1,8]",
         "ATTENTION_COMBINE {'head_dim':4}", "input 1 holds 10 elements"},
        {"IO_INPUT F32 [2,6];IO_INPUT F32 [2,6];IO_OUTPUT F32 [1,9]",
         "ATTENTION_COMBINE {'head_dim':4}", "the op makes 8"},
        {"IO_INPUT F32 [2,6];IO_INPUT I32 [2,6];IO_OUTPUT F32 [1,8]",
         "ATTENTION_COMBINE {'head_dim':4}", "a part has dtype I32"},
        {"IO_INPUT F32 [2,6];IO_INPUT F32 [2,6];IO_OUTPUT F32 [1,8]",
         "ATTENTION_COMBINE {'head_dim':4,'n_heads':-2}",
         "n_heads=-2 must be positive"});
}

TEST(op_rope_has_pairs_and_positions)
{
    TRY({"IO_INPUT F32 [2,4];IO_INPUT I32 [1];IO_OUTPUT F32 [2,4]",
         "ROPE {'head_dim':4,'theta':10000}", NULL},
        {"IO_INPUT F32 [3,2,4];IO_INPUT I32 [3];IO_OUTPUT F32 [3,2,4]",
         "ROPE {'head_dim':4,'theta':10000.0}", NULL},
        {"IO_INPUT F32 [3,2,4];IO_INPUT I32 [2];IO_OUTPUT F32 [3,2,4]",
         "ROPE {'head_dim':4,'theta':10000.0}", "2 positions for 3 rows"},
        {"IO_INPUT F32 [2,4];IO_INPUT I32 [1];IO_OUTPUT F32 [2,4]",
         "ROPE {'head_dim':2,'theta':10000}", "head_dim=2 must be even and"},
        {"IO_INPUT F32 [2,3];IO_INPUT I32 [1];IO_OUTPUT F32 [2,3]",
         "ROPE {'head_dim':3,'theta':10000}", "head_dim=3 must be even and"},
        {"IO_INPUT F32 [2,4];IO_INPUT I32 [1];IO_OUTPUT F32 [2,4]",
         "ROPE {'head_dim':4,'theta':0}", "theta=0 must be positive"},
        {"IO_INPUT F32 [2,4];IO_INPUT F32 [1];IO_OUTPUT F32 [2,4]",
         "ROPE {'head_dim':4,'theta':1}", "positions has dtype F32"},
        {"IO_INPUT F32 [4];IO_INPUT I32 [1];IO_OUTPUT F32 [4]",
         "ROPE {'head_dim':4,'theta':1}", "x has rank 1"},
        {"IO_INPUT F32 [2,4];IO_INPUT I32 [1];IO_OUTPUT F32 [1,8]",
         "ROPE {'head_dim':4,'theta':1}", "different shapes"});
}

TEST(op_append_lies_in_the_cache)
{
#define APPEND(rows, cache, params)                                        \
    "b n IO_INPUT F32 " rows "\nb kc KV_CACHE F32 " cache "\nt KV_APPEND " \
    "0,1 > 1 " params "\n"
    pt_accepts(APPEND("[1,2,4]", "[5,2,4]", "{'pos':4}"));
    pt_accepts(APPEND("[3,8]", "[5,2,4]", "{'pos':2}"));
    pt_accepts(APPEND("[3,8]", "[5,8]", "{'pos':2}"));
    pt_accepts(APPEND("[3,2,4]", "[3,5,2,4]", "{'pos':4}"));
    pt_refuses(APPEND("[3,8]", "[5,2,4]", "{'pos':3}"),
               "slots [3,6) outside the cache's 5");
    pt_refuses(APPEND("[1,8]", "[5,2,4]", "{'pos':-1}"), "slots [-1,0)");
    pt_refuses(APPEND("[6,8]", "[5,2,4]", "{'pos':0}"), "slots [0,6)");
    pt_refuses(APPEND("[3,2,4]", "[3,5,2,4]", "{'pos':5}"), "slots [5,6)");
    pt_refuses(APPEND("[2,4]", "[5,2,4]", "{'pos':0}"),
               "8 new elements are not 2 slots of 8");
    pt_refuses(APPEND("[1,7]", "[5,2,4]", "{'pos':0}"), "7 new elements");
    pt_refuses(APPEND("[8]", "[40]", "{'pos':0}"), "a cache of rank 1");
    pt_refuses("b n IO_INPUT F32 [1,8]\nb k KV_CACHE F32 [5,8]\n"
               "b l KV_CACHE F32 [5,8]\nt KV_APPEND 0,1 > 2 {'pos':0}\n",
               "input 1 and the output must be the same cache");
    pt_refuses("b n IO_INPUT I32 [1,8]\nb k KV_CACHE F32 [5,8]\n"
               "t KV_APPEND 0,1 > 1 {'pos':0}\n",
               "the new rows has dtype I32");
}

TEST(op_dequant_has_whole_groups)
{
    TRY({"IO_INPUT I8 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':2}", NULL},
        {"IO_INPUT I4 [2,4];CONST F32 [2,2];CONST F32 [2,2];"
         "IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':7,'group':2}", NULL},
        {"IO_INPUT I4 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':2}", "the input has dtype I4"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':5,'group':2}", "qdtype=5 must be 6 (I8) or 7"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':3}", "rows of 4 are no whole groups"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':0}", "group=0 must be positive"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,3];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':2}",
         "the scales hold 6 values for 4 groups"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,2];CONST F32 [1];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':2}",
         "the zeros hold 1 values for 4 groups"},
        {"IO_INPUT I8 [2,4];CONST I32 [2,2];IO_OUTPUT F32 [2,4]",
         "DEQUANT {'qdtype':6,'group':2}", "the scales has dtype I32"},
        {"IO_INPUT I8 [2,4];CONST F32 [2,2];IO_OUTPUT F32 [4,2]",
         "DEQUANT {'qdtype':6,'group':2}", "different shapes"});
}

TEST(op_elementwise_operands_fit)
{
    TRY({X14 ";IO_INPUT F16 [4];" O14, "ADD", NULL},
        {X14 ";IO_INPUT F16 [2,4];" O14, "ADD", "input 1 of 8 elements"},
        {X14 ";IO_INPUT BOOL [1,4];" O14, "ADD", "input 1 has dtype BOOL"},
        {"IO_INPUT I32 [4];IO_INPUT I32 [4];IO_OUTPUT I32 [4]", "ADD", NULL},
        {"IO_INPUT I32 [4];IO_INPUT I32 [4];IO_OUTPUT I32 [4]", "SILU_MUL",
         "input 0 has dtype I32"},
        {X14 ";" X14 ";" O14, "SILU_MUL", NULL},
        {X14 ";" O14, "MUL {'scale':2}", NULL},
        {X14 ";IO_INPUT F32 [1];" O14, "MUL", NULL},
        {X14 ";IO_OUTPUT F32 [1,5]", "MUL", "does not broadcast"},
        {X14 ";" O14, "GELU", NULL},
        {X14 ";IO_OUTPUT I8 [1,4]", "GELU", "the output has dtype I8"},
        {X14 ";" X14 ";" O14, "ALLREDUCE_SHARD", NULL},
        {X14 ";IO_INPUT F32 [1];" O14, "ALLREDUCE_SHARD",
         "shard 1 holds 1 elements"});
}

TEST(op_softmax_and_argmax)
{
    TRY({X14 ";" O14, "SOFTMAX", NULL},
        {X14 ";" O14, "SOFTMAX {'dim':0}", NULL},
        {X14 ";" O14, "SOFTMAX {'dim':-2}", NULL},
        {X14 ";" O14, "SOFTMAX {'dim':2}", "dim=2 of a tensor of rank 2"},
        {X14 ";" O14, "SOFTMAX {'dim':-3}", "dim=-3"},
        {X14 ";IO_OUTPUT F32 [4,1]", "SOFTMAX", "different shapes"},
        {X14 ";IO_OUTPUT I32 [1]", "SAMPLE_ARGMAX", NULL},
        {"IO_INPUT F32 [2,3,4];IO_OUTPUT I32 [2,3]", "SAMPLE_ARGMAX", NULL},
        {X14 ";IO_OUTPUT I32 [2]", "SAMPLE_ARGMAX", "1 rows give 1 indices"},
        {X14 ";IO_OUTPUT F32 [1]", "SAMPLE_ARGMAX",
         "the output has dtype F32, needs I32"});
}

/* ---- recipes ------------------------------------------------------------ */

#define STEP1 "{'op':11,'args':[{'in':0},{'in':1}],'out':0}"
#define STEP2                                                            \
    "{'op':3,'args':[{'s':0},{'in':2}],'out':'final','params':{'eps':0," \
    "'hidden':4}}"

static void
recipe(const char *steps, const char *why)
{
    row r = {X14 ";" X14 ";WEIGHT F32 [4];" O14,
             t_printf("FUSED {'recipe':%s}", steps), why};

    try_row(&r);
}

TEST(op_fused_recipes_are_proved)
{
    recipe("{'steps':[" STEP1 "," STEP2 "]}", NULL);
    recipe("{'steps':[{'op':11,'args':[{'in':0},{'in':1}],'out':-1}]}", NULL);
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':5,'out_shape':[1,4],"
           "'out_dtype':'float16'},{'op':1,'args':[{'s':5}],'out':'final'}]}",
           NULL);
    recipe("{'steps':[]}", "the recipe needs a list of 1 to 1024");
    recipe("[]", "the recipe needs");
    recipe("{'steps':[" STEP1 "]}", "no step of the recipe writes \"final\"");
    recipe("{'steps':[" STEP2 "]}",
           "step 0: reads scratch 0 before a step has written it");
    recipe("{'steps':[7]}", "step 0: must be an object");
    recipe("{'steps':[{'op':99,'args':[],'out':-1}]}", "is no opcode");
    recipe("{'steps':[{'op':19,'args':[{'in':0}],'out':-1}]}",
           "FUSED cannot be a step");
    recipe("{'steps':[{'op':16,'args':[{'in':0},{'in':1}],'out':-1}]}",
           "KV_APPEND cannot be a step");
    recipe("{'steps':[{'op':11,'args':[{'in':0}],'out':-1}]}",
           "ADD needs \"args\" of 2 to 2");
    recipe("{'steps':[{'op':1,'args':[{'in':3}],'out':-1}]}",
           "\"in\" must be an input, 0 to 2");
    recipe("{'steps':[{'op':1,'args':[{'s':-1}],'out':-1}]}",
           "\"s\" must be a scratch index");
    recipe("{'steps':[{'op':1,'args':[{'in':0,'s':0}],'out':-1}]}",
           "an argument is");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':'x'}]}",
           "\"out\" must be \"final\" or a scratch index");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':-1,'params':3}]}",
           "\"params\" must be an object");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':-1,'params':{'z':1}}]}",
           "param 'z' is not known");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':-1,'params':{'K':1.5}}]}",
           "param 'K' has a wrong type");
    recipe("{'steps':[{'op':12,'args':[{'in':0}],'out':-1,"
           "'params':{'scale':NaN}}]}",
           "param 'scale' is not finite");
    recipe("{'steps':[{'op':3,'args':[{'in':0},{'in':2}],'out':-1,"
           "'params':{'eps':0}}]}",
           "RMSNORM lacks the param 'hidden'");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':0,'out_shape':[5]},"
           "{'op':1,'args':[{'s':0}],'out':-1}]}",
           "step 0: COPY: the input of 4 elements does not broadcast");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':0,'out_shape':[0]}]}",
           "\"out_shape\" must hold positive integers");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':0,"
           "'out_shape':[1,1,1,1,4]}]}",
           "\"out_shape\" must be a list of at most 4");
    recipe("{'steps':[{'op':1,'args':[{'in':0}],'out':0,'out_dtype':'int4'}]}",
           "\"out_dtype\" is none");
    recipe("{'steps':[{'op':5,'args':[{'in':0},{'in':2}],'out':-1,"
           "'params':{'K':4,'N_tile':1,'n_off':0}}]}",
           "the weight has rank 1");
}

TEST(op_fused_steps_write_all_of_their_output)
{
    row r = {X14 ";WEIGHT F32 [4,4];" O14,
             "FUSED {'recipe':{'steps':[{'op':5,'args':[{'in':0},{'in':1}],"
             "'out':-1,'params':{'K':4,'N_tile':4,'n_off':0}}]}}",
             NULL};

    try_row(&r);
    r.task = "FUSED {'recipe':{'steps':[{'op':5,'args':[{'in':0},{'in':1}],"
             "'out':-1,'params':{'K':4,'N_tile':3,'n_off':0}}]}}";
    r.why = "GEMV_TILE writes only a part of its output";
    try_row(&r);
}

/* ---- footprints --------------------------------------------------------- */

static void
touches(const br_mega_prog *p, uint32_t task, uint32_t operand, bool write,
        const char *want)
{
    br_mega_rect r;
    char got[100] = "nothing";

    if (br_mega_footprint(p, &p->tasks[task], operand, write, &r))
        snprintf(got, sizeof got, "%lld:%lld %lld:%lld", (long long)r.r0,
                 (long long)r.r1, (long long)r.c0, (long long)r.c1);
    ck_assert_str_eq(got, want);
}

TEST(op_footprints_are_rectangles_of_the_view)
{
    br_mega_prog *p = pt_load(
        "b x IO_INPUT F32 [6,4]\nb w WEIGHT F16 [8,4]\nb v CONST F32 [8]\n"
        "b y ACTIVATION F32 [6,8]\nb n IO_INPUT F32 [2,1,4]\n"
        "b k KV_CACHE F32 [9,1,4]\nb kb KV_CACHE F32 [2,9,1,4]\n"
        "b q IO_INPUT F32 [1,4]\nb o IO_OUTPUT F32 [1,4]\n"
        "b s IO_INPUT F32 [2,3,4]\n"
        "t GEMV_TILE 0,1,2 > 3 {'K':4,'N_tile':3,'n_off':2}\n"
        "t GEMM_TILE 0,1 > 3 "
        "{'K':4,'N_tile':3,'n_off':2,'M_tile':2,'m_off':4}\n"
        "t KV_APPEND 4,5 > 5 {'pos':3}\nt KV_APPEND 4,6 > 6 {'pos':3}\n"
        "t ATTENTION_TILE 7,5,5 > 8 {'head_dim':4,'kv_start':2,'kv_len':5,"
        "'scale':1,'n_heads':1,'n_kv_heads':1}\n"
        "t COPY 9 > 9\nt GEMV_TILE 0,1 > 3 {'K':4,'N_tile':9,'n_off':2}\n"
        "t NOP\n");

    touches(p, 0, 0, false, "0:6 0:4");
    touches(p, 0, 1, false, "2:5 0:4");
    touches(p, 0, 2, false, "0:1 2:5");
    touches(p, 0, 0, true, "0:6 2:5");
    touches(p, 1, 0, false, "4:6 0:4");
    touches(p, 1, 0, true, "4:6 2:5");
    touches(p, 2, 0, true, "3:5 0:4");
    touches(p, 2, 1, false, "nothing"); /* names the cache, does not read it */
    touches(p, 3, 0, true, "0:2 12:16");
    touches(p, 4, 1, false, "2:7 0:4");
    touches(p, 4, 0, true, "0:1 0:4");
    touches(p, 5, 0, false, "0:6 0:4");
    touches(p, 6, 0, true, "nothing"); /* outside: breaks its op's rules */
    touches(p, 7, 0, false, "nothing");
    br_mega_free(p);
}
