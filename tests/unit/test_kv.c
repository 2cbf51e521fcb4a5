/* test_kv.c - pages of keys and values: who holds which.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/kv.h"

#include "base/thread.h"
#include "drv/state_touch.h"
#include "model/model.h"
#include "model/quant.h"
#include "run/lm_model.h"
#include "t.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Group 0 sees everything, group 1 a window of 20 tokens. */
static br_kv *
make(uint32_t pages)
{
    br_state_plan plan = {.n_groups = 2, .group = {{0}, {.window = 20}}};
    br_kv_config c = {
        .n_slots = 3, .max_tokens = 160, .n_pages = {pages, pages}};
    br_status st = {0};
    br_kv *kv;

    t_ok(br_kv_new(&kv, &plan, &c, &st), &st);
    return kv;
}

TEST(kv_grows_by_pages_of_sixteen)
{
    br_kv *kv = make(10);
    br_status st = {0};

    t_ok(br_kv_grow(kv, 0, 1, &st), &st);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 9);
    t_ok(br_kv_grow(kv, 0, 16, &st), &st);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 9);
    t_ok(br_kv_grow(kv, 0, 17, &st), &st);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 8);
    t_ok(br_kv_grow(kv, 1, 32, &st), &st);
    ck_assert_uint_ne(br_kv_tables(kv)[0][1], br_kv_tables(kv)[2][0]);
    br_kv_cut(kv, 0, 0);
    br_kv_cut(kv, 1, 0);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 10);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 10);
    br_kv_free(kv);
}

TEST(kv_says_when_there_are_no_pages_and_changes_nothing)
{
    br_kv *kv = make(3);
    br_status st = {0};

    t_ok(br_kv_grow(kv, 0, 32, &st), &st);
    ck_assert_int_eq(br_kv_grow(kv, 1, 32, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "slot 1: needs 2 pages, 1 are free");
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 1);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 1);
    st = (br_status){0};
    ck_assert_int_eq(br_kv_grow(kv, 0, 161, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "slot 0: 161 tokens, at most 160");
    br_kv_free(kv);
}

TEST(kv_windows_give_back_what_they_left)
{
    br_kv *kv = make(10);
    br_status st = {0};

    t_ok(br_kv_grow(kv, 0, 100, &st), &st); /* 7 pages of each group */
    br_kv_pass(kv, 0, 35);                  /* sees 16..35: page 0 goes */
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 3);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 4);
    ck_assert_uint_eq(br_kv_tables(kv)[1][0], UINT32_MAX);
    br_kv_pass(kv, 0, 35);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 4);
    br_kv_pass(kv, 0, 34);
    br_kv_pass(kv, 0, 99);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 8);
    br_kv_cut(kv, 0, 0);
    ck_assert_uint_eq(br_kv_free_pages(kv, 1), 10);
    t_ok(br_kv_grow(kv, 0, 160, &st), &st);
    ck_assert_uint_ne(br_kv_tables(kv)[1][0], UINT32_MAX);
    br_kv_free(kv);
}

TEST(kv_slots_share_a_beginning)
{
    br_kv *kv = make(10);
    br_status st = {0};

    t_ok(br_kv_grow(kv, 0, 40, &st), &st);
    ck_assert_uint_eq(br_kv_share(kv, 0, 1, 39), 32);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 7);
    ck_assert_uint_eq(br_kv_tables(kv)[0][1], br_kv_tables(kv)[2][1]);
    t_ok(br_kv_grow(kv, 1, 40, &st), &st); /* its own third page */
    ck_assert_uint_ne(br_kv_tables(kv)[0][2], br_kv_tables(kv)[2][2]);
    br_kv_cut(kv, 0, 0);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 7);
    br_kv_cut(kv, 1, 0);
    ck_assert_uint_eq(br_kv_free_pages(kv, 0), 10);
    br_kv_free(kv);
}

/* Slots that grow in turns begin sheets of their own. */
TEST(kv_pages_of_a_slot_follow_each_other)
{
    br_kv *kv = make(40);
    br_status st = {0};

    for (uint32_t i = 1; i <= 10; i++)
        for (uint32_t slot = 0; slot < 3; slot++)
            t_ok(br_kv_grow(kv, slot, 16 * i, &st), &st);
    for (uint32_t i = 1; i < 8; i++)
        for (uint32_t slot = 0; slot < 3; slot++)
            ck_assert_uint_eq(br_kv_page(kv, slot, 0, i),
                              br_kv_page(kv, slot, 0, i - 1) + 1);
    br_kv_cut(kv, 1, 16); /* others' pages are between: it goes on with its */
    t_ok(br_kv_grow(kv, 0, 160, &st), &st);
    t_ok(br_kv_grow(kv, 1, 48, &st), &st);
    ck_assert_uint_eq(br_kv_page(kv, 1, 0, 2), br_kv_page(kv, 1, 0, 0) + 2);
    br_kv_free(kv);
}

/* Whatever comes and goes, a page has one owner and none is lost. */
TEST(kv_hands_out_every_page_once)
{
    enum { PAGES = 25, TRIES = 3000 };
    br_kv *kv = make(PAGES);
    br_status st = {0};
    uint64_t seed = 1;

    for (int i = 0; i < TRIES; i++) {
        uint32_t slot = (uint32_t)(t_rand(&seed) >> 33) % 3, free = PAGES;
        uint32_t tokens = (uint32_t)(t_rand(&seed) >> 33) % 161;
        bool seen[PAGES] = {false};

        if (t_rand(&seed) >> 63)
            br_kv_cut(kv, slot, tokens);
        else if (br_kv_grow(kv, slot, tokens, &st) != BR_OK)
            ck_assert_uint_lt(br_kv_free_pages(kv, 0), 10);
        for (slot = 0; slot < 3; slot++)
            for (uint32_t j = 0; j < br_kv_count(kv, slot); j++, free--) {
                uint32_t page = br_kv_page(kv, slot, 0, j);

                ck_assert(page < PAGES && !seen[page]);
                seen[page] = true;
            }
        ck_assert_uint_eq(br_kv_free_pages(kv, 0), free);
    }
    for (uint32_t slot = 0; slot < 3; slot++)
        br_kv_cut(kv, slot, 0);
    for (uint32_t i = 0; i < PAGES; i++)
        ck_assert_uint_ne(br_kv_take(kv, 0), UINT32_MAX);
    ck_assert_uint_eq(br_kv_take(kv, 0), UINT32_MAX);
    br_kv_free(kv);
}

/* ---- memory of pages before they are used --------------------------------- */

enum { GROUPS = 2, PAGES = 60 };

/* Pages of 64 KiB and of 4 KiB: sheets of a MiB and of 64 KiB. */
static br_state
state_of_pages(void)
{
    br_state s = {
        .plan = {.n_groups = GROUPS,
                 .group = {{.page_elems = 16384}, {.page_elems = 1024}}},
        .kv = BR_Q_F32,
        .n_pages = {PAGES, PAGES}};

    for (uint32_t g = 0; g < GROUPS; g++) {
        s.pool[g] = br_try_pages(PAGES / BR_SHEET + 1,
                                 BR_SHEET * br_state_page_bytes(&s, g));
        ck_assert_ptr_nonnull(s.pool[g]);
        /* Its bytes one by one, so that a test can count them. */
        (void)madvise((void *)((uintptr_t)s.pool[g] & ~(uintptr_t)4095),
                      (PAGES / BR_SHEET + 1) * BR_SHEET *
                          br_state_page_bytes(&s, g),
                      MADV_NOHUGEPAGE);
    }
    return s;
}

/* Of the whole pages of the kernel's in sheet i of group g: are all there, or
 * none? -1: some. */
static int
is_there(const br_state *s, uint32_t g, uint32_t i)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), there = 0, n;
    size_t bytes = BR_SHEET * br_state_page_bytes(s, g);
    uintptr_t from = (uintptr_t)s->pool[g] + i * bytes, to = from + bytes;
    unsigned char in[4096];

    from = (from + page - 1) / page * page;
    n = (to - from) / page;
    ck_assert_uint_le(n, sizeof in);
    ck_assert_int_eq(mincore((void *)from, n * page, in), 0);
    for (size_t k = 0; k < n; k++)
        there += in[k] & 1;
    return there == n ? 1 : there ? -1 : 0;
}

/* The thread takes no time that somebody else wants: a third of a percent of a
 * processor that others want, seconds for what it does alone in 30 ms. */
#define MOST_NS UINT64_C(100000000000)
#define MOST_S  120

/* Waits until `want` are there. Then for more than that, a tenth of a second. */
static uint64_t
touched(const br_state *s, uint64_t most, uint64_t want)
{
    br_status st = {0};
    br_touch *t;
    uint64_t was = UINT64_MAX, done = 0, begun = br_now_ns();

    t_ok(br_touch_begin(&t, s, most, &st), &st);
    while (br_touch_done(t) < want && br_now_ns() - begun < MOST_NS)
        br_sleep_ns(2000000);
    for (int still = 0; still < 50; still = done == was ? still + 1 : 0) {
        was = done;
        br_sleep_ns(2000000);
        done = br_touch_done(t);
    }
    br_touch_end(t);
    return done;
}

TEST_WITHIN(pages_have_memory_before_they_are_used, MOST_S)
{
    br_state s = state_of_pages();
    uint8_t was = s.pool[0][5] = 77;
    uint64_t all;

    if (!br_os_touch(s.pool[0], 1 << 14))
        t_skip("this kernel gives no memory beforehand");
    ck_assert_int_eq(is_there(&s, 0, 1), 0);
    ck_assert_int_eq(is_there(&s, 1, 3), 0);
    all = 4 * BR_SHEET *
          (br_state_page_bytes(&s, 0) + br_state_page_bytes(&s, 1));
    ck_assert_uint_eq(touched(&s, UINT64_MAX, all), all);
    for (uint32_t g = 0; g < GROUPS; g++)
        for (uint32_t i = 0; i < 4; i++)
            ck_assert_int_eq(is_there(&s, g, i), 1);
    ck_assert_uint_eq(s.pool[0][5], was);
    for (uint32_t g = 0; g < GROUPS; g++)
        br_free(s.pool[g]);
}

/* The first sheets of all groups are had first, and no more than is allowed. */
TEST_WITHIN(pages_have_no_more_memory_than_allowed, MOST_S)
{
    br_state s = state_of_pages();
    uint64_t two;

    if (!br_os_touch(s.pool[0], 1 << 14))
        t_skip("this kernel gives no memory beforehand");
    two = 2 * BR_SHEET *
          (br_state_page_bytes(&s, 0) + br_state_page_bytes(&s, 1));
    ck_assert_uint_le(touched(&s, 3 << 20, two), 3 << 20);
    ck_assert_int_eq(is_there(&s, 0, 1), 1);
    ck_assert_int_eq(is_there(&s, 1, 1), 1);
    ck_assert_int_eq(is_there(&s, 0, 3), 0);
    ck_assert_int_eq(is_there(&s, 1, 3), 0);
    for (uint32_t g = 0; g < GROUPS; g++)
        br_free(s.pool[g]);
}

static uint64_t
resident_bytes(void)
{
    char text[256];
    unsigned long pages = 0;

    ck_assert(br_os_read("/proc/self/statm", text, sizeof text));
    ck_assert_int_eq(sscanf(text, "%*s %lu", &pages), 1);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the process has more a moment after a model of so many slots was opened. */
static uint64_t
grown_by(const br_model *m, uint32_t slots, uint64_t want)
{
    br_lm_config c = {.n_ctx = 8192, .n_slots = slots, .threads = 1};
    uint64_t before = resident_bytes(), grown = 0;
    br_status st = {0};
    br_lm_model *lm;

    t_ok(br_lm_model_open(&lm, m, &c, &st), &st);
    for (uint64_t begun = br_now_ns();
         grown < want && br_now_ns() - begun < MOST_NS;) {
        br_sleep_ns(10000000);
        grown = BR_MAX(resident_bytes(), before) - before;
    }
    br_lm_model_close(lm);
    return grown;
}

TEST_WITHIN(pages_of_a_server_have_memory_at_once, MOST_S)
{
    br_status st = {0};
    br_model *m;
    br_state s = state_of_pages();
    const uint64_t want = 64 << 20; /* of 8 slots of the demo model */

    if (!br_os_touch(s.pool[0], 1 << 14))
        t_skip("this kernel gives no memory beforehand");
    t_ok(br_model_open(&m, t_repo("models/demo.gguf"), &st), &st);
    ck_assert_uint_ge(grown_by(m, 8, want), want);
    br_model_close(m);
    for (uint32_t g = 0; g < GROUPS; g++)
        br_free(s.pool[g]);
}
