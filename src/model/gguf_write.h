/* gguf_write.h - a GGUF file, written front to back.
 *
 *     br_gguf_writer *w = br_gguf_w_new();       NULL: out of memory
 *     br_gguf_w_str(w, "general.architecture", BR_TEXT("llama"));
 *     br_gguf_w_tensor(w, &(br_gguf_w_info){...});     each, in file order
 *     br_gguf_w_begin(w, path, &st);                   header
 *     br_gguf_w_data(w, p, n, &st);                    bytes of all tensors
 *     br_gguf_w_end(w, &st);                           file in place
 *     br_gguf_w_free(w);
 *
 * Setters fail quietly and br_gguf_w_begin reports the first failure, so that
 * a list of keys reads as a list. The same calls give the same bytes. A file
 * that is not ended, or does not get its data, leaves what was there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GGUF_WRITE_H
#define BR_GGUF_WRITE_H

#include "model/gguf.h"

typedef struct br_gguf_writer br_gguf_writer;

br_gguf_writer *br_gguf_w_new(void) BR_MUST_USE;
void br_gguf_w_free(br_gguf_writer *w);

/* ---- metadata: in order of first mention; a key set again keeps its place */

void br_gguf_w_u32(br_gguf_writer *w, const char *key, uint32_t v);
void br_gguf_w_u64(br_gguf_writer *w, const char *key, uint64_t v);
void br_gguf_w_f32(br_gguf_writer *w, const char *key, float v);
void br_gguf_w_bool(br_gguf_writer *w, const char *key, bool v);
void br_gguf_w_str(br_gguf_writer *w, const char *key, br_text v);
/* n values of a type with a size, as they lie in this machine's memory */
void br_gguf_w_array(br_gguf_writer *w, const char *key, br_gguf_type elem,
                     const void *v, size_t n);
void br_gguf_w_strs(br_gguf_writer *w, const char *key, const br_text *v,
                    size_t n);
void br_gguf_w_copy(br_gguf_writer *w, const br_gguf_kv *kv);
void br_gguf_w_remove(br_gguf_writer *w, const char *key);

/* ---- tensors ------------------------------------------------------------ */

typedef struct br_gguf_w_info {
    br_text name;
    int type;
    uint32_t n_dims;
    uint64_t dim[BR_GGUF_MAX_DIMS];
} br_gguf_w_info;

void br_gguf_w_tensor(br_gguf_writer *w, const br_gguf_w_info *t);

/* ---- the file ----------------------------------------------------------- */

br_code br_gguf_w_begin(br_gguf_writer *w, const char *path,
                        br_status *st) BR_MUST_USE;
/* The same into memory; *out takes the bytes as they come. */
br_code br_gguf_w_begin_mem(br_gguf_writer *w, br_str *out,
                            br_status *st) BR_MUST_USE;
/* The next n bytes of tensor data, in any portions; padding is not counted. */
br_code br_gguf_w_data(br_gguf_writer *w, const void *p, size_t n,
                       br_status *st) BR_MUST_USE;
/* Shows check the file, when all data was given: where it says no, the file does
 * not come, and what has its name stays. Not for pipes and devices. */
br_code br_gguf_w_check(br_gguf_writer *w,
                        br_code (*check)(const void *file, size_t n,
                                         br_status *st),
                        br_status *st) BR_MUST_USE;
br_code br_gguf_w_end(br_gguf_writer *w, br_status *st) BR_MUST_USE;

#endif
