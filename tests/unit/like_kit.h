/* like_kit.h - models like another, but larger, in memory that is never written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIKE_KIT_H
#define LIKE_KIT_H

#include "model/gguf.h"

typedef struct like {
    const char *arch;
    uint32_t layers; /* all as the first */
    uint32_t rows;   /* of experts, five of them; 0: as they are */
    uint32_t ff;     /* so wide is the widest; 0: as they are */
    bool narrows;    /* that is the first, else the last */
} like;

/* A model like that of g but for what k says; weights are zeros. munmap(., *n) ends it.
 * NULL where there are no addresses for it. */
uint8_t *model_like(const br_gguf *g, const like *k, size_t *n);

#endif
