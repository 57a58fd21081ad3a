"""Task: a question on a passage of up to six people."""
from .words import ADJ, CATS, CITIES, COLOURS, DAYS, FIRST, JOBS, OBJECTS, PLACES
from .wording import cap1, low1

PV = [("bought", "buy"), ("found", "find"), ("lost", "lose"), ("sold", "sell"), ("painted", "paint"), ("repaired", "repair"),
      ("hid", "hide"), ("borrowed", "borrow"), ("cleaned", "clean"), ("broke", "break"), ("dropped", "drop"),
      ("forgot", "forget"), ("saw", "see"), ("left", "leave")]


def t_passage(r, ev):
    n = r.randint(2, 6)
    people = r.sample(FIRST, n + 1)
    objs = r.sample(OBJECTS, n)
    places = r.sample(PLACES, n)
    facts, sents = [], []
    for i in range(n):
        k = r.random()
        P = people[i]
        if k < 0.6:
            v, vb = r.choice(PV)
            ad = r.choice(COLOURS + ADJ[:20])
            art = "an" if ad[0] in "aeiou" else "a"
            day = r.choice(DAYS + ["January 3", "May 12", "June 21", "March 8", "October 30"])
            o, pl = objs[i], places[i]
            sents.append(
                r.choice((
                    f"On {day}, {P} {v} {art} {ad} {o} in the {pl}.", f"{P} {v} {art} {ad} {o} in the {pl} on {day}.",
                    f"In the {pl}, {P} {v} {art} {ad} {o} on {day}.", f"{P} went to the {pl} on {day} and {v} {art} {ad} {o}.",
                    f"{P} went to the {pl} on {day}. There {P} {v} {art} {ad} {o}.",
                    f"On {day} {P} was in the {pl} and {v} {art} {ad} {o}.",
                    f"It was in the {pl} that {P} {v} {art} {ad} {o} on {day}.",
                    f"{P} {v} {art} {ad} {o} on {day}, in the {pl}.",
                    f"When {P} was in the {pl} on {day}, {P} {v} {art} {ad} {o}."
                ))
            )
            facts += [(r.choice((f"Who {v} the {o}?", f"Who {v} {art} {o}?", f"Which person {v} the {o}?")), P, 1),
                      (
                          r.choice((
                              f"Where did {P} {vb} the {o}?",
                              f"Where was {P} on {day}?" if sum(day in x
                                                                for x in sents) == 1 else f"Where did {P} {vb} the {o}?"
                          )), f"In the {pl}.", 1
                      ), (r.choice((f"When did {P} {vb} the {o}?", f"On which day did {P} {vb} the {o}?")), f"On {day}.", 1),
                      (r.choice((f"What did {P} {vb}?", f"What did {P} {vb} in the {pl}?")), f"{cap1(art)} {ad} {o}.", 1)]
            if ad in COLOURS:
                facts.append((f"What colour was the {o}?", f"{cap1(ad)}.", 1))
        elif k < 0.75:
            j, c = r.choice(JOBS), r.choice(CITIES)
            art = "an" if j[0] in "aeiou" else "a"
            sents.append(r.choice((f"{P} is {art} {j} from {c}.", f"{P} works as {art} {j} in {c}.")))
            w = "from" if "from" in sents[-1] else "in"
            facts += [(f"What is {P}'s job?", f"{cap1(art)} {j}.", 1),
                      (
                          f"Which city is {P} {w}?" if w == "from" else f"Where does {P} work?",
                          f"{c}." if w == "from" else f"In {c}.", 1
                      ), (f"Who is {art} {j}?", P, 1)]
        elif k < 0.87:
            a = r.randint(4, 90)
            sents.append(f"{P} is {a} years old.")
            facts += [(f"How old is {P}?", f"{a} years old.", 1), (f"Who is {a} years old?", P, 1)]
        else:
            c, members = r.choice(CATS[:4] + CATS[5:6])
            x = r.choice(members)
            sents.append(f"{P}'s favourite {c} is {x}.")
            facts += [(f"What is {P}'s favourite {c}?", f"{cap1(x)}.", 1)]
    if r.random() < 0.4:
        sents.insert(
            r.randrange(len(sents) + 1),
            r.choice(("The weather was {a}.", "It was a {a} day.", "Everyone was {a}.", "The streets were {a}.")
                     ).replace("{a}", r.choice(ADJ))
        )
    txt = " ".join(sents)
    if r.random() < 0.08:
        qn, a = r.choice((f"How old is {people[n]}?", f"Where does {people[n]} work?", f"What did {people[n]} buy?")
                         ), "The passage does not say."
        th = f"The passage does not mention {people[n]}."
    else:
        qn, a, _ = r.choice(facts)
        th = next((
            s for s in sents if all(
                x in s for x in [
                    a.strip(".").split(" ", 1)[-1].lower() if a.split(" ")[0] in
                    ("A", "An") else low1(a.strip(".")) if a[0].isupper() and a.split()[0] in ("In", "On") else a.strip(".")
                ]
            ) or False
        ), None)
        cand = [s for s in sents if any(w in s for w in qn.strip("?").split() if w in people or w in objs)]
        th = "The passage says: " + (cand[0] if cand else th or sents[0])
    qn = qn if r.random() < 0.8 else low1(qn)
    u = r.choice((
        f"{txt}\n\n{qn}", f"Read the passage and answer the question.\n\n{txt}\n\n{qn}", f"Passage: {txt}\nQuestion: {qn}",
        f"{qn}\n\n{txt}", f"Answer from the text.\n{txt}\n{qn}", f"Text: {txt}\n\n{qn}"
    ))
    return u, th, a
