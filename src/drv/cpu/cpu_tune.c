/* cpu_tune.c - see cpu_tune.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>

#if defined __x86_64__
#    include <cpuid.h>
#endif

enum { ANY, V512 };

typedef struct knob {
    const char *name, *help;
    int steps, isas;
    uint32_t def, n, value[BR_CPU_TRIES];
} knob;

#define ONE  BR_CPU_AT_ONE
#define DEEP BR_CPU_AT_DEEP
#define FEW  BR_CPU_AT_FEW
#define MANY BR_CPU_AT_MANY
#define V(...)                             \
    sizeof((uint32_t[]){__VA_ARGS__}) / 4, \
    {                                      \
        __VA_ARGS__                        \
    }
#define K(id, name, steps, isas, def, values, help) \
    [BR_CPU_KNOB_##id] = {name, help, steps, isas, def, values},

static const knob knobs[BR_CPU_KNOBS] = {
#include "drv/cpu/cpu_tune.def"
};

#undef K
#undef V
#undef ONE
#undef DEEP
#undef FEW
#undef MANY

static bool
is_threads(br_cpu_knob k)
{
    return k == BR_CPU_KNOB_threads || k == BR_CPU_KNOB_many_threads;
}

const char *
br_cpu_knob_name(br_cpu_knob k)
{
    return knobs[k].name;
}

const char *
br_cpu_knob_help(br_cpu_knob k)
{
    return knobs[k].help;
}

int
br_cpu_knob_steps(br_cpu_knob k)
{
    return knobs[k].steps;
}

br_cpu_knob
br_cpu_knob_find(br_text name)
{
    br_cpu_knob k = 0;

    while (k < BR_CPU_KNOBS && !br_text_is(name, knobs[k].name))
        k++;
    return k;
}

bool
br_cpu_knob_here(br_cpu_knob k, br_isa isa)
{
    return knobs[k].isas == ANY || isa == BR_ISA_AVX512 || isa == BR_ISA_AMX;
}

/* Of threads: three quarters, one for each core where a core has two, and one
 * less than there are, for whatever else runs. */
static uint32_t
tries_of_threads(uint32_t n, uint32_t out[BR_CPU_TRIES])
{
    const uint32_t some[] = {n - n / 4, n / 2, n - 1};
    uint32_t got = 0;

    for (size_t i = 0; i < BR_COUNT(some); i++) {
        bool known = some[i] == 0 || some[i] == n;

        for (uint32_t k = 0; k < got; k++)
            known = known || out[k] == some[i];
        if (!known)
            out[got++] = some[i];
    }
    return got;
}

uint32_t
br_cpu_knob_tries(br_cpu_knob k, uint32_t n_threads, uint32_t but,
                  uint32_t out[BR_CPU_TRIES])
{
    uint32_t n = 0;

    if (is_threads(k))
        return tries_of_threads(n_threads, out);
    for (uint32_t i = 0; i < knobs[k].n; i++)
        if (knobs[k].value[i] != but)
            out[n++] = knobs[k].value[i];
    return n;
}

bool
br_cpu_knob_takes(br_cpu_knob k, uint32_t n_threads, uint64_t value)
{
    br_cpu_tune t;

    if (is_threads(k))
        return value >= 1 && value <= n_threads;
    br_cpu_tune_default(&t, n_threads);
    for (uint32_t i = 0; i < knobs[k].n; i++)
        if (value == knobs[k].value[i])
            return true;
    return value == t.at[k];
}

void
br_cpu_tune_default(br_cpu_tune *t, uint32_t n_threads)
{
    br_mat m;

    br_mat_speeds(&m);
    for (int k = 0; k < BR_CPU_KNOBS; k++)
        t->at[k] = knobs[k].def;
    t->at[BR_CPU_KNOB_threads] = n_threads;
    t->at[BR_CPU_KNOB_many_threads] = n_threads;
    t->at[BR_CPU_KNOB_near_bytes] = m.near_bytes;
    t->at[BR_CPU_KNOB_ahead] = m.ahead;
    t->at[BR_CPU_KNOB_pages] = m.pages;
    t->at[BR_CPU_KNOB_once] = br_calls_stay();
}

br_cpu_knob
br_cpu_tune_next(const br_cpu_tune *t, const br_cpu_tune *def, br_cpu_knob k)
{
    while (k < BR_CPU_KNOBS && t->at[k] == def->at[k])
        k++;
    return k;
}

void
br_cpu_set_tune(br_cpu *c, const br_cpu_tune *t)
{
    const uint32_t *at = t->at;

    c->tune = *t;
    for (uint32_t v = 0; v < c->v.g->n_values; v++) {
        br_mat *m = &c->mat[v].m;

        m->near_bytes = at[BR_CPU_KNOB_near_bytes];
        m->ahead = at[BR_CPU_KNOB_ahead];
        m->pages = at[BR_CPU_KNOB_pages];
        m->rows_bytes = at[BR_CPU_KNOB_rows_bytes];
    }
}

const br_cpu_tune *
br_cpu_tune_of(const br_cpu *c)
{
    return &c->tune;
}

/* ---- which processor ----------------------------------------------------- */

/* The brand is 48 bytes, some of them blanks. */
static void
tidy(char *s)
{
    char *to = s;

    for (const char *p = s; *p; p++)
        if (*p > ' ' && *p <= '~')
            *to++ = *p;
        else if (to > s && to[-1] != ' ')
            *to++ = ' ';
    while (to > s && to[-1] == ' ')
        to--;
    *to = 0;
}

#if defined __x86_64__
void
br_cpu_name(char out[BR_CPU_NAME_BYTES])
{
    unsigned r[12] = {0}, a = 0, b, c, d, family, model;
    char brand[sizeof r + 1] = "";

    for (unsigned i = 0; i < 3; i++)
        (void)__get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1],
                          &r[4 * i + 2], &r[4 * i + 3]);
    memcpy(brand, r, sizeof r);
    tidy(brand);
    (void)__get_cpuid(1, &a, &b, &c, &d);
    family = (a >> 8 & 15) == 15 ? 15 + (a >> 20 & 255) : a >> 8 & 15;
    model = (a >> 4 & 15) | (a >> 16 & 15) << 4;
    snprintf(out, BR_CPU_NAME_BYTES, "%s, family %u model %u",
             *brand ? brand : "x86-64", family, model);
}
#else
void
br_cpu_name(char out[BR_CPU_NAME_BYTES])
{
    if (!br_os_read("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
                    out, BR_CPU_NAME_BYTES))
        snprintf(out, BR_CPU_NAME_BYTES, "unknown");
    tidy(out);
}
#endif
