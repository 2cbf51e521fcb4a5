/* net_internal.h - shared by net.c, net_json.c, net_model.c and the lowering.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_NET_INTERNAL_H
#define BR_MEGA_NET_INTERNAL_H

#include "mega/net.h"

enum { /* the attrs column of net_op.def */
       A_EPS = 1,
       A_THETA = 2,
       A_SCALE = 4,
       A_HEADS = 8,
       A_KV_HEADS = 16,
       A_HEAD_DIM = 32,
       A_WHICH = 64,
};

unsigned br_net_op_attrs(br_net_op op);
/* Sets rank, shape and headed of o. */
void br_net_heads_shape(const br_mega_net *n, bool is_query, int64_t heads,
                        int64_t head_dim, br_net_tensor *o);

#endif
