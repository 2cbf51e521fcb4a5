/* rand_calls.c - cuRAND: each call is checked and becomes a job of its stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/rand/rand.h"

enum { RAND_MAGIC = 0x5a1d, RAND_MAX_LAMBDA = 400000 };

struct curandGenerator_st {
    int magic;
    bool host;  /* fills memory of the host, at once */
    bool fresh; /* the next job begins at start */
    cudaStream_t stream;
    rand_start start;
    rand_engine *engine;
};

static bool
is(curandGenerator_t g)
{
    return g && g->magic == RAND_MAGIC;
}
static bool
quasi(curandGenerator_t g)
{
    return g->engine->type >= CURAND_RNG_QUASI_SOBOL32;
}

/* ---- generators --------------------------------------------------------- */

static curandStatus_t
create(curandGenerator_t *out, curandRngType_t type, bool host)
{
    curandGenerator_t g;

    if (!out)
        return CURAND_STATUS_TYPE_ERROR;
    switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT: type = CURAND_RNG_PSEUDO_XORWOW; break;
    case CURAND_RNG_QUASI_DEFAULT: type = CURAND_RNG_QUASI_SOBOL32; break;
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64: break;
    default: return CURAND_STATUS_TYPE_ERROR;
    }
    g = br_try_calloc(1, sizeof *g);
    if (g)
        g->engine = br_try_calloc(1, sizeof *g->engine);
    if (!g || !g->engine) {
        br_free(g);
        return CURAND_STATUS_ALLOCATION_FAILED;
    }
    g->magic = RAND_MAGIC;
    g->host = host;
    g->fresh = true;
    g->engine->type = type;
    g->start.dims = 1;
    *out = g;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
    return create(generator, type, false);
}

curandStatus_t
curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type)
{
    return create(generator, type, true);
}

/* Until its jobs are done, the engine is theirs. */
static void
settle(curandGenerator_t g)
{
    bc_lock();
    if (!g->host && bc_stream_of(g->stream))
        bc_stream_sync(g->stream);
    bc_unlock();
}

curandStatus_t
curandDestroyGenerator(curandGenerator_t g)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    settle(g);
    g->magic = 0;
    br_free(g->engine->directions);
    br_free(g->engine);
    br_free(g);
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandGetVersion(int *version)
{
    if (!version)
        return CURAND_STATUS_OUT_OF_RANGE;
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandGetProperty(libraryPropertyType type, int *value)
{
    static const int part[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR,
                               CURAND_VER_PATCH};

    if (!value || (unsigned)type > PATCH_LEVEL)
        return CURAND_STATUS_OUT_OF_RANGE;
    *value = part[type];
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandSetStream(curandGenerator_t g, cudaStream_t stream)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    settle(g);
    g->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    if (quasi(g))
        return CURAND_STATUS_TYPE_ERROR;
    g->start.seed = seed;
    g->fresh = true;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    if (g->engine->type == CURAND_RNG_PSEUDO_MT19937)
        return CURAND_STATUS_TYPE_ERROR;
    g->start.offset = offset;
    g->fresh = true;
    return CURAND_STATUS_SUCCESS;
}

/* There is one order for each generator, which all of these allow. */
curandStatus_t
curandSetGeneratorOrdering(curandGenerator_t g, curandOrdering_t order)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    if (quasi(g) != (order == CURAND_ORDERING_QUASI_DEFAULT) ||
        (!quasi(g) && (order < CURAND_ORDERING_PSEUDO_BEST ||
                       order > CURAND_ORDERING_PSEUDO_DYNAMIC)))
        return CURAND_STATUS_OUT_OF_RANGE;
    g->fresh = true;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandSetQuasiRandomGeneratorDimensions(curandGenerator_t g, unsigned int dims)
{
    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    if (!quasi(g))
        return CURAND_STATUS_TYPE_ERROR;
    if (dims < 1 || dims > RAND_MAX_DIM)
        return CURAND_STATUS_OUT_OF_RANGE;
    g->start.dims = dims;
    g->fresh = true;
    return CURAND_STATUS_SUCCESS;
}

/* States are made with the first numbers; nothing is left to do before. */
curandStatus_t
curandGenerateSeeds(curandGenerator_t g)
{
    return is(g) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

/* ---- jobs --------------------------------------------------------------- */

typedef struct task {
    rand_job job;
    rand_start start;
    size_t bytes;
} task;

static cudaError_t
run(void *payload)
{
    task *t = payload;
    bool ok;

    bc_lock();
    ok = t->job.out && bc_mem_fits(t->job.out, t->bytes);
    bc_unlock();
    if (!ok)
        return cudaErrorIllegalAddress;
    if (t->job.start)
        t->job.start = &t->start;
    return rand_fill(&t->job) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* A captured job would outlive its generator, so capturing is refused. */
static curandStatus_t
issue(curandGenerator_t g, const task *t)
{
    struct CUstream_st *s;
    task *p = NULL;
    cudaError_t e = cudaErrorInvalidResourceHandle;

    bc_lock();
    s = bc_stream_of(g->stream);
    if (s && s->capture)
        e = cudaErrorStreamCaptureUnsupported;
    else if (s && !(p = bc_op_new(sizeof *p, run)))
        e = cudaErrorMemoryAllocation;
    if (p) {
        *p = *t;
        e = bc_issue(s, p);
    }
    bc_unlock();
    return e == cudaSuccess                 ? CURAND_STATUS_SUCCESS
           : e == cudaErrorMemoryAllocation ? CURAND_STATUS_ALLOCATION_FAILED
                                            : CURAND_STATUS_LAUNCH_FAILURE;
}

static curandStatus_t
generate(curandGenerator_t g, rand_job j, size_t element)
{
    bool normal = j.kind == RAND_NORMAL || j.kind == RAND_LOG_NORMAL;
    task t = {.job = j};
    curandStatus_t status;

    if (!is(g))
        return CURAND_STATUS_NOT_INITIALIZED;
    if ((j.kind == RAND_BITS64) !=
            (g->engine->type == CURAND_RNG_QUASI_SOBOL64 &&
             j.kind <= RAND_BITS64) ||
        (j.kind == RAND_POISSON && quasi(g)))
        return CURAND_STATUS_TYPE_ERROR;
    if ((normal && !(j.b >= 0)) ||
        (j.kind == RAND_POISSON && !(j.a > 0 && j.a <= RAND_MAX_LAMBDA)))
        return CURAND_STATUS_OUT_OF_RANGE;
    if (quasi(g) ? j.n % g->start.dims : normal && j.n % 2)
        return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    if (j.n == 0)
        return CURAND_STATUS_SUCCESS;
    if (j.n > SIZE_MAX / element)
        return CURAND_STATUS_LAUNCH_FAILURE;
    t.bytes = j.n * element;
    t.job.e = g->engine;
    t.start = g->start;
    t.job.start = g->fresh ? &t.start : NULL;
    if (g->host)
        status = !j.out              ? CURAND_STATUS_LAUNCH_FAILURE
                 : rand_fill(&t.job) ? CURAND_STATUS_SUCCESS
                                     : CURAND_STATUS_ALLOCATION_FAILED;
    else
        status = issue(g, &t);
    if (status == CURAND_STATUS_SUCCESS)
        g->fresh = false;
    return status;
}

#define JOB(...) \
    generate(g, (rand_job){.out = out, .n = n, __VA_ARGS__}, sizeof *out)

curandStatus_t
curandGenerate(curandGenerator_t g, unsigned int *out, size_t n)
{
    return JOB(.kind = RAND_BITS);
}

curandStatus_t
curandGenerateLongLong(curandGenerator_t g, unsigned long long *out, size_t n)
{
    return JOB(.kind = RAND_BITS64);
}

curandStatus_t
curandGenerateUniform(curandGenerator_t g, float *out, size_t n)
{
    return JOB(.kind = RAND_UNIFORM);
}

curandStatus_t
curandGenerateUniformDouble(curandGenerator_t g, double *out, size_t n)
{
    return JOB(.kind = RAND_UNIFORM, .wide = true);
}

curandStatus_t
curandGenerateNormal(curandGenerator_t g, float *out, size_t n, float mean,
                     float stddev)
{
    return JOB(.kind = RAND_NORMAL, .a = (double)mean, .b = (double)stddev);
}

curandStatus_t
curandGenerateNormalDouble(curandGenerator_t g, double *out, size_t n,
                           double mean, double stddev)
{
    return JOB(.kind = RAND_NORMAL, .wide = true, .a = mean, .b = stddev);
}

curandStatus_t
curandGenerateLogNormal(curandGenerator_t g, float *out, size_t n, float mean,
                        float stddev)
{
    return JOB(.kind = RAND_LOG_NORMAL, .a = (double)mean, .b = (double)stddev);
}

curandStatus_t
curandGenerateLogNormalDouble(curandGenerator_t g, double *out, size_t n,
                              double mean, double stddev)
{
    return JOB(.kind = RAND_LOG_NORMAL, .wide = true, .a = mean, .b = stddev);
}

curandStatus_t
curandGeneratePoisson(curandGenerator_t g, unsigned int *out, size_t n,
                      double lambda)
{
    return JOB(.kind = RAND_POISSON, .a = lambda);
}

/* ---- direction vectors: 13 MB that cost nothing until asked for --------- */

static uint64_t rows64[RAND_MAX_DIM][64];
static curandDirectionVectors32_t rows32[RAND_MAX_DIM];
_Static_assert(sizeof rows64 ==
                   RAND_MAX_DIM * sizeof(curandDirectionVectors64_t),
               "one is handed out as the other");

static void
directions(void)
{
    bc_lock();
    if (!rows64[0][0])
        rand_sobol(RAND_MAX_DIM, rows64);
    for (unsigned d = 0; d < RAND_MAX_DIM && !rows32[d][0]; d++)
        for (unsigned k = 0; k < 32; k++)
            rows32[d][k] = (unsigned)(rows64[d][k] >> 32);
    bc_unlock();
}

curandStatus_t
curandGetDirectionVectors32(curandDirectionVectors32_t **vectors,
                            curandDirectionVectorSet_t set)
{
    if (!vectors || set != CURAND_DIRECTION_VECTORS_32_JOEKUO6)
        return CURAND_STATUS_OUT_OF_RANGE;
    directions();
    *vectors = rows32;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t
curandGetDirectionVectors64(curandDirectionVectors64_t **vectors,
                            curandDirectionVectorSet_t set)
{
    if (!vectors || set != CURAND_DIRECTION_VECTORS_64_JOEKUO6)
        return CURAND_STATUS_OUT_OF_RANGE;
    directions();
    *vectors = (curandDirectionVectors64_t *)rows64;
    return CURAND_STATUS_SUCCESS;
}
