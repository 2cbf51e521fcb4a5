/* ui.c - the user interface: web/index.html, compiled in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/embed.h"
#include "http/srv.h"

/* The page as it lies in web/: no build step, no second copy. */
BR_EMBED("br_ui_page", "web/index.html");
extern const char br_ui_page[], br_ui_page_end[];

void
br_on_ui(br_http *h, br_http_conn *c)
{
    br_http_answer(
        c, 200, "text/html; charset=utf-8",
        "Cache-Control: no-cache\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'\r\n",
        (br_text){br_ui_page, (size_t)(br_ui_page_end - br_ui_page)});
    br_metrics_answer(&h->metrics, 200);
}
