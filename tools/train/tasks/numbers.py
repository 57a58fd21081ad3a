"""Tasks: sums, differences, products, quotients, comparisons."""
from .words import DAYS, FIRST, FRUITS, OBJECTS
from .wording import draw, held, only, phrase, rnum


def add_think(a, b):
    sa, sb = str(a)[::-1], str(b)[::-1]
    n = max(len(sa), len(sb))
    if n == 1:
        return f"{a} + {b} = {a + b}"
    c, out = 0, [f"{a} + {b}"]
    for i in range(n):
        x, y = (int(sa[i]) if i < len(sa) else 0), (int(sb[i]) if i < len(sb) else 0)
        s = x + y + c
        out.append(f"{x} + {y} + {c} = {s}, write {s % 10}, carry {s // 10}")
        c = s // 10
    out.append(f"Result: {a + b}")
    return "\n".join(out)


def sub_think(a, b):
    sa, sb = str(a)[::-1], str(b)[::-1]
    n = len(sa)
    if n == 1:
        return f"{a} - {b} = {a - b}"
    c, out = 0, [f"{a} - {b}"]
    for i in range(n):
        x, y = int(sa[i]), (int(sb[i]) if i < len(sb) else 0)
        s = x - y - c
        out.append(f"{x} - {y} - {c} = {s}, write {s % 10}, borrow {int(s < 0)}")
        c = int(s < 0)
    out.append(f"Result: {a - b}")
    return "\n".join(out)


ADD_T = [
    "What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} =", "{a}+{b}=", "{a} + {b} = ?", "Add {a} and {b}.",
    "What is {a} plus {b}?", "{a} plus {b}", "Calculate {a} + {b}.", "Compute {a} + {b}.", "What is the sum of {a} and {b}?",
    "How much is {a} + {b}?", "Work out {a} + {b}.", "What do you get if you add {a} and {b}?", "Find the sum of {a} and {b}.",
    "What's {a} + {b}?", "{a} and {b} added together", "What do {a} and {b} make?", "Tell me the sum of {a} and {b}.",
    "What is the total of {a} and {b}?", "Solve {a} + {b}.", "Evaluate {a} + {b}.", "{a} + {b} equals what?",
    "Can you add {a} and {b}?", "I need the sum of {a} and {b}.", "what does {a} + {b} equal",
    "Give me the sum of {a} and {b}.", "how much is {a} plus {b}", "Add {b} to {a}.", "Sum: {a} + {b}"
]
SUB_T = [
    "What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "{a}-{b}=", "{a} - {b} = ?", "Subtract {b} from {a}.",
    "What is {a} minus {b}?", "{a} minus {b}", "Calculate {a} - {b}.", "Compute {a} - {b}.",
    "What is the difference between {a} and {b}?", "How much is {a} - {b}?", "Work out {a} - {b}.", "Take {b} away from {a}.",
    "What is {a} take away {b}?", "Solve {a} - {b}.", "Evaluate {a} - {b}.", "{a} - {b} equals what?",
    "Can you subtract {b} from {a}?", "what does {a} - {b} equal", "Give me {a} minus {b}.", "How much is {a} minus {b}?",
    "{a} less {b}", "What's {a} - {b}?"
]


def pair(r, ev, tag):

    def g():
        p = r.random()
        if p < 0.15:
            return r.randrange(0, 21), r.randrange(0, 21)
        if p < 0.45:
            return r.randrange(10, 100), r.randrange(1, 100)
        if p < 0.75:
            return r.randrange(100, 1000), rnum(r, 1, 3)
        return rnum(r, 3, 5), rnum(r, 2, 5)

    return draw(r, ev, g, lambda x: f"{tag}{x[0]},{x[1]}")


def t_add(r, ev):
    a, b = pair(r, ev, "+")
    if a < b and r.random() < 0.5:
        a, b = b, a
    th = add_think(a, b)
    if r.random() < 0.12:
        n = r.choice(FIRST)
        o = r.choice(FRUITS + OBJECTS[:20]) + "s"
        o = o.replace("ys", "ies").replace("hs", "hes").replace("xs", "xes").replace("fes", "ves").replace("fs", "ves")
        u = r.choice((
            f"{n} has {a} {o} and gets {b} more. How many {o} does {n} have now?",
            f"I have {a} {o}. I buy {b} more. How many {o} do I have?",
            f"There are {a} {o} in one box and {b} in another. How many {o} are there in total?",
            f"{n} counted {a} {o} on {r.choice(DAYS)} and {b} {o} on the next day. How many {o} is that altogether?"
        ))
        return u, th, f"{a} + {b} = {a + b} {o}"
    u = phrase(r, ADD_T, a=str(a), b=str(b))
    if r.random() < 0.15:
        return only(r, u, "number"), th, str(a + b)
    return u, th, f"{a} + {b} = {a + b}"


def t_sub(r, ev):
    a, b = pair(r, ev, "-")
    if a < b:
        a, b = b, a
    th = sub_think(a, b)
    if r.random() < 0.12:
        n = r.choice(FIRST)
        o = r.choice(("apples", "pears", "books", "coins", "cards", "eggs", "stamps", "pencils", "bottles", "tickets"))
        u = r.choice((
            f"{n} has {a} {o} and gives away {b}. How many {o} are left?",
            f"I had {a} {o} and lost {b} of them. How many {o} do I have left?",
            f"There were {a} {o} in the shop. {b} {o} were sold. How many {o} remain?"
        ))
        return u, th, f"{a} - {b} = {a - b} {o}"
    u = phrase(r, SUB_T, a=str(a), b=str(b))
    if r.random() < 0.15:
        return only(r, u, "number"), th, str(a - b)
    return u, th, f"{a} - {b} = {a - b}"


def t_mul(r, ev):

    def g():
        if r.random() < 0.55:
            return r.randrange(0, 13), r.randrange(0, 13)
        return rnum(r, 2, 3), r.randrange(2, 10)

    while True:
        a, b = g()
        small = a < 13 and b < 13
        if small or held(f"*{a},{b}") == ev:
            break
    if small:
        th = f"{a} * {b} = {a * b}"
    else:
        parts = [(int(d) * 10**(len(str(a)) - 1 - i)) for i, d in enumerate(str(a))]
        parts = [p for p in parts if p]
        th = f"{a} * {b}\n" + "\n".join(f"{p} * {b} = {p * b}" for p in parts)
        acc = parts[0] * b
        for p in parts[1:]:
            th += f"\n{acc} + {p * b} = {acc + p * b}"
            acc += p * b
        th += f"\nResult: {a * b}"
    u = phrase(
        r, [
            "What is {a} * {b}?", "{a} * {b}", "{a}*{b}", "{a} x {b}", "What is {a} times {b}?", "{a} times {b}",
            "Multiply {a} by {b}.", "Calculate {a} * {b}.", "What is the product of {a} and {b}?", "How much is {a} times {b}?",
            "{a} * {b} = ?", "What is {a} × {b}?", "{a} multiplied by {b}"
        ], a=str(a), b=str(b)
    )
    return u, th, f"{a} * {b} = {a * b}"


def t_div(r, ev):
    b = r.randrange(2, 13)
    q = r.randrange(1, 13)
    rem = r.randrange(b) if r.random() < 0.3 else 0
    a = b * q + rem
    u = phrase(
        r, [
            "What is {a} / {b}?", "{a} / {b}", "{a}/{b}", "Divide {a} by {b}.", "What is {a} divided by {b}?",
            "{a} divided by {b}", "How much is {a} divided by {b}?", "Calculate {a} / {b}.",
            "How many times does {b} go into {a}?"
        ], a=str(a), b=str(b)
    )
    th = f"{b} * {q} = {b * q}, {b} * {q + 1} = {b * (q + 1)}, {a} - {b * q} = {rem}"
    return u, th, f"{a} / {b} = {q}" + (f" remainder {rem}" if rem else "")


def t_compare(r, ev):

    def g():
        d = r.randint(1, 6)
        a = rnum(r, d, d)
        p = r.random()
        if p < 0.5:
            b = rnum(r, d, d)
        elif p < 0.8:
            s = list(str(a))
            r.shuffle(s)
            b = int("".join(s))
        else:
            b = rnum(r, 1, 6)
        return a, b

    a, b = draw(r, ev, lambda: next(x for x in iter(g, None) if x[0] != x[1]), lambda x: f"c{x}")
    big = r.random() < 0.55
    if big:
        u = phrase(
            r, [
                "Which is larger, {a} or {b}?", "Which number is bigger: {a} or {b}?", "What is bigger, {a} or {b}?",
                "Which is greater, {a} or {b}?", "Is {a} or {b} larger?", "Compare {a} and {b}. Which one is larger?",
                "Pick the larger number: {a}, {b}", "larger of {a} and {b}?", "What is the maximum of {a} and {b}?"
            ], a=str(a), b=str(b)
        )
    else:
        u = phrase(
            r, [
                "Which is smaller, {a} or {b}?", "Which number is smaller: {a} or {b}?", "What is smaller, {a} or {b}?",
                "Which is less, {a} or {b}?", "Is {a} or {b} smaller?", "Compare {a} and {b}. Which one is smaller?",
                "Pick the smaller number: {a}, {b}", "What is the minimum of {a} and {b}?"
            ], a=str(a), b=str(b)
        )
    res = max(a, b) if big else min(a, b)
    sa, sb = str(a), str(b)
    if len(sa) != len(sb):
        th = f"{a} has {len(sa)} digit{'s' * (len(sa) > 1)} and {b} has {len(sb)}, so {max(a, b)} is larger."
    else:
        i = next(i for i in range(len(sa)) if sa[i] != sb[i])
        th = f"Same length. Digit {i + 1}: {sa[i]} and {sb[i]}, so {max(a, b)} is larger."
    return u, th, f"{res} is {'larger' if big else 'smaller'}."


def t_compare_yes(r, ev):
    a, b = rnum(r, 1, 4), rnum(r, 1, 4)
    if r.random() < 0.15:
        b = a
    op = r.choice((">", "<", "="))
    u = phrase(
        r, {
            ">": ["Is {a} > {b}?", "Is {a} greater than {b}?", "Is {a} larger than {b}?", "Is {a} more than {b}?"], "<": [
                "Is {a} < {b}?", "Is {a} less than {b}?", "Is {a} smaller than {b}?"
            ], "=": ["Is {a} equal to {b}?", "Is {a} the same as {b}?", "Are {a} and {b} equal?"]
        }[op], a=str(a), b=str(b)
    )
    ok = a > b if op == ">" else a < b if op == "<" else a == b
    rel = "greater than" if a > b else "less than" if a < b else "equal to"
    return u, f"{a} is {rel} {b}.", f"{'Yes' if ok else 'No'}, {a} is {rel} {b}."
