"""Tasks whose answer is learned by heart, small talk, refusals, and short free text."""
from .words import ADJ, ANIMALS, CANT, CAPITALS, CHAT, CITIES, CODE, FACTS, FIRST, FRUITS, HARD, JOBS, JOKES, OBJECTS, OPEN, PLACES
from .wording import with_article, cap1, dress, fullname, lexicon, low1, phrase, rnum
from .letters import quote, t_copy


def t_capital(r, ev):
    c, k = r.choice(CAPITALS)
    if r.random() < 0.75 or k in ("London", ):
        return phrase(
            r, [
                "What is the capital of {c}?", "Capital of {c}?", "What's the capital of {c}?",
                "Which city is the capital of {c}?", "Name the capital of {c}.", "Tell me the capital of {c}.",
                "what is the capital city of {c}", "The capital of {c} is"
            ], c=c
        ), f"The capital of {c} is {k}.", f"The capital of {c} is {k}."
    return phrase(
        r, [
            "{k} is the capital of which country?", "Which country has the capital {k}?", "What country is {k} the capital of?",
            "Of which country is {k} the capital?"
        ], k=k
    ), f"{k} is the capital of {c}.", f"{k} is the capital of {c}."


def t_fact(r, ev):
    qn, a = r.choice(FACTS)
    return phrase(r, [qn]), "I know this one.", a


def t_define(r, ev):
    w, p, g = r.choice(lexicon.definitions)
    if r.random() < 0.2:
        while w in lexicon.defined:
            w = r.choice(lexicon.common if r.random() < 0.6 else lexicon.words)
        p = "?"
    u = phrase(
        r, [
            "What does {w} mean?", "Define {w}.", "What is the meaning of {w}?", "Give a definition of {w}.",
            "Define the word {w}.", "What is the definition of {w}?", "Explain the word {w}.", "What does the word {w} mean?",
            "meaning of {w}", "define {w}"
        ], w=quote(r, w)
    )
    if p == "?":
        return u, f"I do not know the word {w}.", f"I do not know what {w} means."
    pos = {"n": "noun", "v": "verb", "a": "adjective"}[p]
    return u, f"{w} is {'an' if pos[0] == 'a' else 'a'} {pos}.", f"{cap1(w)} ({pos}): {g}."


def t_opposite(r, ev):
    a, b = r.choice(lexicon.opposites)
    return phrase(
        r, [
            "What is the opposite of {a}?", "Opposite of {a}?", "Give the opposite of {a}.", "What is an antonym of {a}?",
            "Antonym of {a}?", "Which word means the opposite of {a}?", "What's the opposite of {a}?"
        ], a=quote(r, a)
    ), f"The opposite of {a} is {b}.", f"The opposite of {a} is {b}."


def plural(w):
    if w.endswith(("s", "x", "z", "ch", "sh")):
        return w + "es"
    if w.endswith("y") and w[-2] not in "aeiou":
        return w[:-1] + "ies"
    return w + "s"


def t_plural(r, ev):
    if r.random() < 0.3:
        a, b = r.choice(lexicon.plurals)
    else:
        a = r.choice(ANIMALS + FRUITS + OBJECTS + JOBS)
        ex = dict(lexicon.plurals)
        if a in ("fish", "sheep", "deer", "moose", "bison"):
            b = a
        else:
            b = ex.get(a) or {"mouse": "mice", "goose": "geese", "wolf": "wolves", "knife": "knives", "mango": "mangoes"
                              }.get(a) or plural(a)
    return phrase(
        r, [
            "What is the plural of {a}?", "Plural of {a}?", "Give the plural form of {a}.", "What is the plural form of {a}?",
            "Write the plural of {a}."
        ], a=quote(r, a)
    ), f"The plural of {a} is {b}.", f"The plural of {a} is {b}."


def t_element(r, ev):
    n, s, z = r.choice(lexicon.elements)
    k = r.randrange(4)
    if k == 0:
        return phrase(
            r, ["What is the chemical symbol of {n}?", "What is the symbol for {n}?", "Chemical symbol of {n}?"], n=n
        ), f"{cap1(n)} has the symbol {s}.", f"The symbol of {n} is {s}."
    if k == 1:
        return phrase(
            r, ["Which element has the symbol {s}?", "What element is {s}?", "What does the chemical symbol {s} stand for?"],
            s=s
        ), f"{s} is {n}.", f"{s} is {n}."
    if k == 2:
        return phrase(
            r, ["What is the atomic number of {n}?", "Atomic number of {n}?"], n=n
        ), f"{cap1(n)} has the atomic number {z}.", f"The atomic number of {n} is {z}."
    return phrase(
        r, ["Which element has the atomic number {z}?", "What is element number {z}?"], z=str(z)
    ), f"Element {z} is {n}.", f"Element {z} is {n}."


def t_open(r, ev):
    """Questions that are beyond this model get a plain refusal."""
    n, m = (r.choice(lexicon.nouns) if r.random() < 0.6 else r.choice(ADJ) + " " + r.choice(lexicon.nouns) for _ in range(2))
    c, d = r.sample(CITIES, 2)
    u = phrase(
        r, OPEN, n=n, m=m, c=c, d=d, p=fullname(r), k=str(rnum(r, 1, 3)), j=str(rnum(r, 1, 3)), y=str(r.randrange(1850, 2040))
    )
    return u, "I cannot do this.", CANT


def t_chat(r, ev):
    p = r.random()
    if p < 0.65:
        qs, a = r.choice(CHAT)
        u = r.choice(qs)
        if r.random() < 0.3:
            u = low1(u)
        if r.random() < 0.2 and u[-1] in ".?!":
            u = u[:-1]
        return u, {CANT: ""}.get(a, "A short friendly reply is enough."), a
    if p < 0.78:
        return dress(r, r.choice(HARD)), "I cannot do this.", CANT
    if p < 0.88:
        return t_open(r, ev)
    if p < 0.93:
        return phrase(
            r,
            ["Tell me a joke.", "Tell a joke.", "Do you know a joke?", "Make me laugh.", "joke please", "Say something funny."]
        ), "A short joke.", r.choice(JOKES)
    n = r.choice(FIRST)
    return r.choice(
        (f"My name is {n}.", f"I am {n}.", f"Hi, I'm {n}.", f"Hello, my name is {n}!", f"I'm {n}, nice to meet you")
    ), f"The user's name is {n}.", f"Nice to meet you, {n}!"


def t_code(r, ev):
    d, langs = r.choice(CODE)
    lang = r.choice(list(langs))
    c = langs[lang]
    v = d.split(" ", 1)
    if d == "prints hello world":
        u = phrase(
            r, [
                "Write hello world in {l}.", "Hello world in {l}", "How do I print hello world in {l}?",
                "Write a {l} program that prints hello world.", "Show me hello world in {l}."
            ], l=lang
        )
    else:
        u = phrase(
            r, [
                "Write a {l} function that {d}.", "Write {l} code that {d}.", "Show me {l} code that {d}.",
                "I need a {l} function that {d}.", "How do I write a {l} function that {d}?", "Write a {l} function to {i}.",
                "Write {l} code to {i}.", "How do I {i} in {l}?", "{i} in {l}", "Give me a {l} function to {i}."
            ] if d != "counts from 1 to 10" else
            ["Write {l} code that {d}.", "Show me {l} code that {d}.", "Write {l} code to {i}.", "How do I {i} in {l}?"],
            l=lang, d=d, i=v[0][:-1] + " " + v[1]
        )
    return u, f"The language is {lang}.", f"```{lang.lower()}\n{c}\n```"


def t_story(r, ev):
    a = r.choice(ANIMALS)
    adj, adj2 = r.sample(ADJ, 2)
    n, n2 = r.sample(FIRST, 2)
    o, pl, pl2 = r.choice(OBJECTS), *r.sample(PLACES, 2)
    u = phrase(
        r, [
            "Tell me a story about {a}.", "Write a short story about {a}.", "Tell a story about {j} {x}.",
            "Write a story about {a} named {n}.", "Tell me a short story about {a} and {o}.", "Tell me a story."
        ], a=with_article(a), j=with_article(adj), x=a, n=n, o=with_article(o)
    )
    nn = n
    j = adj if f' {adj} ' in u else "little"
    oo = o if f' {o}' in u else r.choice(OBJECTS)
    s = [
        f"Once upon a time there was {with_article(j)} {a} named {nn}.", f"{nn} lived near the {pl}.",
        r.choice((
            f"One day {nn} found {with_article(adj2)} {oo} in the {pl2}.",
            f"One morning {nn} saw {with_article(adj2)} {oo} by the {pl2}."
        )),
        r.choice((f'"Whose {oo} is this?" asked {nn}.', f'"I wonder who lost this {oo}," said {nn}.')),
        f"{nn} met {n2}, who was looking for the {oo}.",
        r.choice((f'"Thank you for finding it!" said {n2}.', f'"That is my {oo}!" said {n2}.')),
        f"From that day on {nn} and {n2} were good friends.", "The end."
    ]
    return u, f"A short story about {with_article(a)}.", " ".join(s)


def t_continue(r, ev):
    if not lexicon.paragraphs:
        return t_copy(r, ev)
    p = r.choice(lexicon.paragraphs)
    ws = p.split(" ")
    k = min(len(ws) // 2, r.randint(8, 60))
    a, b = " ".join(ws[:k]), " ".join(ws[k:k + 90])
    u = r.choice((
        "Continue this text: ", "Continue: ", "Continue the following text:\n", "Complete this text: ",
        "What comes next in this text?\n", "Finish this passage:\n", "Go on with this text:\n"
    )) + a
    return u, "I continue in the same style.", b.strip() or "The end."


def t_summary(r, ev):
    """One-sentence summary: the first sentence."""
    if not lexicon.paragraphs:
        return t_copy(r, ev)
    for _ in range(20):
        p = r.choice(lexicon.paragraphs)
        i = p.find(". ")
        if 30 < i < 200 and len(p) < 700:
            break
    a = p[:i + 1] if i > 0 else p
    return r.choice((
        "Summarise this text: ", "Summarize: ", "Summarise this in one sentence:\n", "Give a short summary of this text:\n\n",
        "Shorten this text: ", "Summarize the following text in one sentence.\n\n", "tl;dr: "
    )) + p, "The first sentence says it.", a
