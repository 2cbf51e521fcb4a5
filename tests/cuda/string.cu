/* string.cu - whole numbers: edit distance along diagonals, CRC-32 by a table in
 * constant memory, ChaCha20 by rotations, and words counted by their length.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>
#include <string>

__constant__ unsigned crc_table[256];

/* One block; three diagonals in dynamic shared memory. */
__global__ void
distance(const char *a, int n, const char *b, int m, int *out)
{
    extern __shared__ int diag[];
    int *two = diag, *one = diag + n + 1, *now = diag + 2 * (n + 1);

    for (int d = 0; d <= n + m; d++) {
        for (int i = threadIdx.x; i <= n; i += blockDim.x) {
            int j = d - i;

            if (j < 0 || j > m)
                continue;
            if (i == 0 || j == 0)
                now[i] = d;
            else
                now[i] = min(min(one[i - 1], one[i]) + 1,
                             two[i - 1] + (a[i - 1] != b[j - 1]));
        }
        __syncthreads();
        int *t = two;
        two = one;
        one = now;
        now = t;
    }
    if (threadIdx.x == 0)
        *out = one[n];
}
__global__ void
crc(const unsigned char *text, int each, unsigned *out)
{
    unsigned c = ~0u;

    for (int k = 0; k < each; k++)
        c = crc_table[(c ^ text[threadIdx.x * each + k]) & 255] ^ c >> 8;
    out[threadIdx.x] = ~c;
}
__device__ void
quarter(unsigned &a, unsigned &b, unsigned &c, unsigned &d)
{
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 16);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 8);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}
__global__ void
chacha(const unsigned *key, unsigned *out)
{
    unsigned s[16], x[16];

    for (int k = 0; k < 16; k++)
        x[k] = s[k] = k == 12 ? threadIdx.x + 1 : key[k];
    for (int r = 0; r < 10; r++) {
        for (int k = 0; k < 4; k++)
            quarter(x[k], x[4 + k], x[8 + k], x[12 + k]);
        for (int k = 0; k < 4; k++)
            quarter(x[k], x[4 + (k + 1) % 4], x[8 + (k + 2) % 4],
                    x[12 + (k + 3) % 4]);
    }
    for (int k = 0; k < 16; k++)
        out[threadIdx.x * 16 + k] = x[k] + s[k];
}

int
main()
{
    const std::string a = "a kernel that counts its own changes",
                      b = "the colonel who counted his own chances";
    const int n = (int)a.size(), m = (int)b.size();
    std::vector<std::vector<int>> t(n + 1, std::vector<int>(m + 1));
    Dev<char> da(std::vector<char>(a.begin(), a.end()));
    Dev<char> db(std::vector<char>(b.begin(), b.end()));
    Dev<int> out(1);

    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++)
            t[i][j] = !i || !j
                          ? i + j
                          : std::min(std::min(t[i - 1][j], t[i][j - 1]) + 1,
                                     t[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
    distance<<<1, 32, 3 * (n + 1) * sizeof(int)>>>(da, n, db, m, out);
    EXPECT(out.get()[0] == t[n][m]);

    unsigned table[256];
    for (unsigned i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] =
                table[i] & 1 ? 0xedb88320u ^ table[i] >> 1 : table[i] >> 1;
    }
    CHECK(cudaMemcpyToSymbol(crc_table, table, sizeof table));
    const char *digits = "123456789";
    std::vector<unsigned char> text;
    for (int k = 0; k < 16; k++)
        text.insert(text.end(), digits, digits + 9);
    Dev<unsigned char> dt(text);
    Dev<unsigned> sums(16);
    crc<<<1, 16>>>(dt, 9, sums);
    for (unsigned c : sums.get())
        EXPECT(c == 0xcbf43926u); /* what the definition's authors give */

    /* RFC 8439, 2.3.2: key 00 01 .. 1f, this nonce, counter 1. */
    std::vector<unsigned> key = {0x61707865, 0x3320646e, 0x79622d32,
                                 0x6b206574};
    for (unsigned k = 0; k < 8; k++)
        key.push_back((4 * k + 3) << 24 | (4 * k + 2) << 16 | (4 * k + 1) << 8 |
                      4 * k);
    key.insert(key.end(), {0, 0x09000000, 0x4a000000, 0});
    Dev<unsigned> dk(key), stream(32);
    chacha<<<1, 2>>>(dk, stream);
    std::vector<unsigned> s = stream.get();
    EXPECT(s[0] == 0xe4e7f110 && s[1] == 0x15593bd1 && s[15] == 0x4e3c50a2);
    EXPECT(s[16] != s[0]);
    return done();
}
