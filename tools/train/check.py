#!/usr/bin/env python3
"""Check the parts against other definitions of them; exits with an error at the first difference.

The chunked delta rule against a float64 recurrence (outputs, state, gradients), prompts with padding and single steps against the
whole, and with a lexicon the rendered conversations against models/demo/chat_template.jinja run by jinja2.
"""
import argparse
import json
import os
import random

import jinja2
import torch
from jinja2.sandbox import ImmutableSandboxedEnvironment

import delta
import model
import tasks

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/demo/chat_template.jinja")


def require(name, error, bound):
    print(f"{name}: {error:.1e}")
    if not error <= bound:
        raise SystemExit(f"{name} is off by {error:.1e}, more than {bound:.0e}")


def relative(a, b):
    return ((a - b).norm() / b.norm()).item()


def recurrence(q, k, v, g, beta):
    """The gated delta rule, token by token in float64."""
    q, k, v, g, beta = (t.double() for t in (q, k, v, g, beta))
    D, repeat = q.shape[-1], v.shape[2] // q.shape[2]
    q = q / (q.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() * D**-0.5
    k = k / (k.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()
    q, k = q.repeat_interleave(repeat, 2), k.repeat_interleave(repeat, 2)
    S = torch.zeros(*v.shape[::2], D, v.shape[-1], dtype=torch.float64)
    out = []
    for t in range(q.shape[1]):
        S = S * g[:, t].exp()[..., None, None]
        e = torch.einsum("bhkv,bhk->bhv", S, k[:, t])
        S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], (v[:, t] - e) * beta[:, t].unsqueeze(-1))
        out.append(torch.einsum("bhkv,bhk->bhv", S, q[:, t]))
    return torch.stack(out, 1), S


def check_rule():
    B, T, Hk, Hv, D = 2, 192, 2, 4, 128
    q, k, v = torch.randn(B, T, Hk, D), torch.randn(B, T, Hk, D), torch.randn(B, T, Hv, D)
    k = k * 0.5 + k[:, :1] * 0.8  # correlated keys
    g = -torch.rand(B, T, Hv) * torch.tensor([0.01, 0.1, 1.0, 5.0])
    inputs = (q, k, v, g, torch.rand(B, T, Hv))
    got, want = ([t.clone().requires_grad_() for t in inputs] for _ in range(2))
    o, S = delta.delta_chunks(*got, True)
    o64, S64 = recurrence(*want)
    require("chunked rule, outputs", relative(o, o64), 1e-5)
    require("chunked rule, state", relative(S, S64), 1e-5)
    weight = torch.randn_like(o)
    (o * weight).sum().backward()
    (o64 * weight.double()).sum().backward()
    for name, a, b in zip(("q", "k", "v", "g", "beta"), got, want):
        require(f"gradient of {name}", relative(a.grad, b.grad), 1e-4)


@torch.no_grad()
def check_decoding():
    m = model.Model(model.Config())
    print("parameters", sum(p.numel() for p in m.parameters()), "of them MTP", sum(p.numel() for p in m.mtp.parameters()))
    ids = torch.randint(0, 4000, (1, 128))
    cos, sin = m.rot(torch.arange(128))
    whole = m.trunk(ids, torch.float32, cos, sin)

    def padded(n, length):
        pad = torch.zeros(1, length - n, dtype=torch.long)
        return torch.cat((pad, ids[:, :n]), 1), torch.arange(length)[None] >= length - n

    for n in (128, 100):
        h, _ = m.prefill(*padded(n, 128))
        require(f"prompt of {n} tokens", (h[:, 128 - n:] - whole[:, :n]).abs().max().item(), 1e-4)
    prompt, mask = padded(50, 64)
    _, cache = m.prefill(prompt, mask)
    for i in range(50, 70):
        mask = torch.cat((mask, torch.ones(1, 1, dtype=torch.bool)), 1)
        h = m.step(ids[:, i], mask, 64 + i - 50, cache)
    require("20 steps after a prompt of 50", (h - whole[:, 69]).abs().max().item(), 1e-4)


def check_template(lexicon, n):
    """jinja2 set up as transformers sets it up."""

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda x, **k: json.dumps(x, ensure_ascii=False)
    env.globals["raise_exception"] = refuse
    with open(TEMPLATE, encoding="utf-8") as f:
        template = env.from_string(f.read())
    tasks.lexicon.load(lexicon)
    r = random.Random(11)
    for _ in range(n):
        c = tasks.sample(r)
        messages = [{k: v for k, v in m.items() if c["thinking"] or k != "reasoning_content"} for m in c["messages"]]
        whole = template.render(messages=messages, tools=c["tools"])
        prompt = template.render(
            messages=messages[:-1], tools=c["tools"], add_generation_prompt=True, enable_thinking=c["thinking"]
        )
        if whole != tasks.text_of(c) or prompt != tasks.prompt_and_reply(c)[0]:
            raise SystemExit(f"tasks/render.py renders otherwise than the template: {c}")
    print(f"{n} conversations rendered as by the template")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lexicon", nargs="?", help="lexicon.json of lexicon.py or pack.py")
    p.add_argument("--conversations", type=int, default=20000, help="to render (20000)")
    args = p.parse_args()
    torch.manual_seed(0)
    check_rule()
    check_decoding()
    if args.lexicon:
        check_template(args.lexicon, args.conversations)


if __name__ == "__main__":
    main()
