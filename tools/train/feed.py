"""Batches for train.py: worker processes write chat samples and cut text while training runs."""
import multiprocessing
import os
import queue
import random

import numpy as np

import tasks
from bpe import Tokenizer

SHORT, LONG = 512, 2048  # tokens of a row
TEXT_WEIGHT = 0.5
WEIGHT = {0: 0.10, 1: 1.0, 2: 0.25}  # of a token's loss: prompt, reply, earlier reply
UNIT = 200  # weights are stored as integers of 1/UNIT


class Source:
    """Rows of tokens and of loss weights, drawn with a seed from the text and the lexicon in data/ (made by pack.py)."""

    def __init__(self, seed, data, tokenizer):
        self.r = random.Random(seed)
        tasks.lexicon.load(os.path.join(data, "lexicon.json"))
        self.tokenizer = Tokenizer(tokenizer)
        self.eot = self.tokenizer.special["<|endoftext|>"]
        self.tokens = np.load(os.path.join(data, "text.npy"), mmap_mode="r")
        self.seen = {}

    def text(self, n):
        at = self.r.randrange(0, len(self.tokens) - n - 1)
        return self.tokens[at:at + n]

    def encode(self, s):
        if len(s) > 400:  # long contexts hardly ever come again
            return self.tokenizer.encode(s)
        ids = self.seen.get(s)
        if ids is None:
            ids = self.tokenizer.encode(s)
            if len(self.seen) < 20000:
                self.seen[s] = ids
        return ids

    def chat(self, limit, long):
        while True:
            c = tasks.sample(self.r, task=("recall_long" if long and self.r.random() < 0.05 else None))
            ids, weights = [], []
            for text, kind in tasks.segments(c, self.r):
                part = self.encode(text)
                ids += part
                weights += [int(UNIT * WEIGHT[kind])] * len(part)
            ids.append(self.eot)
            weights.append(10)
            if len(ids) <= limit:
                return ids, weights

    def row(self, T, text_share):
        """T + 3 tokens, the targets of the second MTP step included, and their weights: text alone, or chats and text to fill up."""
        n = T + 3
        ids = np.empty(n, np.uint16)
        weights = np.full(n, int(UNIT * TEXT_WEIGHT), np.uint8)
        if self.r.random() < text_share:
            ids[:] = self.text(n)
            return ids, weights
        at, misses = 0, 0
        while at < n and misses < 3:
            chat, w = self.chat(n, T == LONG)
            if len(chat) > n - at:
                misses += 1
                continue
            ids[at:at + len(chat)] = chat
            weights[at:at + len(chat)] = w
            at += len(chat)
        if at < n:
            ids[at:] = self.text(n - at)
        return ids, weights


def work(seed, args, short, long, progress):
    """A worker: fills whichever queue is emptier until progress is negative."""
    os.nice(5)
    source = Source(seed, args.data, args.tokenizer)
    while progress.value >= 0:
        share = args.text0 + (args.text1 - args.text0) * min(1.0, max(0.0, (progress.value - 0.2) / 0.6))
        T, q, n = (SHORT, short, 64) if short.qsize() <= 2.5 * long.qsize() else (LONG, long, 16)
        rows = [source.row(T, share) for _ in range(n)]
        try:
            q.put((np.stack([a for a, _ in rows]), np.stack([w for _, w in rows])), timeout=20)
        except queue.Full:
            pass


class Feed:
    """The workers and their queues.  When they are too slow, earlier rows are given again and counted in .reused."""

    def __init__(self, args):
        context = multiprocessing.get_context("fork")
        self.progress = context.Value("d", 0.0)
        self.queues = {SHORT: context.Queue(60), LONG: context.Queue(24)}
        self.workers = [
            context.Process(
                target=work, args=(args.seed * 1000 + 17 * i, args, self.queues[SHORT], self.queues[LONG], self.progress),
                daemon=True
            ) for i in range(args.workers)
        ]
        for p in self.workers:
            p.start()
        self.left = {SHORT: [], LONG: []}
        self.kept = {SHORT: [], LONG: []}
        self.reused = 0
        self.r = random.Random(3)

    def next(self, T):
        kept = self.kept[T]
        try:
            x = self.queues[T].get(timeout=0.25 if len(kept) > 40 else None)
        except queue.Empty:
            x = self.r.choice(kept)
            self.reused += len(x[0])
            return x
        kept.append(x)
        if len(kept) > 400:
            kept.pop(self.r.randrange(400))
        return x

    def rows(self, T, n):
        """n rows of T + 3 tokens, and their weights."""
        parts = self.left[T]
        while sum(len(x[0]) for x in parts) < n:
            parts.append(self.next(T))
        ids = np.concatenate([x[0] for x in parts])
        weights = np.concatenate([x[1] for x in parts])
        self.left[T] = [(ids[n:], weights[n:])] if len(ids) > n else []
        return ids[:n].astype(np.int64), weights[:n].astype(np.float32) / UNIT

    def stop(self):
        self.progress.value = -1
        for p in self.workers:
            p.terminate()
