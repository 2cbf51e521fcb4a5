/* come_back.c - GET /v1/responses/{id}?stream=true: who comes back for one.
 *
 *   made here, as a stream --> its tale (tale.h), as it grows
 *   it is over             --> told again (retell.h) from what is kept: after a
 *                              restart, or by another server of the database
 *   not over, no tale here --> its beginning, then the rest when it is over:
 *                              the database is asked once a second for all
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/srv.h"

#include "base/thread.h"
#include "http/retell.h"
#include "http/tale.h"

#include <string.h>

#define LOOK_NS (BR_TALK_BEAT_MS * INT64_C(1000000))

/* One that is followed here and made elsewhere, or here without a stream. */
typedef struct br_waited {
    br_tale *tale;
    uint32_t tenant;
    char id[BR_TALK_ID];
    int64_t looked_ns; /* when its turn was read last */
    struct br_waited *next;
} waited;

static bool
is_over(const br_turn_kept *t)
{
    return !t->alive_ms || !br_background_lives(t);
}

/* What comes behind the beginning. False: it could not be told. */
static bool
tell_rest(br_tale *tale, const br_turn_kept *t)
{
    br_str answer = {0}, out = {0};
    bool fails = false, is;

    br_background_other(t, &answer);
    is = !answer.oom && br_retell_rest((br_text){br_str_z(&answer), answer.n},
                                       t->cuts, &out, &fails);
    br_str_fini(&answer);
    if (!is)
        br_tale_break(tale, BR_TALE_HOLES);
    else
        is = br_tale_put(tale, out.at, out.n);
    br_str_fini(&out);
    if (!is)
        return false;
    br_tale_again(tale, fails);
    br_tale_end(tale);
    return true;
}

static br_tale *
tell_beginning(br_http *h, const br_turn_kept *t)
{
    br_str out = {0};
    br_tale *tale = NULL;

    if (br_retell_begin(t->answer, &out))
        tale = br_tale_new(h, t->tenant, t->id);
    if (tale) {
        br_tale_again(tale, false);
        if (!br_tale_put(tale, out.at, out.n))
            tale = NULL;
    }
    br_str_fini(&out);
    return tale;
}

static bool
wait_for(br_http *h, br_tale *tale, const br_turn_kept *t)
{
    waited *w = br_try_calloc(1, sizeof *w);

    if (!w || br_talks_watch(h->talks, t->id, NULL) != BR_OK) {
        br_free(w);
        br_tale_break(tale, BR_TALE_HOLES);
        return false;
    }
    *w = (waited){.tale = tale,
                  .tenant = t->tenant,
                  .looked_ns = br_now_ns(),
                  .next = h->waited};
    memcpy(w->id, t->id, sizeof w->id);
    h->waited = w;
    return true;
}

void
br_come_back(br_http *h, br_http_conn *c, int64_t after)
{
    br_tale *tale = br_tale_of(h, c->tenant, br_stored_id(c, ""));
    br_turn_kept t;
    bool is;

    if (!tale) {
        if (!br_stored_find(h, c, "", &t))
            return;
        tale = tell_beginning(h, &t);
        is =
            tale && (is_over(&t) ? tell_rest(tale, &t) : wait_for(h, tale, &t));
        if (!is) {
            br_reply_error(h, c, 503, "stream",
                           "there is no memory to tell its stream again: ask "
                           "for the response without stream");
            return;
        }
    }
    br_tale_follow(tale, c, after);
}

/* ---- until it is over ---------------------------------------------------- */

/* False: no more is to be waited for. */
static bool
look(br_http *h, waited *w, int64_t now_ns)
{
    br_turn_kept t;
    br_code code;

    if (!br_tale_is_followed(w->tale)) {
        br_tale_break(w->tale, "");
        return false;
    }
    if (h->draining) {
        br_tale_break(w->tale, "the server ends: ask again for the stream");
        return false;
    }
    if (!br_talks_is_over(h->talks, w->id) && now_ns - w->looked_ns < LOOK_NS)
        return true;
    w->looked_ns = now_ns;
    code = br_talks_get(h->talks, w->tenant, w->id, &t, NULL);
    if (code == BR_E_NOT_FOUND) {
        br_tale_break(w->tale, "the response was deleted");
        return false;
    }
    if (code != BR_OK || !is_over(&t))
        return true; /* the database is away, say */
    (void)tell_rest(w->tale, &t);
    return false;
}

static void
forget(br_http *h, waited **at)
{
    waited *w = *at;

    *at = w->next;
    br_talks_unwatch(h->talks, w->id);
    br_free(w);
}

void
br_come_back_tick(br_http *h, int64_t now_ns)
{
    for (waited **at = &h->waited; *at;)
        if (look(h, *at, now_ns))
            at = &(*at)->next;
        else
            forget(h, at);
}

void
br_come_back_free(br_http *h)
{
    while (h->waited)
        forget(h, &h->waited);
}
