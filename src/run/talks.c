/* talks.c - see talks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks_int.h"

#include <stdio.h>
#include <string.h>

typedef br_talk_change change;

/* ---- life ---------------------------------------------------------------- */

static br_code
open_all(br_talks *t, br_status *st)
{
    BR_TRY(t->kind->open(&t->its, t->c.path, NULL, st));
    BR_TRY(br_talks_make(t, st));
    if (t->kind->claim)
        BR_TRY(t->kind->claim(t->its, st));
    BR_TRY(t->kind->open(&t->mine, t->c.path, NULL, st));
    BR_TRY(br_thread_start(&t->thread, "talks", br_talks_write, t, st));
    t->started = true;
    return BR_OK;
}

br_code
br_talks_open(br_talks **out, const br_talks_config *c, br_status *st)
{
    br_talks *t = br_try_calloc(1, sizeof *t);
    br_code code;

    *out = NULL;
    if (!t)
        return br_fail(st, BR_E_OOM, "out of memory");
    t->c = *c;
    t->walk = t->lock = (br_mutex)BR_MUTEX;
    t->end = &t->first;
    code = br_db_choose(c->path, "responses", &t->kind, st);
    if (code == BR_OK)
        code = open_all(t, st);
    if (code != BR_OK)
        br_talks_close(t);
    else
        *out = t;
    return code;
}

void
br_talks_close(br_talks *t)
{
    if (!t)
        return;
    if (t->started) {
        /* release: with stops() */
        atomic_store_explicit(&t->stop, true, memory_order_release);
        br_event_signal(&t->wake);
        br_thread_join(&t->thread);
    }
    br_talks_forget(t, t->end);
    if (t->mine)
        t->kind->close(t->mine);
    if (t->its)
        t->kind->close(t->its);
    for (size_t i = 0; i < BR_COUNT(t->text); i++)
        br_str_fini(&t->text[i]);
    br_vec_fini(&t->watched);
    br_vec_fini(&t->looked);
    br_free(t);
}

/* ---- the owner's --------------------------------------------------------- */

static br_text
copy(char **to, br_text from)
{
    br_text is = {*to, from.n};

    if (from.n)
        memcpy(*to, from.p, from.n);
    *to += from.n;
    return is;
}

static br_code
wait(br_talks *t, const br_turn_kept *turn, br_talk_kind what, br_status *st)
{
    change *c = br_try_alloc(sizeof *c + turn->input.n + turn->output.n +
                             turn->answer.n + turn->cuts.n);
    char *to;
    bool room;

    if (!c)
        return br_fail(st, BR_E_OOM, "out of memory");
    to = (char *)(c + 1);
    *c = (change){.what = what, .t = *turn};
    c->t.input = copy(&to, turn->input);
    c->t.output = copy(&to, turn->output);
    c->t.answer = copy(&to, turn->answer);
    c->t.cuts = copy(&to, turn->cuts);
    br_mutex_lock(&t->lock);
    room = t->waiting + br_talks_bytes(c) <= BR_TALKS_WAITING;
    if (room) {
        t->waiting += br_talks_bytes(c);
        *t->end = c;
        t->end = &c->next;
    }
    br_mutex_unlock(&t->lock);
    if (room)
        br_event_signal(&t->wake);
    else
        br_free(c);
    return room ? BR_OK : br_fail(st, BR_E_BUSY, "too much waits for the disk");
}

bool
br_talks_put(br_talks *t, const br_turn_kept *turn)
{
    return wait(t, turn, PUT, NULL) == BR_OK;
}

bool
br_talks_end(br_talks *t, const br_turn_kept *turn)
{
    return wait(t, turn, END, NULL) == BR_OK;
}

void
br_talks_beat(br_talks *t, uint32_t tenant, const char *id)
{
    br_turn_kept k = {.tenant = tenant, .alive_ms = br_wall_ns() / 1000000};

    (void)snprintf(k.id, sizeof k.id, "%s", id);
    (void)wait(t, &k, BEAT, NULL); /* the next one comes soon */
}

static br_code
edit(br_talks *t, br_turn_kept k, const char *id, br_talk_kind what,
     br_status *st)
{
    k.created_ms = br_wall_ns() / 1000000;
    (void)snprintf(k.id, sizeof k.id, "%s", id);
    return wait(t, &k, what, st);
}

br_code
br_talks_add(br_talks *t, uint32_t tenant, const char *id, br_text items,
             br_status *st)
{
    return edit(t, (br_turn_kept){.tenant = tenant, .input = items}, id, ADD,
                st);
}

br_code
br_talks_cut(br_talks *t, uint32_t tenant, const char *id, br_text item,
             br_status *st)
{
    return edit(t, (br_turn_kept){.tenant = tenant, .input = item}, id, CUT,
                st);
}

br_code
br_talks_name(br_talks *t, uint32_t tenant, const char *id, br_text answer,
              br_status *st)
{
    return edit(t, (br_turn_kept){.tenant = tenant, .answer = answer}, id, NAME,
                st);
}

/* ---- those that others may end ------------------------------------------- */

br_code
br_talks_watch(br_talks *t, const char *id, br_status *st)
{
    br_talk_watched w = {0};
    bool is;

    (void)snprintf(w.id, sizeof w.id, "%s", id);
    br_mutex_lock(&t->lock);
    is = br_vec_push(&t->watched, w);
    br_mutex_unlock(&t->lock);
    return is ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");
}

static br_talk_watched *
watched_of(br_talks *t, const char *id)
{
    for (size_t i = 0; i < t->watched.n; i++)
        if (strcmp(t->watched.at[i].id, id) == 0)
            return &t->watched.at[i];
    return NULL;
}

void
br_talks_unwatch(br_talks *t, const char *id)
{
    br_talk_watched *w;

    br_mutex_lock(&t->lock);
    w = watched_of(t, id);
    if (w)
        *w = t->watched.at[--t->watched.n];
    br_mutex_unlock(&t->lock);
}

void
br_talks_look(br_talks *t)
{
    bool any;

    br_mutex_lock(&t->lock);
    any = t->looks = t->watched.n > 0;
    br_mutex_unlock(&t->lock);
    if (any)
        br_event_signal(&t->wake);
}

bool
br_talks_is_over(br_talks *t, const char *id)
{
    const br_talk_watched *w;
    bool over;

    br_mutex_lock(&t->lock);
    w = watched_of(t, id);
    over = w && w->over;
    br_mutex_unlock(&t->lock);
    return over;
}

void
br_talks_tend(br_talks *t)
{
    if (t->kind->tend)
        t->kind->tend(t->mine);
}

/* ---- asking -------------------------------------------------------------- */

typedef struct found {
    br_talks *t;
    br_turn_kept *out;
    bool is;
} found;

static bool
keep_text(br_str *s, br_text text)
{
    br_str_clear(s);
    br_str_put(s, text.p ? text.p : "", text.n);
    return !s->oom;
}

static br_code
take(found *f, br_text previous, const br_text text[4], br_status *st)
{
    br_talks *t = f->t;

    (void)snprintf(f->out->previous, sizeof f->out->previous, "%.*s",
                   (int)BR_MIN(previous.n, (size_t)BR_TALK_ID),
                   previous.p ? previous.p : "");
    for (int i = 0; i < 4; i++)
        if (!keep_text(&t->text[i], text[i])) {
            br_str_fini(&t->text[i]);
            return br_fail(st, BR_E_OOM, "out of memory");
        }
    f->out->input = (br_text){br_str_z(&t->text[0]), t->text[0].n};
    f->out->output = (br_text){br_str_z(&t->text[1]), t->text[1].n};
    f->out->answer = (br_text){br_str_z(&t->text[2]), t->text[2].n};
    f->out->cuts = (br_text){br_str_z(&t->text[3]), t->text[3].n};
    f->is = true;
    return BR_OK;
}

static br_code
on_turn(void *ctx, const br_db_value *v, br_status *st)
{
    found *f = ctx;

    f->out->created_ms = v[0].i;
    f->out->alive_ms = v[1].i;
    return take(f, v[2].s, (br_text[]){v[3].s, v[4].s, v[5].s, v[6].s}, st);
}

/* Of a row that is there, not the whole of one. */
static bool
is_partial(const change *c)
{
    return c->what == BEAT || c->what >= ADD;
}

/* The latest change of that id, if any waits. */
static const change *
latest(const br_talks *t, uint32_t tenant, const char *id)
{
    const change *is = NULL;

    for (const change *c = t->first; c; c = c->next)
        if (!is_partial(c) && c->t.tenant == tenant && strcmp(c->t.id, id) == 0)
            is = c;
    return is;
}

/* What waits to be done to the turn that was found; c: what comes behind. */
static br_code
do_waiting(found *f, const change *c, br_status *st)
{
    br_talks *t = f->t;
    br_code code = BR_OK;

    for (; c && code == BR_OK; c = c->next) {
        if (c->what < ADD || c->t.tenant != f->out->tenant ||
            strcmp(c->t.id, f->out->id) != 0)
            continue;
        if (c->what == NAME && !keep_text(&t->text[2], c->t.answer))
            code = br_fail(st, BR_E_OOM, "out of memory");
        else if (c->what != NAME)
            code = br_talks_change(c, &t->text[0], st);
    }
    f->out->input = (br_text){br_str_z(&t->text[0]), t->text[0].n};
    f->out->answer = (br_text){br_str_z(&t->text[2]), t->text[2].n};
    return code;
}

static br_code
look_at_waiting(br_talks *t, found *f, bool *any, br_status *st)
{
    const change *is;
    br_code code = BR_OK;

    br_mutex_lock(&t->lock);
    is = latest(t, f->out->tenant, f->out->id);
    *any = is != NULL;
    if (is && is->what != DROP) {
        f->out->created_ms = is->t.created_ms;
        f->out->alive_ms = is->what == END ? 0 : is->t.alive_ms;
        code = take(
            f, br_text_z(is->t.previous),
            (br_text[]){is->t.input, is->t.output, is->t.answer, is->t.cuts},
            st);
        if (code == BR_OK)
            code = do_waiting(f, is->next, st);
    }
    br_mutex_unlock(&t->lock);
    return code;
}

/* Whether it could be one: no database is asked for others. */
static bool
is_id(const char *id)
{
    static const char of[] = "abcdefghijklmnopqrstuvwxyz0123456789_-"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(id, of);

    return n && !id[n] && n < BR_TALK_ID;
}

static br_code
none(const char *id, br_status *st)
{
    return br_fail(st, BR_E_NOT_FOUND, "no response '%.80s' is kept", id);
}

/* What waits stays while the row is read: a change may be in both, but none is
 * missed. */
static br_code
look_at_database(found *f, br_status *st)
{
    br_talks *t = f->t;
    const br_db_value v[] = {TEXT(f->out->id), INT(f->out->tenant),
                             INT(br_talks_oldest(t))};
    br_code code;

    br_mutex_lock(&t->walk);
    code = t->kind->run(
        t->mine,
        &(br_db_query){
            "SELECT created_ms, alive_ms, previous, input, "
            "output, answer, cuts FROM turn WHERE id = ? AND tenant = "
            "? AND created_ms >= ?",
            v, 3, on_turn, f},
        st);
    if (code == BR_OK && f->is) {
        br_mutex_lock(&t->lock);
        code = do_waiting(f, t->first, st);
        br_mutex_unlock(&t->lock);
    }
    br_mutex_unlock(&t->walk);
    return code;
}

br_code
br_talks_get(br_talks *t, uint32_t tenant, const char *id, br_turn_kept *out,
             br_status *st)
{
    found f = {t, out, false};
    bool any;

    *out = (br_turn_kept){.tenant = tenant};
    if (!is_id(id))
        return none(id, st);
    memcpy(out->id, id, strlen(id) + 1);
    BR_TRY(look_at_waiting(t, &f, &any, st));
    if (!any)
        BR_TRY(look_at_database(&f, st));
    return f.is ? BR_OK : none(id, st);
}

br_code
br_talks_drop(br_talks *t, uint32_t tenant, const char *id, br_status *st)
{
    br_turn_kept is;

    BR_TRY(br_talks_get(t, tenant, id, &is, st));
    is.input = is.output = is.answer = is.cuts = (br_text){0};
    return wait(t, &is, DROP, st);
}

/* ---- all of a talk ------------------------------------------------------- */

typedef struct walk {
    br_talks *t;
    uint32_t tenant;
    br_talks_each each;
    void *ctx;
    char next[BR_TALK_ID]; /* "": that was the first */
    int n;
} walk;

static br_code
step(walk *w, const br_turn_kept *k, br_status *st)
{
    if (w->n++ == BR_TALK_TURNS)
        return br_fail(st, BR_E_USAGE, "a talk has %d turns at most",
                       BR_TALK_TURNS);
    memcpy(w->next, k->previous, sizeof w->next);
    return w->each(w->ctx, k, st);
}

static br_code
on_step(void *ctx, const br_db_value *v, br_status *st)
{
    walk *w = ctx;
    br_turn_kept k = {.tenant = w->tenant, .alive_ms = v[2].i};
    const change *is;

    if (v[0].s.n >= BR_TALK_ID || v[1].s.n >= BR_TALK_ID ||
        !br_text_is(v[0].s, w->next))
        return br_fail(st, BR_E_FORMAT, "responses: malformed row");
    br_mutex_lock(&w->t->lock);
    is = latest(w->t, w->tenant, w->next);
    br_mutex_unlock(&w->t->lock);
    if (is && is->what == DROP)
        return none(w->next, st);
    memcpy(k.id, v[0].s.p, v[0].s.n);
    memcpy(k.previous, v[1].s.p, v[1].s.n);
    k.input = v[3].s;
    k.output = v[4].s;
    return step(w, &k, st);
}

/* One question for as many as have 16 MB: a database may be far away, and a
 * talk has no more. What is dropped meanwhile may be among them: on_step sees
 * that it waits. */
static br_code
walk_database(walk *w, br_status *st)
{
    const int64_t since = br_talks_oldest(w->t);
    const br_db_value v[] = {TEXT(w->next), INT(w->tenant), INT(since),
                             INT(w->tenant), INT(since)};

    br_code code;

    br_mutex_lock(&w->t->walk);
    code = w->t->kind->run(
        w->t->mine,
        &(br_db_query){
            "WITH RECURSIVE talk(id, previous, alive_ms, input, output, depth, "
            "size) AS (SELECT id, previous, alive_ms, input, output, 1, "
            "length(input) + length(output) FROM turn WHERE id = ? AND tenant "
            "= ? AND created_ms >= ? UNION ALL SELECT t.id, t.previous, "
            "t.alive_ms, t.input, t.output, talk.depth + 1, talk.size + "
            "length(t.input) + length(t.output) FROM talk JOIN turn t ON t.id "
            "= talk.previous WHERE t.tenant = ? AND t.created_ms >= ? AND "
            "talk.depth < 256 AND talk.size < 16777216) SELECT id, previous, "
            "alive_ms, input, output FROM talk ORDER BY depth",
            v, BR_COUNT(v), on_step, w},
        st);
    br_mutex_unlock(&w->t->walk);
    return code;
}

br_code
br_talks_walk(br_talks *t, uint32_t tenant, const char *id, br_talks_each each,
              void *ctx, br_status *st)
{
    walk w = {.t = t, .tenant = tenant, .each = each, .ctx = ctx};

    if (!is_id(id))
        return none(id, st);
    memcpy(w.next, id, strlen(id) + 1);
    while (w.next[0]) {
        br_turn_kept k = {.tenant = tenant};
        found f = {t, &k, false};
        bool any;
        int n = w.n;

        memcpy(k.id, w.next, sizeof k.id);
        BR_TRY(look_at_waiting(t, &f, &any, st));
        BR_TRY(f.is  ? step(&w, &k, st)
               : any ? none(w.next, st)
                     : walk_database(&w, st));
        if (w.n == n)
            return none(w.next, st);
    }
    return BR_OK;
}
