/* fuzz_mega_lower.c - any bytes as a graph file, a NUL, and a configuration.
 *
 * A graph that is read must write back to a text that reads the same. What
 * lowers must save, load and save to the same bytes, be what a second lowering
 * gives, be accepted by the sound check, and have a cost that is not below its
 * floor. Without a graph the configuration meets a small decoder.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "mega/cost.h"
#include "mega/lower.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* More columns than this make more tasks than a fuzzer has time for. */
enum { MAX_COLUMNS = 1 << 12, MAX_BATCH = 64 };

static br_mega_net *
read_net(const char *text, size_t n)
{
    static const br_mega_step step = {.pos = 20, .dtype = BR_MDT_F32};
    br_mega_shape s = *br_mega_shape_find(BR_TEXT("toy"));
    br_status st = {0};
    br_str a = {0}, b = {0};
    br_mega_net *net, *again;

    if (n == 0) {
        br_check(br_mega_net_model(&net, &s, &step, &st) == BR_OK);
        return net;
    }
    if (br_mega_net_parse(&net, text, n, &st) != BR_OK) {
        br_check(!net && st.code != BR_OK && st.msg[0]);
        return NULL;
    }
    br_mega_net_write(net, &a);
    br_check(br_mega_net_parse(&again, a.at, a.n, &st) == BR_OK);
    br_mega_net_write(again, &b);
    br_check(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    br_str_fini(&a);
    br_str_fini(&b);
    br_mega_net_free(again);
    return net;
}

static bool
small(const br_mega_net *n)
{
    int64_t columns = 0;

    for (size_t i = 0; i < n->nodes.n; i++) {
        const br_net_tensor *t = &n->tensors.at[n->nodes.at[i].out];

        columns += t->shape[t->rank - 1];
    }
    return n->batch <= MAX_BATCH && columns <= MAX_COLUMNS;
}

static void
check_sound(const br_mega_prog *p)
{
    br_mega_report r = {0};

    br_check(br_mega_check(p, BR_MEGA_SOUND, &r, NULL) == BR_OK);
    if (!r.ok)
        fprintf(stderr, "%s\n", r.errors.at[0]);
    br_check(r.ok && "what lowers is sound");
    br_mega_report_fini(&r);
}

static void
check_cost(const br_mega_prog *p)
{
    br_mega_cost_opts o = {.depth = -1};
    br_status st = {0};
    br_mega_cost c;

    br_check(br_mega_cost_of(&c, p, &o, &st) == BR_OK);
    br_check(c.us >= c.floor_us);
    br_mega_cost_fini(&c);
}

static void
save(const br_mega_prog *p, br_str *out)
{
    br_str_clear(out);
    br_check(br_mega_save(p, out, NULL) == BR_OK);
}

static void
check_program(const br_mega_net *net, const br_mega_lower_opts *o,
              br_mega_prog *p)
{
    br_str a = {0}, b = {0};
    br_mega_prog *q;

    save(p, &a);
    br_check(br_mega_lower(&q, net, o, NULL, NULL) == BR_OK);
    save(q, &b);
    br_check(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    br_mega_free(q);
    br_check(br_mega_load(&q, a.at, a.n, NULL) == BR_OK);
    br_check(q->n_misfits == 0);
    save(q, &b);
    br_check(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    br_mega_free(q);
    br_str_fini(&a);
    br_str_fini(&b);
    /* The other style carries what it does not read, as the reference does. */
    if (o->style == BR_LOWER_AMK)
        return;
    check_cost(p);
    check_sound(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *nul = memchr(data, 0, size);
    size_t n = nul ? (size_t)(nul - text) : size;
    br_mega_net *net = read_net(text, n);
    br_arena a;
    br_json *config = NULL;

    if (!net)
        return 0;
    br_arena_init(&a, (size_t)256 << 20);
    if (small(net) && (!nul || br_json_parse(&config, &a, nul + 1, size - n - 1,
                                             BR_JSON_LAX, NULL) == BR_OK))
        for (int style = 0; style < 2; style++) {
            br_mega_lower_opts o = {.style = (br_mega_style)style,
                                    .target =
                                        br_mega_target_find(BR_TEXT("t4")),
                                    .config = config};
            br_status st = {0};
            br_mega_prog *p;

            if (br_mega_lower(&p, net, &o, NULL, &st) == BR_OK)
                check_program(net, &o, p);
            else
                br_check(!p && st.msg[0]);
            br_mega_free(p);
        }
    br_arena_fini(&a);
    br_mega_net_free(net);
    return 0;
}
