/* serve_kit.h - a server on the fake model, in this process, and a client.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_KIT_H
#define SERVE_KIT_H

#include "engine_kit.h"

#include "base/thread.h"
#include "http/http.h"

typedef struct sk {
    ek ek;
    br_gguf *gguf;
    br_chat *chat;
    br_http *http;
    br_thread thread;
    bool running, tls; /* tls: sk_ask cannot ask */
} sk;

typedef struct sk_config {
    br_lm_fake_config fake;
    br_engine_config engine;
    br_http_config http;  /* host NULL: the defaults, on any port */
    const char *template; /* NULL: the demo model's */
    bool loading;         /* the model does not come yet: sk_ready */
    br_tok *tok;          /* NULL: the fake model; else of engine.lm */
} sk_config;

void sk_open(sk *k, const sk_config *c);
void sk_ready(sk *k);
void sk_close(sk *k);

typedef struct sk_answer { /* kept until the test ends */
    int status;            /* 0: the connection was closed without one */
    char *head, *body;     /* the body without its chunks */
    size_t n_body;
} sk_answer;

int sk_connect(const sk *k);
void sk_send(int fd, const char *p, size_t n);
/* Reads one answer; has_body false: to HEAD. */
sk_answer sk_read(int fd, bool has_body);
/* "POST /path", more header lines or "", a body or NULL; closes. */
sk_answer sk_ask(const sk *k, const char *what, const char *more,
                 const char *body);
/* The text between `from` and `to`, kept; NULL where there is none. */
char *sk_between(const char *in, const char *from, const char *to);

#endif
