/* gen_pow10.c - prints src/base/pow10.def: 128 bits of every power of ten.
 *
 *   cc -O2 tools/gen_pow10.c -o /tmp/g && /tmp/g >src/base/pow10.def
 *
 * Row q is floor(10^q * 2^s), with s such that 2^127 <= row < 2^128. A power
 * of two only moves the point, so 5^q is enough: upwards by multiplying;
 * downwards from 2^TOP by dividing, where floors of floors are exact:
 * floor(floor(x / 5) / 5) = floor(x / 25). TOP leaves more than 128 bits
 * after the last division. tests/unit/test_f64.c checks each row by
 * multiplication alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

enum { FIRST = -342, LAST = 324, LIMBS = 40, TOP = LIMBS * 32 - 1 };

/* Little-endian, 32 bits to a limb. */
typedef struct big {
    uint32_t limb[LIMBS];
} big;

static void
times5(big *b)
{
    uint64_t carry = 0;
    int i;

    for (i = 0; i < LIMBS; i++) {
        carry += (uint64_t)b->limb[i] * 5;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void
over5(big *b)
{
    uint64_t rest = 0;
    int i;

    for (i = LIMBS - 1; i >= 0; i--) {
        rest = rest << 32 | b->limb[i];
        b->limb[i] = (uint32_t)(rest / 5);
        rest %= 5;
    }
}

static int
bit(const big *b, int i)
{
    return i >= 0 ? b->limb[i / 32] >> (i % 32) & 1 : 0;
}

static void
print_row(const big *b, int q)
{
    uint64_t half[2] = {0, 0};
    int top = TOP, i;

    while (!bit(b, top))
        top--;
    for (i = 0; i < 128; i++)
        half[i / 64] = half[i / 64] << 1 | (uint64_t)bit(b, top - i);
    printf("X(0x%016" PRIX64 ", 0x%016" PRIX64 ") /* %4d */\n", half[0],
           half[1], q);
}

int
main(void)
{
    static big down[-FIRST + 1];
    big up = {{1}};
    int q;

    down[0].limb[LIMBS - 1] = UINT32_C(1) << 31;
    for (q = 1; q <= -FIRST; q++) {
        down[q] = down[q - 1];
        over5(&down[q]);
    }
    printf("/* pow10.def - 10^q for q from %d to %d, cut to 128 bits.\n"
           " * Made by tools/gen_pow10.c.\n"
           " * SPDX-License-Identifier: Apache-2.0 */\n"
           "/* high half          low half                 q */\n",
           FIRST, LAST);
    for (q = -FIRST; q > 0; q--)
        print_row(&down[q], -q);
    for (q = 0; q <= LAST; q++) {
        print_row(&up, q);
        times5(&up);
    }
    return 0;
}
