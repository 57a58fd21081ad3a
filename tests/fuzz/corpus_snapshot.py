#!/usr/bin/env python3
"""Write tests/fuzz/corpus/snapshot: images of a tiny pool, whole and damaged.

Written from the definitions in src/base/checksum.h and src/state/snapshot.h, and apart from their code: tests/unit/
test_snapshot.c loads `valid` and compares what it finds with the formulas below."""
import pathlib
import struct

P = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def step(x, w):
    x = (x ^ w) * P & MASK
    return (x << 29 | x >> 35) & MASK


def checksum(data):
    filled = data + bytes(-len(data) % 8)
    words = struct.unpack("<%dQ" % (len(filled) // 8), filled)
    lane = [(j + 1) * P & MASK for j in range(8)]
    for i, w in enumerate(words):
        lane[i % 8] = step(lane[i % 8], w)
    total = len(data) * P & MASK
    for j in range(8):
        total = step(total, lane[j])
    return total ^ total >> 32


def header(n_taps=2, kind=1, offset=5, n_payload=None, payload=b"", magic=b"gdnstate", version=1):
    eps_bits = struct.unpack("<i", struct.pack("<f", 1e-6))[0]
    fields = [1, 1, 1, 32, 32, n_taps, 0, kind, 0, 0, eps_bits]
    n_payload = len(payload) if n_payload is None else n_payload
    head = magic + struct.pack("<II11iIqQQ", version, 128, *fields, 0, offset, n_payload, checksum(payload)) + bytes(32)
    return head + struct.pack("<Q", checksum(head))


def payload(n_taps=2, kind=1):
    """The tail: 1, 2, 3, ... as small bf16 or f32 values; the state: element i is i/8 - 1."""
    n_tail = (n_taps - 1) * 96
    values = [struct.pack("<f", i % 100 + 1) for i in range(n_tail)]
    tail = b"".join(v[2:] if kind == 1 else v for v in values)
    return tail + struct.pack("<1024f", *(i / 8 - 1 for i in range(1024)))


def flipped(image, byte, bit=0):
    return image[:byte] + bytes([image[byte] ^ 1 << bit]) + image[byte + 1:]


body = payload()
valid = header(payload=body) + body
images = {
    "valid": valid,
    "valid_nan": header(payload=b"\xff" * len(body)) + b"\xff" * len(body),
    "empty": b"",
    "header_only": valid[:128],
    "cut_in_header": valid[:100],
    "cut_in_payload": valid[:-1],
    "one_byte_more": valid + b"\0",
    "flipped_magic": flipped(valid, 3),
    "flipped_shape": flipped(valid, 20, 1),
    "flipped_offset": flipped(valid, 64),
    "flipped_tail": flipped(valid, 200, 7),
    "flipped_state": flipped(valid, 4000, 4),
    "other_taps": header(n_taps=3, payload=payload(3)) + payload(3),
    "other_type": header(kind=0, payload=payload(kind=0)) + payload(kind=0),
    "other_version": header(version=2, payload=body) + body,
    "negative_offset": header(offset=-1, payload=body) + body,
    "huge_payload": header(n_payload=MASK - 127, payload=body) + body,
    "contradiction": header(payload=body[:-4]) + body[:-4],
    "foreign": b"GGUF\3\0\0\0" + bytes(200),
}
folder = pathlib.Path(__file__).parent / "corpus" / "snapshot"
folder.mkdir(parents=True, exist_ok=True)
for name, image in images.items():
    (folder / name).write_bytes(image)
