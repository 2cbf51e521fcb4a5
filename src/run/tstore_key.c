/* tstore_key.c - what keys and names look like.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "run/tstore_int.h"

#include <stdio.h>
#include <string.h>

static void
hex(char *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", p[i]);
}

void
br_tstore_new_key(char key[BR_KEY_CHARS])
{
    uint8_t id[BR_KEY_ID / 2], secret[BR_KEY_SECRET / 2];

    br_os_random(id, sizeof id);
    br_os_random(secret, sizeof secret);
    memcpy(key, "br_", 3);
    hex(key + 3, id, sizeof id);
    key[3 + BR_KEY_ID] = '_';
    hex(key + 4 + BR_KEY_ID, secret, sizeof secret);
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
    return BR_OK;
}
