/* show_svg_lanes.c - tasks as boxes in the lanes of their workers.
 *
 * From back to front: lanes, grid, curves of the counters, boxes, their
 * labels, the critical path. A counter with several producers and waiters is
 * a knot: producers to the knot, knot to waiters, so a join of 64 tiles upon
 * 64 tiles is 128 curves and not 4,096. Where even those would be fog, more
 * than MAX_CURVES, none is drawn and the foot of the picture says how many.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_svg_int.h"

#include <math.h>
#include <string.h>

enum {
    MAX_CURVES = 600,
    MAX_HEIGHT = 760, /* of all lanes, unless they would be under 2 px */
    KNOT = 6,         /* producers * waiters above which a knot is tied */
    SMALL = 12,       /* lanes under this height hold no text */
    MAX_STAGES = 80,  /* named in the ribbon above small lanes */
    RIBBON = 17,      /* height of a row of it */
};

typedef struct lanes {
    br_svg *v;
    const br_show *s;
    double y, h;       /* of the first lane; of each */
    double gap, aside; /* between boxes, downwards and sideways */
} lanes;

static bool
shown(const lanes *l, uint32_t t)
{
    return l->s->t1[t] > l->v->t0 && l->s->t0[t] < l->v->t1;
}

/* A box gives some of its width away, so that curves can pass between. */
static double
trim(const lanes *l, uint32_t t)
{
    double w = l->s->t1[t] - l->s->t0[t];

    return BR_MIN(l->aside, w * BR_SVG_PLOT / (l->v->t1 - l->v->t0) / 5) / 2;
}

static double
left(const lanes *l, uint32_t t)
{
    return br_svg_x(l->v, BR_MAX(l->s->t0[t], l->v->t0)) + trim(l, t);
}

static double
right(const lanes *l, uint32_t t)
{
    return br_svg_x(l->v, BR_MIN(l->s->t1[t], l->v->t1)) - trim(l, t);
}

static double
middle_y(const lanes *l, uint32_t t)
{
    return l->y + l->h * (l->s->lane[t] + 0.5);
}

/* ---- lanes and grid ---------------------------------------------------- */

static void
stripe(lanes *l, uint32_t k, const char *cls, double n)
{
    br_str_printf(l->v->o, "<rect class=\"%s\"", cls);
    br_svg_attr(l->v, "x", BR_SVG_LEFT);
    br_svg_attr(l->v, "y", l->y + l->h * k);
    br_svg_attr(l->v, "width", BR_SVG_PLOT);
    br_svg_attr(l->v, "height", l->h * n);
    br_str_puts(l->v->o, "/>\n");
}

static void
backdrop(lanes *l)
{
    const br_show *s = l->s;
    uint32_t every = (uint32_t)ceil(12 / l->h), n = s->n_lanes;
    double bottom = l->y + l->h * n;

    every = every > 2 ? (every + 3) / 4 * 4 : every;
    stripe(l, 0, "card", n);
    for (uint32_t k = every; k < n; k += 2 * every)
        stripe(l, k, "odd", BR_MIN(every, n - k));
    for (uint32_t k = 0; k < n; k += every) {
        br_str z = {0};
        if (s->assigned)
            br_str_printf(&z, "w%lld", (long long)s->lane_sm[k]);
        else
            br_str_printf(&z, "%u", k + 1);
        br_svg_take(l->v, "dim e", BR_SVG_LEFT - 6, l->y + l->h * (k + 0.5) + 4,
                    &z);
    }
    br_svg_axis(l->v, l->y, bottom);
}

/* ---- curves ------------------------------------------------------------ */

/* An S; nearly upright ones, that would be a loop, are a line. */
static void
curve(lanes *l, double x0, double y0, double x1, double y1)
{
    bool line = fabs(x1 - x0) < 4 && fabs(y1 - y0) > 4;
    double bend = BR_MAX((x1 - x0) / 2, BR_MIN(fabs(y1 - y0) / 3, 14));
    const double at[] = {x0, y0, x0 + bend, y0, x1 - bend, y1, x1, y1};

    for (size_t i = 0; i < 8; i++) {
        if (line && i > 1 && i < 6)
            continue;
        br_str_puts(l->v->o, i == 0           ? "M"
                             : i == 2         ? "C"
                             : line && i == 6 ? "L"
                                              : " ");
        br_svg_num(l->v, at[i]);
    }
}

/* Tasks of a list that are in the picture; the mean of their heights. */
static uint32_t
in_sight(const lanes *l, const uint32_t *list, uint32_t n, double *y)
{
    uint32_t k = 0;

    *y = 0;
    for (uint32_t i = 0; i < n; i++)
        if (shown(l, list[i])) {
            *y += middle_y(l, list[i]);
            k++;
        }
    *y /= k ? k : 1;
    return k;
}

/* Draws counter c, or only counts its curves. */
static size_t
counter(lanes *l, uint32_t c, bool draw)
{
    const br_mega_graph *g = &l->s->g;
    const uint32_t *p = g->prod + g->prod_off[c];
    const uint32_t *w = g->waiter + g->wait_off[c];
    uint32_t np = g->prod_off[c + 1] - g->prod_off[c];
    uint32_t nw = g->wait_off[c + 1] - g->wait_off[c];
    double yp, yw, x = 0, x1 = BR_SVG_WIDTH, y;
    uint32_t kp = in_sight(l, p, np, &yp), kw = in_sight(l, w, nw, &yw);
    bool knot = kp > 1 && kw > 1 && (size_t)kp * kw > KNOT;

    if (!kp || !kw || !draw)
        return !kp || !kw ? 0 : knot ? kp + kw : (size_t)kp * kw;
    y = (yp * kp + yw * kw) / (kp + kw);
    for (uint32_t i = 0; i < np; i++)
        if (shown(l, p[i]))
            x = BR_MAX(x, right(l, p[i]));
    for (uint32_t j = 0; j < nw; j++)
        if (shown(l, w[j]))
            x1 = BR_MIN(x1, left(l, w[j]));
    x = x1 > x ? (x + x1) / 2 : x + 1;
    br_str_puts(l->v->o, "<path class=\"edge\" d=\"");
    for (uint32_t i = 0; i < np; i++) {
        if (!shown(l, p[i]))
            continue;
        if (knot)
            curve(l, right(l, p[i]), middle_y(l, p[i]), x, y);
        for (uint32_t j = 0; j < nw && !knot; j++)
            if (shown(l, w[j]))
                curve(l, right(l, p[i]), middle_y(l, p[i]), left(l, w[j]),
                      middle_y(l, w[j]));
    }
    for (uint32_t j = 0; j < nw && knot; j++)
        if (shown(l, w[j]))
            curve(l, x, y, left(l, w[j]), middle_y(l, w[j]));
    br_str_printf(l->v->o, "\"><title>counter %u", c);
    if (l->s->p->counters[c].note_n) {
        br_str_puts(l->v->o, ": ");
        br_show_xml(
            l->v->o,
            (br_text){l->s->p->counters[c].note, l->s->p->counters[c].note_n},
            100);
    }
    br_str_puts(l->v->o, "</title></path>\n");
    return kp + kw;
}

static void
counters(lanes *l)
{
    size_t n = 0;

    for (uint32_t c = 0; c < l->s->g.n_counters; c++)
        n += counter(l, c, false);
    if (n > MAX_CURVES) {
        l->v->curves_left_out = n;
        return;
    }
    for (uint32_t c = 0; c < l->s->g.n_counters; c++)
        (void)counter(l, c, true);
}

/* ---- boxes ------------------------------------------------------------- */

static void
tooltip(lanes *l, uint32_t t)
{
    const br_mega_task *x = &l->s->p->tasks[t];
    br_str *o = l->v->o;

    br_str_printf(o, "<title>task %u ", t);
    br_show_xml(o, br_show_label(x), 200);
    br_str_puts(o, "\n");
    br_show_xml(o, br_show_op(x->op), 40);
    if (x->sm != BR_MEGA_SM_NONE)
        br_str_printf(o, " on worker %lld", (long long)x->sm);
    br_str_puts(o, "\n");
    br_svg_time(o, l->s, l->s->t0[t]);
    br_str_puts(o, " to ");
    br_svg_time(o, l->s, l->s->t1[t]);
    if (x->est_bytes > 0) {
        br_str_puts(o, "\nreads ");
        br_show_bytes(o, (double)x->est_bytes);
    }
    for (uint32_t k = 0; k < x->n_waits && k < BR_MEGA_MAX_WAITS; k++) {
        const br_mega_counter *c = &l->s->p->counters[x->waits[k].counter];
        br_str_printf(o, "\nwaits for counter %lld \u2265 %lld ",
                      (long long)x->waits[k].counter,
                      (long long)x->waits[k].threshold);
        br_show_xml(o, (br_text){c->note, c->note_n}, 60);
    }
    br_str_puts(o, "</title>");
}

static void
box(lanes *l, uint32_t t)
{
    double x = left(l, t), w = right(l, t) - x;

    br_str_puts(l->v->o, "<rect");
    if (l->s->on_path[t])
        br_str_puts(l->v->o, " class=\"crit\"");
    else if (l->h < SMALL && l->s->p->tasks[t].out_counter % 2)
        br_str_puts(l->v->o, " class=\"alt\"");
    br_svg_attr(l->v, "x", x);
    br_svg_attr(l->v, "y", l->y + l->h * l->s->lane[t] + l->gap / 2);
    br_svg_attr(l->v, "width", BR_MAX(w, 0.5));
    br_svg_attr(l->v, "height", l->h - l->gap);
    if (l->h >= 10 && w >= 8)
        br_str_puts(l->v->o, " rx=\"2.5\"");
    br_str_putc(l->v->o, '>');
    tooltip(l, t);
    br_str_puts(l->v->o, "</rect>\n");
}

/* "L0.q_proj[t3]" where it fits, else without the layer, else cut. */
static void
caption(lanes *l, uint32_t t)
{
    br_text z = br_show_label(&l->s->p->tasks[t]);
    double x = left(l, t), w = right(l, t) - x;
    size_t room = w > 12 ? (size_t)((w - 7) / 5.6) : 0;

    if (l->h < SMALL || room < 3)
        return;
    if (z.n > room)
        z = br_show_short(z);
    if (z.n > room && room < 4)
        return;
    br_str_puts(l->v->o, "<text class=\"in\"");
    br_svg_attr(l->v, "x", x + 4);
    br_svg_attr(l->v, "y", l->y + l->h * (l->s->lane[t] + 0.5) + 3.5);
    br_str_putc(l->v->o, '>');
    br_show_xml(l->v->o, z, z.n > room ? room - 1 : room);
    br_str_puts(l->v->o, "</text>\n");
}

static void
boxes(lanes *l)
{
    for (int op = 0; op < BR_MOP_LIMIT; op++) {
        bool open = false;
        for (uint32_t t = 0; t < l->s->n; t++) {
            if (l->s->p->tasks[t].op != op || !shown(l, t))
                continue;
            if (!open) {
                br_str_puts(l->v->o, "<g class=\"");
                br_svg_class(l->v, op);
                br_str_puts(l->v->o, "\">\n");
            }
            open = true;
            box(l, t);
        }
        if (open)
            br_str_puts(l->v->o, "</g>\n");
    }
    for (uint32_t t = 0; t < l->s->n; t++)
        if (shown(l, t))
            caption(l, t);
}

static void
critical(lanes *l)
{
    bool open = false;

    for (uint32_t i = 1; i < l->s->n_path; i++) {
        uint32_t a = l->s->path[i - 1], b = l->s->path[i];
        if (!shown(l, a) || !shown(l, b) || l->s->lane[a] == l->s->lane[b])
            continue;
        if (!open)
            br_str_puts(l->v->o, "<path class=\"path\" d=\"");
        open = true;
        curve(l, right(l, a), middle_y(l, a), left(l, b), middle_y(l, b));
    }
    if (open)
        br_str_puts(l->v->o, "\"/>\n");
}

/* ---- ribbon: the stages by name, where boxes are too small for theirs -- */

typedef struct ribbon_place {
    double x0, x1, room; /* room: of the name */
    bool inside, before; /* where the name stands; else behind */
} ribbon_place;

static ribbon_place
place_of(const lanes *l, const br_show_stage *g)
{
    ribbon_place r = {br_svg_x(l->v, g->t0), br_svg_x(l->v, g->t1),
                      5.6 * (double)BR_MIN(g->name.n, 24) + 8, false, false};

    r.inside = r.x1 - r.x0 > r.room;
    r.before = !r.inside && r.x1 + r.room > BR_SVG_WIDTH - 4;
    return r;
}

static void
put_stage(lanes *l, const br_show_stage *g, ribbon_place r, double y)
{
    br_str *o = l->v->o;

    br_str_puts(o, "<rect class=\"");
    br_svg_class(l->v, l->s->p->tasks[g->task].op);
    br_str_puts(o, g->critical ? " crit\" rx=\"2\"" : "\" rx=\"2\"");
    br_svg_attr(l->v, "x", r.x0);
    br_svg_attr(l->v, "y", y + 2);
    br_svg_attr(l->v, "width", BR_MAX(r.x1 - r.x0 - 1, 1));
    br_svg_attr(l->v, "height", RIBBON - 5);
    br_str_printf(o, "/><text class=\"%s\"",
                  r.inside   ? "in"
                  : r.before ? "ink s e"
                             : "ink s");
    br_svg_attr(l->v, "x",
                r.inside   ? r.x0 + 4
                : r.before ? r.x0 - 4
                           : r.x1 + 4);
    br_svg_attr(l->v, "y", y + RIBBON - 6.5);
    br_str_putc(o, '>');
    br_show_xml(o, g->name, 24);
    br_str_puts(o, "</text>\n");
}

/* Rows are filled from the left; a stage and its name take the first row that
 * has room. Returns the height; 0 when there are too many to name. */
static double
ribbon(lanes *l)
{
    br_show_stage g[MAX_STAGES];
    double end[MAX_STAGES] = {0};
    size_t n = br_show_stages(l->s, l->v->t0, l->v->t1, g, MAX_STAGES);
    uint32_t rows = 0;

    if (n > MAX_STAGES)
        return 0;
    for (size_t i = 0; i < n; i++) {
        ribbon_place r = place_of(l, &g[i]);
        uint32_t k = 0;
        while (end[k] > r.x0 - (r.before ? r.room : 0))
            k++;
        end[k] = r.x1 + (r.inside || r.before ? 0 : r.room) + 3;
        rows = BR_MAX(rows, k + 1);
        put_stage(l, &g[i], r, l->v->y + RIBBON * k);
    }
    return rows * RIBBON + 4;
}

br_code
br_svg_lanes(br_svg *v, br_status *st)
{
    const br_show *s = v->s;
    uint32_t n = BR_MAX(s->n_lanes, 1u);
    lanes l = {.v = v, .s = s, .h = (double)MAX_HEIGHT / n};

    (void)st;
    l.h = l.h > 26 ? 26 : l.h < 2 ? 2 : l.h > 8 ? floor(l.h) : l.h;
    l.gap = l.h > 12 ? 3 : l.h > 6 ? 1.2 : 0.4;
    l.aside = l.h > 12 ? 9 : 0.6;
    if (l.h < SMALL)
        v->y += ribbon(&l);
    v->y += 22;
    l.y = v->y;
    br_svg_text(v, "dim e", BR_SVG_LEFT - 6, l.y - 6,
                s->assigned ? "worker" : "lane");
    backdrop(&l);
    counters(&l);
    boxes(&l);
    critical(&l);
    br_svg_floor(v, l.y, l.y + l.h * s->n_lanes);
    v->y = l.y + l.h * s->n_lanes;
    return BR_OK;
}
