/* kprint.h - printf of kernels: a format and arguments that lie elsewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KPRINT_H
#define BR_KPRINT_H

#include "base/base.h"

enum { BR_KPRINT_MAX = 4096 }; /* bytes of a format, of a text of %s */

/* Both false: it cannot be read, and br_kprint ends with false. */
typedef struct br_kprint_from {
    bool (*arg)(void *ctx, bool wide, uint64_t *v); /* 8 bytes, else 4 */
    bool (*text)(void *ctx, uint64_t v, char *buf, size_t size); /* of %s */
    void *ctx;
} br_kprint_from;
bool br_kprint(br_str *out, const char *format, const br_kprint_from *from);

#endif
