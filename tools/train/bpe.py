#!/usr/bin/env python3
"""Byte-level BPE with Qwen3.5's pre-tokenisation: encoder, and run as a program, trainer and writer of tokenizer.json."""
import argparse
import collections
import heapq
import json
import os
import random
import unicodedata

import regex

import tasks

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PIECE = regex.compile(PATTERN)
VOCABULARY = 4096
# (text, special): as in Qwen's own files, where the tool and think tags are not "special"
ADDED = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<|vision_start|>", True),
         ("<|vision_end|>", True), ("<|image_pad|>", True), ("<|video_pad|>", True), ("<tool_call>", False),
         ("</tool_call>", False), ("<|fim_prefix|>", False), ("<|fim_middle|>", False), ("<|fim_suffix|>", False),
         ("<|fim_pad|>", False), ("<tool_response>", False), ("</tool_response>", False), ("<think>", False),
         ("</think>", False)]
LONGEST = 14  # bytes of a token
TEXT_SHARE, CHAT_CHARACTERS = 0.22, 9e6  # what the merges are counted on


def byte_characters():
    """GPT-2's printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


CHARACTER = byte_characters()
BYTE = {c: b for b, c in CHARACTER.items()}


def characters(s):
    return [CHARACTER[b] for b in s.encode("utf-8")]


def merge(parts, pair):
    """parts with every pair, from the left, made one."""
    out, i = [], 0
    while i < len(parts):
        both = i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair
        out.append(parts[i] + parts[i + 1] if both else parts[i])
        i += 1 + both
    return out


class Tokenizer:
    """The tokenizer.json in folder."""

    def __init__(self, folder):
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
            j = json.load(f)
        self.ids = j["model"]["vocab"]
        self.rank = {tuple(m): i for i, m in enumerate(j["model"]["merges"])}
        self.special = {a["content"]: a["id"] for a in j["added_tokens"]}
        self.split = regex.compile("(" + "|".join(map(regex.escape, self.special)) + ")")
        self.bytes = {i: bytes(BYTE[c] for c in text) for text, i in self.ids.items()}
        self.bytes |= {i: text.encode() for text, i in self.special.items()}
        self.cache = {}

    def piece(self, s):
        ids = self.cache.get(s)
        if ids is not None:
            return ids
        parts = characters(s)
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda pair: self.rank.get(pair, 1 << 30))
            if best not in self.rank:
                break
            parts = merge(parts, best)
        ids = [self.ids[x] for x in parts]
        if len(self.cache) < 400000:
            self.cache[s] = ids
        return ids

    def encode(self, s):
        out = []
        for part in self.split.split(s):
            if part in self.special:
                out.append(self.special[part])
            else:
                for m in PIECE.findall(unicodedata.normalize("NFC", part)):
                    out += self.piece(m)
        return out

    def decode(self, ids):
        return b"".join(self.bytes[int(i)] for i in ids).decode("utf-8", "replace")


def train(counts, n):
    """The first n merges for pieces with these counts."""
    words, frequency = [characters(w) for w in counts], list(counts.values())
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, w in enumerate(words):
        for pair in zip(w, w[1:]):
            pairs[pair] += frequency[i]
            where[pair].add(i)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < n:
        if not heap:
            raise SystemExit(f"the text is too small: it gives {len(merges)} merges, {n} are needed")
        count, pair = heapq.heappop(heap)
        if pairs[pair] != -count:  # an old entry
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        if len(pair[0]) + len(pair[1]) > LONGEST:
            pairs[pair] = 0
            continue
        merges.append(pair)
        change = collections.Counter()
        for i in where.pop(pair):
            for p in zip(words[i], words[i][1:]):
                change[p] -= frequency[i]
            words[i] = merge(words[i], pair)
            for p in zip(words[i], words[i][1:]):
                change[p] += frequency[i]
                where[p].add(i)
        for p, d in change.items():
            if d:
                pairs[p] += d
                if pairs[p] > 0 and p != pair:
                    heapq.heappush(heap, (-pairs[p], p))
        pairs[pair] = 0
    return merges


def write(merges, folder):
    """tokenizer.json and tokenizer_config.json."""
    os.makedirs(folder, exist_ok=True)
    vocab = {c: i for i, c in enumerate(sorted(BYTE))}
    for a, b in merges:
        vocab[a + b] = len(vocab)
    if len(vocab) + len(ADDED) != VOCABULARY:
        raise SystemExit(f"{len(vocab)} different tokens and {len(ADDED)} added ones are not {VOCABULARY}")
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    added = [dict(id=len(vocab) + i, content=text, **flags, special=special) for i, (text, special) in enumerate(ADDED)]
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    split = dict(type="Split", pattern=dict(Regex=PATTERN), behavior="Isolated", invert=False)
    bpe = dict(
        type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False,
        byte_fallback=False, ignore_merges=False, vocab=vocab, merges=[list(m) for m in merges]
    )
    tokenizer = dict(
        version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=dict(type="NFC"),
        pre_tokenizer=dict(type="Sequence",
                           pretokenizers=[split, byte_level]), post_processor=byte_level, decoder=byte_level, model=bpe
    )
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(tokenizer, f, ensure_ascii=False, separators=(",", ":"))
    keys = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    config = dict(
        add_prefix_space=False, add_bos_token=False, added_tokens_decoder={
            str(a["id"]): {k: a[k]
                           for k in keys}
            for a in added
        }, additional_special_tokens=[text for text, special in ADDED if special and text != "<|endoftext|>"], bos_token=None,
        clean_up_tokenization_spaces=False, eos_token="<|im_end|>", errors="replace", model_max_length=4096,
        pad_token="<|endoftext|>", split_special_tokens=False, tokenizer_class="PreTrainedTokenizerFast", unk_token=None
    )
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump(config, f, indent=2)


def count_pieces(folder, r):
    """Pieces of a share of every text in folder, and of chats; those seen once are left out."""
    counts = collections.Counter()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            documents = f.read().split("\0")
        r.shuffle(documents)
        left = TEXT_SHARE * sum(map(len, documents))
        for d in documents:
            if left < 0:
                break
            left -= len(d[:20000])
            counts.update(PIECE.findall(unicodedata.normalize("NFC", d[:20000])))
    added, size = regex.compile("|".join(regex.escape(text) for text, _ in ADDED)), 0
    while size < CHAT_CHARACTERS:
        chat = tasks.text_of(tasks.sample(r))
        size += len(chat)
        for part in added.split(chat):
            counts.update(PIECE.findall(part))
    return {w: c for w, c in counts.items() if c > 1}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("text", help="folder of clean_text.py and lexicon.py")
    p.add_argument("lexicon", help="lexicon.json of lexicon.py")
    p.add_argument("out", help="folder for the tokenizer")
    args = p.parse_args()
    tasks.lexicon.load(args.lexicon)
    counts = count_pieces(args.text, random.Random(5))
    print(len(counts), "different pieces", flush=True)
    write(train(counts, VOCABULARY - len(ADDED) - 256), args.out)
    tokenizer = Tokenizer(args.out)
    tokens = size = 0
    for name in sorted(os.listdir(args.text)):
        with open(os.path.join(args.text, name), encoding="utf-8") as f:
            s = f.read(60000)
        ids = tokenizer.encode(s)
        if tokenizer.decode(ids) != unicodedata.normalize("NFC", s):
            raise SystemExit(f"the tokenizer does not give back the beginning of {name}")
        tokens += len(ids)
        size += len(s.encode())
    print(f"{size / tokens:.2f} bytes a token of text")


if __name__ == "__main__":
    main()
