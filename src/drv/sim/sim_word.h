/* sim_word.h - words of memory that other threads see.
 *
 * The host's threads may poll what a lane stores, and a lane what they store.
 * So a lane's aligned word is moved whole, and what was stored before it is
 * there for who sees it: stores release, loads acquire, which costs nothing on
 * x86-64. Rows of words that all lanes move at once are data, copied as such.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_WORD_H
#define BR_SIM_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool
is_aligned(const void *p, unsigned bytes)
{
    return ((uintptr_t)p & (bytes - 1)) == 0;
}

/* release: partner is who polls it, a host's thread or get_word */
static inline void
put_word(void *p, uint32_t v)
{
    if (is_aligned(p, 4))
        __atomic_store_n((uint32_t *)p, v, __ATOMIC_RELEASE);
    else
        memcpy(p, &v, 4);
}

/* acquire: partner is a host's thread that stores it, or put_word */
static inline uint32_t
get_word(const void *p)
{
    uint32_t v;

    if (is_aligned(p, 4))
        return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
    memcpy(&v, p, 4);
    return v;
}

/* The same of 1, 2, 4 or 8 bytes. */
static inline void
put_part(void *p, uint64_t v, unsigned bytes)
{
    if (bytes == 4)
        put_word(p, (uint32_t)v);
    else if (bytes == 1)
        __atomic_store_n((uint8_t *)p, (uint8_t)v, __ATOMIC_RELEASE);
    else if (!is_aligned(p, bytes))
        memcpy(p, &v, bytes);
    else if (bytes == 2)
        __atomic_store_n((uint16_t *)p, (uint16_t)v, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE);
}

static inline uint64_t
get_part(const void *p, unsigned bytes)
{
    uint64_t v = 0;

    if (bytes == 4)
        return get_word(p);
    if (bytes == 1)
        return __atomic_load_n((const uint8_t *)p, __ATOMIC_ACQUIRE);
    if (!is_aligned(p, bytes))
        memcpy(&v, p, bytes);
    else if (bytes == 2)
        return __atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE);
    else
        return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
    return v;
}

/* n words of a lane, whose registers are `step` apart; two that are aligned
 * together are one of 64 bits. */
static inline void
put_words(uint8_t *p, const uint32_t *reg, unsigned step, unsigned n)
{
    if (n == 2 && is_aligned(p, 8)) {
        put_part(p, (uint64_t)reg[step] << 32 | reg[0], 8);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        put_word(p + 4 * k, reg[k * step]);
}

static inline void
get_words(const uint8_t *p, uint32_t *reg, unsigned step, unsigned n)
{
    if (n == 2 && is_aligned(p, 8)) {
        uint64_t v = get_part(p, 8);

        reg[0] = (uint32_t)v;
        reg[step] = (uint32_t)(v >> 32);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        reg[k * step] = get_word(p + 4 * k);
}

#endif
