/* tensor.cuh - the tensor core's words: mma, wgmma, and how their operands lie.
 * Included by device.cuh; the emulated GPU has its own (tests/emu).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TENSOR_CUH
#define BR_TENSOR_CUH

/* c[16x8] += a[16x16] b[16x8], bf16 in, f32 accumulate. Lane l holds rows
 * l/4 and l/4+8; c[0], c[2] are column 2(l%4), c[1], c[3] the next. */
BR_DEV void
mma_bf16(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
/* The same of f16. */
BR_DEV void
mma_f16(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
/* Rows for columns, of 8 x 8 halves: lane l has two of row l / 4. */
BR_DEV u32
transposed(u32 v)
{
    u32 r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
                 : "=r"(r)
                 : "r"(v));
    return r;
}
/* c = a b */
BR_DEV void
mma_bf16_zero(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y),
                   "f"(0.0f));
}
/* c[16x8] = a[16x32] b[32x8], signed bytes, exact. */
BR_DEV void
mma_s8(i32 c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y),
                   "r"(0));
}

/* c[16x8] += a[16x32] b[32x8], of bytes; weights of u8: without a sign. */
#define MMA_32(name, type)                                                    \
    BR_DEV void name(i32 c[4], u32x4 a, u32x2 b)                              \
    {                                                                         \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." type            \
                     ".s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "        \
                     "{%0,%1,%2,%3};"                                         \
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])         \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x),      \
                       "r"(b.y));                                             \
    }
MMA_32(mma_s8_32, "s8")
MMA_32(mma_u8_32, "u8")
/* The sum of four signed bytes. */
BR_DEV i32
sum_of_bytes(u32 v, i32 c)
{
    i32 r;
    asm("dp4a.s32.s32 %0, %1, %2, %3;"
        : "=r"(r)
        : "r"(v), "r"(0x01010101), "r"(c));
    return r;
}
/* Pairs of f16: a - b, a b + c. In order with wgmma, whose operands they make. */
BR_DEV u32
sub_f16x2(u32 a, u32 b)
{
    u32 r;
    asm volatile("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
BR_DEV u32
fma_f16x2(u32 a, u32 b, u32 c)
{
    u32 r;
    asm volatile("fma.rn.f16x2 %0, %1, %2, %3;"
                 : "=r"(r)
                 : "r"(a), "r"(b), "r"(c));
    return r;
}
/* Two bytes < 128 as bf16, from 128 + each: exact. */
BR_DEV u32
bf16_of_bytes(u32 v, u32 sel)
{
    u32 r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;"
        : "=r"(r)
        : "r"(prmt(v, 0x43434343, sel)), "r"(0x3f803f80), "r"(0xc300c300));
    return r;
}

/* Four warps together: d[64 x N] += a[64 x 16] b[16 x N], f16 in, f32 sums;
 * from zero where `more` is false. a and b are descriptors: rows of 128 bytes,
 * chunks of 16 at chunk ^ row % 8, eight rows together (1 KiB, aligned so); 32
 * bytes further along a row is a descriptor + 2. Done when wg_wait says so. */
BR_DEV u64
wg_tile(u32 shared)
{
    return (u64)(shared >> 4 & 0x3fff) | (u64)1 << 16 | (u64)64 << 32 |
           (u64)1 << 62;
}
BR_DEV void
wg_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
BR_DEV void
wg_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until all but the latest N commits are done. */
template <u32 N>
BR_DEV void
wg_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
#define WG_D4(d, i)  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WG_D16(d, i) \
    WG_D4(d, i), WG_D4(d, i + 4), WG_D4(d, i + 8), WG_D4(d, i + 12)
#define WG_MMA(N, DS, A, B, P, ...)                                           \
    BR_DEV void wg_mma(float(&d)[N / 2], u64 a, u64 b, bool more)             \
    {                                                                         \
        asm volatile("{ .reg .pred p;\n"                                      \
                     "setp.ne.b32 p, " P ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N                   \
                     "k16.f32.f16.f16 {" DS "}, " A ", " B                    \
                     ", p, 1, 1, 0, 0; }"                                     \
                     : __VA_ARGS__                                            \
                     : "l"(a), "l"(b), "r"((u32)more));                       \
    }
#define WG_R4 "%0,%1,%2,%3"
#define WG_R8 WG_R4 ",%4,%5,%6,%7"
#define WG_R16 \
    WG_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define WG_R32 \
    WG_R16 ",%16,%17,%18,%19,%20,%21,%22,%23" \
           ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_R64 \
    WG_R32 ",%32,%33,%34,%35,%36,%37,%38,%39" \
           ",%40,%41,%42,%43,%44,%45,%46,%47" \
           ",%48,%49,%50,%51,%52,%53,%54,%55" \
           ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_R96 \
    WG_R64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
           ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define WG_R128 \
    WG_R96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107" \
           ",%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119" \
           ",%120,%121,%122,%123,%124,%125,%126,%127"
WG_MMA(8, WG_R4, "%4", "%5", "%6", WG_D4(d, 0))
WG_MMA(16, WG_R8, "%8", "%9", "%10", WG_D4(d, 0), WG_D4(d, 4))
WG_MMA(32, WG_R16, "%16", "%17", "%18", WG_D16(d, 0))
WG_MMA(64, WG_R32, "%32", "%33", "%34", WG_D16(d, 0), WG_D16(d, 16))
WG_MMA(128, WG_R64, "%64", "%65", "%66", WG_D16(d, 0), WG_D16(d, 16), WG_D16(d, 32),
       WG_D16(d, 48))
WG_MMA(192, WG_R96, "%96", "%97", "%98", WG_D16(d, 0), WG_D16(d, 16), WG_D16(d, 32),
       WG_D16(d, 48), WG_D16(d, 64), WG_D16(d, 80))
WG_MMA(256, WG_R128, "%128", "%129", "%130", WG_D16(d, 0), WG_D16(d, 16),
       WG_D16(d, 32), WG_D16(d, 48), WG_D16(d, 64), WG_D16(d, 80), WG_D16(d, 96),
       WG_D16(d, 112))

/* The same with a in registers (see wg_mma64). */
#define WG_MMA_R(N, DS, A, B, P, ...)                                         \
    BR_DEV void wg_mma_r(float(&d)[N / 2], u32x4 a, u64 b, bool more)         \
    {                                                                         \
        asm volatile("{ .reg .pred p;\n"                                      \
                     "setp.ne.b32 p, " P ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N                   \
                     "k16.f32.f16.f16 {" DS "}, {" A "}, " B                  \
                     ", p, 1, 1, 0; }"                                        \
                     : __VA_ARGS__                                            \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b),        \
                       "r"((u32)more));                                       \
    }
WG_MMA_R(16, WG_R8, "%8,%9,%10,%11", "%12", "%13", WG_D4(d, 0), WG_D4(d, 4))
WG_MMA_R(32, WG_R16, "%16,%17,%18,%19", "%20", "%21", WG_D16(d, 0))
WG_MMA_R(64, WG_R32, "%32,%33,%34,%35", "%36", "%37", WG_D16(d, 0),
         WG_D16(d, 16))
WG_MMA_R(128, WG_R64, "%64,%65,%66,%67", "%68", "%69", WG_D16(d, 0),
         WG_D16(d, 16), WG_D16(d, 32), WG_D16(d, 48))

/* The same with N = 64 and a in registers, four of 16 columns: rows l / 4 and
 * l / 4 + 8 of the warp's 16, columns 2 (l % 4) .. and 8 more. BY_ROWS: b's rows
 * are the sum's index, 64 columns of the result in a row of 128 bytes. */
template <bool BY_ROWS>
BR_DEV void
wg_mma64(float (&d)[32], u32x4 a, u64 b, bool more)
{
    asm volatile("{ .reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" WG_R32
                 "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38; }"
                 : WG_D16(d, 0), WG_D16(d, 16)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b),
                   "r"((u32)more), "n"(BY_ROWS ? 1 : 0));
}
/* A tile as rows that are a sum's index: eight of them and 64 columns are 1 KiB. */
BR_DEV u64
wg_tile_by_rows(u32 shared)
{
    return (u64)(shared >> 4 & 0x3fff) | (u64)64 << 16 | (u64)64 << 32 |
           (u64)1 << 62;
}
/* Four 8 x 8 tiles of halves; lane l says where row l % 8 of tile l / 8 is and
 * gets, of each tile, two of row l / 4; or of column l / 4. */
BR_DEV u32x4
ldmatrix(u32 a)
{
    u32x4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "r"(a)
                 : "memory");
    return r;
}
BR_DEV u32x4
ldmatrix_t(u32 a)
{
    u32x4 r;
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
        : "r"(a)
        : "memory");
    return r;
}


#endif
