/* cuda_decode_times.c - what a step of the decode megakernel takes, and what is
 * around it: handing it over, drawing, leaving, another sequence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_decode.h"

static int
by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static float
time_run(struct bench *b, enum br_cu_mode mode, uint32_t pos, uint32_t steps)
{
    float ms[9];
    const size_t n = b->quick ? 5 : BR_COUNT(ms);
    void *e0, *e1;

    CU(b, cuEventCreate(&e0, 0));
    CU(b, cuEventCreate(&e1, 0));
    for (size_t i = 0; i < n; i++) {
        br_cu_decode_seek(&b->d, TOKEN, pos);
        CU(b, cuEventRecord(e0, b->cu.stream));
        OK(b, br_cu_decode_run(&b->d, mode, steps, &b->st));
        CU(b, cuEventRecord(e1, b->cu.stream));
        CU(b, cuEventSynchronize(e1));
        CU(b, cuEventElapsedTime(&ms[i], e0, e1));
    }
    qsort(ms, n, sizeof *ms, by_value);
    return ms[n / 2] / (float)steps;
}

static const uint32_t at[] = {128, 1536, 8192};

/* Milliseconds a token for each pair of depths. */
static void
times_of_depths(struct bench *b)
{
    const char *p = b->depths;

    while (*p) {
        char *end;
        uint32_t v[3];
        v[0] = v[1] = (uint32_t)strtoul(p, &end, 10);
        v[2] = 12;
        for (int i = 1; i < 3 && *end == '/'; i++)
            v[i] = (uint32_t)strtoul(end + 1, &end, 10);
        if (!v[0] || !v[1] || !v[2] || (*end && *end != ',')) {
            fprintf(stderr, "bench: --depths %s: A/B/C,D/E/F wanted\n",
                    b->depths);
            exit(2);
        }
        CU(b,
           cuMemcpyHtoD(b->d.args + offsetof(struct br_mk_args, depth), v, 12));
        printf("depths %-18s %2u/%2u/%2u", b->d.shape.name, v[0], v[1], v[2]);
        for (size_t i = 0; i < BR_COUNT(at); i += b->quick ? 2 : 1)
            printf(" %.4f", (double)time_run(b, BR_CU_MEGA, at[i], 32));
        printf(" ms/token\n");
        fflush(stdout);
        p = end + (*end == ',');
    }
}

static void
times(struct bench *b)
{
    const br_cu_shape *s = &b->d.shape;
    double bytes = (double)b->d.plan.stream_bytes;

    for (size_t i = 0; i < BR_COUNT(at); i++) {
        float ms, one, pk;
        if (at[i] + 128 > b->d.max_pos)
            continue;
        ms = time_run(b, BR_CU_MEGA, at[i], b->quick ? 32 : 64);
        if (b->quick) {
            printf("time  %-18s pos %5u  mega %.4f ms/token\n", s->name, at[i],
                   (double)ms);
            continue;
        }
        one = time_run(b, BR_CU_MEGA, at[i], 1);
        pk = time_run(b, BR_CU_PACKETS, at[i], 4);
        printf("time  %-14s pos %5u  mega %.4f ms/token (%.0f GB/s of "
               "weights)  one step a launch %.4f  packets %.4f\n",
               s->name, at[i], (double)ms, bytes / (double)ms / 1e6,
               (double)one, (double)pk);
        fflush(stdout);
    }
}

/* A token of the launch that stays, as the host sees it. */
static double
time_resident(struct bench *b, uint32_t steps)
{
    uint32_t token;
    double ms;
    int64_t t0;

    br_cu_decode_seek(&b->d, TOKEN, 128);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, BR_CU_AHEAD, &token, &b->st));
    t0 = br_now_ns();
    for (uint32_t i = 0; i < steps; i++)
        OK(b, br_cu_decode_next(&b->d, BR_CU_AHEAD, &token, &b->st));
    ms = (double)(br_now_ns() - t0) / 1e6 / steps;
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    return ms;
}

/* Leave, a step of its own, enter: microseconds beside the two steps in it. ahead:
 * steps that are under way, or to come, when it is left. */
static double
time_leave(struct bench *b, uint32_t ahead, double ms)
{
    enum { TURNS = 51 };
    int64_t turn[TURNS], t0;
    uint32_t token;

    br_cu_decode_seek(&b->d, TOKEN, 128);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    for (int i = 0; i < TURNS; i++) {
        OK(b, br_cu_decode_next(&b->d, ahead, &token, &b->st));
        t0 = br_now_ns();
        OK(b, br_cu_decode_leave(&b->d, &b->st));
        br_cu_decode_seek(&b->d, TOKEN, 128);
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        OK(b, br_cu_decode_tokens(&b->d, &token, 1, &b->st));
        OK(b, br_cu_decode_enter(&b->d, &b->st));
        OK(b, br_cu_decode_next(&b->d, ahead, &token, &b->st));
        turn[i] = br_now_ns() - t0;
    }
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    return (kit_quantile_ms(turn, TURNS, 0.5) - 2 * ms) * 1e3;
}

/* From a token and a position that the host has to the next token there, while the
 * kernel waits: microseconds beside a step's own. Each is of the other one of two
 * sequences. */
static double
time_admit(struct bench *b, double ms)
{
    enum { TURNS = 101, FAR = 4 /* blocks */ };
    int64_t turn[TURNS], t0;
    uint32_t token;

    br_cu_decode_seek(&b->d, TOKEN, 128);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
    for (uint32_t i = 0; i < TURNS; i++) {
        t0 = br_now_ns();
        br_cu_decode_seek_in(&b->d, i % 2 * FAR, TOKEN, 128);
        OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
        turn[i] = br_now_ns() - t0;
    }
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    return (kit_quantile_ms(turn, TURNS, 0.5) - ms) * 1e3;
}

/* Two sequences in turn, their tokens known: milliseconds a step. */
static double
time_turns(struct bench *b)
{
    enum { STEPS_OF = 60, ROUNDS = 5, FAR = 4 };
    uint32_t token;
    int64_t t0 = 0;

    br_cu_decode_seek(&b->d, TOKEN, 128);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
    t0 = br_now_ns();
    for (int r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < STEPS_OF; i++) {
            br_cu_decode_seek_in(&b->d, i % 2 * FAR, TOKEN, 128 + i / 2);
            br_cu_decode_post(&b->d);
        }
        for (uint32_t i = 0; i < STEPS_OF; i++)
            OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
    }
    const double ms = (double)(br_now_ns() - t0) / 1e6 / (STEPS_OF * ROUNDS);
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    return ms;
}

static void
time_stays(struct bench *b, uint32_t steps)
{
    const double ms = (double)time_run(b, BR_CU_MEGA, 128, 60);
    const double one = (double)time_run(b, BR_CU_MEGA, 128, 1);

    printf(
        "stays %-14s %u tokens in a launch: %.4f ms each; two sequences in "
        "turn %.4f; beside a step's %.4f (in a launch of its own %.4f): first "
        "token of another sequence %.1f us; leave, step, enter, two steps "
        "in it: %.0f us, with steps ahead %.0f\n",
        b->d.shape.name, steps, time_resident(b, steps), time_turns(b), ms, one,
        time_admit(b, ms), time_leave(b, 0, ms),
        time_leave(b, BR_CU_AHEAD, ms));
    fflush(stdout);
}

/* One launch that does next to nothing, as what is asked of the driver anyhow. */
static void *
graph_alone(struct bench *b)
{
    void *fn, *graph, *exec = NULL;
    uint64_t to = b->d.logits, n = 1, seed = 0;
    float mean = 0, scale = 0;
    void *params[] = {&to, &n, &seed, &mean, &scale};

    CU(b, cuModuleGetFunction(&fn, b->d.setup_mod, "br_fill_f32"));
    OK(b, br_cuda_record(&b->cu, NULL, &b->st));
    OK(b, br_cuda_recorded(&b->cu,
                           BR_CU(&b->cu, &b->st,
                                 cuLaunchKernel(fn, 1, 1, 1, 32, 1, 1, 0,
                                                b->cu.stream, params, NULL)),
                           &graph, &b->st));
    OK(b, br_cuda_graph(&b->cu, &exec, graph, &b->st));
    return exec;
}

/* What the calling thread computes to hand a step over, and a draw behind it;
 * and from there being a token and a position to the next token being here,
 * beside the time of a launch of one step on the device. Medians. */
static void
time_submit(struct bench *b)
{
    enum { N = 101, AT = 128 };
    const br_cu_pick how = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
    const double step = (double)time_run(b, BR_CU_MEGA, AT, 1) * 1e3;
    int64_t run[N], both[N], one[N], call[N], token[N], t0;
    void *graph = graph_alone(b);
    uint32_t got;

    for (int i = 0; i < N; i++) {
        br_cu_decode_seek(&b->d, TOKEN, AT);
        t0 = br_now_ns();
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        run[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_pick(&b->d, &how, &b->st));
        both[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_picked(&b->d, &got, &b->st));
        OK(b, br_cu_decode_wait(&b->d, &b->st));
        br_cu_decode_seek(&b->d, TOKEN, AT);
        t0 = br_now_ns();
        OK(b, br_cu_decode_run_pick(&b->d, &how, &b->st));
        one[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_picked(&b->d, &got, &b->st));
        OK(b, br_cu_decode_wait(&b->d, &b->st));
        t0 = br_now_ns();
        CU(b, cuGraphLaunch(graph, b->cu.stream));
        call[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_wait(&b->d, &b->st));
        t0 = br_now_ns();
        br_cu_decode_seek(&b->d, TOKEN, AT);
        OK(b, br_cu_decode_enter(&b->d, &b->st));
        OK(b, br_cu_decode_next(&b->d, 0, &got, &b->st));
        token[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_leave(&b->d, &b->st));
        OK(b, br_cu_decode_wait(&b->d, &b->st));
    }
    printf(
        "submit %-18s a step %.1f us (9 of 10: %.1f), with its draw %.1f "
        "(%.1f), both in one %.1f (%.1f), the driver's call for a graph of one "
        "small kernel %.1f (%.1f); of the launch that stays 0; its first "
        "token, "
        "launch included, after %.1f us beside a step's %.1f\n",
        b->d.shape.name, kit_quantile_ms(run, N, 0.5) * 1e3,
        kit_quantile_ms(run, N, 0.9) * 1e3, kit_quantile_ms(both, N, 0.5) * 1e3,
        kit_quantile_ms(both, N, 0.9) * 1e3, kit_quantile_ms(one, N, 0.5) * 1e3,
        kit_quantile_ms(one, N, 0.9) * 1e3, kit_quantile_ms(call, N, 0.5) * 1e3,
        kit_quantile_ms(call, N, 0.9) * 1e3,
        kit_quantile_ms(token, N, 0.5) * 1e3 - step, step);
    CU(b, cuGraphExecDestroy(graph));
}

/* Microseconds of a draw, launch included. */
static void
time_picks(struct bench *b)
{
    float *x = br_alloc(b->d.shape.vocab * 4ull);
    void *e0, *e1;

    make_logits(x, b->d.shape.vocab, 0);
    CU(b, cuMemcpyHtoD(b->d.logits, x, b->d.shape.vocab * 4ull));
    br_free(x);
    CU(b, cuEventCreate(&e0, 0));
    CU(b, cuEventCreate(&e1, 0));
    printf("draw  %-14s", b->d.shape.name);
    for (size_t i = 0; i < 4; i++) {
        float ms;
        CU(b, cuEventRecord(e0, b->cu.stream));
        for (int k = 0; k < 50; k++)
            OK(b, br_cu_decode_pick(&b->d, &draws[i], &b->st));
        CU(b, cuEventRecord(e1, b->cu.stream));
        CU(b, cuEventSynchronize(e1));
        CU(b, cuEventElapsedTime(&ms, e0, e1));
        printf("  T %g k %d p %g: %.1f us", (double)draws[i].temperature,
               draws[i].top_k, (double)draws[i].top_p, (double)ms * 20);
    }
    printf("\n");
}

/* The clock under this load, measured: 1980 without the tensor cores. */
#define MHZ 1790.0

/* A layer on one time line, the mean of the layers but the first: when the
 * first, the mean and the last worker with tiles of a phase (ATTN: all) passed
 * its stamps. Clocks are set equal where TOKEN ends, which all do together. */
static void
timeline(struct bench *b, const unsigned long long *c)
{
    static const char *op_name[] = {"qkv", "attn", "out", "glu", "down"};
    const uint32_t W = b->d.plan.n_workers, N = b->d.plan.n_inst;
    const uint32_t L = b->d.shape.n_layers;

    for (uint32_t op = 0; op < 5; op++) {
        printf("line  %-6s", op_name[op]);
        for (uint32_t k = 0; k < 4; k++) {
            double lo = 0, mean = 0, hi = 0;
            for (uint32_t l = 1; l < L; l++) {
                double first = 1e9, last = -1e9, sum = 0, n = 0, zero = 1e9;
                for (uint32_t w = 0; w < W; w++) {
                    const unsigned long long *t = c + (size_t)w * N * 4;
                    const struct br_mk_inst *in =
                        &b->d.plan.inst[w * N + l * 5 + op];
                    double end = (double)t[(size_t)(N - 1) * 4 + 3];
                    double stamp = (double)t[(l * 5 + op) * 4 + k] - end;
                    zero = BR_MIN(zero, (double)t[l * 5 * 4] - end);
                    if (!in->n_tiles && op != BR_MK_ATTN)
                        continue;
                    if (t[(l * 5 + op) * 4 + k] < t[l * 5 * 4])
                        continue; /* no task: the stamp is an old one */
                    first = BR_MIN(first, stamp), last = BR_MAX(last, stamp);
                    sum += stamp, n += 1;
                }
                lo += (first - zero) / MHZ / (L - 1);
                mean += (sum / n - zero) / MHZ / (L - 1);
                hi += (last - zero) / MHZ / (L - 1);
            }
            printf("  %6.2f %6.2f %6.2f |", lo, mean, hi);
        }
        printf("\n");
    }
}

/* Mean microseconds of the parts of each kind of phase over all workers that
 * have work in it; needs an image built with -DBR_MK_PROFILE. */
void
profile_decode(struct bench *b, uint32_t pos)
{
    static const char *op_name[] = {"qkv",  "attn", "out",  "glu",
                                    "down", "head", "token"};
    const uint32_t W = b->d.plan.n_workers, N = b->d.plan.n_inst;
    const uint32_t tasks =
        br_cu_tasks(&b->d.shape) * (pos / BR_MK_KV_BLOCK + 1);
    size_t n = (size_t)W * N * 4;
    unsigned long long *c = br_alloc(n * 8);
    double sum[7][5] = {{0}}, step = 0;

    br_cu_decode_seek(&b->d, TOKEN, pos);
    OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 5, &b->st));
    CU(b, cuStreamSynchronize(b->cu.stream));
    CU(b, cuMemcpyDtoH(c, b->d.profile, n * 8));
    for (uint32_t w = 0; w < W; w++) {
        for (uint32_t i = 0; i < N; i++) {
            const struct br_mk_inst *in = &b->d.plan.inst[w * N + i];
            const unsigned long long *t = c + ((size_t)w * N + i) * 4;
            double us = 1.0 / MHZ;
            if (!in->n_tiles && (in->op != BR_MK_ATTN || in->tile0 >= tasks) &&
                in->op != BR_MK_TOKEN)
                continue;
            sum[in->op][4] += 1;
            sum[in->op][3] += (double)(t[3] - t[0]) * us;
            if (in->op == BR_MK_TOKEN)
                continue;
            sum[in->op][0] += (double)(t[1] - t[0]) * us;
            sum[in->op][1] += (double)(t[2] - t[1]) * us;
            sum[in->op][2] += (double)(t[3] - t[2]) * us;
        }
        step += (double)(c[((size_t)w * N + N - 1) * 4 + 3] -
                         c[(size_t)w * N * 4]) /
                MHZ / W;
    }
    for (int i = 0; i < 7; i++)
        printf("prof  %-6s wait+input %6.2f  product %6.2f  publish %6.2f  "
               "whole %6.2f us\n",
               op_name[i], sum[i][0] / sum[i][4], sum[i][1] / sum[i][4],
               sum[i][2] / sum[i][4], sum[i][3] / sum[i][4]);
    printf("prof  pos %u, step %.2f us\n", pos, step);
    timeline(b, c);
    br_free(c);
}

void
time_decode(struct bench *b)
{
    if (!b->quick)
        time_picks(b);
    time_stays(b, b->quick ? 60 : 1000);
    time_submit(b);
}

void
time_steps(struct bench *b)
{
    if (b->depths)
        times_of_depths(b);
    else
        times(b);
}
