/* fuzz_safetensors.c - any bytes as a safetensors file.
 *
 * What opens is good for what its table says, and its tensors cover the data
 * exactly once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_status st = {0};
    uint64_t sum = 0, covered = 0;
    br_st *s;

    if (br_st_open_mem(&s, data, size, &st) != BR_OK) {
        br_check(!s && st.msg[0] && "a failure says something");
        return 0;
    }
    for (size_t i = 0; i < br_st_n_tensors(s); i++) {
        const br_st_tensor *t = br_st_tensor_at(s, i);
        uint64_t n = br_st_dtype_bits(t->dtype) / 8;

        for (uint32_t d = 0; d < t->n_dims; d++)
            n *= t->dim[d];
        br_check(n == t->bytes && "the shape says how many bytes");
        br_check(br_st_tensor_find(s, t->name) == t);
        for (size_t k = 0; k < t->bytes; k++)
            sum += t->data[k];
        covered += t->bytes;
    }
    br_check(covered + 8 <= size);
    for (uint64_t i = 0, h = 0; i < 8; i++) {
        h |= (uint64_t)data[i] << 8 * i;
        if (i == 7)
            br_check(covered + 8 + h == size && "every byte once");
    }
    br_check(sum <= 255 * covered);
    br_st_close(s);
    return 0;
}
