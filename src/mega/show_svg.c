/* show_svg.c - the picture to look at: its frame, legend and axes.
 *
 *    title, machine, time against the floor
 *    legend: opcode, tasks, share of the workers' time
 *    .--------------------------------------------------------.
 *    | busy workers over time, by opcode   (large programs)   |   area
 *    '-------------\----.------.-----/------------------------'
 *    .--------------\___|______|____/-------------------------.
 *    | w0  [====][==]      [=========]      lanes of workers, |   lanes: all,
 *    | w1        [==][===]~~~~~.  [==]      boxes to scale    |   or a layer
 *    '--------------------------------------------------------'
 *
 * Up to ALL_TASKS tasks every task is a box with a tooltip. Beyond, the whole
 * program is an area chart and one layer from its middle is drawn in lanes:
 * the layers of a model are alike, so one of them shows what to mend.
 *
 * Colours are classes in one style sheet, with a dark variant that the
 * viewer's preference chooses. No scripts, no fonts of its own. The size is
 * bounded: 12,738 tasks give some 150 KB.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_svg_int.h"

#include <math.h>
#include <string.h>

enum {
    ALL_TASKS = 2000, /* drawn one by one; more: an area and a layer */
    LEFT = BR_SVG_LEFT,
    PLOT = BR_SVG_PLOT,
};
#define NONE BR_SHOW_NONE

/* ---- bits -------------------------------------------------------------- */

void
br_svg_num(br_svg *v, double x)
{
    br_show_num(v->o, x);
}

void
br_svg_attr(br_svg *v, const char *name, double x)
{
    br_str_printf(v->o, " %s=\"", name);
    br_svg_num(v, x);
    br_str_putc(v->o, '"');
}

void
br_svg_class(br_svg *v, int op)
{
    if (br_show_letter(op) == br_show_letter(-1))
        br_str_puts(v->o, "ox");
    else
        br_str_printf(v->o, "o%d", op);
}

double
br_svg_x(const br_svg *v, double t)
{
    return LEFT + PLOT * (t - v->t0) / (v->t1 - v->t0);
}

/* z is ours, or escaped already. */
void
br_svg_text(br_svg *v, const char *cls, double x, double y, const char *z)
{
    br_str_printf(v->o, "<text class=\"%s\"", cls);
    br_svg_attr(v, "x", x);
    br_svg_attr(v, "y", y);
    br_str_printf(v->o, ">%s</text>\n", z);
}

void
br_svg_take(br_svg *v, const char *cls, double x, double y, br_str *z)
{
    br_svg_text(v, cls, x, y, br_str_z(z));
    v->o->oom = v->o->oom || z->oom;
    br_str_fini(z);
}

void
br_svg_time(br_str *o, const br_show *s, double t)
{
    if (!s->timed)
        br_str_printf(o, "%.0f", t);
    else if (t >= 99.95)
        br_show_count(o, (uint64_t)llround(t), ',');
    else
        br_show_num(o, t);
    br_str_puts(o, s->timed ? " \u00b5s" : "");
}

/* ---- style ------------------------------------------------------------- */

static void
style(br_svg *v)
{
    br_str_puts(
        v->o,
        "<style>\n"
        "svg{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,"
        "\"Helvetica Neue\",\"DejaVu Sans\",Arial,sans-serif;font-size:11px;"
        "font-variant-numeric:tabular-nums}\n"
        ".bg{fill:#fff}.card{fill:#f6f7f9}.odd{fill:#eceff2}\n"
        ".ink{fill:#1f2328}.dim{fill:#59636e}.e{text-anchor:end}"
        ".m{text-anchor:middle}.b{font-weight:600}\n"
        ".h1{font-size:20px;font-weight:600}.h2{font-size:13px}\n"
        ".grid{stroke:#d5dae0;fill:none}.tick{stroke:#8a949e;fill:none}\n"
        ".edge{stroke:#4a5560;stroke-width:.9;stroke-opacity:.4;fill:none}\n"
        ".path{stroke:#1f2328;stroke-width:1.5;fill:none}\n"
        ".crit{stroke:#1f2328;stroke-width:1.5}\n"
        ".floor{stroke:#b3261e;stroke-width:1.2;stroke-dasharray:4 3;"
        "fill:none}.warn{fill:#b3261e;stroke:#fff;stroke-width:3px;"
        "paint-order:stroke}\n"
        ".win{fill:#1f2328;fill-opacity:.06;stroke:#1f2328}"
        ".fan{fill:#1f2328;fill-opacity:.05}\n"
        ".in{fill:#14181d;pointer-events:none;font-size:10px}.alt{opacity:.72}"
        ".s{font-size:10px}\n");
    for (int op = 0; op < (v->s->p->graph ? BR_MOP_LIMIT : BR_MOP_STEP); op++)
        if (br_show_letter(op) != br_show_letter(-1))
            br_str_printf(v->o, ".o%d{fill:%s}", op, br_show_color(op));
    br_str_printf(v->o, ".ox{fill:%s}\n", br_show_color(-1));
    br_str_puts(v->o,
                "@media (prefers-color-scheme:dark){\n"
                ".bg{fill:#0f1216}.card{fill:#171b21}.odd{fill:#1e242c}"
                ".ink{fill:#e8ebef}.dim{fill:#9aa4b0}\n"
                ".grid{stroke:#2b323b}.tick{stroke:#5d6874}"
                ".edge{stroke:#b4bdc7}.path,.crit{stroke:#fff}\n"
                ".floor{stroke:#ff8a80}.warn{fill:#ff8a80;stroke:#0f1216}"
                ".win{fill:#fff;stroke:#e8ebef}.fan{fill:#fff}}\n</style>\n");
}

/* ---- head -------------------------------------------------------------- */

static void
put_where(br_svg *v, br_str *z)
{
    const br_show *s = v->s;

    if (s->timed) {
        br_show_xml(z, br_text_z(s->target.name), 40);
        br_str_puts(z, " \u00b7 ");
    }
    br_show_count(z, s->n, ',');
    br_str_puts(z, s->n == 1 ? " task" : " tasks");
    br_str_puts(z, s->assigned ? " on " : " not assigned to workers, up to ");
    br_show_count(z, s->n_lanes, ',');
    br_str_puts(z, !s->assigned      ? " at once"
                   : s->n_lanes == 1 ? " worker"
                                     : " workers");
    br_str_puts(z, " \u00b7 ");
    if (!s->timed) {
        br_str_printf(z,
                      "depth %.0f; without a target every task takes one "
                      "unit of time",
                      s->total);
        return;
    }
    br_svg_time(z, s, s->total);
    br_str_puts(z, ", floor ");
    br_svg_time(z, s, s->cost.floor_us);
    br_str_printf(z, " (%.0f %% of the time)",
                  br_show_percent(s->cost.floor_us, s->total));
}

static void
put_path_and_pages(br_svg *v, br_str *z)
{
    const br_show *s = v->s;
    double sum = 0;

    br_str_puts(z, "critical path ");
    br_show_count(z, s->n_path, ',');
    br_str_puts(z, s->n_path == 1 ? " task" : " tasks");
    if (s->timed) {
        br_str_puts(z, ": ");
        br_show_shares(z, s);
    }
    if (!s->p->has_pages)
        return;
    for (size_t i = 0; i < s->p->n_pages; i++)
        sum += (double)BR_MAX(s->p->pages[i].nbytes, (int64_t)0);
    br_str_puts(z, " \u00b7 scratch ");
    br_show_bytes(z, sum);
    br_str_printf(z, " in %zu page%s", s->p->n_pages,
                  s->p->n_pages == 1 ? "" : "s");
}

static void
put_title(br_svg *v, br_str *z)
{
    br_text model = br_show_model(v->s);

    if (model.n)
        br_show_xml(z, model, 70);
    else
        br_str_puts(z, "task program");
}

static void
head(br_svg *v)
{
    void (*const part[])(br_svg * v, br_str * z) = {put_title, put_where,
                                                    put_path_and_pages};
    static const char *const cls[] = {"ink h1", "ink h2", "dim"};
    static const double at[] = {36, 60, 80};

    for (size_t i = 0; i < BR_COUNT(part); i++) {
        br_str z = {0};
        part[i](v, &z);
        br_svg_take(v, cls[i], LEFT, at[i], &z);
    }
    v->y = 96;
}

/* The widest shares of the critical path first: there lies what can be won. */
static void
sort_by_path(br_show_row *rows, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        br_show_row r = rows[i];
        uint32_t k = i;
        for (; k && rows[k - 1].path < r.path; k--)
            rows[k] = rows[k - 1];
        rows[k] = r;
    }
}

static void
chip(br_svg *v, const br_show_row *r, double all, double *x)
{
    br_str z = {0};
    double w;

    br_show_xml(&z, br_show_op(r->op), 40);
    br_str_puts(&z, " \u00d7 ");
    br_show_count(&z, r->tasks, ',');
    br_str_printf(&z, " \u00b7 %.1f %%", br_show_percent(r->path, all));
    w = 16 + 6.2 * (double)z.n + 12;
    if (*x > LEFT && *x + w > LEFT + PLOT) {
        *x = LEFT;
        v->y += 18;
    }
    br_str_puts(v->o, "<rect class=\"");
    br_svg_class(v, r->op);
    br_str_puts(v->o, "\" rx=\"2.5\" width=\"11\" height=\"11\"");
    br_svg_attr(v, "x", *x);
    br_svg_attr(v, "y", v->y);
    br_str_puts(v->o, "/>");
    br_svg_take(v, "ink", *x + 16, v->y + 9.5, &z);
    *x += w;
}

static void
legend(br_svg *v)
{
    static const char says[] = "opcode \u00d7 tasks \u00b7 share of the "
                               "critical path";
    br_show_row rows[BR_MOP_LIMIT];
    uint32_t n = br_show_rows(v->s, rows);
    double x = LEFT, all = 0;

    sort_by_path(rows, n);
    for (uint32_t i = 0; i < n; i++)
        all += rows[i].path;
    for (uint32_t i = 0; i < n; i++)
        chip(v, &rows[i], all, &x);
    if (x + 6 * (double)sizeof says > LEFT + PLOT) {
        x = LEFT;
        v->y += 18;
    }
    br_svg_text(v, "dim", x, v->y + 9.5, says);
    v->y += 30;
}

/* ---- axes -------------------------------------------------------------- */

static void
vertical(br_svg *v, const char *cls, double x, double y0, double y1)
{
    br_str_printf(v->o, "<path class=\"%s\" d=\"M", cls);
    br_svg_num(v, x);
    br_str_putc(v->o, ' ');
    br_svg_num(v, y0);
    br_str_putc(v->o, 'V');
    br_svg_num(v, y1);
    br_str_puts(v->o, "\"/>");
}

void
br_svg_axis(br_svg *v, double y0, double y1)
{
    double step = br_show_step(v->t1 - v->t0, 12);
    bool first = true;
    int digits;

    step = v->s->timed ? step : BR_MAX(step, 1);
    digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    for (int k = 0; k < BR_SHOW_TICKS; k++) {
        double t = br_show_tick(v->t0 / step - 1e-9, step, k);
        double x = br_svg_x(v, t);
        br_str z = {0};

        if (t > v->t1 + step * 1e-9)
            break;
        if (digits)
            br_str_printf(&z, "%.*f", digits, fabs(t));
        else
            br_show_count(&z, (uint64_t)llround(t), ',');
        if (first)
            br_str_puts(&z, v->s->timed ? " \u00b5s" : " units");
        vertical(v, "grid", x, y0, y1);
        br_svg_take(v,
                    x < LEFT + 10          ? "dim"
                    : x > LEFT + PLOT - 16 ? "dim e"
                                           : "dim m",
                    x, y0 - 6, &z);
        first = false;
    }
}

void
br_svg_floor(br_svg *v, double y0, double y1)
{
    double x, at = v->s->cost.floor_us;

    if (!v->s->timed || at <= v->t0 + (v->t1 - v->t0) * 0.01 || at > v->t1)
        return;
    x = br_svg_x(v, at);
    vertical(v, "floor", x, y0, y1);
    br_svg_text(v, "warn e b", x - 4, y0 + 12, "floor");
}

/* ---- body and foot ----------------------------------------------------- */

static void
heading(br_svg *v, uint32_t layer)
{
    br_str z = {0};

    if (layer != NONE)
        br_str_printf(&z, "Layer %u in lanes, ", layer);
    else
        br_str_puts(&z, "The middle in lanes, ");
    br_svg_time(&z, v->s, v->t0);
    br_str_puts(&z, " to ");
    br_svg_time(&z, v->s, v->t1);
    br_svg_take(v, "ink h2 b", LEFT, v->y + 12, &z);
    v->y += 24;
}

static br_code
body(br_svg *v, br_status *st)
{
    const br_show *s = v->s;
    uint32_t layer;
    double from, to;

    v->t0 = 0;
    v->t1 = s->total > 0 ? s->total : 1;
    if (s->n <= ALL_TASKS)
        return br_svg_lanes(v, st);
    layer = br_show_middle(s, &from, &to);
    BR_TRY(br_svg_area(v, from, to, st));
    v->t0 = from;
    v->t1 = to;
    heading(v, layer);
    return br_svg_lanes(v, st);
}

static void
foot(br_svg *v)
{
    br_str z = {0};

    br_str_puts(&z, "Boxes are tasks, to scale; outlined: the critical path. "
                    "Curves are counters, from producers to those who wait");
    if (v->curves_left_out) {
        br_str_puts(&z, " (");
        br_show_count(&z, v->curves_left_out, ',');
        br_str_puts(&z, " not drawn)");
    }
    br_str_puts(&z, v->s->timed ? ". Floor: these bytes at full bandwidth, or "
                                  "these flops at full rate."
                                : ".");
    br_svg_take(v, "dim", LEFT, v->y + 20, &z);
    v->y += 38;
}

br_code
br_show_svg(const br_show *s, br_str *out, br_status *st)
{
    br_str inner = {0};
    br_svg v = {.s = s, .o = &inner};
    br_code rc;

    style(&v);
    br_str_puts(v.o, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    head(&v);
    legend(&v);
    rc = body(&v, st);
    foot(&v);
    /* The height is known only now, and comes first. */
    br_str_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                  "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<title>",
                  BR_SVG_WIDTH, v.y, BR_SVG_WIDTH, v.y);
    v.o = out;
    put_title(&v, out);
    br_str_puts(out, "</title>\n");
    br_str_put(out, br_str_z(&inner), inner.n);
    br_str_puts(out, "</svg>\n");
    if (rc == BR_OK && inner.oom)
        rc = br_fail(st, BR_E_OOM, "show: no memory");
    br_str_fini(&inner);
    return rc;
}
