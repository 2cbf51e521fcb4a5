/* retell.h - a response's stream told again, from what is kept of it.
 *
 *   answer, the document    \
 *                            > the events of its stream, with their numbers
 *   cuts, how it was cut    /
 *
 * A client comes back behind an event's number, so events have the numbers
 * they had: "5,3:2,9," are pieces of 5, 3 and 9 bytes, the second with two
 * rows of logprobs, one behind the other through thoughts, text and calls. What
 * is behind the last cut is one piece. A stream that failed has its beginning
 * and its end alone: "#57", the number of that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_RETELL_H
#define BR_RETELL_H

#include "base/base.h"

enum { BR_RETELL_BEGINNING = 2 /* events */ };

/* Appends the beginning, which a stream that is not over has, too. False: out
 * of memory, or the answer is none. */
bool br_retell_begin(br_text answer, br_str *out) BR_MUST_USE;
/* What comes behind it. fails: the last event says so. */
bool br_retell_rest(br_text answer, br_text cuts, br_str *out,
                    bool *fails) BR_MUST_USE;

#endif
