/* tstore_int.h - keys and names, with or without SQLite.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TSTORE_INT_H
#define BR_TSTORE_INT_H

#include "run/tstore.h"

void br_tstore_new_key(char key[BR_KEY_CHARS]);
/* Where its secret begins; NULL: it is no key. */
const char *br_tstore_secret(br_text key);
br_code br_tstore_check_name(const char *name, br_status *st);

#endif
