/* state_touch.h - pages of keys and values get their memory before they are used.
 *
 * A page costs no memory until a sequence writes to it; then the kernel finds and
 * zeroes memory for all of its sheet, within that step. In a virtual machine
 * whose host has to find it, too, that was 18 ms for the 8 MB of a sheet of a
 * model of 1B: each new sequence made one step of 70 ms a quarter longer for
 * all others. A thread does it from the start on, in the order in which pages
 * are handed out, where others leave it time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STATE_TOUCH_H
#define BR_STATE_TOUCH_H

#include "drv/state.h"

typedef struct br_touch br_touch;

/* Of the first `most` bytes. The state outlives it. */
br_code br_touch_begin(br_touch **out, const br_state *s, uint64_t most,
                       br_status *st) BR_MUST_USE;
/* Bytes that are there so far. */
uint64_t br_touch_done(const br_touch *t);
void br_touch_end(br_touch *t); /* at once, done or not; NULL is fine */

#endif
