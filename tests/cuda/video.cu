/* video.cu - scalar video instructions of PTX: parts of registers, saturation, second
 * operations, places of the result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <limits.h>

enum { N = 256, OPS = 20 };

__global__ void
run(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out)
{
    const int t = threadIdx.x;
    const unsigned x = a[t], y = b[t], z = c[t];
    unsigned *const o = out + t * OPS;

#define OP3(k, text) asm(text " %0, %1, %2;" : "=r"(o[k]) : "r"(x), "r"(y))
#define OP4(k, text) asm(text " %0, %1, %2, %3;" : "=r"(o[k]) : "r"(x), "r"(y), "r"(z))
    OP3(0, "vadd.s32.u32.s32.sat");
    OP3(1, "vsub.u32.s32.u32.sat");
    OP3(2, "vadd.u32.u32.s32");
    OP3(3, "vabsdiff.u32.s32.s32");
    OP4(4, "vabsdiff.s32.u32.u32.sat.add");
    OP3(5, "vmin.s32.s32.u32.sat");
    OP4(6, "vmax.u32.s32.s32.min");
    OP4(7, "vsub.s32.s32.s32.max");
    OP3(8, "vshl.u32.u32.u32.clamp");
    OP3(9, "vshl.s32.s32.u32.wrap");
    OP3(10, "vshr.s32.s32.u32.clamp");
    OP4(11, "vshr.u32.u32.u32.wrap.add");
    OP3(12, "vset.s32.u32.lt");
    OP4(13, "vset.u32.u32.ge.add");
#define PART(k, text, d, p, q)                                                \
    asm("{.reg .u32 r; " text " r" d ", %1" p ", %2" q ", %3; mov.u32 %0, r;}" \
        : "=r"(o[k]) : "r"(x), "r"(y), "r"(z))
    PART(14, "vadd.s32.s32.u32.sat", ".b2", ".b1", ".h1");
    PART(15, "vsub.u32.u32.s32", ".h1", ".b3", ".b0");
    PART(16, "vmax.s32.s32.s32.sat", ".h0", ".h0", "");
    PART(17, "vabsdiff.u32.u32.u32.add", "", ".b0", ".b2");
    PART(18, "vset.s32.s32.gt", ".b3", ".b3", ".b3");
    PART(19, "vshr.s32.s32.u32.clamp", ".b0", "", ".b1");
}

/* ---- the same by the manual ---------------------------------------------- */

static long long
part(unsigned v, int first, int bits, bool is_signed)
{
    const long long n = v >> first & (bits == 32 ? ~0u : (1u << bits) - 1);

    return is_signed && n >> (bits - 1) ? n - (1ll << bits) : n;
}

static unsigned
sat(long long v, int bits, bool is_signed)
{
    const long long high = (1ll << (bits - is_signed)) - 1;
    const long long low = is_signed ? -high - 1 : 0;

    return (unsigned)(v < low ? low : v > high ? high : v);
}

static unsigned
put(unsigned c, long long v, int first, int bits)
{
    const unsigned mask = ((1u << bits) - 1) << first;

    return (c & ~mask) | ((unsigned)v << first & mask);
}

static long long
most(long long a, long long b)
{
    return a > b ? a : b;
}

static long long
least(long long a, long long b)
{
    return a < b ? a : b;
}

static long long
apart(long long a, long long b)
{
    return a < b ? b - a : a - b;
}

static void
expected(unsigned x, unsigned y, unsigned z, unsigned *e)
{
    const int sx = (int)x, sy = (int)y, sz = (int)z;
    const long long by = y > 32 ? 32 : y;

    e[0] = sat((long long)x + sy, 32, true);
    e[1] = sat((long long)sx - (long long)y, 32, false);
    e[2] = x + y;
    e[3] = (unsigned)apart(sx, sy);
    e[4] = sat(apart(x, y), 32, true) + z;
    e[5] = sat(least(sx, y), 32, true);
    e[6] = (unsigned)least((unsigned)most(sx, sy), z);
    e[7] = (unsigned)most((int)(x - y), sz);
    e[8] = by == 32 ? 0 : x << by;
    e[9] = x << (y & 31);
    e[10] = (unsigned)((long long)sx >> by);
    e[11] = (x >> (y & 31)) + z;
    e[12] = (long long)sx < (long long)y;
    e[13] = (x >= y) + z;
    e[14] = put(z, (int)sat(part(x, 8, 8, true) + part(y, 16, 16, false), 8, true), 16, 8);
    e[15] = put(z, part(x, 24, 8, false) - part(y, 0, 8, true), 16, 16);
    e[16] = put(z, (int)sat(most(part(x, 0, 16, true), sy), 16, true), 0, 16);
    e[17] = (unsigned)apart(part(x, 0, 8, false), part(y, 16, 8, false)) + z;
    e[18] = put(z, part(x, 24, 8, true) > part(y, 24, 8, true), 24, 8);
    e[19] = put(z, (long long)sx >> least(part(y, 8, 8, false), 32), 0, 8);
}

int
main()
{
    static const unsigned ends[] = {0, 1, 31, 32, 33, 0x7fffffff, 0x80000000, 0xffffffff};
    std::vector<unsigned> a(N), b(N), c(N);
    int bad[OPS] = {0};

    for (int k = 0; k < N; k++) {
        a[k] = k < 64 ? ends[k / 8] : (unsigned)(rnd() * 4294967040.f);
        b[k] = k < 64 ? ends[k % 8] : (unsigned)(rnd() * (k % 2 ? 40.f : 4294967040.f));
        c[k] = (unsigned)(rnd() * 4294967040.f);
    }
    Dev<unsigned> da(a), db(b), dc(c), out(N * OPS);
    run<<<1, N>>>(da.p, db.p, dc.p, out.p);
    std::vector<unsigned> is = out.get();
    for (int k = 0; k < N; k++) {
        unsigned e[OPS];

        expected(a[k], b[k], c[k], e);
        for (int n = 0; n < OPS; n++)
            bad[n] += is[k * OPS + n] != e[n];
    }
    for (int n = 0; n < OPS; n++) {
        if (bad[n])
            fprintf(stderr, "operation %d: %d wrong\n", n, bad[n]);
        EXPECT(bad[n] == 0);
    }
    return done();
}
