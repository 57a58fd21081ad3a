#!/usr/bin/env python3
"""record_heldout.py [SOURCE...]: what the code that trained models/demo (tools/train/model.py, in float32) makes of heldout.json, to
stdout, for heldout_bits.json.  Measured as for the model card: a text's tokens in windows of 2048, none at the front, each
window from no state, the token after the window being its last target; windows of 16 tokens or fewer are left out, and a
window has the bytes of its targets.  All sources, or those named.  Run in the repository's root; needs the packages torch,
safetensors and tokenizers."""
import json
import math
import sys

import tokenizers
import torch

sys.path.insert(0, "tools/train")
from model import load  # noqa: E402

WINDOW = 2048


def bits_of(model, ids):
    padded = torch.zeros((len(ids) - 1 + 63) // 64 * 64, dtype=torch.long)  # later tokens change nothing
    padded[: len(ids) - 1] = torch.tensor(ids[:-1])
    cos, sin = model.rot(torch.arange(len(padded)))
    logits = model.logits(model.trunk(padded[None], torch.float32, cos, sin)[0, : len(ids) - 1])
    return torch.nn.functional.cross_entropy(logits.double(), torch.tensor(ids[1:]), reduction="sum").item() / math.log(2)


@torch.no_grad()
def main():
    model = load("models/demo/model.safetensors").eval()
    tokenizer = tokenizers.Tokenizer.from_file("models/demo/tokenizer.json")
    sources = {}
    for item in json.load(open("tests/golden/heldout.json")):
        if sys.argv[1:] and item["source"] not in sys.argv[1:]:
            continue
        s = sources.setdefault(item["source"], dict(tokens=0, bytes=0, bits=0.0))
        ids = tokenizer.encode(item["text"], add_special_tokens=False).ids
        for first in range(0, len(ids), WINDOW):
            window = ids[first : first + WINDOW + 1]
            if len(window) > 16:
                s["tokens"] += len(window) - 1
                s["bytes"] += len(tokenizer.decode(window[1:], skip_special_tokens=False).encode())
                s["bits"] += bits_of(model, window)
    print("{\n" + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in sources.items()) + "\n}")


main()
