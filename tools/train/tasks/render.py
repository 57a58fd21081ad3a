"""Conversations as text, as models/demo/chat_template.jinja renders them (check.py compares the two)."""
import json

TOOL_HEAD = "# Tools\n\nThese functions are available to you:\n\n<tools>"
TOOL_TAIL = (
    "\n</tools>\n\nTo call a function, answer in this form and write nothing after it:\n\n<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>\n\n"
    "Give every required parameter. An explanation may come before the call, never after it. If no function fits, answer as usual."
)
TOOL_ALT = [
    (
        "# Tools\n\nYou can use these functions:\n\n<tools>",
        "\n</tools>\n\nWrite a call like this:\n\n<tool_call>\n<function=function_name>\n<parameter=parameter_name>\nvalue\n</parameter>\n</function>\n</tool_call>"
    ),
    (
        "# Tools\n\nFunctions:\n\n<tools>",
        "\n</tools>\n\nCall format:\n\n<tool_call>\n<function=some_function>\n<parameter=some_parameter>\nits value\n</parameter>\n<parameter=another_parameter>\nanother value,\nperhaps on\nseveral lines\n</parameter>\n</function>\n</tool_call>\n\n<NOTE>\n- Keep the function block inside the tool_call tags\n- Required parameters must be there\n- Reasoning may stand before a call, not after it\n- Without a fitting function, answer from what you know\n</NOTE>"
    ),
    (
        "# Tools\n\nThe following functions may be called:\n\n<tools>",
        "\n</tools>\n\nIf a function helps, reply only with\n\n<tool_call>\n<function=f>\n<parameter=p>\nv\n</parameter>\n</function>\n</tool_call>\n\nand nothing else."
    )
]


def argtext(v):
    return v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)


def calls_text(calls, content):
    out = ""
    for i, c in enumerate(calls):
        f = c["function"]
        out += ("\n\n" if content.strip() else "") if i == 0 else "\n"
        out += f"<tool_call>\n<function={f['name']}>\n"
        for k, v in f["arguments"].items():
            out += f"<parameter={k}>\n{argtext(v)}\n</parameter>\n"
        out += "</function>\n</tool_call>"
    return out


def segments(c, r=None):
    """-> list of (text, kind): kind 0 context, 1 target (assistant after the last query), 2 older assistant text."""
    ms, tools, th = c["messages"], c.get("tools"), c["thinking"]
    seg = []
    ctx = ""
    if tools:
        h, t = (TOOL_HEAD, TOOL_TAIL) if r is None or r.random() < 0.7 else r.choice(TOOL_ALT)
        ctx += "<|im_start|>system\n" + h + "".join("\n" + json.dumps(x, ensure_ascii=False) for x in tools) + t
        if ms[0]["role"] == "system" and ms[0]["content"].strip():
            ctx += "\n\n" + ms[0]["content"].strip()
        ctx += "<|im_end|>\n"
    elif ms[0]["role"] == "system":
        ctx += "<|im_start|>system\n" + ms[0]["content"].strip() + "<|im_end|>\n"
    last = max(i for i, m in enumerate(ms) if m["role"] == "user")
    n = len(ms)
    for i, m in enumerate(ms):
        ro = m["role"]
        if ro == "user":
            ctx += "<|im_start|>user\n" + m["content"].strip() + "<|im_end|>\n"
        elif ro == "tool":
            if ms[i - 1]["role"] != "tool":
                ctx += "<|im_start|>user"
            ctx += "\n<tool_response>\n" + m["content"].strip() + "\n</tool_response>"
            if i + 1 == n or ms[i + 1]["role"] != "tool":
                ctx += "<|im_end|>\n"
        elif ro == "assistant":
            content = m["content"].strip()
            calls = m.get("tool_calls")
            body = content + (calls_text(calls, content) if calls else "")
            if i > last:
                if th:
                    ctx += "<|im_start|>assistant\n<think>\n"
                    body = m.get("reasoning_content", "").strip() + "\n</think>\n\n" + body
                else:
                    ctx += "<|im_start|>assistant\n<think>\n\n</think>\n\n"
                seg.append((ctx, 0))
                seg.append((body + "<|im_end|>", 1))
            else:
                seg.append((ctx + "<|im_start|>assistant\n", 0))
                seg.append((body + "<|im_end|>", 2))
            ctx = "\n"
    if ctx:
        seg.append((ctx, 0))
    return seg


def text_of(c):
    """The whole conversation as text."""
    return "".join(text for text, _ in segments(c))


def prompt_and_reply(c):
    """For an evaluation: the text up to the last reply (its thought included), and the reply that is expected after the thought."""
    m = c["messages"][-1]
    expected = m["content"].strip() + (calls_text(m["tool_calls"], m["content"]) if m.get("tool_calls") else "")
    thought = m.get("reasoning_content", "").strip() + "\n</think>\n\n" if c["thinking"] else ""
    tail = thought + expected + "<|im_end|>\n"
    text = text_of(c)
    assert text.endswith(tail)
    return text[:-len(tail)], expected
