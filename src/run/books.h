/* books.h - a thread that carries the engine's ledgers to the store.
 *
 * Once a second, and once more at the end. What a write that fails would have
 * brought is brought by the next one. It also takes over what somebody else
 * changes in the file: new tenants, new quotas.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_BOOKS_H
#define BR_BOOKS_H

#include "run/engine.h"
#include "run/tstore.h"

typedef struct br_books br_books;

/* Gives the engine all tenants of the file before it returns. The engine
 * outlives it. *lost as br_tstore_begin_run has it. */
br_code br_books_open(br_books **out, br_engine *e, const char *path,
                      bool *lost, br_status *st) BR_MUST_USE;
void br_books_close(br_books *b);

#endif
