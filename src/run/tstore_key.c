/* tstore_key.c - what keys, names and tenants look like to others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/thread.h"
#include "run/tstore_int.h"

#include <string.h>

void
br_tstore_new_key(char key[BR_KEY_CHARS])
{
    uint8_t id[BR_KEY_ID / 2], secret[BR_KEY_SECRET / 2];

    br_os_random(id, sizeof id);
    br_os_random(secret, sizeof secret);
    memcpy(key, "br_", 3);
    br_hex(id, sizeof id, key + 3);
    key[3 + BR_KEY_ID] = '_';
    br_hex(secret, sizeof secret, key + 4 + BR_KEY_ID);
}

void
br_tstore_digest(const char *secret, char out[BR_KEY_DIGEST + 1])
{
    uint8_t digest[BR_BLAKE2B_BYTES];

    _Static_assert(2 * sizeof digest == BR_KEY_DIGEST, "in hex");
    br_blake2b(secret, BR_KEY_SECRET, digest);
    br_hex(digest, sizeof digest, out);
}

const char *
br_tstore_secret(br_text key)
{
    if (key.n != BR_KEY_CHARS - 1 || memcmp(key.p, "br_", 3) != 0 ||
        key.p[3 + BR_KEY_ID] != '_')
        return NULL;
    return key.p + 4 + BR_KEY_ID;
}

br_code
br_tstore_check_name(const char *name, br_status *st)
{
    static const char may[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
                              "uvwxyz0123456789-._@";
    size_t n = strlen(name);

    if (n == 0 || n >= BR_TENANT_NAME)
        return br_fail(st, BR_E_USAGE, "a tenant's name has 1 to %d characters",
                       BR_TENANT_NAME - 1);
    if (strspn(name, may) != n)
        return br_fail(st, BR_E_USAGE,
                       "tenant '%s': letters, digits, - . _ and @ only", name);
    /* /v1/tenants/WORD/usage takes either */
    if (strspn(name, "0123456789") == n || strcmp(name, "me") == 0)
        return br_fail(st, BR_E_USAGE,
                       "tenant '%s': neither 'me' nor a number is a name",
                       name);
    return BR_OK;
}

void
br_tenant_write(br_json_writer *w, const br_tenant *t)
{
    br_json_w_key_u64(w, "id", t->id);
    br_json_w_key_strz(w, "name", t->name);
    br_json_w_key_i64(w, "created", t->created);
    br_json_w_key_strz(w, "class", br_qos_name(t->quota.qos));
    if (t->quota.model[0])
        br_json_w_key_strz(w, "model", t->quota.model);
#define Q(field, key, opt) br_json_w_key_u64(w, key, t->quota.field);
#include "run/tstore.def"
#undef Q
}

void
br_logged_write(br_json_writer *w, const br_logged *r)
{
    br_json_w_key_strz(w, "id", r->id);
    br_json_w_key_strz(w, "model", r->model);
    br_json_w_key_strz(w, "finish", r->finish);
    br_json_w_key_i64(w, "ended_ms", r->ended_ms);
#define WRITE_I         br_json_w_key_u64
#define WRITE_F         br_json_w_key_f64
#define R(column, kind) WRITE_##kind(w, #column, r->column);
#include "run/tstore.def"
#undef R
}

br_code
br_quota_read(br_quota *q, const br_json *m, br_status *st)
{
    bool whole = m->kind == BR_J_INT && m->i >= 0 && m->i <= INT32_MAX;

    if (strcmp(m->key, "class") == 0) {
        if (m->kind == BR_J_STR && br_qos_find((br_text){m->s, m->n}, &q->qos))
            return BR_OK;
        return br_fail(st, BR_E_USAGE,
                       "class: must be interactive, standard or batch");
    }
    if (strcmp(m->key, "model") == 0) {
        bool none = m->kind == BR_J_NULL;

        if (!none && (m->kind != BR_J_STR || m->n >= sizeof q->model ||
                      strlen(m->s) != m->n))
            return br_fail(st, BR_E_USAGE, "model: must be a name, or null");
        memset(q->model, 0, sizeof q->model);
        memcpy(q->model, none ? "" : m->s, none ? 0 : m->n);
        return BR_OK;
    }
#define Q(field, name, opt)                   \
    if (strcmp(m->key, name) == 0 && whole) { \
        q->field = (uint32_t)m->i;            \
        return BR_OK;                         \
    }                                         \
    if (strcmp(m->key, name) == 0)            \
        return br_fail(st, BR_E_USAGE, name ": must be a whole number");
#include "run/tstore.def"
#undef Q
    return br_fail(st, BR_E_USAGE, "%.60s: no such field of a tenant", m->key);
}
