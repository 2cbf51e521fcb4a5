/* textout.h - text on its way out: whole characters, stop strings held back.
 *
 * Text leaves in whole characters of valid UTF-8, and what could yet be the
 * beginning of a stop string waits until it is known not to be.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TEXTOUT_H
#define BR_TEXTOUT_H

#include "model/tokenizer.h"

enum {
    BR_GEN_MAX_STOPS = 64,
    BR_GEN_MAX_STOP_BYTES = 4096, /* of one stop string */
};

/* Stop strings are of 1 to BR_GEN_MAX_STOP_BYTES bytes, and UTF-8. */
br_code br_stops_check(const char *const *stop, size_t n,
                       br_status *st) BR_MUST_USE;

typedef struct br_textout {
    br_tok_stream stream;
    br_str text;  /* not yet taken */
    size_t taken; /* of it, by the latest take: still there till the next put */
    const char *const *stop;
    size_t n_stop, longest;
} br_textout;

/* Stops were checked, and outlive it with tok. False: out of memory. */
bool br_textout_init(br_textout *t, const br_tok *tok, const char *const *stop,
                     size_t n_stop, bool show_special) BR_MUST_USE;
void br_textout_fini(br_textout *t);
/* False: out of memory. Does not allocate but for words over 64 KiB. */
bool br_textout_put(br_textout *t, int32_t id) BR_MUST_USE;
bool br_textout_end(br_textout *t) BR_MUST_USE; /* no more tokens come */
/* What can leave now; last: all there is. *which < n_stop: that stop string
 * stood behind it, and the text is over. Of two at one place, the earlier row.
 * The piece holds until the next call. */
br_text br_textout_take(br_textout *t, bool last, size_t *which);

#endif
