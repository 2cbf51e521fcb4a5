/* books.h - a thread that carries engines' ledgers to the store.
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

/* *lost as br_tstore_begin_run has it; stop as br_tstore_open_until. */
br_code br_books_open(br_books **out, const char *path,
                      const _Atomic bool *stop, bool *lost,
                      br_status *st) BR_MUST_USE;
/* The engine has all tenants of the file when it returns, and its ledgers are
 * carried until br_books_drop or close, which it outlives. model: its name,
 * which outlives it, too. prices: of its tokens, for tenants without prices of
 * their own; NULL: none. Any thread. */
br_code br_books_add(br_books *b, br_engine *e, const char *model,
                     const br_prices *prices, br_status *st) BR_MUST_USE;
void br_books_drop(br_books *b, br_engine *e);
/* Goes to the log of requests with the counters. Any thread; never waits for
 * the store. What is more than BR_BOOKS_WAITING while that is away is lost,
 * and said. */
enum { BR_BOOKS_WAITING = 65536 };
void br_books_log(br_books *b, const br_logged *r);
void br_books_close(br_books *b);

#endif
