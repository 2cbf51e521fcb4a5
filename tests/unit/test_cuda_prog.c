/* test_cuda_prog.c - task programs in one launch, on the emulated device of
 * tests/emu: what no proof can know, results that are inputs too, dtypes. The
 * recorded programs: test_interp_vectors.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <string.h>

#include "drv/cuda/cuda_prog.h"

enum { IN = BR_MBK_IO_INPUT, OUT = BR_MBK_IO_OUTPUT, F32 = BR_MDT_F32 };

/* The kit's program on the device. */
static br_cuda_prog *
device(kit *k)
{
    br_mega_vm_desc d = {0};
    br_cuda_prog *x;

    kit_load(k);
    br_mega_vm_free(k->vm);
    t_ok(br_cuda_prog_new(&x, k->p, &k->st), &k->st);
    br_cuda_prog_desc(x, &d);
    t_ok(br_mega_vm_new(&k->vm, k->p, &d, &k->st), &k->st);
    return x;
}

/* One task with one input; its run fails and says so. */
static void
refuses(const char *op, const char *params, int in, int out, const double *v,
        const char *says)
{
    kit k = {0};
    int x = kit_buf(&k, IN, in, "4"), y;
    br_cuda_prog *d;

    if (strcmp(op, "EMBED") == 0) {
        int table = kit_buf(&k, IN, F32, "3, 2");
        y = kit_buf(&k, OUT, out, "4, 2");
        kit_task(&k, op, t_printf("%d, %d", x, table), t_printf("%d", y),
                 params, "");
    } else {
        y = kit_buf(&k, OUT, out, "4");
        kit_task(&k, op, t_printf("%d", x), t_printf("%d", y), params, "");
    }
    d = device(&k);
    kit_bind(&k, x, v, 4);
    if (y == 2)
        kit_bind(&k, 1, (double[]){1, 2, 3, 4, 5, 6}, 6);
    ck_assert_int_eq(br_mega_vm_run_by(k.vm, br_cuda_prog_runner(d), &k.st),
                     BR_E_FORMAT);
    ck_assert_str_eq(k.st.msg, says);
    br_cuda_prog_free(d);
    kit_end(&k);
}

TEST_WITHIN(cuda_programs_name_the_element_that_is_wrong, 60)
{
    t_emulate_cuda();
    refuses("EMBED", "\"hidden\": 2", BR_MDT_I32, F32, (double[]){0, 1, 3, 9},
            "task 0 (EMBED): input 0, element 2: no row of the table");
    refuses("COPY", "", F32, BR_MDT_I8, (double[]){0, 127.9, -128.5, 128},
            "task 0 (COPY): output, element 3: does not fit I8");
    t_emulate_end();
}

/* Every float dtype to every other as the VM rounds, ties and limits. */
TEST_WITHIN(cuda_programs_round_as_the_vm, 60)
{
    static const double v[] = {0,        -0.0, 1,       1.0009765625, 448,
                               464,      1e-8, 65504.0, 65520,        -1e9,
                               0x1p-149, 3.3,  -7};
    static const int to[] = {F32,           BR_MDT_F16,    BR_MDT_BF16,
                             BR_MDT_F8E4M3, BR_MDT_F8E5M2, BR_MDT_BOOL};
    enum { N = BR_COUNT(v) };

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(to); i++)
        for (size_t j = 0; j < BR_COUNT(to); j++) {
            kit k = {0}, ref = {0};
            kit *both[] = {&k, &ref};
            br_cuda_prog *d = NULL;
            int y = 0;

            for (int b = 0; b < 2; b++) {
                int x = kit_buf(both[b], IN, to[i], "13");
                y = kit_buf(both[b], OUT, to[j], "13");
                kit_task(both[b], "COPY", t_printf("%d", x), t_printf("%d", y),
                         "", "");
                if (b)
                    kit_load(&ref);
                else
                    d = device(&k);
                kit_bind(both[b], x, v, N);
            }
            t_ok(br_mega_vm_run_by(k.vm, br_cuda_prog_runner(d), &k.st), &k.st);
            t_ok(kit_run(&ref), &ref.st);
            ck_assert_mem_eq(br_mega_vm_get(k.vm, y).data,
                             br_mega_vm_get(ref.vm, y).data,
                             br_mega_vm_get(k.vm, y).nbytes);
            br_cuda_prog_free(d);
            kit_end(&k);
            kit_end(&ref);
        }
    t_emulate_end();
}

/* y = x + y: all of it is computed before any of it is stored. */
TEST_WITHIN(cuda_programs_may_write_what_they_read, 60)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "300"), y = kit_buf(&k, OUT, F32, "300");
    br_cuda_prog *d;
    double v[300];

    t_emulate_cuda();
    kit_task(&k, "COPY", t_printf("%d", x), t_printf("%d", y), "", "");
    kit_task(&k, "ADD", t_printf("%d, %d", x, y), t_printf("%d", y), "",
             "0>=1");
    d = device(&k);
    for (int i = 0; i < 300; i++)
        v[i] = i;
    kit_bind(&k, x, v, 300);
    t_ok(br_mega_vm_run_by(k.vm, br_cuda_prog_runner(d), &k.st), &k.st);
    for (size_t i = 0; i < 300; i++)
        ck_assert_double_eq(kit_get(&k, y, i), 2 * (double)i);
    br_cuda_prog_free(d);
    kit_end(&k);
    t_emulate_end();
}

/* With one device the shards are buffers of its memory: their sum in order, as the VM
 * has it (1e8 + 1 - 1e8 is 0). The seam for several: docs/architecture.md. */
TEST_WITHIN(cuda_programs_sum_shards_in_order, 60)
{
    static const double v[3][2] = {{1e8, 3}, {1, 0.5}, {-1e8, 448}};
    kit k = {0}, ref = {0};
    kit *both[] = {&k, &ref};
    br_cuda_prog *d = NULL;
    int y = 0;

    t_emulate_cuda();
    for (int b = 0; b < 2; b++) {
        int x[3];

        for (int i = 0; i < 3; i++)
            x[i] = kit_buf(both[b], IN, i == 2 ? BR_MDT_F32 : BR_MDT_BF16, "2");
        y = kit_buf(both[b], OUT, F32, "2");
        kit_task(both[b], "ALLREDUCE_SHARD",
                 t_printf("%d, %d, %d", x[0], x[1], x[2]), t_printf("%d", y),
                 "", "");
        if (b)
            kit_load(&ref);
        else
            d = device(&k);
        for (int i = 0; i < 3; i++)
            kit_bind(both[b], x[i], v[i], 2);
    }
    t_ok(br_mega_vm_run_by(k.vm, br_cuda_prog_runner(d), &k.st), &k.st);
    t_ok(kit_run(&ref), &ref.st);
    ck_assert_mem_eq(br_mega_vm_get(k.vm, y).data,
                     br_mega_vm_get(ref.vm, y).data,
                     br_mega_vm_get(k.vm, y).nbytes);
    ck_assert_double_eq(kit_get(&k, y, 1), 451.5);
    br_cuda_prog_free(d);
    kit_end(&k);
    kit_end(&ref);
    t_emulate_end();
}
