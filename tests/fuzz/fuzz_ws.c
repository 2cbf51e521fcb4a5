/* fuzz_ws.c - any bytes as frames of a WebSocket client.
 *
 * In pieces of the size that the first byte says they are heard as they are in
 * one piece: the same messages, pings and end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 2000 };

static void
hear(br_str *out, const char *p, size_t n, size_t piece)
{
    br_ws w = {.max_message = MOST};
    br_ws_got got = BR_WS_MORE;

    for (size_t i = 0; i < n && got != BR_WS_BAD && got != BR_WS_OVER;) {
        size_t used = 0, some = BR_MIN(piece, n - i);

        got = br_ws_feed(&w, p + i, some, &used);
        br_check(used <= some && (used == some || got != BR_WS_MORE));
        i += used;
        if (got == BR_WS_MESSAGE) {
            br_check(w.message.n <= MOST);
            br_ws_put(out, w.kind, br_str_z(&w.message), w.message.n);
        } else if (got == BR_WS_ASKED) {
            br_ws_put(out, BR_WS_PONG, w.control, w.n_control);
        } else if (got == BR_WS_BAD) {
            br_ws_put_close(out, w.code, w.why);
        } else if (got == BR_WS_OVER) {
            br_ws_put_close(out, 1000, "");
        }
    }
    br_ws_fini(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_str a = {0}, b = {0};
    br_str accept = {0};

    if (size < 1 || size > 4096)
        return 0;
    hear(&a, (const char *)data + 1, size - 1, size);
    hear(&b, (const char *)data + 1, size - 1, 1 + data[0] % 8);
    br_check(a.n == b.n && (!a.n || memcmp(a.at, b.at, a.n) == 0));
    br_ws_accept((br_text){(const char *)data, size}, &accept);
    br_check(accept.n == BR_WS_ACCEPT);
    br_str_fini(&accept);
    br_str_fini(&a);
    br_str_fini(&b);
    return 0;
}
