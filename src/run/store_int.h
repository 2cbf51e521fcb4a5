/* store_int.h - keys and names, with or without SQLite.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STORE_INT_H
#define BR_STORE_INT_H

#include "run/store.h"

void br_store_new_key(char key[BR_KEY_CHARS]);
/* Where its secret begins; NULL: it is no key. */
const char *br_store_secret(br_text key);
br_code br_store_check_name(const char *name, br_status *st);

#endif
