/* test_chat_pty.c - brass chat at a terminal: what a person types and sees.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "t.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { WAIT_MS = 30000 };

typedef struct terminal {
    int fd;
    pid_t pid;
    char said[1 << 16]; /* all that came */
    size_t n, seen;     /* seen: what was expected already */
    int reads;
} terminal;

static terminal *
start(const char *const *argv)
{
    terminal *t = t_keep(calloc(1, sizeof *t));
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    t_proc version;

    t_run(&version, "version");
    if (!strstr(version.out, "libedit"))
        t_skip("no libedit in this build");
    fflush(NULL);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    if (t->pid < 0)
        t_skip("no pseudo terminal here");
    if (t->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("TERM", "xterm", 1);
        setenv("XDG_STATE_HOME", t_tmpdir(), 1);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return t;
}

#define chat(...)                                                           \
    start((const char *[]){t_brass(), "chat", "models/demo.gguf", "--temp", \
                           "0", __VA_ARGS__, NULL})

/* Until the context is full, which takes `ref` 17 seconds. `cpu` takes 0.3: over
 * before whoever reads it is scheduled again, on a busy machine. */
#define ENDLESS \
    "--logit-bias", "1=-inf", "--stop", "never said", "--tier", "ref"

/* False: the other side has ended. */
static bool
read_more(terminal *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    ssize_t n;

    ck_assert_msg(poll(&p, 1, t_sanitized() ? 5 * WAIT_MS : WAIT_MS) == 1,
                  "nothing comes after: %s", t->said);
    ck_assert(t->n < sizeof t->said - 1);
    n = read(t->fd, t->said + t->n, sizeof t->said - 1 - t->n);
    if (n <= 0)
        return false;
    t->n += (size_t)n;
    t->reads++;
    return true;
}

static const char *
how_it_ended(const terminal *t)
{
    int status = 0;

    if (waitpid(t->pid, &status, 0) != t->pid)
        return "unknown";
    return WIFSIGNALED(status) ? t_printf("signal %d", WTERMSIG(status))
                               : t_printf("exit %d", WEXITSTATUS(status));
}

/* Waits until `text` comes, after what was expected before. */
static char *
expect(terminal *t, const char *text)
{
    char *at;

    while (!(at = strstr(t->said + t->seen, text)))
        ck_assert_msg(read_more(t), "it ends (%s) without '%s': %s",
                      how_it_ended(t), text, t->said);
    t->seen = (size_t)(at - t->said) + strlen(text);
    return at;
}

static void
type(terminal *t, const char *text)
{
    ck_assert_int_eq((int)write(t->fd, text, strlen(text)), (int)strlen(text));
}

static void
ends(terminal *t)
{
    int status;

    while (read_more(t))
        ;
    ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x: %s",
                  (unsigned)status, t->said);
    close(t->fd);
}

TEST_WITHIN(chat_streams_its_answer_and_ends_with_ctrl_d, 80)
{
    terminal *t = chat("--max-tokens", "60");
    int most = 0;

    expect(t, "on tier ");
    expect(t, "Ctrl-D ends.");
    expect(t, "> ");
    /* Pieces, not one text; who reads late on a busy machine gets several. */
    for (int i = 0; i < 8 && most < 5; i++) {
        int before;

        type(t, "Tell me a story about a fox.\r");
        expect(t, "about a fox.");
        before = t->reads;
        expect(t, " tok/s, first after ");
        most = BR_MAX(most, t->reads - before);
        expect(t, "cut at --max-tokens");
        expect(t, "> ");
    }
    ck_assert_int_ge(most, 5);
    type(t, "\004");
    ends(t);
}

/* As in a container, or over ssh: nothing says which letters there are. */
TEST_WITHIN(chat_takes_letters_beyond_ascii_without_a_locale, 80)
{
    const char *path = t_printf("%s/talk.json", t_tmpdir());
    const char *word = "gr\xC3\xBC\xC3\x9F dich";
    terminal *t;
    size_t n;

    setenv("LC_ALL", "C", 1);
    t = chat("--max-tokens", "3");
    expect(t, "> ");
    type(t, word);
    type(t, "\r");
    expect(t, word);
    expect(t, "cut at --max-tokens");
    expect(t, "> "); /* what is typed between two lines is in another mode */
    type(t, t_printf("/save %s\r", path));
    expect(t, "messages are in ");
    expect(t, "> ");
    type(t, "\004");
    ends(t);
    ck_assert_ptr_nonnull(strstr(t_read(path, &n), word));
}

TEST_WITHIN(chat_keeps_to_plain_text_where_it_is_asked_to, 80)
{
    terminal *t;

    t_not_for_tsan("chat_streams_its_answer_and_ends_with_ctrl_d");
    setenv("NO_COLOR", "1", 1);
    t = chat("--max-tokens", "3");
    expect(t, "> ");
    type(t, "hi\r");
    expect(t, " tok/s, first after ");
    expect(t, "> ");
    type(t, "\004");
    ends(t);
    ck_assert_ptr_null(strstr(t->said, "\033[2m"));
    ck_assert_ptr_null(strstr(t->said, "\033[0m"));
}

TEST_WITHIN(chat_obeys_its_commands_at_a_terminal, 80)
{
    const char *path = t_printf("%s/talk.json", t_tmpdir());
    terminal *t = chat("--max-tokens", "4");
    struct stat info;

    t_not_for_tsan("chat_streams_its_answer_and_ends_with_ctrl_d");
    expect(t, "> ");
    type(t, "/help\r");
    expect(t, "/save FILE");
    expect(t, "Ctrl-C ends an answer");
    expect(t, "> ");
    type(t, "/system Be kind.\r");
    expect(t, "(The talk begins with that now.)");
    expect(t, "> ");
    type(t, "Hello\\\r");
    expect(t, ". "); /* the line goes on */
    type(t, "there!\r");
    expect(t, "first after");
    expect(t, "> ");
    type(t, t_printf("/save %s\r", path));
    expect(t, "(3 messages are in ");
    expect(t, "> ");
    type(t, "/quit\r");
    ends(t);
    ck_assert_ptr_nonnull(strstr(t_read(path, NULL), "\"Hello\\nthere!\""));
    ck_assert_int_eq(stat(t_printf("%s/brass/history", t_tmpdir()), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
}

/* Nothing but Ctrl-C would end this answer soon. */
TEST_WITHIN(chat_stops_an_answer_at_ctrl_c_and_goes_on, 80)
{
    terminal *t = chat(ENDLESS);

    expect(t, "> ");
    type(t, "/system Be kind.\r");
    expect(t, "> ");
    type(t, "Tell me a story about a fox.\r");
    expect(t, "about a fox.");
    while (t->n < t->seen + 40)
        ck_assert(read_more(t));
    type(t, "\003");
    expect(t, "; stopped");
    expect(t, "> ");
    type(t, "not this line\003");
    expect(t, "^C");
    expect(t, "> ");
    type(t, "/help\r");
    expect(t, "/quit");
    expect(t, "> ");
    type(t, "\004");
    ends(t);
}

/* Ctrl-S holds the terminal: the answer waits in a write when Ctrl-C comes. */
TEST_WITHIN(chat_outlives_a_ctrl_c_while_its_terminal_is_held, 80)
{
    terminal *t = chat(ENDLESS);

    expect(t, "> ");
    type(t, "Tell me a story about a fox.\r");
    expect(t, "about a fox.");
    while (t->n < t->seen + 10)
        ck_assert(read_more(t));
    type(t, "\023");
    while (poll(&(struct pollfd){.fd = t->fd, .events = POLLIN}, 1, 300) == 1)
        ck_assert(read_more(t));
    ck_assert_int_eq(kill(t->pid, SIGINT), 0);
    br_sleep_ns(20000000);
    type(t, "\021");
    expect(t, "; stopped");
    expect(t, "> ");
    type(t, "\004");
    ends(t);
}

/* Wherever it comes the terminal is as it was, and who waits sees the signal. */
TEST_WITHIN(chat_leaves_the_terminal_as_it_was_when_told_to_end, 80)
{
    static const int how[] = {SIGTERM, SIGHUP, SIGTERM};

    for (size_t i = 0; i < BR_COUNT(how); i++) {
        terminal *t = chat(ENDLESS);
        struct termios before, after;

        ck_assert_int_eq(tcgetattr(t->fd, &before), 0);
        expect(t, "> ");
        type(t, i < 2 ? "half a line" : "Tell me a story about a fox.\r");
        expect(t, i < 2 ? "half a line" : "about a fox.");
        ck_assert_int_eq(kill(t->pid, how[i]), 0);
        while (read_more(t))
            ;
        ck_assert_str_eq(how_it_ended(t), t_printf("signal %d", how[i]));
        ck_assert_int_eq(tcgetattr(t->fd, &after), 0);
        ck_assert_uint_eq(after.c_lflag, before.c_lflag);
        ck_assert_uint_eq(after.c_iflag, before.c_iflag);
        close(t->fd);
    }
}

static bool
interrupt_waits(const terminal *t)
{
    char *status = t_read(t_printf("/proc/%d/status", (int)t->pid), NULL);
    char *set = strstr(status, "ShdPnd:");

    ck_assert_ptr_nonnull(set);
    return strtoull(set + 7, NULL, 16) >> (SIGINT - 1) & 1;
}

/* A Ctrl-C that came at the prompt throws away what was typed by then, so the
 * word is said until it is heard. */
static void
until_heard(terminal *t, const char *word)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    const char *answer = t_printf("there is no %s", word);

    while (interrupt_waits(t))
        br_sleep_ns(100000);
    type(t, t_printf("%s\r", word));
    while (!strstr(t->said + t->seen, answer)) {
        if (poll(&p, 1, 3000) == 0)
            type(t, t_printf("%s\r", word));
        else
            ck_assert_msg(read_more(t), "it ends (%s) without '%s': %s",
                          how_it_ended(t), answer, t->said);
    }
    expect(t, answer);
    expect(t, "> ");
}

/* Wherever between Enter and the next prompt it comes: the answer ends, not
 * the talk. */
TEST_WITHIN(chat_outlives_a_ctrl_c_right_after_enter, 80)
{
    terminal *t = chat("--max-tokens", "1");

    expect(t, "> ");
    for (int i = 0; i < 24; i++) {
        type(t, "Hi.\r");
        expect(t, "Hi.");
        br_sleep_ns(i * 100000);
        ck_assert_int_eq(kill(t->pid, SIGINT), 0);
        until_heard(t, t_printf("/%d", i));
    }
    type(t, "/quit\r");
    ends(t);
}

TEST_WITHIN(chat_shows_how_far_a_long_prompt_is, 120)
{
    terminal *t = chat("--tier", "ref");

    t_not_for_tsan("chat_streams_its_answer_and_ends_with_ctrl_d");
    expect(t, "> ");
    for (int i = 0; i < 60; i++)
        type(t, "The fox ran home. ");
    type(t, "\r");
    expect(t, "reading the prompt ");
    expect(t, "%");
    type(t, "\003");
    expect(t, "; stopped");
    expect(t, "> ");
    type(t, "\004");
    ends(t);
}
