/* show_int.h - what the three pictures share: times, lanes, names.
 *
 *   br_mega_show -> br_show_layout -> br_show_svg | br_show_dot | br_show_text
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_SHOW_INT_H
#define BR_MEGA_SHOW_INT_H

#include "mega/cost.h"
#include "mega/show.h"

#define BR_SHOW_NONE UINT32_MAX

typedef struct br_show {
    const br_mega_prog *p;
    br_arena a;
    br_mega_graph g;
    br_mega_cost cost; /* zeros unless timed */
    br_mega_target target;
    bool timed;    /* microseconds; else one unit a task */
    bool assigned; /* the file says which worker does what */
    uint32_t n, n_lanes;
    const double *t0, *t1; /* per task */
    double total;
    const uint32_t *lane;    /* per task */
    const int64_t *lane_sm;  /* per lane; the worker, when assigned */
    const bool *on_path;     /* per task */
    const uint32_t *by_time; /* tasks by start, then lane */
    /* Tasks of the critical path by end: where a worker fetches ahead, the
     * later of two starts no later than the first. */
    const uint32_t *path;
    uint32_t n_path;
} br_show;

br_code br_show_layout(br_show *s, const br_mega_prog *p,
                       const br_mega_target *target, br_status *st) BR_MUST_USE;
void br_show_fini(br_show *s);

br_code br_show_svg(const br_show *s, br_str *out, br_status *st) BR_MUST_USE;
br_code br_show_dot(const br_show *s, br_str *out, br_status *st) BR_MUST_USE;
br_code br_show_text(const br_show *s, br_str *out, br_status *st) BR_MUST_USE;

/* show_names.c */
const char *br_show_color(int op);
char br_show_letter(int op);
/* A task's label, or the name of its op when it has none. */
br_text br_show_label(const br_mega_task *t);
br_text br_show_op(int op);
/* Text of a file made fit for XML, DOT strings, a terminal; at most max
 * characters, then an ellipsis. */
void br_show_xml(br_str *out, br_text t, size_t max);
void br_show_quoted(br_str *out, br_text t, size_t max);
void br_show_ascii(br_str *out, br_text t, size_t max);
/* 12,738 with the separator given (0: none). */
void br_show_count(br_str *out, uint64_t n, char sep);
/* 79.9 KB; 1.05 MB */
void br_show_bytes(br_str *out, double n);
double br_show_percent(double part, double all);
/* What the critical path waits for: memory 93 %, arithmetic 0 %, .. */
void br_show_shares(br_str *out, const br_show *s);
/* At most 2 decimals, none when they are zero. */
void br_show_num(br_str *out, double v);
/* 0, 1, 2, 5, 10, 20, 50, ..: the step that makes at most n of them. */
double br_show_step(double total, int n);
/* The k-th multiple of a step from `from` steps on. They are counted: late in a
 * long program the next one may be the same number. */
enum { BR_SHOW_TICKS = 16 };
double br_show_tick(double from, double step, int k);
br_text br_show_model(const br_show *s); /* name in meta; may be empty */

/* The number in the label "L12.q_proj", or NONE; a name without its layer. */
uint32_t br_show_layer(const br_show *s, uint32_t t);
br_text br_show_short(br_text z);
/* The time of the layer in the middle, and its number; of some tasks in the
 * middle and NONE where labels name no layers. */
uint32_t br_show_middle(const br_show *s, double *from, double *to);

/* A stage: the tasks of one counter that run between two times. */
typedef struct br_show_stage {
    double t0, t1;
    br_text name;
    uint32_t counter, task, tasks; /* task: one of them */
    bool critical;
} br_show_stage;
bool br_show_stage_of(const br_show *s, uint32_t c, double from, double to,
                      br_show_stage *g); /* false: none runs then */
/* All of them by start; returns how many there are. With more than room, g
 * holds some of them, in no order. */
size_t br_show_stages(const br_show *s, double from, double to,
                      br_show_stage *g, size_t room);

/* A row of the legend: an op that occurs, most time first. */
typedef struct br_show_row {
    int op;
    uint32_t tasks;
    double busy, path; /* time of all its tasks; its part of the path's */
} br_show_row;
uint32_t br_show_rows(const br_show *s, br_show_row rows[BR_MOP_LIMIT]);

#endif
