/* log.c - levels, the one sink, and the two shapes of a line.
 *
 * Invariant: a line of BR_LOG_LINE bytes holds any text of BR_LOG_TEXT bytes,
 * since an escape is at most six bytes for one and the rest is below 1000.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>

static const br_log_eventinfo events[BR_EV_COUNT] = {
#define X(name, level, room, text) {#name, room, text, BR_LOG_##level},
#include "base/events.def"
#undef X
};

static _Atomic(const br_log_sink *) sink;

const br_log_eventinfo *
br_log_event_of(br_log_event e)
{
    br_assert((unsigned)e < BR_EV_COUNT);
    return &events[e];
}

const char *
br_log_level_name(br_log_level l)
{
    switch (l) {
    case BR_LOG_ERROR: return "error";
    case BR_LOG_WARN: return "warn";
    case BR_LOG_INFO: return "info";
    case BR_LOG_DEBUG: return "debug";
    case BR_LOG_TRACE: return "trace";
    }
    br_unreachable("every level is named");
}

void
br_log_install(const br_log_sink *s)
{
    /* release, with the acquire in br_log_on and emit: *s is complete */
    atomic_store_explicit(&sink, s, memory_order_release);
}

bool
br_log_on(br_log_event e)
{
    /* acquire, with the release in br_log_install */
    const br_log_sink *s = atomic_load_explicit(&sink, memory_order_acquire);

    return s && events[e].level <= s->level;
}

BR_PRINTF(2, 0)
static void
emit(br_log_record *r, const char *fmt, va_list ap)
{
    /* acquire, with the release in br_log_install */
    const br_log_sink *s = atomic_load_explicit(&sink, memory_order_acquire);
    char text[BR_LOG_TEXT];
    int n = vsnprintf(text, sizeof text, fmt, ap);

    if (n >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    r->text = text;
    r->wall_ns = br_wall_ns();
    r->thread = br_os_thread_id();
    if (s)
        s->put(s->ctx, r);
}

void
br_log_at(br_log_event e, const char *file, int line, uint32_t left_out,
          const char *fmt, ...)
{
    br_log_record r = {
        .event = e, .file = file, .line = line, .left_out = left_out};
    va_list ap;

    va_start(ap, fmt);
    emit(&r, fmt, ap);
    va_end(ap);
}

/* ---- limit -------------------------------------------------------------- */

/* next_ns is when the line would be due if they came evenly; it may run ahead
 * of now by burst - 1 intervals. */
bool
br_log_may(br_log_limit *l, int64_t now_ns, uint32_t *left_out)
{
    /* relaxed, all three: the numbers order nothing else */
    int64_t next = atomic_load_explicit(&l->next_ns, memory_order_relaxed);

    for (;;) {
        int64_t due = BR_MAX(next, now_ns);

        if (due - now_ns > l->every_ns * (l->burst - 1)) {
            atomic_fetch_add_explicit(&l->held, 1, memory_order_relaxed);
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(
                &l->next_ns, &next, due + l->every_ns, memory_order_relaxed,
                memory_order_relaxed))
            break;
    }
    *left_out = atomic_exchange_explicit(&l->held, 0, memory_order_relaxed);
    return true;
}

void
br_log_limited_at(br_log_limit *l, br_log_event e, const char *file, int line,
                  const char *fmt, ...)
{
    br_log_record r = {.event = e, .file = file, .line = line};
    va_list ap;

    if (!br_log_may(l, br_now_ns(), &r.left_out))
        return;
    va_start(ap, fmt);
    emit(&r, fmt, ap);
    va_end(ap);
}

/* ---- lines -------------------------------------------------------------- */

/* Days since 1970 to a date, by years that begin in March (H. Hinnant). */
static size_t
put_time(char *out, size_t size, int64_t wall_ns)
{
    int64_t s = wall_ns / 1000000000, days = s / 86400 + 719468;
    int64_t era = days / 146097, doe = days % 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int month = (int)(mp < 10 ? mp + 3 : mp - 9);

    return (size_t)snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                            (int)(yoe + era * 400 + (month <= 2)), month,
                            (int)(doy - (153 * mp + 2) / 5 + 1),
                            (int)(s / 3600 % 24), (int)(s / 60 % 60),
                            (int)(s % 60), (int)(wall_ns / 1000000 % 1000));
}

/* Length of the UTF-8 character at p, 0 if it is none (overlong forms,
 * surrogates and what lies beyond U+10FFFF are none). */
static size_t
utf8_length(const unsigned char *p)
{
    static const struct {
        unsigned char first, last, second_min, second_max, n;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        if (*p < rows[i].first || *p > rows[i].last)
            continue;
        if (rows[i].n > 1 &&
            (p[1] < rows[i].second_min || p[1] > rows[i].second_max))
            return 0;
        for (size_t k = 2; k < rows[i].n; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return rows[i].n;
    }
    return 0;
}

/* The text of a JSON string, without the quotes; ends with a NUL. */
static size_t
put_escaped(char *out, size_t size, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = 0;

    while (*p && n + 7 < size) {
        size_t k = utf8_length(p);

        if (k == 0) {
            n += (size_t)snprintf(out + n, size - n, "\\ufffd");
            k = 1;
        } else if (*p == '"' || *p == '\\') {
            n += (size_t)snprintf(out + n, size - n, "\\%c", *p);
        } else if (*p < 0x20 || *p == 0x7f) {
            n += (size_t)snprintf(out + n, size - n, "\\u%04x", *p);
        } else {
            memcpy(out + n, p, k);
            n += k;
        }
        p += k;
    }
    out[n] = 0;
    return n;
}

static size_t
put_visible(char *out, size_t size, const char *text)
{
    size_t n = 0;

    for (; *text && n + 5 < size; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c == 0x7f)
            n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
        else
            out[n++] = *text;
    }
    out[n] = 0;
    return n;
}

static size_t
json_line(char *out, const br_log_record *r)
{
    const br_log_eventinfo *e = br_log_event_of(r->event);
    size_t size = BR_LOG_LINE - 200, n = 0;

    n += (size_t)snprintf(out, size, "{\"time\":\"");
    n += put_time(out + n, size - n, r->wall_ns);
    n += (size_t)snprintf(out + n, size - n,
                          "\",\"level\":\"%s\",\"event\":\"%s.%s\",\"text\":\"",
                          br_log_level_name(e->level), e->room, e->name);
    n += put_escaped(out + n, size - n, r->text);
    n += (size_t)snprintf(
        out + n, BR_LOG_LINE - n,
        "\",\"left_out\":%u,\"thread\":%u,\"at\":\"%.80s:%d\"}", r->left_out,
        r->thread, r->file, r->line);
    return n;
}

size_t
br_log_line(char out[BR_LOG_LINE], const br_log_record *r, br_log_format f)
{
    const br_log_eventinfo *e = br_log_event_of(r->event);
    size_t size = BR_LOG_LINE - 64, n = 0;

    if (f == BR_LOG_JSON) {
        n = json_line(out, r);
    } else {
        if (f == BR_LOG_TIMED) {
            n += put_time(out, size, r->wall_ns);
            out[n++] = ' ';
        }
        n += (size_t)snprintf(out + n, size - n,
                              "%s %s.%s: ", br_log_level_name(e->level),
                              e->room, e->name);
        n += put_visible(out + n, size - n, r->text);
        if (r->left_out)
            n += (size_t)snprintf(out + n, BR_LOG_LINE - n,
                                  " (and %u before it)", r->left_out);
    }
    out[n++] = '\n';
    out[n] = 0;
    return n;
}
