/* show_svg_area.c - how many workers are busy with what, over the whole time.
 *
 *    132 |####################__######      one column per BIN pixels; the
 *        |##::::##::::##::::##  ::::::      opcodes stacked in the order of
 *      0 '----------------------------      the legend
 *
 * Busy is measured, not sampled: a column's height is the time that workers
 * spent in it, so the area of a colour is the time of its opcode.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_svg_int.h"

#include <math.h>
#include <string.h>

enum {
    BIN = 2,
    BINS = BR_SVG_PLOT / BIN,
    HEIGHT = 150,
};

/* Adds the task's time to the columns it crosses, in fractions of one. */
static void
spread(double *bin, double from, double to) /* in columns */
{
    int a = (int)from, b = (int)to;

    for (int k = a; k <= b && k < BINS; k++)
        bin[k] += BR_MIN(to, k + 1.0) - BR_MAX(from, (double)k);
}

/* One colour: along the top from left to right, back along the bottom. */
static void
outline(br_svg *v, int op, const double *low, const double *high, double lanes)
{
    double base = v->y + HEIGHT, was = -1;

    br_str_puts(v->o, "<path class=\"");
    br_svg_class(v, op);
    br_str_puts(v->o, "\" d=\"");
    for (int k = 0; k < 2 * BINS; k++) {
        bool back = k >= BINS;
        int i = back ? 2 * BINS - 1 - k : k;
        double y = round((base - HEIGHT * (back ? low : high)[i] / lanes) * 10);
        if (k && fabs(y - was) < 0.5 && k != BINS)
            continue; /* a run of columns is one line */
        if (k) {
            br_str_putc(v->o, 'H');
            br_svg_num(v, BR_SVG_LEFT + BIN * (back ? i + 1 : i));
        }
        br_str_puts(v->o, k ? "V" : "M");
        if (!k) {
            br_svg_num(v, BR_SVG_LEFT);
            br_str_putc(v->o, ' ');
        }
        br_svg_num(v, y / 10);
        was = y;
    }
    br_str_puts(v->o, "H");
    br_svg_num(v, BR_SVG_LEFT);
    br_str_puts(v->o, "Z\"><title>");
    br_show_xml(v->o, br_show_op(op), 40);
    br_str_puts(v->o, "</title></path>\n");
}

/* The window that the lanes below show, and a fan that leads there. */
static void
window(br_svg *v, double from, double to)
{
    double x0 = br_svg_x(v, from), x1 = br_svg_x(v, to), y = v->y + HEIGHT;

    br_str_puts(v->o, "<rect class=\"win\"");
    br_svg_attr(v, "x", x0);
    br_svg_attr(v, "y", v->y);
    br_svg_attr(v, "width", BR_MAX(x1 - x0, 1));
    br_svg_attr(v, "height", HEIGHT);
    br_str_puts(v->o, "/>\n<path class=\"fan\" d=\"M");
    br_svg_num(v, x0);
    br_str_putc(v->o, ' ');
    br_svg_num(v, y);
    br_str_puts(v->o, "H");
    br_svg_num(v, x1);
    br_str_puts(v->o, "L");
    br_svg_num(v, BR_SVG_LEFT + BR_SVG_PLOT);
    br_str_putc(v->o, ' ');
    br_svg_num(v, y + 26);
    br_str_puts(v->o, "H");
    br_svg_num(v, BR_SVG_LEFT);
    br_str_puts(v->o, "Z\"/>\n");
}

static void
card(br_svg *v)
{
    br_str_puts(v->o, "<rect class=\"card\"");
    br_svg_attr(v, "x", BR_SVG_LEFT);
    br_svg_attr(v, "y", v->y);
    br_svg_attr(v, "width", BR_SVG_PLOT);
    br_svg_attr(v, "height", HEIGHT);
    br_str_puts(v->o, "/>\n");
}

/* Where every few layers begin, under the chart. */
static void
layers(br_svg *v)
{
    const br_show *s = v->s;
    uint32_t next = 0, top = 0, step = 1;

    for (uint32_t t = 0; t < s->n; t++) {
        uint32_t k = br_show_layer(s, t);
        top = k != BR_SHOW_NONE && k > top ? k : top;
    }
    while (top / step > 24) /* so many names have room */
        step *= 2;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t t = s->by_time[i];
        double x = br_svg_x(v, s->t0[t]);
        br_str z = {0};
        if (br_show_layer(s, t) != next || next > top)
            continue;
        br_str_puts(v->o, "<path class=\"tick\" d=\"M");
        br_svg_num(v, x);
        br_str_putc(v->o, ' ');
        br_svg_num(v, v->y + HEIGHT);
        br_str_puts(v->o, "v4\"/>");
        br_str_printf(&z, "L%u", next);
        br_svg_take(v, "dim s m", x, v->y + HEIGHT + 14, &z);
        next += step;
    }
}

br_code
br_svg_area(br_svg *v, double from, double to, br_status *st)
{
    const br_show *s = v->s;
    br_show_row rows[BR_MOP_LIMIT];
    uint32_t n = br_show_rows(s, rows), place[BR_MOP_LIMIT];
    double *bin = br_try_calloc((size_t)(n + 1) * BINS, sizeof *bin);
    double scale = BINS / s->total;
    br_str z = {0};

    if (!bin)
        return br_fail(st, BR_E_OOM, "show: no memory");
    for (uint32_t i = 0; i < n; i++)
        place[rows[i].op] = i + 1;
    for (uint32_t t = 0; t < s->n; t++)
        spread(bin + (size_t)place[s->p->tasks[t].op] * BINS, s->t0[t] * scale,
               s->t1[t] * scale);
    for (uint32_t i = 1; i <= n; i++) /* stacked: each on those before */
        for (int k = 0; k < BINS; k++)
            bin[i * BINS + k] += bin[(i - 1) * BINS + k];
    br_svg_text(v, "ink h2 b", BR_SVG_LEFT, v->y + 6, "Busy workers");
    v->y += 30;
    card(v);
    br_svg_axis(v, v->y, v->y + HEIGHT);
    for (uint32_t i = 1; i <= n; i++)
        outline(v, rows[i - 1].op, bin + (i - 1) * BINS, bin + i * BINS,
                s->n_lanes);
    br_show_count(&z, s->n_lanes, ',');
    br_svg_text(v, "dim e", BR_SVG_LEFT - 6, v->y + 9, br_str_z(&z));
    br_svg_text(v, "dim e", BR_SVG_LEFT - 6, v->y + HEIGHT, "0");
    br_svg_floor(v, v->y, v->y + HEIGHT);
    layers(v);
    window(v, from, to);
    v->o->oom = v->o->oom || z.oom;
    br_str_fini(&z);
    br_free(bin);
    v->y += HEIGHT + 36;
    return BR_OK;
}
