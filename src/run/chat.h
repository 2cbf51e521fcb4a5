/* chat.h - a conversation as the model was taught to read it.
 *
 *   messages --chat template of the file--> text --> tokens
 *
 * What a message says is never read as a control token: a user who types
 * <|im_end|> sends those characters. Such places are marked before the
 * template runs (by U+FDD0 and U+FDD1, which are no characters) and tokenised
 * apart from the rest after it. The same holds for every text in tools, in
 * calls of tools and in what they return.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CHAT_H
#define BR_CHAT_H

#include "base/json.h"
#include "model/tokenizer.h"
#include "run/think.h"
#include "run/toolcall.h"

enum {
    BR_CHAT_MAX_MESSAGES = 65536,
    BR_CHAT_MAX_BYTES = 16 << 20, /* of one message, of one variable */
    BR_CHAT_MAX_VARS = 64,
};

typedef struct br_chat br_chat;

/* UNSUPPORTED: the file has no chat template. tok outlives it. */
br_code br_chat_new(br_chat **out, const br_gguf *g, const br_tok *tok,
                    br_status *st) BR_MUST_USE;
/* The same with a template of the caller's. */
br_code br_chat_from_template(br_chat **out, br_text source, const br_tok *tok,
                              br_status *st) BR_MUST_USE;
void br_chat_free(br_chat *c);

br_text br_chat_source(const br_chat *c); /* the template */

/* How the model was taught to call tools; NULL: no way that is known. */
const br_tool_syntax *br_chat_tools(const br_chat *c);

/* How it shows what it thinks; NULL: it does not. */
const br_think *br_chat_think(const br_chat *c);
/* "none", "low"..., of the next prompts; NULL: as the template has it. USAGE:
 * the template knows of no such thing. */
br_code br_chat_effort(br_chat *c, const char *effort,
                       br_status *st) BR_MUST_USE;

/* role: "system", "user", "assistant"... Bytes that are no UTF-8 become
 * U+FFFD. */
br_code br_chat_add(br_chat *c, const char *role, br_text content,
                    br_status *st) BR_MUST_USE;
/* A message as requests carry it: an object with role, content (a text, null,
 * or a list of parts of type text, which become one text), tool_calls,
 * tool_call_id, reasoning_content... Templates see what it holds; arguments of
 * a call that are the text of an object are that object to them.
 * FORMAT, UNSUPPORTED (a part that is no text): the message names the place. */
br_code br_chat_add_json(br_chat *c, const br_json *message,
                         br_status *st) BR_MUST_USE;
/* A variable of the template: "tools", "enable_thinking"... It comes before
 * what the chat says itself ("add_generation_prompt", "bos_token"). NULL or
 * null: not defined. */
br_code br_chat_set(br_chat *c, const char *name, const br_json *value,
                    br_status *st) BR_MUST_USE;
/* What strftime_now takes for now, in seconds; until then the clock. */
void br_chat_set_now(br_chat *c, int64_t now);
/* Sets the system message at the beginning; "" takes it away. */
br_code br_chat_system(br_chat *c, br_text content, br_status *st) BR_MUST_USE;
size_t br_chat_count(const br_chat *c);
const char *br_chat_role(const br_chat *c, size_t i);
br_text br_chat_content(const br_chat *c, size_t i);
void br_chat_cut(br_chat *c, size_t n); /* keeps the first n messages */

/* Whether the text ends with what the last message says, which was added as a
 * text: no end of it, and no beginning of another. */
void br_chat_open(br_chat *c, bool open);

/* The text that the template makes of all of it, marks and all. */
br_code br_chat_render(const br_chat *c, br_str *text,
                       br_status *st) BR_MUST_USE;
/* That text as tokens, appended to ids; any thread, whatever becomes of the
 * messages meanwhile. */
br_code br_chat_encode(const br_chat *c, br_tok_work *w, br_text rendered,
                       br_tok_ids *ids, br_status *st) BR_MUST_USE;
/* The tokens up to where the assistant's answer begins, appended to ids. */
br_code br_chat_prompt(const br_chat *c, br_tok_work *w, br_tok_ids *ids,
                       br_status *st) BR_MUST_USE;

#endif
