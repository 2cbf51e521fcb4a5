/* test_map.c - hash maps: order, deletion, collisions, no memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "t.h"

#include <stdio.h>
#include <string.h>

T_ONE_THREAD();

TEST(map_finds_what_was_put)
{
    br_map m = {0};
    bool fresh = false;

    ck_assert_ptr_null(br_map_get(&m, BR_TEXT("a")));
    br_map_put(&m, BR_TEXT("a"), &fresh)->u = 1;
    ck_assert(fresh);
    br_map_put(&m, BR_TEXT(""), &fresh)->u = 2;
    ck_assert(fresh);
    br_map_put(&m, BR_TEXT("a"), &fresh)->u += 10;
    ck_assert(!fresh);
    ck_assert_uint_eq(br_map_get(&m, BR_TEXT("a"))->u, 11);
    ck_assert_uint_eq(br_map_get(&m, BR_TEXT(""))->u, 2);
    ck_assert_ptr_null(br_map_get(&m, BR_TEXT("b")));
    ck_assert_uint_eq(m.n_live, 2);
    br_map_fini(&m);
}

TEST(map_iterates_in_order_of_insertion)
{
    enum { N = 1000 };
    br_map m = {0};
    br_map_entry *e;
    uint64_t want = 0;

    for (uint64_t i = 0; i < N; i++)
        br_map_put_u64(&m, i * 0x9e3779b97f4a7c15u, NULL)->u = i;
    for (uint64_t i = 0; i < N; i += 3)
        ck_assert(br_map_del_u64(&m, i * 0x9e3779b97f4a7c15u));
    ck_assert(!br_map_del_u64(&m, 0));
    for (size_t i = 0; (e = br_map_next(&m, &i)); want++) {
        want += want % 3 == 0;
        ck_assert_uint_eq(e->value.u, want);
        ck_assert_uint_eq(e->key.num, want * 0x9e3779b97f4a7c15u);
    }
    ck_assert_uint_eq(want, N - 1 + (N - 1) % 3);
    br_map_fini(&m);
}

/* Against a plain array, with keys few enough to be deleted and put again. */
TEST(map_agrees_with_an_array)
{
    enum { KEYS = 300, STEPS = 60000 };
    static uint64_t value[KEYS];
    static bool there[KEYS];
    uint64_t rand = 7, live = 0;
    br_map m = {0};

    br_map_seed(&m, (br_hash_key){1, 2});
    for (int step = 0; step < STEPS; step++) {
        uint64_t r = t_rand(&rand), k = r % KEYS;
        br_map_value *v = br_map_get_u64(&m, k);
        bool fresh;

        ck_assert_int_eq(v != NULL, there[k]);
        if (v)
            ck_assert_uint_eq(v->u, value[k]);
        /* Long stretches that grow, long ones that shrink. */
        if ((r >> 32) % 8 < (step / 5000 % 2 ? 2u : 6u)) {
            br_map_put_u64(&m, k, &fresh)->u = r;
            ck_assert_int_eq(fresh, !there[k]);
            live += fresh;
            there[k] = true;
            value[k] = r;
        } else {
            ck_assert_int_eq(br_map_del_u64(&m, k), there[k]);
            live -= there[k];
            there[k] = false;
        }
        ck_assert_uint_eq(m.n_live, live);
    }
    ck_assert_uint_le(m.n_slots, 1024);
    br_map_fini(&m);
}

/* A key deleted and put again for ever takes no more memory. */
TEST(map_of_one_key_stays_small)
{
    br_map m = {0};

    for (int i = 0; i < 100000; i++) {
        ck_assert_ptr_nonnull(br_map_put(&m, BR_TEXT("k"), NULL));
        ck_assert(br_map_del(&m, BR_TEXT("k")));
    }
    ck_assert_uint_le(m.n_slots, 8);
    ck_assert_uint_le(m.entries.cap, 8);
    br_map_fini(&m);
}

TEST(map_reserve_makes_puts_safe)
{
    br_map m = {0};

    ck_assert(br_map_reserve(&m, 1000));
    t_mem_fail_at(1);
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(br_map_put_u64(&m, i, NULL));
    ck_assert(!t_mem_failed());
    ck_assert_ptr_null(br_map_put_u64(&m, 1u << 20, NULL));
    ck_assert(t_mem_failed());
    ck_assert_uint_eq(m.n_live, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(br_map_get_u64(&m, i));
    t_mem_fail_at(0);
    br_map_fini(&m);
}

/* Up to 100 live entries were reserved: 10,000 puts with deletions between
 * them make do without another byte. */
TEST(map_without_memory_reuses_deleted_entries)
{
    br_map m = {0};

    ck_assert(br_map_reserve(&m, 100));
    t_mem_fail_at(1);
    for (uint64_t i = 0; i < 10000; i++) {
        if (i >= 100)
            ck_assert(br_map_del_u64(&m, i - 100));
        ck_assert_ptr_nonnull(br_map_put_u64(&m, i, NULL));
    }
    ck_assert_uint_eq(m.n_live, 100);
    t_mem_fail_at(0);
    br_map_fini(&m);
}

static br_code
fill(void *arg, br_status *st)
{
    char(*names)[8] = arg;
    br_map m = {0};
    br_code code = BR_OK;

    for (int i = 0; i < 100 && code == BR_OK; i++)
        if (!br_map_put(&m, br_text_z(names[i]), NULL))
            code = br_fail(st, BR_E_OOM, "map");
    br_map_fini(&m);
    return code;
}

TEST(map_survives_every_failed_allocation)
{
    static char names[100][8];

    for (int i = 0; i < 100; i++)
        snprintf(names[i], sizeof names[i], "n%d", i);
    t_each_oom(fill, names);
}

/* A hundred thousand names that differ in one byte: the slots of the longest
 * run stay few under any key. */
TEST(map_of_many_similar_names)
{
    enum { N = 100000 };
    static char names[N][12];
    br_map m = {0};

    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "blk.%d", i);
        br_map_put(&m, br_text_z(names[i]), NULL)->i = i;
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(br_map_get(&m, br_text_z(names[i]))->i, i);
    ck_assert_uint_eq(m.n_live, N);
    br_map_fini(&m);
}
