/* test_kv.c - pages of keys and values: who holds which.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/kv.h"

#include "t.h"

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
