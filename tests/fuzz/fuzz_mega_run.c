/* fuzz_mega_run.c - any bytes as a task program, run unchecked.
 *
 * The VM promises to read and write only what the program's buffers hold and
 * to end, whatever the program says: here it gets programs that nobody has
 * checked, tensors of small numbers, little memory and few steps. Whether it
 * runs must not depend on when: the same order gives the same verdict.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/dtype.h"
#include "mega/interp.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, MAX_WORK = 1 << 20 };

/* 0, 1, 2, 0, 1 ..: ids and positions that small tables have. */
static void
bind_small(br_mega_vm *vm, const br_mega_prog *p)
{
    for (size_t i = 0; i < p->n_buffers; i++) {
        br_mega_value v = br_mega_vm_get(vm, (int64_t)i);
        unsigned char *data;

        if (!br_mega_kind_readonly(p->buffers[i].kind))
            continue;
        data = br_try_calloc(v.nbytes + 1, 1);
        br_check(data);
        for (int64_t k = 0;
             v.dtype != BR_MDT_I4 && k < br_mega_numel(&p->buffers[i]); k++)
            br_check(br_dt_put(v.dtype, data, k, (double)(k % 3)));
        v.data = data;
        br_check(br_mega_vm_bind(vm, (int64_t)i, &v, NULL) == BR_OK &&
                 "a value of its own dtype and shape binds");
        br_free(data);
    }
}

/* The verdict does not depend on when, unless a cache remembers. */
static void
same_verdict(const br_mega_prog *p, const br_status *a, const br_status *b)
{
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].kind == BR_MBK_KV_CACHE)
            return;
    br_check(a->code == b->code && strcmp(a->msg, b->msg) == 0);
}

/* What the check accepts runs, in any order, and to the same bits. Only what
 * the tensors hold (an id outside its table, a number that an integer dtype
 * does not have), the limits of this fuzzer, and a task that reads what only
 * it writes (accepted with a warning, as upstream) may stop it. */
static void
accepted_runs(const br_mega_prog *p, br_mega_vm *vm)
{
    br_mega_report r = {.ok = false};
    br_status st = {0};

    br_check(br_mega_check(p, BR_MEGA_SOUND, &r, NULL) == BR_OK);
    for (size_t i = 0; i < r.warnings.n; i++)
        r.ok = r.ok && !strstr(r.warnings.at[i], "its own uninitialized");
    if (r.ok &&
        br_mega_vm_adversarial(vm, 3, BR_MEGA_ORDER_SWEEP, 0, &st) != BR_OK)
        br_check(st.code == BR_E_LIMIT || st.code == BR_E_OOM ||
                 strstr(st.msg, ", outside the ") ||
                 strstr(st.msg, " does not fit "));
    br_mega_report_fini(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_mega_vm_desc d = {.max_bytes = MAX_BYTES, .max_work = MAX_WORK};
    br_status st = {0}, again = {0};
    br_mega_prog *p;
    br_mega_vm *vm;
    size_t n;

    if (br_mega_load(&p, (const char *)data, size, &st) != BR_OK)
        return 0;
    if (br_mega_vm_new(&vm, p, &d, &st) == BR_OK) {
        bind_small(vm, p);
        (void)!br_mega_vm_run(vm, BR_MEGA_ORDER_SWEEP, 0, &st);
        br_mega_vm_order(vm, &n);
        br_check(n <= p->n_tasks && (st.code != BR_OK || n == p->n_tasks));
        (void)!br_mega_vm_adversarial(vm, 2, BR_MEGA_ORDER_RANDOM, 1, NULL);
        (void)!br_mega_vm_run(vm, BR_MEGA_ORDER_SWEEP, 0, &again);
        br_check((st.code == BR_OK || st.msg[0]) && "an error says why");
        same_verdict(p, &st, &again);
        accepted_runs(p, vm);
        br_mega_vm_free(vm);
    }
    br_mega_free(p);
    return 0;
}
