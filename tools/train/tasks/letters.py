"""Tasks on the letters and words of a string."""
import string
import unicodedata

from .words import CITIES
from .wording import NUMW, anyword, cap1, code, fullname, phrase, rnum, word
from .lists import ORD


def quote(r, w):
    return r.choice((f'"{w}"', f"'{w}'", w, w, f'"{w}"'))


def t_spell(r, ev):
    w = word(r, ev)
    u = phrase(
        r, [
            "Spell {w}.", "Spell the word {w}.", "How do you spell {w}?", "Spell {w} letter by letter.",
            "Write the letters of {w} one by one.", "spell {w}", "List the letters in {w}.", "Can you spell {w}?"
        ], w=quote(r, w)
    )
    s = "-".join(w)
    return u, f"The letters are {s}.", s


def t_reverse(r, ev):
    if r.random() < 0.2:
        w = code(r, 3, 8)
    else:
        w = word(r, ev, 3, 9)
    u = phrase(
        r, [
            "Reverse {w}.", "Reverse the word {w}.", "Write {w} backwards.", "What is {w} backwards?", "Spell {w} backwards.",
            "Reverse the letters of {w}.", "What is {w} spelled backwards?", "reverse {w}", "Reverse this string: {w}",
            "Reverse the string {w}."
        ], w=quote(r, w)
    )
    return u, "-".join(w) + "\n" + "-".join(w[::-1]), w[::-1]


def t_countletter(r, ev):
    w = word(r, ev, 3, 11)
    c = r.choice(w) if r.random() < 0.8 else r.choice(string.ascii_lowercase)
    n = w.count(c)
    u = phrase(
        r, [
            "How many times does the letter {c} appear in {w}?", "How many {x}'s are in {w}?",
            "How many {c} are in the word {w}?", "Count the letter {c} in {w}.", "How often does {c} occur in {w}?",
            "How many {x}s in {w}?", "how many {x} in {w}", "How many letters {c} does {w} have?",
            "Count the number of {x}'s in {w}.", "Number of {x}'s in {w}?"
        ], c=quote(r, c), x=c, w=quote(r, w)
    )
    k, out = 0, []
    for ch in w:
        if ch == c:
            k += 1
            out.append(f"{ch} {k}")
        else:
            out.append(ch)
    return u, ", ".join(out), f'The letter "{c}" appears {n} time{"" if n == 1 else "s"} in "{w}".'


def t_wordlen(r, ev):
    w = word(r, ev, 2, 11)
    u = phrase(
        r, [
            "How many letters are in {w}?", "How many letters does {w} have?", "How long is the word {w}?",
            "Count the letters in {w}.", "What is the length of {w}?", "how many letters in {w}"
        ], w=quote(r, w)
    )
    return u, ", ".join(f"{c} {i + 1}" for i, c in enumerate(w)), f'"{w}" has {len(w)} letters.'


def t_letterpos(r, ev):
    w = word(r, ev, 3, 9)
    k = r.randrange(4)
    if k == 0:
        return phrase(
            r, ["What is the first letter of {w}?", "Which letter does {w} start with?", "First letter of {w}?"], w=quote(r, w)
        ), f"{w} starts with {w[0]}.", w[0]
    if k == 1:
        return phrase(
            r, ["What is the last letter of {w}?", "Which letter does {w} end with?", "Last letter of {w}?"], w=quote(r, w)
        ), "-".join(w), w[-1]
    if k == 2:
        i = r.randrange(len(w))
        return phrase(
            r, ["What is the {o} letter of {w}?", "Which letter is {o} in {w}?", "Give the {o} letter of {w}."], o=ORD[i],
            w=quote(r, w)
        ), ", ".join(f"{c} {j + 1}" for j, c in enumerate(w[:i + 1])), w[i]
    v = [c for c in w if c in "aeiou"]
    return phrase(
        r, ["How many vowels are in {w}?", "Count the vowels in {w}.", "How many vowels does {w} have?"], w=quote(r, w)
    ), f"{'-'.join(w)}\nVowels: {', '.join(v) if v else 'none'}", str(len(v))


def sentence(r, lo=3, hi=8):
    return " ".join(anyword(r, 2, 9) for _ in range(r.randint(lo, hi)))


def t_case(r, ev):
    p = r.random()
    if p < 0.5:
        s = word(r, ev)
    elif p < 0.75:
        s = sentence(r, 2, 6)
    else:
        s = fullname(r) + r.choice((" lives in ", " is in ", " likes ", " was in ")) + r.choice(CITIES)
    m = r.random()
    if m < 0.2:
        s = s.upper()
    elif m < 0.35:
        s = s.title()
    k = r.random()
    if k < 0.5:
        return phrase(
            r, [
                "Write {s} in upper case.", "Convert to upper case: {s}", "Convert {s} to uppercase.",
                "Make this upper case: {s}", "Uppercase {s}", "Change {s} to capital letters.", "Write in all caps: {s}",
                "Put this in capitals: {s}", "Turn {s} into upper case."
            ], s=s if " " in s else quote(r, s)
        ), "Upper case for every letter.", s.upper()
    if k < 0.85:
        return phrase(
            r, [
                "Write {s} in lower case.", "Convert to lower case: {s}", "Convert {s} to lowercase.",
                "Make this lower case: {s}", "Lowercase {s}", "Change {s} to small letters.", "Write in small letters: {s}",
                "Turn {s} into lower case."
            ], s=s if " " in s else quote(r, s)
        ), "Lower case for every letter.", s.lower()
    s = s.lower()
    return phrase(
        r, [
            "Capitalise each word: {s}", "Convert to title case: {s}", "Write this in title case: {s}",
            "Capitalize the first letter of every word: {s}"
        ], s=s
    ), "A capital at the start of each word.", " ".join(cap1(x) for x in s.split(" "))


UNI = "é ü ö ä ñ ç ß å ø æ α β γ δ π Ω д ж я 日 本 中 文 字 😀 🎉 ✓ → € £ ° … “ ”".split()

RANGES = [(0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x4E00, 0x9FA0), (0x3041, 0x3096), (0x30A1, 0x30FA), (0xAC00, 0xD7A3),
          (0x1F300, 0x1F64F), (0x5D0, 0x5EA), (0x621, 0x64A), (0x905, 0x939), (0x2190, 0x21FF), (0x20A0, 0x20BF),
          (0x2010, 0x2044)]


def unitext(r):
    out = []
    for _ in range(r.randint(1, 5)):
        k = r.random()
        if k < 0.3:
            out.append(anyword(r, 2, 7))
        elif k < 0.45:
            out.append(r.choice(UNI))
        else:
            a, b = r.choice(RANGES)
            b = min(b, a + 3000) if r.random() < 0.5 else b
            out.append("".join(chr(r.randint(a, b)) for _ in range(r.randint(1, 6))))
    return unicodedata.normalize("NFC", " ".join(out) if r.random() < 0.7 else "".join(out))


def t_copy(r, ev):
    p = r.random()
    if p < 0.30:
        s = code(r, 4, 32)
    elif p < 0.55:
        s = sentence(r, 2, 14)
    elif p < 0.65:
        s = cap1(sentence(r, 4, 12)) + r.choice(".!?")
    elif p < 0.75:
        s = " ".join(str(rnum(r, 1, 5)) for _ in range(r.randint(3, 12)))
    elif p < 0.85:
        s = "".join(
            r.choice(string.ascii_letters + string.digits + "-_./:@#$%&*+=!?,;()[]{}<>") for _ in range(r.randint(4, 24))
        )
    elif p < 0.93:
        s = unitext(r)
    elif p < 0.95:
        s = "-".join(code(r, 3, 5) for _ in range(r.randint(2, 5)))
    else:
        s = "\n".join(sentence(r, 2, 5) for _ in range(r.randint(2, 4)))
    k = r.random()
    if "\n" in s or k < 0.6:
        u = phrase(
            r, [
                "Repeat exactly: {s}", "Copy this exactly: {s}", "Repeat after me: {s}", "Copy this text: {s}", "Say: {s}",
                "Echo: {s}", "Repeat this: {s}", "Write this again: {s}", "Output this string: {s}",
                "Copy the following text exactly:\n{s}", "Repeat the following:\n{s}", "Print: {s}", "Type this: {s}",
                "Say {s}", "Repeat {s}"
            ], s=s
        )
    else:
        u = phrase(
            r, [
                'Repeat "{s}".', 'Copy the string "{s}" exactly.', 'Say "{s}".', 'Write "{s}".', 'Echo "{s}" back to me.',
                'Repeat "{s}" exactly.', 'Please say "{s}"'
            ], s=s
        )
    return u, "I copy the text exactly.", s


def t_strops(r, ev):
    k = r.randrange(9)
    if k == 8:
        w, n = r.choice((anyword(r, 2, 8), anyword(r, 2, 8), code(r, 2, 5), "hello", "yes")), r.randint(2, 9)
        return phrase(
            r, ["Repeat {w} {n} times.", "Say {w} {n} times.", "Write {w} {n} times.", "Repeat the word {w} {n} times."],
            w=quote(r, w), n=r.choice((str(n), NUMW[n]))
        ), f"{n} times {w}.", " ".join([w] * n)
    if k == 0:
        ws = [anyword(r, 2, 8) for _ in range(r.randint(2, 6))]
        return phrase(
            r, [
                "Write the first letter of each word: {s}", "What are the first letters of these words: {s}",
                "Make an acronym from {s}", "Make an acronym: {s}"
            ], s=" ".join(ws)
        ), " ".join(f"{w}: {w[0].upper()}" for w in ws), "".join(w[0].upper() for w in ws)
    if k == 1:
        ws = [anyword(r, 2, 8) for _ in range(r.randint(2, 6))]
        sep, nm = r.choice((("-", "hyphens"), ("_", "underscores"), ("/", "slashes"), (", ", "commas"), ("+", "plus signs")))
        return phrase(
            r, ["Join these words with {n}: {s}", "Join with {n}: {s}", "Put {n} between these words: {s}"], n=nm,
            s=" ".join(ws)
        ), f"I join the words with {nm}.", sep.join(ws)
    if k == 2:
        w = word(r, ev, 3, 9)
        return phrase(
            r, ["Remove the vowels from {w}.", "Delete all vowels in {w}.", "Write {w} without vowels."], w=quote(r, w)
        ), "-".join(w), "".join(c for c in w if c not in "aeiou") or "nothing"
    if k == 3:
        w = word(r, ev, 3, 9)
        a = r.choice(w)
        b = r.choice(string.ascii_lowercase)
        return phrase(
            r, ["Replace {a} with {b} in {w}.", "In {w}, replace every {a} with {b}.", "Change all {a} to {b} in {w}."],
            a=quote(r, a), b=quote(r, b), w=quote(r, w)
        ), f"{'-'.join(w)}\n{'-'.join(w.replace(a, b))}", w.replace(a, b)
    if k == 4:
        s = sentence(r, 2, 9)
        ws = s.split()
        return phrase(
            r, ["How many words are in this sentence: {s}", "Count the words: {s}", "How many words are there in \"{s}\"?"], s=s
        ), ", ".join(f"{w} {i + 1}" for i, w in enumerate(ws)), str(len(ws))
    if k == 5:
        ws = [anyword(r, 2, 8) for _ in range(r.randint(3, 7))]
        return phrase(
            r, [
                "Reverse the order of the words: {s}", "Write these words in reverse order: {s}",
                "Reverse the word order of \"{s}\"."
            ], s=" ".join(ws)
        ), "I write the words from last to first.", " ".join(ws[::-1])
    if k == 6:
        ws = [anyword(r, 2, 8) for _ in range(r.randint(3, 7))]
        i = r.randrange(2)
        return phrase(
            r, ["What is the {o} word of \"{s}\"?", "Which word is {o} in this sentence: {s}", "Give the {o} word: {s}"],
            o=("first", "last")[i], s=" ".join(ws)
        ), f"The {('first', 'last')[i]} word is {ws[-i]}.", ws[-i] if i else ws[0]
    a, b = anyword(r, 3, 7), anyword(r, 3, 7)
    return phrase(
        r, [
            "Join {a} and {b} into one word.", "Concatenate {a} and {b}.", "What is {a} followed by {b} as one string?",
            "Concatenate the strings {a} and {b}."
        ], a=quote(r, a), b=quote(r, b)
    ), f"{a} then {b}.", a + b
