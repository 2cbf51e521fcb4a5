/* resume.h - an answer that a restart broke off, as it waits in a file.
 *
 *   {"id":..,"path":..,"model":..,"tenant":..,"created":..,"seed_high":..,
 *    "seed_low":..,"choices":[[tokens so far],..],"counted":[..],"cuts":"..",
 *    "turn":{"kept":..,"after":"..","talk":"..","items":[..]},"body":".."}
 *
 * A line each. counted: of each choice what the tenant's ledger has of it, beside
 * that there was one: 0, nothing; 1 + n, its prompt and n tokens. A turn, of
 * a response that is to be kept or belongs to a conversation, and is made in no
 * background.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_RESUME_H
#define BR_RESUME_H

#include "http/gen.h"

struct br_resumed {
    br_resumed *next;
    br_arena mem; /* of what it points to */
    const char *id, *model;
    const br_wire *wire;
    uint32_t tenant;
    int64_t created;
    uint64_t seed;
    br_text line, body;
    br_text cuts; /* empty: its stream was not cut, or by a program before */
    const br_json *choices; /* lists of tokens */
    const br_json *counted; /* of each; NULL: a program before did not say */
    const br_json *turn;    /* NULL: it has none */
    bool begun;
    int status; /* of its answer; 0: it is not over */
    br_str answer;
};

/* NULL: there are none. Lines that are none are left out, and logged. */
br_resumed *br_resume_read(const char *text, size_t n, const char *name);
void br_resumed_free(br_resumed *list);
/* Where that is asked for. */
const char *br_resume_path(const br_wire *wire);

#endif
