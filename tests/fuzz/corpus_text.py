#!/usr/bin/env python3
"""Write tests/fuzz/corpus/template and tests/fuzz/corpus/output: starting points for the fuzzers.

Templates: the demo model's with a conversation, some of the cases of tests/diff/template_cases.txt, and shapes that once were
or easily are trouble.  Generated texts: the first byte is 1 in thoughts + 2 with tools, the second the length of pieces."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
NEWLINE, RETURN, TAB, SPACE = "\u23ce", "\u240d", "\u2409", "\u2420"


def write(folder, name, data):
    path = HERE / "corpus" / folder
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(data)


def templates():
    demo = (TESTS.parent / "models" / "demo" / "chat_template.jinja").read_bytes()
    recorded = json.loads((TESTS / "golden" / "chat_template.json").read_text())
    for k in (3, 40, 86):
        write("template", "demo_%d" % k, json.dumps(recorded[k]).encode() + b"\0" + demo)
    lines = (TESTS / "diff" / "template_cases.txt").read_text().split("\n")
    start = lines.index("[templates]")
    for k, line in enumerate(lines):
        if not line or line[0] in "[" or line.startswith("# ") or k % 16:
            continue
        text = line if k > start else "{{ %s }}" % line
        for symbol, plain in ((NEWLINE, "\n"), (RETURN, "\r"), (TAB, "\t"), (SPACE, "\u00a0")):
            text = text.replace(symbol, plain)
        write("template", "case_%04d" % k, text.encode())
    write("template", "not_utf8", b"{{ '\xff' }}")
    write("template", "deep", b"{{ " + b"(" * 200 + b"1" + b")" * 200 + b" }}")
    write("template", "endless", b"{% for a in range(99999) %}{% for b in range(99999) %}{{ a * b }}{% endfor %}{% endfor %}")
    write("template", "growing", b"{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}")
    write("template", "recursive", b"{% macro m(a) %}{{ m([a]) }}{% endmacro %}{{ m(1) }}")


def outputs():
    call = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
    argument = "<parameter=%s>\n%s\n</parameter>\n"
    texts = {
        "plain": "hello", "thoughts": "why\n</think>\n\nhello", "opened": "<think>\nwhy\n</think>\n\nhello", "cut": "hel</thin",
        "call": call % "", "typed": call % "".join(argument % p for p in (("i", "5"), ("b", "null"), ("o", '{"k": 1}'), ("a", "[1]"), ("s", "x"))),
        "two_calls": "text\n\n" + call % "" + "\n" + call % (argument % ("i", "x")), "cut_call": "a\n\n" + call[:40], "no_call": "<tool_call>\nx</tool_call>",
        "value_with_tags": call % (argument % ("s", "</parameter></function></tool_call>")), "nested": call % (argument % ("s", call)),
        "json": '<tool_call>\n{"name": "f", "arguments": {"a": "</tool_call>"}}\n</tool_call>', "bad_json": "<tool_call>{x}</tool_call>",
        "number_and_nul": call % (argument % ("i", "5\0")), "twice_open": "<tool_call>" + call % "", "not_utf8": "",
    }
    for name, text in texts.items():
        for flags in (0, 1, 2, 3):
            write("output", "%s_%d" % (name, flags), bytes([flags, 2]) + (text.encode() if name != "not_utf8" else (call % "").encode() + b"\xff\xc3"))


templates()
outputs()
