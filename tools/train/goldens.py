#!/usr/bin/env python3
"""Run a model with transformers on the inputs under tests/golden, and compare the outputs with the recorded ones or record them.

Inputs are the texts of demo/prompts.json, the strings of tokenizer.json and the messages of chat_template.json.  Without --record
each line says how far the outputs are from those recorded, and the exit status is 1 if token ids, renderings or greedy tokens
with a clear margin differ.
"""
import argparse
import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as HuggingFaceTokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

import bpe
import delta
import model

GOLDEN = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden"))
WITH_STATES = ("chat", "tool", "recall_long")
STATE_LAYERS = (0, 6)
GREEDY = 64
CLEAR = {"f32": 1e-3, "bf16": 0.25}  # greedy tokens with a smaller margin may differ with the order of summation


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="folder that train.py wrote, models/demo for instance")
    p.add_argument("--golden", default=GOLDEN, help="folder with the inputs and recorded outputs (tests/golden)")
    p.add_argument("--record", metavar="DIR", help="write the outputs there")
    p.add_argument("--prompts", help="only these prompts, separated by commas (all six)")
    p.add_argument("--threads", type=int, default=0, help="of torch (its default)")
    return p.parse_args()


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return json.load(f)


def write_json(x, *path, **options):
    with open(os.path.join(*path), "w", encoding="utf-8") as f:
        json.dump(x, f, **options)


@torch.no_grad()
def greedy(m, logits, cache, n):
    """n greedy tokens (never stopped), the margin of each over the runner-up, and the logits after each."""
    tokens, gaps, after = [], [], []
    for _ in range(n):
        top = logits.topk(2)
        tokens.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        out = m(input_ids=torch.tensor([tokens[-1:]]), past_key_values=cache, use_cache=True)
        cache, logits = out.past_key_values, out.logits[0, -1].float()
        after.append(logits)
    return torch.tensor(tokens, dtype=torch.int32), torch.tensor(gaps), torch.stack(after)


def states(cache, layer):
    """Recurrent state and convolution inputs of a layer."""
    recurrent, conv = cache.layers[layer].recurrent_states, cache.layers[layer].conv_states
    return [x[0].float().clone() if isinstance(x, (dict, list, tuple)) else x.float().clone() for x in (recurrent, conv)]


@torch.no_grad()
def forward(m, ids, with_states):
    """All that is recorded of one prompt but the MTP outputs, and all logits."""
    out = m(input_ids=ids[None], use_cache=True, output_hidden_states=True)
    logits, T = out.logits[0].float(), len(ids)
    positions = sorted({0, T // 4, T // 2, 3 * T // 4, T - 1})
    hidden = torch.stack([h[0].float() for h in out.hidden_states])
    d = dict(
        ids=ids.to(torch.int32), positions=torch.tensor(positions, dtype=torch.int32), logits=logits[positions],
        argmax=logits.argmax(-1).to(torch.int32), hidden_norms=hidden.norm(dim=-1), hidden_last=hidden[:, -1],
        nll=torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none")
    )
    for layer in STATE_LAYERS if with_states else ():
        d[f"recurrent_{layer}"], d[f"conv_{layer}"] = states(out.past_key_values, layer)
    d["greedy"], d["greedy_gap"], _ = greedy(m, logits[-1], out.past_key_values, GREEDY)
    return d, logits


@torch.no_grad()
def with_mtp(own, ids, after):
    """model.py's logits for ids, and the MTP head's logits and hidden states; after: the token after ids.

    Position t takes the hidden state t and the embedding of token t+1, and predicts token t+2.
    """
    T = len(ids)
    pad = torch.zeros(-T % delta.CHUNK, dtype=torch.long)
    cos, sin = own.rot(torch.arange(T + len(pad)))
    h = own.trunk(torch.cat((ids, pad))[None], torch.float32, cos, sin)
    shifted = torch.cat((ids[1:], after[None], pad))[None]
    z = own.mtp.norm(own.mtp.layers[0](own.mtp.mix(h, own.embed(shifted, torch.float32)), cos, sin))
    return own.logits(h)[0, :T], own.logits(z)[0, :T], z[0, :T]


def difference(got, want, kind):
    """What differs between outputs and recorded outputs of one prompt: (clear differences, a sentence)."""
    wrong = [k for k in want
             if k not in got or got[k].shape != want[k].shape] + [k for k in ("ids", ) if not torch.equal(got[k], want[k])]
    if wrong:
        return wrong, "differs in " + ", ".join(wrong)
    off = {k: (got[k] - want[k]).abs().max().item() for k in want if want[k].is_floating_point() and k != "greedy_gap"}
    same = int((got["greedy"] == want["greedy"]).long().cumprod(0).sum())
    clear = same < GREEDY and want["greedy_gap"][same] > CLEAR[kind]
    return ["greedy"] if clear else [], f"{same} of {GREEDY} greedy tokens equal, largest differences " + ", ".join(
        f"{k} {v:.1e}" for k, v in off.items()
    )


def prompts(args):
    """The prompts in float32 and bfloat16; the number of clear differences."""
    texts = read_json(args.golden, "demo", "prompts.json")
    names = args.prompts.split(",") if args.prompts else list(texts)
    encode = HuggingFaceTokenizer.from_file(os.path.join(args.model, "tokenizer.json")).encode
    own_tokenizer = bpe.Tokenizer(args.model)
    own = model.load(os.path.join(args.model, "model.safetensors")).eval()
    failures = 0
    for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        m = AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, attn_implementation="eager").eval()
        for name in names:
            ids = torch.tensor(encode(texts[name]["text"], add_special_tokens=False).ids)
            d, logits = forward(m, ids, kind == "f32" and name in WITH_STATES)
            if kind == "f32":
                mine, mtp, hidden = with_mtp(own, ids, d["greedy"][0].long())
                print(
                    f"{name}: model.py's logits differ from those of transformers by at most {(mine - logits).abs().max().item():.1e}"
                )
                d.update(mtp_argmax=mtp.argmax(-1).to(torch.int32), mtp_logits_last=mtp[-1], mtp_hidden_last=hidden[-1])
                texts[name] = dict(
                    text=texts[name]["text"], tokens=len(ids), greedy_text=own_tokenizer.decode(d["greedy"].tolist())
                )
            file = os.path.join("demo", f"{name}.{kind}.safetensors")
            if args.record:
                save_file({k: v.contiguous() for k, v in d.items()}, os.path.join(args.record, file))
            else:
                wrong, sentence = difference(d, load_file(os.path.join(args.golden, file)), kind)
                failures += len(wrong)
                print(f"{file}: {sentence}", flush=True)
    if args.record:
        write_json(texts, args.record, "demo", "prompts.json", indent=1, ensure_ascii=False)
    return failures


def tokenizer(args):
    """The strings; 1 if one differs."""
    library = HuggingFaceTokenizer.from_file(os.path.join(args.model, "tokenizer.json"))
    auto, own = AutoTokenizer.from_pretrained(args.model), bpe.Tokenizer(args.model)
    recorded = read_json(args.golden, "tokenizer.json")
    out = []
    for x in recorded:
        ids = library.encode(x["text"], add_special_tokens=False).ids
        for name, other in (("AutoTokenizer", auto(x["text"],
                                                   add_special_tokens=False)["input_ids"]), ("bpe.py", own.encode(x["text"]))):
            if ids != other:
                raise SystemExit(f"{name} gives {other} for {x['text']!r}, tokenizers gives {ids}")
        out.append(dict(text=x["text"], ids=ids, decoded=library.decode(ids, skip_special_tokens=False)))
    if args.record:
        write_json(out, args.record, "tokenizer.json", separators=(",", ":"))
        return 0
    differ = sum(a != b for a, b in zip(out, recorded))
    print(f"tokenizer.json: {differ} of {len(out)} strings differ")
    return differ > 0


def templates(args):
    """The conversations; 1 if a rendering differs."""
    render = AutoTokenizer.from_pretrained(args.model).apply_chat_template
    recorded = read_json(args.golden, "chat_template.json")
    out = []
    for x in recorded:
        x = {k: v for k, v in x.items() if k not in ("text", "error")}
        given = {} if x["enable_thinking"] is None else dict(enable_thinking=x["enable_thinking"])
        try:
            x["text"] = render(
                x["messages"], tools=x["tools"], tokenize=False, add_generation_prompt=x["add_generation_prompt"], **given
            )
        except Exception as e:  # the template's own errors and those of transformers
            x["error"] = str(e)[:200]
        out.append(x)
    if args.record:
        write_json(out, args.record, "chat_template.json", indent=0)
        return 0
    differ = sum(a != b for a, b in zip(out, recorded))
    print(f"chat_template.json: {differ} of {len(out)} renderings differ")
    return differ > 0


def main():
    args = arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.record:
        os.makedirs(os.path.join(args.record, "demo"), exist_ok=True)
    sys.exit(sum(part(args) for part in (tokenizer, templates, prompts)) > 0)


if __name__ == "__main__":
    main()
