/* test_mega_check_tiles.c - buffers whose tiles come in odd orders, on one
 * counter or on several, and recipes that several tasks have: what is said of
 * all of them at once (check_tiles.c, check_recipe.c) must hold for each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prog_text.h"

T_ONE_THREAD();

/* Tiles of buffer 2, [1,8], then those who read it. */
static const char *
row(const char *tiles, const char *readers)
{
    return t_printf("b x IO_INPUT F32 [1,4]\nb w WEIGHT F32 [8,4]\n"
                    "b m ACTIVATION F32 [1,8]\nb o IO_OUTPUT F32 [1,8]\n"
                    "b p IO_OUTPUT F32 [1,8]\n"
                    "c 0\nc 0\nc 0\nc 0\nc 0\nc 0\nc 0\nc 0\nc 0\n%s%s",
                    tiles, readers);
}

#define TILE(from, n, c) \
    "t GEMV_TILE 0,1 > 2 c" #c " {'K':4,'N_tile':" #n ",'n_off':" #from "}\n"
#define BOTH(waits) "t COPY 2 > 3 c6 w" waits "\nt COPY 2 > 4 c7 w" waits "\n"

TEST(check_takes_tiles_in_any_order)
{
    pt_accepts(row(TILE(4, 2, 0) TILE(0, 1, 0) TILE(6, 2, 0) TILE(1, 3, 0),
                   BOTH("0:4")));
    /* four cover what is there to cover, but one cell twice and one never */
    pt_refuses(row(TILE(4, 2, 0) TILE(0, 2, 0) TILE(6, 2, 0) TILE(1, 2, 0),
                   BOTH("0:4")),
               "share a counter but their tiles OVERLAP");
    pt_refuses(row(TILE(4, 2, 0) TILE(0, 2, 0) TILE(6, 2, 0) TILE(6, 2, 0),
                   BOTH("0:4")),
               "share a counter but their tiles OVERLAP");
    pt_refuses(row(TILE(4, 2, 0) TILE(0, 2, 0) TILE(6, 2, 0), BOTH("0:3")),
               "columns [2,4), which no task ordered before it has written");
    pt_refuses(row(TILE(4, 4, 0) TILE(0, 4, 0), "t COPY 2 > 3 c6 w0:2\n"
                                                "t COPY 2 > 4 c7\n"),
               "writer task(s) [0, 1] are NOT ordered before it");
}

TEST(check_takes_tiles_on_a_grid)
{
    const char *head = "b x IO_INPUT F32 [4,2]\nb w WEIGHT F32 [2,2]\n"
                       "b m ACTIVATION F32 [4,2]\nb o IO_OUTPUT F32 [4,2]\n";
#define CELL(m, n)                                   \
    "t GEMM_TILE 0,1 > 2 c0 {'M_tile':2,'m_off':" #m \
    ",'K':2,'N_tile':1,'n_off':" #n "}\n"

    pt_accepts(t_printf("%s" CELL(2, 1) CELL(0, 0) CELL(2, 0)
                            CELL(0, 1) "t COPY 2 > 3 c1 w0:4\n",
                        head));
    pt_refuses(t_printf("%s" CELL(2, 1) CELL(0, 0) CELL(1, 0)
                            CELL(0, 1) "t COPY 2 > 3 c1 w0:4\n",
                        head),
               "share a counter but their tiles OVERLAP");
    pt_refuses(t_printf("%s" CELL(2, 1) CELL(0, 0)
                            CELL(0, 1) "t COPY 2 > 3 c1 w0:3\n",
                        head),
               "rows [2,4) columns [0,1), which no task");
}

TEST(check_takes_tiles_on_counters_of_their_own)
{
    const char *four = TILE(4, 2, 0) TILE(0, 2, 1) TILE(6, 2, 2) TILE(2, 2, 3);
    const char *two = TILE(0, 2, 0) TILE(2, 2, 1) TILE(4, 2, 1) TILE(6, 2, 0);

    pt_accepts(row(four, BOTH("0:1,1:1,2:1,3:1")));
    pt_accepts(row(two, BOTH("0:2,1:2")));
    pt_refuses(row(two, "t COPY 2 > 3 c6 w0:2,1:2\nt COPY 2 > 4 c7 w0:2\n"),
               "writer task(s) [1, 2] are NOT ordered before it");
    /* through NOPs, and one of them left out */
    pt_accepts(row(four, "t NOP > c4 w0:1,1:1\nt NOP > c5 w2:1,3:1,4:1\n"
                         "t COPY 2 > 3 c6 w5:1\nt COPY 2 > 4 c7 w4:1,5:1\n"));
    for (int left = 0; left < 4; left++) {
        br_str s = {0};

        for (int c = 0; c < 4; c++)
            if (c != left)
                br_str_printf(&s, "%s%d:1", s.n ? "," : "", c);
        pt_refuses(row(four, t_printf("t COPY 2 > 3 c6 w0:1,1:1,2:1,3:1\n"
                                      "t COPY 2 > 4 c7 w%s\n",
                                      br_str_z(&s))),
                   t_printf("task 5 (t5) reads buffer #2 ('m') but writer "
                            "task(s) [%d] are NOT ordered before it",
                            left));
        br_str_fini(&s);
    }
    /* one of them written again while somebody reads */
    pt_refuses(row(four, BOTH("0:1,1:1,2:1,3:1") "t GEMV_TILE 0,1 > 2 c8 w6:1 "
                                                 "{'K':4,'N_tile':2,'n_off':"
                                                 "2}\n"),
               "task 5 (t5) reads buffer #2 ('m') but writer task(s) [6]");
}

/* Whoever is off the tree of predecessors gets to it in a few hops; more of
 * them, or none that leads there, is for the sweep. */
TEST(check_order_is_found_over_many_hops)
{
    for (int hops = 1; hops < 12; hops++)
        for (int open = 0; open < 2; open++) {
            br_str s = {0};

            br_str_puts(&s, "b x IO_INPUT F32 [1,4]\n"
                            "b a ACTIVATION F32 [1,4]\n"
                            "b o IO_OUTPUT F32 [1,4]\nt COPY 0 > 1\n");
            /* each waits for the one before, and for a later stranger */
            for (int i = 0; i < hops; i++)
                br_str_printf(&s, "t NOP >\nt NOP > w%d:1,%d:1\n",
                              i == 0 && open ? 1 : 2 * i, 2 * i + 1);
            br_str_printf(&s, "t COPY 1 > 2 w%d:1\n", 2 * hops);
            if (open)
                pt_refuses(br_str_z(&s), "writer task(s) [0] are NOT ordered");
            else
                pt_accepts(br_str_z(&s));
            br_str_fini(&s);
        }
}

/* ---- recipes that several tasks have ------------------------------------ */

TEST(check_judges_a_recipe_by_its_operands)
{
    const char *head = "b x IO_INPUT F32 [1,4]\nb y IO_INPUT F32 [2,4]\n"
                       "b z IO_INPUT BF16 [1,4]\nb i IO_INPUT I32 [1,4]\n"
                       "b a IO_OUTPUT F32 [1,4]\nb b IO_OUTPUT F32 [1,4]\n"
                       "b c IO_OUTPUT F32 [2,4]\n";
#define GELU "{'recipe':{'steps':[{'op':10,'args':[{'in':0}],'out':-1}]}}\n"

    pt_accepts(t_printf("%st FUSED 0 > 4 " GELU "t FUSED 0 > 5 " GELU
                        "t FUSED 1 > 6 " GELU,
                        head));
    pt_refuses(t_printf("%st FUSED 0 > 4 " GELU "t FUSED 1 > 5 " GELU
                        "t FUSED 0 > 6 " GELU,
                        head),
               "task 1 (t1): FUSED: recipe, step 0: GELU:");
    pt_refuses(t_printf("%st FUSED 0 > 4 " GELU "t FUSED 3 > 5 " GELU
                        "t FUSED 0 > 6 " GELU,
                        head),
               "task 1 (t1): FUSED: recipe, step 0: GELU:");
    /* scratch lives as long as its recipe */
    pt_refuses(t_printf("%st FUSED 0 > 4 {'recipe':{'steps':["
                        "{'op':10,'args':[{'in':0}],'out':0},"
                        "{'op':10,'args':[{'s':0}],'out':-1}]}}\n"
                        "t FUSED 0 > 5 {'recipe':{'steps':["
                        "{'op':10,'args':[{'s':0}],'out':-1}]}}\n"
                        "t FUSED 1 > 6 " GELU,
                        head),
               "task 1 (t1): FUSED: recipe, step 0: reads scratch 0 before");
    /* a bad one is as bad the second time */
    pt_refuses(t_printf("%st FUSED 3 > 4 " GELU "t FUSED 3 > 5 " GELU
                        "t FUSED 0 > 6 " GELU,
                        head),
               "task 1 (t1): FUSED: recipe, step 0: GELU:");
}
