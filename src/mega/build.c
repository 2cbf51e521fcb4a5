/* build.c - the life of a program: born empty, filled by a loader or a
 * lowering, freed at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"
#include "mega/mega.h"

br_mega_prog *
br_mega_new(size_t arena_limit)
{
    br_mega_prog *p = br_try_calloc(1, sizeof *p);

    if (!p)
        return NULL;
    br_arena_init(&p->arena, arena_limit);
    p->ir_version = "0.2.0";
    p->ir_version_n = 5;
    p->abi_version = "0.2";
    p->abi_version_n = 3;
    p->meta = br_json_new(&p->arena, BR_J_OBJ);
    if (!p->meta) {
        br_mega_free(p);
        return NULL;
    }
    return p;
}

void
br_mega_free(br_mega_prog *p)
{
    if (!p)
        return;
    br_ir_free(p->graph);
    br_arena_fini(&p->arena);
    br_free(p);
}
