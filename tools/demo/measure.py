#!/usr/bin/env python3
"""measure.py - judges the demo model as users get it, by ./brass alone.

    python3 tools/demo/measure.py [MODEL] [--seed N] [--names]

Perplexity (brass logits) and questions (brass serve, greedy) on stories whose
combination of plot, hero, name and friend was never in training; then 50 talks:
a sampled story with two characters, and what each one's name was, asked by
species; then colours and traits of 60 unseen stories, question by question.
--names asks for names under other ways to sample, too. Some minutes on two
cores; needs Python, cc and a built ./brass.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import array
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
BRASS = os.path.abspath(os.path.join(HERE, "..", "..", "brass"))
NAMED = [r"(?:a|an) (?:[a-z]+ )*?(\w+) (?:called|named) ([A-Z]\w+)",
         r"(?:a|an) (?:[a-z]+ )*?(\w+)\. (?:His|Her) name was ([A-Z]\w+)",
         r"([A-Z]\w+) the (\w+)"]
with open(os.path.join(HERE, "words.def")) as words:
    text = words.read()
    NAMES = set(re.findall(r'"([A-Z]\w+)"', text))
    KINDS = set(re.findall(r'H\("(\w+)"', text))


def brass(*args):
    return subprocess.run([BRASS, *args], check=True,
                          capture_output=True).stdout


def perplexity(model, stories, work):
    """e to the mean negative log likelihood of a token."""
    nll = count = 0
    path = os.path.join(work, "logits")
    for s in stories:
        text = "<|bos|>" + s + "<|end|>"
        ids = list(map(int, brass("tokenize", model, "--ids", "--no-bos",
                                  "--parse-special", text).split()))
        brass("logits", model, "--tier", "cpu", "-o", path, "--tokens",
              ",".join(map(str, ids)))
        x = array.array("f")
        with open(path, "rb") as f:
            x.frombytes(f.read())
        n = len(x) // len(ids)
        for i, t in enumerate(ids[1:]):
            row = x[i * n:(i + 1) * n]
            top = max(row)
            nll += top - row[t] + math.log(
                sum(math.exp(v - top) for v in row))
        count += len(ids) - 1
    return math.exp(nll / count), count


class Server:
    def __init__(self, model, work):
        self.p = subprocess.Popen(
            [BRASS, "serve", os.path.abspath(model), "--port", "0"], cwd=work,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.p.stdout:
            m = re.search(r"http://[\d.]+:\d+", line)
            if m:
                self.url = m.group() + "/v1/chat/completions"
                return
        raise SystemExit("brass serve ended")

    def say(self, turns, **sampling):
        body = {"messages": [{"role": "user" if i % 2 == 0 else "assistant",
                              "content": t} for i, t in enumerate(turns)],
                "max_tokens": 400, **sampling}
        r = urllib.request.Request(self.url, json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
        for wait in range(60):
            try:
                with urllib.request.urlopen(r, timeout=300) as f:
                    c = json.load(f)["choices"][0]
                return c["message"]["content"], c["finish_reason"]
            except urllib.error.HTTPError as e:
                text = e.read().decode()
                if e.code != 503:  # it is still loading
                    raise SystemExit(f"{e.code}: {text}")
                time.sleep(wait / 10)
        raise SystemExit(f"503: {text}")


def cast(story):
    """The two who are named in it, by species; None: not two, or alike."""
    who = {}
    for p in NAMED:
        for a, b in re.findall(p, story):
            name, kind = (a, b) if a[0].isupper() else (b, a)
            if name not in NAMES:
                continue
            if who.setdefault(kind, name) != name:
                return None
    return who if len(who) == 2 and len(set(who.values())) == 2 else None


def names(server, wishes, **sampling):
    """Of stories with two characters: asked, right, the other's name."""
    asked = right = swapped = other = ended = n = 0

    def one(job):
        i, wish = job
        story, why = server.say([wish], seed=i, **sampling)
        who = cast(story)
        got = [(name, [v for v in who.values() if v != name][0],
                server.say([wish, story, f"What was the {kind}'s name?"],
                           seed=i, **sampling)[0])
               for kind, name in (who or {}).items()]
        return why, got

    with ThreadPoolExecutor(4) as pool:
        for why, got in pool.map(one, enumerate(wishes)):
            ended += why == "stop"
            n += bool(got)
            for name, wrong, a in got:
                asked += 1
                right += name in a
                swapped += wrong in a and name not in a
                other += wrong not in a and name not in a
    print(f"names, {sampling or 'defaults'}: {len(wishes)} stories, {ended} "
          f"ended by themselves, {n} with two characters; asked {asked}, "
          f"right {right}, the other's {swapped}, neither {other}", flush=True)


def looks(server, stories):
    """Colours and traits, greedy: right of asked, each with its wrong ones."""
    jobs = [(e, qa) for e in stories for qa in e["qa"]
            if qa["look"] or qa["a"].startswith("It is about")]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda j: server.say(
            [j[0]["wish"], j[0]["story"], j[1]["q"]],
            temperature=0)[0], jobs))
    count = {}
    for (_, qa), a in zip(jobs, got):
        kind = ("or" if " or " in qa["q"] else "about"
                if not qa["look"] else "thing"
                if qa["a"].startswith("The") and "colour" in qa["q"] and
                qa["a"].split()[1] not in KINDS else "coat"
                if "colour" in qa["q"] else "trait")
        n = count.setdefault(kind, [0, 0])
        n[0] += a == qa["a"]
        n[1] += 1
    print("colours and traits, word for word: " + ", ".join(
        f"{k} {r} of {n}" for k, (r, n) in sorted(count.items())), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("model", nargs="?", default="models/demo.gguf")
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--names", action="store_true")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as work:
        exe = os.path.join(work, "corpus")
        subprocess.run(["cc", "-O2", "-o", exe, f"{HERE}/corpus.c",
                        f"{HERE}/plots.c"], check=True)
        ev = [json.loads(x) for x in subprocess.run(
            [exe, "--eval", "400", "--seed", str(a.seed)], check=True,
            capture_output=True, text=True).stdout.splitlines()]
        ppl, n = perplexity(a.model, [e["story"] for e in ev[:60]], work)
        print(f"perplexity {ppl:.3f} over {n} tokens of 60 stories", flush=True)
        server = Server(a.model, work)
        try:
            rng = random.Random(5)
            cases = [(e, rng.choice(e["qa"])) for e in ev[200:]]
            with ThreadPoolExecutor(4) as pool:
                got = list(pool.map(lambda c: server.say(
                    [c[0]["wish"], c[0]["story"], c[1]["q"]],
                    temperature=0)[0], cases))
            bad = [(c[1], g) for c, g in zip(cases, got)
                   if c[1]["key"].lower() not in g.lower()]
            print(f"questions: {len(cases) - len(bad)} of {len(cases)} right, "
                  f"{sum(c[1]['a'] == g for c, g in zip(cases, got))} word for "
                  f"word", flush=True)
            for q, g in bad:
                print(f"  {q['q']} {q['a']} | {g}")
            wishes = [e["wish"] for e in ev[:50]]
            ways = [{"temperature": 0.7}]
            if a.names:
                ways += [{}, {"temperature": 0}, {"temperature": 0.3},
                         {"temperature": 0.7, "min_p": 0.2},
                         {"temperature": 0.7, "top_p": 0.8}]
            for way in ways:
                names(server, wishes, **way)
            looks(server, ev[60:120])
        finally:
            server.p.terminate()
            server.p.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
