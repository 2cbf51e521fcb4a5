/* opencl.c - an OpenCL kernel as the C function that `brass kernel bench --against`
 * calls. Built once a kernel by pocl.sh:
 *
 *   -DNAME=vadd -DGLOBAL=1048576,1 -DLOCAL=256,1 -DSOURCE='"all.cl"'
 *   -DARGS='"rand:4194304 u32:1048576"'     as of the command line
 *
 * Buffers are the memory that the bench gives, not copies of it. Of a program
 * (-DPROBE) it says on which device it would run, or exits with 1.
 * SPDX-License-Identifier: Apache-2.0 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_device_id device;

static void
must(cl_int code, const char *what)
{
    if (code == CL_SUCCESS)
        return;
    fprintf(stderr, "OpenCL: %s: error %d\n", what, (int)code);
    exit(1);
}

static void
find_device(void)
{
    cl_platform_id p;
    cl_uint n = 0;

    if (clGetPlatformIDs(1, &p, &n) != CL_SUCCESS || n == 0 ||
        clGetDeviceIDs(p, CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS)
        device = NULL;
}

#ifdef PROBE
int
main(void)
{
    char name[256] = "", version[256] = "";

    find_device();
    if (!device)
        return 1;
    must(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL),
         "name");
    must(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version,
                         NULL),
         "version");
    printf("%s; %s\n", version, name);
    return 0;
}
#else

void NAME(void *const *args);

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static char *
source(void)
{
    FILE *f = fopen(SOURCE, "rb");
    char *s = calloc(1, 1 << 20);

    must(f && s && fread(s, 1, (1 << 20) - 1, f) ? CL_SUCCESS : -1, SOURCE);
    fclose(f);
    return s;
}

static void
build(void)
{
    cl_int e;
    const char *text = source();
    cl_program p;
    char log[4096] = "";

    find_device();
    must(device ? CL_SUCCESS : -1, "no device");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
    must(e, "context");
    queue = clCreateCommandQueue(context, device, 0, &e);
    must(e, "queue");
    p = clCreateProgramWithSource(context, 1, &text, NULL, &e);
    must(e, "program");
    e = clBuildProgram(p, 1, &device, FLAGS, NULL, NULL);
    if (e != CL_SUCCESS)
        clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1,
                              log, NULL);
    must(e, log);
#    define TEXT(x)  TEXT_(x)
#    define TEXT_(x) #    x
    kernel = clCreateKernel(p, TEXT(NAME), &e);
    must(e, TEXT(NAME));
}

static void
set_args(void *const *args)
{
    char list[] = ARGS, *rest = NULL, *a = strtok_r(list, " ", &rest);

    for (cl_uint k = 0; a; k++, a = strtok_r(NULL, " ", &rest)) {
        size_t bytes = strtoull(strchr(a, ':') + 1, NULL, 10);
        cl_int e;
        cl_mem m;

        if (strncmp(a, "rand:", 5) != 0 && strncmp(a, "buf:", 4) != 0) {
            must(clSetKernelArg(kernel, k, 4, args[k]), "argument");
            continue;
        }
        m = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           bytes, *(void *const *)args[k], &e);
        must(e, "buffer");
        must(clSetKernelArg(kernel, k, sizeof m, &m), "argument");
    }
}

void
NAME(void *const *args)
{
    size_t global[] = {GLOBAL}, local[] = {LOCAL};

    if (!kernel) {
        build();
        set_args(args);
    }
    must(clEnqueueNDRangeKernel(queue, kernel, sizeof local / sizeof *local,
                                NULL, global, local, 0, NULL, NULL),
         "launch");
    must(clFinish(queue), "finish");
}
#endif
