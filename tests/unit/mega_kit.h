/* mega_kit.h - small task programs in a few lines of a test.
 *
 *     kit k = {0};
 *     int x = kit_buf(&k, BR_MBK_IO_INPUT, BR_MDT_F32, "1, 4");
 *     int y = kit_buf(&k, BR_MBK_IO_OUTPUT, BR_MDT_F32, "1, 4");
 *     kit_task(&k, "GELU", kit_ids(x), kit_ids(y), "", "");
 *     kit_load(&k);
 *     kit_bind(&k, x, (double[]){1, 2, 3, 4}, 4);
 *     t_ok(kit_run(&k), &k.st);
 *     ... kit_get(&k, y, 0) ...
 *     kit_end(&k);
 *
 * Task i signals counter i. SPDX-License-Identifier: Apache-2.0 */
#ifndef MEGA_KIT_H
#define MEGA_KIT_H

#include "mega/interp.h"

typedef struct kit {
    br_str buffers, tasks;
    const char *pages; /* JSON, or NULL */
    int n_buffers, n_tasks;
    br_mega_prog *p;
    br_mega_vm *vm;
    br_mega_vm_desc desc;
    br_status st;
} kit;

int kit_buf(kit *k, int kind, int dtype, const char *shape);
/* in, out: "0, 1"; params: "\"eps\": 1e-5"; waits: "0>=1, 3>=2" */
int kit_task(kit *k, const char *op, const char *in, const char *out,
             const char *params, const char *waits);
const char *kit_text(kit *k); /* the program as JSON */
void kit_load(kit *k);
/* kit_load, expecting the VM to refuse the program. */
br_code kit_refused(kit *k);
/* Elements in the buffer's own dtype and shape. */
void kit_bind(kit *k, int buffer, const double *v, size_t n);
br_code kit_run(kit *k);
double kit_get(kit *k, int buffer, size_t i);
size_t kit_numel(kit *k, int buffer);
void kit_end(kit *k);

#endif
