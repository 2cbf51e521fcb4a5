/* test_amd_probe.c - brass test-pm4 and doctor on simulated AMD GPUs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cli/amd_probe.h"
#include "drv/amd/drm.h"
#include "drv/sim/sim_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TEST(test_pm4_tries_every_packet)
{
    static const char *const cpus[] = {"gfx1102", "gfx1151", "gfx1200"};
    t_proc r;

    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        t_run(&r, "test-pm4", "--sim", cpus[k]);
        ck_assert_int_eq(r.exit, 0);
        ck_assert_str_eq(
            r.out, t_printf("ok  WRITE_DATA, NOP\nok  ACQUIRE_MEM\n"
                            "ok  WAIT_REG_MEM\nok  EVENT_WRITE\n"
                            "ok  RELEASE_MEM\nok  INDIRECT_BUFFER\n"
                            "ok  SET_SH_REG, DISPATCH_DIRECT\n"
                            "ok  a packet of AQL\n%s takes every packet; user "
                            "queues: as well\n",
                            cpus[k]));
    }
    t_run(&r, "test-pm4", "--sim", "gfx1201", "--json");
    ck_assert_str_eq(r.out, "{\"device\":\"gfx1201\",\"ok\":true,"
                            "\"user_queues\":true}\n");
    t_run(&r, "doctor", "--sim", "gfx1100");
    ck_assert_msg(strstr(r.out, "simulated gfx1100, 96 CUs, 24 GiB: takes "
                                "every packet") != NULL,
                  "%s", r.out);
}

/* The kernel in between, where a call may fail. */
typedef struct bad_os {
    br_amd_os os;
    const br_amd_os *real;
    unsigned calls, fail;
} bad_os;

static int
bad_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
    bad_os *b = ctx;
    bool ends =
        request == BR_KFD(unmap_memory) || request == BR_KFD(free_memory) ||
        request == BR_KFD(destroy_queue) || request == BR_KFD(destroy_event) ||
        request == BR_DRM(gem_close) || request == BR_DRM(sync_end);
    const struct br_drm_gem_va *va = arg;
    const struct br_drm_userq *q = arg;

    ends |= request == BR_DRM(gem_va) && va->op == BR_DRM_VA_UNMAP;
    ends |= request == BR_DRM(userq) && q->op == BR_DRM_USERQ_FREE;

    if (!ends && ++b->calls == b->fail)
        return -EIO;
    return b->real->ioctl(b->real->ctx, fd, request, arg);
}

static int
bad_open(void *ctx, const char *path)
{
    bad_os *b = ctx;

    return ++b->calls == b->fail ? -EACCES : b->real->open(b->real->ctx, path);
}

static void
bad_close(void *ctx, int fd)
{
    bad_os *b = ctx;

    b->real->close(b->real->ctx, fd);
}

static int
bad_map(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    bad_os *b = ctx;

    return ++b->calls == b->fail
               ? -EPERM
               : b->real->map(b->real->ctx, fd, at, bytes, offset);
}

static void
bad_unmap(void *ctx, void *p, uint64_t bytes)
{
    bad_os *b = ctx;

    b->real->unmap(b->real->ctx, p, bytes);
}

/* Whatever the kernel refuses first, the reason is said and nothing is left. */
static void
each_call(bool user)
{
    unsigned n = 0;
    br_code c;

    do {
        br_simgpu *g;
        br_amd_node node;
        br_status st = {0};
        bad_os b = {.os = {.ctx = &b,
                           .open = bad_open,
                           .close = bad_close,
                           .ioctl = bad_ioctl,
                           .map = bad_map,
                           .unmap = bad_unmap},
                    .fail = ++n};

        t_ok(
            br_simgpu_new(
                &g, &(br_simgpu_opts){.cpu = "gfx1201", .userq_slots = 1}, &st),
            &st);
        b.real = br_simgpu_os(g);
        t_ok(br_amd_node_get(&node, b.real, 0, &st), &st);
        c = br_amd_probe(&b.os, &node, user, (br_amd_tell){NULL, NULL}, &st);
        ck_assert_msg((c == BR_OK) == (b.calls < n), "call %u: %s", n, st.msg);
        ck_assert(c == BR_OK || strstr(st.msg, "gfx1201: ") != NULL);
        ck_assert_msg(br_simgpu_free(g), "call %u: something is left", n);
    } while (c != BR_OK);
    ck_assert_uint_gt(n, user ? 25 : 40);
}

TEST(every_call_of_the_kernel_may_fail)
{
    each_call(false);
    each_call(true);
}

/* ---- traces ------------------------------------------------------------ */

static char *
traced(const char *cpu, const char *opts)
{
    char *path = t_printf("%s/%s.trace", t_tmpdir(), cpu);
    t_proc r;

    t_run(&r, "test-pm4", "--sim", cpu, "--sim-opts", opts ? opts : "userq=8",
          "--trace", path);
    ck_assert_int_eq(r.exit, 0);
    return path;
}

TEST(a_trace_is_done_again_without_a_difference)
{
    static const char *const rows[][3] = {
        {"gfx1102", "kernel=6.18", "108 calls, 15 doorbells, 32"},
        {"gfx1150", "bar=small", "108 calls, 15 doorbells, 32"},
        {"gfx1151", "userq=0", "66 calls, 8 doorbells, 18"},
        {"gfx1201", "kernel=6.11", "66 calls, 8 doorbells, 18"}};
    t_proc r;

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        char *path = traced(rows[k][0], rows[k][1]);

        t_run(&r, "test-pm4", "--replay", path);
        ck_assert_str_eq(r.err, "");
        ck_assert_str_eq(r.out, t_printf("%s: %s words of the GPU's: 0 "
                                         "differences\n",
                                         rows[k][0], rows[k][2]));
        ck_assert_int_eq(r.exit, 0);
    }
    t_run(&r, "test-pm4", "--json", "--replay",
          t_printf("%s/gfx1201.trace", t_tmpdir()));
    ck_assert_str_eq(r.out, "{\"device\":\"gfx1201\",\"calls\":66,\"rings\":8,"
                            "\"words\":18,\"differences\":0}\n");
}

/* The nth line that begins so, and what is behind it. */
static char *
line_of(char *text, const char *begin, int nth)
{
    char *p = text;

    for (; (p = strstr(p, begin)); p++)
        if ((p == text || p[-1] == '\n') && nth-- == 0)
            return p;
    ck_abort_msg("no line %s", begin);
    return NULL;
}

/* One word is wrong, so one doorbell waits all of LONG: what comes behind it
   must be there by then, beside busy processors too.  SHORT is for traces of
   which many doorbells wait, and where it says nothing how many. */
static const int64_t LONG = 3000000000ll, SHORT = 20 * 1000000ll;

static br_code
again(br_simgpu_replayed *r, const char *text, int64_t patience_ns,
      br_status *st)
{
    memset(st, 0, sizeof *st);
    return br_simgpu_replay(r, text, strlen(text), patience_ns, st);
}

TEST(what_a_card_does_otherwise_is_told)
{
    const char *text = t_read(traced("gfx1201", "userq=0"), NULL);
    br_simgpu_replayed r;
    br_status st;
    char *copy, *p;

    /* another word in memory */
    copy = t_keep(strdup(text));
    p = strchr(strchr(line_of(copy, "gpu ", 0), ' ') + 1, ' ') + 1;
    *p = *p == '0' ? '1' : '0';
    t_ok(again(&r, copy, LONG, &st), &st);
    ck_assert_uint_eq(r.differences, 1);
    ck_assert_msg(strstr(r.said.at, " there, ") && strstr(r.said.at, ": 0x"),
                  "%s", r.said.at);
    br_str_fini(&r.said);
    /* and of a user queue's */
    text = t_read(traced("gfx1201", NULL), NULL);
    copy = t_keep(strdup(text));
    p = line_of(copy, "bell ", 6);
    *(strchr(p, '\n') - 1) ^= 1;
    t_ok(again(&r, copy, SHORT, &st), &st);
    ck_assert_uint_gt(r.differences, 0);
    br_str_fini(&r.said);
    copy = t_keep(strdup(text));
    p = strchr(strchr(strstr(line_of(copy, "bell ", 6), "\ngpu ") + 1, ' ') + 1,
               ' ') +
        1;
    *p = *p == '0' ? '1' : '0';
    t_ok(again(&r, copy, LONG, &st), &st);
    ck_assert_uint_eq(r.differences, 1);
    br_str_fini(&r.said);
    text = t_read(traced("gfx1201", "userq=0"), NULL);
    /* a kernel that refuses its queue */
    copy = t_keep(strdup(text));
    p = strchr(line_of(copy, "ioctl 1000 c0604b02", 0), '\n');
    memcpy(p - 1, "9", 1);
    t_ok(again(&r, copy, SHORT, &st), &st);
    ck_assert_msg(strstr(r.said.at, "call 0xc0604b02: 9 there, 0 here"), "%s",
                  r.said.at);
    br_str_fini(&r.said);
    /* a code of which the host wrote nothing */
    copy = t_keep(strdup(text));
    p = line_of(copy, "cpu ", 0);
    for (char *q = p; (q = strstr(q, "\ncpu ")); q++)
        p = strlen(strtok(t_keep(strdup(q + 1)), "\n")) > 300 ? q + 1 : p;
    memmove(p, strchr(p, '\n') + 1, strlen(strchr(p, '\n')));
    t_ok(again(&r, copy, SHORT, &st), &st);
    ck_assert_uint_gt(r.differences, 0);
    br_str_fini(&r.said);
}

TEST(what_is_no_trace_is_refused_with_its_line)
{
    static const char *const rows[][2] = {
        {"", "no trace"},
        {"brass-amd-trace 2\n", "no trace"},
        {"brass-amd-trace 1\n", "topology"},
        {"ioctl 1000 c0184b18 00 00 0\n", "line 2"},
        {"ioctl 7 80084b01 0000000000000000 0100000011000000 0\n", "line 2"},
        {"map 1000 4096 0 0\n", "line 2"},
        {"cpu 1000 00000000\n", "line 2"},
        {"gpu 1001 00000000\n", "line 2"},
        {"cpu 1000 0000000\n", "line 2"},
        {"ring 0 1\n", "line 2"},
        {"open /dev/kfd\n", "line 2"},
        {"close 7\n", "line 2"},
        {"bell 1 0 1\n", "line 2"},
        {"ioctl 1000 c00864bf 0000000000000000 0100000000000000\n", "line 2"},
        {"ioctl 1000 c0206459 00 00 0\n", "line 2"},
        {"jump 0\n", "no such line"},
    };
    const char *text = t_read(traced("gfx1100", "userq=0"), NULL);

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        char *whole = k < 3 ? t_printf("%s", rows[k][0])
                            : t_printf("brass-amd-trace 1\n%s%s", rows[k][0],
                                       strchr(text, '\n') + 1);
        br_simgpu_replayed r;
        br_status st;

        ck_assert_msg(again(&r, whole, SHORT, &st) != BR_OK, "%s", rows[k][0]);
        ck_assert_msg(strstr(st.msg, rows[k][1]) != NULL, "%s: %s", rows[k][0],
                      st.msg);
        br_str_fini(&r.said);
    }
}

/* Bytes of a trace at random: refused, or done, within what is mapped. */
TEST(damaged_traces_do_no_harm)
{
    static const char chars[] = "0123456789abcdef -\ngcr";
    const char *text = t_read(traced("gfx1200", NULL), NULL);
    uint64_t seed = 8;
    size_t n = strlen(text);

    for (int k = 0; k < (t_sanitized() ? 40 : 200); k++) {
        char *copy = strdup(text);
        br_simgpu_replayed r;
        br_status st;

        for (int i = 0; i < 3; i++)
            copy[t_rand(&seed) % n] = chars[t_rand(&seed) % (sizeof chars - 1)];
        if (k % 4 == 0)
            copy[t_rand(&seed) % n] = 0;
        (void)!again(&r, copy, SHORT, &st);
        br_str_fini(&r.said);
        free(copy);
    }
}
