/* show.h - a task program as a picture: lanes of workers over time.
 *
 *   SVG    to look at; one file, no scripts, no fonts of its own
 *   DOT    for graphviz; clusters of workers, or stages of a large program
 *   TEXT   for a terminal; ASCII only
 *
 * Times and lanes come from the cost model (cost.h) when there is a target;
 * without one every task takes one unit and is placed by its level.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_SHOW_H
#define BR_MEGA_SHOW_H

#include "mega/target.h"

typedef enum br_mega_show_format {
    BR_SHOW_TEXT,
    BR_SHOW_DOT,
    BR_SHOW_SVG,
} br_mega_show_format;

typedef struct br_mega_show_opts {
    br_mega_show_format format;
    const br_mega_target *target; /* NULL: the program's, if it has one */
} br_mega_show_opts;

/* Appends the picture to out; the size of it is bounded whatever the program.
 * Any program that loads: names are escaped and cut. REJECTED when tasks wait
 * for ever or ids point nowhere, for then there is no time to draw. */
br_code br_mega_show(const br_mega_prog *p, const br_mega_show_opts *o,
                     br_str *out, br_status *st) BR_MUST_USE;

#endif
