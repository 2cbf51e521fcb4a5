/* words.h - a text line by line, a line word by word: what the parsers of our
 * own intermediate forms begin with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_WORDS_H
#define BR_WORDS_H

#include "base/base.h"

typedef struct br_words {
    const char *p, *end;   /* of the text not read yet */
    const char *w, *w_end; /* the rest of this line */
    const char *gaps;      /* what stands between words: " ", " ," */
    uint32_t line;         /* from 1 */
} br_words;

/* The next line; false at the end of the text. */
bool br_words_line(br_words *r);
/* The next word of the line; empty at its end. */
br_text br_words_next(br_words *r);
/* "line 7: RULE: 'WORD'", or without a word "line 7: RULE". */
br_code br_words_wrong(const br_words *r, const char *rule, br_text word,
                       br_status *st);

#endif
