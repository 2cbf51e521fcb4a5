/* safetensors.h - tensors of a Hugging Face folder or of one file.
 *
 *   u64 n | n bytes of JSON | data
 *           {"name": {"dtype": "BF16", "shape": [4096, 1024],
 *                     "data_offsets": [begin, end]}, ...}   from the data's start
 *
 * Files are mapped; opening reads headers only. Every offset, shape and size is
 * checked: data begins where the last tensor ended and ends with the file, so
 * no two tensors share a byte and no byte belongs to none. Several files are
 * joined by model.safetensors.index.json, whose file names may not leave the
 * folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SAFETENSORS_H
#define BR_SAFETENSORS_H

#include "base/base.h"

enum { /* limits, each named in the error that it causes */
       BR_ST_MAX_HEADER = 100 << 20, /* bytes; the format's own */
       BR_ST_MAX_INDEX = 100 << 20,  /* bytes of the index */
       BR_ST_MAX_TENSORS = 1 << 20,  /* in all files */
       BR_ST_MAX_NAME_BYTES = 1024,
       BR_ST_MAX_DIMS = 8,
       BR_ST_MAX_FILES = 1024,
};

typedef enum br_st_dtype {
#define D(name, bits, gguf) BR_ST_##name,
#include "model/st_dtype.def"
#undef D
    BR_ST_DTYPE_COUNT
} br_st_dtype;

const char *br_st_dtype_name(br_st_dtype d);
uint32_t br_st_dtype_bits(br_st_dtype d);
int br_st_dtype_qtype(br_st_dtype d); /* br_qtype; -1: there is none */

typedef struct br_st_tensor {
    br_text name;
    br_st_dtype dtype;
    uint32_t n_dims;
    uint64_t dim[BR_ST_MAX_DIMS]; /* as in the file: the last is contiguous */
    uint64_t bytes;               /* may be 0 */
    const uint8_t *data;          /* no alignment */
    uint32_t file;
} br_st_tensor;

typedef struct br_st br_st;

/* path: a .safetensors file, an index, or a folder with either. */
br_code br_st_open(br_st **out, const char *path, br_status *st) BR_MUST_USE;
/* One file's bytes, which must outlive it: tests and fuzzing. */
br_code br_st_open_mem(br_st **out, const void *p, size_t n,
                       br_status *st) BR_MUST_USE;
void br_st_close(br_st *s);

size_t br_st_n_tensors(const br_st *s);
const br_st_tensor *br_st_tensor_at(const br_st *s, size_t i);
const br_st_tensor *br_st_tensor_find(const br_st *s, br_text name);
uint32_t br_st_n_files(const br_st *s);
bool br_st_reads(const br_st *s, const char *path);

#endif
