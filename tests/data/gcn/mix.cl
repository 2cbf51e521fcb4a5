/* A kernel whose waves all read what others wrote, at every step; see two.cl
 * for how mix_gfx1100.s and mix_gfx1201.s are made. */
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM  __builtin_amdgcn_workitem_id_x()

void
meet(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
mix(global const float *a, global const float *b, global float *c, uint n)
{
    local float t[64];
    uint i = ITEM, at = GROUP * 64 + i;

    t[i] = a[at];
    meet();
    for (uint k = 0; k < 3; k++) {
        float x = t[63 - i] + t[i ^ 32] * b[at];

        meet();
        t[i] = x;
        meet();
    }
    c[at] = t[i ^ 33];
}
