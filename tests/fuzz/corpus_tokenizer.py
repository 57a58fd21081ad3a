#!/usr/bin/env python3
"""Write tests/fuzz/corpus/tokenizer: small tokenizer.json files, whole and damaged, each with a text after a NUL."""
import json
import pathlib

visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
hidden = [b for b in range(256) if b not in visible]
written = {b: chr(b) for b in visible} | {b: chr(256 + i) for i, b in enumerate(hidden)}

HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
QWEN2 = HEAD + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = HEAD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
MERGES = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("a", "a"), ("aa", "aa"), ("aaa", "a"), ("Ã", "©"), ("<", "t")]


def added(id, content, special, **rules):
    plain = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    return dict(id=id, content=content, special=special, **{**plain, **rules})


def file(regex=QWEN35, form=list, **changes):
    vocab = {written[b]: b for b in range(256)} | {m: 256 + i for i, m in enumerate(["he", "Ġt", "Ġthe", "aa", "aaaa", "aaa", "Ã©", "<t"])}
    split = dict(type="Split", pattern=dict(Regex=regex), behavior="Isolated", invert=False)
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    whole = dict(
        version="1.0", truncation=None, padding=None,
        added_tokens=[added(264, "<|im_end|>", True), added(265, "<think>", False), added(266, "<think>é", False)],
        normalizer=dict(type="NFC"), pre_tokenizer=dict(type="Sequence", pretokenizers=[split, level]),
        post_processor=None, decoder=level,
        model=dict(type="BPE", dropout=None, vocab=vocab, merges=[form(m) for m in MERGES]))
    return {**whole, **changes}


def text_of(value, ascii=False):
    return json.dumps(value, ensure_ascii=ascii, separators=(",", ":")).encode()


TEXT = "he the<|im_end|> <think>éaaaaaaa's it'LL\n\n 12 e\u0301\u0323 ".encode() + b"\xe2\x82 \xff\xed\xa0\x80"
valid = text_of(file())
files = {
    "valid": valid + b"\0" + TEXT,
    "valid_joined": text_of(file(form=" ".join)) + b"\0" + TEXT,
    "valid_escaped": text_of(file(), ascii=True) + b"\0" + "가ᄀ\u1161\u11a8 क\u093c \u0627\u064b 👩‍💻".encode(),
    "valid_qwen2": text_of(file(regex=QWEN2)) + b"\0" + "กิน ก".encode() + TEXT,
    "valid_not_normalised": text_of(file(normalizer=None)) + b"\0" + TEXT,
    "valid_long": valid + b"\0" + b"a" * 200 + b"!" * 100 + b" " * 100 + "\u0301\u0323".encode() * 50,
    "empty": b"",
    "empty_object": b"{}",
    "only_model": text_of({"model": file()["model"]}),
    "cut": valid[: len(valid) // 2],
    "cut_in_merges": valid[:-20],
    "deep": b'{"padding":' + b"[" * 100 + b"]" * 100 + b"}",
    "unigram": text_of(file(model=dict(type="Unigram", vocab=[["a", 0]]))),
    "rstrip": text_of(file(added_tokens=[added(264, "x", True, rstrip=True)])),
    "wrong_id": text_of(file(added_tokens=[added(270, "x", True)])),
    "negative_id": text_of(file(added_tokens=[added(-1, "x", True)])),
    "huge_id": valid.replace(b'"he":256', b'"he":2097151'),
    "twice": valid.replace(b'"he":256', b'"a":256'),
    "no_byte": valid.replace(b'"b":98,', b""),
    "bad_merge": valid.replace(b'["h","e"]', b'["h","h"]'),
    "surrogate": valid.replace(b'"he":256', b'"\\ud83d":256'),
}
folder = pathlib.Path(__file__).resolve().parent / "corpus/tokenizer"
folder.mkdir(parents=True, exist_ok=True)
for name, data in files.items():
    (folder / name).write_bytes(data)
