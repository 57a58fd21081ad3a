#!/usr/bin/env python3
"""Write tests/fuzz/corpus/safetensors and tests/fuzz/corpus/config: small files, whole and damaged.

The model of fuzz_safetensors.c (two layers: linear and dense, full and MoE) in both layouts of its experts, with an MTP layer."""
import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZE = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "F4": 0.5}


def image(tensors, spaces=0, metadata=None, offsets=None, more=b""):
    head, at = {}, 0
    if metadata is not None:
        head["__metadata__"] = metadata
    for name, kind, shape in tensors:
        n = SIZE[kind]
        for d in shape:
            n *= d
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + int(n)]}
        at += int(n)
    if offsets:
        offsets(head)
    text = json.dumps(head, separators=(",", ":")).encode() + b" " * spaces
    data = bytes(i * 7 % 61 for i in range(at))
    return struct.pack("<Q", len(text)) + text + data + more


def full(prefix):
    p = prefix + "self_attn."
    return [(p + "q_proj.weight", [64, 2]), (p + "k_proj.weight", [32, 2]), (p + "v_proj.weight", [32, 2]),
            (p + "o_proj.weight", [2, 32]), (p + "q_norm.weight", [32]), (p + "k_norm.weight", [32])]


def linear(prefix, next_rows):
    p = prefix + "linear_attn."
    fused = [(p + "in_proj_qkvz.weight", [64, 2]), (p + "in_proj_ba.weight", [2, 2])]
    four = [(p + "in_proj_qkv.weight", [48, 2]), (p + "in_proj_z.weight", [16, 2]), (p + "in_proj_b.weight", [1, 2]),
            (p + "in_proj_a.weight", [1, 2])]
    return (fused if next_rows else four) + [
        (p + "conv1d.weight", [48, 1, 2]), (p + "A_log", [1]), (p + "dt_bias", [1]), (p + "norm.weight", [16]),
        (p + "out_proj.weight", [2, 16])]


def mlp(prefix, width):
    return [(prefix + "gate_proj.weight", [width, 2]), (prefix + "up_proj.weight", [width, 2]),
            (prefix + "down_proj.weight", [2, width])]


def moe(prefix, packed):
    p = prefix + "mlp."
    experts = [(p + "experts.gate_up_proj", [2, 2, 2]), (p + "experts.down_proj", [2, 2, 1])] if packed else \
        mlp(p + "experts.0.", 1) + mlp(p + "experts.1.", 1)
    return [(p + "gate.weight", [2, 2])] + experts + mlp(p + "shared_expert.", 1) + [(p + "shared_expert_gate.weight", [1, 2])]


def norms(prefix):
    return [(prefix + "input_layernorm.weight", [2]), (prefix + "post_attention_layernorm.weight", [2])]


def model(prefix="model.", packed=False, next_rows=False, tied=True, mtp=False):
    a, b, m = prefix + "layers.0.", prefix + "layers.1.", "mtp.layers.0."
    all_ = [(prefix + "embed_tokens.weight", [4, 2]), (prefix + "norm.weight", [2])]
    all_ += norms(a) + linear(a, next_rows) + mlp(a + "mlp.", 3) + norms(b) + full(b) + moe(b, packed)
    if not tied:
        all_ += [("lm_head.weight", [4, 2])]
    if mtp:
        all_ += [("mtp.fc.weight", [2, 4]), ("mtp.norm.weight", [2]), ("mtp.pre_fc_norm_embedding.weight", [2]),
                 ("mtp.pre_fc_norm_hidden.weight", [2])] + norms(m) + full(m) + moe(m, packed)
    return [(n, "F32" if n.endswith("A_log") else "BF16", s) for n, s in all_]


def swap(head):
    names = list(head)
    head[names[0]]["data_offsets"], head[names[1]]["data_offsets"] = head[names[1]]["data_offsets"], head[names[0]]["data_offsets"]


def shift(head):
    head["b"]["data_offsets"] = [2, 6]


def safetensors():
    small = [("a", "BF16", [2]), ("b", "F32", [1])]
    whole = image(small, 3, {"format": "pt"})
    yield "small", whole
    yield "empty", b""
    yield "no_tensors", image([], 1, {})
    yield "data_without_tensors", image([], 0, {}, more=b"xy")
    yield "cut_in_length", whole[:5]
    yield "cut_in_header", whole[:40]
    yield "cut_in_data", whole[:-1]
    yield "one_byte_more", whole + b"x"
    yield "huge_length", b"\xff" * 8 + whole[8:]
    yield "swapped", image([("a", "BF16", [2]), ("b", "BF16", [3])], offsets=swap)
    yield "overlap", image(small, offsets=shift, more=b"")
    yield "twice", whole.replace(b'"b"', b'"a"')
    yield "unknown_type", whole.replace(b'"F32"', b'"Q32"')
    yield "negative", whole.replace(b"[2]", b"[-2]")
    yield "product", image([("a", "BF16", [0, 1 << 62, 1 << 62])])
    yield "nested", struct.pack("<Q", 80) + b'{"__metadata__":' + b"[" * 40 + b"]" * 23 + b"}"
    yield "other_types", image([("i", "I64", [1]), ("f", "F4", [2]), ("h", "F16", [2]), ("s", "F32", [])])
    yield "model", image(model())
    yield "model_packed", image(model("model.language_model.", packed=True, tied=False, mtp=True))
    yield "model_next", image(model("", next_rows=True, mtp=True))
    yield "model_wrong_shape", image([(n, k, s[::-1]) for n, k, s in model()])
    yield "model_quantised", image(model() + [("model.layers.0.mlp.up_proj.scales", "BF16", [1])])
    yield "model_vision", image(model() + [("model.visual.x", "BF16", [1]), ("y", "BF16", [1])])
    map_ = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    yield "index", json.dumps({"metadata": {"total_size": 8}, "weight_map": map_}).encode()
    yield "index_up", json.dumps({"weight_map": {"a": "../model-1.safetensors"}}).encode()
    yield "index_absolute", json.dumps({"weight_map": {"a": "/x.safetensors"}}).encode()
    yield "index_escapes", b'{"weight_map":{"\\u0061\\"":"m\\/x.safetensors","b":7}}'


def config():
    demo = json.loads((ROOT / "models/demo/config.json").read_text())
    moe_ = json.loads((ROOT / "tests/checkpoints/tiny-moe-fused/config.json").read_text())
    next_ = json.loads((ROOT / "tests/checkpoints/tiny-next/config.json").read_text())
    dump = lambda value: json.dumps(value, separators=(",", ":")).encode()
    yield "demo", dump(demo)
    yield "nested_moe", dump(moe_)
    yield "next", dump(next_)
    yield "interval", dump({k: v for k, v in demo.items() if k != "layer_types"})
    old = {k: v for k, v in demo.items() if k != "rope_parameters"}
    yield "old_rope", dump({**old, "rope_theta": 1e4, "partial_rotary_factor": 0.5, "rope_scaling": {"type": "yarn"}})
    yield "dense_layers", dump({**next_, "mlp_only_layers": [0], "decoder_sparse_step": 2})
    yield "absurd", dump({**demo, "num_hidden_layers": 10**12, "vocab_size": -1})
    yield "not_finite", dump({**demo, "rms_norm_eps": float("nan")})
    yield "other_model", dump({"model_type": "qwen4_exp", "text_config": {}})
    yield "quantised", dump({**demo, "quantization_config": {"quant_method": "fp8\x1b"}})
    yield "generation", dump({"do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0,
                              "repetition_penalty": 1.0, "eos_token_id": [1, 2]})
    yield "tokenizer", dump({"chat_template": [{"name": "default", "template": "{{ x }}"}], "eos_token": {"content": "<e>"},
                             "bos_token": None, "pad_token": "p", "unk_token": 3})
    yield "twice", b'{"model_type":"qwen3_5","model_type":"qwen3_5"}'
    yield "list", b"[]"
    yield "deep", b'{"a":' * 3000 + b"1" + b"}" * 3000


for folder, files in (("safetensors", safetensors()), ("config", config())):
    path = pathlib.Path(__file__).resolve().parent / "corpus" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files:
        (path / name).write_bytes(data)
