/* kernel_diff.c - brass kernel diff: one kernel, the same inputs, two targets.
 *
 *   run on A, run on B -> first byte of the buffers that differs
 *                      -> interpreted once more, watching who writes it
 *
 * So the answer names what a person can look for: the thread, the line, both
 * values as the type that the line stores.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    const char *name;
    br_kjob j;
    br_klaunch l;
    br_ktarget own;
    br_status st;
    br_code code; /* of the launch */
} side;

typedef struct difference {
    size_t buffer;
    uint64_t byte;
    br_kwatch who;
} difference;

static br_code
prepare(side *s, br_cli *cli, br_status *st)
{
    s->j.cli = cli;
    BR_TRY(br_kernel_target(&s->j.on, &s->own, s->name, st));
    return br_kjob_open(&s->j, &s->l, st);
}

/* ---- memory --------------------------------------------------------------- */

/* Buffers, then the module's variables. */
static const br_kregion *
region(const side *s, size_t k)
{
    return k < s->j.regions.n ? &s->j.regions.at[k]
                              : &s->j.image->regions.at[k - s->j.regions.n];
}

static uint64_t
bits_at(const side *s, size_t buffer, uint64_t byte, unsigned bytes)
{
    uint64_t v = 0;

    memcpy(&v, region(s, buffer)->host + byte, bytes);
    return v;
}

/* Floats in order of their bits: neighbours differ by one. */
static int64_t
place(uint64_t bits)
{
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffff) : (int64_t)bits;
}

/* The word that a byte is in, as a float. */
static bool
near(const side *a, const side *b, const difference *d, int64_t ulp)
{
    uint64_t word = d->byte & ~3ull;
    int64_t by;

    if (!ulp || word + 4 > region(a, d->buffer)->bytes)
        return false;
    by = place(bits_at(a, d->buffer, word, 4)) -
         place(bits_at(b, d->buffer, word, 4));
    return by <= ulp && by >= -ulp;
}

/* ---- who wrote it --------------------------------------------------------- */

/* The interpreter once more, on fresh buffers. A fault there is no answer. */
static br_code
watch(side *a, difference *d, br_status *st)
{
    side w = {.name = "interp"};
    br_status none = {0};
    br_code code;

    d->who = (br_kwatch){.addr = region(a, d->buffer)->addr + d->byte};
    code = prepare(&w, a->j.cli, st);
    w.l.watch = &d->who;
    w.l.print = NULL;
    if (code == BR_OK && w.j.on->launch(w.j.code, &w.l, &none) != BR_OK)
        d->who.seen = false;
    br_kjob_fini(&w.j);
    return code;
}

static bool
find(side *a, side *b, difference *d)
{
    int64_t ulp = br_opt_int(a->j.cli, BR_OPT_ulp);
    size_t n = a->j.regions.n + a->j.image->regions.n;

    for (; d->buffer < n; d->buffer++, d->byte = 0)
        for (; d->byte < region(a, d->buffer)->bytes; d->byte++)
            if (bits_at(a, d->buffer, d->byte, 1) !=
                    bits_at(b, d->buffer, d->byte, 1) &&
                !near(a, b, d, ulp))
                return true;
    return false;
}

/* ---- report --------------------------------------------------------------- */

static void
value(const side *s, const difference *d, char *out, size_t n)
{
    br_ktype type = d->who.seen ? d->who.type : BR_KT_B8;
    const br_ktinfo *t = &br_ktinfo_of[type];
    uint64_t at =
        d->who.seen ? d->who.first - region(s, d->buffer)->addr : d->byte;
    uint64_t v = bits_at(s, d->buffer, at, t->bytes);
    uint32_t v32 = (uint32_t)v;
    double f = 0;
    float f32;

    memcpy(&f32, &v32, 4);
    memcpy(&f, &v, 8);
    if (t->kind == 'F' && t->lanes == 1 && t->bytes == 8)
        snprintf(out, n, "%.17g (0x%016" PRIx64 ")", f, v);
    else if (t->kind == 'F' && t->lanes == 1 && t->bytes == 4)
        snprintf(out, n, "%.9g (0x%08" PRIx64 ")", (double)f32, v);
    else
        snprintf(out, n, "0x%0*" PRIx64, 2 * t->bytes, v);
}

static void
report(side *a, side *b, const difference *d)
{
    FILE *out = a->j.cli->out;
    char x[64], y[64];
    const br_kwatch *w = &d->who;

    value(a, d, x, sizeof x);
    value(b, d, y, sizeof y);
    if (br_opt_bool(a->j.cli, BR_OPT_json)) {
        fprintf(out,
                "{\"same\":false,\"buffer\":%zu,\"byte\":%" PRIu64
                ",\"values\":[\"%s\",\"%s\"]",
                d->buffer, d->byte, x, y);
        if (w->seen)
            fprintf(out,
                    ",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u],\"line\":%u",
                    w->block[0], w->block[1], w->block[2], w->thread[0],
                    w->thread[1], w->thread[2], w->line);
        fputs("}\n", out);
        return;
    }
    fprintf(out, "%s: byte %" PRIu64 " is %s on %s, %s on %s\n",
            region(a, d->buffer)->name, d->byte, x, a->name, y, b->name);
    if (w->seen)
        fprintf(out,
                "written by block %u,%u,%u thread %u,%u,%u at line %u of %s\n",
                w->block[0], w->block[1], w->block[2], w->thread[0],
                w->thread[1], w->thread[2], w->line, a->l.file);
    else
        fprintf(out, "the interpreter does not write there\n");
}

/* One that stops where the other does not, or for another reason. */
static bool
stopped(side *a, side *b, int *exit)
{
    FILE *out = a->j.cli->out;
    const char *x = a->code == BR_OK ? "it ends" : a->st.msg;
    const char *y = b->code == BR_OK ? "it ends" : b->st.msg;

    if (a->code == BR_OK && b->code == BR_OK)
        return false;
    if (a->code == b->code) { /* nothing to compare: it stops on both */
        *exit = br_cli_fail(a->j.cli, &a->st);
        return true;
    }
    *exit = br_code_exit(BR_E_REJECTED);
    if (br_opt_bool(a->j.cli, BR_OPT_json))
        fprintf(out, "{\"same\":false,\"stops\":[%s,%s]}\n",
                a->code == BR_OK ? "false" : "true",
                b->code == BR_OK ? "false" : "true");
    else
        fprintf(out, "%s: %s\n%s: %s\n", a->name, x, b->name, y);
    return true;
}

static br_code
diff(side *s, int *exit, br_status *st)
{
    difference d = {0};

    for (int k = 0; k < 2; k++)
        BR_TRY(prepare(&s[k], s[0].j.cli, st));
    s[1].l.print = NULL; /* it would come twice */
    for (int k = 0; k < 2; k++)
        s[k].code = s[k].j.on->launch(s[k].j.code, &s[k].l, &s[k].st);
    if (stopped(&s[0], &s[1], exit))
        return BR_OK;
    if (find(&s[0], &s[1], &d)) {
        BR_TRY(watch(&s[0], &d, st));
        report(&s[0], &s[1], &d);
        *exit = br_code_exit(BR_E_REJECTED);
    } else if (br_opt_bool(s[0].j.cli, BR_OPT_json)) {
        fputs("{\"same\":true}\n", s[0].j.cli->out);
    } else {
        fprintf(s[0].j.cli->out, "the same on %s and %s\n", s[0].name,
                s[1].name);
    }
    return BR_OK;
}

int
br_cmd_kernel_diff(br_cli *cli)
{
    const char *const *on;
    size_t n = br_opt_list(cli, BR_OPT_on_two, &on);
    side s[2] = {{.name = n > 1 ? on[0] : "interp"},
                 {.name = n > 1   ? on[1]
                          : n > 0 ? on[0]
                                  : "x86-64"}};
    br_status st = {0};
    int code = 0;

    if (n > 2)
        return br_cli_usage(cli, "--on twice at most: two targets");
    s[0].j.cli = s[1].j.cli = cli;
    if (diff(s, &code, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    br_kjob_fini(&s[0].j);
    br_kjob_fini(&s[1].j);
    return code;
}
