/* Two kernels for AMD GPUs; two_gfx1100.s and two_gfx1201.s are what
 *     clang-19 --target=amdgcn-amd-amdhsa -mcpu=CPU -mcode-object-version=5
 *         -O2 -nogpulib -x cl -cl-std=CL2.0 two.cl -S
 * makes of them. */
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM  __builtin_amdgcn_workitem_id_x()

constant float scale[4] = {1, 2, 3, 5};

kernel void
vadd(global const float *a, global const float *b, global float *c, uint n)
{
    uint i = GROUP * 64 + ITEM;

    if (i < n)
        c[i] = a[i] + b[i] * scale[ITEM % 4];
}

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
reduce(global const float *a, global float *c)
{
    local float t[64];
    uint i = ITEM;

    t[i] = a[GROUP * 64 + i];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (uint k = 32; k; k >>= 1) {
        if (i < k)
            t[i] += t[i + k];
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    }
    if (i == 0)
        c[GROUP] = t[0];
}
