/* http_kit.h - a small HTTP server that misbehaves on request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_KIT_H
#define HTTP_KIT_H

#include <stddef.h>

/* Serves the bytes p[0..n) at every path; its first letters say how:
 *
 *   /ok...      as it should
 *   /drop...    hangs up after a third of the file, however often one asks
 *   /whole...   hangs up the first time, knows no ranges
 *   /wrong...   a byte of it is another
 *   /long...    more than was announced nowhere: no length, n + 1000 bytes
 *   /short...   no length, half of it
 *   /busy...    503 the first two times
 *   /dead...    503 always
 *   /moved...   302 to /ok...
 *   /html...    200 and a page
 *   /else...    206 from a place nobody asked for
 *   /none...    404
 *   /files/...  the file of that name in the folder "files" of the test's own,
 *               hanging up after a third of it
 *
 * A process of its own, which ends with the test's. Returns the port. */
int hk_serve(const void *p, size_t n);
/* Requests so far, a line each: "/ok.gguf 0-", from the byte asked for. */
char *hk_log(void);

#endif
