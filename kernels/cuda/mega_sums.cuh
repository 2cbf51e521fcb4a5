/* mega_sums.cuh - numbers of a block, of the decode kernel, become one.
 * SPDX-License-Identifier: Apache-2.0 */

/* What 16 warps left in r[0..15], in a fixed tree. */
BR_DEV float
sum16(const float *r)
{
    u32x4 a = lds128(smem_of(r)), b = lds128(smem_of(r + 4));
    u32x4 c = lds128(smem_of(r + 8)), d = lds128(smem_of(r + 12));
    float s0 = add_rn(add_rn(as_f32(a.x), as_f32(a.y)),
                      add_rn(as_f32(a.z), as_f32(a.w)));
    float s1 = add_rn(add_rn(as_f32(b.x), as_f32(b.y)),
                      add_rn(as_f32(b.z), as_f32(b.w)));
    float s2 = add_rn(add_rn(as_f32(c.x), as_f32(c.y)),
                      add_rn(as_f32(c.z), as_f32(c.w)));
    float s3 = add_rn(add_rn(as_f32(d.x), as_f32(d.y)),
                      add_rn(as_f32(d.z), as_f32(d.w)));
    return add_rn(add_rn(s0, s1), add_rn(s2, s3));
}

BR_DEV float
max16(const float *r)
{
    u32x4 a = lds128(smem_of(r)), b = lds128(smem_of(r + 4));
    u32x4 c = lds128(smem_of(r + 8)), d = lds128(smem_of(r + 12));
    float s0 = max_f32(max_f32(as_f32(a.x), as_f32(a.y)),
                       max_f32(as_f32(a.z), as_f32(a.w)));
    float s1 = max_f32(max_f32(as_f32(b.x), as_f32(b.y)),
                       max_f32(as_f32(b.z), as_f32(b.w)));
    float s2 = max_f32(max_f32(as_f32(c.x), as_f32(c.y)),
                       max_f32(as_f32(c.z), as_f32(c.w)));
    float s3 = max_f32(max_f32(as_f32(d.x), as_f32(d.y)),
                       max_f32(as_f32(d.z), as_f32(d.w)));
    return max_f32(max_f32(s0, s1), max_f32(s2, s3));
}

BR_DEV float
warp_sum(float v)
{
    for (u32 m = 16; m; m >>= 1)
        v = add_rn(v, shfl_xor_f(v, m));
    return v;
}
