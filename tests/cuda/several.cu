/* several.cu - programs of this folder in one, so that clang reads its headers
 * once for all of them: each is a namespace. The arguments say which ones run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <algorithm>
#include <atomic>
#include <cooperative_groups.h>
#include <cuda/std/functional>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <curand_kernel.h>
#include <map>
#include <string.h>
#include <string>

#define main   run
#define done() 0 /* told below */
namespace pipelined
{
#include "pipelined.cu"
}
namespace attention
{
#include "attention.cu"
}
namespace lookback
{
#include "lookback.cu"
}
namespace sparse
{
#include "sparse.cu"
}
namespace fourier
{
#include "fourier.cu"
}
namespace table
{
#include "table.cu"
}
namespace stencil
{
#include "stencil.cu"
}
namespace clusters
{
#include "clusters.cu"
}
namespace string
{
#include "string.cu"
}
namespace solvers
{
#include "solvers.cu"
}
namespace graphs
{
#include "graphs.cu"
}
namespace pools
{
#include "pools.cu"
}
namespace chunks
{
#include "chunks.cu"
}
namespace functors
{
#include "functors.cu"
}
namespace rays
{
#include "rays.cu"
}
namespace gpt2
{
#include "gpt2.cu"
}
namespace merging
{
#include "merging.cu"
}
namespace softmax
{
#include "softmax.cu"
}
namespace cells
{
#include "cells.cu"
}
namespace games
{
#include "games.cu"
}
#undef main
#undef done

static const struct {
    const char *name;
    int (*run)();
} programs[] = {{"pipelined", pipelined::run}, {"attention", attention::run},
                {"lookback", lookback::run},   {"sparse", sparse::run},
                {"fourier", fourier::run},     {"table", table::run},
                {"stencil", stencil::run},     {"clusters", clusters::run},
                {"string", string::run},       {"solvers", solvers::run},
                {"graphs", graphs::run},       {"pools", pools::run},
                {"chunks", chunks::run},       {"functors", functors::run},
                {"rays", rays::run},           {"gpt2", gpt2::run},
                {"merging", merging::run},     {"softmax", softmax::run},
                {"cells", cells::run},         {"games", games::run}};

int main(int n, char **args)
{
    for (const auto &p : programs) {
        int before = failures;

        bool named = n == 1;
        for (int k = 1; k < n; k++)
            named |= strcmp(args[k], p.name) == 0;
        if (named)
            p.run();
        if (failures > before)
            fprintf(stderr, "%s: %d checks failed\n", p.name, failures - before);
    }
    return done();
}
