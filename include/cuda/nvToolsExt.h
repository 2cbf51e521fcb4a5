/* nvToolsExt.h - marks for a profiler. There is none here, and each function says
 * so as it does on a machine where no tool listens.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_NV_TOOLS_EXT_H
#define BRASS_NV_TOOLS_EXT_H
#include <stddef.h>
#include <stdint.h>

#define NVTX_VERSION                  3
#define NVTX_NO_PUSH_POP_TRACKING     ((int)-2)
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
enum { NVTX_COLOR_UNKNOWN, NVTX_COLOR_ARGB };
enum {
    NVTX_MESSAGE_UNKNOWN,
    NVTX_MESSAGE_TYPE_ASCII,
    NVTX_MESSAGE_TYPE_UNICODE
};
typedef uint64_t nvtxRangeId_t;
typedef struct nvtxEventAttributes_v2 {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
    } payload;
    int32_t messageType;
    union {
        const char *ascii;
        const wchar_t *unicode;
    } message;
} nvtxEventAttributes_t;

static inline int
nvtxRangePushA(const char *name)
{
    (void)name;
    return NVTX_NO_PUSH_POP_TRACKING;
}
static inline int
nvtxRangePushEx(const nvtxEventAttributes_t *a)
{
    (void)a;
    return NVTX_NO_PUSH_POP_TRACKING;
}
static inline int
nvtxRangePop(void)
{
    return NVTX_NO_PUSH_POP_TRACKING;
}
static inline nvtxRangeId_t
nvtxRangeStartA(const char *name)
{
    (void)name;
    return 0;
}
static inline nvtxRangeId_t
nvtxRangeStartEx(const nvtxEventAttributes_t *a)
{
    (void)a;
    return 0;
}
static inline void
nvtxRangeEnd(nvtxRangeId_t id)
{
    (void)id;
}
static inline void
nvtxMarkA(const char *name)
{
    (void)name;
}
static inline void
nvtxMarkEx(const nvtxEventAttributes_t *a)
{
    (void)a;
}
#define nvtxRangePush  nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxMark       nvtxMarkA
#endif
