/* kernel_zrt.c - .zrt files at the command line: read, patched, shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "cg/x86/x86_pack.h"

#include <string.h>

/* NAME=u32:5 into the bytes of the slot. */
static br_code
patch(const char *arg, const br_zrt *z, char *code, br_status *st)
{
    const char *eq = strchr(arg, '=');
    size_t n = eq ? (size_t)(eq - arg) : 0;

    if (!eq || n == 0)
        return br_fail(st, BR_E_USAGE, "--slot %.100s: NAME=u32:5", arg);
    for (size_t k = 0; k < z->slots.n; k++) {
        const br_zrt_slot *s = &z->slots.at[k];
        br_kparam p = {.name = s->name, .bytes = s->bytes};

        if (s->name.n == n && memcmp(s->name.p, arg, n) == 0)
            return br_kernel_number(eq + 1, &p, (uint8_t *)code + s->at, st);
    }
    return br_fail(st, BR_E_NOT_FOUND,
                   "--slot %.100s: there is no such slot; kernel inspect lists "
                   "them",
                   arg);
}

br_code
br_kernel_zrt(br_cli *cli, char *bytes, size_t n, br_kir **out, br_kcode **code,
              br_status *st)
{
    const char *const *args; /* of commands that run it */
    size_t n_args = code ? br_opt_list(cli, BR_OPT_slot, &args) : 0;
    br_kcode *made = NULL;
    br_zrt z;
    br_code c = br_zrt_read(&z, bytes, n, st);

    if (c == BR_OK && z.target != BR_ZRT_X86)
        c = br_fail(st, BR_E_UNSUPPORTED,
                    "code for %s: kernel inspect -o X.co takes it out, gcn sim "
                    "runs it",
                    br_zrt_target_name(z.target));
    for (size_t k = 0; c == BR_OK && k < n_args; k++)
        c = patch(args[k], &z, bytes + (z.code.p - bytes), st);
    if (c == BR_OK)
        c = br_x86_unpack(out, &made, &z, st);
    br_zrt_fini(&z);
    if (code)
        *code = made;
    else
        br_ktarget_find("x86-64")->free(made);
    return c;
}

void
br_kernel_zrt_print(FILE *out, const br_zrt *z)
{
    fprintf(out, "zrt      %s, %.*s, %zu bytes of code, entry 0x%x%s\n",
            br_zrt_target_name(z->target), (int)z->name.n, z->name.p, z->code.n,
            z->entry, z->debug.n ? ", lines of the source" : "");
    fprintf(out,
            "launch   %u buffers, %u bytes besides, %u lanes, %u bytes shared",
            z->buffers, z->push_bytes, z->subgroup, z->lds_bytes);
    if (z->vgprs | z->sgprs)
        fprintf(out, ", %u vgprs, %u sgprs", z->vgprs, z->sgprs);
    if (z->occupancy)
        fprintf(out, ", at most %u threads", z->occupancy);
    fprintf(out, "\n");
    for (size_t k = 0; k < z->slots.n; k++)
        fprintf(out, "slot     %.*s: %u bytes at 0x%x\n",
                (int)z->slots.at[k].name.n, z->slots.at[k].name.p,
                z->slots.at[k].bytes, z->slots.at[k].at);
    if (!z->summed)
        fprintf(out, "no sum   whether it is whole is not known\n");
}

void
br_kernel_zrt_json(br_json_writer *w, const br_zrt *z)
{
    const struct {
        const char *key;
        uint64_t v;
    } rows[] = {
        {"code_bytes", z->code.n},
        {"entry_offset", z->entry},
        {"buffers", z->buffers},
        {"push_const_bytes", z->push_bytes},
        {"subgroup_size", z->subgroup},
        {"workgroup_x", z->workgroup[0]},
        {"workgroup_y", z->workgroup[1]},
        {"workgroup_z", z->workgroup[2]},
        {"lds_bytes", z->lds_bytes},
        {"vgprs", z->vgprs},
        {"sgprs", z->sgprs},
        {"occupancy_hint", z->occupancy},
        {"debug_bytes", z->debug.n},
    };

    br_json_w_key(w, "zrt");
    br_json_w_obj(w);
    br_json_w_key(w, "gpu_target");
    br_json_w_strz(w, br_zrt_target_name(z->target));
    br_json_w_key(w, "name");
    br_json_w_str(w, z->name);
    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        br_json_w_key(w, rows[k].key);
        br_json_w_i64(w, (int64_t)rows[k].v);
    }
    br_json_w_key(w, "slots");
    br_json_w_arr(w);
    for (size_t k = 0; k < z->slots.n; k++) {
        br_json_w_obj(w);
        br_json_w_key(w, "name");
        br_json_w_str(w, z->slots.at[k].name);
        br_json_w_key(w, "offset");
        br_json_w_i64(w, z->slots.at[k].at);
        br_json_w_key(w, "bytes");
        br_json_w_i64(w, z->slots.at[k].bytes);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
    br_json_w_obj_end(w);
}
