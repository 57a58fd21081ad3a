"""Tasks: calls of functions that the system turn describes, and answers from their results."""
import json
import string

from .words import CANT, CITIES, DAYS, FIRST
from .wording import anyword, cap1, code, fullname, lexicon, low1, phrase, rnum
from .letters import sentence, t_case, t_reverse, t_spell
from .facts import t_capital, t_chat, t_fact, t_opposite


def text_arg(d, **k):
    return dict({"type": "string", "description": d}, **k)


def int_arg(d):
    return {"type": "integer", "description": d}


def tool(name, desc, props, req=None):
    return {
        "type": "function", "function": {
            "name": name, "description": desc, "parameters": {
                "type": "object", "properties": props, "required": req if req is not None else list(props)
            }
        }
    }


def tl_weather(r):
    c = r.choice(CITIES)
    nm = r.choice(("get_weather", "weather", "get_current_weather", "current_weather"))
    k = r.choice(("city", "location", "place"))
    props, args = {
        k: text_arg(
            r.choice(
                ("Name of the city", "The city", "The city and state, e.g. San Francisco, CA", "City name, for example Paris")
            )
        )
    }, {k: c}
    unit = None
    if r.random() < 0.35:
        props["unit"] = text_arg(
            r.choice(("celsius or fahrenheit", "Unit of the temperature", "The unit")), enum=["celsius", "fahrenheit"]
        )
        if r.random() < 0.5:
            unit = args["unit"] = r.choice(("celsius", "fahrenheit"))
    t = tool(
        nm,
        r.choice((
            "Get the weather for a city", "Get the current weather.", "Current weather in a place",
            "Get the current weather in a given location"
        )), props, [k]
    )
    tmp, cond = r.randint(-10, 38), r.choice(("sunny", "cloudy", "rainy", "windy", "snowy", "foggy", "clear"))
    u = phrase(
        r, [
            "What is the weather in {c}?", "How is the weather in {c}?", "What's the weather like in {c}?",
            "Is it warm in {c}?", "Weather in {c}?", "Tell me the weather in {c}.", "How warm is it in {c} right now?",
            "What is the temperature in {c}?", "Is it raining in {c}?", "what's the weather in {c} today?"
        ], c=c
    )
    if unit:
        u = u.rstrip(".?! ") + r.choice((f" in {unit}?", f", in {unit}", f"? Use {unit}.", f" ({unit})"))
    res = json.dumps({k: c, "temperature": tmp, "condition": cond}) if r.random() < 0.6 else f"{cond}, {tmp} degrees"
    return t, u, args, res, f"It is {cond} in {c} with {tmp} degrees."


def tl_calc(r):
    a, b, op = rnum(r, 1, 4), rnum(r, 1, 4), r.choice("+-*")
    v = a + b if op == "+" else a - b if op == "-" else a * b
    nm = r.choice(("calculator", "calculate", "eval_expression", "calc"))
    t = tool(
        nm, r.choice(("Evaluate an arithmetic expression", "A simple calculator", "Compute the value of an expression")),
        {"expression": text_arg("The expression")}
    )
    u = phrase(
        r, ["What is {e}?", "Calculate {e}.", "Use the calculator for {e}.", "Compute {e} with the calculator.", "{e}"],
        e=f"{a} {op} {b}"
    )
    return t, u, {"expression": f"{a} {op} {b}"}, r.choice((str(v), json.dumps({"result": v}))), f"{a} {op} {b} = {v}"


def tl_add(r):
    a, b = rnum(r, 1, 4), rnum(r, 1, 4)
    ks = r.choice((("a", "b"), ("x", "y"), ("first", "second")))
    nm = r.choice(("add", "add_numbers", "sum_two"))
    t = tool(nm, "Add two numbers", {ks[0]: int_arg("First number"), ks[1]: int_arg("Second number")})
    u = phrase(
        r, ["Add {a} and {b}.", "What is {a} + {b}?", "Use the tool to add {a} and {b}.", "Sum of {a} and {b}?"], a=str(a),
        b=str(b)
    )
    return t, u, {ks[0]: a, ks[1]: b}, r.choice((str(a + b), json.dumps({"result": a + b}))), f"{a} + {b} = {a + b}"


def tl_time(r):
    c = r.choice(CITIES)
    nm = r.choice(("get_time", "current_time", "get_local_time"))
    k = r.choice(("city", "timezone", "location"))
    t = tool(nm, "Get the current local time", {k: text_arg("City or time zone")})
    h = f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}"
    u = phrase(
        r, ["What time is it in {c}?", "Tell me the time in {c}.", "Current time in {c}?", "What is the local time in {c}?"],
        c=c
    )
    return t, u, {k: c}, r.choice((h, json.dumps({"time": h}))), f"It is {h} in {c}."


def tl_email(r):
    p = r.choice(FIRST)
    e = p.lower() + "@" + r.choice(("example.com", "mail.org", "work.net"))
    sub, body = cap1(sentence(r, 1, 3)), cap1(sentence(r, 3, 8)) + "."
    nm = r.choice(("send_email", "email", "send_mail"))
    t = tool(
        nm, "Send an email",
        {"to": text_arg("Address"), "subject": text_arg("Subject line"), "body": text_arg("Text of the email")}
    )
    u = phrase(
        r, [
            "Send an email to {e} with the subject \"{s}\" and the text \"{b}\"", "Email {e}. Subject: {s}. Text: {b}",
            "Write to {e}, subject {s}: {b}"
        ], e=e, s=sub, b=body
    )
    return t, u, {"to": e, "subject": sub,
                  "body": body}, r.choice(("sent", '{"status": "sent"}', "ok")), f"The email to {e} was sent."


def tl_timer(r):
    n = r.randint(1, 90)
    k = r.choice(("minutes", "duration"))
    nm = r.choice(("set_timer", "start_timer", "timer"))
    t = tool(nm, "Start a timer", {k: int_arg("Length in minutes")})
    u = phrase(
        r, ["Set a timer for {n} minutes.", "Start a {n} minute timer.", "Timer for {n} minutes.", "Remind me in {n} minutes."],
        n=str(n)
    )
    return t, u, {k: n}, r.choice(("ok", '{"status": "started"}', "timer started")), f"The timer is set for {n} minutes."


def tl_search(r):
    q_ = " ".join(anyword(r, 3, 9) for _ in range(r.randint(1, 4)))
    nm = r.choice(("web_search", "search", "search_web"))
    k = r.choice(("query", "q", "text"))
    t = tool(nm, r.choice(("Search the web", "Search for information")), {k: text_arg("What to search for")})
    u = phrase(
        r,
        ["Search for {q}.", "Look up {q} on the web.", "Search the web for {q}.", "Find information about {q}.", "Search: {q}"],
        q=q_
    )
    res = cap1(sentence(r, 4, 10)) + "."
    return t, u, {k: q_}, res, f"I found this: {res}"


def tl_stock(r):
    s = code(r, 3, 4, string.ascii_uppercase)
    nm = r.choice(("get_stock_price", "stock_price", "quote"))
    k = r.choice(("symbol", "ticker"))
    t = tool(nm, "Get the price of a stock", {k: text_arg("Ticker symbol")})
    p = f"{r.randint(1, 900)}.{r.randint(10, 99)}"
    u = phrase(r, ["What is the price of {s}?", "How much is {s} stock?", "Stock price of {s}?", "Get the price of {s}."], s=s)
    return t, u, {k: s}, r.choice((p, '{"price": ' + p + "}")), f"The price of {s} is {p}."


def tl_light(r):
    room = r.choice(("kitchen", "bedroom", "bathroom", "hall", "office", "garage", "garden", "living room"))
    st = r.choice(("on", "off"))
    nm = r.choice(("set_light", "light", "switch_light"))
    t = tool(nm, "Switch a light on or off", {"room": text_arg("The room"), "state": text_arg("on or off", enum=["on", "off"])})
    u = phrase(
        r, ["Turn {s} the light in the {x}.", "Switch the {x} light {s}.", "Turn the {x} light {s}.", "Light {s} in the {x}."],
        s=st, x=room
    )
    return t, u, {"room": room, "state": st}, r.choice(("ok", "done", '{"ok": true}')), f"The light in the {room} is now {st}."


def tl_file(r):
    p = r.choice(("/tmp/", "/etc/", "/".join(("", "home", r.choice(FIRST).lower(), "")), "src/", "docs/", "")
                 ) + anyword(r, 3, 8) + r.choice((".txt", ".py", ".c", ".md", ".json", ".log"))
    nm = r.choice(("read_file", "cat", "open_file"))
    k = r.choice(("path", "file", "filename"))
    t = tool(nm, "Read a file", {k: text_arg("Path of the file")})
    u = phrase(r, ["Read the file {p}", "Show me {p}", "What is in {p}", "Open {p}", "Print the contents of {p}"], p=p)
    res = cap1(sentence(r, 3, 9)) + "."
    return t, u, {k: p}, res, f"The file {p} contains: {res}"


def tl_run(r):
    c = r.choice((
        "ls", "ls -la", "pwd", "date", "whoami", "uname -a", "df -h", "make", "make test", "git status", "git log", "python3 " +
        anyword(r, 3, 7) + ".py", "cat " + anyword(r, 3, 7) + ".txt", "echo " + anyword(r, 3, 7), "mkdir " + anyword(r, 3, 7)
    ))
    nm = r.choice(("run_command", "shell", "bash", "execute"))
    k = r.choice(("command", "cmd"))
    t = tool(nm, "Run a shell command", {k: text_arg("The command")})
    u = phrase(r, ["Run the command {c}", "Run {c}", "Execute {c}", "Run `{c}` in the shell"], c=c)
    res = sentence(r, 1, 6)
    return t, u, {k: c}, res, f"The output is: {res}"


def tl_translate(r):
    s, lang = sentence(r, 1, 4), r.choice(("French", "German", "Spanish", "Italian", "Dutch", "Polish"))
    nm = r.choice(("translate", "translate_text"))
    k = r.choice(("language", "target", "to"))
    t = tool(nm, "Translate text", {"text": text_arg("Text to translate"), k: text_arg("Target language")})
    u = phrase(r, ["Translate \"{s}\" into {l}.", "Translate {s} to {l}", "How do you say \"{s}\" in {l}?"], s=s, l=lang)
    res = sentence(r, 1, 4)
    return t, u, {"text": s, k: lang}, res, f"In {lang}: {res}"


def tl_event(r):
    ti, d, h = r.choice(("Lunch", "Meeting", "Dentist", "Call", "Dinner", "Party", "Training", "Review")) + r.choice(
        ("", " with " + r.choice(FIRST))
    ), r.choice(DAYS), f"{r.randint(8, 20)}:{r.choice(('00', '15', '30'))}"
    nm = r.choice(("create_event", "add_event", "calendar_add"))
    t = tool(
        nm, "Add an event to the calendar",
        {"title": text_arg("Title"), "day": text_arg("Day of the week"), "time": text_arg("Time")}
    )
    u = phrase(
        r, [
            "Add {t} to my calendar on {d} at {h}.", "Create an event: {t}, {d} at {h}.",
            "Put {t} in the calendar for {d} at {h}."
        ], t=ti, d=d, h=h
    )
    return t, u, {"title": ti, "day": d,
                  "time": h}, r.choice(("ok", '{"created": true}', "added")), f"I added {ti} on {d} at {h}."


def tl_convert(r):
    a, f, to = r.randint(1, 900), *r.sample(("USD", "EUR", "GBP", "JPY", "CHF", "SEK", "NOK", "CAD"), 2)
    v = r.randint(1, 2000)
    nm = r.choice(("convert_currency", "exchange", "currency"))
    t = tool(
        nm, "Convert money from one currency to another",
        {"amount": int_arg("Amount"), "from": text_arg("Currency code"), "to": text_arg("Currency code")}
    )
    u = phrase(r, ["Convert {a} {f} to {t}.", "How much is {a} {f} in {t}?", "{a} {f} in {t}?"], a=str(a), f=f, t=to)
    return t, u, {"amount": a, "from": f,
                  "to": to}, r.choice((f"{v} {to}", json.dumps({"amount": v, "currency": to}))), f"{a} {f} is {v} {to}."


def tl_user(r):
    i = rnum(r, 2, 5)
    n = fullname(r)
    c = r.choice(CITIES)
    nm = r.choice(("get_user", "find_user", "user_info", "lookup_user"))
    k = r.choice(("id", "user_id"))
    t = tool(nm, "Get data about a user", {k: int_arg("Id of the user")})
    ask = r.randrange(3)
    u = phrase(
        r, [["Who is user {i}?", "What is the name of user {i}?"], [
            "Where does user {i} live?", "Which city is user {i} from?"
        ], ["Look up user {i}.", "Get user {i}."]][ask], i=str(i)
    )
    return t, u, {k: i}, json.dumps({k: i, "name": n, "city": c}), [
        f"User {i} is {n}.", f"User {i} lives in {c}.", f"User {i} is {n} from {c}."
    ][ask]


def tl_order(r):
    o = r.choice("ABCDX") + str(r.randrange(100, 99999))
    st = r.choice(("shipped", "delivered", "waiting", "cancelled", "packed"))
    nm = r.choice(("order_status", "get_order", "track_order"))
    k = r.choice(("order_id", "order", "id"))
    t = tool(nm, "Get the status of an order", {k: text_arg("Order number")})
    u = phrase(
        r, ["Where is my order {o}?", "What is the status of order {o}?", "Track order {o}.", "Has order {o} been shipped?"],
        o=o
    )
    return t, u, {k: o}, r.choice((st, json.dumps({"order": o, "status": st}))), f"Order {o} is {st}."


def tl_random(r):
    """An unfamiliar function with made-up names, asked for explicitly."""
    nm = r.choice(("get", "set", "find", "make", "check", "send", "load", "update", "delete", "count", "open", "close")
                  ) + "_" + anyword(r, 3, 8) + (("_" + anyword(r, 3, 7)) if r.random() < 0.3 else "")
    n = r.randint(1, 3)
    props, args = {}, {}
    while len(props) < n:
        k = anyword(r, 3, 8)
        if k in props:
            continue
        if r.random() < 0.4:
            props[k] = int_arg(cap1(anyword(r, 3, 8)) + " of the " + r.choice(lexicon.nouns))
            args[k] = rnum(r, 1, 4)
        else:
            props[k] = text_arg(cap1(anyword(r, 3, 8)) + " of the " + r.choice(lexicon.nouns))
            args[k] = r.choice((anyword(r, 3, 9), r.choice(CITIES), r.choice(FIRST), code(r, 3, 7), sentence(r, 2, 3)))
    t = tool(nm, cap1(nm.replace("_", " ")), props)
    al = r.choice((
        ", ".join(f"{k} {v}" for k, v in args.items()), ", ".join(f"{k}={v}" for k, v in args.items()), " and ".join(
            f"{k} set to {v}" for k, v in args.items()
        )
    ))
    u = phrase(
        r, [
            "Call {n} with {a}", "Use {n} with {a}", "Run the function {n} with {a}", "Please call {n}: {a}",
            "Use the {n} tool with {a}"
        ], n=nm, a=al
    )
    res = r.choice((
        "ok", "done", str(rnum(r, 1, 4)), sentence(r, 1, 4),
        json.dumps({r.choice(("result", "value", "status")): r.choice((rnum(r, 1, 4), anyword(r, 3, 8)))})
    ))
    return t, u, args, res, f"The result is: {res}"


TOOLGEN = [
    tl_weather, tl_calc, tl_add, tl_time, tl_email, tl_timer, tl_search, tl_stock, tl_light, tl_file, tl_run, tl_translate,
    tl_event, tl_convert, tl_user, tl_order, tl_random, tl_random, tl_random, tl_random
]


def call(name, args):
    return {"type": "function", "function": {"name": name, "arguments": args}}


def t_tool(r, ev, stage=None):
    """Tool use.  Stages: 0 make the call, 1 answer from the result, 2 no tool fits, 3 two calls at once."""
    g = r.choice(TOOLGEN)
    t, u, args, res, ans = g(r)
    nm = t["function"]["name"]
    tools = [t]
    gens = {g}
    for _ in range(r.choice((0, 0, 1, 1, 2, 3))):
        g2 = r.choice(TOOLGEN)
        if g2 in gens and g2 is not tl_random:
            continue
        gens.add(g2)
        t2 = g2(r)[0]
        if t2["function"]["name"] not in [x["function"]["name"] for x in tools
                                          ] and not (g in (tl_calc, tl_add) and "dd" in t2["function"]["name"] + "calc"):
            tools.append(t2)
    r.shuffle(tools)
    if g in (tl_calc, tl_add):
        tools = [
            x for x in tools
            if x is t or not any(y in x["function"]["name"]
                                 for y in ("add_n", "calc", "sum_t", "eval_e")) and x["function"]["name"] != "add"
        ]
    if stage is None:
        p = r.random()
        stage = 0 if p < 0.45 else 1 if p < 0.80 else 2 if p < 0.90 else 3
    if stage == 2:
        f = r.choice((t_chat, t_capital, t_fact, t_spell, t_reverse, t_opposite, t_case))
        u, th, a = f(r, ev)
        if f is t_chat and a == CANT:
            u, th, a = t_fact(r, ev)
        return dict(
            tools=tools, messages=[dict(role="user", content=u),
                                   dict(role="assistant", content=a, reasoning_content=th)]
        )
    if stage == 3:
        for _ in range(30):
            t2, u2, args2, res2, ans2 = g(r)
            if t2["function"]["name"] == nm and list(args2) == list(args) and args2 != args:
                break
        else:
            stage = 0
        if stage == 3:
            u = u.rstrip(".?") + r.choice((" and also: ", ". Then: ", ", and then: ", ". And: ")) + low1(u2)
            m = [
                dict(role="user", content=u),
                dict(
                    role="assistant", content="", reasoning_content=f"Two calls of {nm} are needed.", tool_calls=[
                        call(nm, args), call(nm, args2)
                    ]
                )
            ]
            if r.random() < 0.6:
                m += [
                    dict(role="tool", content=res),
                    dict(role="tool", content=res2),
                    dict(role="assistant", content=ans + " " + ans2, reasoning_content="I have both results.")
                ]
            return dict(tools=tools, messages=m)
    m = [
        dict(role="user", content=u),
        dict(role="assistant", content="", reasoning_content=f"I should call {nm}.", tool_calls=[call(nm, args)])
    ]
    if stage == 1:
        m += [dict(role="tool", content=res), dict(role="assistant", content=ans, reasoning_content="I have the result.")]
    return dict(tools=tools, messages=m)


def t_toolcall(r, ev):
    return t_tool(r, ev, 0)


def t_toolresult(r, ev):
    return t_tool(r, ev, 1)
