#!/usr/bin/env python3
"""Write tests/golden/pieces.json: where the Hugging Face tokenizers library ends the pieces of some strings, in bytes, with the
Qwen2 pattern and with the Qwen3.5 pattern.  Code points are of Unicode 14 at most, so that any utf8proc knows them."""
import json
import pathlib
import sys
import unicodedata

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "diff"))
from tokenizer import PATTERNS, SCALARS, Strings  # noqa: E402
from tokenizers import Regex, pre_tokenizers  # noqa: E402

BY_HAND = [
    "it's it'S it'\u017f '\u017fx' 're 'RE 'rE 'r 'l 'll 'LLx 'v 've 'm 'M 't 'd 'D' '' ''s ' s '\u212a",
    "a'\u017fx a'sx a'Tx a'rex a'VEx a'mx a'LLx a'dx a'rx a'lx a'vx a'\u017f",
    "a\nb a\n b\r\nc \n\nd\n\n  e  \n  f   g \u00a0h \u3000\u3000i\u2028j\u0085k\u180el\u200bm\ufeffn",
    "!\n!\r\n\r!! \n !\n\n a!\n\n", " !! ?a ?1 ? !", "1234 ١٢ ½ Ⅷ ² a1b2 १२", "\n\n", " ", "  ", " \n", "\n ", "\t\t\tx", "x   ", "x  \n  ",
    "กิน ก่อน \u0e31\u0e31 \u0e31a a\u0301 \u0301 !\u0301 \u03011\u0301 \n\u0301\u0301", "e\u0301\u0301'\u0301s 's\u0301",
    "हिन्दी में \u0967\u0968", "👩\u200d💻👍🏽 ❤\ufe0f 1\ufe0f\u20e3", "\x00\x01a\x7f\x80\x9f\xad", "a_b-c.d(e)[f]{g} $1.50 <|im_end|></think>", "def f(x):\n    return x  # ok\n",
]


def pieces(regex, text):
    ends, at = [], 0
    for _, (first, last) in pre_tokenizers.Split(Regex(regex), "isolated").pre_tokenize_str(text):
        at += len(text[first:last].encode())
        ends.append(at)
    return ends


known = [c for c in SCALARS if unicodedata.category(chr(c)) != "Cn" and not 0xE000 <= c < 0xF900 and c < 0xE0200]
strings = Strings(2024, known, ["<|im_start|>", "<|im_end|>", "<think>", "</think>"])
texts = BY_HAND + [strings.text() for _ in range(180)]
lines = [json.dumps({"text": t, "qwen2": pieces(PATTERNS[0], t), "qwen35": pieces(PATTERNS[1], t)}, separators=(",", ":")) for t in texts]
(here / "pieces.json").write_text("[" + ",\n".join(lines) + "]\n")
