/* http_parse.h - one HTTP/1.x request out of bytes that come as they like.
 *
 *   bytes --> head (request line, headers) --> body (length or chunks) --> DONE
 *
 * Strict where two readers of one request could disagree about its end, which
 * is what request smuggling lives on: lines end in CR LF, no folded headers,
 * no blank before a colon, one Content-Length or one Transfer-Encoding and
 * never both, the coding chunked and no other. Every size is limited. A whole
 * request and one byte at a time give the same result; a test and a fuzzer
 * hold the two against each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP_PARSE_H
#define BR_HTTP_PARSE_H

#include "base/base.h"

enum {
    BR_HTTP_MAX_HEAD = 16 << 10, /* request line, headers, blank line */
    BR_HTTP_MAX_HEADERS = 64,
    BR_HTTP_MAX_METHOD = 16,
    BR_HTTP_MAX_CHUNK_LINE = 256,
};

typedef enum br_http_got {
    BR_HTTP_MORE, /* all bytes used, the request goes on */
    BR_HTTP_DONE, /* complete; bytes after it are not used */
    BR_HTTP_BAD,  /* status and why say what is wrong; of no more use */
} br_http_got;

typedef struct br_http_header {
    br_text name, value; /* the name as written */
} br_http_header;

typedef struct br_http_parser {
    size_t max_body;
    br_str head;
    br_str body;
    br_str between;       /* a line between chunks */
    uint32_t state;       /* private */
    uint64_t left;        /* bytes of the body or of its chunk to come */
    size_t line;          /* where the line at hand begins in head */
    br_text method, path; /* path: up to the '?'; into head */
    br_text query;
    br_text host;
    br_http_header headers[BR_HTTP_MAX_HEADERS];
    uint32_t n_headers, n_trailers;
    int minor;       /* of HTTP/1.x */
    bool keep_alive; /* the client would like the connection to stay */
    bool chunked;    /* the body comes in chunks */
    bool wants_100;  /* Expect: 100-continue, and a body follows */
    bool empty_line; /* private: one came before the request */
    bool head_done;  /* everything above can be read */
    int status;      /* of BAD: 400, 413, 431, 501, 505... */
    const char *why; /* of BAD */
} br_http_parser;

void br_http_parser_init(br_http_parser *p, size_t max_body_bytes);
/* Ready for the next request; keeps no memory. */
void br_http_parser_reset(br_http_parser *p);
void br_http_parser_fini(br_http_parser *p);
/* Reads on. *used: how many bytes were part of this request. */
br_http_got br_http_parser_feed(br_http_parser *p, const char *at, size_t n,
                                size_t *used);
/* A request has begun but is not complete. */
bool br_http_parser_busy(const br_http_parser *p);
/* The value of the first header of that name (lower case); p NULL: none. */
br_text br_http_header_of(const br_http_parser *p, const char *name);
/* Whether a list such as "close, Upgrade" has a word (lower case). */
bool br_http_list_has(br_text list, const char *word);
/* A word of a path as it was before it became part of an URL: %2F is a slash.
 * False: it has `size` bytes or more, a NUL, or a % before no two digits. */
bool br_http_word(br_text word, char *out, size_t size);
bool br_http_same(br_text a, const char *lower); /* letters of either case */

#endif
