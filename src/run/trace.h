/* trace.h - what an engine was asked and what it said, in a file.
 *
 *   magic, what model | record | record | ...
 *   record: bytes u32, kind u32, time i64 (ns since the begin), payload;
 *   all little endian, payloads to multiples of 8
 *
 *   SUBMIT  the whole request as it arrived: enough to ask it again
 *   BEGIN   a request has a slot        PREEMPT  and lost it
 *   STEP    rows, time it took, time its plan took
 *   TOKEN, END  what went into the ring
 *
 * The engine's thread puts records into a ring and another thread writes them:
 * a slow disk never delays a step. Records that found no room are counted in
 * the last record, LOST; a file with losses says so when read, and of one that is
 * cut short what is whole is read. It is PATH.part until it is closed, so that who
 * looks earlier, or whose server was killed, has something to read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TRACE_H
#define BR_TRACE_H

#include "run/engine.h"
#include "run/textout.h"

typedef enum br_trace_kind {
    BR_TRACE_CUT, /* of a reader: no record, the file's end is missing */
    BR_TRACE_SUBMIT,
    BR_TRACE_BEGIN,
    BR_TRACE_PREEMPT,
    BR_TRACE_STEP,
    BR_TRACE_TOKEN,
    BR_TRACE_END,
    BR_TRACE_LOST, /* ends every file */
    BR_TRACE_KINDS
} br_trace_kind;

#define BR_TRACE_MAGIC  "BRTRACE1"
/* Times and durations, either way: 73 years, so that no sum overflows. */
#define BR_TRACE_MAX_NS (INT64_C(1) << 61)
enum { /* flags of SUBMIT */
       BR_TRACE_IGNORE_EOG = 1,
       BR_TRACE_SHOW_SPECIAL = 2,
       BR_TRACE_HOOKED = 4,
       BR_TRACE_LOGPROBS = 8,
       BR_TRACE_EMBED = 16,
       BR_TRACE_GOES_ON = 32, /* from before a restart */
};

enum {
    BR_TRACE_RING = 8 << 20,
    BR_TRACE_MAX_RECORD = 1 << 20,
    BR_TRACE_MAX_MODEL = 4096, /* bytes of its path */
};

/* ---- writing ------------------------------------------------------------- */

br_code br_trace_open(br_trace **out, const char *path, const char *model,
                      br_status *st) BR_MUST_USE;
/* What it is called until it is closed: PATH.part, but for a pipe or device. */
const char *br_trace_at(const br_trace *t);
/* Waits until all is written. IO: not all could be; what could is PATH.part. */
br_code br_trace_close(br_trace *t, br_status *st) BR_MUST_USE;
/* The engine's thread. */
void br_trace_submit(br_trace *t, br_request_id id, const br_request_desc *d,
                     int64_t submitted_ns);
typedef struct br_trace_event {
    br_request_id id; /* not of STEP */
    uint32_t a, b; /* BEGIN: slot, tokens found; STEP: rows, of them decoding;
                    * TOKEN: token, its place; END: finish, tokens */
    int64_t ns;    /* STEP: it took; BEGIN: waited */
} br_trace_event;
void br_trace_event_put(br_trace *t, br_trace_kind kind,
                        const br_trace_event *e);

/* ---- reading ------------------------------------------------------------- */

typedef struct br_trace_reader {
    const uint8_t *p, *end;
    char model[BR_TRACE_MAX_MODEL];
} br_trace_reader;

typedef struct br_trace_rec {
    br_trace_kind kind;
    int64_t t_ns;
    br_trace_event event; /* all but SUBMIT; LOST: a is how many */
    br_request_desc desc; /* SUBMIT: in the arena */
    br_request_id id;     /* SUBMIT */
    /* SUBMIT: it is no use to ask it again. Something masked its logits, its
     * answer has no tokens, or has some of before a restart. */
    bool apart;
} br_trace_rec;

/* The bytes outlive the reader. FORMAT names the place. */
br_code br_trace_read(br_trace_reader *r, const void *p, size_t n,
                      br_status *st) BR_MUST_USE;
/* *more false: that was the last one, LOST or CUT. a: for the parts of SUBMIT. */
br_code br_trace_next(br_trace_reader *r, br_arena *a, br_trace_rec *rec,
                      bool *more, br_status *st) BR_MUST_USE;

#endif
