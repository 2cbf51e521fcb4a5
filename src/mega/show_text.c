/* show_text.c - a task program for a terminal, in ASCII and 80 columns.
 *
 *    what it is, time, floor         two lines
 *    opcodes                         letter, tasks, time, share of the path
 *    lanes                           a letter per slice of time: the opcode
 *                                    that fills most of it; '.' nobody works
 *    stages                          start, time, tasks; * on the path
 *
 * At most ROWS rows of lanes: of many workers, several share a row. Lanes and
 * stages are the whole program's if the stages are few, else those of the
 * layer in the middle.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    COLS = 68,
    ROWS = 24,
    MAX_STAGES = 64,
    IDLE = 20, /* a slice with less than 1/IDLE of work is idle */
};

typedef struct view {
    double from, to;
    uint32_t layer; /* or NONE */
    bool part;      /* not the whole program */
} view;

static void
put_time(br_str *o, const br_show *s, double t)
{
    if (t >= 1000)
        br_show_count(o, (uint64_t)llround(t), ',');
    else
        br_show_num(o, t);
    br_str_puts(o, s->timed ? " us" : fabs(t - 1) > 0 ? " units" : " unit");
}

/* Right-aligned in width. */
static void put_cell(br_str *o, int width, const char *fmt, ...)
    BR_PRINTF(3, 4);

static void
put_cell(br_str *o, int width, const char *fmt, ...)
{
    char z[64];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(z, sizeof z, fmt, ap);
    va_end(ap);
    for (int i = n; i < width; i++)
        br_str_putc(o, ' ');
    br_str_puts(o, z);
}

static void
head(const br_show *s, br_str *o)
{
    br_text model = br_show_model(s);

    br_show_ascii(o, model.n ? model : BR_TEXT("task program"), 60);
    if (s->timed)
        br_str_printf(o, " on %s", s->target.name);
    br_str_puts(o, ": ");
    br_show_count(o, s->n, ',');
    br_str_printf(o, " task%s, %s%u %s\n", s->n == 1 ? "" : "s",
                  s->assigned ? "" : "not assigned, up to ", s->n_lanes,
                  !s->assigned      ? "at once"
                  : s->n_lanes == 1 ? "worker"
                                    : "workers");
    put_time(o, s, s->total);
    if (s->timed) {
        br_str_puts(o, ", floor ");
        put_time(o, s, s->cost.floor_us);
        br_str_printf(o, " (%.0f %% of the time)",
                      br_show_percent(s->cost.floor_us, s->total));
    } else {
        br_str_puts(o, "; without a target every task takes one");
    }
    br_str_printf(o, "; critical path %u task%s\n", s->n_path,
                  s->n_path == 1 ? "" : "s");
    if (s->timed) {
        br_str_puts(o, "of it ");
        br_show_shares(o, s);
        br_str_putc(o, '\n');
    }
}

static void
opcodes(const br_show *s, br_str *o)
{
    br_show_row rows[BR_MOP_LIMIT];
    uint32_t n = br_show_rows(s, rows);
    double all = 0;

    for (uint32_t i = 0; i < n; i++)
        all += rows[i].path;
    br_str_printf(o,
                  "\n  opcode               tasks    busy %s    path %s"
                  "   path\n",
                  s->timed ? "us" : "  ", s->timed ? "us" : "  ");
    for (uint32_t i = 0; i < n; i++) {
        br_text name = br_show_op(rows[i].op);
        br_str_printf(o, "%c ", br_show_letter(rows[i].op));
        br_show_ascii(o, name, 18);
        put_cell(o, 24 - (int)BR_MIN(name.n, (size_t)18), "%u", rows[i].tasks);
        put_cell(o, 11, "%.1f", rows[i].busy);
        put_cell(o, 11, "%.1f", rows[i].path);
        put_cell(o, 7, "%.1f", br_show_percent(rows[i].path, all));
        br_str_puts(o, " %\n");
    }
}

/* ---- lanes ------------------------------------------------------------- */

/* The letter that fills most of a slice, given the time of each opcode. */
static char
letter(const double *time, double slice)
{
    double sum = 0;
    int best = 0;

    for (int op = 0; op < BR_MOP_LIMIT; op++) {
        sum += time[op];
        best = time[op] > time[best] ? op : best;
    }
    return sum * IDLE < slice ? '.' : br_show_letter(best);
}

static void
spread(const br_show *s, const view *v, double *row, uint32_t t)
{
    double slice = (v->to - v->from) / COLS;
    double a = BR_MAX(s->t0[t] - v->from, 0);
    double b = BR_MIN(s->t1[t], v->to) - v->from;
    int op = s->p->tasks[t].op % BR_MOP_LIMIT;

    for (int k = (int)(a / slice); k < COLS && k * slice < b; k++)
        row[k * BR_MOP_LIMIT + op] +=
            BR_MAX(0, BR_MIN(b, (k + 1) * slice) - BR_MAX(a, k * slice));
}

static void
put_row(const view *v, br_str *o, const char *name, const double *row,
        uint32_t lanes)
{
    double slice = (v->to - v->from) / COLS;

    br_str_printf(o, "%-9s ", name);
    for (int k = 0; k < COLS; k++)
        br_str_putc(o, letter(row + k * BR_MOP_LIMIT, slice * lanes));
    br_str_putc(o, '\n');
}

static void
ruler(const br_show *s, const view *v, br_str *o)
{
    double step = br_show_step(v->to - v->from, 6);
    char z[COLS + 2]; /* 80 columns in all */

    step = s->timed ? step : BR_MAX(step, 1);
    memset(z, ' ', sizeof z);
    for (int k = 0; k < BR_SHOW_TICKS; k++) {
        double t = br_show_tick(v->from / step, step, k);
        double part = (t - v->from) / (v->to - v->from);
        br_str n = {0};
        size_t at;

        if (t > v->to)
            break;
        at = (size_t)(BR_MAX(part, 0) * COLS);
        if (step >= 1)
            br_show_count(&n, (uint64_t)llround(t), ',');
        else
            br_show_num(&n, t);
        if (at + n.n <= sizeof z)
            memcpy(z + at, br_str_z(&n), n.n);
        o->oom = o->oom || n.oom;
        br_str_fini(&n);
    }
    if (v->layer != BR_SHOW_NONE)
        br_str_printf(o, "\nlanes of layer %u", v->layer);
    else if (v->part)
        br_str_puts(o, "\nlanes in the middle");
    for (size_t n = sizeof z; n-- > 0;)
        if (z[n] != ' ') {
            br_str_printf(o, "\n%-9s ", s->timed ? "us" : "units");
            br_str_put(o, z, n + 1);
            br_str_putc(o, '\n');
            return;
        }
}

static void
row_name(const br_show *s, uint32_t from, uint32_t to, char z[32])
{
    const char *w = s->assigned ? "w" : "";
    long long a = s->assigned ? s->lane_sm[from] : from + 1;
    long long b = s->assigned ? s->lane_sm[to - 1] : to;

    if (to - from == 1)
        snprintf(z, 32, "%s%lld", w, a);
    else
        snprintf(z, 32, "%s%lld-%lld", w, a, b);
}

static br_code
lanes(const br_show *s, const view *v, br_str *o, br_status *st)
{
    uint32_t share = (s->n_lanes + ROWS - 1) / ROWS;
    uint32_t rows = (s->n_lanes + share - 1) / share;
    size_t size = (size_t)COLS * BR_MOP_LIMIT;
    double *time = br_try_calloc((rows + 1) * size, sizeof *time);
    char z[32];

    if (!time)
        return br_fail(st, BR_E_OOM, "show: no memory");
    for (uint32_t t = 0; t < s->n; t++) {
        if (s->t1[t] <= v->from || s->t0[t] >= v->to)
            continue;
        spread(s, v, time + s->lane[t] / share * size, t);
        if (s->on_path[t])
            spread(s, v, time + rows * size, t);
    }
    ruler(s, v, o);
    put_row(v, o, "path", time + rows * size, 1);
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t to = BR_MIN((r + 1) * share, s->n_lanes);
        row_name(s, r * share, to, z);
        put_row(v, o, z, time + r * size, to - r * share);
    }
    br_free(time);
    return BR_OK;
}

/* ---- stages ------------------------------------------------------------ */

static void
stages(const br_show *s, const view *v, br_str *o)
{
    br_show_stage g[MAX_STAGES];
    size_t n = br_show_stages(s, v->from, v->to, g, MAX_STAGES);

    if (n > MAX_STAGES)
        return;
    if (v->layer != BR_SHOW_NONE)
        br_str_printf(o, "\n  stages of layer %-14u", v->layer);
    else
        br_str_printf(o, "\n  %-30s", v->part ? "in the middle" : "stage");
    br_str_puts(o, " opcode            tasks     start      time\n");
    for (size_t i = 0; i < n; i++) {
        size_t was = o->n;
        br_str_puts(o, g[i].critical ? "* " : "  ");
        br_show_ascii(o, g[i].name, 28);
        br_str_printf(o, "%*s ", 32 - (int)(o->n - was), "");
        br_show_ascii(o, br_show_op(s->p->tasks[g[i].task].op), 17);
        br_str_printf(o, "%*s", 51 - (int)(o->n - was), "");
        put_cell(o, 5, "%u", g[i].tasks);
        put_cell(o, 10, s->timed ? "%.2f" : "%.0f", g[i].t0);
        put_cell(o, 10, s->timed ? "%.2f" : "%.0f", g[i].t1 - g[i].t0);
        br_str_putc(o, '\n');
    }
}

/* What lanes and stages show: all, or a part that is like the rest. */
static view
view_of(const br_show *s)
{
    br_show_stage g[1];
    view v = {.to = s->total, .layer = BR_SHOW_NONE};

    v.part = br_show_stages(s, 0, s->total, g, 0) > MAX_STAGES;
    if (v.part)
        v.layer = br_show_middle(s, &v.from, &v.to);
    return v;
}

br_code
br_show_text(const br_show *s, br_str *out, br_status *st)
{
    view v;

    head(s, out);
    if (!s->n)
        return BR_OK;
    v = view_of(s);
    opcodes(s, out);
    BR_TRY(lanes(s, &v, out, st));
    stages(s, &v, out);
    return BR_OK;
}
