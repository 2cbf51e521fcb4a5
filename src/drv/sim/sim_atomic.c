/* sim_atomic.c - what an atomic makes of a value in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"
#include "drv/sim/sim_int.h"

static uint64_t
float_op(unsigned act, unsigned bytes, uint64_t was, uint64_t data)
{
    if (bytes == 8) {
        double a = br_f64_of(was), b = br_f64_of(data);

        return br_f64_bits(act == ACT_FMIN ? sim_min64(a, b) : sim_max64(a, b));
    } else {
        float a = br_f32_of((uint32_t)was), b = br_f32_of((uint32_t)data);

        return br_f32_bits(act == ACT_FADD   ? a + b
                           : act == ACT_FMIN ? sim_min(a, b)
                                             : sim_max(a, b));
    }
}

/* -0 equals 0, a NaN nothing. */
static bool
float_equal(unsigned bytes, uint64_t a, uint64_t b)
{
    return bytes == 8 ? br_f64_of(a) == br_f64_of(b)
                      : br_f32_of((uint32_t)a) == br_f32_of((uint32_t)b);
}

static uint64_t
packed_add(unsigned act, uint32_t a, uint32_t b)
{
    uint32_t r = 0;

    for (int k = 0; k < 32; k += 16) {
        uint16_t x = (uint16_t)(a >> k), y = (uint16_t)(b >> k);

        r |=
            (uint32_t)(act == ACT_PKF16 ? br_f32_to_f16(sim_f16(x) + sim_f16(y))
                                        : br_f32_to_bf16(br_bf16_to_f32(x) +
                                                         br_bf16_to_f32(y)))
            << k;
    }
    return r;
}

uint64_t
sim_atomic(unsigned act, unsigned bytes, uint64_t was, uint64_t data,
           uint64_t data1)
{
    unsigned drop = 64 - 8 * bytes;
    int64_t sw = (int64_t)(was << drop), sd = (int64_t)(data << drop);

    switch ((sim_act)act) {
    case ACT_SWAP: return data;
    case ACT_ADD: return was + data;
    case ACT_SUB: return was - data;
    case ACT_RSUB: return data - was;
    case ACT_INC: return was >= data ? 0 : was + 1;
    case ACT_DEC: return was == 0 || was > data ? data : was - 1;
    case ACT_MINI: return sw < sd ? was : data;
    case ACT_MAXI: return sw > sd ? was : data;
    case ACT_MINU: return was < data ? was : data;
    case ACT_MAXU: return was > data ? was : data;
    case ACT_AND: return was & data;
    case ACT_OR: return was | data;
    case ACT_XOR: return was ^ data;
    case ACT_MSKOR: return (was & ~data) | data1;
    case ACT_CSUB: return was < data ? 0 : was - data;
    case ACT_CONDSUB: return was < data ? was : was - data;
    case ACT_WRAP: return was >= data ? was - data : was + data1;
    /* VMEM: data is what is written, data1 what is compared; LDS: reversed. */
    case ACT_CMPSWAP:
    case ACT_CMPSTORE: return was == data1 ? data : was;
    case ACT_FCMPSWAP:
    case ACT_FCMPSTORE: return float_equal(bytes, was, data1) ? data : was;
    case ACT_FADD:
    case ACT_FMIN:
    case ACT_FMAX: return float_op(act, bytes, was, data);
    case ACT_PKF16:
    case ACT_PKBF16: return packed_add(act, (uint32_t)was, (uint32_t)data);
    default: br_unreachable("no atomic");
    }
}
