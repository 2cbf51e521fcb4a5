/* plan.c - see plan.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/plan.h"

static const uint32_t jitter_ms[BR_QOS_COUNT] = {
#define X(name, text, weight_q8, ttft_ms, jitter_ms) jitter_ms,
#include "run/qos.def"
#undef X
};

static const uint32_t weight[BR_QOS_COUNT] = {16, 4, 1};

static void
note_decode(br_steptime *t, double x, double y)
{
    const double keep = 31.0 / 32;
    double det;

    t->n = t->n * keep + 1;
    t->x = t->x * keep + x;
    t->y = t->y * keep + y;
    t->xx = t->xx * keep + x * x;
    t->xy = t->xy * keep + x * y;
    det = t->n * t->xx - t->x * t->x;
    /* Steps that are all alike say nothing about the slope. */
    t->row_ns = det > 0.01 * t->xx ? (t->n * t->xy - t->x * t->y) / det : 0;
    t->row_ns = BR_MAX(t->row_ns, 0);
    t->base_ns = BR_MAX((t->y - t->row_ns * t->x) / t->n, 0);
}

/* A row of a step of so many, at that position in the mean. Steps count by their
 * rows, no more: by the squares of them what many cost while the machine was slow
 * would outweigh for long what few cost now. */
static void
note_prefill(br_steptime *t, double rows, double at, double y)
{
    const double keep = 15.0 / 16;
    double det;

    t->p = t->p * keep + rows;
    t->pr = t->pr * keep + rows * at;
    t->rr = t->rr * keep + rows * at * at;
    t->py = t->py * keep + rows * y;
    t->ry = t->ry * keep + rows * at * y;
    det = t->p * t->rr - t->pr * t->pr;
    if (det > 1e-3 * t->p * t->rr) {
        t->fixed_ns = (t->py * t->rr - t->ry * t->pr) / det;
        t->read_ns = (t->ry * t->p - t->py * t->pr) / det;
        if (t->read_ns < 0)
            t->fixed_ns = t->read_ns = 0;
        if (t->fixed_ns < 0) {
            t->fixed_ns = 0;
            t->read_ns = t->ry / t->rr;
        }
    }
    /* All at one place say what a row costs there, not why. */
    y = t->fixed_ns * t->p + t->read_ns * t->pr;
    if (y > 0) {
        t->fixed_ns *= t->py / y;
        t->read_ns *= t->py / y;
    } else
        t->fixed_ns = t->py / t->p;
}

/* ---- by the number of rows ------------------------------------------------ */

static uint32_t
place_of(uint32_t rows)
{
    uint32_t octave = 31 - (uint32_t)__builtin_clz(rows | 1);

    if (rows < 64)
        return rows;
    return BR_MIN(64 + (octave - 6) * 16 + (rows >> (octave - 4)) % 16,
                  (uint32_t)BR_PLAN_COUNTS - 1);
}

static double
towards(double from, double to, double share, double most)
{
    return from +
           BR_MAX(BR_MIN((to - from) * share, from * most), -from * most);
}

/* Other work makes all steps longer for a while: what steps of different rows
 * took is compared as if it had not. Of the first few of a kind it is the mean:
 * the machine may have paused in one, or the pace have been another. */
static void
note_rows(br_steptime *t, uint32_t rows, double ns)
{
    br_row_time *r = &t->of[place_of(rows)];
    const br_row_time *fewer = &t->of[BR_MAX(place_of(rows), 1u) - 1];

    if (ns <= 0)
        return;
    if (t->pace <= 0)
        t->pace = 1;
    if (t->steps - r->seen >= BR_PLAN_DEAR)
        r->n = BR_MIN(r->n, BR_PLAN_SURE / 2u);
    if (r->n >= BR_PLAN_SURE)
        t->pace = towards(t->pace, ns / r->ns, 1.0 / 4, 1.0 / 8);
    ns /= t->pace;
    r->n += r->n < 2 * BR_PLAN_SURE;
    if (r->n == 2 * BR_PLAN_SURE)
        r->ns = towards(r->ns, ns, 1.0 / 8, 1.0 / 32);
    else if (fewer->n < BR_PLAN_SURE)
        r->ns += (ns - r->ns) / r->n;
    else
        r->ns += (BR_MIN(ns, 1.5 * fewer->ns) - r->ns) / r->n;
    r->seen = t->steps;
}

/* What steps beside an interactive stream take of late, at pace 1. */
static void
note_usual(br_steptime *t, const br_step_rows *r)
{
    double ns = t->of[place_of(r->decode + r->prefill)].ns;

    if (!r->interactive || t->usual_ns == 0)
        t->usual_ns = r->interactive ? ns : 0;
    else
        t->usual_ns += (ns - t->usual_ns) / BR_PLAN_STEADY;
}

/* One step alone may have been slow for another reason. */
static uint64_t
until_again(const br_row_time *r)
{
    return r->n < BR_PLAN_SURE ? BR_PLAN_AGAIN : BR_PLAN_DEAR;
}

/* Rows of a step that is to take no longer than one of n and `more`. Kernels take
 * rows by eights or the like, so no line says it: 8 rows of a model of 1B take
 * 41 ms, 9 take 71, 16 take 90, 17 take 130. What is not known is tried, a row
 * more at a time; what took too long is tried again much later. Steps of many
 * rows are longer by a tenth than they are of late, no more: where there is always
 * something to read all grow to what is allowed, where there seldom is none stands
 * out. */
static uint32_t
level_rows(const br_steptime *t, uint32_t n, double more, uint32_t most)
{
    const br_row_time *base = &t->of[place_of(n)];
    uint32_t cheap = n, dear = most + 1;

    if (base->ns == 0 || t->steps - base->seen >= BR_PLAN_FRESH)
        return n;
    if (n <= BR_PLAN_MIN_ROWS)
        more = BR_MAX(more / t->pace, base->ns / 5);
    else
        more = BR_MIN(base->ns / 5, t->usual_ns * 1.1 - base->ns);
    for (uint32_t r = n + 1; r < dear; r++) {
        const br_row_time *x = &t->of[place_of(r)];

        if (x->ns > 0 && x->ns <= base->ns + more)
            cheap = r;
        else if (x->ns > 0 && t->steps - x->seen < until_again(x))
            dear = r;
    }
    return BR_MIN(cheap + 1, dear - 1);
}

/* ---- by lines ------------------------------------------------------------- */

static double
prefill_ns(const br_steptime *t, const br_step_rows *r)
{
    return t->fixed_ns * r->prefill + t->read_ns * r->positions;
}

static void
note_over(br_steptime *t, double alone, const br_step_rows *r, double ns)
{
    double want = alone + prefill_ns(t, r), now = 1;

    /* What a time slice of a neighbour adds to a short step says nothing. */
    if (t->known == BR_PLAN_KNOWN && want > BR_PLAN_LONG_MS * 1e6)
        now = ns / want;

    t->known += t->known < BR_PLAN_KNOWN;
    t->over = BR_MAX(now, t->over - (t->over - 1) / 512);
    t->over = BR_MIN(t->over, (double)BR_PLAN_MAX_OVER);
}

/* By what was expected, not by what pauses made of it. */
static void
note_steady(br_steptime *t, const br_step_rows *r, double alone)
{
    double want = alone + prefill_ns(t, r);

    if (!r->interactive || t->steady_ns == 0)
        t->steady_ns = r->interactive ? want : 0;
    else
        t->steady_ns += (want - t->steady_ns) / BR_PLAN_STEADY;
}

/* A step that took much longer than any like it: the machine paused. When it
 * happens twice in a row this is how long steps are now. */
static bool
paused(br_steptime *t, const br_step_rows *r, double want, double ns)
{
    bool known = t->n > BR_PLAN_KNOWN / 2.0 &&
                 (r->prefill == 0 || t->known == BR_PLAN_KNOWN);
    bool late = known && ns > 1.5 * want, once = late && !t->late;

    t->late = late;
    return once;
}

void
br_steptime_note(br_steptime *t, const br_step_rows *r, int64_t ns)
{
    double alone = t->base_ns + t->row_ns * r->decode, y = (double)ns;

    t->steps++;
    note_rows(t, r->decode + r->prefill,
              BR_MAX(y - t->read_ns * r->positions, y / 2));
    note_usual(t, r);
    note_steady(t, r, alone);
    t->mixed = r->prefill ? t->mixed + 1 : 0;
    if (!r->prefill)
        t->most = BR_MAX(t->most, r->decode);
    if (r->prefill)
        note_over(t, alone, r, y);
    if (paused(t, r, alone + prefill_ns(t, r), y))
        return;
    /* Where nobody decodes half of the step at least was prefill: what is known
     * may be steps of 16 rows alone, whose time is then all taken for base. */
    if (r->prefill)
        note_prefill(t, r->prefill, r->positions / r->prefill,
                     BR_MAX(y - alone, y / (r->decode ? 64 : 2)) / r->prefill);
    else
        note_decode(t, r->decode, y);
}

double
br_steptime_prefill(const br_steptime *t, double position)
{
    return t->fixed_ns + t->read_ns * position;
}

double
br_plan_row_ns(const br_steptime *t, const br_plan_want *w, uint32_t n)
{
    double ns = 0, sum = 0;

    for (uint32_t i = 0; i < n; i++)
        if (w[i].rows) {
            ns += weight[w[i].qos] * br_steptime_prefill(t, w[i].from);
            sum += weight[w[i].qos];
        }
    return sum > 0 ? ns / sum : 0;
}

/* What may be added to a step so that it is longer by at most ms, nearly always:
 * a tenth is left for what the past has not shown. Where decoding alone may
 * already take longer than that by chance, prefill still gets on. */
static double
within(uint32_t ms, double base, double over)
{
    double most = ms * 0.9e6;

    over = BR_MAX(over, 1);
    return BR_MAX((most + base) / over - base, most / over / 2);
}

/* Beside an interactive stream: as long as if those who read decoded, or had a
 * row each, and a fifth more. So a step keeps its length when a neighbour's
 * prompt is read and when its answer is made; and no longer than the jitter
 * allows, or than steps beside the stream have been anyway. */
static double
beside_interactive(const br_steptime *t, uint32_t n_read, double base,
                   double row_ns, double least)
{
    double others = BR_MAX(t->row_ns, row_ns) * n_read;
    double extra = others + (base + others) / 5;

    least = BR_MIN(least, BR_PLAN_JITTER_MS * 1e6);
    return BR_MIN(BR_MAX(extra, least),
                  BR_MAX(within(jitter_ms[BR_QOS_INTERACTIVE], base, t->over),
                         t->steady_ns - base));
}

/* At least a row for each who reads: if it decoded it would have that, too. */
static uint32_t
beside_rows(const br_steptime *t, uint32_t n_decode, uint32_t n_read,
            double row_ns, double extra, uint32_t room)
{
    double least = BR_MIN(BR_PLAN_MIN_ROWS * row_ns, BR_PLAN_JITTER_MS * 1e6);
    uint32_t n = n_decode + n_read;
    uint32_t most = n_decode + (uint32_t)BR_MIN(extra / row_ns, room);

    if (most <= n)
        return BR_MIN(n_read, room);
    return level_rows(t, n, least - row_ns * n_read, most) - n_decode;
}

/* What decoding alone costs is not known well enough: of none yet, of far fewer
 * rows, or too long ago. Beside an interactive stream what a row that decodes
 * costs would else be taken for that of prompts, of which then few are read, so
 * that few come to decode: steps of a model of 1B stayed at two rows of each. */
static bool
unknown(const br_steptime *t, uint32_t n_decode, br_qos best)
{
    return t->n == 0 || t->mixed >= BR_PLAN_MIXED ||
           (best == BR_QOS_INTERACTIVE && n_decode >= 2 * t->most);
}

uint32_t
br_plan_budget(const br_steptime *t, uint32_t n_decode, uint32_t n_read,
               br_qos best, double row_ns, uint32_t max_rows)
{
    uint32_t room = max_rows > n_decode ? max_rows - n_decode : 0;
    double base = t->base_ns + t->row_ns * n_decode, extra = 0, rows;
    double least = BR_PLAN_MIN_ROWS * row_ns;

    if (n_decode && unknown(t, n_decode, best))
        return 0;
    if (row_ns <= 0)
        return BR_MIN(room, n_decode ? (uint32_t)BR_PLAN_MIN_ROWS
                                     : (uint32_t)BR_PLAN_FIRST_ROWS);
    switch (best) {
    case BR_QOS_INTERACTIVE:
        /* What a row of a prompt costs is learned as what steps take more than
         * without, which was learned on a slower machine, perhaps: then it
         * seems to be nothing. */
        row_ns = BR_MAX(row_ns, t->row_ns / 2);
        extra = beside_interactive(t, n_read, base, row_ns, least);
        return beside_rows(t, n_decode, n_read, row_ns, extra, room);
    case BR_QOS_STANDARD:
    case BR_QOS_BATCH:
        extra = BR_MIN(within(BR_PLAN_STANDARD_MS, base, t->over),
                       BR_MAX(base, BR_PLAN_HALF_MS * 1e6));
        break;
    case BR_QOS_COUNT:
        extra = BR_MAX(BR_PLAN_IDLE_MS * 1e6 - base, least);
        extra = BR_MAX(extra, BR_MIN(2 * base, BR_PLAN_SLOW_MS * 1e6));
        break;
    }
    rows = BR_MAX(extra / row_ns, 1);
    return rows < room ? (uint32_t)rows : room;
}

void
br_plan_share(br_plan_want *w, uint32_t n, uint32_t budget)
{
    uint64_t sum = 0;
    uint32_t left = budget;

    for (uint32_t i = 0; i < n; i++) {
        w[i].give = 0;
        sum += weight[w[i].qos];
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t fair =
            w[i].credit + (uint64_t)budget * weight[w[i].qos] * 256 / sum;

        w[i].give = (uint32_t)BR_MIN(BR_MIN(fair / 256, w[i].rows), left);
        w[i].credit = (uint32_t)BR_MIN(fair - w[i].give * UINT64_C(256), 512);
        left -= w[i].give;
    }
    for (uint32_t i = 0; i < n && left; i++) {
        uint32_t more = BR_MIN(left, w[i].rows - w[i].give);

        w[i].give += more;
        left -= more;
    }
}
