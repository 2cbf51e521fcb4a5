/* sim_check.c - the doors that checks will stand behind: asking for one is
 * refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_check.h"
br_code
sim_check_new(sim_group *g, unsigned n, unsigned lanes, br_status *st)
{
    (void)g;
    (void)n;
    (void)lanes;
    return br_fail(st, BR_E_UNSUPPORTED, "--check is not there yet");
}
void
sim_check_free(sim_group *g)
{
    (void)g;
}
void
sim_check_group(sim_group *g)
{
    (void)g;
}
void
sim_check_start(sim_wave *w, unsigned n, uint32_t r)
{
    (void)w;
    (void)n;
    (void)r;
}
bool
sim_check_before(sim_wave *w, const sim_op *o)
{
    (void)w;
    (void)o;
    return true;
}
void
sim_check_after(sim_wave *w, const sim_op *o)
{
    (void)w;
    (void)o;
}
void
sim_check_end(sim_wave *w)
{
    (void)w;
}
void
sim_check_barrier(sim_group *g)
{
    (void)g;
}
void
sim_check_access(sim_wave *w, int space, unsigned lane, uint64_t at,
                 const uint8_t *host, unsigned bytes, bool write)
{
    (void)w;
    (void)space;
    (void)lane;
    (void)at;
    (void)host;
    (void)bytes;
    (void)write;
}
