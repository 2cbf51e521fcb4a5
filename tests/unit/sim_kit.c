/* sim_kit.c - see sim_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "sim_kit.h"

#include <string.h>

static void
note(void *arg, const char *text)
{
    sim_kit *k = arg;

    br_str_puts(&k->findings, text);
    br_str_putc(&k->findings, '\n');
}

static br_gcn_co
assembled(const sim_kit *k)
{
    const char *text = t_printf(
        "k:\n%s\ns_endpgm\n.amdhsa_kernel k\n"
        ".amdhsa_kernarg_size 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
        ".amdhsa_user_sgpr_count %u\n.amdhsa_float_denorm_mode_32 3\n"
        ".amdhsa_next_free_vgpr 64\n.amdhsa_next_free_sgpr 32\n%s\n"
        ".end_amdhsa_kernel\n",
        k->code,
        k->users                           ? k->users
        : strncmp(k->cpu, "gfx11", 5) == 0 ? SIM_KIT_GFX11_USERS
                                           : 2,
        k->kd ? k->kd : "");
    br_str o = {0};
    br_status st = {0};
    br_gcn_co co;

    if (br_gcn_assemble(&o, br_gcn_cpu_find(k->cpu), text, strlen(text), &st) ||
        br_gcn_load(&co, o.at, o.n, &st))
        ck_abort_msg("%s\n%s", st.msg, text);
    br_str_fini(&o);
    return co;
}

br_code
sim_kit_run(sim_kit *k)
{
    br_gcn_co co = assembled(k);
    br_sim s = {.cpu = co.isa.cpu,
                .check = k->check,
                .threads = k->threads,
                .seed = k->seed,
                .max_steps = k->max_steps ? k->max_steps : 1 << 20,
                .finding = note,
                .arg = k};
    /* The kernarg block of the kit is the memory itself. */
    br_kregion r = {.addr = 0x10000,
                    .bytes = SIM_KIT_BYTES,
                    .host = k->memory,
                    .name = "memory"};
    uint32_t lanes = co.isa.wave64 ? 64 : 32, w[3];
    br_aql_launch l = {.groups = {k->groups ? k->groups : 1, 1, 1},
                       .group = {k->items ? k->items : lanes, 1, 1},
                       .kernel = 0x100000 + br_gcn_kernel_find(&co, "k")->at,
                       .kernarg = 0x10000};
    br_aql_packet p;
    br_code c;

    memcpy(w, co.image + br_gcn_kernel_find(&co, "k")->at, sizeof w);
    l.group_bytes = w[0];
    l.private_bytes = w[1];
    memset(&k->st, 0, sizeof k->st);
    c = br_sim_map(&s, &r, &k->st);
    if (c == BR_OK)
        c = br_sim_load(&s, &co, 0x100000, &k->st);
    if (c == BR_OK)
        c = br_aql_fill(&p, &l, &k->st);
    if (c == BR_OK)
        c = br_sim_dispatch(&s, &p, &k->st);
    k->steps = s.steps;
    k->found = s.findings;
    br_sim_fini(&s);
    br_gcn_unload(&co);
    return c;
}
