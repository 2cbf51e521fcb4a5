/* drv_link.c - the driver API: linking at run time.
 *
 * What is linked is PTX: files are kept as text, and the "machine code" that
 * comes out is the text of all, which cuModuleLoadData takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include "cg/ptx/ptx.h"
#include "cuda/ptx_join.h"

#include <string.h>

struct CUlinkState_st {
    BR_VEC(br_text) files;
    BR_VEC(char *) owned;
    br_str out;
};

/* The value of an option; NULL: it is not there. */
static void **
value_of(unsigned n, const CUjit_option *options, void **values,
         CUjit_option option)
{
    for (unsigned k = 0; k < n && options && values; k++)
        if (options[k] == option)
            return &values[k];
    return NULL;
}

/* The size is a number in the place of an address: how much room there is, and then how
 * much of it is filled. */
static void
log_into(void **buffer, void **size, const char *text)
{
    size_t room = size ? (unsigned)(uintptr_t)*size : 0, filled = 0;
    char *to = buffer ? *buffer : NULL;

    if (to && room) {
        filled = BR_MIN(strlen(text), room - 1);
        memcpy(to, text, filled);
        to[filled] = 0;
    }
    if (size)
        *size = (void *)(uintptr_t)filled;
}

void
bd_log(unsigned n, const CUjit_option *options, void **values, const char *why)
{
    log_into(value_of(n, options, values, CU_JIT_ERROR_LOG_BUFFER),
             value_of(n, options, values, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES),
             why);
    log_into(value_of(n, options, values, CU_JIT_INFO_LOG_BUFFER),
             value_of(n, options, values, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES),
             "");
}

CUresult
cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values,
                CUlinkState *out)
{
    CUresult e = bd_begin();

    if (e != CUDA_SUCCESS || !out)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    bd_log(n, options, values, "");
    *out = br_try_calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Takes the text, which is the state's. */
static CUresult
keep(CUlinkState s, char *owned, br_text ptx)
{
    if (br_vec_push(&s->owned, owned)) {
        if (br_vec_push(&s->files, ptx))
            return CUDA_SUCCESS;
        s->owned.n--;
    }
    br_free(owned);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
add(CUlinkState s, CUjitInputType type, const void *data, size_t n)
{
    br_status st = {0};
    br_text ptx = {data, n};
    char *owned = NULL, *copy;

    if (!s || !data || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_FATBINARY) {
        if (br_fatbin_ptx(data, n, &ptx, &owned, &st) != BR_OK) {
            bc_say("%s", st.msg);
            return CUDA_ERROR_INVALID_IMAGE;
        }
    } else if (type != CU_JIT_INPUT_PTX) {
        bc_say("only PTX can be linked here");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    copy = br_try_alloc(ptx.n + 1);
    if (copy) {
        memcpy(copy, ptx.p, ptx.n);
        copy[ptx.n] = 0;
    }
    br_free(owned);
    return copy ? keep(s, copy, br_text_z(copy)) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuLinkAddData_v2(CUlinkState s, CUjitInputType type, void *data, size_t n,
                 const char *name, unsigned int n_options,
                 CUjit_option *options, void **values)
{
    CUresult e = bd_begin();

    (void)name;
    bd_log(n_options, options, values, "");
    return e == CUDA_SUCCESS ? add(s, type, data, n) : e;
}

CUresult
cuLinkAddFile_v2(CUlinkState s, CUjitInputType type, const char *path,
                 unsigned int n_options, CUjit_option *options, void **values)
{
    CUresult e = bd_begin();
    br_status st = {0};
    char *text;
    size_t n;

    bd_log(n_options, options, values, "");
    if (e != CUDA_SUCCESS || !s || !path)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    if (br_file_read(path, BR_PTX_MAX_BYTES, &text, &n, &st) != BR_OK) {
        bc_say("%s", st.msg);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    e = add(s, type, text, n);
    br_free(text);
    return e;
}

CUresult
cuLinkComplete(CUlinkState s, void **image, size_t *n)
{
    CUresult e = bd_begin();
    br_status st = {0};

    if (e != CUDA_SUCCESS || !s || !image || !s->files.n)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    br_str_fini(&s->out);
    s->out = (br_str){0};
    if (s->files.n == 1)
        br_str_put(&s->out, s->files.at[0].p, s->files.at[0].n);
    else if (br_ptx_join(s->files.at, s->files.n, &s->out, &st) != BR_OK) {
        bc_say("%s", st.msg);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    br_str_putc(&s->out, 0);
    *image = s->out.at;
    if (n)
        *n = s->out.n;
    return *image ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuLinkDestroy(CUlinkState s)
{
    CUresult e = bd_begin();

    if (e != CUDA_SUCCESS || !s)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < s->owned.n; k++)
        br_free(s->owned.at[k]);
    br_vec_fini(&s->owned);
    br_vec_fini(&s->files);
    br_str_fini(&s->out);
    br_free(s);
    return CUDA_SUCCESS;
}
