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

/* What a word with atomics knows, a number of each wave. NULL: no memory. */
static uint32_t *
word_of(sim_meet *m, uint32_t *slot)
{
    if (!*slot) {
        if (!br_vec_reserve(&m->seen, (m->n_words + 1) * m->n))
            return NULL;
        memset(m->seen.at + m->n_words * m->n, 0, m->n * sizeof *m->seen.at);
        *slot = (uint32_t)++m->n_words;
    }
    return m->seen.at + (size_t)(*slot - 1) * m->n;
}

void
sim_meet_at(sim_meet *m, unsigned wave, uint32_t seq, uint32_t *slot)
{
    uint32_t *mine = m->waves[wave], *word = word_of(m, slot);

    mine[wave] = seq;
    /* Without the word more is reported, not less. */
    for (unsigned k = 0; word && k < m->n; k++) {
        mine[k] = BR_MAX(mine[k], word[k]);
        word[k] = mine[k];
    }
}

void
sim_meet_begin(sim_meet *m, unsigned n)
{
    m->n = n;
    m->n_words = 0;
    for (unsigned k = 0; k < n; k++)
        memset(m->waves[k], 0, n * sizeof m->waves[k][0]);
}
