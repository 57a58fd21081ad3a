#!/usr/bin/env python3
"""Random weights in the shape of a published Qwen3.5 model, as a Hugging Face checkpoint, as GGUF, or as both with the same numbers.

    python3 make_checkpoint.py --shape 0.8B --hf FOLDER --gguf FILE      needs numpy

The folder gets config.json and model.safetensors but no tokenizer, the GGUF no vocabulary: both are for token ids.
The weights have magnitudes as in a trained model, so that logits of two engines can be compared.
"""
import argparse
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

KEY_HEADS, DIM, TAPS, HEAD_DIM, ROPE_DIMS, VOCAB, POSITIONS, INTERVAL = 16, 128, 4, 256, 64, 248320, 262144, 4
SHAPES = {  # hidden size, layers, heads, kv heads, value heads, FFN width; all with tied embeddings
    "0.8B": (1024, 24, 8, 2, 16, 3584),
    "2B": (2048, 24, 8, 2, 16, 6144),
    "4B": (2560, 32, 16, 4, 32, 9216),
}
PIECE = 1 << 24  # numbers made at a time


class Tensor:
    """One tensor: its name and type in both files, and how to make it. `draw` maps (generator, n) to float32 numbers."""

    def __init__(self, hf, gguf, shape, draw, hf_type="BF16", gguf_type="F32", convert=None, order=None):
        self.hf, self.gguf, self.shape, self.draw = hf, gguf, shape, draw
        self.hf_type, self.gguf_type, self.convert = hf_type, gguf_type, convert
        self.order = order  # (axis, indices): what GGUF puts in another order

    def count(self):
        return int(np.prod(self.shape))


def normal(scale, mean=0.0):
    return lambda rng, n: rng.standard_normal(n, dtype=np.float32) * np.float32(scale) + np.float32(mean)


def log_of_1_to_16(rng, n):
    return np.log(rng.uniform(1, 16, n)).astype(np.float32)


def inverse_softplus_of_steps(rng, n):
    steps = np.exp(rng.uniform(np.log(0.001), np.log(0.1), n))
    return np.log(np.expm1(steps)).astype(np.float32)


def plus_one(w):
    return w + np.float32(1)


def minus_exp(w):
    return (-np.exp(w.astype(np.float64))).astype(np.float32)


def tiled(value_heads, width, first=0):
    """Rows of `value_heads` heads, kept by key head in the checkpoint, in GGUF's order: head j*K + k is head k*r + j."""
    heads = np.arange(value_heads).reshape(KEY_HEADS, -1).T.ravel()
    rows = (heads[:, None] * width + np.arange(width)).ravel() + first
    return np.concatenate([np.arange(first), rows])


def linear_tensors(hf, blk, h, value_heads):
    kd, vd = KEY_HEADS * DIM, value_heads * DIM
    in_scale, out_scale = h ** -0.5, vd ** -0.5
    order = None if value_heads == KEY_HEADS else tiled

    def rows(width, first=0, axis=0):
        return order and (axis, order(value_heads, width, first))

    def matrix(hf_name, gguf_name, shape, scale, order):
        return Tensor(f"{hf}linear_attn.{hf_name}.weight", f"{blk}{gguf_name}.weight", shape, normal(scale), "BF16", "BF16", None, order)

    return [
        matrix("in_proj_qkv", "attn_qkv", (2 * kd + vd, h), in_scale, rows(DIM, 2 * kd)),
        matrix("in_proj_z", "attn_gate", (vd, h), in_scale, rows(DIM)),
        matrix("in_proj_b", "ssm_beta", (value_heads, h), in_scale, rows(1)),
        matrix("in_proj_a", "ssm_alpha", (value_heads, h), in_scale, rows(1)),
        matrix("out_proj", "ssm_out", (h, vd), out_scale, rows(DIM, axis=1)),
        Tensor(hf + "linear_attn.conv1d.weight", blk + "ssm_conv1d.weight", (2 * kd + vd, 1, TAPS), normal(0.5), order=rows(DIM, 2 * kd)),
        Tensor(hf + "linear_attn.A_log", blk + "ssm_a", (value_heads,), log_of_1_to_16, "F32", "F32", minus_exp, rows(1)),
        Tensor(hf + "linear_attn.dt_bias", blk + "ssm_dt.bias", (value_heads,), inverse_softplus_of_steps, order=rows(1)),
        Tensor(hf + "linear_attn.norm.weight", blk + "ssm_norm.weight", (DIM,), normal(0.1, 1), "F32"),
    ]


def attention_tensors(hf, blk, h, heads, kv_heads):
    def matrix(name, gguf_name, shape):
        return Tensor(f"{hf}self_attn.{name}_proj.weight", f"{blk}{gguf_name}.weight", shape, normal(shape[1] ** -0.5), "BF16", "BF16")

    def norm(name):
        return Tensor(f"{hf}self_attn.{name}_norm.weight", f"{blk}attn_{name}_norm.weight", (HEAD_DIM,), normal(0.1), convert=plus_one)

    return [
        matrix("q", "attn_q", (2 * heads * HEAD_DIM, h)),
        matrix("k", "attn_k", (kv_heads * HEAD_DIM, h)),
        matrix("v", "attn_v", (kv_heads * HEAD_DIM, h)),
        matrix("o", "attn_output", (h, heads * HEAD_DIM)),
        norm("q"),
        norm("k"),
    ]


def tensors_of(shape):
    h, layers, heads, kv_heads, value_heads, ffn = shape

    def norm(hf, gguf):
        return Tensor(hf, gguf, (h,), normal(0.1), convert=plus_one)

    out = [
        Tensor("model.embed_tokens.weight", "token_embd.weight", (VOCAB, h), normal(h ** -0.5), "BF16", "BF16"),
        norm("model.norm.weight", "output_norm.weight"),
    ]
    for layer in range(layers):
        hf, blk = f"model.layers.{layer}.", f"blk.{layer}."
        out.append(norm(hf + "input_layernorm.weight", blk + "attn_norm.weight"))
        out.append(norm(hf + "post_attention_layernorm.weight", blk + "post_attention_norm.weight"))
        full = (layer + 1) % INTERVAL == 0
        out += attention_tensors(hf, blk, h, heads, kv_heads) if full else linear_tensors(hf, blk, h, value_heads)
        for part, width in (("gate", (ffn, h)), ("up", (ffn, h)), ("down", (h, ffn))):
            out.append(Tensor(f"{hf}mlp.{part}_proj.weight", f"{blk}ffn_{part}.weight", width, normal(width[1] ** -0.5), "BF16", "BF16"))
    return out


def to_bf16(w):
    """The upper halves of float32, rounded to nearest even."""
    bits = w.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)


# ---- Hugging Face ----------------------------------------------------------------------------------------------------

SIZES = {"BF16": 2, "F32": 4}


def config_of(shape):
    h, layers, heads, kv_heads, value_heads, ffn = shape
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "vocab_size": VOCAB,
        "hidden_size": h,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attn_output_gate": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": ROPE_DIMS / HEAD_DIM},
        "full_attention_interval": INTERVAL,
        "linear_conv_kernel_dim": TAPS,
        "linear_key_head_dim": DIM,
        "linear_value_head_dim": DIM,
        "linear_num_key_heads": KEY_HEADS,
        "linear_num_value_heads": value_heads,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 0,
        "eos_token_id": 248044,
        "dtype": "bfloat16",
    }


def open_hf(folder, shape, tensors):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(shape), indent=2) + "\n")
    header, at = {}, 0
    for t in tensors:
        end = at + t.count() * SIZES[t.hf_type]
        header[t.hf] = {"dtype": t.hf_type, "shape": t.shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file = open(folder / "model.safetensors", "wb")
    file.write(struct.pack("<Q", len(text)) + text)
    return file


# ---- GGUF ------------------------------------------------------------------------------------------------------------

ALIGNMENT = 32
TYPES = {"F32": 0, "BF16": 30}


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, list):
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return struct.pack("<II", 4, value)


def gguf_metadata(name, shape):
    h, layers, heads, kv_heads, value_heads, ffn = shape
    arch = {
        "vocab_size": VOCAB,
        "block_count": layers,
        "context_length": POSITIONS,
        "embedding_length": h,
        "feed_forward_length": ffn,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": ROPE_DIMS,
        "rope.dimension_sections": [11, 11, 10, 0],
        "full_attention_interval": INTERVAL,
        "ssm.conv_kernel": TAPS,
        "ssm.state_size": DIM,
        "ssm.group_count": KEY_HEADS,
        "ssm.time_step_rank": value_heads,
        "ssm.inner_size": value_heads * DIM,
    }
    general = {
        "general.architecture": "qwen35",
        "general.name": f"random {name}",
        "general.file_type": 32,  # mostly BF16
        "general.alignment": ALIGNMENT,
        "tokenizer.ggml.model": "no_vocab",
    }
    return general | {f"qwen35.{key}": value for key, value in arch.items()}


def gguf_dims(t):
    return [n for n in reversed(t.shape) if n != 1]  # fastest first; the middle dimension of conv1d goes


def open_gguf(path, name, shape, tensors):
    meta = gguf_metadata(name, shape)
    head = b"GGUF" + struct.pack("<Iqq", 3, len(tensors), len(meta))
    for key, value in meta.items():
        head += gguf_string(key) + gguf_value(value)
    at = 0
    for t in tensors:
        dims = gguf_dims(t)
        head += gguf_string(t.gguf) + struct.pack(f"<I{len(dims)}qIQ", len(dims), *dims, TYPES[t.gguf_type], at)
        at += t.count() * SIZES[t.gguf_type]
        at += -at % ALIGNMENT
    file = open(path, "wb")
    file.write(head + b"\0" * (-len(head) % ALIGNMENT))
    return file


# ---- both ------------------------------------------------------------------------------------------------------------


def make(t, rng, n):
    """n numbers as the checkpoint stores them, and as GGUF does."""
    w = t.draw(rng, n)
    stored = w if t.hf_type == "F32" else to_bf16(w)
    if t.gguf_type == "BF16":
        return stored, stored
    w = w if t.hf_type == "F32" else from_bf16(stored)
    return stored, t.convert(w) if t.convert else w


def write(t, seed, hf, gguf):
    rng = np.random.default_rng([seed, zlib.crc32(t.hf.encode())])
    # What is reordered is made at once.
    piece = t.count() if t.order else PIECE
    for first in range(0, t.count(), piece):
        stored, other = make(t, rng, min(piece, t.count() - first))
        if t.order:
            axis, indices = t.order
            other = np.ascontiguousarray(np.take(other.reshape(t.shape), indices, axis))
        if hf:
            hf.write(stored.data)
        if gguf:
            gguf.write(other.data)
    if gguf:
        gguf.write(b"\0" * (-(t.count() * SIZES[t.gguf_type]) % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="0.8B")
    parser.add_argument("--hf", metavar="FOLDER", help="write a Hugging Face checkpoint")
    parser.add_argument("--gguf", metavar="FILE", help="write a GGUF file")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not args.hf and not args.gguf:
        parser.error("nothing to write: give --hf FOLDER, --gguf FILE or both")
    if sys.byteorder != "little":
        parser.error("this machine is big-endian, the files are not: run it elsewhere")
    shape = SHAPES[args.shape]
    tensors = tensors_of(shape)
    hf = open_hf(args.hf, shape, tensors) if args.hf else None
    gguf = open_gguf(args.gguf, args.shape, shape, tensors) if args.gguf else None
    for t in tensors:
        write(t, args.seed, hf, gguf)
    for file in filter(None, (hf, gguf)):
        file.close()
    n_bytes = sum(t.count() * SIZES[t.gguf_type] for t in tensors)
    print(f"{args.shape}: {len(tensors)} tensors, {sum(t.count() for t in tensors)} parameters, {n_bytes / 1e6:.1f} MB of tensors in GGUF")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"make_checkpoint.py: {error}")
