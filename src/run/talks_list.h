/* talks_list.h - lists of items, as JSON text, that grow and shrink (talks.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TALKS_LIST_H
#define BR_TALKS_LIST_H

#include "base/base.h"

/* "[a,b]" behind the items of list, unless they are in it: doing it twice is
 * doing it once. FORMAT: list is none. */
br_code br_talks_list_add(br_str *list, br_text items,
                          br_status *st) BR_MUST_USE;
/* Without the item that has this "id", if any. */
br_code br_talks_list_cut(br_str *list, br_text id, br_status *st) BR_MUST_USE;

#endif
