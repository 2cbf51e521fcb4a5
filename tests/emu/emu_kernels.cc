// emu_kernels.cc - the kernels, as functions of this library.
// SPDX-License-Identifier: Apache-2.0
#include "emu.h"

#include "../../kernels/cuda/mega_decode.cu"
#undef S
#undef P
#include "../../kernels/cuda/setup.cu"
#define MEET_LIMIT (1u << 14) /* all others run between two looks */
#include "../../kernels/cuda/pick.cu"
#include "../../kernels/cuda/nodes.cu"
#include "../../kernels/cuda/prog.cu"
#include "../../kernels/cuda/experts.cu"
#include "../../kernels/cuda/stay.cu"

#include <utility>

template <class... A, size_t... I>
static void
call(void (*fn)(A...), void **p, std::index_sequence<I...>)
{
    fn(*(A *)p[I]...);
}

#define KERNELS(X)                                                            \
    X(br_mega_64_bf16) X(br_mega_128_bf16) X(br_mega_64_q8_0)                 \
    X(br_mega_128_q8_0) X(br_fill_bf16) X(br_fill_q8_0) X(br_fill_f32)        \
    X(br_repack_bf16) X(br_repack_bf12) X(br_mega_64_bf12) X(br_mega_128_bf12) \
    X(br_repack_q8_0) X(br_naive_embed) X(br_naive_norm)    \
    X(br_naive_matvec) X(br_naive_matvec_q8_0) X(br_naive_round_q8) X(br_naive_glu)                \
    X(br_naive_rope) X(br_naive_append) X(br_naive_attn) X(br_naive_to_pages) X(br_pick) X(br_mega_64_q4_k)  \
    X(br_mega_128_q4_k) X(br_fill_q4_k) X(br_repack_q4_k)                     \
    X(br_naive_matvec_q4_k)                                                   \
    X(br_nd_runs) X(br_nd_wanted) X(br_nd_each) X(br_nd_norm) X(br_nd_norm_heads)                 \
    X(br_nd_quantise) X(br_nd_mul_f32) X(br_nd_mul_f16) X(br_nd_mul_bf16)     \
    X(br_nd_mul_int32) X(br_nd_mul_int256) X(br_nd_rope) X(br_nd_keep)        \
    X(br_nd_attend) X(br_nd_embed) X(br_nd_tile) X(br_nd_row16_copy) X(br_nd_row16_glu) \
    X(br_nd_row16_norm) X(br_nd_row16_add) X(br_nd_row16_copy_long)           \
    X(br_nd_row16_glu_long) X(br_nd_row16_norm_long) X(br_nd_row16_add_long)               \
    X(br_nd_tiles_8) X(br_nd_tiles_16) X(br_nd_tiles_32) X(br_nd_tiles_64)    \
    X(br_nd_tiles_128) X(br_nd_tiles_many) X(br_nd_tiles_wide) X(br_nd_imma_8) X(br_nd_imma_32) X(br_nd_flash_64)      \
    X(br_nd_flash_128) X(br_nd_flash_few_64) X(br_nd_flash_few_128) X(br_prog) X(br_nd_topk) X(br_nd_fold) X(br_nd_conv)     \
    X(br_nd_delta) X(br_nd_scan) X(br_nd_gated) X(br_nd_turn) X(br_nd_angles) \
    X(br_nd_flash_turn_64) X(br_nd_flash_turn_128) X(br_nd_flash_far_64) X(br_nd_flash_far_128) X(br_nd_flash_alone_64) X(br_nd_flash_stay_64) X(br_nd_flash_stay_128) X(br_nd_flash_stay_turn_64) X(br_nd_round_16) X(br_nd_round_32) X(br_nd_round_64) X(br_nd_dense) X(br_nd_dense_16) X(br_nd_dense_32) X(br_nd_dense_64) X(br_nd_dense_alone_16) X(br_nd_dense_alone_32) X(br_nd_dense_alone_64) X(br_nd_round_dense_16) X(br_nd_round_dense_32) X(br_nd_round_dense_64) X(br_nd_row16_pieces) X(br_nd_row16_pieces_short) \
    X(br_nd_row16_copy_short) X(br_nd_row16_glu_short) \
    X(br_nd_row16_norm_short) X(br_nd_row16_add_short) \
    X(br_nd_turn_64) X(br_nd_turn_128) X(br_nd_pack) X(br_nd_unpack) X(br_nd_packed_16) \
    X(br_nd_packed_32) X(br_nd_packed_64) X(br_nd_packed_128) X(br_nd_packed_many) \
    X(br_nd_lists) X(br_nd_gather) X(br_nd_pack_mx) X(br_nd_pack_f8)                           \
    X(br_nd_ask_f16_few) X(br_nd_ask_f16_some) X(br_nd_ask_f16_many)          \
    X(br_nd_ask_pack_few) X(br_nd_ask_pack_some) X(br_nd_ask_pack_many)       \
    X(br_nd_ask_f8_few) X(br_nd_ask_f8_some) X(br_nd_ask_f8_many)            \
    X(br_nd_ask_mx_few) X(br_nd_ask_mx_some) X(br_nd_ask_mx_many) \
    X(br_stay)

template <class... A>
static void
start(void (*fn)(A...), void **p)
{
    call(fn, p, std::index_sequence_for<A...>{});
}

template <class A>
static constexpr size_t
size_of_only(void (*)(A))
{
    return sizeof(A);
}
template <class... A>
static constexpr size_t
size_of_only(void (*)(A...))
{
    return 0;
}

static const struct {
    const char *name;
    void (*run)(void **p);
    size_t size; /* of its parameter; 0: there are several */
} table[] = {
#define X(k) {#k, [](void **p) { start(k, p); }, size_of_only(k)},
    KERNELS(X)
#undef X
};

extern "C" const char *
emu_has(const char *name)
{
    for (const auto &t : table)
        if (!strcmp(t.name, name))
            return t.name;
    return nullptr;
}

extern "C" size_t
emu_size(const char *name)
{
    for (const auto &t : table)
        if (!strcmp(t.name, name))
            return t.size;
    return 0;
}

extern "C" const void *
emu_find(const char *name)
{
    for (const auto &t : table)
        if (!strcmp(t.name, name))
            return &t;
    return nullptr;
}

/* Every thread of a launch comes by here. */
extern "C" void
emu_call(const void *found, void **params)
{
    static_cast<decltype(&table[0])>(found)->run(params);
}
