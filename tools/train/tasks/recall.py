"""Tasks: an entry of a list given in the request, and JSON read and written."""
import json
import string

from .words import ADJ, ANIMALS, CITIES, COLOURS, FIRST, JOBS, MONTHS, OBJECTS, PLACES
from .wording import with_article, UPD, anyword, code, fullname, lexicon, phrase, rnum
from .lists import numlist, wordlist


def kv_pairs(r, n):
    kk = r.random()
    keys = {}  # not a set: its order would depend on Python's hash seed
    while len(keys) < n:
        if kk < 0.25:
            keys.setdefault(r.choice(FIRST) if n < 30 else fullname(r))
        elif kk < 0.5:
            keys.setdefault(anyword(r, 3, 9))
        elif kk < 0.65:
            keys.setdefault(r.choice(string.ascii_uppercase) + str(r.randrange(10, 1000)))
        elif kk < 0.8:
            keys.setdefault(r.choice(CITIES) if n < 60 else code(r, 4, 6))
        elif kk < 0.9:
            keys.setdefault(r.choice(ADJ) + " " + r.choice(OBJECTS + ANIMALS))
        else:
            keys.setdefault(code(r, 3, 6, UPD))
    keys = list(keys)
    r.shuffle(keys)
    vk = r.random()
    vals = {}
    t = 0
    while len(vals) < n:
        t += 1
        if vk < 0.35 or t > 3000:
            vals.setdefault(str(rnum(r, 2, 6)))
        elif vk < 0.6:
            vals.setdefault(anyword(r, 3, 9))
        elif vk < 0.8:
            vals.setdefault(code(r, 4, 7))
        elif vk < 0.9:
            vals.setdefault(r.choice(ADJ) + " " + r.choice(OBJECTS))
        else:
            vals.setdefault(fullname(r))
    vals = list(vals)
    r.shuffle(vals)
    return list(zip(keys, vals))


def kv_text(r, kv):
    s = r.randrange(9)
    if s == 0:
        return "\n".join(f"{k}: {v}" for k, v in kv)
    if s == 1:
        return "\n".join(f"{k} = {v}" for k, v in kv)
    if s == 2:
        return "\n".join(f"{k} -> {v}" for k, v in kv)
    if s == 3:
        return json.dumps(dict(kv))
    if s == 4:
        return " ".join(f"The code for {k} is {v}." for k, v in kv)
    if s == 5:
        return "\n".join(f"{k},{v}" for k, v in kv)
    if s == 6:
        return ", ".join(f"{k}: {v}" for k, v in kv)
    if s == 7:
        return "\n".join(f"| {k} | {v} |" for k, v in kv)
    return "; ".join(f"{k} is {v}" for k, v in kv)


def t_recall(r, ev, n=None):
    if n is None:
        p = r.random()
        n = r.randint(4, 10) if p < 0.5 else r.randint(10,
                                                       24) if p < 0.8 else r.randint(24, 40) if p < 0.95 else r.randint(40, 70)
    kv = kv_pairs(r, n)
    txt = kv_text(r, kv)
    k, v = r.choice(kv)
    p = r.random()
    intro = r.choice((
        "Here is a list:", "Here are some values:", "Data:", "Table:", "Remember these:", "Use this list:",
        "Look at this list:", "These are the codes:", ""
    ))
    if p < 0.80:
        qn = phrase(
            r, [
                "What is the value for {k}?", "What is the value of {k}?", "Look up {k}.", "What is {k}?",
                "What belongs to {k}?", "Find the value of {k}.", "Which value goes with {k}?", "Give the value for {k}.",
                "What is the entry for {k}?", "{k}?"
            ], k=k
        )
        th, a = f"The entry for {k} is {v}.", v
    elif p < 0.93:
        qn = phrase(
            r, [
                "Which key has the value {v}?", "What has the value {v}?", "Which entry is {v}?", "Who or what goes with {v}?",
                "Find the key for {v}."
            ], v=v
        )
        th, a = f"{v} belongs to {k}.", k
    else:
        z = kv_pairs(r, 4)[0][0]
        while z in dict(kv):
            z = code(r, 4, 6, UPD)
        qn = phrase(
            r, ["What is the value for {k}?", "Look up {k}.", "Find the value of {k}.", "What is the entry for {k}?"], k=z
        )
        th, a = f"I look for {z}. It is not in the list.", f"There is no entry for {z}."
    u = f"{intro}\n{txt}\n\n{qn}" if intro and r.random() < 0.75 else f"{qn}\n\n{txt}"
    return u, th, a


def t_recall_long(r, ev):
    return t_recall(r, ev, r.randint(40, 100))


# ------------------------------------------------------------------ JSON
def person(r):
    n = fullname(r)
    f = n.split()[0].lower()
    return {
        "name": (n, [f"{n}"]), "age": (r.randint(5, 95), None), "city": (r.choice(CITIES), None), "job": (r.choice(JOBS), None),
        "email": (
            f"{f}{r.choice(('', '.', '_'))}{n.split()[1].lower()}@{r.choice(('mail', 'post', 'example', 'work', 'home'))}.{r.choice(('com', 'org', 'net'))}",
            None
        ), "phone": ("-".join(("555", str(r.randrange(100, 1000)), str(r.randrange(1000, 10000)))), None),
        "colour": (r.choice(COLOURS), None), "pet": (r.choice(ANIMALS[:20]), None)
    }


def t_json(r, ev):
    k = r.randrange(5)
    if k <= 1:
        p = {a: b[0] for a, b in person(r).items()}
        fields = ["name"] + r.sample(["age", "city", "job", "email", "phone", "colour", "pet"], r.randint(1, 4))
        n = p["name"]
        ph = {
            "age": (f"is {p['age']} years old",
                    f"is {p['age']}"), "city": (f"lives in {p['city']}", f"comes from {p['city']}", f"moved to {p['city']}"),
            "job": (f"works as {with_article(p['job'])}", f"is {with_article(p['job'])}"),
            "email": (f"can be reached at {p['email']}", f"has the email address {p['email']}"),
            "phone": (f"has the phone number {p['phone']}", f"can be called at {p['phone']}"),
            "colour": (f"likes {p['colour']}",
                       f"has the favourite colour {p['colour']}"), "pet": (f"has a {p['pet']}", f"owns a {p['pet']}")
        }
        bits = [r.choice(ph[f]) for f in fields[1:]]
        txt = f"{n} " + (bits[0] if len(bits) == 1 else ", ".join(bits[:-1]) + " and " + bits[-1]) + "."
        if r.random() < 0.3:
            txt = " ".join([f"{n} {bits[0]}."] + [f"{n.split()[0]} {b}." for b in bits[1:]])
        d = p
    elif k == 2:
        d = {
            "id": r.choice("ABCDX") + str(r.randrange(100, 9999)), "item": r.choice(OBJECTS), "quantity": r.randint(1, 40),
            "price": r.randint(1, 300), "customer": fullname(r)
        }
        fields = r.sample(list(d), r.randint(2, 5))
        txt = r.choice((
            f"Order {d['id']}: {d['customer']} ordered {d['quantity']} of item {d['item']} at a price of {d['price']}.",
            f"{d['customer']} bought {d['quantity']} x {d['item']} for {d['price']} dollars each (order {d['id']})."
        ))
    elif k == 3:
        d = {
            "title": r.choice(ADJ).title() + " " + r.choice(lexicon.nouns).title(),
            "date": f"{r.choice(MONTHS)} {r.randint(1, 28)}",
            "time": f"{r.randint(1, 12)}:{r.choice(('00', '15', '30', '45'))}", "place": r.choice(PLACES)
        }
        fields = r.sample(list(d), r.randint(2, 4))
        txt = r.choice((
            f"The event {d['title']} is on {d['date']} at {d['time']} in the {d['place']}.",
            f"Join us for {d['title']} in the {d['place']} on {d['date']}. It starts at {d['time']}."
        ))
    else:
        d = {
            "host": r.choice(("web", "db", "mail", "files", "app", "cache")) + str(r.randint(1, 99)), "port": r.choice(
                (80, 443, 22, 5432, 8080, 3306, r.randrange(1000, 9999))
            ), "user": r.choice(FIRST).lower(), "status": r.choice(("up", "down", "starting", "stopped"))
        }
        fields = r.sample(list(d), r.randint(2, 4))
        txt = r.choice((
            f"Server {d['host']} listens on port {d['port']}. The user is {d['user']} and the status is {d['status']}.",
            f"User {d['user']} started {d['host']} on port {d['port']}; it is now {d['status']}."
        ))
    ks = list(fields)
    if r.random() < 0.5:
        r.shuffle(ks)
    a = json.dumps({f: d[f] for f in ks})
    fl = ", ".join(ks)
    u = phrase(
        r, [
            "Extract {f} as JSON: {t}", "Extract the fields {f} from this text as JSON.\n{t}",
            "Read the text and return JSON with the keys {f}.\n\n{t}", "Text: {t}\nReturn a JSON object with {f}.",
            "Turn this into JSON with keys {f}: {t}", "Give me a JSON object with the keys {f} for this text: {t}",
            "Fill in the JSON fields {f}.\nText: {t}"
        ], f=fl, t=txt
    )
    return u, "; ".join(f"{f}: {d[f]}" for f in ks), a


def t_tojson(r, ev):
    xs, _ = wordlist(r, 2, 7)
    k = r.randrange(3)
    if k == 0:
        if r.random() < 0.3:
            xs = numlist(r, 3, 7)
        return phrase(
            r, ["Write this as a JSON list: {l}", "Convert to a JSON array: {l}", "Make a JSON list of {l}", "JSON array: {l}"],
            l=", ".join(map(str, xs))
        ), "A JSON list.", json.dumps(xs)
    kv = kv_pairs(r, r.randint(2, 5))
    if k == 1:
        return phrase(
            r, ["Convert to JSON:\n{l}", "Write this as a JSON object:\n{l}", "Turn these lines into JSON:\n{l}"], l="\n".join(
                f"{a}: {b}" for a, b in kv
            )
        ), "A JSON object.", json.dumps(dict(kv))
    return phrase(
        r, ["Convert this JSON to lines: {l}", "List the keys and values: {l}", "Write this JSON as key: value lines: {l}"],
        l=json.dumps(dict(kv))
    ), "One line for each key.", "\n".join(f"{a}: {b}" for a, b in kv)
