/* test_run.c - brass run and brass chat with the demo model, as programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"

#include "hf_kit.h"
#include "logits_kit.h"
#include "model/gguf_write.h"
#include "t.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEMO "models/demo.gguf"

static void
fails(t_proc *r, int code, const char *err)
{
    ck_assert_str_eq(r->err, err);
    ck_assert_int_eq(r->exit, code);
    ck_assert_str_eq(r->out, "");
}

static void
chat(t_proc *r, const char *in)
{
    t_exec(r,
           (const char *[]){t_brass(), "chat", DEMO, "--temp", "0",
                            "--max-tokens", "24", NULL},
           in, strlen(in));
}

TEST_WITHIN(run_tells_the_same_story_for_the_same_seed, 120)
{
    const char *ask = "Tell me a story about a fox.";
    const char *most = t_sanitized() ? "16" : "500";
    t_proc a, b, c;

    t_run(&a, "run", DEMO, "--chat", "-p", ask, "--seed", "1", "-n", most);
    t_run(&b, "run", DEMO, "--chat", "-p", ask, "--seed", "1", "-n", most);
    t_run(&c, "run", DEMO, "--chat", "-p", ask, "--seed", "2", "-n", "16");
    ck_assert_int_eq(a.exit, 0);
    ck_assert_str_eq(a.err, "");
    ck_assert_str_eq(a.out, b.out);
    ck_assert_int_ne(strncmp(a.out, c.out, c.n_out - 1), 0);
    ck_assert_ptr_nonnull(strstr(a.out, "fox"));
    if (!t_sanitized())
        ck_assert_ptr_nonnull(strstr(a.out + a.n_out - 3, ".\n"));
}

TEST_WITHIN(run_says_so_where_nothing_comes, 80)
{
    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_proc r;

    t_run(&r, "run", DEMO, "-p", "hi", "--temp", "0");
    fails(&r, 0,
          "brass run: the model ends this text at once; --chat asks for an "
          "answer to it\n");
}

TEST_WITHIN(run_json_says_all, 80)
{
    br_status st = {0};
    br_json *doc;
    br_arena a;
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_run(&r, "run", DEMO, "--chat", "-p", "Hello!", "--temp", "0", "--json");
    ck_assert_int_eq(r.exit, 0);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&doc, &a, r.out, r.n_out, 0, &st), &st);
    ck_assert_str_eq(br_json_get(doc, "end")->s, "eog");
    ck_assert_str_eq(br_json_get(doc, "tier")->s, "cpu");
    ck_assert_int_gt((int)br_json_get(doc, "text")->n, 5);
    ck_assert_uint_eq(br_json_get(doc, "tokens")->n,
                      (uint32_t)br_json_get(doc, "output_tokens")->i);
    ck_assert_uint_eq(br_json_get(doc, "logprobs")->n,
                      br_json_get(doc, "tokens")->n);
    ck_assert(br_json_get(doc, "logprobs")->child->f <= 0);
    ck_assert(br_json_get(doc, "decode_tok_s")->f > 0);
    br_arena_fini(&a);
}

TEST_WITHIN(run_takes_its_text_from_everywhere, 80)
{
    const char *path = t_printf("%s/p.txt", t_tmpdir());
    t_proc a, b, c, d, e;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_write(path, "Once upon a", 11);
    t_run(&a, "run", DEMO, "-p", "Once upon a", "-n", "3", "--temp", "0");
    t_run(&b, "run", DEMO, "-f", path, "-n", "3", "--temp", "0");
    t_exec(&c,
           (const char *[]){t_brass(), "run", DEMO, "-f", "-", "-n", "3",
                            "--temp", "0", NULL},
           "Once upon a", 11);
    t_run(&d, "run", DEMO, "-p", "Once upon a", "--temp", "0", "--stop", ",");
    t_run(&e, "run", DEMO, "Once upon a", "-n", "3", "--temp", "0");
    ck_assert_int_eq(strncmp(a.out, " time", 5), 0);
    ck_assert_str_eq(a.out, e.out);
    ck_assert_str_eq(a.out, b.out);
    ck_assert_str_eq(a.out, c.out);
    ck_assert_str_eq(d.out, " time\n");
}

/* On the emulated device. */
TEST_WITHIN(run_tells_the_tier_how_much_it_is_to_read, 120)
{
    const char *text = "Once upon a time there was a fox. Once upon a time "
                       "there was a fox. Once upon a time there was a fox. "
                       "Once upon a time there was a fox. Once upon a time "
                       "there was a fox. Once upon a time there was a fox. "
                       "Once upon a time there was a fox.";
    t_proc r;

    t_run_emulated(&r,
                   (const char *[]){"run", t_repo("models/demo.gguf"), "--tier",
                                    "cuda", "-n", "2", "--log-level", "info",
                                    text, NULL},
                   NULL, 0);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_msg(strstr(r.err, " tokens are read") != NULL, "%s", r.err);
}

/* A llama of one layer that the launch of a whole step takes, with a tokenizer. */
static const char *
small_llama(void)
{
    static const struct {
        const char *name;
        uint64_t rows, cols;
    } t[] = {{"embed_tokens", 264, 512},
             {"norm", 512, 0},
             {"layers.0.input_layernorm", 512, 0},
             {"layers.0.post_attention_layernorm", 512, 0},
             {"layers.0.self_attn.q_proj", 512, 512},
             {"layers.0.self_attn.k_proj", 128, 512},
             {"layers.0.self_attn.v_proj", 128, 512},
             {"layers.0.self_attn.o_proj", 512, 512},
             {"layers.0.mlp.gate_proj", 512, 512},
             {"layers.0.mlp.up_proj", 512, 512},
             {"layers.0.mlp.down_proj", 512, 512}};
    const char *dir = t_tmpdir();
    st_make m = {0};

    hfk_put(dir, "config.json",
            "{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":1,"
            "\"hidden_size\":512,\"intermediate_size\":512,"
            "\"num_attention_heads\":8,\"num_key_value_heads\":2,"
            "\"head_dim\":64,\"vocab_size\":264,\"rms_norm_eps\":1e-06,"
            "\"max_position_embeddings\":1024,\"rope_theta\":500000.0,"
            "\"tie_word_embeddings\":true,\"hidden_act\":\"silu\"}");
    hfk_put_bpe(dir, HFK_LLAMA3, "");
    for (size_t i = 0; i < BR_COUNT(t); i++)
        hfk_add_bf16(&m, t_printf("model.%s.weight", t[i].name), t[i].rows,
                     t[i].cols);
    hfk_put_tensors(dir, &m);
    return dir;
}

/* What is said grows beyond what one launch a step reads soon: the weights are
 * loaded again, once, and the talk goes on. */
TEST_WITHIN(chat_loads_what_reads_long_texts, 120)
{
    const char *text = "hi\n"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaa\nho\n";
    const char *said;
    t_proc r;

    t_run_emulated(&r,
                   (const char *[]){"chat", small_llama(), "--tier", "cuda",
                                    "-n", "2", "--log-level", "info", NULL},
                   text, strlen(text));
    ck_assert_msg(r.exit == 0, "%s", r.err);
    said = strstr(r.err, " tokens are read");
    ck_assert_msg(said != NULL, "%s", r.err);
    ck_assert_ptr_null(strstr(said + 1, " tokens are read"));
}

/* A stream that is heard: at the words of the second load somebody has had
 * enough. */
static ssize_t
interrupt_the_load(void *said, const char *p, size_t n)
{
    br_str_put(said, p, n);
    if (memmem(p, n, " tokens are read", 16))
        raise(SIGINT);
    return (ssize_t)n;
}

TEST_WITHIN(chat_goes_on_after_a_load_that_was_stopped, 120)
{
    const char *text = "hi\n"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n/halp\nho\n";
    char *line = t_printf("brass chat %s --tier cuda -n 2 --log-level info",
                          small_llama());
    char *in = t_printf("%s/in", t_tmpdir()),
         *out = t_printf("%s/out", t_tmpdir());
    char *argv[10] = {NULL}, *save = NULL;
    int n = 0;
    br_str said = {0};
    FILE *err = fopencookie(
        &said, "w", (cookie_io_functions_t){.write = interrupt_the_load});
    FILE *f = fopen(out, "w");

    t_emulate_cuda();
    t_write(in, text, strlen(text));
    ck_assert_ptr_nonnull(freopen(in, "r", stdin));
    setvbuf(err, NULL, _IONBF, 0);
    for (char *w = strtok_r(line, " ", &save); w;
         w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    ck_assert_int_eq(br_cli_main(n, argv, environ, f, err), 0);
    fclose(f);
    fclose(err);
    ck_assert_msg(strstr(br_str_z(&said),
                         "brass chat: stopped; the next message "
                         "loads the model\n") != NULL,
                  "%s", said.at);
    ck_assert_ptr_nonnull(strstr(said.at, "did you mean '/help'?"));
    t_emulate_end();
    br_str_fini(&said);
}

TEST(run_refuses_in_one_line)
{
    const char *none = t_printf("%s/none.gguf", t_tmpdir());
    const char *big = t_printf("%s/big.txt", t_tmpdir());
    char *text = t_keep(malloc(20000));
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_run(&r, "run");
    fails(&r, 2,
          "brass run: no TEXT, no --prompt and no --file (see brass run "
          "--help)\n");
    t_run(&r, "run", "Hello");
    fails(&r, 2,
          "brass run: no TEXT, no --prompt and no --file; 'Hello' is MODEL "
          "(see brass run --help)\n");
    t_run(&r, "run", DEMO, "x", "-p", "x");
    fails(&r, 2,
          "brass run: TEXT, --prompt, --file: only one of them (see brass run "
          "--help)\n");
    t_run(&r, "run", DEMO, "x", "--temperature", "0");
    fails(&r, 2,
          "brass run: unknown option '--temperature'; did you mean '--temp'? "
          "(see brass run --help)\n");
    t_run(&r, "run", DEMO, "-p", "x", "--temp", "101");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "run", DEMO, "-p", "x", "--tier", "cuda");
    ck_assert_int_eq(r.exit, 5);
    ck_assert_int_eq(strncmp(r.err, "brass run: " DEMO ": ",
                             sizeof "brass run: " DEMO ": " - 1),
                     0);
    t_run(&r, "run", DEMO, "-p", "x", "--tier", "metal");
    fails(&r, 5,
          "brass run: " DEMO
          ": tier metal runs no models in this build; here are: amd cpu cuda "
          "ref\n");
    t_run(&r, "run", DEMO, "-p", "x", "--ctx", "2000");
    fails(&r, 2, "brass run: --ctx: the model was made for 1024 tokens\n");
    t_run(&r, "run", DEMO, "-p", "x", "--logit-bias", "7");
    fails(&r, 2, "brass run: --logit-bias: '7' is not ID=X\n");
    t_run(&r, "run", DEMO, "-p", "x", "--dry", "1,x");
    fails(&r, 2, "brass run: --dry: 'x' is not a number\n");
    t_run(&r, "run", none, "-p", "x");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "none.gguf"));
    ck_assert_ptr_null(strstr(strstr(r.err, "none.gguf") + 1, "none.gguf"));
    memset(text, 'x', 20000);
    t_write(big, text, 20000);
    t_run(&r, "run", DEMO, "-f", big);
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(
        strstr(r.err, "the context holds 1024, the answer included\n"));
}

/* Of a model that was made for more. */
TEST(run_says_how_a_prompt_has_more_room)
{
    const char *text = t_printf("%s/text", t_tmpdir());
    char words[2 * 100];
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    for (size_t i = 0; i < sizeof words; i++)
        words[i] = i % 2 ? ' ' : 'x';
    t_write(text, words, sizeof words);
    t_run(&r, "run", DEMO, "-f", text, "--ctx", "64");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(
        strstr(r.err, "; the context holds 64, the answer included; --ctx N "
                      "gives more, to this model up to 1024\n"));
}

/* Not at each message, when the model is loaded. */
TEST(chat_refuses_at_once_what_no_message_can_have)
{
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_run(&r, "chat", DEMO, "--stop=");
    fails(&r, 2, "brass chat: stop: string 0 is empty\n");
    t_run(&r, "chat", DEMO, "--logit-bias", "999999=1");
    fails(&r, 2,
          "brass chat: " DEMO
          ": logit_bias: there is no token 999999 (of 2048)\n");
}

/* What the first answer below begins with, and a token that is none. */
static int32_t never[2];

static void
set_never(br_gguf_writer *w)
{
    br_gguf_w_array(w, "tokenizer.ggml.suppress_tokens", BR_GGUF_I32, never, 2);
}

static const char *
file_with_never(int32_t a, int32_t b)
{
    const char *path = t_printf("%s/never.gguf", t_tmpdir());
    size_t n;
    const char *file = t_read(DEMO, &n);
    lk_case c = {.file = t_keep(malloc(n)), .file_n = n};

    memcpy(c.file, file, n);
    never[0] = a;
    never[1] = b;
    lk_rewrite(&c, set_never);
    t_write(path, c.file, c.file_n);
    return path;
}

TEST_WITHIN(tokens_that_the_file_suppresses_do_not_come, 120)
{
    t_proc plain, biased, with;
    int32_t first;

    t_run(&plain, "run", DEMO, "-p", "Once upon a", "--temp", "0", "-n", "6");
    t_run(&with, "tokenize", DEMO, plain.out, "--ids");
    first = (int32_t)strtol(with.out + strspn(with.out, "0 "), NULL, 10);
    t_run(&biased, "run", DEMO, "-p", "Once upon a", "--temp", "0", "-n", "6",
          "--logit-bias", t_printf("%d=-inf", first));
    t_run(&with, "run", file_with_never(first, 5), "-p", "Once upon a",
          "--temp", "0", "-n", "6");
    ck_assert_str_eq(with.err, "");
    ck_assert_str_ne(with.out, plain.out);
    ck_assert_str_eq(with.out, biased.out);
    t_run(&with, "run", file_with_never(first, 2048), "-p", "x");
    ck_assert_int_eq(with.exit, 3);
    ck_assert_ptr_nonnull(
        strstr(with.err, "suppress_tokens[1]: there is no such token"));
}

TEST_WITHIN(chat_holds_a_talk, 120)
{
    const char *path = t_printf("%s/talk.json", t_tmpdir());
    t_proc r;
    char *saved;

    chat(&r, t_printf("Hello!\n/system Be kind.\n\n/save %s\n/save %s\n/halp\n"
                      "/reset\n/quit\nnever read\n",
                      path, path));
    ck_assert_int_eq(r.exit, 0);
    saved = t_read(path, NULL);
    ck_assert_ptr_nonnull(strstr(saved, "\"content\": \"Be kind.\""));
    ck_assert_ptr_nonnull(strstr(saved, "\"role\": \"assistant\""));
    ck_assert_str_eq(r.err,
                     t_printf("brass chat: %s is there already\n"
                              "brass chat: there is no /halp; did you mean "
                              "'/help'?\n",
                              path));
    ck_assert_ptr_nonnull(strstr(r.out, "(3 messages are in "));
    ck_assert_ptr_nonnull(strstr(r.out, "(All forgotten but the system"));
    ck_assert_ptr_null(strstr(r.out, "\033"));
}

TEST_WITHIN(chat_takes_lines_of_windows, 120)
{
    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_proc a, b;

    chat(&a, "Tell me a story \\\nabout a fox.\nWho is it?\n/quit\nHello\n");
    chat(&b, "Tell me a story \\\r\nabout a fox.\r\nWho is it?\r\n/quit\r\n"
             "Hello\r\n");
    ck_assert_str_eq(b.out, a.out);
    ck_assert_str_eq(b.err, "");
    ck_assert_int_eq(b.exit, 0);
}

/* A first message that is too long is so in a new talk, too. */
TEST_WITHIN(chat_advises_a_new_talk_where_that_helps, 120)
{
    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    char long_one[4001];
    char *first;
    t_proc r;

    memset(long_one, 'z', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = 0;
    chat(&r, t_printf("/system Be kind.\n%s\nHello\n%s\n", long_one, long_one));
    ck_assert_int_eq(r.exit, 0);
    first = strchr(r.err, '\n');
    ck_assert_ptr_nonnull(first);
    *first = 0;
    ck_assert_ptr_nonnull(strstr(r.err, "the context holds 1024, the answer "));
    ck_assert_ptr_null(strstr(r.err, "/reset"));
    ck_assert_ptr_nonnull(strstr(first + 1, "; /reset begins a new talk\n"));
}

TEST_WITHIN(chat_remembers_and_helps, 120)
{
    t_proc r;

    chat(&r, "/help\nHello\\\nthere!\n");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(strncmp(r.out, "/help ", 6), 0);
    ck_assert_ptr_nonnull(strstr(r.out, "/quit"));
    ck_assert_int_gt((int)strlen(strstr(r.out, "goes on.\n")), 15);
}

/* Also where whoever starts it ignores the signal. */
TEST_WITHIN(run_ends_quietly_when_nobody_reads_on, 80)
{
    t_proc r;

    t_exec(&r,
           (const char *[]){"bash", "-c",
                            t_printf("trap '' PIPE; %s run " DEMO
                                     " -p 'Once upon' --temp 0 -n 60 | head -c "
                                     "1; echo \" ${PIPESTATUS[0]}\"",
                                     t_brass()),
                            NULL},
           NULL, 0);
    ck_assert_str_eq(r.err, "");
    ck_assert_str_eq(r.out, t_printf("  %d\n", 128 + SIGPIPE));
}

/* Ctrl-C ends the answer of `run` with one line, and then the process by the
 * signal: a script's loop ends with it. The whole answer takes `ref` 17 seconds
 * and `cpu` 0.3, too short for a shell that waits for its turn. */
TEST_WITHIN(run_ends_at_an_interrupt, 80)
{
    const char *script =
        t_printf("%s run " DEMO " -p 'Once upon' --logit-bias 1=-inf -n 100000 "
                 "--stop never --tier ref >$D/out 2>$D/err & p=$!; i=0; "
                 "until [ -s $D/out ] || [ $i = 600 ]; do i=$((i + 1)); "
                 "sleep 0.1; done; kill -INT $p; wait $p; echo $?; cat $D/err",
                 t_brass());
    t_proc r;

    setenv("D", t_tmpdir(), 1);
    /* bash -m: what runs behind does not ignore the signal */
    t_exec(&r, (const char *[]){"bash", "-m", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(strncmp(r.out, t_printf("%d\n", 128 + SIGINT), 4) == 0,
                  "%s%s", r.out, r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "brass run: stopped after "));
}

/* While the prompt is read there is nothing to end: at once, not after the
 * chunk that a step takes. */
TEST_WITHIN(run_ends_at_once_while_it_reads_the_prompt, 80)
{
    const char *script = t_printf(
        "yes 'The fox ran home.' | head -n 150 >$D/in; %s run " DEMO
        " -f $D/in --tier ref >$D/out 2>$D/err & p=$!; sleep 1; kill -INT $p; "
        "wait $p; echo $?; cat $D/out $D/err",
        t_brass());
    t_proc r;

    t_not_for_tsan("run_ends_at_an_interrupt");
    setenv("D", t_tmpdir(), 1);
    t_exec(&r, (const char *[]){"bash", "-m", "-c", script, NULL}, NULL, 0);
    ck_assert_str_eq(r.out, t_printf("%d\n", 128 + SIGINT));
}

TEST(doctor_and_tiers_agree_in_text_and_json)
{
    br_status st = {0};
    br_json *doc;
    br_arena a;
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_run(&r, "tiers");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "\nref     yes"));
    ck_assert_ptr_nonnull(strstr(r.out, "\nauto picks cpu: "));
    br_arena_init(&a, 0);
    t_run(&r, "tiers", "--json");
    t_ok(br_json_parse(&doc, &a, r.out, r.n_out, 0, &st), &st);
    ck_assert_uint_eq(br_json_get(doc, "tiers")->n, 9);
    ck_assert_str_eq(br_json_get(doc, "auto")->s, "cpu");
    t_run(&r, "doctor", "--json");
    t_ok(br_json_parse(&doc, &a, r.out, r.n_out, 0, &st), &st);
    for (const br_json *f = br_json_get(doc, "findings")->child; f; f = f->next)
        ck_assert_int_eq(strcmp(br_json_get(f, "state")->s, "ok") == 0,
                         br_json_get(f, "fix")->n == 0);
    ck_assert_int_eq(r.exit == 5,
                     strcmp(br_json_get(doc, "verdict")->s, "NOT READY") == 0);
    br_arena_fini(&a);
}

/* The word that brass tiers and doctor have for it. */
TEST_WITHIN(run_takes_the_tier_that_auto_picks, 80)
{
    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_proc r;

    t_run(&r, "run", DEMO, "-p", "Once", "-n", "3", "--temp", "0", "--json",
          "--tier", "auto");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "\"tier\": \"cpu\""));
    t_run(&r, "bench", DEMO, "--tier", "auto", "-p", "0", "-n", "0");
    fails(&r, 2, "brass bench: -p 0 and -n 0: nothing to measure\n");
}

TEST(run_answers_in_a_form)
{
    const char *dir = t_tmpdir();
    char *schema = t_printf("%s/s.json", dir), *bad = t_printf("%s/b", dir);
    static const char ok[] = "{\"type\":\"object\",\"properties\":{\"n\":{"
                             "\"enum\":[17]}},\"required\":[\"n\"]}";
    t_proc r;

    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_write(schema, ok, sizeof ok - 1);
    t_write(bad, "root ::= x", 10);
    t_run(&r, "run", t_repo("models/demo.gguf"), "-p", "Once", "--seed", "1",
          "--grammar", schema);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "\"n\":") && strstr(r.out, "17"),
                  "%s%s", r.out, r.err);
    t_run(&r, "run", t_repo("models/demo.gguf"), "-p", "Once", "--grammar",
          bad);
    ck_assert_msg(r.exit == 3 && strstr(r.err, "no such rule"), "%s", r.err);
}

/* It took the flag for a text to continue. */
TEST(demo_says_how_it_is_called)
{
    t_not_for_tsan("run_tells_the_same_story_for_the_same_seed");
    t_proc r;

    t_exec(&r, (const char *[]){t_repo("demo"), "--help", NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "./demo serve"), "%d %s%s",
                  r.exit, r.out, r.err);
}
