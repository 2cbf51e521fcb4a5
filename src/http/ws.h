/* ws.h - WebSocket frames (RFC 6455), the server's side.
 *
 *   bytes --> frames, unmasked --> messages, pings, the end
 *
 * Strict: frames of clients are masked, no reserved bits or opcodes, lengths in
 * their shortest form, control frames whole and of at most 125 bytes, texts
 * UTF-8. In any pieces the same comes out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_WS_H
#define BR_WS_H

#include "base/base.h"

enum {
    BR_WS_TEXT = 1,
    BR_WS_BINARY = 2,
    BR_WS_CLOSE = 8,
    BR_WS_PING = 9,
    BR_WS_PONG = 10,
    BR_WS_ACCEPT = 28, /* characters */
};

typedef enum br_ws_got {
    BR_WS_MORE,
    BR_WS_MESSAGE, /* in message, with its kind */
    BR_WS_ASKED,   /* a ping, in control: wants a pong of the same */
    BR_WS_OVER,    /* the client has said good-bye; control: its reason */
    BR_WS_BAD,     /* code and why; of no more use */
} br_ws_got;

typedef struct br_ws {
    size_t max_message;
    br_str message;
    uint8_t kind;     /* of the message; 0: none has begun */
    bool taken;       /* private: the message was handed out */
    uint8_t head[14]; /* private, as all below */
    uint8_t n_head, need, opcode, at_mask, n_control;
    bool fin;
    uint64_t left;
    char control[125];
    uint16_t code;
    const char *why;
} br_ws;

/* Reads on. *used: how many bytes. The message lasts until the next call. */
br_ws_got br_ws_feed(br_ws *w, const char *p, size_t n, size_t *used);
void br_ws_fini(br_ws *w);
/* A whole message, or a control frame. */
void br_ws_put(br_str *out, uint8_t opcode, const void *p, size_t n);
void br_ws_put_close(br_str *out, uint16_t code, const char *why);
/* The answer to Sec-WebSocket-Key. */
void br_ws_accept(br_text key, br_str *out);

#endif
