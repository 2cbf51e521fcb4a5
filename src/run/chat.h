/* chat.h - a conversation as the model was taught to read it.
 *
 *   messages --chat template of the file--> text --> tokens
 *
 * What a message says is never read as a control token: a user who types
 * <|im_end|> sends those characters. Such places are marked before the
 * template runs (U+FDD0 around them, which is no character) and tokenised
 * apart from the rest after it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CHAT_H
#define BR_CHAT_H

#include "model/tokenizer.h"

enum {
    BR_CHAT_MAX_MESSAGES = 65536,
    BR_CHAT_MAX_BYTES = 16 << 20, /* of one message */
};

typedef struct br_chat br_chat;

/* UNSUPPORTED: the file has no chat template. tok outlives it. */
br_code br_chat_new(br_chat **out, const br_gguf *g, const br_tok *tok,
                    br_status *st) BR_MUST_USE;
/* The same with a template of the caller's. */
br_code br_chat_from_template(br_chat **out, br_text source, const br_tok *tok,
                              br_status *st) BR_MUST_USE;
void br_chat_free(br_chat *c);

/* role: "system", "user", "assistant"... Bytes that are no UTF-8 become
 * U+FFFD. */
br_code br_chat_add(br_chat *c, const char *role, br_text content,
                    br_status *st) BR_MUST_USE;
/* Sets the system message at the beginning; "" takes it away. */
br_code br_chat_system(br_chat *c, br_text content, br_status *st) BR_MUST_USE;
size_t br_chat_count(const br_chat *c);
const char *br_chat_role(const br_chat *c, size_t i);
br_text br_chat_content(const br_chat *c, size_t i);
void br_chat_cut(br_chat *c, size_t n); /* keeps the first n messages */

/* The tokens up to where the assistant's answer begins, appended to ids. */
br_code br_chat_prompt(const br_chat *c, br_tok_work *w, br_tok_ids *ids,
                       br_status *st) BR_MUST_USE;

#endif
