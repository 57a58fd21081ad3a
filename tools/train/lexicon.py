#!/usr/bin/env python3
"""Make lexicon.json from WordNet 3.0, wamerican and dict-elements; and texts from WordNet, the King James Bible, the Devil's
Dictionary and the Jargon File."""
import argparse
import collections
import gzip
import json
import os
import re
import subprocess

PACKAGES = "wordnet-base wamerican dict-elements dict-devil dict-jargon bible-kjv bible-kjv-text".split()
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
NAMES = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}
BAD = set(
    """ass arse bitch bastard cock crap cunt damn dick fag faggot fuck hell nigger piss prick pussy rape rapist sex sexual
shit slut tit whore nude naked penis vagina anus semen erotic kill killer murder suicide terrorist nazi negro queer bugger bloody
screw screwing intercourse breast orgasm prostitute heroin cocaine torture genocide slave slavery""".split()
)
QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2014": "--"})


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n") for line in f]


def dictionary(package, name, packages):
    path = os.path.join(packages, package, "usr/share/dictd", name + ".dict.dz")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as f:
        return f.read()


def save_text(folder, name, documents):
    with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as f:
        f.write("\0".join(documents))
    print(f"{name}: {len(documents)} documents, {sum(map(len, documents)) / 1e6:.2f} MB")


class WordNet:
    """count[word], pos_count[word, pos], sets[pos, offset] = (words, gloss), first[word, pos] = offset of the first sense,
    opposites: (pos, offset, word index, other offset, other word index), -1 for a whole set."""

    def __init__(self, folder):
        self.folder = folder
        self.count, self.pos_count = collections.Counter(), collections.Counter()
        for line in lines(os.path.join(folder, "cntlist.rev")):
            key, _, n = line.split()
            word, rest = key.split("%")
            self.count[word] += int(n)
            self.pos_count[word, "nvara"[int(rest[0]) - 1]] += int(n)
        self.sets, self.opposites, self.first = {}, [], {}
        for pos, name in FILES.items():
            for line in self.entries("data." + name):
                self.read_set(pos, line)
            for line in self.entries("index." + name):
                p = line.split()
                self.first[p[0], pos] = p[4 + int(p[3]) + 2]

    def entries(self, name):
        return [line for line in lines(os.path.join(self.folder, name)) if not line.startswith("  ")]

    def read_set(self, pos, line):
        left, _, gloss = line.partition(" | ")
        p = left.split()
        n = int(p[3], 16)
        words = [re.sub(r"\(\w+\)$", "", p[4 + 2 * i]) for i in range(n)]
        at = 4 + 2 * n
        for k in range(int(p[at])):
            symbol, offset, _, ends = p[at + 1 + 4 * k:at + 5 + 4 * k]
            if symbol == "!":
                self.opposites.append((pos, p[0], int(ends[:2], 16) - 1, offset, int(ends[2:], 16) - 1))
        self.sets[pos, p[0]] = (words, gloss.strip())

    def main_pos(self, word):
        return max("nvar", key=lambda pos: self.pos_count[word, pos])


def short_gloss(gloss):
    gloss = re.sub(r'"[^"]*"', "", gloss)
    gloss = re.sub(r"\([^)]*\)", "", gloss)
    return re.sub(r"\s+", " ", gloss.split(";")[0]).strip(" ;:,.")


def definitions(wn, words):
    """[word, part of speech, short definition] of the most frequent words."""
    out = []
    for word, n in wn.count.most_common():
        pos = wn.main_pos(word)
        if n < 2 or word not in words or len(word) < 3 or pos == "r" or (word, pos) not in wn.first:
            continue
        gloss = short_gloss(wn.sets[pos, wn.first[word, pos]][1])
        if 10 <= len(gloss) <= 80 and not re.search(r"[^a-z ,'\-]", gloss.lower()) and not BAD & set(gloss.lower().split()):
            out.append([word, pos, gloss])
    return out[:1500]


def opposites(wn, words):
    """(word, opposite) of frequent words in their first sense."""
    out = {}
    for pos, offset, i, other, j in wn.opposites:
        if i < 0 or j < 0:
            continue
        a, b = wn.sets[pos, offset][0][i].lower(), wn.sets[pos, other][0][j].lower()
        if {a, b} <= words and wn.count[a] >= 3 and wn.count[b] >= 1 and wn.first.get((a, pos)) == offset:
            out.setdefault(a, b)
    return sorted(out.items())


def irregular_plurals(wn, words, common):
    pairs = [line.split() for line in lines(os.path.join(wn.folder, "noun.exc"))]
    return [[p[1], p[0]] for p in pairs if len(p) == 2 and p[0] in words and p[1] in words and p[1] in common]


def elements(packages):
    """[name, symbol, atomic number] up to plutonium."""
    out, before = [], ""
    for line in map(str.strip, dictionary("dict-elements", "elements", packages).split("\n")):
        symbol, number = re.match(r"Symbol: (\w+)", line), re.match(r"Atomic number: (\d+)", line)
        if symbol and re.fullmatch("[a-z]+", before):
            out.append([before, symbol.group(1), 0])
        if number and out and out[-1][2] == 0:
            out[-1][2] = int(number.group(1))
        before = line
    return [e for e in out if 0 < e[2] <= 94]


def make_lexicon(wn, packages):
    words = {w.strip() for w in lines(os.path.join(packages, "wamerican/usr/share/dict/american-english"))}
    words = {w for w in words if re.fullmatch(r"[a-z]{2,12}", w)} - BAD
    frequent = [w for w, _ in wn.count.most_common() if w in words]
    common = [w for w in frequent if 2 <= len(w) <= 12][:6000]
    return dict(
        words=sorted(words), common=common, nouns=[w for w in frequent if wn.main_pos(w) == "n" and 3 <= len(w) <= 10][:1500],
        definitions=definitions(wn, words), opposites=opposites(wn, words), plurals=irregular_plurals(wn, words, set(common)),
        elements=elements(packages)
    )


def wordnet_text(wn):
    entries = [
        f"{', '.join(w.replace('_', ' ') for w in words)} ({NAMES[pos]}): {gloss}"
        for (pos, _), (words, gloss) in sorted(wn.sets.items()) if gloss
    ]
    return ["\n".join(entries[i:i + 24]) for i in range(0, len(entries) - 23, 24)]


def bible_text(packages):
    """One document a chapter, by the program of bible-kjv."""
    program = os.path.join(packages, "bible-kjv/usr/bin/bible")
    data = os.path.abspath(os.path.join(packages, "bible-kjv-text/usr/lib"))
    out = subprocess.run([program, "-p", data, "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    chapters = {}
    for verse in re.finditer(r"^(\w+?)(\d+):\d+ (.*)$", out, re.MULTILINE):
        chapters.setdefault(verse.group(1, 2), []).append(verse.group(3).strip())
    return [" ".join(verses) for verses in chapters.values()]


def dictionary_text(package, name, start, packages):
    """Eight entries a document, from the first one that begins with start."""
    text = dictionary(package, name, packages).translate(QUOTES)
    text = re.sub(r"\n {2,}", "\n", text[text.find(start):])
    paragraphs = [re.sub(r"\s*\n\s*", " ", p).strip() for p in re.split(r"\n\s*\n", text)]
    paragraphs = [p for p in paragraphs if len(p) > 20]
    return ["\n\n".join(paragraphs[i:i + 8]) for i in range(0, len(paragraphs), 8)]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("packages", help="folder with one unpacked Debian package a folder")
    p.add_argument("text", help="folder for the texts")
    p.add_argument("lexicon", help="file for the lexicon")
    args = p.parse_args()
    os.makedirs(args.text, exist_ok=True)
    wn = WordNet(os.path.join(args.packages, "wordnet-base/usr/share/wordnet"))
    lexicon = make_lexicon(wn, args.packages)
    with open(args.lexicon, "w") as f:
        json.dump(lexicon, f, separators=(",", ":"))
    print("lexicon:", ", ".join(f"{len(v)} {k}" for k, v in lexicon.items()))
    save_text(args.text, "wordnet", wordnet_text(wn))
    save_text(args.text, "kjv", bible_text(args.packages))
    save_text(args.text, "devil", dictionary_text("dict-devil", "devil", "ABASEMENT", args.packages))
    save_text(args.text, "jargon", dictionary_text("dict-jargon", "jargon", "\n0\n", args.packages))


if __name__ == "__main__":
    main()
