/* quant.c - the table of number formats, and the way in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/quant_int.h"

#include <strings.h>

static const br_qinfo infos[BR_Q_LIMIT] = {
#define Q(name, code, elems, bytes, flags) \
    [code] = {#name, (elems), (bytes), (flags)},
#include "model/qtype.def"
#undef Q
};

static void (*const decoders[BR_Q_LIMIT])(const uint8_t *p, float *y,
                                          size_t blocks) = {
#define Q(name, code, elems, bytes, flags) [code] = br_dq_##name,
#include "model/qtype.def"
#undef Q
};

const br_qinfo *
br_qinfo_of(int type)
{
    static const br_qinfo none = {.name = NULL};

    return type >= 0 && type < BR_Q_LIMIT ? &infos[type] : &none;
}

int
br_qtype_find(br_text name)
{
    for (int i = 0; i < BR_Q_LIMIT; i++)
        if (infos[i].name && strlen(infos[i].name) == name.n &&
            strncasecmp(infos[i].name, name.p, name.n) == 0)
            return i;
    return -1;
}

bool
br_qtype_bytes(int type, uint64_t n, uint64_t *out)
{
    const br_qinfo *q = br_qinfo_of(type);

    return q->name && n % q->elems == 0 &&
           !__builtin_mul_overflow(n / q->elems, (uint64_t)q->bytes, out);
}

void
br_dequant(int type, const void *src, float *dst, size_t n)
{
    const br_qinfo *q = br_qinfo_of(type);

    br_check(q->name && "a format of the table");
    br_check(n % q->elems == 0 && "whole blocks");
    decoders[type](src, dst, n / q->elems);
}
