"""Tasks on lists of numbers and words, and on the categories of words."""
from .words import ANIMALS, CATS, CITIES, COLOURS, FIRST, FOODS, FRUITS, JOBS, OBJECTS, VEGS
from .wording import with_article, NUMW, anyword, cap1, draw, lexicon, phrase


def numlist(r, lo=3, hi=8, d=3):
    n = r.randint(lo, hi)
    m = r.choice((20, 100, 100, 1000)) if d >= 3 else 100
    return r.sample(range(0, max(m, 20)), n)


def write_list(r, items):
    items = [str(x) for x in items]
    s = r.random()
    if s < 0.6:
        return ", ".join(items)
    if s < 0.75:
        return " ".join(items)
    if s < 0.85:
        return "[" + ", ".join(items) + "]"
    if s < 0.93:
        return "\n" + "\n".join(items)
    return "\n" + "\n".join("- " + x for x in items)


def sort_think(xs, ys):
    return "In order: " + ", ".join(str(y) for y in ys)


def t_sortnum(r, ev):
    xs = draw(r, ev, lambda: numlist(r), lambda x: f"sn{x}")
    desc = r.random() < 0.3
    ys = sorted(xs, reverse=desc)
    if desc:
        u = phrase(
            r, [
                "Sort these numbers from largest to smallest: {l}", "Sort in descending order: {l}",
                "Order from high to low: {l}", "Put these numbers in descending order: {l}",
                "Arrange from biggest to smallest: {l}", "Sort descending: {l}", "Rank these from highest to lowest: {l}"
            ], l=write_list(r, xs)
        )
        th = "Take the largest each time: "
    else:
        u = phrase(
            r, [
                "Sort these numbers: {l}", "Sort in ascending order: {l}", "Sort: {l}", "Put these numbers in order: {l}",
                "Arrange from smallest to largest: {l}", "Sort these numbers from smallest to largest: {l}",
                "Order these numbers: {l}", "Sort the numbers {l}", "Sort ascending: {l}", "Can you sort {l}"
            ], l=write_list(r, xs)
        )
        th = "Take the smallest each time: "
    return u, th + ", ".join(map(str, ys)), ", ".join(map(str, ys))


def t_sortwords(r, ev):

    def g():
        n = r.randint(3, 7)
        p = r.random()
        if p < 0.3:
            return r.sample(r.choice((FRUITS, ANIMALS, COLOURS, OBJECTS, VEGS, JOBS)), n)
        if p < 0.45:
            return r.sample(FIRST, n)
        return list(dict.fromkeys(anyword(r, 3, 9) for _ in range(n)))

    xs = draw(r, ev, g, lambda x: f"sw{x}")
    r.shuffle(xs)
    rev = r.random() < 0.12
    ys = sorted(xs, key=str.lower, reverse=rev)
    if rev:
        u = phrase(
            r, [
                "Sort these words in reverse alphabetical order: {l}", "Sort from Z to A: {l}",
                "Order these words from Z to A: {l}"
            ], l=write_list(r, xs)
        )
    else:
        u = phrase(
            r, [
                "Sort these words alphabetically: {l}", "Put these words in alphabetical order: {l}",
                "Sort alphabetically: {l}", "Sort the words: {l}", "Sort from A to Z: {l}",
                "Arrange in alphabetical order: {l}", "Order these words from A to Z: {l}", "Alphabetical order: {l}",
                "Sort this list: {l}", "Sort: {l}", "sort these names: {l}" if xs[0][0].isupper() else "sort {l}"
            ], l=write_list(r, xs)
        )
    th = ", ".join(f"{x[:2].lower()} {x}" for x in xs) + "\nSorted: " + ", ".join(f"{y[:2].lower()}" for y in ys)
    return u, th, ", ".join(ys)


def t_minmax(r, ev):
    xs = numlist(r, 3, 9)
    big = r.random() < 0.5
    u = phrase(
        r, [
            "What is the largest number in this list: {l}", "Find the maximum of {l}", "What is the biggest of {l}",
            "Which number is the largest? {l}", "Max of {l}", "Find the largest: {l}"
        ] if big else [
            "What is the smallest number in this list: {l}", "Find the minimum of {l}", "What is the smallest of {l}",
            "Which number is the smallest? {l}", "Min of {l}", "Find the smallest: {l}"
        ], l=write_list(r, xs)
    )
    v = max(xs) if big else min(xs)
    return u, f"The {'largest' if big else 'smallest'} is {v}.", str(v)


def t_sumlist(r, ev):
    xs = [r.randrange(1, 30) for _ in range(r.randint(3, 6))]
    u = phrase(
        r, [
            "Add these numbers: {l}", "What is the sum of {l}", "Sum: {l}", "Add up {l}", "Find the total of {l}",
            "What is the total of these numbers: {l}"
        ], l=", ".join(map(str, xs))
    )
    if r.random() < 0.2:
        u = phrase(r, ["What is {l}?", "{l}", "Calculate {l}"], l=" + ".join(map(str, xs)))
    acc, th = xs[0], []
    for x in xs[1:]:
        th.append(f"{acc} + {x} = {acc + x}")
        acc += x
    return u, "\n".join(th), str(acc)


def wordlist(r, lo=3, hi=10):
    n = r.randint(lo, hi)
    src = r.choice((FRUITS, ANIMALS, COLOURS, OBJECTS, FOODS, JOBS, FIRST, CITIES, None, None))
    if src is None:
        s = []
        while len(s) < n:
            w = anyword(r, 3, 9)
            if w not in s:
                s.append(w)
        return s, r.choice(lexicon.common)
    n = min(n, len(src) - 2)
    s = r.sample(src, n + 1)
    return s[:-1], s[-1]


ORD = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]


def t_list(r, ev):
    """membership, index, next, count, and simple edits of a list"""
    xs, other = wordlist(r)
    k = r.randrange(11)
    L = write_list(r, xs)
    n = len(xs)
    i = r.randrange(n)
    pre = r.random() < 0.5

    def ask(qs, **kw):
        q = phrase(r, qs, **kw)
        return (
            f"{r.choice(('List', 'Here is a list', 'Items', 'Given this list', 'The list is'))}: {L}\n{cap1(q)}" if pre else
            f"{q.rstrip('.?')} {r.choice(('in this list', 'in the list', 'of this list') if k not in (0,) else ('in this list',))}: {L}"
        )

    if k == 0:
        w = xs[i] if r.random() < 0.5 else other
        u = phrase(
            r, [
                "Is {w} in this list: {l}?", "Does this list contain {w}? {l}", "Is \"{w}\" in the list? {l}",
                "List: {l}\nIs {w} in the list?", "Check if {w} is in {l}", "Here is a list: {l}\nDoes it contain {w}?"
            ], w=w, l=L
        )
        return u, f"I look for {w} in the list. It is {'there' if w in xs else 'not there'}.", f"Yes, {w} is in the list." if w in xs else f"No, {w} is not in the list."
    if k == 1:
        i = min(i, 9)
        return ask(["What is the {o} item?", "Which item is {o}?", "Give the {o} item.", "What is the {o} element?"],
                   o=ORD[i]), "Counting: " + ", ".join(f"{j + 1} {x}" for j, x in enumerate(xs[:i + 1])), xs[i]
    if k == 2:
        return ask(["What is the last item?", "Which item is last?",
                    "Give the last item."]), f"The list ends with {xs[-1]}.", xs[-1]
    if k == 3:
        return ask(["What is the first item?", "Which item comes first?",
                    "Give the first item."]), f"The list begins with {xs[0]}.", xs[0]
    if k == 4:
        i = r.randrange(n - 1)
        u = f"{r.choice(('List', 'Here is a list', 'Items'))}: {L}\n" + phrase(
            r, ["Which item comes after {w}?", "What comes after {w}?", "What is next after {w}?", "Which item follows {w}?"],
            w=xs[i]
        )
        return u, f"After {xs[i]} comes {xs[i + 1]}.", xs[i + 1]
    if k == 5:
        i = r.randrange(1, n)
        u = f"{r.choice(('List', 'Here is a list', 'Items'))}: {L}\n" + phrase(
            r, ["Which item comes before {w}?", "What comes before {w}?", "Which item is just before {w}?"], w=xs[i]
        )
        return u, f"Before {xs[i]} comes {xs[i - 1]}.", xs[i - 1]
    if k == 6:
        u = phrase(
            r, [
                "How many items are in this list: {l}", "Count the items: {l}", "How many items are there? {l}",
                "How long is this list: {l}", "List: {l}\nHow many items does it have?"
            ], l=L
        )
        return u, "Counting: " + ", ".join(f"{j + 1} {x}" for j, x in enumerate(xs)), str(n)
    if k == 7:
        u = phrase(
            r, [
                "Reverse this list: {l}", "Reverse the order of this list: {l}", "Write this list backwards: {l}",
                "List in reverse order: {l}"
            ], l=L
        )
        return u, "I write the items from last to first.", ", ".join(xs[::-1])
    if k == 8:
        u = phrase(r, ["Remove {w} from this list: {l}", "Take {w} out of the list: {l}", "Delete {w} from {l}"], w=xs[i], l=L)
        return u, f"I copy the list without {xs[i]}.", ", ".join(x for x in xs if x != xs[i])
    if k == 9:
        u = phrase(r, ["Add {w} to the end of this list: {l}", "Append {w} to {l}", "Add {w} to the list: {l}"], w=other, l=L)
        return u, f"I copy the list and add {other} at the end.", ", ".join(xs + [other])
    ys = xs + [xs[i]] if n < 9 else xs
    r.shuffle(ys)
    u = phrase(
        r, ["Remove duplicates from this list: {l}", "Remove the repeated items: {l}", "List the unique items of {l}"],
        l=write_list(r, ys)
    )
    out = list(dict.fromkeys(ys))
    return u, "I keep the first copy of each item.", ", ".join(out)


def t_oddone(r, ev):
    (c1, a), (c2, b) = r.sample(CATS, 2)
    xs = r.sample(a, 3) + [r.choice(b)]
    odd = xs[-1]
    r.shuffle(xs)
    u = phrase(
        r, [
            "Which one does not belong: {l}", "Find the odd one out: {l}", "Which word is the odd one out? {l}",
            "Odd one out: {l}"
        ], l=", ".join(xs)
    )
    return u, ", ".join(f"{x}: {c2 if x == odd else c1}" for x in xs), odd


def t_category(r, ev):
    c, a = r.choice(CATS)
    w = r.choice(a)
    if r.random() < 0.5:
        c2 = c if r.random() < 0.5 else r.choice([x for x, members in CATS if w not in members])
        u = phrase(
            r, ["Is {w} {c}?", "Is the word {x} {c}?", "Would you call {w} {c}?"],
            w=with_article(w) if c not in ("sport", "colour") else w, x=w, c=with_article(c2)
        )
        return u, f"{w} is {with_article(c)}.", f"Yes, {w} is {with_article(c2)}." if c2 == c else f"No, {w} is {with_article(c)}."
    if r.random() < 0.5:
        n = r.randint(2, 4)
        r.sample(a, n)  # unused; without this draw the recorded items would be others
        u = phrase(
            r, ["Name {n} {c}s.", "List {n} {c}s.", "Give me {n} {c}s.", "Tell me {n} {c}s."], n=r.choice((str(n), NUMW[n])),
            c=c
        )
        return u, f"I need {n} {c}s.", ", ".join(a[:n])
    u = phrase(
        r, [
            "What kind of thing is {w}?",
            "What is {w}: an animal, a fruit, a vegetable, a colour, a job, a sport, a vehicle, an instrument or a tool?",
            "Which category does {w} belong to?"
        ], w=with_article(w) if c not in ("sport", "colour") else w
    )
    return u, f"{w} is {with_article(c)}.", f"{cap1(w)} is {with_article(c)}."
