"""Conversations with answers that can be checked, written by a program.

Every task is a function (r, ev) -> (request, thought, answer), or a dict with whole messages.  r is a random.Random; ev asks for
an item from the held-out part of the task's space, which training never sees.
"""
from .numbers import t_add, t_compare, t_compare_yes, t_div, t_mul, t_sub
from .lists import t_category, t_list, t_minmax, t_oddone, t_sortnum, t_sortwords, t_sumlist
from .letters import t_case, t_copy, t_countletter, t_letterpos, t_reverse, t_spell, t_strops, t_wordlen
from .recall import t_json, t_recall, t_recall_long, t_tojson
from .units import t_date, t_numwords, t_roman, t_seq, t_time, t_units
from .facts import t_capital, t_chat, t_code, t_continue, t_define, t_element, t_fact, t_open, t_opposite, t_plural, t_story, t_summary
from .passages import t_passage
from .tools import t_tool, t_toolcall, t_toolresult
from .turns import SHORT, t_memory, t_style, t_which
from .render import prompt_and_reply, segments, text_of  # noqa: F401
from .wording import lexicon  # noqa: F401

TASKS = [("add", t_add, 6.0), ("sub", t_sub, 5.0), ("mul", t_mul, 1.6), ("div", t_div, 1.4), ("compare", t_compare, 2.0),
         ("compare_yes", t_compare_yes, 0.8), ("sort_numbers", t_sortnum, 3.0), ("sort_words", t_sortwords, 4.5),
         ("minmax", t_minmax, 1.2), ("sum_list", t_sumlist, 1.6), ("list", t_list, 4.0), ("odd_one_out", t_oddone, 1.6),
         ("category", t_category, 1.6), ("spell", t_spell, 4.0), ("reverse", t_reverse, 5.0),
         ("count_letter", t_countletter, 4.0), ("word_length", t_wordlen, 2.5), ("letter_position", t_letterpos, 3.0),
         ("case", t_case, 4.0), ("copy", t_copy, 4.5), ("string_ops", t_strops, 4.0), ("recall", t_recall, 5.0),
         ("recall_long", t_recall_long, 0.7), ("json_extract", t_json, 2.4), ("to_json", t_tojson, 1.0), ("date", t_date, 2.5),
         ("time", t_time, 1.2), ("units", t_units, 1.5), ("roman", t_roman, 1.8), ("number_words", t_numwords, 1.2),
         ("sequence", t_seq, 2.4), ("capital", t_capital, 1.3), ("fact", t_fact, 2.6), ("define", t_define, 2.8),
         ("opposite", t_opposite, 1.3), ("plural", t_plural, 0.7), ("element", t_element, 0.7), ("chat", t_chat, 2.0),
         ("code", t_code, 0.6), ("story", t_story, 1.0), ("continue", t_continue, 1.2), ("passage", t_passage, 5.0),
         ("tool", t_tool, 5.0), ("memory", t_memory, 2.2), ("style", t_style, 2.0), ("which", t_which, 2.0),
         ("open", t_open, 1.5), ("summary", t_summary, 0.7)]
EVAL = [n for n, _, _ in TASKS if n not in ("tool", "story", "continue", "chat")] + ["tool_call", "tool_result", "chat"]
FUNCTIONS = dict({name: f for name, f, _ in TASKS}, tool_call=t_toolcall, tool_result=t_toolresult)
NAMES = [name for name, _, _ in TASKS]
WEIGHTS = [weight for _, _, weight in TASKS]

SYS = [
    "You are a helpful assistant.", "You are a helpful assistant. Answer briefly.", "Answer the question.",
    "You are a small and friendly assistant.", "Be brief.", "You are a careful assistant.", "Give short and correct answers.",
    "You answer questions.", "You are an AI assistant that helps people.", "Be helpful and honest."
]


def sample(r, ev=False, task=None):
    """One conversation: dict(task, tools, messages, thinking)."""
    name = task or r.choices(NAMES, WEIGHTS)[0]
    x = FUNCTIONS[name](r, ev)
    if isinstance(x, dict):
        c = dict(tools=x.get("tools"), messages=x["messages"])
        if c["messages"][0]["role"] != "system" and r.random() < 0.3:
            c["messages"] = [dict(role="system", content=r.choice(SYS))] + c["messages"]
    else:
        u, th, a = x
        m = []
        p = r.random()
        if p < 0.3:
            m.append(dict(role="system", content=r.choice(SYS)))
        if r.random() < 0.12 and not ev:
            for _ in range(r.choice((1, 1, 2, 3))):
                u2, _, a2 = r.choice(SHORT)(r, ev)
                m += [dict(role="user", content=u2), dict(role="assistant", content=a2)]
        m += [dict(role="user", content=u), dict(role="assistant", content=a, reasoning_content=th)]
        c = dict(tools=None, messages=m)
    c["task"] = name
    c["thinking"] = r.random() < 0.5
    return c
