/* log.h - what the library has to say; who prints it is the program's affair.
 *
 *   br_log(BR_EV_x, "fmt", ...) --> level? --> record --> sink->put
 *
 * Without a sink nothing is formatted: an event that is off costs two loads.
 * A line is put together on the stack, without a byte of the heap. Any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LOG_H
#define BR_LOG_H

#include "base/base.h"

#include <stdatomic.h>

typedef enum br_log_level {
    BR_LOG_ERROR,
    BR_LOG_WARN,
    BR_LOG_INFO,
    BR_LOG_DEBUG,
    BR_LOG_TRACE,
} br_log_level;

typedef enum br_log_event {
#define X(name, level, room, text) BR_EV_##name,
#include "base/events.def"
#undef X
    BR_EV_COUNT
} br_log_event;

typedef struct br_log_eventinfo {
    const char *name, *room, *text;
    br_log_level level;
} br_log_eventinfo;
const br_log_eventinfo *br_log_event_of(br_log_event e);
const char *br_log_level_name(br_log_level l); /* "warn" */

enum { BR_LOG_TEXT = 512, BR_LOG_LINE = 4096 };

typedef struct br_log_record {
    br_log_event event;
    const char *file; /* of the source */
    int line;
    uint32_t thread;
    int64_t wall_ns;
    uint32_t left_out; /* how many a limit held back since the last one */
    const char *text;  /* at most BR_LOG_TEXT - 1 bytes, any bytes */
} br_log_record;

/* put may be called by several threads at once. */
typedef struct br_log_sink {
    void (*put)(void *ctx, const br_log_record *r);
    void *ctx;
    br_log_level level; /* events above it are dropped */
} br_log_sink;

/* NULL: silence, as at the start. The sink lives until another is installed
 * and no thread can still be inside put. */
void br_log_install(const br_log_sink *sink);

bool br_log_on(br_log_event e);
/* Calls the sink if the event is on, and evaluates the rest only then. */
#define br_log(event, ...)                                                     \
    (br_log_on(event) ? br_log_at((event), __FILE__, __LINE__, 0, __VA_ARGS__) \
                      : (void)0)
void br_log_at(br_log_event e, const char *file, int line, uint32_t left_out,
               const char *fmt, ...) BR_PRINTF(5, 6);

/* For what may come a thousand times a second: at first `burst` lines, then
 * one in `every_ns`. The next line that passes tells how many did not.
 *     static br_log_limit lim = {.every_ns = 1000000000, .burst = 3};
 *     br_log_limited(&lim, BR_EV_x, "fmt", ...);                           */
typedef struct br_log_limit {
    int64_t every_ns;
    int burst;
    _Atomic int64_t next_ns;
    _Atomic uint32_t held;
} br_log_limit;
bool br_log_may(br_log_limit *l, int64_t now_ns, uint32_t *left_out);
#define br_log_limited(limit, event, ...)                             \
    (br_log_on(event) ? br_log_limited_at((limit), (event), __FILE__, \
                                          __LINE__, __VA_ARGS__)      \
                      : (void)0)
void br_log_limited_at(br_log_limit *l, br_log_event e, const char *file,
                       int line, const char *fmt, ...) BR_PRINTF(5, 6);

/* A record as one line with its newline; returns the length. JSON is always
 * valid JSON and UTF-8; text shows control characters as \xNN.
 *     2026-11-21T09:45:01.123Z warn cli.env_unknown: ...                   */
typedef enum br_log_format {
    BR_LOG_PLAIN, /* as above but for the time: for a terminal */
    BR_LOG_TIMED,
    BR_LOG_JSON,
} br_log_format;
size_t br_log_line(char out[BR_LOG_LINE], const br_log_record *r,
                   br_log_format f);

#endif
