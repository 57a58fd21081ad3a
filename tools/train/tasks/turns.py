"""Tasks that need an earlier turn or the system prompt, and comparisons in two steps."""
import json
import string

from .words import CITIES, FIRST, JOBS
from .wording import anyword, dress, phrase, rnum, word
from .numbers import ADD_T, add_think, sub_think, t_add, t_compare, t_sub
from .lists import t_minmax
from .letters import quote, t_countletter, t_reverse, t_spell
from .units import t_date, t_roman, t_units
from .facts import t_capital, t_fact, t_opposite, t_plural


def t_memory(r, ev):
    """Facts said earlier in the conversation or in the system prompt."""
    n, c, j, a = r.choice(FIRST), r.choice(CITIES), r.choice(JOBS), r.randint(5, 90)
    x, w = rnum(r, 2, 6), anyword(r, 3, 9)
    k = r.randrange(7)
    if k == 0:
        m = [("user", r.choice((f"My name is {n}.", f"I am {n}.", f"Hi, I'm {n}.", f"Hello, my name is {n}!"))),
             ("assistant", f"Nice to meet you, {n}!")]
        qn, th, ans = phrase(
            r, ["What is my name?", "Do you remember my name?", "Who am I?", "What's my name?"]
        ), f"The user said the name {n}.", f"Your name is {n}."
    elif k == 1:
        m = [("user", r.choice((f"I live in {c}.", f"I am from {c}.", f"My city is {c}."))), ("assistant", f"{c} sounds nice.")]
        qn, th, ans = phrase(
            r, ["Where do I live?", "Which city do I live in?", "What is my city?"]
        ), f"The user said {c}.", f"You live in {c}."
    elif k == 2:
        m = [(
            "user", r.choice((f"Remember the number {x}.", f"Please remember this number: {x}", f"The secret number is {x}."))
        ), ("assistant", f"I will remember the number {x}.")]
        qn, th, ans = phrase(
            r, [
                "What was the number?", "Which number did I ask you to remember?", "What is the secret number?",
                "Tell me the number."
            ]
        ), f"The number is {x}.", str(x)
    elif k == 3:
        m = [("user", r.choice((f"Remember the word {w}.", f"The password is {w}.", f"The secret word is {w}."))),
             ("assistant", f"I will remember the word {w}.")]
        qn, th, ans = phrase(
            r, [
                "What was the word?", "Which word did I ask you to remember?", "What is the password?",
                "What is the secret word?", "Tell me the word."
            ]
        ), f"The word is {w}.", w
    elif k == 4:
        s = r.choice((f"Your name is {n}.", f"You are {n}, a helpful assistant.", f"You are called {n}."))
        qn, th, ans = phrase(
            r, ["What is your name?", "Who are you?", "What are you called?", "What's your name?"]
        ), f"My name is {n}.", f"My name is {n}."
        return dict(
            messages=[
                dict(role="system", content=s),
                dict(role="user", content=qn),
                dict(role="assistant", content=ans, reasoning_content=th)
            ]
        )
    elif k == 5:
        s = r.choice((
            f"The user is {n}, a {j} from {c}, {a} years old.",
            f"You talk to {n}. {n} is {a} years old, lives in {c} and works as a {j}."
        ))
        qn, th, ans = r.choice((("What is my name?", f"The user is {n}.",
                                 f"Your name is {n}."), ("Where do I live?", f"The user lives in {c}.", f"You live in {c}."),
                                ("How old am I?", f"The user is {a}.",
                                 f"You are {a} years old."), ("What is my job?", f"The user is a {j}.", f"You are a {j}.")))
        return dict(
            messages=[
                dict(role="system", content=s),
                dict(role="user", content=dress(r, qn)),
                dict(role="assistant", content=ans, reasoning_content=th)
            ]
        )
    else:
        p, b = rnum(r, 1, 3), rnum(r, 1, 2)
        f = rnum(r, 1, 3)
        m = [("user", phrase(r, ADD_T, a=str(p), b=str(f))), ("assistant", f"{p} + {f} = {p + f}")]
        if r.random() < 0.6:
            qn, th, ans = phrase(r, ["Add {b} to that.", "Now add {b}.", "Plus {b}?", "And plus {b}?"],
                                 b=str(b)), add_think(p + f, b), f"{p + f} + {b} = {p + f + b}"
        else:
            b = min(b, p + f)
            qn, th, ans = phrase(r, ["Subtract {b} from that.", "Now subtract {b}.", "Minus {b}?", "And minus {b}?"],
                                 b=str(b)), sub_think(p + f, b), f"{p + f} - {b} = {p + f - b}"
        return dict(
            messages=[dict(role=a_, content=b_) for a_, b_ in m] +
            [dict(role="user", content=qn),
             dict(role="assistant", content=ans, reasoning_content=th)]
        )
    for _ in range(r.choice((0, 1, 1, 2))):
        u2, _, a2 = r.choice(SHORT)(r, ev)
        m += [("user", u2), ("assistant", a2)]
    return dict(
        messages=[dict(role=a_, content=b_)
                  for a_, b_ in m] + [dict(role="user", content=qn),
                                      dict(role="assistant", content=ans, reasoning_content=th)]
    )


def t_style(r, ev):
    """A system prompt fixes the form of the answer."""
    u, th, a = r.choice(SHORT)(r, ev)
    k = r.randrange(5)
    w = anyword(r, 3, 8)
    if k == 0:
        s, a2 = r.choice((
            "Answer in upper case.", "Write everything in capital letters.", "Always reply in upper case.",
            "Use only capital letters."
        )), a.upper()
    elif k == 1:
        s, a2 = r.choice(("Answer in lower case.", "Always reply in lower case.", "Use only small letters.")), a.lower()
    elif k == 2:
        s, a2 = r.choice((
            'Reply with a JSON object with the key "answer".', 'Always answer as JSON: {"answer": ...}',
            'Answer in JSON with the key "answer".'
        )), json.dumps({"answer": a}, ensure_ascii=False)
    elif k == 3:
        s, a2 = r.choice((f'Begin every reply with "{w}:".', f'Start each answer with "{w}:".')), f"{w}: {a}"
    else:
        s, a2 = r.choice(
            (f'End every reply with "{w}".', f'Finish each answer with the word "{w}".', f'Always end with "{w}".')
        ), f"{a} {w}"
    if r.random() < 0.3:
        s = "You are a helpful assistant. " + s
    return dict(
        messages=[
            dict(role="system", content=s),
            dict(role="user", content=u),
            dict(role="assistant", content=a2, reasoning_content=th)
        ]
    )


def t_which(r, ev):
    k = r.randrange(5)
    if k == 0:
        (p, q_), (a, b) = r.sample(FIRST, 2), r.sample(range(3, 95), 2)
        old = r.random() < 0.5
        u = f"{p} is {a} years old and {q_} is {b} years old. " + phrase(
            r, ["Who is older?", "Which of them is older?"] if old else ["Who is younger?", "Which of them is younger?"]
        )
        hi = p if a > b else q_
        lo = q_ if a > b else p
        return u, f"{max(a, b)} is more than {min(a, b)}, so {hi} is older.", hi if old else lo
    if k == 1:
        a, b = word(r, ev), word(r, ev)
        while len(a) == len(b):
            b = word(r, ev)
        lg = r.random() < 0.6
        u = phrase(
            r, ["Which word is longer, {a} or {b}?", "Which is the longer word: {a} or {b}?"]
            if lg else ["Which word is shorter, {a} or {b}?", "Which is the shorter word: {a} or {b}?"], a=a, b=b
        )
        return u, f"{a} has {len(a)} letters and {b} has {len(b)}.", (max if lg else min)((a, b), key=len)
    if k == 2:
        a, b = anyword(r, 3, 9), anyword(r, 3, 9)
        while a == b:
            b = anyword(r, 3, 9)
        u = phrase(
            r, [
                "Which word comes first in the alphabet, {a} or {b}?", "Which comes first alphabetically: {a} or {b}?",
                "Is {a} or {b} first in alphabetical order?"
            ], a=a, b=b
        )
        return u, f"{a[:3]} and {b[:3]}", min(a, b)
    if k == 3:
        h = "".join(r.choice(string.ascii_lowercase) for _ in range(r.randint(2, 3)))
        w = r.choice(("level", "radar", "noon", "civic", "madam", "refer", "kayak", "rotor", h + h[::-1],
                      h + h[::-1][1:])) if r.random() < 0.5 else word(r, ev, 3, 7)
        ok = w == w[::-1]
        u = phrase(
            r, ["Is {w} a palindrome?", "Is the word {w} a palindrome?", "Does {w} read the same backwards?"], w=quote(r, w)
        )
        return u, "-".join(w) + "\n" + "-".join(
            w[::-1]
        ), f"Yes, {w} is a palindrome." if ok else f"No, {w} is not a palindrome."
    p, o = r.choice(FIRST), r.choice(("apples", "books", "coins", "cards", "eggs"))
    a, b, c = r.randint(2, 60), r.randint(2, 40), 0
    c = r.randint(1, a + b - 1)
    u = r.choice((
        f"{p} has {a} {o}, gets {b} more and then gives away {c}. How many {o} are left?",
        f"There are {a} {o}. {p} brings {b} more and takes {c} away. How many {o} are there now?"
    ))
    return u, f"{a} + {b} = {a + b}\n{a + b} - {c} = {a + b - c}", f"{a} + {b} - {c} = {a + b - c} {o}"


SHORT = [
    t_add, t_sub, t_compare, t_spell, t_reverse, t_capital, t_opposite, t_minmax, t_fact, t_roman, t_units, t_date,
    t_countletter, t_plural
]
