"""The lexicon, and how requests are worded: politeness, case, typos, and words to draw from."""
import json
import string
import zlib

from .words import ANIMALS, COLOURS, FIRST, FOODS, FRUITS, JOBS, LAST, OBJECTS, SPORTS, VEGS


class Lexicon:
    """What lexicon.py made, and paragraphs of the training text (pack.py); empty until load() has read it."""

    def load(self, path):
        with open(path, encoding="utf-8") as f:
            j = json.load(f)
        self.common = j["common"]
        self.words = [w for w in j["words"] if 3 <= len(w) <= 11]
        self.nouns = j["nouns"]
        self.definitions = j["definitions"]
        self.defined = {d[0] for d in self.definitions}
        self.opposites = j["opposites"]
        self.plurals = j["plurals"]
        self.elements = j["elements"]
        self.paragraphs = j.get("paragraphs")


lexicon = Lexicon()


def held(key):
    return zlib.crc32(key.encode()) % 40 == 0


def low1(s):
    return s[0].lower() + s[1:] if s else s


def cap1(s):
    return s[0].upper() + s[1:] if s else s


def with_article(s):
    return ("an " if s[0] in "aeiou" else "a ") + s


def dress(r, t):
    """Small variations of politeness, case and final punctuation on a template."""
    p = r.random()
    if p < 0.5:
        return t
    if p < 0.60 and t[0].isupper() and t.split(" ", 1)[0] in IMPER:
        t = "Please " + low1(t)
    elif p < 0.64 and t.split(" ", 1)[0] in IMPER:
        b = low1(t)
        if b.endswith("."):
            b = b[:-1] + "?"
        t = r.choice(("Can you ", "Could you ", "Could you please ", "I want you to ", "I need you to ")) + b
    elif p < 0.68 and t[-1] in ".?":
        t = t[:-1] + ", please" + t[-1]
    elif p < 0.71:
        t = r.choice(("Hi! ", "Hello! ", "Hey, ", "Quick question: ", "OK, ", "Now ")
                     ) + (low1(t) if not t.startswith("I ") else t)
    elif p < 0.74 and t[-1] in ".?":
        t = t + r.choice((" Thanks.", " Thank you.", " Thanks!"))
    if r.random() < 0.25 and not t.startswith("{") and not t.startswith("I "):
        t = low1(t)
    if t[-1] in ".?" and r.random() < 0.3:
        t = t[:-1]
    return t


IMPER = set(
    """Add Calculate Compute Work Find Give Tell Sort Order Arrange Put Reverse Spell Count Write Convert Change Turn Make Copy Repeat
Look List Name Say Extract Read Answer Call Use Show Pick Choose Remove Replace Join Define Explain Continue Print Type Echo Output Return Get
Translate Subtract Multiply Divide Compare Check Rewrite Capitalise Capitalize Fill Take Rank Uppercase Lowercase""".split()
)

ASK = (
    "Can you tell me: ", "Question: ", "Tell me, ", "I would like to know: ", "Help me with this: ", "One question: ", "So, ",
    "Please tell me: ", "Do you know this: ", "Next: ", "Task: ", "Hello, ", "Good morning! ", "Excuse me, ",
    "I have a question. "
)


def typo(r, t):
    """one wrong letter in a word of the template"""
    k = [
        i for i in range(1,
                         len(t) - 1)
        if t[i].isalpha() and t[i - 1].isalpha() and t[i + 1].isalpha() and "{" not in t[max(0, i - 3):i + 1]
    ]
    if not k:
        return t
    i = r.choice(k)
    m = r.randrange(3)
    return t[:i] + t[i + 1:] if m == 0 else t[:i] + t[i] + t[i:] if m == 1 else t[:i] + t[i + 1] + t[i] + t[i + 2:]


def phrase(r, ts, **kw):
    t = dress(r, r.choice(ts))
    p = r.random()
    if p < 0.10:
        t = t.lower()
    elif p < 0.13:
        t = typo(r, t)
    elif p < 0.18:
        t = r.choice(ASK) + (low1(t) if not t.startswith("I ") and r.random() < 0.6 else t)
    elif p < 0.20:
        t = t.rstrip(".?") + r.choice(("??", "!", " ?", " ...", "  ", " pls", " thx")) if not t.endswith("}") else t
    for k, v in kw.items():
        t = t.replace("{" + k + "}", v)
    return t


ONLY = (
    " Answer with only the {w}.", " Just the {w}.", " Only the {w}, please.", " Reply with the {w} only.", " Give only the {w}."
)


def only(r, u, w):
    """Append a request for the bare answer."""
    if u[-1] not in ".?!":
        u += "."
    return u + r.choice(ONLY).replace("{w}", w)


def draw(r, ev, gen, key):
    for _ in range(400):
        x = gen()
        if held(key(x)) == ev:
            return x
    return x


def rnum(r, lo=1, hi=4):
    d = r.randint(lo, hi)
    return r.randrange(10**(d - 1) if d > 1 else 0, 10**d)


NUMW = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
)
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
NICE = FRUITS + VEGS + FOODS + ANIMALS + OBJECTS + JOBS + COLOURS + SPORTS + """strawberry banana mississippi hello world computer language elephant butterfly chocolate beautiful tomorrow necessary
separate definitely rhythm queue program python keyboard window monday friday january december engine neural network attention transformer token letter alphabet question answer""".split(
)


def word(r, ev, lo=3, hi=10):
    p = r.random()
    src = lexicon.common if p < 0.45 else lexicon.words if p < 0.88 or ev else NICE
    return draw(r, ev, lambda: next(w for w in iter(lambda: r.choice(src), None) if lo <= len(w) <= hi), lambda w: "w" + w)


def anyword(r, lo=2, hi=10):
    while True:
        w = r.choice(lexicon.common if r.random() < 0.7 else lexicon.words)
        if lo <= len(w) <= hi:
            return w


def fullname(r):
    return r.choice(FIRST) + " " + r.choice(LAST)


ALNUM = string.ascii_letters + string.digits
UPD = string.ascii_uppercase + string.digits


def code(r, lo=3, hi=8, alpha=None):
    alpha = alpha or r.choice((ALNUM, UPD, string.ascii_lowercase, string.digits, "0123456789abcdef"))
    return "".join(r.choice(alpha) for _ in range(r.randint(lo, hi)))
