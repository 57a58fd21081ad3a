#!/usr/bin/env python3
"""Tokenise the texts and make what training needs: text.npy, heldout.json, and lexicon.json with paragraphs of the text.

One document in 90 is held out.  text.npy holds uint16 tokens, each document ended by <|endoftext|>; heldout.json at most 40,000
characters of each source, and golden/heldout.json at most 9,000.
"""
import argparse
import functools
import json
import multiprocessing
import os
import random
import zlib

import numpy as np

from bpe import Tokenizer

REPEAT = {"devil": 2, "jargon": 2}  # these two sources count twice
PARAGRAPHS = 9000


def prose(p):
    """Is this paragraph plain enough to be continued or summarised?"""
    if not (260 <= len(p) <= 1000) or "\n" in p or "|" in p or "::" in p or "(see" in p:
        return False
    words = p.split()
    plain = sum(w.isalpha() or w[:-1].isalpha() for w in words)
    return len(words) > 40 and plain / len(words) > 0.9 and p[0].isupper() and p[-1] == "."


def tokenize(name, folder, tokenizer):
    """(source, documents as tokens, held-out documents, paragraphs, bytes) of one text."""
    tokenizer = Tokenizer(tokenizer)
    end = [tokenizer.special["<|endoftext|>"]]
    source = name.removesuffix(".txt")
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        documents = [d.strip() for d in f.read().split("\0")]
    out, held, paragraphs, size = [], [], [], 0
    for d in documents:
        if len(d) < 100:
            continue
        if zlib.crc32(d[:400].encode()) % 90 == 0:
            held.append(d)
            continue
        size += len(d.encode())
        out.append(np.array(tokenizer.encode(d) + end, dtype=np.uint16))
        paragraphs += filter(prose, d.split("\n\n"))
    return source, out * REPEAT.get(source, 1), held, paragraphs, size


def first_of_each(documents, characters, longest=None):
    """Documents until each source has so many characters."""
    size, out = {}, []
    for d in documents:
        if size.get(d["source"], 0) < characters:
            text = d["text"][:longest or characters - size.get(d["source"], 0)]
            size[d["source"]] = size.get(d["source"], 0) + len(text)
            out.append(dict(source=d["source"], text=text))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("text", help="folder of clean_text.py and lexicon.py")
    p.add_argument("lexicon", help="lexicon.json of lexicon.py")
    p.add_argument("tokenizer", help="folder with tokenizer.json: of bpe.py, or models/demo to keep its vocabulary")
    p.add_argument("out", help="folder for the results")
    args = p.parse_args()
    os.makedirs(os.path.join(args.out, "golden"), exist_ok=True)
    names = sorted(os.listdir(args.text), key=lambda name: -os.path.getsize(os.path.join(args.text, name)))
    documents, held, paragraphs = [], [], []
    with multiprocessing.Pool() as pool:
        work = functools.partial(tokenize, folder=args.text, tokenizer=args.tokenizer)
        for source, out, left_out, plain, size in pool.imap(work, names):
            tokens = sum(map(len, out))
            print(
                f"{source:22s} {size / 1e6:6.2f} MB {tokens / 1e6:6.2f}M tokens {len(out)} documents, {len(left_out)} held out",
                flush=True
            )
            documents += out
            held += [dict(source=source, text=d) for d in left_out]
            paragraphs += plain
    r = random.Random(7)
    documents.sort(key=lambda d: (len(d), int(d[:8].sum())))
    r.shuffle(documents)
    text = np.concatenate(documents)
    np.save(os.path.join(args.out, "text.npy"), text)
    held.sort(key=lambda d: zlib.crc32(d["text"].encode()))
    held = first_of_each(held, 40000, 20000)
    r.shuffle(paragraphs)
    with open(args.lexicon, encoding="utf-8") as f:
        lexicon = json.load(f)
    lexicon["paragraphs"] = sorted(paragraphs[:PARAGRAPHS])
    for name, x in (("heldout.json", held), ("golden/heldout.json", first_of_each(held, 9000)), ("lexicon.json", lexicon)):
        with open(os.path.join(args.out, name), "w") as f:
            json.dump(x, f, separators=(",", ":"))
    print(f"{len(text) / 1e6:.1f}M tokens; held out: {len(held)} documents, {sum(len(d['text']) for d in held)} characters")


if __name__ == "__main__":
    main()
