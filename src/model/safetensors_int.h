/* safetensors_int.h - one file's header, and the set it belongs to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SAFETENSORS_INT_H
#define BR_SAFETENSORS_INT_H

#include "base/map.h"
#include "model/safetensors.h"

struct br_st {
    br_arena arena; /* names */
    BR_VEC(br_st_tensor) tensors;
    br_map names; /* -> index in tensors */
    br_file_map *files;
    uint32_t n_files;
    bool named; /* the failure names its file already */
};

/* Adds the tensors of one file, checked. */
br_code br_st_parse(br_st *s, const uint8_t *p, size_t n, uint32_t file,
                    br_status *st);

#endif
