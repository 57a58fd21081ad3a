"""Tasks: dates, times, units, Roman numerals, numbers in words, sequences."""
import string

from .words import DAYS, MLEN, MONTHS
from .wording import NUMW, TENS, draw, phrase, rnum
from .lists import ORD


def t_date(r, ev):
    k = r.randrange(6)
    if k == 0:
        d, n = r.randrange(7), r.randint(1, 10)
        f = r.random() < 0.65
        if f:
            u = phrase(
                r, [
                    "What day is {n} days after {d}?", "Today is {d}. What day will it be in {n} days?",
                    "Which day comes {n} days after {d}?", "If today is {d}, what day is it in {n} days?", "{n} days after {d}?"
                ], n=str(n), d=DAYS[d]
            )
            res = DAYS[(d + n) % 7]
            th = ", ".join(f"{i}: {DAYS[(d + i) % 7]}" for i in range(1, n + 1))
        else:
            u = phrase(
                r, [
                    "What day is {n} days before {d}?", "Today is {d}. What day was it {n} days ago?",
                    "Which day comes {n} days before {d}?"
                ], n=str(n), d=DAYS[d]
            )
            res = DAYS[(d - n) % 7]
            th = ", ".join(f"{i}: {DAYS[(d - i) % 7]}" for i in range(1, n + 1))
        return u, th, res
    if k == 1:
        m, n = r.randrange(12), r.randint(1, 9)
        f = r.random() < 0.65
        u = phrase(
            r, [
                "What month is {n} months after {m}?", "Which month comes {n} months after {m}?",
                "It is {m}. What month is it in {n} months?"
            ] if f else ["What month is {n} months before {m}?", "Which month comes {n} months before {m}?"], n=str(n),
            m=MONTHS[m]
        )
        s = 1 if f else -1
        return u, ", ".join(f"{i}: {MONTHS[(m + s * i) % 12]}" for i in range(1, n + 1)), MONTHS[(m + s * n) % 12]
    if k in (2, 3):
        m = r.randrange(12)
        d = r.randint(1, MLEN[m])
        n = r.randint(1, 30)
        u = phrase(
            r, [
                "What is the date {n} days after {m} {d}?", "Which date is {n} days after {m} {d}?",
                "Today is {m} {d}. What is the date in {n} days?", "Add {n} days to {m} {d}.",
                "What date comes {n} days after {m} {d}?"
            ], n=str(n), m=MONTHS[m], d=str(d)
        )
        s = d + n
        if s <= MLEN[m]:
            return u, f"{MONTHS[m]} has {MLEN[m]} days. {d} + {n} = {s}", f"{MONTHS[m]} {s}"
        m2, s2 = (m + 1) % 12, s - MLEN[m]
        th = f"{MONTHS[m]} has {MLEN[m]} days. {d} + {n} = {s}, {s} - {MLEN[m]} = {s2}"
        if s2 > MLEN[m2]:
            s3 = s2 - MLEN[m2]
            th += f". {MONTHS[m2]} has {MLEN[m2]} days. {s2} - {MLEN[m2]} = {s3}"
            m2, s2 = (m2 + 1) % 12, s3
        return u, th, f"{MONTHS[m2]} {s2}"
    if k == 4:
        m = r.randrange(12)
        if r.random() < 0.5:
            return phrase(
                r, ["How many days does {m} have?", "How many days are in {m}?", "How long is {m}?"], m=MONTHS[m]
            ), f"{MONTHS[m]} has {MLEN[m]} days.", f"{MONTHS[m]} has {MLEN[m]} days."
        return phrase(
            r, ["Which month is number {n}?", "What is month {n} of the year?", "What is the {o} month of the year?"],
            n=str(m + 1), o=(ORD + ["eleventh", "twelfth"])[m]
        ), f"Month {m + 1} is {MONTHS[m]}.", MONTHS[m]
    d = r.randrange(7)
    k = r.random()
    if k < 0.5:
        return phrase(
            r, [
                "What day comes after {d}?", "Which day follows {d}?", "What is the day after {d}?",
                "If today is {d}, what day is tomorrow?"
            ], d=DAYS[d]
        ), f"After {DAYS[d]} comes {DAYS[(d + 1) % 7]}.", DAYS[(d + 1) % 7]
    return phrase(
        r, ["What day comes before {d}?", "What is the day before {d}?", "If today is {d}, what day was yesterday?"], d=DAYS[d]
    ), f"Before {DAYS[d]} comes {DAYS[(d - 1) % 7]}.", DAYS[(d - 1) % 7]


def t_time(r, ev):
    h, m, n = r.randint(1, 12), r.randrange(0, 60, 5), r.randrange(5, 125, 5)
    u = phrase(
        r, [
            "What time is {n} minutes after {t}?", "It is {t}. What time will it be in {n} minutes?", "Add {n} minutes to {t}.",
            "What is {t} plus {n} minutes?"
        ], n=str(n), t=f"{h}:{m:02d}"
    )
    tot = m + n
    th = f"{m} + {n} = {tot} minutes"
    hh = h
    while tot >= 60:
        th += f", {tot} - 60 = {tot - 60}, one hour more"
        tot -= 60
        hh += 1
    hh = (hh - 1) % 12 + 1
    return u, th, f"{hh}:{tot:02d}"


UNITS = [("m", "cm", 100), ("km", "m", 1000), ("kg", "g", 1000), ("hours", "minutes", 60), ("minutes", "seconds", 60),
         ("weeks", "days", 7), ("days", "hours", 24), ("cm", "mm", 10), ("litres", "ml", 1000), ("feet", "inches", 12),
         ("years", "months", 12), ("dozen", "items", 12), ("dollars", "cents", 100), ("tonnes", "kg", 1000),
         ("yards", "feet", 3)]


def t_units(r, ev):
    if r.random() < 0.1:
        c = r.randrange(-2, 13) * 5
        f = c * 9 // 5 + 32
        return phrase(
            r, ["Convert {c} degrees Celsius to Fahrenheit.", "What is {c} °C in Fahrenheit?", "{c} C in F?"], c=str(c)
        ), f"{c} / 5 = {c // 5}, {c // 5} * 9 = {c // 5 * 9}, {c // 5 * 9} + 32 = {f}", f"{c} degrees Celsius is {f} degrees Fahrenheit."
    a, b, k = r.choice(UNITS)
    hi = 60 if k in (10, 100, 1000) else 12
    n = draw(r, ev, lambda: r.randint(1, hi), lambda n: f"u{a}{n}")
    if r.random() < 0.6:
        u = phrase(
            r, [
                "Convert {n} {a} to {b}.", "How many {b} are {n} {a}?", "How many {b} are in {n} {a}?",
                "What is {n} {a} in {b}?", "{n} {a} in {b}?", "{n} {a} to {b}"
            ], n=str(n), a=a, b=b
        )
        return u, f"{a} to {b}: times {k}. {n} * {k} = {n * k}", f"{n} {a} = {n * k} {b}"
    u = phrase(
        r, [
            "Convert {n} {b} to {a}.", "How many {a} are {n} {b}?", "What is {n} {b} in {a}?", "{n} {b} in {a}?",
            "{n} {b} to {a}"
        ], n=str(n * k), a=a, b=b
    )
    return u, f"{b} to {a}: divide by {k}. {n * k} / {k} = {n}", f"{n * k} {b} = {n} {a}"


def roman(n):
    out, parts = "", []
    for v, s in ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
                 (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while n >= v:
            out += s
            parts.append((v, s))
            n -= v
    return out, parts


def t_roman(r, ev):
    n = draw(
        r, ev, lambda: r.randint(1, 30) if r.random() < 0.3 else r.randint(1, 200)
        if r.random() < 0.5 else r.randint(1, 3999), lambda n: f"r{n}"
    )
    s, parts = roman(n)
    if r.random() < 0.5:
        u = phrase(
            r, [
                "Write {n} in Roman numerals.", "Convert {n} to Roman numerals.", "What is {n} in Roman numerals?",
                "{n} as a Roman numeral", "Roman numeral for {n}?", "{n} in Roman numerals",
                "Convert the number {n} to Roman numerals.", "Turn {n} into Roman numerals.",
                "How do you write {n} in Roman numerals?", "{n} to Roman", "What is the Roman numeral for {n}?",
                "Roman for {n}", "Express {n} in Roman numerals."
            ], n=str(n)
        )
        return u, ", ".join(f"{v} {x}" for v, x in parts), s
    u = phrase(
        r, [
            "What number is {s}?", "Convert the Roman numeral {s} to a number.", "What is the Roman numeral {s}?",
            "Read the Roman numeral {s}.", "What does {s} mean as a number?", "Roman numeral {s} in digits?",
            "Convert {s} to a number.", "{s} in digits", "Which number is {s} in Roman numerals?",
            "Turn the Roman numeral {s} into a number.", "Decode the Roman numeral {s}."
        ], s=s
    )
    acc, th = 0, []
    for v, x in parts:
        acc += v
        th.append(f"{x} {v}: {acc}")
    return u, ", ".join(th), str(n)


def words_of(n):
    if n < 20:
        return NUMW[n]
    if n < 100:
        return TENS[n // 10] + ("-" + NUMW[n % 10] if n % 10 else "")
    if n < 1000:
        return NUMW[n // 100] + " hundred" + (" and " + words_of(n % 100) if n % 100 else "")
    return words_of(n // 1000) + " thousand" + ((" and " if n % 1000 < 100 else " ") + words_of(n % 1000) if n % 1000 else "")


def t_numwords(r, ev):
    n = draw(r, ev, lambda: rnum(r, 1, 4) if r.random() < 0.7 else r.randrange(100), lambda n: f"nw{n}")
    w = words_of(n)
    if r.random() < 0.5:
        return phrase(
            r, [
                "Write {n} in words.", "How do you write {n} in words?", "{n} in words", "Spell out the number {n}.",
                "Write the number {n} as words."
            ], n=str(n)
        ), f"{n} is {w}.", w
    return phrase(
        r,
        ["Write {n} as a number.", "Write {n} in digits.", "Which number is {n}?", "{n} in digits", "Convert {n} to digits."],
        n=w
    ), f"{w} is {n}.", str(n)


def t_seq(r, ev):
    k = r.randrange(5)
    if k == 0:
        a, d, n = r.randrange(0, 60), r.choice((1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 11, 20, 25, 50, 100)), r.randint(3, 6)
        if r.random() < 0.25:
            a += d * n + 20
            d = -d
        xs = [a + d * i for i in range(n)]
        if xs[-1] + d < 0:
            xs = [x + 100 for x in xs]
        u = phrase(
            r, [
                "What comes next: {l}", "What is the next number: {l}", "Continue the sequence: {l}",
                "Find the next number in the sequence {l}", "{l}, ..."
            ], l=", ".join(map(str, xs))
        )
        hi_, lo_ = max(xs[0], xs[1]), min(xs[0], xs[1])
        return u, f"{hi_} - {lo_} = {abs(d)}, {'up' if d > 0 else 'down'}. {xs[-1]} {'+' if d > 0 else '-'} {abs(d)} = {xs[-1] + d}", str(
            xs[-1] + d
        )
    if k == 1:
        a = r.randrange(0, 40)
        b = a + r.randint(3, 14)
        if r.random() < 0.7:
            return phrase(
                r, [
                    "Count from {a} to {b}.", "Count up from {a} to {b}.", "List the numbers from {a} to {b}.",
                    "Write the numbers {a} to {b}."
                ], a=str(a), b=str(b)
            ), f"From {a} up to {b}.", ", ".join(map(str, range(a, b + 1)))
        return phrase(r, ["Count down from {b} to {a}.", "Count backwards from {b} to {a}."], a=str(a),
                      b=str(b)), f"From {b} down to {a}.", ", ".join(map(str, range(b, a - 1, -1)))
    if k == 2:
        n = rnum(r, 1, 5)
        return phrase(
            r, ["Is {n} even or odd?", "Is {n} odd or even?", "Is the number {n} even or odd?"], n=str(n)
        ), f"The last digit is {n % 10}.", f"{n} is {'odd' if n % 2 else 'even'}."
    if k == 3:
        n = rnum(r, 1, 5)
        d = r.choice((1, -1)) if n else 1
        return phrase(
            r, ["What number comes after {n}?", "Which number follows {n}?", "What is one more than {n}?"]
            if d > 0 else ["What number comes before {n}?", "What is one less than {n}?"], n=str(n)
        ), f"{n} {'+' if d > 0 else '-'} 1 = {n + d}", str(n + d)
    if r.random() < 0.5:
        i = r.randrange(26)
        j = r.choice((1, -1))
        if not 0 <= i + j < 26:
            j = -j
        c = string.ascii_uppercase[i]
        return phrase(
            r,
            ["Which letter comes {x} {c} in the alphabet?", "What letter is {x} {c}?", "What comes {x} {c} in the alphabet?"],
            x="after" if j > 0 else "before", c=c
        ), f"{'After' if j > 0 else 'Before'} {c} comes {string.ascii_uppercase[i + j]}.", string.ascii_uppercase[i + j]
    n = r.randint(2, 12)
    return phrase(
        r, [
            "Write the {n} times table.", "List the multiples of {n} up to {m}.", "Count by {n} to {m}.",
            "Count in steps of {n} up to {m}."
        ], n=str(n), m=str(10 * n)
    ), f"Steps of {n}.", ", ".join(str(n * i) for i in range(1, 11))
