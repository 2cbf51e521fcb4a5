/* think.h - what a model thinks, apart from what it answers.
 *
 *   answer --reader--> thought, text (in which calls of tools may be)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_THINK_H
#define BR_THINK_H

#include "base/base.h"

typedef struct br_think br_think; /* the first row of a family in think.def */

/* By the chat template; NULL: it knows of no thoughts. */
const br_think *br_think_of(br_text template);
/* Its marks come as control tokens, which are not shown otherwise. */
bool br_think_is_control(const br_think *t);
/* Whether the prompt has opened a thought: it ends with a mark of one. */
bool br_think_open(const br_think *t, br_text prompt);
/* What a thought begins with, and what the text of the answer. */
const char *br_think_begin(const br_think *t);
const char *br_think_end(const br_think *t);
/* What can be said in the midst of a thought, to end it and begin the text. */
const char *br_think_close(const br_think *t);
/* The text comes behind that mark always, not only after a thought. */
bool br_think_always(const br_think *t);

typedef struct br_think_reader {
    const br_think *t; /* NULL: all of it is text */
    br_str held;       /* not understood yet */
    uint8_t mode;
    bool trim; /* white space comes, and means nothing */
} br_think_reader;

typedef void (*br_think_fn)(void *ctx, bool thought, br_text piece);

void br_think_begin_in(br_think_reader *r, const br_think *t, bool open);
/* A piece of the answer; last: there are no more. False: out of memory. */
bool br_think_read(br_think_reader *r, br_text piece, bool last, br_think_fn fn,
                   void *ctx) BR_MUST_USE;
/* The reader is in a thought. */
bool br_think_now(const br_think_reader *r);
void br_think_reader_fini(br_think_reader *r);

#endif
