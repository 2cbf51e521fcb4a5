/* bind.h - a folder of tensors in, a folder of tensors out.
 *
 *   DIR/manifest.json  {"buffers": [{"id": 0, "dtype": "F32", "shape": [1, 16],
 *                                    "file": "b0.bin"}, ...]}
 *   DIR/b0.bin         raw little-endian, row-major; rows of I4 start on a byte
 *
 * dtype and shape are the file's. What is written has the same form, so the
 * caches of one run can be bound in the next.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_BIND_H
#define BR_MEGA_BIND_H

#include "mega/store.h"

struct br_gguf;

enum { BR_BIND_MAX_MANIFEST_BYTES = 64 << 20 };

/* Binds what the manifest names. Afterwards every WEIGHT, CONST and IO_INPUT
 * has to be bound; a KV_CACHE that is not, or whose file is null, is zeros.
 * Files lie in DIR: absolute paths and ".." are refused. */
br_code br_mega_bind_dir(br_mega_store *s, const char *dir,
                         br_status *st) BR_MUST_USE;
/* Binds every WEIGHT whose `source` is the name of a tensor of the file; others
 * are left to the manifest. Before br_mega_bind_dir, which may replace some. */
br_code br_mega_bind_model(br_mega_store *s, const struct br_gguf *g,
                           br_status *st) BR_MUST_USE;
/* Writes every IO_OUTPUT and KV_CACHE as DIR/<id>.bin, then the manifest with
 * the runner's exec_order and sweeps. Makes DIR, but not its parents. */
br_code br_mega_write_dir(const br_mega_store *s, const br_mega_runner *r,
                          const char *dir, br_status *st) BR_MUST_USE;

#endif
