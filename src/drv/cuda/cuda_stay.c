/* cuda_stay.c - steps that the device takes from the host's memory.
 *
 *   ordinary    head, rows -> graph { fetch, step }
 *   it stays    head, rows -> graph { fetch, while { step, draw, tell + fetch } }
 *               head, rows ->                 no call of the driver, and so on
 *
 * The launch stays while steps of as many rows follow each other whose tokens the
 * device draws; any slots, any draws. It ends by itself when nothing comes for 20
 * ms, or when what comes is another step's head. Whatever else is asked of the
 * device first writes such a head (cun_leave). The next head may be there before a step
 * is over (cuda_ahead.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/log.h"

#include <string.h>

extern const char br_ptx_stay[];

enum {
    PATIENCE = 16384, /* looks at the head: 20 ms */
    AT_SIGHT = 4, /* steps of as many rows until a launch is made for them */
    QUIET = 32    /* steps in which nobody else has asked for the device */
};

bool
cun_can_fetch(const br_cun *x, uint32_t rows, uint32_t n_want)
{
    return x->stay.fn && rows <= BR_STAY_ROWS && n_want == rows &&
           !x->watch.seen && x->alone && x->n_embeds == 0 &&
           x->most_per_kv <= BR_ND_FLASH_FEW;
}

/* A driver before 12.3 does not know what the kernel calls: steps are copied. */
br_code
cun_open_stay(br_cun *x, br_status *st)
{
    cun_loop *s = &x->stay;

    if (x->dev || x->plain)
        return BR_OK;
    BR_TRY(
        BR_CU(&x->cu, st, cuMemAllocHost((void **)&s->host, sizeof *s->host)));
    memset(s->host, 0, sizeof *s->host);
    if (!x->cu.cuGraphConditionalHandleCreate)
        return BR_OK;
    BR_TRY(br_cuda_module(&x->cu, &s->mod, "stay", br_ptx_stay, st));
    BR_TRY(BR_CU(&x->cu, st, cuModuleGetFunction(&s->fn, s->mod, "br_stay")));
    return br_cuda_all_shared(&x->cu, s->fn, st);
}

void
cun_close_stay(br_cun *x)
{
    cun_loop *s = &x->stay;

    for (size_t i = 0; i < BR_COUNT(s->graph); i++)
        if (s->graph[i])
            x->cu.cuGraphExecDestroy(s->graph[i]);
    if (s->host)
        x->cu.cuMemFreeHost(s->host);
    if (s->mod)
        x->cu.cuModuleUnload(s->mod);
}

/* ---- the device's side -------------------------------------------------- */

static void *
at(const br_cun *x, size_t place)
{
    return (void *)(uintptr_t)(x->block + place);
}

static br_code
start(br_cun *x, uint32_t rows, uint64_t loop, br_status *st)
{
    const cun_loop *s = &x->stay;
    struct br_stay_args a = {.host = s->host,
                             .state = (void *)(uintptr_t)s->state,
                             .slot = at(x, x->at.slot),
                             .position = at(x, x->at.position),
                             .token = at(x, x->at.token),
                             .want = at(x, x->at.want),
                             .tile = at(x, x->at.tile),
                             .at = at(x, x->at.at),
                             .tables = at(x, x->at.tables),
                             .n_groups = x->v.plan.n_groups,
                             .table_n = x->table_n,
                             .rows = rows,
                             .patience = PATIENCE,
                             .loop = loop};

    if (rows <= x->pick_rows) { /* all are drawn at once */
        a.how = (void *)(uintptr_t)x->pick_io;
        a.drawn = (const void *)(uintptr_t)cun_drawn(x);
    }
    return BR_CU(&x->cu, st,
                 cuLaunchKernel(s->fn, 1, 1, 1, BR_STAY_THREADS, 1, 1, 0,
                                x->cu.stream, (void *[]){&a}, NULL));
}

br_code
cun_start_fetch(br_cun *x, uint32_t rows, br_status *st)
{
    return start(x, rows, 0, st);
}

/* The driver's structure of a node, as far as it is of a loop. */
typedef struct loop_node {
    int type, reserved[3];
    uint64_t handle;
    int kind;
    unsigned size;
    void **body;
    void *ctx;
    char rest[208];
} loop_node;
_Static_assert(sizeof(loop_node) == 256, "CUgraphNodeParams");

/* What goes round, captured into the loop's body. */
static br_code
make_body(br_cun *x, void *body, uint32_t rows, uint64_t loop, br_status *st)
{
    br_code code;

    BR_TRY(br_cuda_record(&x->cu, body, st));
    code = cun_start_all(x, rows, rows, st);
    if (code == BR_OK)
        code = cun_start_pick(x, 0, rows, st);
    if (code == BR_OK)
        code = start(x, rows, loop, st);
    return br_cuda_recorded(&x->cu, code, NULL, st);
}

/* The beginning, then the loop. */
static br_code
fill_graph(br_cun *x, void *graph, uint32_t rows, br_status *st)
{
    enum { CONDITIONAL = 13, WHILE = 1, ASSIGN = 1 };
    loop_node n = {.type = CONDITIONAL, .kind = WHILE, .size = 1};
    void *first = NULL, *node = NULL;
    size_t one = 1;

    n.ctx = x->cu.ctx;
    BR_TRY(BR_CU(&x->cu, st, cuGraphGetNodes(graph, &first, &one)));
    BR_TRY(BR_CU(&x->cu, st,
                 cuGraphConditionalHandleCreate(&n.handle, graph, x->cu.ctx, 1,
                                                ASSIGN)));
    BR_TRY(
        BR_CU(&x->cu, st, cuGraphAddNode(&node, graph, &first, NULL, 1, &n)));
    return make_body(x, n.body[0], rows, n.handle, st);
}

static br_code
make_graph(br_cun *x, uint32_t rows, br_status *st)
{
    void *graph;
    br_code code;

    BR_TRY(br_cuda_record(&x->cu, NULL, st));
    BR_TRY(br_cuda_recorded(&x->cu, start(x, rows, 0, st), &graph, st));
    code = fill_graph(x, graph, rows, st);
    if (code == BR_OK)
        return br_cuda_graph(&x->cu, &x->stay.graph[rows], graph, st);
    x->cu.cuGraphDestroy(graph);
    return code;
}

/* ---- the host's side ---------------------------------------------------- */

static void
write_head(br_cun *x, uint32_t rows, uint32_t pages)
{
    struct br_stay_host *h = x->stay.host;

    __atomic_store_n(&h->head[1], pages, __ATOMIC_RELEASE);
    __atomic_store_n(&h->head[0], (uint64_t)rows << 32 | x->stay.epoch,
                     __ATOMIC_RELEASE);
}

/* Never 0, which is what nobody has said yet. */
static uint32_t
epoch_after(uint32_t epoch)
{
    return epoch == UINT32_MAX ? 1 : epoch + 1;
}

uint32_t
cun_say_head(br_cun *x, uint32_t rows, uint32_t pages)
{
    x->stay.epoch = epoch_after(x->stay.epoch);
    write_head(x, rows, pages);
    return x->stay.epoch;
}

void
cun_tell(br_cun *x, const br_step *step, const br_cun_pick *p)
{
    struct br_stay_host *h = x->stay.host;
    struct br_stay_row *row = h->row[epoch_after(x->stay.epoch) & 1];
    const uint32_t *tables = (void *)(x->stage + x->at.tables);
    uint32_t n = 0;

    for (uint32_t t = 0; t < step->n_rows; t++) {
        struct br_stay_row *r = &row[t];

        r->slot = step->slot[t];
        r->position = step->position[t];
        r->token = step->token[t];
        if (p)
            r->how = cun_how(x, t, &p[t]);
    }
    for (size_t i = 0; x->n_fresh <= BR_STAY_PAGES && i < x->fresh.n; i++)
        for (uint32_t k = 0; k < x->fresh.at[i].n; k++, n++)
            h->page[n] = (struct br_stay_page){x->fresh.at[i].at + k,
                                               tables[x->fresh.at[i].at + k]};
    (void)cun_say_head(x, step->n_rows, n);
}

void
cun_leave(br_cun *x)
{
    if (!x->stay.rows)
        return;
    x->stay.rows = 0;
    (void)cun_say_head(x, 0, 0);
    x->costs.exited++;
    cun_call_off(x);
}

static br_code
enter(br_cun *x, uint32_t rows, br_status *st)
{
    memset(x->stay.host->out, 0, sizeof x->stay.host->out);
    x->stay.ahead.known = false;
    x->stay.rows = rows;
    x->costs.entered++;
    return BR_CU(&x->cu, st, cuGraphLaunch(x->stay.graph[rows], x->cu.stream));
}

/* Are all tokens of that head there? */
static bool
told(const br_cun *x, uint32_t rows, uint32_t epoch)
{
    const struct br_stay_host *h = x->stay.host;
    const unsigned long long *out = h->out[epoch & 1], *ns = &h->ns[epoch & 1];

    for (uint32_t t = 0; t <= rows; t++)
        if (__atomic_load_n(t < rows ? &out[t] : ns, __ATOMIC_ACQUIRE) >> 32 !=
            epoch)
            return false;
    return true;
}

static void
look(br_cun *x, uint32_t rows, uint32_t epoch)
{
    enum { LOOKS = 1000 /* between two questions to the driver */, EACH = 16 };

    for (int i = 1; i <= LOOKS && !told(x, rows, epoch); i++) {
        br_cpu_relax();
        if (i % EACH == 0)
            cun_look_ahead(x);
    }
}

/* A launch whose patience ended before it saw the head is made again: that one
 * begins with it; what was drawn before, which a step ahead begins with, is where it was.
 * Of a step ahead only what it follows is waited for. */
static br_code
await_tokens(br_cun *x, uint32_t rows, uint32_t epoch, br_status *st)
{
    const int64_t since = br_now_ns();
    bool again = false;

    while (!told(x, rows, epoch)) {
        int rc;

        look(x, rows, epoch);
        const int64_t waited = br_now_ns() - since;
        rc = x->cu.cuStreamQuery(x->cu.stream);
        if (rc == BR_CU_NOT_READY && !told(x, rows, epoch))
            BR_TRY(br_cuda_overdue(&x->cu, waited, st));
        if (rc == BR_CU_NOT_READY || (rc == 0 && told(x, rows, epoch)))
            continue;
        BR_TRY(cun_why(x, br_cuda_check(&x->cu, rc, "cuStreamQuery", st), st));
        if (again || epoch != x->stay.epoch)
            return br_fail(st, BR_E_INTERNAL,
                           "a launch ended and did not say what it drew");
        again = true;
        BR_TRY(enter(x, rows, st));
    }
    x->stay.ahead.known = true;
    x->stay.ahead.from_ns = br_now_ns();
    x->stay.ahead.took_ns = (uint32_t)x->stay.host->ns[epoch & 1];
    return BR_OK;
}

/* No launch stays from here on: ordinary steps do the same. */
static void
give_up(br_cun *x, uint32_t rows, const char *why)
{
    cun_loop *s = &x->stay;

    br_log(BR_EV_cuda_none_stays, "%s", why);
    if (s->graph[rows])
        x->cu.cuGraphExecDestroy(s->graph[rows]);
    s->graph[rows] = NULL;
    s->off = true;
}

/* May a launch stay? It has all multiprocessors, so kernels of another model wait for
 * its end, and so does memory that is freed: until its next step, or its patience. So it
 * ends where another one is loaded or given back, or has asked for something since the
 * step before, and comes again when that is a while ago. */
static bool
may_stay(br_cun *x)
{
    cun_loop *s = &x->stay;
    uint64_t hands;
    const bool alone = br_cuda_alone(&x->cu, &hands);

    s->quiet = hands == s->hands ? BR_MIN(s->quiet + 1, (uint32_t)QUIET) : 0;
    s->hands = hands;
    return alone && (hands == 0 || s->quiet == QUIET);
}

static void
count_like(cun_loop *s, uint32_t rows)
{
    s->n_like = s->like == rows ? s->n_like + 1 : 1;
    s->like = rows;
}

/* Is there a launch for steps of so many rows? One is made when they come again
 * and again. */
static bool
has_graph(br_cun *x, uint32_t rows)
{
    cun_loop *s = &x->stay;
    br_status why = {0};
    br_code code;

    count_like(s, rows);
    if (!may_stay(x))
        return false;
    if (s->graph[rows] || s->off || s->n_like < AT_SIGHT)
        return s->graph[rows] != NULL;
    cun_leave(x); /* what is made may wait for the device */
    if (!br_cuda_may_capture(&x->cu))
        return false;
    code = cun_open_pick(x, true, &why);
    if (code == BR_OK)
        code = make_graph(x, rows, &why);
    br_cuda_captured(&x->cu);
    if (code != BR_OK)
        give_up(x, rows, why.msg);
    return !s->off;
}

void
br_cun_meanwhile(br_cun *x, void (*fn)(void *arg), void *arg)
{
    x->meanwhile = (struct cun_meanwhile){fn, arg, false};
}

/* The device has the step. */
static void
go_on(br_cun *x)
{
    if (x->meanwhile.fn && !x->meanwhile.done)
        x->meanwhile.fn(x->meanwhile.arg);
    x->meanwhile.done = true;
}

/* n rows of the launch's, whose tokens are there. */
static void
fetch(br_cun *x, const uint8_t *row, uint32_t n, uint32_t epoch, int32_t *out)
{
    const struct br_stay_host *h = x->stay.host;

    x->busy = false;
    x->costs.stayed++;
    x->costs.device_ns += (uint32_t)h->ns[epoch & 1];
    for (uint32_t i = 0; i < n; i++)
        out[i] = (int32_t)h->out[epoch & 1][row ? row[i] : i];
}

/* The step that is staged, by a launch that stays. */
static br_code
run(br_cun *x, const br_step *step, const br_cun_pick *p, int32_t *out,
    br_status *st)
{
    const uint32_t rows = step->n_rows;
    const bool here = x->stay.rows == rows && x->n_fresh <= BR_STAY_PAGES;
    uint32_t epoch;
    br_code code;

    if (!here)
        cun_leave(x);
    if (x->n_fresh > BR_STAY_PAGES)
        BR_TRY(cun_send_tables(x, st));
    cun_tell(x, step, p);
    code = here ? BR_OK : enter(x, rows, st);
    if (code != BR_OK) {
        give_up(x, rows, st ? st->msg : "");
        return code;
    }
    x->stay.ahead.from_ns = br_now_ns();
    cun_end(x, step, rows);
    go_on(x);
    cun_await_ahead(x, step, p);
    epoch = x->stay.epoch; /* not of a step ahead */
    BR_TRY(await_tokens(x, rows, epoch, st));
    fetch(x, NULL, rows, epoch, out);
    return BR_OK;
}

static br_code
ordinary(br_cun *x, const br_step *step, const br_cun_pick *p, uint32_t n,
         int32_t *out, br_status *st)
{
    BR_TRY(cun_step_staged(x, step, n, NULL, st));
    go_on(x);
    return n ? br_cun_draw(x, p, n, out, st) : BR_OK;
}

static void
forget(br_cun *x)
{
    x->stay.rows = 0;
    x->stay.ahead.rows = 0;
    x->stay.ahead.step = NULL;
    cun_forget_tables(x);
    cun_forget_draws(x);
}

/* What is half done when a launch fails; where the driver did not take it, and it
 * never began, an ordinary step does instead. */
static br_code
mend(br_cun *x, const br_step *step, const br_cun_pick *p, uint32_t n,
     int32_t *out, br_code code, br_status *st)
{
    uint32_t n_want;

    forget(x);
    if (x->stay.graph[n])
        return code;
    BR_TRY(cun_begin(x, step, &n_want, st));
    return ordinary(x, step, p, n, out, st);
}

/* The device has the step, or had it: these rows of it. */
static br_code
follow(br_cun *x, const br_step *step, const br_cun_pick *p, const uint8_t *row,
       int32_t *out, br_status *st)
{
    cun_ahead *a = &x->stay.ahead;
    const uint32_t n = step->n_rows, rows = a->rows, epoch = a->epoch;
    br_code code;

    a->rows = 0;
    count_like(&x->stay, n);
    a->step = NULL;
    cun_end(x, step, n);
    go_on(x);
    if (may_stay(x))
        cun_await_ahead(x, step, p);
    code = await_tokens(x, rows, epoch, st);
    if (code != BR_OK) {
        forget(x);
        return code;
    }
    x->costs.ahead++;
    fetch(x, row, n, epoch, out);
    return BR_OK;
}

br_code
br_cun_next(br_cun *x, const br_step *step, const br_cun_pick *p, uint32_t n,
            int32_t *out, br_status *st)
{
    uint8_t row[BR_STAY_ROWS];
    uint32_t n_want = 0;
    br_code code;

    x->meanwhile.done = false;
    BR_TRY(cun_begin(x, step, &n_want, st));
    br_check(n == n_want && "rows that want logits");
    if (x->stay.ahead.rows && n == step->n_rows &&
        cun_is_ahead(x, step, p, row))
        return follow(x, step, p, row, out, st);
    if (x->stay.ahead.rows)
        cun_leave(x);
    if (!cun_can_fetch(x, step->n_rows, n) || !cun_draws_at_once(x, n) ||
        !has_graph(x, n))
        return ordinary(x, step, p, n, out, st);
    code = run(x, step, p, out, st);
    return code == BR_OK ? BR_OK : mend(x, step, p, n, out, code, st);
}
