#!/usr/bin/env python3
"""Train the model on the data of pack.py and write it as a directory that transformers and gdn load.

The learning rate follows a cosine over elapsed time, so that a run ends after --seconds on any machine; how many tokens it saw
is printed and stored in train.json.
"""
import argparse
import json
import math
import os
import queue
import shutil
import threading
import time

import torch

import delta
import model
from feed import LONG, SHORT, Feed

START = time.time()


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("data", help="folder that pack.py wrote")
    p.add_argument("tokenizer", help="folder with tokenizer.json and tokenizer_config.json")
    p.add_argument("out", help="folder for the model, log.txt and train.json")
    p.add_argument("--seconds", type=float, default=478, help="end of training, from the start of this program (478)")
    p.add_argument("--steps", type=int, default=10**9, help="end after so many steps at the latest")
    p.add_argument("--init", help="start from the weights in this model.safetensors")
    p.add_argument("--tokens", type=int, default=65536, help="tokens a step (65536)")
    p.add_argument("--long", type=float, default=0.30, help="share of steps with rows of 2048 tokens, not 512 (0.30)")
    p.add_argument("--text0", type=float, default=0.50, help="share of text rows in the first fifth (0.50)")
    p.add_argument("--text1", type=float, default=0.15, help="and in the last fifth, linear between (0.15)")
    p.add_argument("--muon", type=float, default=0.02, help="learning rate of matrices (0.02)")
    p.add_argument("--adam", type=float, default=3e-3, help="learning rate of the embedding, twice that of the rest (0.003)")
    p.add_argument("--decay", type=float, default=0.1, help="weight decay of matrices (0.1)")
    p.add_argument("--peak", type=float, default=1.0, help="factor on both learning rates (1)")
    p.add_argument("--warm", type=int, default=150, help="steps of linear warm-up (150)")
    p.add_argument("--flat", type=float, default=0.15, help="share of the time before the cosine sets in (0.15)")
    p.add_argument("--mtp", type=float, default=0.15, help="weight of the MTP loss (0.15)")
    p.add_argument(
        "--mtp2", type=float, default=0.0, help="weight of a second MTP step, fed with the first one's hidden state (0)"
    )
    p.add_argument("--workers", type=int, default=13, help="processes that make data (13)")
    p.add_argument(
        "--seed", type=int, default=1, help="of the data; how rows fall into steps depends on timing all the same (1)"
    )
    p.add_argument("--cpu", action="store_true", help="train on the CPU in float32, for trying things out")
    return p.parse_args()


def orthogonal(G, dtype):
    """Newton-Schulz orthogonalisation of a stack of matrices (Muon)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    X = G.to(dtype)
    tall = X.shape[-2] > X.shape[-1]
    if tall:
        X = X.transpose(-1, -2)
    X = X / (X.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).to(dtype)
    for _ in range(5):
        S = X @ X.transpose(-1, -2)
        X = a * X + (b * S + c * S @ S) @ X
    return X.transpose(-1, -2) if tall else X


class Optimizer:
    """Muon for the matrices, AdamW for the embedding and everything small."""

    def __init__(self, m, args):
        matrices, small = {}, []
        for name, p in m.named_parameters():
            if name == "embed_tokens.weight":
                continue
            if p.ndim == 2 and min(p.shape) >= 64:
                matrices.setdefault(tuple(p.shape), []).append(p)
            else:
                small.append(p)
        embedding = m.embed_tokens.weight
        self.muon = [(ps, torch.zeros((len(ps), ) + shape, device=embedding.device)) for shape, ps in matrices.items()]
        groups = [
            dict(params=[embedding], lr=args.adam, base=args.adam),
            dict(params=small, lr=args.adam * 0.5, base=args.adam * 0.5)
        ]
        self.adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0, fused=embedding.is_cuda)
        self.clipped = [embedding] + small
        self.dtype = torch.bfloat16 if embedding.is_cuda else torch.float32
        self.rate, self.decay = args.muon, args.decay

    def step(self, factor, momentum):
        torch.nn.utils.clip_grad_norm_(self.clipped, 1.0)
        for g in self.adam.param_groups:
            g["lr"] = g["base"] * factor
        self.adam.step()
        rate = self.rate * factor
        with torch.no_grad():
            for ps, mean in self.muon:
                g = torch.stack([p.grad for p in ps]).float()
                mean.lerp_(g, 1 - momentum)
                u = orthogonal(g.lerp(mean, momentum), self.dtype).float()
                rows, columns = ps[0].shape
                u = u * max(1.0, rows / columns)**0.5
                torch._foreach_mul_(ps, 1 - rate * self.decay)
                torch._foreach_add_(ps, list(u.unbind(0)), alpha=-rate)


class Prefetch:
    """A thread that keeps batches ready on the device."""

    def __init__(self, feed, args, device):
        self.feed, self.args, self.device = feed, args, device
        self.ready = queue.Queue(4)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        step = 0
        while True:
            long = (step * self.args.long) % 1.0 < self.args.long and step >= 1
            T = LONG if long else SHORT
            batch = [torch.from_numpy(x) for x in self.feed.rows(T, max(1, self.args.tokens // T))]
            if self.device == "cuda":
                batch = [x.pin_memory().to(self.device, non_blocking=True) for x in batch]
            self.ready.put((T, *batch))
            step += 1


def rate_factor(args, step, p):
    """What both learning rates are multiplied with: warm-up by steps, cosine by the share p of the time that is over."""
    cosine = 1.0 if p < args.flat else 0.5 * (1 + math.cos(math.pi * (p - args.flat) / (1 - args.flat)))
    return max(min(1.0, (step + 1) / args.warm) * cosine, 0.002) * args.peak


def train(m, feed, args, log):
    """Run until the time or the steps are over; returns steps, tokens and seconds."""
    device = "cpu" if args.cpu else "cuda"
    dtype = torch.float32 if args.cpu else torch.bfloat16
    forward = model.Step(m, args.mtp, args.mtp2, compile=not args.cpu)
    optimizer = Optimizer(m, args)
    batches = Prefetch(feed, args, device).ready
    losses = torch.zeros(3, device=device)
    step, seen, start = 0, 0, None
    while True:
        try:
            T, ids, weights = batches.get(timeout=300)
        except queue.Empty:
            raise SystemExit("no batch came in 5 minutes: see the errors of the workers above")
        start = start or time.time()
        p = min(1.0, max(0.0, (time.time() - start) / max(1e-9, args.seconds - (start - START))))
        feed.progress.value = p
        if p >= 1.0 or step >= args.steps:
            return step, seen, time.time() - start
        factor = rate_factor(args, step, p)
        total, loss, mtp = forward(ids, weights, T, dtype)
        total.backward()
        optimizer.step(factor, 0.85 + 0.10 * min(1.0, step / 300))
        for q in m.parameters():
            q.grad = None
        losses += torch.stack((loss, mtp, torch.ones_like(loss)))
        step += 1
        seen += T * ids.shape[0]
        if step <= 3 or step % (10 if args.cpu else 100) == 0:
            a, b, n = losses.tolist()
            losses.zero_()
            log(
                f"step {step} T {T} p {p:.3f} rate x{factor:.3f} loss {a / n:.4f} mtp {b / n:.4f} tokens {seen / 1e6:.1f}M "
                f"{seen / max(1e-9, time.time() - start) / 1e3:.0f}k/s rows reused {feed.reused}"
            )
            if not math.isfinite(a):
                raise SystemExit("the loss is not finite: lower --peak")


def export(m, args):
    special = {x["content"]: x["id"] for x in json.load(open(os.path.join(args.tokenizer, "tokenizer.json")))["added_tokens"]}
    end, eot = special["<|im_end|>"], special["<|endoftext|>"]
    generation = dict(do_sample=False, eos_token_id=[end, eot], pad_token_id=eot, max_new_tokens=512)
    model.save(m, os.path.join(args.out, "model.safetensors"))
    for name, x in (("config.json", model.export_config(m.c, end, eot)), ("generation_config.json", generation)):
        with open(os.path.join(args.out, name), "w") as f:
            json.dump(x, f, indent=2)
    demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/demo")
    for folder, name in ((args.tokenizer, "tokenizer.json"), (args.tokenizer, "tokenizer_config.json"),
                         (demo, "chat_template.jinja")):
        shutil.copyfile(os.path.join(folder, name), os.path.join(args.out, name))


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    feed = Feed(args)  # forks: before the GPU is touched
    torch.manual_seed(1)
    if not args.cpu:
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        delta.use_gpu(torch.bfloat16)
    m = model.load(args.init) if args.init else model.Model(model.Config())
    m = m.to("cpu" if args.cpu else "cuda")
    with open(os.path.join(args.out, "log.txt"), "w") as f:

        def log(line):
            line = f"[{time.time() - START:7.1f}] {line}"
            print(line, flush=True)
            print(line, file=f, flush=True)

        steps, tokens, seconds = train(m, feed, args, log)
        log(f"{steps} steps, {tokens / 1e6:.1f}M tokens, rows reused {feed.reused}")
    feed.stop()
    export(m, args)
    with open(os.path.join(args.out, "train.json"), "w") as f:
        json.dump(dict(steps=steps, tokens=tokens, seconds=seconds, args=vars(args)), f, indent=1)


if __name__ == "__main__":
    main()
