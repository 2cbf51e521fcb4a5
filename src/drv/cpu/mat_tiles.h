/* mat_tiles.h - the end of each file of kernels: tile(), which the including
 * file has written for any format, becomes one function per format, and
 * MAT_TILES picks among them. Formats without a row go to MAT_REST(t).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_TILES_H
#define BR_MAT_TILES_H

#define F(name, ...)                                                     \
    __attribute__((noinline)) static void tile_##name(const mat_tile *t) \
    {                                                                    \
        tile(t, BR_Q_##name);                                            \
    }
#include "drv/cpu/mat_format.def"
#undef F

void
MAT_TILES(const mat_tile *t)
{
    switch (t->m->type) {
#define F(name, ...) \
case BR_Q_##name:    \
    tile_##name(t);  \
    return;
#include "drv/cpu/mat_format.def"
#undef F
    default: MAT_REST(t);
    }
}

#endif
