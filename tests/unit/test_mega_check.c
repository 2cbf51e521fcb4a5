/* test_mega_check.c - one rule of the sound check, one test: a program that
 * breaks it and nothing else, and its twin that does not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prog_text.h"

#include <string.h>

T_ONE_THREAD();

/* x -> a -> o, one step each */
#define XAO                      \
    "b x IO_INPUT F32 [1,4]\n"   \
    "b a ACTIVATION F32 [1,4]\n" \
    "b o IO_OUTPUT F32 [1,4]\n"
#define TARGET(sms, smem)                                                \
    "+ 'target': {'name':'t','sm_arch':1,'num_sms':" #sms                \
    ",'smem_bytes_per_sm':" #smem ",'smem_bytes_per_block_optin':" #smem \
    ",'regs_per_sm':16,'max_threads_per_sm':1,'max_regs_per_thread':1,"  \
    "'l2_bytes':1,'hbm_bytes':1,'hbm_bandwidth_gbs':1.0,'fp16_tflops':1.0}\n"

/* ---- records ------------------------------------------------------------ */

TEST(check_misfits_are_refused)
{
    pt_refuses(XAO "t COPY 0 > 2 s1.5\n", "tasks[0]: sm holds 1.5");
    pt_refuses(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:1.0\n",
               "task 1 (t1) threshold 1.0 on counter 0 is not a positive");
    pt_refuses(XAO "t COPY 0 > 2 {'K':[1]}\n", "must be an int32");
    pt_accepts(XAO "t COPY 0 > 2 s1\n");
}

TEST(check_ids_are_places)
{
    const char *good = XAO "t COPY 0 > 2\n";
    char *json = pt_json(good), *at = strstr(json, "\"id\":1");
    br_status st = {0};
    br_mega_report r;
    br_mega_prog *p;

    pt_accepts(good);
    at[5] = '7'; /* buffer 1, which nobody uses */
    t_ok(br_mega_load(&p, json, strlen(json), &st), &st);
    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    ck_assert(!r.ok);
    ck_assert_ptr_nonnull(strstr(r.errors.at[0], "buffers[1] has id 7"));
    br_mega_report_fini(&r);
    br_mega_free(p);
}

TEST(check_shapes_are_sizes)
{
    pt_refuses("b x IO_INPUT F32 [-1,4]\n" XAO "t COPY 1 > 3\n",
               "negative dimension -1");
    pt_refuses("b x WEIGHT F32 [4294967296,4294967296]\n" XAO "t COPY 1 > 3\n",
               "more bytes than 64 bits");
    pt_refuses("b x IO_INPUT F32 [0,4]\nb o IO_OUTPUT F32 [0,4]\n"
               "t COPY 0 > 1\n",
               "has no elements");
    pt_refuses("b x IO_INPUT F32 [1,1,1,1,4]\nb o IO_OUTPUT F32 [1,4]\n"
               "t COPY 0 > 1\n",
               "rank 5 > ABI_MAX_RANK=4");
    pt_accepts("b x WEIGHT F32 [0,1,2,3,4]\n" XAO "t COPY 1 > 3\n");
}

TEST(check_counters_start_at_zero)
{
    pt_refuses(XAO "c 5\nc 0\nt COPY 0 > 1\nt COPY 1 > 2 w0:1\n",
               "counter 0 starts at 5");
    pt_refuses(XAO "c -1\nc 0\nt COPY 0 > 1\nt COPY 1 > 2 w0:1\n",
               "counter 0 starts at -1; waits count producers from 0");
    pt_accepts(XAO "c 0\nc 0\nt COPY 0 > 1\nt COPY 1 > 2 w0:1\n");
}

TEST(check_references_exist)
{
    pt_refuses(XAO "t COPY 9 > 2\n", "reads missing buffer 9");
    pt_refuses(XAO "t COPY 0 > 9\nt COPY 0 > 2\n", "writes missing buffer 9");
    pt_refuses(XAO "t COPY 0 > 2 c9\n", "increments missing counter 9");
    pt_refuses(XAO "t COPY 0 > 2 w9:1\n", "waits on missing counter 9");
}

TEST(check_abi_caps_hold)
{
    const char *nops = XAO "t NOP\nt NOP\nt NOP\nt NOP\nt NOP\nt NOP\nt NOP\n"
                           "t NOP\nt NOP\n";

    pt_refuses(XAO "t ALLREDUCE_SHARD 0,0,0,0,0,0,0,0,0 > 2\n",
               "has 9 inputs > ABI_MAX_INPUTS=8");
    pt_accepts(XAO "t ALLREDUCE_SHARD 0,0,0,0,0,0,0,0 > 2\n");
    pt_refuses(XAO "t COPY 0 > 1,1,1,1,1\n", "has 5 outputs");
    pt_refuses(t_printf("%st COPY 0 > 2 "
                        "w0:1,1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1\n",
                        nops),
               "has 9 waits > ABI_MAX_WAITS=8");
    pt_accepts(
        t_printf("%st COPY 0 > 2 w0:1,1:1,2:1,3:1,4:1,5:1,6:1,7:1\n", nops));
}

TEST(check_arity_and_params)
{
    pt_refuses(XAO "t ADD 0 > 2\n", "arity: 1 inputs, expected [2,2]");
    pt_refuses(XAO "t COPY 0\n", "expected 1 outputs, got 0");
    pt_refuses(XAO "t EMBED 0,0 > 2\n", "missing required param 'hidden'");
    pt_refuses(XAO "t COPY 0 > 2 {'K':true}\n", "'K'=True must be an int32");
    pt_refuses(XAO "t COPY 0 > 2 {'N_tile':4294967296}\n",
               "'N_tile'=4294967296 must be an int32");
    pt_refuses(XAO "t COPY 0 > 2 {'eps':'x'}\n", "must be a real number");
    pt_warns(XAO "t COPY 0 > 2 {'zeta':1}\n", "'zeta' is not a known");
    /* A warning is no reason to skip the other rules. */
    pt_refuses(XAO
               "t GEMV_TILE 0,0 > 2 {'zeta':1,'K':5,'N_tile':1,'n_off':0}\n",
               "K=5 but a row of");
}

TEST(check_reals_are_finite)
{
    pt_refuses(XAO "t MUL 0 > 2 {'scale':NaN}\n", "scale=nan is not finite");
    pt_refuses(XAO "t MUL 0 > 2 {'scale':-Infinity}\n", "is not finite");
    pt_refuses(XAO "t MUL 0 > 2 {'scale':1e400}\n", "is not finite");
    pt_accepts(XAO "t MUL 0 > 2 {'scale':-1e300}\n");
    pt_accepts(XAO "t MUL 0 > 2 {'scale':true}\n");
}

/* ---- waits and order ---------------------------------------------------- */

TEST(check_waits_are_met)
{
    pt_refuses(XAO "t COPY 0 > 1 c0\nt COPY 1 > 2 c0 w1:1\n",
               "waits on counter 1 with NO producer");
    pt_refuses(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:2\n",
               "threshold 2 > 1 producers of counter 0");
    pt_refuses(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:0\n",
               "threshold 0 on counter 0 is not a positive");
    pt_refuses(XAO "t COPY 0 > 2 w0:1\n", "waits on its OWN out_counter 0");
}

TEST(check_shared_counters_are_joins)
{
    pt_refuses(XAO "t COPY 0 > 1 c0\nt NOP c0\nt COPY 1 > 2 c1 w0:1\n",
               "partial wait threshold 1 on shared counter 0 (2 producers)");
    pt_accepts(XAO "t COPY 0 > 1 c0\nt NOP c0\nt COPY 1 > 2 c1 w0:2\n");
    /* Two waits on one counter: both have to be right. */
    pt_refuses(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:1,0:2\n", "threshold 2 > 1");
    pt_accepts(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:1,0:1\n");
}

TEST(check_cycles_are_shown)
{
    pt_refuses("t NOP w2:1\nt NOP w0:1\nt NOP w1:1\n",
               "CYCLE, structural deadlock. cycle: 0:t0 -> 1:t1 -> 2:t2 -> "
               "0:t0");
    pt_accepts("t NOP w2:1\nt NOP w0:1\nt NOP\n");
}

TEST(check_queues_do_not_block_each_other)
{
    /* t0 -> t1 -> t2 by counters; SM 0 has t2 before t0 */
    pt_refuses("t NOP c2 w1:1 s0\nt NOP c0 s0\nt NOP c1 w0:1 s1\n",
               "dependencies and SM queues together have a CYCLE, deadlock. "
               "cycle: ");
    pt_accepts("t NOP c0 s0\nt NOP c2 w1:1 s0\nt NOP c1 w0:1 s1\n");
    /* crossed waits of two queues */
    pt_refuses("t NOP w3:1 s0\nt NOP s0\nt NOP w1:1 s1\nt NOP s1\n",
               "0:t0 -[queue of SM 0]-> 1:t1 -[counter 1]-> 2:t2 "
               "-[queue of SM 1]-> 3:t3 -[counter 3]-> 0:t0");
    /* Without a worker there is no queue to block. */
    pt_accepts("t NOP w3:1\nt NOP\nt NOP w1:1 s1\nt NOP s1\n");
    /* the reference's words where it sees it too */
    pt_refuses("t NOP w1:1 s4\nt NOP s4\n",
               "SM 4 queue order violates dependency 1->0");
}

TEST(check_workers_exist)
{
    pt_refuses(TARGET(2, 64) XAO "t COPY 0 > 2 s2\n",
               "task 0 assigned to SM 2 out of range [0,2)");
    pt_refuses(TARGET(2, 64) XAO "t COPY 0 > 2 s-1\n", "SM -1 out of range");
    pt_refuses(XAO "t COPY 0 > 2 s-1\n", "it is negative");
    pt_accepts(TARGET(2, 64) XAO "t COPY 0 > 2 s1\n");
    pt_accepts(XAO "t COPY 0 > 2 s9223372036854775807\n");
}

/* ---- who may write what ------------------------------------------------- */

TEST(check_read_only_buffers_are_not_written)
{
    pt_refuses(XAO "b w WEIGHT F32 [1,4]\nt COPY 0 > 2\nt COPY 0 > 3\n",
               "buffer #3 ('w'), which is WEIGHT: read only");
    pt_refuses(XAO "b w CONST F32 [1,4]\nt COPY 0 > 2\nt COPY 0 > 3\n",
               "which is CONST");
    pt_refuses(XAO "t COPY 0 > 2\nt GELU 0 > 0\n", "which is IO_INPUT");
}

TEST(check_outputs_are_whole)
{
    const char *w = XAO "b w WEIGHT F32 [4,4]\n";

    pt_refuses(XAO "t COPY 0 > 1\n", "IO_OUTPUT buffer 'o'(#2) is never");
    pt_refuses(
        t_printf("%st GEMV_TILE 0,3 > 2 {'K':4,'N_tile':3,'n_off':0}\n", w),
        "IO_OUTPUT buffer #2 ('o') is written only in part: rows [0,1) "
        "columns [3,4)");
    pt_accepts(t_printf("%st GEMV_TILE 0,3 > 2 c0 "
                        "{'K':4,'N_tile':3,'n_off':0}\n"
                        "t GEMV_TILE 0,3 > 2 c0 {'K':4,'N_tile':1,'n_off':3}\n",
                        w));
    /* a hole that tiles leave open */
    pt_refuses(t_printf("%st GEMV_TILE 0,3 > 2 {'K':4,'N_tile':1,'n_off':0}\n"
                        "t GEMV_TILE 0,3 > 2 {'K':4,'N_tile':2,'n_off':2}\n",
                        w),
               "columns [1,2)");
}

TEST(check_reads_are_of_what_was_written)
{
    pt_refuses(XAO "t COPY 1 > 2\n", "reads buffer #1 ('a') that is never");
    pt_refuses(XAO "b w WEIGHT F32 [4,4]\n"
                   "t GEMV_TILE 0,3 > 1 {'K':4,'N_tile':3,'n_off':1}\n"
                   "t COPY 1 > 2 w0:1\n",
               "task 1 (t1) reads buffer #1 ('a') rows [0,1) columns [0,1), "
               "which no task ordered before it has written");
    /* ordered, but the wrong way round */
    pt_refuses(XAO "t COPY 1 > 2\nt COPY 0 > 1 w0:1\n",
               "writer task(s) [1] are NOT ordered before it");
    pt_accepts(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:1\n");
    pt_warns(XAO "t ADD 1,0 > 1\nt COPY 1 > 2 w0:1\n",
             "in place with no external producer");
}

TEST(check_tiles_follow_the_weights_rows_too)
{
    pt_refuses("b x IO_INPUT F32 [1,4]\nb w WEIGHT F32 [3,4]\n"
               "b o IO_OUTPUT F32 [1,4]\n"
               "t GEMV_TILE 0,1 > 2 {'K':4,'N_tile':4,'n_off':0}\n",
               "outside the weight's 3 rows");
}

/* ---- races -------------------------------------------------------------- */

TEST(check_reads_come_after_writes)
{
    pt_refuses(XAO "t COPY 0 > 1\nt COPY 1 > 2\n",
               "task 1 (t1) reads buffer #1 ('a') but writer task(s) [0] are "
               "NOT ordered before it, data RACE");
    pt_accepts(XAO "t COPY 0 > 1\nt COPY 1 > 2 w0:1\n");
    /* through another task */
    pt_accepts(XAO "t COPY 0 > 1\nt NOP w0:1\nt COPY 1 > 2 w1:1\n");
    pt_refuses(XAO "t COPY 0 > 1\nt NOP\nt COPY 1 > 2 w1:1\n", "data RACE");
    /* the queue of one worker is no proof */
    pt_refuses(XAO "t COPY 0 > 1 s0\nt COPY 1 > 2 s0\n", "data RACE");
}

TEST(check_every_writer_counts)
{
    const char *two = XAO "b w WEIGHT F32 [4,4]\n"
                          "t GEMV_TILE 0,3 > 1 {'K':4,'N_tile':2,'n_off':0}\n"
                          "t GEMV_TILE 0,3 > 1 {'K':4,'N_tile':2,'n_off':2}\n";

    pt_refuses(t_printf("%st COPY 1 > 2 w1:1\n", two),
               "but writer task(s) [0] are NOT");
    pt_accepts(t_printf("%st COPY 1 > 2 w0:1,1:1\n", two));
}

TEST(check_writers_are_ordered)
{
    pt_refuses(XAO "t COPY 0 > 2\nt GELU 0 > 2\n",
               "multi-writer WAW race on buffer #2 ('o'): writers 0 ('t0') and "
               "1 ('t1') share no counter; neither is");
    pt_refuses(XAO "t COPY 0 > 2 c0\nt GELU 0 > 2 c0\n",
               "share a counter but their tiles OVERLAP");
    pt_accepts(XAO "t COPY 0 > 2\nt GELU 0 > 2 w0:1\n");
}

TEST(check_rewrites_wait_for_readers)
{
    const char *head = XAO "b p IO_OUTPUT F32 [1,4]\nt COPY 0 > 1\n"
                           "t COPY 1 > 2 w0:1\n";

    /* r0 and w1 both come after w0, but in no order of their own */
    pt_refuses(t_printf("%st GELU 0 > 1 w0:1\nt COPY 1 > 3 w2:1\n", head),
               "task 1 (t1) reads buffer #1 ('a') but writer task(s) [2]");
    pt_accepts(t_printf("%st GELU 0 > 1 w1:1\nt COPY 1 > 3 w2:1\n", head));
}

/* A read is behind the tile that covers a part of it, not behind the next. */
TEST(check_rewrites_in_tiles_wait_for_readers)
{
    const char *head = XAO "b w WEIGHT F32 [4,4]\nb p IO_OUTPUT F32 [1,4]\n"
                           "t COPY 0 > 1\nt COPY 1 > 2 w0:1\n";
#define HALF(off, waits) \
    "t GEMV_TILE 0,3 > 1 w" waits " {'K':4,'N_tile':2,'n_off':" off "}\n"

    pt_accepts(t_printf("%s" HALF("0", "1:1")
                            HALF("2", "1:1") "t COPY 1 > 4 w2:1,3:1\n",
                        head));
    pt_refuses(t_printf("%s" HALF("0", "1:1")
                            HALF("2", "0:1") "t COPY 1 > 4 w2:1,3:1\n",
                        head),
               "task 1 (t1) reads buffer #1 ('a') but writer task(s) [3]");
    pt_refuses(t_printf("%s" HALF("2", "1:1")
                            HALF("0", "0:1") "t COPY 1 > 4 w2:1,3:1\n",
                        head),
               "task 1 (t1) reads buffer #1 ('a') but writer task(s) [3]");
}

TEST(check_gemm_tiles_are_rectangles)
{
    const char *head = "b x IO_INPUT F32 [4,2]\nb w WEIGHT F32 [2,2]\n"
                       "b o IO_OUTPUT F32 [4,2]\n";

    /* four tiles in a square, on four counters */
    pt_accepts(t_printf("%s"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':2,'m_off':0,'K':2,'N_tile':1,'n_off':0}\n"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':2,'m_off':2,'K':2,'N_tile':1,'n_off':0}\n"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':2,'m_off':0,'K':2,'N_tile':1,'n_off':1}\n"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':2,'m_off':2,'K':2,'N_tile':1,'n_off':1}\n",
                        head));
    pt_refuses(t_printf("%s"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':3,'m_off':0,'K':2,'N_tile':2,'n_off':0}\n"
                        "t GEMM_TILE 0,1 > 2 "
                        "{'M_tile':2,'m_off':2,'K':2,'N_tile':1,'n_off':1}\n",
                        head),
               "WAW race");
    pt_refuses(t_printf("%st GEMM_TILE 0,1 > 2 "
                        "{'M_tile':4,'m_off':1,'K':2,'N_tile':2,'n_off':0}\n",
                        head),
               "tile rows [1,5) outside the output's 4");
    /* without m_off a tile has all rows */
    pt_accepts(t_printf(
        "%st GEMM_TILE 0,1 > 2 {'M_tile':2,'K':2,'N_tile':2,'n_off':0}\n",
        head));
}

TEST(check_in_place_is_element_by_element)
{
    pt_accepts(XAO "t COPY 0 > 1\nt GELU 1 > 1 w0:1\nt COPY 1 > 2 w1:1\n");
    pt_refuses(XAO "b w WEIGHT F32 [4,4]\nt COPY 0 > 1\n"
                   "t GEMV_TILE 1,3 > 1 w0:1 {'K':4,'N_tile':4,'n_off':0}\n"
                   "t COPY 1 > 2 w1:1\n",
               "reads the buffer it writes");
    pt_refuses("b x IO_INPUT F32 [2,4]\nb a ACTIVATION F32 [2,4]\n"
               "b o IO_OUTPUT F32 [2,4]\nt COPY 0 > 1\n"
               "t SOFTMAX 1 > 1 w0:1\nt COPY 1 > 2 w1:1\n",
               "reads the buffer it writes");
}

/* ---- caches ------------------------------------------------------------- */

#define CACHE                     \
    "b q IO_INPUT F32 [1,2]\n"    \
    "b k IO_INPUT F32 [1,1,2]\n"  \
    "b kc KV_CACHE F32 [8,1,2]\n" \
    "b vc KV_CACHE F32 [8,1,2]\n" \
    "b o IO_OUTPUT F32 [1,2]\n"
#define ATT(start, len)                                  \
    "{'head_dim':2,'kv_start':" #start ",'kv_len':" #len \
    ",'scale':1.0,'n_heads':1,'n_kv_heads':1}\n"

TEST(check_cache_rows_are_read_after_the_append)
{
    const char *append = CACHE "t KV_APPEND 1,2 > 2 {'pos':5}\n";

    pt_refuses(t_printf("%st ATTENTION_TILE 0,2,3 > 4 " ATT(0, 6), append),
               "reads KV cache #2 ('kc') but writer task(s) [0]");
    pt_accepts(
        t_printf("%st ATTENTION_TILE 0,2,3 > 4 w0:1 " ATT(0, 6), append));
    /* rows that nobody appends are those of the pass before */
    pt_accepts(t_printf("%st ATTENTION_TILE 0,2,3 > 4 " ATT(0, 5), append));
    pt_accepts(t_printf("%st ATTENTION_TILE 0,2,3 > 4 " ATT(6, 2), append));
    pt_accepts(CACHE "t ATTENTION_TILE 0,2,3 > 4 " ATT(0, 8));
    /* before the append is no order for a cache, even if it is one */
    pt_refuses(CACHE "t ATTENTION_TILE 0,2,3 > 4 " ATT(
                   0, 6) "t KV_APPEND 1,2 > 2 w0:1 {'pos':5}\n",
               "reads KV cache #2");
}

/* Two readers with the same waits may read different slots. */
TEST(check_readers_are_told_apart_by_what_they_read)
{
    const char *head = "b q IO_INPUT F32 [2,1,2]\n"
                       "b k IO_INPUT F32 [2,1,2]\n"
                       "b kc KV_CACHE F32 [2,8,1,2]\n"
                       "b vc KV_CACHE F32 [2,8,1,2]\n"
                       "b o IO_OUTPUT F32 [2,1,2]\n"
                       "b p IO_OUTPUT F32 [2,1,2]\n"
                       "t KV_APPEND 1,2 > 2 {'pos':0}\n"
                       "t KV_APPEND 1,2 > 2 {'pos':4}\n";

    pt_refuses(t_printf("%st ATTENTION_TILE 0,2,3 > 4 w0:1 " ATT(
                            0, 1) "t ATTENTION_TILE 0,2,3 > 5 w0:1 " ATT(4, 1),
                        head),
               "task 3 (t3) reads KV cache #2 ('kc') but writer task(s) [1]");
    pt_accepts(t_printf("%st ATTENTION_TILE 0,2,3 > 4 w0:1 " ATT(
                            0, 1) "t ATTENTION_TILE 0,2,3 > 5 w1:1 " ATT(4, 1),
                        head));
}

TEST(check_appends_are_ordered_or_apart)
{
    pt_accepts(CACHE "t KV_APPEND 1,2 > 2 {'pos':5}\n"
                     "t KV_APPEND 1,2 > 2 {'pos':4}\n"
                     "t ATTENTION_TILE 0,2,3 > 4 w0:1,1:1 " ATT(0, 6));
    pt_refuses(CACHE "t KV_APPEND 1,2 > 2 {'pos':5}\n"
                     "t KV_APPEND 1,2 > 2 {'pos':5}\n"
                     "t ATTENTION_TILE 0,2,3 > 4 w0:1,1:1 " ATT(0, 6),
               "WAW race");
    pt_accepts(CACHE "t KV_APPEND 1,2 > 2 {'pos':5}\n"
                     "t KV_APPEND 1,2 > 2 w0:1 {'pos':5}\n"
                     "t ATTENTION_TILE 0,2,3 > 4 w1:1 " ATT(0, 6));
}

/* ---- where things lie --------------------------------------------------- */

TEST(check_onchip_buffers_have_one_worker)
{
    const char *head = TARGET(4, 64) "b x IO_INPUT F32 [1,4]\n"
                                     "b a ACTIVATION F32 [1,4] SMEM\n"
                                     "b o IO_OUTPUT F32 [1,4]\n";

    pt_refuses(t_printf("%st COPY 0 > 1 s2\nt COPY 1 > 2 w0:1 s1\n", head),
               "on-chip buffer 'a'(#1, SMEM) is used across SMs [1, 2]");
    pt_accepts(t_printf("%st COPY 0 > 1 s2\nt COPY 1 > 2 w0:1 s2\n", head));
    pt_warns(t_printf("%st COPY 0 > 1\nt COPY 1 > 2 w0:1\n", head),
             "requires same-SM placement");
}

TEST(check_onchip_memory_suffices)
{
    const char *two = "b x IO_INPUT F32 [1,4]\n"
                      "b a ACTIVATION F32 [1,4] SMEM\n"
                      "b c ACTIVATION F32 [1,4] SMEM\n"
                      "b o IO_OUTPUT F32 [1,4]\n"
                      "t COPY 0 > 1 s0\nt COPY 1 > 2 w0:1 s0\n"
                      "t COPY 2 > 3 w1:1 s0\n";

    pt_refuses(t_printf(TARGET(4, 31) "%s", two),
               "SM 0 holds SMEM of 32 bytes, the target has 31 per worker");
    pt_accepts(t_printf(TARGET(4, 32) "%s", two));
    pt_refuses(TARGET(4, 15) "b x IO_INPUT F32 [1,4]\n"
                             "b a ACTIVATION F32 [1,4] SMEM\n"
                             "b o IO_OUTPUT F32 [1,4]\n"
                             "t COPY 0 > 1\nt COPY 1 > 2 w0:1\n",
               "a single SMEM of 16 bytes");
    pt_refuses(TARGET(4, 64) "b x IO_INPUT F32 [1,32]\n"
                             "b a ACTIVATION F32 [1,32] REGISTER\n"
                             "b o IO_OUTPUT F32 [1,32]\n"
                             "t COPY 0 > 1 s0\nt COPY 1 > 2 w0:1 s0\n",
               "SM 0 holds REGISTER of 128 bytes, the target has 64");
}

/* x -> a -> b -> c -> o */
#define LONG                     \
    "b x IO_INPUT F32 [1,4]\n"   \
    "b a ACTIVATION F32 [1,4]\n" \
    "b b ACTIVATION F32 [1,4]\n" \
    "b c ACTIVATION F32 [1,4]\n" \
    "b o IO_OUTPUT F32 [1,4]\n"  \
    "b w WEIGHT F32 [4,4]\n"
#define STEPS(op, more)            \
    "t COPY 0 > 1\n"               \
    "t " op " > 2 w0:1 " more "\n" \
    "t COPY 2 > 3 w1:1\nt COPY 3 > 4 w2:1\n"
#define PAGES(map, pages) \
    "+ 'pages': {'buffer_to_page':{" map "},'pages':[" pages "]}\n"
#define PAGE "{'id':0,'space':'GLOBAL_SCRATCH','nbytes':16}"

TEST(check_page_table_is_sound)
{
    const char *p = LONG STEPS("GELU 1", "");

    pt_accepts(t_printf("%s" PAGES("'1':0", PAGE), p));
    pt_refuses(t_printf("%s" PAGES("'1':1", PAGE), p),
               "buffer #1 ('a') is bound to missing page 1");
    pt_refuses(t_printf("%s" PAGES("'9':0", PAGE), p), "missing buffer 9");
    pt_refuses(t_printf("%s" PAGES("'4':0", PAGE), p),
               "buffer #4 ('o') is IO_OUTPUT and cannot live on a page");
    pt_refuses(
        t_printf("%s" PAGES("'1':0", "{'id':0,'space':'SMEM','nbytes':15}"), p),
        "buffer #1 ('a') of 16 bytes does not fit page 0 of 15");
    pt_refuses(
        t_printf("%s" PAGES("'1':0", "{'id':3,'space':'HBM','nbytes':16}"), p),
        "pages[0] has id 3");
    pt_refuses(
        t_printf("%s" PAGES("'1':0", "{'id':0,'space':'HBM','nbytes':-16}"), p),
        "page 0 has -16 bytes");
}

TEST(check_live_ranges_span_the_uses)
{
    const char *p = LONG STEPS("GELU 1", "");
#define LIVE(a, b)                                                      \
    PAGES("'2':0", "{'id':0,'space':'HBM','nbytes':16,'live_start':" #a \
                   ",'live_end':" #b "}")

    pt_accepts(t_printf("%s" LIVE(1, 2), p));
    pt_accepts(t_printf("%s" LIVE(0, 9), p));
    pt_accepts(t_printf("%s" LIVE(-1, 2), p));
    pt_refuses(t_printf("%s" LIVE(2, 2), p),
               "page 0 is live from 2 to 2 but buffer #2 ('b') on it is used "
               "from 1 to 2");
    pt_refuses(t_printf("%s" LIVE(1, 1), p), "used from 1 to 2");
    pt_refuses(t_printf("%s" LIVE(3, 1), p), "page 0 is live from 3 to 1");
}

TEST(check_page_sharing_is_ordered)
{
    const char *gelu = LONG STEPS("GELU 1", "");
    const char *gemv =
        LONG STEPS("GEMV_TILE 1,5", "{'K':4,'N_tile':4,'n_off':0}");

    /* a is dead when c is written */
    pt_accepts(t_printf("%s" PAGES("'1':0,'3':0", PAGE), gemv));
    /* a is read while b is written: fine element by element only */
    pt_accepts(t_printf("%s" PAGES("'1':0,'2':0", PAGE), gelu));
    pt_accepts(t_printf("%s" PAGES("'1':0,'2':0,'3':0", PAGE), gelu));
    pt_refuses(t_printf("%s" PAGES("'1':0,'2':0", PAGE), gemv),
               "page 0 reused by buffers #1 ('a') and #2 ('b') whose live "
               "ranges are NOT ordered, clobber RACE");
    /* in place, but somebody else still reads */
    pt_refuses(t_printf("%sb p IO_OUTPUT F32 [1,4]\nt COPY 1 > 6 w0:1\n"
                        "%s",
                        gelu,
                        "+ 'pages': {'buffer_to_page':{'1':0,'2':0},"
                        "'pages':[{'id':0,'space':'HBM','nbytes':16}]}\n"),
               "page 0 reused by buffers #1");
    /* in place, but the elements have another size */
    pt_refuses("b x IO_INPUT F32 [1,4]\nb a ACTIVATION F32 [1,4]\n"
               "b b ACTIVATION F16 [1,4]\nb o IO_OUTPUT F32 [1,4]\n"
               "t COPY 0 > 1\nt GELU 1 > 2 w0:1\nt COPY 2 > 3 w1:1\n" PAGES(
                   "'1':0,'2':0", PAGE),
               "page 0 reused");
}

/* A window without slots reads nothing: it neither races nor hides a race. */
TEST(check_empty_windows_hide_nothing)
{
    const char *p = "b q IO_INPUT F32 [1,2]\n"
                    "b x IO_INPUT F32 [2,1,2]\n"
                    "b k ACTIVATION F32 [2,1,2]\n"
                    "b a ACTIVATION F32 [2,1,2]\n"
                    "b o IO_OUTPUT F32 [1,4]\n"
                    "b y IO_OUTPUT F32 [2,1,2]\n"
                    "b z IO_OUTPUT F32 [2,1,2]\n"
                    "t ATTENTION_TILE 0,2,2 > 4 {'head_dim':2,'kv_start':1,"
                    "'kv_len':0,'scale':1.0,'n_heads':1,'n_kv_heads':1,"
                    "'flags':2}\n"
                    "t COPY 1 > 2\nt COPY 2 > 5 w1:1\n"
                    "t COPY 1 > 3\nt COPY 3 > 6 w3:1\n";

    pt_accepts(p);
    pt_refuses(t_printf("%s" PAGES("'2':0,'3':0", PAGE), p),
               "page 0 reused by buffers #2");
}

TEST(check_page_sharing_asks_every_user_and_writer)
{
    /* c comes before a in time, not in number */
    pt_accepts(LONG "t COPY 0 > 3\nt COPY 3 > 2 w0:1\nt COPY 2 > 1 w1:1\n"
                    "t COPY 1 > 4 w2:1\n" PAGES("'1':0,'3':0", PAGE));
    /* in place, but a task of the same counter still reads */
    pt_refuses(LONG "b p IO_OUTPUT F32 [1,4]\n"
                    "t COPY 0 > 1 c0\nt GELU 1 > 2 c1 w0:1\n"
                    "t COPY 1 > 6 c1 w0:1\nt COPY 2 > 4 c2 w1:2\n" PAGES(
                        "'1':0,'2':0", PAGE),
               "page 0 reused");
    /* c is written by two tiles: each has to wait for the reader of a */
#define TILES(last)                                                     \
    LONG "t COPY 0 > 1\nt COPY 1 > 2 w0:1\n"                            \
         "t GEMV_TILE 0,5 > 3 w1:1 {'K':4,'N_tile':2,'n_off':0}\n"      \
         "t GEMV_TILE 0,5 > 3 w" last " {'K':4,'N_tile':2,'n_off':2}\n" \
         "t ADD 2,3 > 4 w2:1,3:1\n" PAGES("'1':0,'3':0", PAGE)
    pt_accepts(TILES("1:1"));
    pt_refuses(TILES("0:1"), "page 0 reused by buffers #1 ('a') and #3 ('c')");
}

TEST(check_pages_hold_nothing_to_start_with)
{
    const char *p = XAO "t ADD 1,0 > 1\nt COPY 1 > 2 w0:1\n";

    pt_warns(p, "in place with no external producer");
    pt_refuses(t_printf("%s" PAGES("'1':0", PAGE), p),
               "which no task ordered before it has written");
}

TEST(check_pages_on_chip_have_one_worker)
{
    const char *p = TARGET(4, 64) "b x IO_INPUT F32 [1,4]\n"
                                  "b a ACTIVATION F32 [1,4]\n"
                                  "b o IO_OUTPUT F32 [1,4]\n";
#define SMEM                                                         \
    "+ 'pages': {'buffer_to_page':{'1':0},'pages':[{'id':0,'space':" \
    "'SMEM','nbytes':16}]}\n"

    pt_refuses(t_printf("%st COPY 0 > 1 s0\nt COPY 1 > 2 w0:1 s1\n" SMEM, p),
               "on-chip page 0 (SMEM) is used across SMs [0, 1]");
    pt_accepts(t_printf("%st COPY 0 > 1 s1\nt COPY 1 > 2 w0:1 s1\n" SMEM, p));
}

TEST(check_onchip_buffers_stay_on_chip_on_any_page)
{
    const char *p = TARGET(4, 64) "b x IO_INPUT F32 [1,4]\n"
                                  "b a ACTIVATION F32 [1,4] SMEM\n"
                                  "b o IO_OUTPUT F32 [1,4]\n";

    pt_refuses(t_printf("%st COPY 0 > 1 s0\nt COPY 1 > 2 w0:1 "
                        "s1\n" PAGES("'1':0", PAGE),
                        p),
               "on-chip buffer 'a'(#1, SMEM) is used across SMs [0, 1]");
    pt_accepts(t_printf("%st COPY 0 > 1 s1\nt COPY 1 > 2 w0:1 "
                        "s1\n" PAGES("'1':0", PAGE),
                        p));
}

TEST(check_what_outlives_a_pass_is_not_on_chip)
{
    const char *in[] = {"IO_INPUT", "WEIGHT", "CONST", "KV_CACHE"};

    for (size_t i = 0; i < BR_COUNT(in); i++)
        pt_refuses(t_printf("b x %s F32 [1,4] SMEM\nb o IO_OUTPUT F32 [1,4]\n"
                            "t COPY 0 > 1 s0\n",
                            in[i]),
                   t_printf("is %s and cannot lie in SMEM", in[i]));
    pt_refuses("b x IO_INPUT F32 [1,4]\nb o IO_OUTPUT F32 [1,4] REGISTER\n"
               "t COPY 0 > 1 s0\n",
               "is IO_OUTPUT and cannot lie in REGISTER");
}

/* ---- configuration, target ---------------------------------------------- */

TEST(check_configuration_can_be_launched)
{
    const char *p = TARGET(4, 64) XAO "t COPY 0 > 2\n";

    pt_accepts(t_printf("%s+ 'config': {'threads_per_block':1024}\n", p));
    pt_refuses(t_printf("%s+ 'config': {'threads_per_block':100}\n", p),
               "config.threads_per_block is 100");
    pt_refuses(t_printf("%s+ 'config': {'threads_per_block':1056}\n", p),
               "config.threads_per_block is 1056");
    pt_refuses(t_printf("%s+ 'config': {'smem_bytes_per_block':65}\n", p),
               "must be an integer from 0 to 64");
    pt_refuses(t_printf("%s+ 'config': {'pipelining_depth':-1}\n", p),
               "config.pipelining_depth is -1");
    pt_refuses(t_printf("%s+ 'config': {'page_allocation':'best'}\n", p),
               "config.page_allocation is 'best'");
    pt_refuses(t_printf("%s+ 'config': {'sm_assignment':'best'}\n", p),
               "config.sm_assignment is 'best'");
    pt_refuses(t_printf("%s+ 'config': {'sm_assignment':{'0':4}}\n", p),
               "config.sm_assignment.0 is 4");
    pt_refuses(t_printf("%s+ 'config': {'tiling':[]}\n", p), "config.tiling");
    pt_refuses(t_printf("%s+ 'config': {'fusion_grouping':['a']}\n", p),
               "config.fusion_grouping");
    pt_accepts(t_printf("%s+ 'config': {'sm_assignment':{'0':3},"
                        "'fusion_grouping':[['a','b']],"
                        "'tiling':{'gemv':{'N_tile':4}}}\n",
                        p));
    pt_refuses(TARGET(0, 64) XAO "t COPY 0 > 2\n", "target.num_sms is 0");
}

TEST(check_gpu_label_is_compared)
{
    pt_warns(TARGET(4, 64) XAO "t COPY 0 > 2\n+ 'meta': {'gpu':'u'}\n",
             "meta['gpu']='u' != target.name='t'");
    pt_refuses(XAO "t COPY 0 > 2\n+ 'meta': []\n", "meta must be an object");
}

/* ---- the graph ---------------------------------------------------------- */

TEST(graph_counts_an_edge_once)
{
    br_mega_prog *p = pt_load("t NOP w1:1,1:1\nt NOP\nt NOP w0:1,1:1,9:1\n");
    br_mega_graph g;
    br_status st = {0};
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_mega_graph_build(&g, p, &a, &st), &st);
    ck_assert_int_eq(br_mega_graph_edges(&g), 3);
    ck_assert_uint_eq(g.topo[0], 1);
    ck_assert_uint_eq(g.topo[1], 0);
    ck_assert_uint_eq(g.rank[2], 2);
    br_mega_free(p);
    p = pt_load("t NOP w0:1\nt NOP\n");
    t_ok(br_mega_graph_build(&g, p, &a, &st), &st);
    ck_assert_ptr_null(g.topo);
    ck_assert_int_eq(br_mega_graph_edges(&g), 1);
    br_mega_free(p);
    br_arena_fini(&a);
}

/* ---- reports ------------------------------------------------------------ */

TEST(check_counts_what_it_does_not_keep)
{
    br_str s = {0};
    br_status st = {0};
    br_mega_report r;
    br_mega_prog *p;

    br_str_puts(&s, XAO);
    for (int i = 0; i < 3000; i++)
        br_str_puts(&s, "t COPY 9 > 2\n");
    p = pt_load(br_str_z(&s));
    br_str_fini(&s);
    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    ck_assert_uint_eq(r.errors.n, 1000);
    ck_assert_uint_eq(r.more_errors, 2000);
    br_mega_report_json(p, &r, &s);
    ck_assert_ptr_nonnull(strstr(s.at, "\"more_errors\": 2000"));
    br_str_fini(&s);
    br_mega_report_fini(&r);
    br_mega_free(p);
}

TEST(check_labels_with_a_nul_are_told_whole)
{
    char *json = pt_json(XAO "t COPY 9 > 2\n");
    char *text = t_printf("%s", json), *at = strstr(text, "\"label\":\"t0\"");
    br_status st = {0};
    br_str s = {0};
    br_mega_report r;
    br_mega_prog *p;

    ck_assert_ptr_nonnull(at);
    text = t_printf("%.*s\"label\":\"a\\u0000b\"%s", (int)(at - text), text,
                    at + strlen("\"label\":\"t0\""));
    t_ok(br_mega_load(&p, text, strlen(text), &st), &st);
    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    ck_assert_str_eq(r.errors.at[0], "task 0 (a\xc0\x80"
                                     "b) reads missing buffer 9");
    br_mega_report_json(p, &r, &s);
    ck_assert_ptr_nonnull(
        strstr(s.at, "task 0 (a\\u0000b) reads missing buffer 9"));
    br_str_fini(&s);
    br_mega_report_fini(&r);
    br_mega_free(p);
}

/* Warnings take no room away from errors, and an error that is only counted
 * is an error. */
TEST(check_many_warnings_hide_no_error)
{
    br_str s = {0};

    for (int i = 0; i < 1200; i++)
        br_str_puts(&s, "b s ACTIVATION F32 [4]\n");
    br_str_puts(&s, "b x IO_INPUT F32 [1,4]\nb w WEIGHT F32 [4,4]\n"
                    "b y ACTIVATION F32 [1,4]\nb o IO_OUTPUT F32 [1,4]\n");
    for (int i = 0; i < 1200; i++)
        br_str_printf(&s, "t ADD %d,%d > %d\n", i, i, i);
    br_str_puts(&s, "t GEMV_TILE 1200,1201 > 1202 {'K':4,'N_tile':2,"
                    "'n_off':0}\nt COPY 1202 > 1203 w1200:1\n");
    pt_refuses(br_str_z(&s), "rows [0,1) columns [2,4), which no task");
    br_str_fini(&s);
}

#define ROWS(rows, at, cols, from)                                     \
    "t GEMM_TILE 0,1 > 2 c0 {'M_tile':" #rows ",'m_off':" at ",'K':2," \
    "'N_tile':" cols ",'n_off':" from "}\n"

/* Many bands of rows with few columns, and whole readers: looked at from the
 * side. Both ways of lying give the same text. */
TEST(check_tall_buffers_are_read_where_written)
{
    br_str s = {0};

    br_str_puts(&s, "b x IO_INPUT F32 [40,2]\nb w WEIGHT F32 [2,2]\n"
                    "b y ACTIVATION F32 [40,2]\nb o IO_OUTPUT F32 [40,2]\n");
    for (int i = 39; i >= 0; i--)
        br_str_printf(&s, ROWS(1, "%d", "%d", "0"), i, i == 17 ? 1 : 2);
    pt_refuses(t_printf("%st COPY 2 > 3 c1 w0:40\n", br_str_z(&s)),
               "rows [17,18) columns [1,2), which no task");
    br_str_puts(&s, ROWS(1, "17", "1", "1"));
    pt_accepts(t_printf("%st COPY 2 > 3 c1 w0:41\n", br_str_z(&s)));
    pt_refuses(t_printf("%s" ROWS(2, "3", "1", "1") "t COPY 2 > 3 c1 w0:42\n",
                        br_str_z(&s)),
               "their tiles OVERLAP");
    br_str_fini(&s);
}

/* ---- the command -------------------------------------------------------- */

TEST(prog_check_prints_a_verdict)
{
    const char *good = t_printf("%s/good.json", t_tmpdir());
    const char *bad = t_printf("%s/bad.json", t_tmpdir());
    char *json = pt_json(XAO "t COPY 0 > 2\n");
    t_proc r;

    t_write(good, json, strlen(json));
    /* a name that rings the bell */
    json = pt_json(XAO "b z\\u0007 ACTIVATION F32 [1,4]\nt COPY 3 > 2\n");
    t_write(bad, json, strlen(json));
    t_run(&r, "prog", "check", good);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, "accepted\n1 tasks, 3 buffers, 1 counters, 0 "
                            "edges, acyclic; weights 0.00 MB; workers not "
                            "assigned\n");
    ck_assert_str_eq(r.err, "");
    t_run(&r, "prog", "check", good, "--json");
    ck_assert_str_eq(r.out,
                     "{\"ok\": true, \"errors\": [], \"warnings\": [], "
                     "\"stats\": {\"tasks\": 1, \"buffers\": 3, \"counters\": "
                     "1, \"edges\": 0, \"acyclic\": true, \"weight_MB\": 0.0, "
                     "\"sm_assigned\": false}}\n");
    t_run(&r, "prog", "check", bad);
    ck_assert_int_eq(r.exit, 4);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(strncmp(r.out,
                             "rejected: 1 error\nerror: task 0 (t0) reads "
                             "buffer #3 ('z\\x07') that is never produced\n",
                             78),
                     0);
    t_run(&r, "prog", "check", bad, "--json", "--compat", "amk-0.2");
    ck_assert_int_eq(r.exit, 4);
    ck_assert_int_eq(strncmp(r.out, "{\"ok\": false, \"errors\": [\"", 26), 0);
    t_run(&r, "prog", "check", "/nowhere.json");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_str_eq(r.out, "");
    ck_assert_ptr_nonnull(strstr(r.err, "/nowhere.json"));
}

/* A graph, a list of models: any object reads as a program of nothing. */
TEST(cli_prog_check_wonders_about_a_program_without_tasks)
{
    const char *file = t_printf("%s/other.json", t_tmpdir());
    t_proc r;

    t_write(file, "{\"nodes\": []}", 13);
    t_run(&r, "prog", "check", file);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, "accepted, 1 warning\nwarning: there are no tasks: "
                            "is this a task program?\n0 tasks, 0 buffers, 0 "
                            "counters, 0 edges, acyclic; weights 0.00 MB; "
                            "workers not assigned\n");
}
