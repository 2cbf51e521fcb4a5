/* test_cpu_nodes.c - memory nodes by hwloc and by /sys: machines that are made
 * up, since few that tests run on have two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_nodes.h"

#include "base/log.h"
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/shape.h"
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
write_list(const char *root, const char *node, const char *text)
{
    mkdir(root, 0700);
    mkdir(t_printf("%s/%s", root, node), 0700);
    t_write(t_printf("%s/%s/cpulist", root, node), text, strlen(text));
}

static bool
has_hwloc(void)
{
    static br_cpu_nodes n;
    br_status st = {0};

    return br_cpu_nodes_by_hwloc(&n, &st) != BR_E_UNSUPPORTED;
}

/* What a machine is made of by those who look after it, for hwloc. */
static void
tell_hwloc(const char *synthetic)
{
    setenv("HWLOC_SYNTHETIC", synthetic, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
}

enum { BY_SYS, BY_HWLOC, WAYS };

/* A machine with two nodes and one that is not ours, whose first two
 * processors are a and b, told either way. false: there is no hwloc. */
static bool
two_nodes(br_cpu_nodes *to, int way, int a, int b)
{
    const char *root = t_printf("%s/two", t_tmpdir());
    br_status st = {0};

    if (way == BY_SYS) {
        write_list(root, "node0", t_printf("%d,7000\n", a));
        write_list(root, "node1", "\n");
        write_list(root, "node2", "7002-7003,100000-100007\n");
        write_list(root, "node5", t_printf("%d-%d,7001,99999\n", b, b));
        br_cpu_nodes_by_sys(to, root);
        return true;
    }
    if (!has_hwloc())
        return false;
    tell_hwloc(t_printf("numa:3(indexes=0,2,5) "
                        "pu:2(indexes=%d,7000,7002,7003,%d,7001)",
                        a, b));
    t_ok(br_cpu_nodes_by_hwloc(to, &st), &st);
    return true;
}

/* ---- threads -------------------------------------------------------------- */

typedef struct on_node {
    const br_cpu_nodes *nodes;
    uint32_t i;
    bool done;
    int first, n, count;
} on_node;

static void
go_to_node(void *arg)
{
    on_node *o = arg;

    o->done = br_cpu_nodes_go(o->nodes, o->i);
    o->n = br_os_cpus(&o->first, 1);
    o->count = br_cpu_count();
}

static on_node
thread_on(const br_cpu_nodes *nodes, uint32_t i)
{
    on_node o = {.nodes = nodes, .i = i};
    br_status st = {0};
    br_thread t;

    t_ok(br_thread_start(&t, "test", go_to_node, &o, &st), &st);
    br_thread_join(&t);
    return o;
}

/* Threads take turns; no processor that is not ours is theirs. */
TEST(threads_are_dealt_to_memory_nodes)
{
    static br_cpu_nodes nodes;
    int cpus[4096], n = br_os_cpus(cpus, 4096);

    if (n < 2)
        t_skip("one processor");
    for (int way = 0; way < WAYS; way++) {
        if (!two_nodes(&nodes, way, cpus[0], cpus[1]))
            t_skip("built without hwloc");
        ck_assert_uint_eq(nodes.n, 2);
        ck_assert_uint_eq(nodes.numbers, 1u << 0 | 1u << 5);
        for (uint32_t i = 0; i < 4; i++) {
            on_node o = thread_on(&nodes, i);

            ck_assert(o.done);
            ck_assert_int_eq(o.n, 1);
            ck_assert_int_eq(o.first, cpus[i % 2]);
            ck_assert_int_eq(o.count, 1);
        }
    }
}

/* A process that has the processors of one node (taskset, a control group): the
 * same machine has one, and nobody is moved. Nor is who knew it before. */
TEST(processors_that_are_not_allowed_are_nobodys)
{
    static br_cpu_nodes before[WAYS], nodes;
    br_os_cpuset one = {0};
    int cpus[4096], n = br_os_cpus(cpus, 4096), ways;

    if (n < 2)
        t_skip("one processor");
    for (ways = 0; ways < WAYS; ways++)
        if (!two_nodes(&before[ways], ways, cpus[0], cpus[1]))
            break;
    one.bits[cpus[1] / 64] |= (uint64_t)1 << cpus[1] % 64;
    ck_assert(br_os_run_on(&one));
    for (int way = 0; way < ways; way++) {
        on_node o;

        (void)two_nodes(&nodes, way, cpus[0], cpus[1]);
        ck_assert_uint_eq(nodes.n, 1);
        ck_assert_uint_eq(nodes.numbers, 1u << 5);
        ck_assert(!thread_on(&nodes, 0).done);
        o = thread_on(&before[way], 0);
        ck_assert(!o.done);
        ck_assert_int_eq(o.n, 1);
        ck_assert_int_eq(o.first, cpus[1]);
        ck_assert(thread_on(&before[way], 1).done);
    }
    if (ways < WAYS)
        t_skip("built without hwloc");
}

/* Memory beside memory is no second node of the same processors. */
TEST(a_processor_is_of_one_node)
{
    static br_cpu_nodes nodes;
    const char *root = t_printf("%s/n", t_tmpdir());
    int cpus[4096], n = br_os_cpus(cpus, 4096);
    const char *all = t_printf("%d-%d\n", cpus[0], cpus[n - 1]);

    write_list(root, "node3", all);
    write_list(root, "node4", all);
    write_list(root, "node99", "9999999999999999999999-4,-,3\n");
    br_cpu_nodes_by_sys(&nodes, root);
    ck_assert_uint_eq(nodes.n, 1);
    ck_assert_uint_eq(nodes.numbers, 1u << 3);
    for (int i = 0; i < n; i++)
        ck_assert(br_os_has(&nodes.cpus[0], cpus[i]));
    br_cpu_nodes_by_sys(&nodes, t_printf("%s/none", root));
    ck_assert_uint_eq(nodes.n, 0);
    ck_assert(!br_cpu_nodes_go(&nodes, 1));
}

/* ---- who says so ---------------------------------------------------------- */

TEST(hwloc_and_sys_know_the_same_machine)
{
    static br_cpu_nodes a, b;
    br_status st = {0};

    if (!has_hwloc())
        t_skip("built without hwloc");
    t_ok(br_cpu_nodes_by_hwloc(&a, &st), &st);
    br_cpu_nodes_by_sys(&b, BR_CPU_NODES_SYS);
    if (b.n == 0) /* a kernel without nodes: hwloc makes one of the machine */
        ck_assert_uint_le(a.n, 1);
    else {
        ck_assert_uint_eq(a.n, b.n);
        ck_assert_uint_eq(a.numbers, b.numbers);
        ck_assert_mem_eq(a.cpus, b.cpus, a.n * sizeof a.cpus[0]);
    }
}

typedef struct heard {
    char text[BR_LOG_TEXT];
    int n;
} heard;

static void
hear(void *ctx, const br_log_record *r)
{
    heard *h = ctx;

    if (r->event == BR_EV_cpu_nodes && h->n++ == 0)
        memcpy(h->text, r->text, strlen(r->text) + 1);
}

static br_cpu_nodes
found(const char *folder, heard *h)
{
    static br_cpu_nodes nodes;
    br_log_sink sink = {hear, h, BR_LOG_INFO};

    *h = (heard){0};
    br_log_install(&sink);
    br_cpu_nodes_find(&nodes, folder);
    br_log_install(NULL);
    return nodes;
}

/* The same two nodes of the other's processors: whose they are says who spoke. */
TEST(hwloc_has_the_word_on_several_nodes)
{
    static br_cpu_nodes sys, got;
    int cpus[4096], n = br_os_cpus(cpus, 4096);
    const char *two = t_printf("%s/two", t_tmpdir());
    heard h;

    if (n < 2)
        t_skip("one processor");
    (void)two_nodes(&sys, BY_SYS, cpus[0], cpus[1]);
    if (!two_nodes(&got, BY_HWLOC, cpus[1], cpus[0]))
        t_skip("built without hwloc");
    got = found(two, &h);
    ck_assert_uint_eq(got.n, 2);
    ck_assert(br_os_has(&got.cpus[0], cpus[1]));
    ck_assert_str_eq(h.text, "2 memory nodes by hwloc");
    ck_assert_int_eq(h.n, 1);
    got = found(t_tmpdir(), &h); /* no nodes: nothing to ask about */
    ck_assert_uint_eq(got.n, 0);
    ck_assert_int_eq(h.n, 0);
}

/* It cannot load, or was told of a machine that is not this one: that is said
 * once, and /sys has the word. */
TEST(sys_has_the_word_where_hwloc_fails)
{
    static const char *const why[] = {"hwloc finds no topology",
                                      "hwloc was told of another machine"};
    static br_cpu_nodes sys, got;
    int cpus[4096], n = br_os_cpus(cpus, 4096);
    const char *two = t_printf("%s/two", t_tmpdir());
    heard h;

    if (n < 2)
        t_skip("one processor");
    (void)two_nodes(&sys, BY_SYS, cpus[0], cpus[1]);
    for (size_t i = 0; i < BR_COUNT(why); i++) {
        br_status st = {0};

        if (i == 0)
            setenv("HWLOC_COMPONENTS", "stop", 1);
        else {
            unsetenv("HWLOC_COMPONENTS");
            setenv("HWLOC_SYNTHETIC", "numa:2 pu:8", 1);
        }
        ck_assert_int_eq(br_cpu_nodes_by_hwloc(&got, &st),
                         has_hwloc() ? BR_E_IO : BR_E_UNSUPPORTED);
        ck_assert_uint_eq(got.n, 0);
        got = found(two, &h);
        ck_assert_int_eq(h.n, 1);
        ck_assert_ptr_nonnull(
            strstr(h.text, t_printf("2 memory nodes by %s: ", two)));
        ck_assert_ptr_nonnull(
            strstr(h.text, has_hwloc() ? why[i] : "built without hwloc"));
        ck_assert_uint_eq(got.n, 2);
        ck_assert_uint_eq(got.numbers, sys.numbers);
        ck_assert_mem_eq(got.cpus, sys.cpus, 2 * sizeof sys.cpus[0]);
    }
}

/* ---- pages ---------------------------------------------------------------- */

enum { BY_ADDRESS = 2, DEFAULT = 0, IN_TURN = 3 }; /* numaif.h */

static int
policy_at(const void *p)
{
    int mode = -1;

    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, p, BY_ADDRESS) != 0)
        t_skip("no policies of memory here");
    return mode;
}

/* The pages that are whole, no others, and only where there are two nodes. */
TEST(pages_are_spread_over_memory_nodes)
{
    static br_cpu_nodes nodes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert(p != MAP_FAILED);
    nodes.n = 1;
    nodes.numbers = 1;
    br_cpu_nodes_spread(&nodes, p, 4 * page);
    ck_assert_int_eq(policy_at(p), DEFAULT);
    br_cpu_nodes_by_sys(&nodes, BR_CPU_NODES_SYS);
    nodes.n = 2;
    nodes.numbers |= 3; /* the kernel leaves out what is not there */
    if (!br_os_interleave(p, page, nodes.numbers) && errno != EINVAL)
        t_skip("where pages go is not ours to say: %s", strerror(errno));
    br_cpu_nodes_spread(&nodes, p + page + 1, 2 * page);
    ck_assert_int_eq(policy_at(p), IN_TURN);
    ck_assert_int_eq(policy_at(p + page), DEFAULT);
    ck_assert_int_eq(policy_at(p + 2 * page), IN_TURN);
    ck_assert_int_eq(policy_at(p + 3 * page), DEFAULT);
    munmap(p, 4 * page);
}

/* ---- the tier ------------------------------------------------------------- */

typedef struct seen {
    _Atomic uint32_t here;
    int n[4], first[4];
} seen;

static uint32_t
four_tiles(void *ctx, uint32_t phase)
{
    (void)ctx;
    (void)phase;
    return 4;
}

static bool
all_here(void *arg)
{
    return atomic_load((_Atomic uint32_t *)arg) == 4;
}

/* Nobody leaves before all are here: a tile for each. */
static void
look_around(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker)
{
    seen *s = ctx;
    br_event none = {0};

    (void)phase;
    (void)tile;
    s->n[worker] = br_os_cpus(&s->first[worker], 1);
    atomic_fetch_add(&s->here, 1);
    while (!all_here(&s->here))
        br_event_await(&none, all_here, &s->here, 100, 1000000);
}

/* The tier itself, told of two nodes: its threads stay on them, its caller goes
 * where it likes, the weights' pages are in turn. */
TEST(the_tier_uses_memory_nodes)
{
    static br_cpu_nodes nodes;
    int cpus[4096], n = br_os_cpus(cpus, 4096);
    br_oracle_config config = {0};
    br_status st = {0};
    br_str doc = {0};
    lk_case c = {.n_tokens = 4, .n_vocab = 256};
    seen s = {0};
    br_cpu_job job = {
        .ctx = &s, .n_phases = 1, .begin = four_tiles, .tile = look_around};
    void *probe = br_try_pages(1 << 20, 1);
    lk_run r;

    if (n < 2)
        t_skip("one processor");
    (void)two_nodes(&nodes, BY_SYS, cpus[0], cpus[1]);
    nodes.numbers =
        3; /* of a machine with one the kernel leaves out the other */
    t_ok(br_cpu_pool_on(&config.pool, 4, &nodes, &st), &st);
    br_cpu_pool_run(config.pool, &job);
    ck_assert_int_eq(s.n[0], n);
    for (int i = 1; i < 4; i++) {
        ck_assert_int_eq(s.n[i], 1);
        ck_assert_int_eq(s.first[i], cpus[i % 2]);
    }
    t_ok(br_shape_model(&doc, "shape:llama-256:Q8_0", true, &st), &st);
    c.file = doc.at;
    c.file_n = doc.n;
    t_ok(lk_open(&r, &c, &config), &r.st);
    ck_assert_ptr_nonnull(r.o.cpu->packed_block);
    if (br_os_interleave(probe, 1 << 20, 3))
        ck_assert_int_eq(policy_at(r.o.cpu->packed_block + 65536), IN_TURN);
    br_free(probe);
    lk_close(&r);
    br_cpu_pool_free(config.pool);
    br_str_fini(&doc);
    lk_end();
}
