#!/usr/bin/env python3
"""The tokenizer against the Hugging Face tokenizers library, over random strings.

usage: tokenizer.py PROGRAM [--strings N] [--seed S] [--tokenizer FILE]

PROGRAM is tests/diff/tokenize, built.  Half of the strings go through FILE (the demo model's) as it is, half through
FILE with the other of the two pre-tokeniser patterns.  Pieces, ids, normalised texts and decoded texts must be equal.

utf8proc and the library know Unicode in different versions.  Left out of the strings are code points that only one of them
knows, and nothing else; how many is printed.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

try:
    import tokenizers
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
except ImportError:
    print("skip tokenizer.py: the Python package tokenizers is not installed")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
PATTERNS = [
    HEAD + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    HEAD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
# The library's NFC has tables of Unicode 9.  What came with Unicode 10 to 16 and takes part in normalisation: combining marks,
# compositions and their second parts.
LATE = """7fd 897-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1ace 1df6-1dfa a82c 105c9 105e4 10d24-10d27 10d69-10d6d 10eab-10eac
10efd-10eff 10f46-10f50 10f82-10f85 11070 1133b 11383-11391 113b8-113d0 113e1-113e2 1145e 11839-1183a 11930 11938 1193d-1193e
11943 119e0 11a34 11a47 11a99 11d42 11d44-11d45 11d97 11f41-11f42 1611e-1612f 16d63-16d6a 16ff0-16ff1 1e08f 1e130-1e136 1e2ae
1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef"""
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(text):
    out = set()
    for part in text.split():
        first, _, last = part.partition("-")
        out.update(range(int(first, 16), int(last or first, 16) + 1))
    return out


# ---- the program ---------------------------------------------------------------------------------------------------


def number(n):
    return struct.pack("<I", n)


def encode_request(spans):
    return b"E" + number(len(spans)) + b"".join(number(trusted) + number(len(b)) + b for b, trusted in spans)


def decode_request(ids, skip):
    return b"D" + number(skip) + number(len(ids)) + struct.pack("<%dI" % len(ids), *ids)


def text_request(kind, data):
    return kind + number(len(data)) + data


class Answers:
    def __init__(self, program, path, requests):
        self.data = subprocess.run([program, path], input=b"".join(requests), stdout=subprocess.PIPE, check=True).stdout
        self.at = 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def numbers(self):
        n = struct.unpack("<I", self.take(4))[0]
        return list(struct.unpack("<%dI" % n, self.take(4 * n)))

    def text(self):
        return self.take(struct.unpack("<I", self.take(4))[0])

    def all_read(self):
        return self.at == len(self.data)


# ---- what the library says -----------------------------------------------------------------------------------------


class Library:
    """The library with a tokenizer.json, and what it does with spans of which only some are trusted."""

    def __init__(self, file):
        self.full = Tokenizer.from_str(json.dumps(file))
        self.plain = Tokenizer.from_str(json.dumps({**file, "added_tokens": []}))
        self.added = {t["content"].encode(): t["id"] for t in file["added_tokens"]}
        self.size = self.full.get_vocab_size()

    def pieces(self, text):
        """Where the pieces end, in bytes."""
        ends, at = [], 0
        for _, (first, last) in self.full.pre_tokenizer.pre_tokenize_str(text):
            at += len(text[first:last].encode())
            ends.append(at)
        return ends

    def encode(self, spans):
        if all(trusted for _, trusted in spans):
            return self.full.encode(b"".join(b for b, _ in spans).decode("utf-8", "replace"), add_special_tokens=False).ids
        data, trust, ids, done, at = b"".join(b for b, _ in spans), bytearray(), [], 0, 0
        for b, trusted in spans:
            trust += bytes([trusted]) * len(b)
        while at < len(data):
            found = [t for t in self.added if data.startswith(t, at) and all(trust[at : at + len(t)])]
            if not found:
                at += 1
                continue
            longest = max(found, key=len)
            ids += self.ordinary(data[done:at]) + [self.added[longest]]
            done = at = at + len(longest)
        return ids + self.ordinary(data[done:])

    def ordinary(self, data):
        return self.plain.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids


def known_to_library():
    """Code points that the regex engine has classes for."""
    everything = "".join(map(chr, SCALARS))
    out = set()
    for piece, _ in pre_tokenizers.Split(Regex(r"\P{Cn}+"), "removed", invert=True).pre_tokenize_str(everything):
        out.update(map(ord, piece))
    return out


# ---- random strings ------------------------------------------------------------------------------------------------


class Strings:
    def __init__(self, seed, usable, added):
        self.r = random.Random(seed)
        self.usable, self.added = usable, added
        self.marks = [chr(c) for c in usable if unicodedata.combining(chr(c))]
        self.pairs = [chr(c) for c in usable if len(unicodedata.normalize("NFD", chr(c))) > 1]
        self.singles = [chr(c) for c in usable if unicodedata.normalize("NFC", chr(c)) != chr(c)]
        self.jamo = [chr(c) for c in range(0x1100, 0x1200)]
        self.kinds = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("some_")]

    def of(self, characters, most=6):
        return "".join(self.r.choice(characters) for _ in range(self.r.randint(1, most)))

    def block(self, first, last, most=6):
        return "".join(chr(self.r.randint(first, last)) for _ in range(self.r.randint(1, most)))

    def some_word(self):
        word = self.r.choice("the of and Hello world tokenizer Gated DeltaNet import return function naive cafe x I we".split())
        return self.r.choice(["", " ", "  "]) + self.r.choice([word, word.upper(), word.title()])

    def some_ascii(self):
        return self.block(32, 126, 12)

    def some_punctuation(self):
        return self.r.choice(["", " "]) + self.of("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~", 8) + self.of("\r\n", 2) * self.r.randint(0, 1)

    def some_white(self):
        return self.of("    \t\t\n\r\v\f\u0085\u00a0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000\u200b\ufeff\u180e", 5)

    def some_blanks(self):
        return " " * self.r.randint(1, 20) + self.of("\n\r\t x", 2)

    def some_newlines(self):
        return self.of(["\n", "\r\n", "\r", " \n", "\n\n", "\t\n "], 5)

    def some_digits(self):
        return self.of("0123456789", 8) + self.r.choice(["", ",", ".5", "٣٤", "１２", "½²", "Ⅷ", "๓", "①"])

    def some_contraction(self):
        tail = self.r.choice(["s", "t", "re", "ve", "m", "ll", "d", "\u017f", "S", "T", "Re", "VE", "M", "lL", "D", "l", "r", "v", "x", "\u212a"])
        return self.r.choice(["it", "I", "we", "", " ", "1", "é"]) + self.r.choice(["'", "'", "'", "\u2019", "''"]) + tail + self.r.choice(["", "", "x", " ", "'s"])

    def some_cjk(self):
        return self.block(0x4E00, 0x9FFF) + self.r.choice(["", "，", "。", "々", "ー", "\U00020000"])

    def some_kana(self):
        return self.block(0x3041, 0x3096) + self.r.choice(["", "\u3099", "\u309a", "\u3099\u3099"]) + self.block(0x30A1, 0x30FA, 2)

    def some_korean(self):
        return self.of([self.block(0xAC00, 0xD7A3, 2), self.of(self.jamo, 3), "\uac00\u11a8", "\u1100\u1161\u11a8"], 3)

    def some_indic(self):
        first = self.r.choice([0x900, 0x980, 0xA00, 0xA80, 0xB00, 0xB80, 0xC00, 0xC80, 0xD00, 0xD80, 0xE00, 0xE80, 0xF00, 0x1000, 0x1780])
        return "".join(c for c in self.block(first, first + 0x7F, 10) if ord(c) in self.usable) + self.r.choice(["", "क़", "\u0bc6\u0bbe", "\u0dd9\u0dcf\u0dca"])

    def some_right_to_left(self):
        return self.block(0x5D0, 0x5EA) + self.of("\u05b0\u05b4\u05bc\u064b\u0651\u0670", 3) + self.block(0x621, 0x64A)

    def some_pair(self):
        return unicodedata.normalize(self.r.choice(["NFC", "NFD", "NFKC"]), self.of(self.pairs, 4))

    def some_singleton(self):
        return self.of(self.singles, 3)

    def some_marks(self):
        return self.r.choice(["a", "e", "", " ", "q", "\u1ea1", "1", ">"]) + self.of(self.marks, 8)

    def some_emoji(self):
        return self.of(["👩‍💻", "👍🏽", "🇩🇪", "🏳️‍🌈", "😀", "❤️", "1️⃣", "👨‍👩‍👧‍👦", "\u200d", "\ufe0f", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"], 3)

    def some_control(self):
        return self.block(0, 31, 3) + self.r.choice(["", "\x7f", "\x80", "\x9f", "\xad"])

    def some_added(self):
        token = self.r.choice(self.added)
        damage = self.r.randint(0, 7)
        if damage == 0:
            return token[: self.r.randint(1, len(token))]
        if damage == 1:
            return token[self.r.randint(1, len(token) - 1) :]
        if damage == 2:
            return token.upper()
        if damage == 3:
            return token + "\u0338"
        return token * self.r.choice([1, 1, 1, 2])

    def some_anything(self):
        return "".join(chr(self.r.choice(self.usable)) for _ in range(self.r.randint(1, 4)))

    def some_repeat(self):
        return self.r.choice(self.kinds[:5])()[:3] * self.r.randint(10, 60) if self.r.random() < 0.1 else self.some_word()

    def text(self):
        return "".join(self.r.choice(self.kinds)() for _ in range(self.r.randint(1, 10)))

    def data(self):
        """Bytes: one string in eight has some that are not UTF-8."""
        data = bytearray(self.text().encode())
        if data and self.r.random() < 0.125:
            for _ in range(self.r.randint(1, 4)):
                at = self.r.randrange(len(data) + 1)
                data[at : at + self.r.randint(0, 2)] = bytes(self.r.choice([0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0xA0]) for _ in range(self.r.randint(0, 3)))
        return bytes(data)

    def spans(self, data):
        kind = self.r.randint(0, 3)
        if kind < 2:
            return [(data, True)]
        if kind == 2:
            return [(data, False)]
        cuts = sorted(self.r.randint(0, len(data)) for _ in range(self.r.randint(0, 6)))
        return [(data[a:b], self.r.random() < 0.6) for a, b in zip([0] + cuts, cuts + [len(data)])]


# ---- comparing -----------------------------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, said, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print("differs: %s of %r\n   gdn     %r\n   library %r" % (what, said, got, want))


def compare_classes(report, program, path, library, usable):
    """Pieces around every code point."""
    texts = [("a@b @c1@2@\n @.@'@ @ @@'R@").replace("@", chr(c)) for c in usable]
    answers = Answers(program, path, [text_request(b"P", t.encode()) for t in texts])
    for text in texts:
        report.check("pieces", text, answers.numbers(), library.pieces(text))


def compare_normal(report, program, path, usable):
    nfc = normalizers.NFC()
    marks = ["\u0301", "\u0323", "\u0334", "\u3099", "\u0345", "\u11a8", "\u093c"]
    texts = [f(chr(c)) for c in usable for f in (lambda s: s, lambda s: s + "".join(marks[:3]), lambda s: "".join(s + m for m in marks))]
    answers = Answers(program, path, [text_request(b"N", t.encode()) for t in texts])
    for text in texts:
        report.check("NFC", text, answers.text().decode(), nfc.normalize_str(text))


def compare_strings(report, program, path, library, strings, n):
    spans = [strings.spans(strings.data()) for _ in range(n)]
    normal = [library.full.normalizer.normalize_str(b"".join(b for b, _ in s).decode("utf-8", "replace")) for s in spans]
    want = [library.encode(s) for s in spans]
    random_ids = [[strings.r.randrange(library.size + 5) for _ in range(strings.r.randint(0, 12))] for _ in range(n)]
    requests = []
    for s, text, ids, others in zip(spans, normal, want, random_ids):
        requests += [encode_request(s), text_request(b"P", text.encode())]
        requests += [decode_request(i, skip) for i in (ids, others) for skip in (0, 1)]
    answers = Answers(program, path, requests)
    for s, text, ids, others in zip(spans, normal, want, random_ids):
        got = {"ids": (answers.numbers(), ids), "pieces": (answers.numbers(), library.pieces(text))}
        for i, name in ((ids, "text of ids"), (others, "text of random ids")):
            for skip in (False, True):
                got["%s, skip_special %s" % (name, skip)] = (answers.text().decode(), library.full.decode(i, skip_special_tokens=skip))
        wrong = [what for what, (ours, theirs) in got.items() if ours != theirs]
        what = wrong[0] if wrong else "ids"
        report.check(what, s if what == "ids" else others if "random" in what else text, *got[what])
    assert answers.all_read()


def main():
    here = pathlib.Path(__file__).resolve().parent
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--strings", type=int, default=200000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--tokenizer", default=here / "../../models/demo/tokenizer.json")
    args = options.parse_args()
    file = json.loads(pathlib.Path(args.tokenizer).read_text())
    split = file["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    report = Report()

    unknown = Answers(args.program, args.tokenizer, [b"U"]).data
    library_knows = known_to_library()
    only_library = {c for c in SCALARS if unknown[c] and c in library_knows}
    only_utf8proc = {c for c in SCALARS if not unknown[c] and c not in library_knows}
    late = ranges(LATE) - only_library
    print("tokenizers %s; code points known to one side only: %d to its regex, %d to utf8proc; too new for its NFC: %d"
          % (tokenizers.__version__, len(only_library), len(only_utf8proc), len(late)))
    classified = [c for c in SCALARS if c not in only_library and c not in only_utf8proc]
    usable = [c for c in classified if c not in late and c in library_knows]

    for regex in PATTERNS:
        split["Regex"] = regex
        with tempfile.NamedTemporaryFile("w", suffix=".json") as other:
            json.dump(file, other)
            other.flush()
            library = Library(file)
            strings = Strings(args.seed, usable, [t["content"] for t in file["added_tokens"]])
            compare_classes(report, args.program, other.name, library, [c for c in classified if c in library_knows or c % 61 == 0])
            for first in range(0, args.strings // 2, 10000):
                compare_strings(report, args.program, other.name, library, strings, min(10000, args.strings // 2 - first))
    compare_normal(report, args.program, args.tokenizer, [c for c in usable if c < 0x323B0 and not 0xE000 <= c < 0xF900])
    print("%d passed, %d failed" % (report.passed, report.failed))
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main())
