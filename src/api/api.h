/* api.h - what the files of the C library share.
 *
 * Thin on purpose: a handle wraps what a room made, and every function is a
 * few lines. What brass.h promises beyond that (NULL is accepted where it is
 * harmless, texts live as long as their handle) is kept here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_API_H
#define BR_API_H

#include "brass/brass.h"

#include "base/base.h"
#include "mega/mega.h"

struct br_error {
    br_status st;
};

struct br_program {
    br_mega_prog *mega;
};

/* The status to work with: the caller's, emptied, or a spare one. */
br_status *br_api_begin(br_error *e, br_status *spare);
/* A zeroed handle, or NULL with OOM in st. */
void *br_api_handle(size_t size, br_status *st) BR_MUST_USE;

#endif
