/* http_curl.c - see http_get.h; empty without libcurl.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/http_get.h"

#if defined BR_HAVE_CURL

#    include <curl/curl.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <strings.h>

enum {
    CONNECT_SECONDS = 15,
    STALL_SECONDS = 30, /* without a byte */
    MAX_REDIRECTS = 10,
};

typedef struct transfer {
    const br_http_get *g;
    CURL *curl;
    br_http_head head;
    bool told;    /* g->head was called */
    bool stopped; /* a callback said so */
} transfer;

bool
br_http_here(void)
{
    return true;
}

/* Each answer of a chain of redirects begins with its status line. */
static size_t
on_header(char *line, size_t size, size_t n, void *ctx)
{
    transfer *t = ctx;
    unsigned long long first, total;
    char value[128];

    (void)size;
    snprintf(value, sizeof value, "%.*s", (int)BR_MIN(n, sizeof value - 1),
             line);
    value[strcspn(value, "\r\n")] = 0;
    if (strncmp(value, "HTTP/", 5) == 0)
        t->head = (br_http_head){0};
    else if (strncasecmp(value, "content-range: bytes ", 21) == 0 &&
             sscanf(value + 21, "%llu-%*u/%llu", &first, &total) == 2)
        t->head.first = first, t->head.total = total;
    else if (strncasecmp(value, "etag: \"", 7) == 0)
        snprintf(t->head.etag, sizeof t->head.etag, "%s", value + 6);
    return n;
}

static bool
tell(transfer *t)
{
    curl_off_t length = -1;

    if (t->told)
        return !t->stopped;
    t->told = true;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->head.status);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (t->head.status == 200 && length > 0)
        t->head.total = (uint64_t)length;
    t->stopped = !t->g->head(t->g->ctx, &t->head);
    return !t->stopped;
}

static size_t
on_data(char *p, size_t size, size_t n, void *ctx)
{
    transfer *t = ctx;
    long status = 0;

    (void)size;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 300)
        return n; /* the page that says so in words */
    if (tell(t) && !t->g->data(t->g->ctx, p, n))
        t->stopped = true;
    return t->stopped ? 0 : n;
}

static br_http_end
end_of(CURLcode rc)
{
    switch (rc) {
    case CURLE_OK: return BR_HTTP_DONE;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return BR_HTTP_AGAIN;
    default: return BR_HTTP_NEVER;
    }
}

static struct curl_slist *
set_up(transfer *t, char error[CURL_ERROR_SIZE])
{
    const br_http_get *g = t->g;
    bool tls = strncmp(g->url, "https:", 6) == 0;
    struct curl_slist *list = NULL;
    char text[200];
    CURL *c = t->curl;

    curl_easy_setopt(c, CURLOPT_URL, g->url);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    /* What began with TLS is not led away from it. */
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR,
                     tls ? "https" : "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "brass");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    if (g->from) {
        snprintf(text, sizeof text, "%llu-", (unsigned long long)g->from);
        curl_easy_setopt(c, CURLOPT_RANGE, text);
        if (g->if_range) {
            snprintf(text, sizeof text, "If-Range: %s", g->if_range);
            list = curl_slist_append(NULL, text);
            curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
        }
    }
    return list;
}

br_http_end
br_http_fetch(const br_http_get *g, long *status, char why[256])
{
    char error[CURL_ERROR_SIZE] = "";
    transfer t = {.g = g, .curl = curl_easy_init()};
    struct curl_slist *list;
    br_http_end end;
    CURLcode rc;

    *status = 0;
    snprintf(why, 256, "libcurl does not start");
    if (!t.curl)
        return BR_HTTP_NEVER;
    list = set_up(&t, error);
    rc = curl_easy_perform(t.curl);
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, status);
    end = end_of(rc);
    snprintf(why, 256, "%s", *error ? error : curl_easy_strerror(rc));
    /* An empty body calls nobody. */
    if (end == BR_HTTP_DONE && *status < 300)
        (void)tell(&t);
    if (t.stopped)
        end = BR_HTTP_STOPPED;
    if (end == BR_HTTP_DONE &&
        (*status >= 500 || *status == 429 || *status == 408)) {
        snprintf(why, 256, "the server answers %ld", *status);
        end = BR_HTTP_AGAIN;
    }
    curl_slist_free_all(list);
    curl_easy_cleanup(t.curl);
    return end;
}

#endif
