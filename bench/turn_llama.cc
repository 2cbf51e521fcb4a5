// turn_llama.cc - llama.cpp or ik_llama.cpp as a side of bench_pairs: see bench_turn.c.
//
//   turn_llama MODEL [-t THREADS] [-rtr]
//
// Not built by the Makefile. With a tree of theirs that is built (static), in SRC and
// BUILD, and -DIK for ik_llama.cpp:
//
//   c++ -O2 -I SRC/include -I SRC/ggml/include bench/turn_llama.cc BUILD/src/libllama.a
//       BUILD/ggml/src/*.a -fopenmp -ldl -lpthread -o turn_llama
//
// What their llama-bench does for `-p 0 -n N`, with its defaults; -rtr 1 as there.
// SPDX-License-Identifier: Apache-2.0
#include "llama.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static llama_batch one(llama_token *token, int at)
{
#ifdef IK
    return llama_batch_get_one(token, 1, at, 0);
#else
    (void)at; // it counts for itself
    return llama_batch_get_one(token, 1);
#endif
}

int main(int argc, char **argv)
{
    auto mp = llama_model_default_params();
    auto cp = llama_context_default_params();
    int threads = 2, at = 0;
    char line[64];

    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "-t") && i + 1 < argc)
            threads = atoi(argv[++i]);
#ifdef IK
        else if (!strcmp(argv[i], "-rtr"))
            mp.repack_tensors = true;
#endif
        else
            return fprintf(stderr, "turn_llama: %s?\n", argv[i]), 2;
    }
    if (argc < 2)
        return fprintf(stderr, "usage: turn_llama MODEL [-t N] [-rtr]\n"), 2;
    llama_backend_init();
    cp.n_ctx = 512;
#ifdef IK
    cp.flash_attn = true;
    cp.graph_reuse = true;
    cp.fused_moe_up_gate = true;
    cp.fused_up_gate = true;
#endif
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model *m = llama_model_load_from_file(argv[1], mp);
    llama_context *ctx = m ? llama_init_from_model(m, cp) : nullptr;
    if (!ctx)
        return fprintf(stderr, "turn_llama: %s does not open\n", argv[1]), 1;
    llama_set_n_threads(ctx, threads, threads);
    puts("ready");
    while (fflush(stdout), fgets(line, sizeof line, stdin)) {
        int n = atoi(line);
        auto from = std::chrono::steady_clock::now();

        if (n == 0) {
            llama_kv_cache_clear(ctx);
            at = 0;
        }
        for (; n > 0 && at < 512; n--, at++) {
            llama_token token = rand() % 1000;

            if (llama_decode(ctx, one(&token, at)) != 0)
                return fprintf(stderr, "turn_llama: it fails\n"), 1;
            llama_synchronize(ctx);
        }
        printf("%lld\n", (long long)std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::steady_clock::now() - from).count());
    }
    return 0;
}
