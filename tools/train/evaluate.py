#!/usr/bin/env python3
"""Measure a model that train.py wrote: tasks, recall by length, bits per byte of held-out text, MTP acceptance.

The items are drawn with seeds of their own, from the part of each task's space that training never sees.
"""
import argparse
import json
import math
import os
import random

import torch
import torch.nn.functional as F

import delta
import model
import tasks
from bpe import Tokenizer

RECORDED = 16  # items of a cell that --record keeps: those with the shortest prompts and replies
RECALL_PAIRS = (8, 16, 32, 64, 100, 130, 170)
WINDOW = 2048
DRAFTS = 3
PARTS = ("tasks", "recall", "text", "mtp")


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model", help="folder that train.py wrote, models/demo for instance")
    p.add_argument("data", help="folder that pack.py wrote")
    p.add_argument("out", help="JSON file for the results")
    p.add_argument("--items", type=int, default=50, help="items of a task, and as many again with thinking (50)")
    p.add_argument("--tasks", default=",".join(tasks.EVAL), help="names, separated by commas (all 47)")
    p.add_argument("--parts", default=",".join(PARTS), help="what to measure (tasks,recall,text,mtp)")
    p.add_argument("--text-bytes", type=int, help="about so much held-out text, drawn at random (all)")
    p.add_argument(
        "--bits", type=int, choices=(4, 8), help="round every matrix to 4 or 8 bits first, to show what such a format does"
    )
    p.add_argument(
        "--record", metavar="FILE",
        help=f"write the {RECORDED} shortest items of each cell with their replies, as tests/golden/eval.json"
    )
    p.add_argument("--cpu", action="store_true", help="run on the CPU")
    args = p.parse_args()
    args.tasks, args.parts = args.tasks.split(","), args.parts.split(",")
    for given, known, what in ((args.tasks, tasks.EVAL, "task"), (args.parts, PARTS, "part")):
        for name in given:
            if name not in known:
                p.error(f"no {what} is named {name}: the {what}s are {', '.join(known)}")
    return args


@torch.no_grad()
def round_matrices(m, bits):
    """Groups of 32 along the input, an f16 scale from the largest magnitude."""
    top = 127 if bits == 8 else 7
    for p in m.parameters():
        if p.ndim == 2 and p.shape[1] % 32 == 0:
            g = p.view(p.shape[0], -1, 32)
            scale = (g.abs().amax(-1, keepdim=True) / top).clamp_min(1e-12).half().float()
            p.copy_(((g / scale).round().clamp(-top - 1, top) * scale).view_as(p))


class Subject:
    """The model under test, in float32 on its device."""

    def __init__(self, args):
        self.device = "cpu" if args.cpu else "cuda"
        if not args.cpu:
            torch.backends.cuda.matmul.allow_tf32 = False
            delta.use_gpu(torch.float32)
        self.m = model.load(os.path.join(args.model, "model.safetensors"))
        if args.bits:
            round_matrices(self.m, args.bits)
        self.m = self.m.to(self.device).eval()
        self.tokenizer = Tokenizer(args.model)
        self.eot = self.tokenizer.special["<|endoftext|>"]
        self.stops = (self.tokenizer.special["<|im_end|>"], self.eot)

    def pad(self, rows, length):
        ids = torch.full((len(rows), length), self.eot, dtype=torch.long)
        for i, x in enumerate(rows):
            ids[i, :len(x)] = torch.tensor(x)
        return ids.to(self.device)

    def reply(self, ids):
        return self.tokenizer.decode([t for t in ids if t not in self.stops])

    @torch.no_grad()
    def generate(self, prompts, limit, stop=True):
        """Greedy continuations, up to and with the stop token."""
        L = chunks(max(map(len, prompts)))
        ids = torch.full((len(prompts), L), self.eot, dtype=torch.long)
        mask = torch.zeros(len(prompts), L, dtype=torch.bool)
        for i, p in enumerate(prompts):
            ids[i, L - len(p):] = torch.tensor(p)
            mask[i, L - len(p):] = True
        mask = mask.to(self.device)
        h, cache = self.m.prefill(ids.to(self.device), mask)
        next_ids = self.m.logits(h[:, -1]).argmax(-1)
        out = [next_ids]
        done = torch.zeros_like(next_ids, dtype=torch.bool)
        for s in range(1, limit):
            done |= (next_ids == self.stops[0]) | (next_ids == self.stops[1])
            if stop and s % 8 == 0 and bool(done.all()):
                break
            mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
            next_ids = self.m.logits(self.m.step(next_ids, mask, L + s - 1, cache)).argmax(-1)
            out.append(next_ids)
        rows = torch.stack(out, 1).tolist()
        if stop:
            rows = [o[:next((i + 1 for i, t in enumerate(o) if t in self.stops), len(o))] for o in rows]
        return rows

    @torch.no_grad()
    def hidden(self, ids):
        """ids [B, T], T a multiple of the chunk -> normalised hidden states."""
        cos, sin = self.m.rot(torch.arange(ids.shape[1], device=self.device))
        return self.m.trunk(ids, torch.float32, cos, sin)

    @torch.no_grad()
    def drafts(self, ids):
        """DRAFTS drafts [DRAFTS, B, T] for every position t of ids [B, T+1], from the hidden state at t and the token at t+1.

        The MTP layer is fed with its own output; draft j sees the keys of the true positions and of its own chain.
        """
        m, layer = self.m, self.m.mtp.layers[0]
        T, d = ids.shape[1] - 1, m.c.head_dim
        repeat = m.c.num_attention_heads // m.c.num_key_value_heads
        causal = torch.ones(T, T, dtype=torch.bool, device=self.device).tril()
        hid, tokens = self.hidden(ids[:, :-1]), ids[:, 1:]
        drafts, keys, values = [], [], []
        for j in range(DRAFTS):
            cos, sin = m.rot(torch.arange(T, device=self.device) + j)
            z = m.mtp.mix(hid, m.embed(tokens, torch.float32))
            q, k, v, gate = layer.self_attn.qkv(layer.input_layernorm(z), cos, sin)
            keys.append(k.repeat_interleave(repeat, 1))
            values.append(v.repeat_interleave(repeat, 1))
            scores = [(q @ keys[0].transpose(-1, -2) * d**-0.5).masked_fill(~causal, -1e9)]
            scores += [(q * k).sum(-1, keepdim=True) * d**-0.5 for k in keys[1:]]
            w = torch.cat(scores, -1).softmax(-1)
            o = w[..., :T] @ values[0]
            for i, v in enumerate(values[1:]):
                o = o + w[..., T + i:T + i + 1] * v
            z = z + layer.self_attn.out(o, gate)
            z = z + layer.mlp(layer.post_attention_layernorm(z))
            hid = m.mtp.norm(z)
            tokens = m.logits(hid).argmax(-1)
            drafts.append(tokens)
        return torch.stack(drafts)


def chunks(n):
    return (n + delta.CHUNK - 1) // delta.CHUNK * delta.CHUNK


def batches(rows, n):
    return [rows[i:i + n] for i in range(0, len(rows), n)]


def draw_items(tokenizer, names, n):
    """n items of each task without and n with thinking, similar lengths together."""
    items = []
    for name in names:
        for thinking in (False, True):
            r = random.Random(f"eval-{name}-{thinking}")
            k = 0
            while k < n:
                c = tasks.sample(r, ev=True, task=name)
                c["thinking"] = thinking
                prompt, expected = tasks.prompt_and_reply(c)
                ids = tokenizer.encode(prompt)
                if len(ids) > 3000:
                    continue
                k += 1
                thought = c["messages"][-1].get("reasoning_content", "") if thinking else ""
                length = len(tokenizer.encode(expected)) + len(tokenizer.encode(thought))
                items.append(dict(conversation=c, ids=ids, expected=expected, length=length))
    return sorted(items, key=lambda x: (len(x["ids"]) // 128, x["length"]))


def answer(subject, items):
    """Put the replies into the items."""
    i = 0
    while i < len(items):
        longest = max(len(x["ids"]) for x in items[i:i + 512])
        batch = items[i:i + max(8, min(32 if subject.device == "cpu" else 512, 200000 // max(64, longest)))]
        i += len(batch)
        limit = min(280, int(max(x["length"] for x in batch) * 1.3) + 24)
        for x, out in zip(batch, subject.generate([x["ids"] for x in batch], limit)):
            x["out"], x["reply"], x["ended"] = out, subject.reply(out), out[-1] in subject.stops
            final = x["reply"]
            if x["conversation"]["thinking"]:
                final = final.split("</think>", 1)[1] if "</think>" in final else ""
            x["ok"] = x["ended"] and final.strip() == x["expected"].strip()


def table(items, names):
    """Right answers and items by task, without and with thinking, and the means."""
    cells = {name: {"direct": [0, 0], "thinking": [0, 0]} for name in names}
    for x in items:
        cell = cells[x["conversation"]["task"]]["thinking" if x["conversation"]["thinking"] else "direct"]
        cell[0] += x["ok"]
        cell[1] += 1
    for name, c in cells.items():
        print(
            f"{name:16s} direct {c['direct'][0]:3d}/{c['direct'][1]:3d}   thinking {c['thinking'][0]:3d}/{c['thinking'][1]:3d}"
        )
    mean = {k: sum(c[k][0] for c in cells.values()) / sum(c[k][1] for c in cells.values()) for k in ("direct", "thinking")}
    print(f"mean direct {mean['direct']:.3f}, thinking {mean['thinking']:.3f}", flush=True)
    return dict(cells=cells, mean=mean)


def record(items, names, path):
    """The shortest items of each cell as tests/golden/eval.json has them."""
    out = []
    for name in names:
        for thinking in (False, True):
            cell = [x for x in items if (x["conversation"]["task"], x["conversation"]["thinking"]) == (name, thinking)]
            for x in cell[:RECORDED]:
                c = x["conversation"]
                messages = [{k: v for k, v in m.items() if thinking or k != "reasoning_content"} for m in c["messages"][:-1]]
                out.append(
                    dict(
                        task=name, enable_thinking=thinking, messages=messages, tools=c["tools"], expected=x["expected"],
                        reply=x["reply"], ended=x["ended"], tokens=len(x["ids"]), ok=x["ok"]
                    )
                )
    with open(path, "w") as f:
        json.dump(out, f, separators=(",", ":"))


def recall(subject, n=12):
    """Entries found in lists of growing length, without thinking."""
    out = []
    for pairs in RECALL_PAIRS:
        r = random.Random(f"recall-{pairs}")
        prompts, expected = [], []
        for _ in range(n):
            user, _, a = tasks.t_recall(r, True, pairs)
            c = dict(messages=[dict(role="user", content=user), dict(role="assistant", content=a)], thinking=False)
            prompts.append(subject.tokenizer.encode(tasks.prompt_and_reply(c)[0]))
            expected.append(a)
        right = sum(subject.reply(o) == a for o, a in zip(subject.generate(prompts, 48), expected))
        tokens = sum(map(len, prompts)) // n
        out.append(dict(pairs=pairs, tokens=tokens, right=right, of=n))
        print(f"recall of {pairs} pairs, {tokens} tokens: {right}/{n}", flush=True)
    return out


def acceptance(subject, prompts, outs):
    """Share of positions whose first, first two, ... drafts are what was generated; and the number of positions."""
    taken, n = [0] * DRAFTS, 0
    pairs = sorted(zip(prompts, outs), key=lambda x: len(x[0]) + len(x[1]))
    for batch in batches(pairs, 32):
        rows = [p + o for p, o in batch]
        drafts = subject.drafts(subject.pad(rows, chunks(max(map(len, rows))) + 1)).cpu().numpy()
        for i, (p, _) in enumerate(batch):
            # hidden state at t and token t+1 are known, drafts stand for t+2 and on; only generated tokens count
            for t in range(len(p) - 1, len(rows[i]) - 1 - DRAFTS):
                n += 1
                for j in range(DRAFTS):
                    if int(drafts[j, i, t]) != rows[i][t + 2 + j]:
                        break
                    taken[j] += 1
    return dict(share=[x / max(n, 1) for x in taken], positions=n)


def mtp_on_tasks(subject, items):
    items = [x for x in items if len(x["ids"]) < 700 and len(x["out"]) > 6]
    items = random.Random(4).sample(items, min(len(items), 200 if subject.device == "cpu" else 1200))
    return acceptance(subject, [x["ids"] for x in items], [x["out"] for x in items])


def mtp_on_text(subject, held):
    prompts = [subject.tokenizer.encode(d["text"])[:96] for d in held if len(d["text"]) > 600]
    prompts = prompts[:4 if subject.device == "cpu" else 96]
    return acceptance(subject, prompts, subject.generate(prompts, 96, stop=False))


@torch.no_grad()
def held_out(subject, held, n_bytes):
    """Bits per byte in windows without overlap, in all and by source; and how often the first draft is the model's own choice."""
    rows = []
    for d in held:
        ids = subject.tokenizer.encode(d["text"])
        rows += [(d["source"], ids[s:s + WINDOW + 1]) for s in range(0, len(ids), WINDOW)]
    rows = [x for x in rows if len(x[1]) > 16]
    if n_bytes:
        random.Random(2).shuffle(rows)
        rows = rows[:max(1, n_bytes // 6000)]
    rows.sort(key=lambda x: len(x[1]))
    sources, same, positions = {}, 0, 0
    for batch in batches(rows, 8 if subject.device == "cpu" else 32):
        ids = subject.pad([x for _, x in batch], chunks(max(len(x) for _, x in batch) - 1) + 1)
        h = subject.hidden(ids[:, :-1])
        first = subject.drafts(ids)[0]
        for i, (source, x) in enumerate(batch):
            n = len(x) - 1
            logits = subject.m.logits(h[i, :n])
            own = logits.argmax(-1)
            same += int((first[i, :n - 1] == own[1:]).sum())
            positions += n - 1
            bits = F.cross_entropy(logits, ids[i, 1:n + 1], reduction="sum").item() / math.log(2)
            s = sources.setdefault(source, [0.0, 0])
            s[0] += bits
            s[1] += len(subject.tokenizer.decode(x[1:]).encode())
    n_bytes = sum(s[1] for s in sources.values())
    return dict(
        bits_per_byte=sum(s[0] for s in sources.values()) / n_bytes, bytes=n_bytes, first_draft_is_own_choice=same / positions,
        positions=positions, by_source={k: s[0] / s[1]
                                        for k, s in sorted(sources.items())}
    )


def main():
    args = arguments()
    subject = Subject(args)
    tasks.lexicon.load(os.path.join(args.data, "lexicon.json"))
    with open(os.path.join(args.data, "heldout.json"), encoding="utf-8") as f:
        held = json.load(f)
    out = {}
    if "tasks" in args.parts:
        items = draw_items(subject.tokenizer, args.tasks, args.items)
        answer(subject, items)
        out["tasks"] = table(items, args.tasks)
        if args.record:
            record(items, args.tasks, args.record)
    if "recall" in args.parts:
        out["recall"] = recall(subject)
    if "text" in args.parts:
        out["text"] = held_out(subject, held, args.text_bytes)
        print("held-out text:", json.dumps(out["text"]), flush=True)
    if "mtp" in args.parts:
        out["mtp"] = dict(text=mtp_on_text(subject, held))
        if "tasks" in args.parts:
            out["mtp"]["replies"] = mtp_on_tasks(subject, items)
        print("drafts taken:", json.dumps(out["mtp"]))
    with open(args.out, "w") as f:
        json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
