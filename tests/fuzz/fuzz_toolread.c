/* fuzz_toolread.c - any bytes as an answer of a model that thinks and calls
 * tools, in pieces of any size.
 *
 * The first byte chooses the family of calls, the second that of thoughts, the
 * third the size of pieces. Whatever comes, the same comes out of all sizes,
 * and what comes out has its order: a call begins, has arguments, ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/think.h"
#include "run/toolcall.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const families[] = {
    "<tool_call> \"arguments\"",
    "[TOOL_CALLS]",
    "[TOOL_CALLS] [ARGS]",
    "<｜tool▁sep｜> ```json",
    "{\"name\": function, \"parameters\": ...}",
    "<function=x> <parameter=y>",
    "<arg_key>",
    "<minimax:tool_call>",
    "<|tool_call_begin|> <|tool_call_argument_begin|>",
    "<|channel|> functions.",
};
static const char *const thinkers[] = {
    "", "<think></think>", "<|channel|><|message|>", "[THINK][/THINK]",
    "<|channel><channel|>"};

typedef struct answer {
    br_think_reader think;
    br_tool_reader tools;
    br_str out;
    bool in_call, ok;
} answer;

static void
on_tool(void *ctx, br_tool_event e, br_text piece)
{
    answer *a = ctx;

    br_check(a->in_call == (e == BR_TOOL_ARGS || e == BR_TOOL_END));
    a->in_call = e == BR_TOOL_BEGIN || e == BR_TOOL_ARGS;
    br_str_puts(&a->out, e == BR_TOOL_BEGIN ? "\1"
                         : e == BR_TOOL_END ? "\2"
                                            : "");
    br_str_put(&a->out, piece.p ? piece.p : "", piece.n);
}

static void
on_part(void *ctx, bool thought, br_text piece)
{
    answer *a = ctx;

    if (thought)
        br_str_put(&a->out, piece.p, piece.n);
    else
        a->ok = a->ok && br_tool_read(&a->tools, piece, false, on_tool, a);
}

static bool
read_all(answer *a, const uint8_t *data, size_t size, size_t piece)
{
    static const br_json w = {.kind = BR_J_OBJ};
    static br_json kind = {
        .kind = BR_J_STR, .key = "type", .key_n = 4, .s = "integer", .n = 7};
    static br_json n = {.kind = BR_J_OBJ,
                        .key = "n",
                        .key_n = 1,
                        .n = 1,
                        .child = &kind,
                        .last = &kind};
    static br_json props = {.kind = BR_J_OBJ,
                            .key = "properties",
                            .key_n = 10,
                            .n = 1,
                            .child = &n,
                            .last = &n};
    br_json schema = w;
    br_tool tool = {"a", &schema, false};

    schema.child = schema.last = &props;
    schema.n = 1;
    a->tools = (br_tool_reader){.s = br_tool_syntax_of(br_text_z(
                                    families[data[0] % BR_COUNT(families)])),
                                .tools = &tool,
                                .n_tools = 1};
    br_think_begin_in(
        &a->think,
        br_think_of(br_text_z(thinkers[data[1] % BR_COUNT(thinkers)])),
        data[1] >= 128);
    a->ok = true;
    for (size_t i = 3; i < size && a->ok; i += piece)
        br_check(br_think_read(
            &a->think,
            (br_text){(const char *)data + i, BR_MIN(piece, size - i)},
            i + piece >= size, on_part, a));
    a->ok = a->ok && br_tool_read(&a->tools, BR_TEXT(""), true, on_tool, a);
    br_think_reader_fini(&a->think);
    br_tool_reader_fini(&a->tools);
    return a->ok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    answer a = {.ok = true}, b = {.ok = true};

    if (size < 4 || size > 4096)
        return 0;
    for (size_t i = 3; i < size; i++)
        if (data[i] >= 128)
            return 0; /* pieces are whole characters */
    br_check(read_all(&a, data, size, 1 + data[2] % 16) ==
             read_all(&b, data, size, size));
    br_check(!a.ok || (a.out.n == b.out.n &&
                       (!a.out.n || memcmp(a.out.at, b.out.at, a.out.n) == 0)));
    br_str_fini(&a.out);
    br_str_fini(&b.out);
    return 0;
}
