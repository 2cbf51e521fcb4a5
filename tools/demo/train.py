#!/usr/bin/env python3
"""train.py - makes the demo model: corpus, vocabulary, training, GGUF.

    python3 tools/demo/train.py --minutes 6 --out DIR [--vocab OLD.gguf]

One GPU, PyTorch and the `tokenizers` package. Everything comes from corpus.c and
this file; nothing is downloaded. Writes DIR/demo.gguf (Q8_0), DIR/loss.tsv,
DIR/loss.svg, DIR/report.json (perplexity on unseen stories, questions about
unseen plots, both with the quantised weights) and DIR/samples.txt.

The model is a plain Llama: RMSNorm, rotary pairs (2i, 2i+1), grouped-query
attention, SwiGLU, tied embeddings; byte-level BPE of 2048 pieces.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import time
from multiprocessing import Pool

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIAL = ["<|bos|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>",
           "<|pad|>"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
    "{% endif %}")
CTX, VOCAB, DIM, LAYERS, HEADS, KV, FFN = 1024, 2048, 384, 7, 6, 2, 896
EPS, THETA = 1e-5, 10000.0
HD = DIM // HEADS
T0 = time.time()


def say(text):
    print(f"[{time.time() - T0:6.1f}s] {text}", flush=True)


# ---- corpus and vocabulary ---------------------------------------------------

def build_corpus(work):
    exe = os.path.join(work, "corpus")
    subprocess.run(["cc", "-O2", "-std=c11", "-o", exe,
                    os.path.join(HERE, "corpus.c"),
                    os.path.join(HERE, "plots.c")], check=True)
    return exe


def generate(args):
    exe, seed, size, path = args
    with open(path, "wb") as f:
        subprocess.run([exe, "--bytes", str(size), "--seed", str(seed)],
                       stdout=f, check=True)
    return path


def make_vocab(path):
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                 use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    with open(path, encoding="utf-8") as f:
        text = f.read(24_000_000)
    tok.train_from_iterator((text[i:i + 4000] for i in
                             range(0, len(text), 4000)), trainer)
    return tok


def read_vocab(path):
    """The vocabulary of an earlier model, so that its token numbers stay."""
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders
    with open(path, "rb") as f:
        data = f.read()
    lists = {}
    for name in ("tokens", "merges"):
        key = Gguf.text("tokenizer.ggml." + name)
        at = data.index(key) + len(key)
        _, _, n = struct.unpack_from("<IIQ", data, at)
        at, words = at + 16, []
        for _ in range(n):
            size, = struct.unpack_from("<Q", data, at)
            words.append(data[at + 8:at + 8 + size].decode())
            at += 8 + size
        lists[name] = words
    tok = Tokenizer(models.BPE(
        {t: i for i, t in enumerate(lists["tokens"])},
        [tuple(m.split(" ")) for m in lists["merges"]]))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                 use_regex=True)
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(SPECIAL)
    return tok


def encode_file(args):
    path, vocab = args
    os.environ["RAYON_NUM_THREADS"] = "1"
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(vocab)
    with open(path, encoding="utf-8") as f:
        docs = f.read().split("<|bos|>")[1:]
    out = []
    for i in range(0, len(docs), 512):
        for e in tok.encode_batch(["<|bos|>" + d for d in docs[i:i + 512]]):
            out.append(np.array(e.ids, dtype=np.uint16))
    ids = np.concatenate(out)
    np.save(path + ".npy", ids)
    os.unlink(path)
    return path + ".npy", len(ids)


# ---- the model -----------------------------------------------------------------

def rope_table(n, device):
    f = THETA ** (-torch.arange(0, HD, 2, dtype=torch.float64) / HD)
    a = torch.outer(torch.arange(n, dtype=torch.float64), f)
    return a.cos().float().to(device), a.sin().float().to(device)


def rotate(x, cos, sin):  # pairs (2i, 2i+1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        lin = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.attn_norm = torch.nn.Parameter(torch.ones(DIM))
        self.ffn_norm = torch.nn.Parameter(torch.ones(DIM))
        self.q, self.k, self.v = lin(DIM, DIM), lin(DIM, KV * HD), lin(DIM, KV * HD)
        self.o = lin(DIM, DIM)
        self.gate, self.up, self.down = lin(DIM, FFN), lin(DIM, FFN), lin(FFN, DIM)

    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        h = F.rms_norm(x, (DIM,), self.attn_norm, EPS)
        q = self.q(h).view(B, T, HEADS, HD).transpose(1, 2)
        k = self.k(h).view(B, T, KV, HD).transpose(1, 2)
        v = self.v(h).view(B, T, KV, HD).transpose(1, 2)
        q, k = rotate(q, cos[:T], sin[:T]), rotate(k, cos[:T], sin[:T])
        k = k.repeat_interleave(HEADS // KV, 1)
        v = v.repeat_interleave(HEADS // KV, 1)
        a = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v,
                                           is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(B, T, DIM))
        h = F.rms_norm(x, (DIM,), self.ffn_norm, EPS)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCAB, DIM)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.Parameter(torch.ones(DIM))
        cos, sin = rope_table(CTX, "cpu")
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for n, p in self.named_parameters():
            if p.dim() == 2:
                std = 0.02
                if n.endswith(("o.weight", "down.weight")):
                    std /= math.sqrt(2 * LAYERS)
                torch.nn.init.normal_(p, std=std)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x, self.cos, self.sin)
        x = F.rms_norm(x, (DIM,), self.norm, EPS)
        return F.linear(x, self.embed.weight)


def train(ids, minutes, out):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Model().cuda()
    say(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")
    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    peak, batch = 3e-3, 256
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                             {"params": rest, "weight_decay": 0.0}],
                            lr=peak, betas=(0.9, 0.95), fused=True)
    step_model = torch.compile(model)
    data = torch.from_numpy(ids.astype(np.int32)).cuda()
    gen = torch.Generator(device="cuda").manual_seed(2)
    span = torch.arange(CTX + 1, device="cuda")

    def one_step():
        at = torch.randint(0, len(data) - CTX - 1, (batch, 1), device="cuda",
                           generator=gen)
        x = data[at + span].long()
        with torch.autocast("cuda", torch.bfloat16):
            logits = step_model(x[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1),
                               x[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        return loss

    one_step().item()
    say("compiled")
    start, step, log, acc = time.time(), 0, [], 0.0
    while True:
        done = (time.time() - start) / (minutes * 60)
        if done >= 1:
            break
        warm = min(1.0, step / 100)
        lr = peak * warm * min(1.0, (1 - done) / 0.6)
        for g in opt.param_groups:
            g["lr"] = lr
        acc += one_step().detach()
        step += 1
        if step % 50 == 0:
            log.append((step, step * batch * CTX, float(acc) / 50))
            acc = 0.0
            if step % 200 == 0:
                say(f"step {step} tokens {step * batch * CTX / 1e6:.0f}M "
                    f"loss {log[-1][2]:.4f} lr {lr:.2e}")
    with open(os.path.join(out, "loss.tsv"), "w") as f:
        f.write("step\ttokens\tloss\n")
        f.writelines(f"{s}\t{t}\t{l:.5f}\n" for s, t, l in log)
    draw_loss(log, os.path.join(out, "loss.svg"))
    return model, step * batch * CTX, log


def draw_loss(log, path):
    """Loss over tokens, both on a logarithmic scale."""
    w, h = 640, 260
    x0, x1 = math.log(log[0][1]), math.log(log[-1][1])
    y0, y1 = math.log(0.25), math.log(8)
    X = lambda t: 50 + 580 * (math.log(t) - x0) / (x1 - x0)
    Y = lambda l: 230 - 210 * (math.log(l) - y0) / (y1 - y0)
    pts = " ".join(f"{X(t):.1f},{Y(l):.1f}" for _, t, l in log)
    grid = "".join(
        f'<path d="M50 {Y(v):.0f}H630" stroke="#ddd"/>'
        f'<text x="44" y="{Y(v) + 4:.0f}" text-anchor="end">{v:g}</text>'
        for v in (0.25, 0.5, 1, 2, 4, 8))
    grid += "".join(
        f'<text x="{X(v * 1e6):.0f}" y="250" text-anchor="middle">{v} M</text>'
        for v in (20, 50, 100, 200, 500, 1000) if log[0][1] <= v * 1e6
        <= log[-1][1])
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" '
                f'height="{h}" font-family="sans-serif" font-size="12" '
                f'fill="#555"><rect width="{w}" height="{h}" fill="#fff"/>'
                f'{grid}<polyline points="{pts}" fill="none" stroke="#0a6" '
                f'stroke-width="2"/><text x="630" y="16" text-anchor="end">'
                f'loss a token over tokens seen, ends at {log[-1][2]:.3f}'
                f'</text></svg>\n')


# ---- quantise and write ------------------------------------------------------------

def q8_0(w):
    """f32 rows to Q8_0 blocks; returns bytes and the values they stand for."""
    b = w.reshape(-1, 32).astype(np.float32)
    d = np.abs(b).max(1, keepdims=True) / np.float32(127)
    inv = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
    q = np.trunc(b * inv + np.copysign(np.float32(0.5), b)).astype(np.int8)
    d16 = d.astype(np.float16)
    raw = np.concatenate([d16.view(np.uint8).reshape(-1, 2),
                          q.view(np.uint8)], 1)
    return raw.tobytes(), (d16.astype(np.float32) * q).reshape(w.shape)


class Gguf:
    ALIGN = 32

    def __init__(self):
        self.kv, self.tensors, self.n_kv = b"", [], 0

    @staticmethod
    def text(s):
        b = s.encode()
        return struct.pack("<Q", len(b)) + b

    def put(self, key, kind, value):
        code = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8}[kind]
        pack = {"u32": lambda v: struct.pack("<I", v),
                "i32": lambda v: struct.pack("<i", v),
                "f32": lambda v: struct.pack("<f", v),
                "bool": lambda v: struct.pack("<?", v), "str": self.text}[kind]
        self.kv += self.text(key)
        if isinstance(value, list):
            self.kv += struct.pack("<IIQ", 9, code, len(value))
            self.kv += b"".join(pack(v) for v in value)
        else:
            self.kv += struct.pack("<I", code) + pack(value)
        self.n_kv += 1

    def tensor(self, name, shape, kind, raw):  # shape as numpy's
        self.tensors.append((name, shape[::-1], {"F32": 0, "Q8_0": 8}[kind], raw))

    def write(self, path):
        head = struct.pack("<IIQQ", 0x46554747, 3, len(self.tensors), self.n_kv)
        info, at = b"", 0
        for name, dims, code, raw in self.tensors:
            info += self.text(name) + struct.pack("<I", len(dims))
            info += struct.pack(f"<{len(dims)}Q", *dims)
            info += struct.pack("<IQ", code, at)
            at += -(-len(raw) // self.ALIGN) * self.ALIGN
        blob = head + self.kv + info
        with open(path, "wb") as f:
            f.write(blob + b"\0" * (-len(blob) % self.ALIGN))
            for _, _, _, raw in self.tensors:
                f.write(raw + b"\0" * (-len(raw) % self.ALIGN))


def export(model, tok, path):
    """Writes the file and puts the quantised values back into the model."""
    g = Gguf()
    vocab = sorted(tok.get_vocab().items(), key=lambda x: x[1])
    merges = json.loads(tok.to_str())["model"]["merges"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in merges]
    g.put("general.architecture", "str", "llama")
    g.put("general.name", "str", "Brass little stories")
    g.put("general.license", "str", "apache-2.0")
    g.put("general.description", "str",
          "Tells little stories and answers questions about them.")
    g.put("general.file_type", "u32", 7)
    g.put("general.quantization_version", "u32", 2)
    for key, v in [("block_count", LAYERS), ("context_length", CTX),
                   ("embedding_length", DIM), ("feed_forward_length", FFN),
                   ("attention.head_count", HEADS),
                   ("attention.head_count_kv", KV),
                   ("rope.dimension_count", HD), ("vocab_size", VOCAB)]:
        g.put("llama." + key, "u32", v)
    g.put("llama.attention.layer_norm_rms_epsilon", "f32", EPS)
    g.put("llama.rope.freq_base", "f32", THETA)
    g.put("tokenizer.ggml.model", "str", "gpt2")
    g.put("tokenizer.ggml.pre", "str", "gpt-2")
    g.put("tokenizer.ggml.tokens", "str", [t for t, _ in vocab])
    g.put("tokenizer.ggml.token_type", "i32",
          [3 if t in SPECIAL else 1 for t, _ in vocab])
    g.put("tokenizer.ggml.merges", "str", merges)
    g.put("tokenizer.ggml.bos_token_id", "u32", SPECIAL.index("<|bos|>"))
    g.put("tokenizer.ggml.eos_token_id", "u32", SPECIAL.index("<|end|>"))
    g.put("tokenizer.ggml.padding_token_id", "u32", SPECIAL.index("<|pad|>"))
    g.put("tokenizer.ggml.add_bos_token", "bool", True)
    g.put("tokenizer.chat_template", "str", TEMPLATE)
    with torch.no_grad():
        def put(name, p):
            w = p.detach().float().cpu().numpy()
            if w.ndim == 1:
                g.tensor(name, w.shape, "F32", w.astype("<f4").tobytes())
                return
            raw, back = q8_0(w)
            g.tensor(name, w.shape, "Q8_0", raw)
            p.copy_(torch.from_numpy(back))
        put("token_embd.weight", model.embed.weight)
        put("output_norm.weight", model.norm)
        for i, b in enumerate(model.blocks):
            for name, p in [("attn_norm", b.attn_norm), ("attn_q", b.q.weight),
                            ("attn_k", b.k.weight), ("attn_v", b.v.weight),
                            ("attn_output", b.o.weight),
                            ("ffn_norm", b.ffn_norm), ("ffn_gate", b.gate.weight),
                            ("ffn_up", b.up.weight), ("ffn_down", b.down.weight)]:
                put(f"blk.{i}.{name}.weight", p)
    g.write(path)
    return os.path.getsize(path)


# ---- judge ------------------------------------------------------------------------------

def prompt(turns):
    s = "<|bos|>" + "".join(f"<|{who}|>\n{what}<|end|>\n" for who, what in turns)
    return s + "<|assistant|>\n"


@torch.no_grad()
def answer(model, tok, texts, limit, temp=0.0):
    """Greedy (or sampled) continuations up to <|end|>, in one padded batch."""
    rows = [tok.encode(t).ids for t in texts]
    n = max(map(len, rows))
    end = SPECIAL.index("<|end|>")
    ids = torch.zeros(len(rows), n + limit, dtype=torch.long, device="cuda")
    size = torch.tensor([len(r) for r in rows], device="cuda")
    for i, r in enumerate(rows):
        ids[i, :len(r)] = torch.tensor(r)
    done = torch.zeros(len(rows), dtype=torch.bool, device="cuda")
    at = torch.arange(len(rows), device="cuda")
    for _ in range(limit):
        m = int(size.max())
        if m >= CTX:
            break
        logits = model(ids[:, :m])[at, size - 1].float()
        nxt = (logits.argmax(-1) if temp == 0 else
               torch.multinomial((logits / temp).softmax(-1), 1)[:, 0])
        done |= nxt == end
        if bool(done.all()):
            break
        ids[at, size] = torch.where(done, ids[at, size], nxt)
        size += (~done).long()
    return [tok.decode(ids[i, len(r):int(size[i])].tolist())
            for i, r in enumerate(rows)], done.tolist()


@torch.no_grad()
def judge(model, tok, exe, tokens, log, out):
    ev = [json.loads(x) for x in subprocess.run(
        [exe, "--eval", "400", "--seed", "99"], check=True,
        capture_output=True, text=True).stdout.splitlines()]
    nll = count = 0
    for e in ev[:200]:
        ids = torch.tensor(tok.encode("<|bos|>" + e["story"] + "<|end|>").ids,
                           device="cuda")[None]
        loss = F.cross_entropy(model(ids[:, :-1])[0].float(), ids[0, 1:],
                               reduction="sum")
        nll, count = nll + loss.item(), count + ids.shape[1] - 1
    rng = np.random.default_rng(5)
    cases = []
    for e in ev[200:400]:
        qa = e["qa"][rng.integers(len(e["qa"]))]
        cases.append((e, qa))
    got, _ = answer(model, tok, [prompt([("user", e["wish"]),
                                         ("assistant", e["story"]),
                                         ("user", qa["q"])])
                                 for e, qa in cases], 48)
    right = [qa["key"].lower() in a.lower() for (_, qa), a in zip(cases, got)]
    exact = [qa["a"].strip() == a.strip() for (_, qa), a in zip(cases, got)]
    who = [(e, qa) for e in ev[:100] for qa in e["qa"]
           if "'s name was" in qa["a"]]
    said, _ = answer(model, tok, [prompt([("user", e["wish"]),
                                          ("assistant", e["story"]),
                                          ("user", qa["q"])])
                                  for e, qa in who], 16)
    named = sum(qa["key"] in a for (_, qa), a in zip(who, said))
    wishes = [e["wish"] for e in ev[:49]] + ["Tell me a story about a fox."]
    tales, stopped = answer(model, tok, [prompt([("user", w)]) for w in wishes],
                            320, temp=0.7)
    with open(os.path.join(out, "samples.txt"), "w") as f:
        for w, t in zip(wishes, tales):
            f.write(f"> {w}\n{t}\n\n")
        f.write("---- wrong answers\n")
        for (e, qa), a, ok in zip(cases, got, right):
            if not ok:
                f.write(f"{e['story']}\nQ {qa['q']}\nwant {qa['a']}\n"
                        f"got  {a}\n\n")
    report = {"parameters": sum(p.numel() for p in model.parameters()),
              "tokens_trained": tokens, "final_loss": log[-1][2],
              "perplexity_unseen": math.exp(nll / count),
              "questions": len(cases), "right": sum(right),
              "word_for_word": sum(exact),
              "names": len(who), "names_right": named,
              "stories_that_stop": sum(stopped), "stories": len(tales)}
    with open(os.path.join(out, "report.json"), "w") as f:
        json.dump(report, f, indent=2)
    say(json.dumps(report))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--minutes", type=float, default=6)
    ap.add_argument("--megabytes", type=int, default=1200)
    ap.add_argument("--vocab", help="a model whose vocabulary to keep")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    work = os.path.join("/tmp", f"demo-{os.getpid()}")
    os.makedirs(work)
    exe = build_corpus(work)
    parts = max(1, os.cpu_count() or 1)
    size = a.megabytes * 1_000_000 // parts
    with Pool(parts) as pool:
        files = pool.map(generate, [(exe, 1000 + i, size,
                                     os.path.join(work, f"part{i}.txt"))
                                    for i in range(parts)])
        say(f"{a.megabytes} MB of stories")
        tok = read_vocab(a.vocab) if a.vocab else make_vocab(files[0])
        vocab = os.path.join(work, "vocab.json")
        tok.save(vocab)
        say(f"vocabulary of {tok.get_vocab_size()}")
        ids = [np.load(p) for p, _ in
               pool.map(encode_file, [(f, vocab) for f in files], 1)]
    ids = np.concatenate(ids)
    say(f"{len(ids) / 1e6:.1f} M tokens, "
        f"{a.megabytes / (len(ids) / 1e6):.2f} bytes a token")
    model, tokens, log = train(ids, a.minutes, a.out)
    size = export(model, tok, os.path.join(a.out, "demo.gguf"))
    say(f"demo.gguf: {size / 1e6:.2f} MB")
    model.eval()
    judge(model, tok, exe, tokens, log, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
