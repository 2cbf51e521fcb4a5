/* tls.c - see tls.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#ifdef BR_HAVE_OPENSSL
#    include <errno.h>
#    include <openssl/err.h>
#    include <openssl/ssl.h>
#    include <openssl/x509.h>
#    include <string.h>
#    include <sys/socket.h>

struct br_tls {
    SSL_CTX *ctx;
    BIO_METHOD *socket;
    bool h2;
};

struct br_tls_conn {
    SSL *ssl;
    bool was_http;
};

/* ---- a socket whose end is no signal -------------------------------------- */

static int
to_fd(BIO *b)
{
    return (int)(intptr_t)BIO_get_data(b);
}

static int
socket_write(BIO *b, const char *p, int n)
{
    ssize_t sent = send(to_fd(b), p, (size_t)n, MSG_NOSIGNAL);

    BIO_clear_retry_flags(b);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)sent;
}

static int
socket_read(BIO *b, char *p, int n)
{
    ssize_t got = recv(to_fd(b), p, (size_t)n, 0);

    BIO_clear_retry_flags(b);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)got;
}

static long
socket_ctrl(BIO *b, int what, long a, void *p)
{
    (void)b, (void)a, (void)p;
    return what == BIO_CTRL_FLUSH; /* nothing waits in it */
}

static int
socket_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

/* ---- certificate and key -------------------------------------------------- */

static br_code
fail(br_status *st, const char *path, const char *what)
{
    unsigned long e = ERR_peek_error();
    const char *why = ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e))
                      : e                 ? ERR_reason_error_string(e)
                                          : NULL;

    ERR_clear_error();
    return br_fail(st, BR_E_FORMAT, "%s: %s%s%s", path, what, why ? ": " : "",
                   why ? why : "");
}

/* A private key, but OpenSSL looks at once whose it is. */
static bool
is_of_another(unsigned long e)
{
    return ERR_GET_LIB(e) == ERR_LIB_X509 &&
           (ERR_GET_REASON(e) == X509_R_KEY_VALUES_MISMATCH ||
            ERR_GET_REASON(e) == X509_R_KEY_TYPE_MISMATCH);
}

static int
choose(SSL *ssl, const unsigned char **out, unsigned char *n,
       const unsigned char *in, unsigned int in_n, void *arg)
{
    static const unsigned char all[] = "\x02h2\x08http/1.1";
    const br_tls *t = arg;
    const unsigned char *ours = t->h2 ? all : all + 3;
    unsigned int ours_n = (unsigned int)(sizeof all - 1 - (t->h2 ? 0 : 3));
    unsigned char *to;

    (void)ssl;
    if (SSL_select_next_proto(&to, n, ours, ours_n, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = to;
    return SSL_TLSEXT_ERR_OK;
}

static br_code
set_up(br_tls *t, const char *cert, const char *key, br_status *st)
{
    t->ctx = SSL_CTX_new(TLS_server_method());
    t->socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (!t->ctx || !t->socket)
        return br_fail(st, BR_E_OOM, "tls: out of memory");
    BIO_meth_set_write(t->socket, socket_write);
    BIO_meth_set_read(t->socket, socket_read);
    BIO_meth_set_ctrl(t->socket, socket_ctrl);
    BIO_meth_set_create(t->socket, socket_create);
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION |
                                    SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose, t);
    if (SSL_CTX_use_certificate_chain_file(t->ctx, cert) != 1)
        return fail(st, cert, "no certificate in PEM");
    if (SSL_CTX_use_PrivateKey_file(t->ctx, key, SSL_FILETYPE_PEM) != 1)
        return fail(st, key,
                    is_of_another(ERR_peek_error())
                        ? "not the key of the certificate"
                        : "no private key in PEM");
    if (SSL_CTX_check_private_key(t->ctx) != 1)
        return fail(st, key, "not the key of the certificate");
    return BR_OK;
}

br_code
br_tls_new(br_tls **out, const char *cert, const char *key, bool h2,
           br_status *st)
{
    br_tls *t = br_try_calloc(1, sizeof *t);
    br_code code;

    *out = NULL;
    if (!t)
        return br_fail(st, BR_E_OOM, "tls: out of memory");
    t->h2 = h2;
    code = set_up(t, cert, key, st);
    if (code != BR_OK)
        br_tls_free(t);
    else
        *out = t;
    return code;
}

void
br_tls_free(br_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->socket);
    br_free(t);
}

/* ---- connections ----------------------------------------------------------- */

br_tls_conn *
br_tls_accept(br_tls *t, int fd)
{
    br_tls_conn *c = br_try_calloc(1, sizeof *c);
    BIO *b = BIO_new(t->socket);

    if (c)
        c->ssl = SSL_new(t->ctx);
    if (!c || !c->ssl || !b) {
        BIO_free(b);
        br_tls_drop(c);
        return NULL;
    }
    BIO_set_data(b, (void *)(intptr_t)fd);
    SSL_set_bio(c->ssl, b, b);
    SSL_set_accept_state(c->ssl);
    return c;
}

/* What a call that did nothing means. */
static ssize_t
nothing(br_tls_conn *c, int r, int own, bool *other)
{
    int e = SSL_get_error(c->ssl, r);
    unsigned long why = ERR_peek_error();

    c->was_http |= ERR_GET_LIB(why) == ERR_LIB_SSL &&
                   ERR_GET_REASON(why) == SSL_R_HTTP_REQUEST;
    ERR_clear_error();
    if (e == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = EPROTO;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        *other = e != own;
        errno = EAGAIN;
    }
    return -1;
}

ssize_t
br_tls_recv(br_tls_conn *c, void *p, size_t n, bool *other)
{
    int r;

    *other = false;
    r = SSL_read(c->ssl, p, (int)BR_MIN(n, (size_t)INT32_MAX));
    return r > 0 ? r : nothing(c, r, SSL_ERROR_WANT_READ, other);
}

ssize_t
br_tls_send(br_tls_conn *c, const void *p, size_t n, bool *other)
{
    int r;

    *other = false;
    r = SSL_write(c->ssl, p, (int)BR_MIN(n, (size_t)INT32_MAX));
    return r > 0 ? r : nothing(c, r, SSL_ERROR_WANT_WRITE, other);
}

bool
br_tls_was_http(const br_tls_conn *c)
{
    return c->was_http;
}

bool
br_tls_chose_h2(const br_tls_conn *c)
{
    const unsigned char *name;
    unsigned int n;

    SSL_get0_alpn_selected(c->ssl, &name, &n);
    return n == 2 && memcmp(name, "h2", 2) == 0;
}

void
br_tls_bye(br_tls_conn *c)
{
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
}

void
br_tls_drop(br_tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    br_free(c);
}

#else

br_code
br_tls_new(br_tls **out, const char *cert, const char *key, bool h2,
           br_status *st)
{
    (void)cert, (void)key, (void)h2;
    *out = NULL;
    return br_fail(st, BR_E_UNSUPPORTED,
                   "--tls-cert: this program was built without OpenSSL");
}

void
br_tls_free(br_tls *t)
{
    (void)t;
}

br_tls_conn *
br_tls_accept(br_tls *t, int fd)
{
    (void)t, (void)fd;
    return NULL;
}

ssize_t
br_tls_recv(br_tls_conn *c, void *p, size_t n, bool *other)
{
    (void)c, (void)p, (void)n, (void)other;
    return -1;
}

ssize_t
br_tls_send(br_tls_conn *c, const void *p, size_t n, bool *other)
{
    (void)c, (void)p, (void)n, (void)other;
    return -1;
}

bool
br_tls_was_http(const br_tls_conn *c)
{
    (void)c;
    return false;
}

bool
br_tls_chose_h2(const br_tls_conn *c)
{
    (void)c;
    return false;
}

void
br_tls_bye(br_tls_conn *c)
{
    (void)c;
}

void
br_tls_drop(br_tls_conn *c)
{
    (void)c;
}
#endif
