/* show_svg_int.h - the parts of the SVG picture.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_SHOW_SVG_INT_H
#define BR_MEGA_SHOW_SVG_INT_H

#include "mega/show_int.h"

enum {
    BR_SVG_WIDTH = 1280,
    BR_SVG_LEFT = 60,
    BR_SVG_RIGHT = 24,
    BR_SVG_PLOT = BR_SVG_WIDTH - BR_SVG_LEFT - BR_SVG_RIGHT,
};

typedef struct br_svg {
    const br_show *s;
    br_str *o;
    double y;      /* where the next part begins */
    double t0, t1; /* the time that the part at hand shows */
    size_t curves_left_out;
} br_svg;

/* show_svg.c */
void br_svg_num(br_svg *v, double x);
void br_svg_attr(br_svg *v, const char *name, double x); /*  name="x" */
void br_svg_class(br_svg *v, int op);                    /* o5 */
double br_svg_x(const br_svg *v, double t);
/* A line of text; cls as in the style sheet. */
void br_svg_text(br_svg *v, const char *cls, double x, double y, const char *z);
/* The same, and frees z; a z without memory spoils the picture. */
void br_svg_take(br_svg *v, const char *cls, double x, double y, br_str *z);
/* Ticks with numbers above y0, lines down to y1. */
void br_svg_axis(br_svg *v, double y0, double y1);
/* The dashed line of the least time, if it falls into what is shown. */
void br_svg_floor(br_svg *v, double y0, double y1);
void br_svg_time(br_str *o, const br_show *s, double t); /* 12.3 µs */

/* show_svg_area.c: busy workers over time; the window is what follows. */
br_code br_svg_area(br_svg *v, double from, double to,
                    br_status *st) BR_MUST_USE;
/* show_svg_lanes.c: the tasks between v->t0 and v->t1. */
br_code br_svg_lanes(br_svg *v, br_status *st) BR_MUST_USE;

#endif
