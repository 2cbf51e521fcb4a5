/* sim_meet.c - waves of a group that wait for each other by atomics in LDS: locks,
 * barriers of a part of the group.
 *
 * LDS does what a wave asks of it in order, so whoever gets the value of an atomic
 * has behind it all that the wave did in LDS which wrote that value, and what that
 * wave had behind itself. Each wave keeps of each other the number of the last such
 * operation; each word with atomics what the last of them knew.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_wcheck.h"

#include <string.h>

void
sim_meet_at(sim_meet *m, unsigned wave, uint32_t seq, uint32_t *slot)
{
    uint32_t *mine = m->seen[wave], *word;

    mine[wave] = seq;
    if (!*slot) {
        sim_known none = {{0}};

        if (!br_vec_push(&m->words, none))
            return; /* then more is reported, not less */
        *slot = (uint32_t)m->words.n;
    }
    word = m->words.at[*slot - 1].seen;
    for (unsigned k = 0; k < m->n; k++) {
        mine[k] = BR_MAX(mine[k], word[k]);
        word[k] = mine[k];
    }
}

void
sim_meet_begin(sim_meet *m, unsigned n)
{
    m->n = BR_MIN(n, (unsigned)SIM_MEET_WAVES);
    m->words.n = 0;
    memset(m->seen, 0, sizeof m->seen);
}
