#!/usr/bin/env python3
"""`gdn chat` and `gdn run` at a terminal: chat_terminal.py GDN FOLDER.  The folder is for what they write."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from terminal import Terminal  # noqa: E402

gdn, folder = sys.argv[1], pathlib.Path(sys.argv[2])
state = folder / "state"
environment = dict(os.environ, TERM="xterm", XDG_STATE_HOME=str(state))
PROMPT = "\033[?2004h> "
ENDLESS = ["--bias", "4081=-inf", "--bias", "4079=-inf", "--cpu", "ref", "--threads", "1"]


def chat(*options):
    terminal = Terminal([gdn, "chat", "--no-think", "--temperature", "0", *options], environment)
    return terminal, terminal.until(PROMPT)


def saved(terminal, name):
    terminal.send(f"/save {folder / name}\r")
    terminal.until("saved in")
    terminal.until(PROMPT)
    return json.loads((folder / name).read_text())["messages"]


def roles(messages):
    return [message["role"] for message in messages]


def test_a_line_is_answered():
    terminal, greeting = chat()
    assert "4096 tokens of context; /help lists the commands, Ctrl-D leaves\r\n" in greeting
    terminal.send("What is 2+3?\r")
    text = terminal.until(PROMPT)
    assert "\r\n2 + 3 = 5\r\n\033[2mprompt " in "\r\n" + text.split("\033[?2004l")[1], repr(text)
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_a_paste_is_sent_by_return_alone():
    terminal, _ = chat()
    terminal.send("\033[200~What is\r4+4?\tNow\r\x07\033[31m.\033[201~")
    terminal.until("[31m.")  # ESC is left out, and so the rest is text
    assert not terminal.read(0.3), "the paste was sent"
    terminal.send("\r")
    terminal.until(PROMPT)
    assert saved(terminal, "paste.json")[0]["content"] == "What is\n4+4?\tNow\n[31m."
    terminal.send("/exit\r")
    assert terminal.end()[1] == 0


def test_quotes_hold_lines():
    terminal, _ = chat()
    terminal.send('"""What is\r')
    terminal.until("\033[?2004h. ")
    terminal.send('4+4?"""\r')
    terminal.until(PROMPT)
    assert saved(terminal, "quotes.json")[0]["content"] == "What is\n4+4?"
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_history_is_kept():
    terminal, _ = chat()
    terminal.send("What is 1+1?\r")
    terminal.until(PROMPT)
    terminal.send("\x04")
    assert terminal.end()[1] == 0
    assert (state / "gdn" / "history").stat().st_mode & 0o777 == 0o600
    terminal, _ = chat()
    terminal.send("\033[A\033[D\033[D2\r")  # the last line, and a digit before its last but one character
    terminal.until(PROMPT)
    messages = saved(terminal, "history.json")
    assert messages[0]["content"] == "What is 1+21?", messages
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_control_c_at_the_prompt():
    terminal, _ = chat()
    terminal.send("\x03")
    assert terminal.until(PROMPT).endswith("Ctrl-D or /exit leaves\r\n" + PROMPT)
    terminal.send("half a message\x03")
    terminal.until("Ctrl-D or /exit leaves\r\n" + PROMPT)
    terminal.send("What is 2+3?\r")
    terminal.until("2 + 3 = 5")
    terminal.until(PROMPT)
    assert [message["content"] for message in saved(terminal, "prompt.json")] == ["What is 2+3?", "2 + 3 = 5"]
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_control_c_stops_the_answer():
    terminal, _ = chat(*ENDLESS)
    for question in ("Name a colour.", "Name another."):  # the turn after a partial answer works
        terminal.send(question + "\r")
        terminal.until("\033[?2004l")
        while len(terminal.text) < 20:
            assert terminal.read(60), "no answer"
        terminal.send("\x03")
        assert "interrupted" in terminal.until("stopped; what the model said so far stays in the conversation\r\n")
        terminal.until(PROMPT)
    messages = saved(terminal, "stopped.json")
    assert roles(messages) == ["user", "assistant"] * 2 and all(message["content"] for message in messages), messages
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_a_full_context_loses_nothing():
    terminal, _ = chat("--context", "40")
    terminal.send("What is 2+3?\r")
    terminal.until("2 + 3 = 5")
    terminal.until(PROMPT)
    terminal.send("What is 4+4?\r")
    terminal.until("the context has room for 40; it is as it was before: write less, /save it and begin another one")
    terminal.until(PROMPT)
    assert roles(saved(terminal, "full.json")) == ["user", "assistant"]
    terminal.send("/reset\r")
    terminal.until(PROMPT)
    terminal.send("What is 4+4?\r")
    terminal.until("4 + 4 = 8")
    terminal.until(PROMPT)
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_an_answer_that_fills_the_context_stays():
    terminal, _ = chat("--context", "40", *ENDLESS)
    terminal.send("What is 2+3?\r")
    terminal.until("the context of 40 tokens is full, and the answer is cut off; /save FILE keeps the conversation")
    terminal.until(PROMPT)
    messages = saved(terminal, "filled.json")
    assert roles(messages) == ["user", "assistant"] and messages[1]["content"], messages
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_what_is_not_utf8_is_refused():
    terminal, _ = chat()
    terminal.send(b"caf\xe9\r")
    terminal.until("gdn chat: the message is not UTF-8; it was not sent\r\n")
    terminal.until(PROMPT)
    terminal.send("\x04")
    assert terminal.end()[1] == 0


def test_thoughts_are_dim():
    terminal = Terminal([gdn, "run", "--chat", "--think", "--temperature", "0", "-p", "What is 2+3?"], environment)
    text, status = terminal.end()
    thoughts = text.split("\r\n")[0]
    assert status == 0 and thoughts.startswith("\033[2m") and thoughts.endswith("\033[0m"), text
    assert thoughts.replace("\033[2m", "").replace("\033[0m", "") == "2 + 3 = 5"
    assert text.split("\r\n")[1] == "2 + 3 = 5"


def test_control_characters_do_not_reach_the_terminal():
    """Token 215 is ESC; 126 and 249 are the bytes of a C1 control character, CSI, and 198 a newline."""
    for bias, written in ((["215=1000"], ""), (["126=1000"], "\ufffd\ufffd\ufffd"), (["198=1000"], "\r\n" * 3)):
        command = [gdn, "run", "-p", "a", "-n", "3", "--temperature", "0", "--quiet"]
        terminal = Terminal([*command, *(x for token in bias for x in ("--bias", token))], environment)
        assert terminal.end() == (written + "\r\n", 0)


def test_think_is_a_command_only_where_the_template_knows_it():
    terminal, _ = chat()
    terminal.send("/think on\r")
    terminal.until("thinking is on\r\n")
    terminal.until(PROMPT)
    terminal.send("What is 2+3?\r")
    terminal.until(PROMPT)
    messages = saved(terminal, "think.json")
    assert messages[1]["reasoning_content"] == "2 + 3 = 5", messages
    terminal.send("\x04")
    assert terminal.end()[1] == 0


passed = failed = 0
for name, test in list(globals().items()):
    if not name.startswith("test_"):
        continue
    try:
        test()
        passed += 1
    except (AssertionError, IndexError, KeyError, OSError) as error:
        failed += 1
        print(f"FAIL {name}: {error!r} (line {error.__traceback__.tb_lineno}, {error.__traceback__.tb_next and error.__traceback__.tb_next.tb_lineno})")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
