/* bench_ptx_card.c - random PTX on an NVIDIA GPU, beside the interpreter.
 *
 *   bench_ptx_card [SECONDS [SEED]]    60 s from seed 1 on if nothing is said
 *
 * Straight code, some instructions on numbers at the edges of their types, as much
 * of it as the time allows: what NVIDIA's compiler and card make of it has to be
 * what ours says to the bit. A kernel that differs is written to ptx_card_SEED.ptx.
 * docs/kernels.md says what is known to differ. Exit code 1: more than one in 50.
 * SPDX-License-Identifier: Apache-2.0 */
#define PR_MORE
#include "../tests/unit/ptx_random.h"
#include "base/thread.h"
#include "drv/cuda/cuda_api.h"
#include "drv/cuda/cuda_target.h"

#include <stdlib.h>

enum { SHOWN = 20 /* files, at most */ };

static int
stop(const br_status *st)
{
    fprintf(stderr, "bench_ptx_card: %s\n", st->msg);
    return 1;
}

static br_code
compare(uint64_t seed, const br_ktarget *cuda, bool *same, br_str *text,
        br_status *st)
{
    static uint8_t want[PR_OUT], got[PR_OUT];
    const br_ptx_opts o = {.strict = true};
    br_kir *m;
    br_code code;

    ptx_straight(text, seed);
    pr_text = br_str_z(text);
    BR_TRY(br_ptx_parse(&m, text->at, text->n, &o, st));
    code = pr_run(br_ktarget_find("interp"), m, want, st);
    if (code == BR_OK)
        code = pr_run(cuda, m, got, st);
    br_kir_free(m);
    *same = code == BR_OK && memcmp(want, got, sizeof want) == 0;
    return code;
}

static void
keep(uint64_t seed, const br_str *text)
{
    char name[64];
    br_status st = {0};

    snprintf(name, sizeof name, "ptx_card_%llu.ptx", (unsigned long long)seed);
    if (br_file_write(name, text->at, text->n, &st) == BR_OK)
        printf("%s differs\n", name);
    else
        fprintf(stderr, "bench_ptx_card: %s\n", st.msg);
}

int
main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 60;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const int64_t end = br_now_ns() + (int64_t)(seconds * 1e9);
    int ran = 0, differ = 0;
    br_status st = {0};
    br_ktarget cuda;
    br_cuda hold; /* so that the device is not opened for each anew */

    br_cuda_target(&cuda, "cuda");
    if (br_cuda_open(&hold, 0, &st) != BR_OK)
        return stop(&st);
    for (; br_now_ns() < end; seed++, ran++) {
        br_str text = {0};
        bool same;

        if (compare(seed, &cuda, &same, &text, &st) != BR_OK) {
            br_prefix(&st, "seed %llu", (unsigned long long)seed);
            return stop(&st);
        }
        if (!same && ++differ <= SHOWN)
            keep(seed, &text);
        br_str_fini(&text);
    }
    printf("%s: %d kernels, %d differ from the interpreter\n", hold.device_name,
           ran, differ);
    br_cuda_close(&hold);
    return differ * 50 > ran;
}
