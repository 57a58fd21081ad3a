#!/usr/bin/env python3
"""Write tests/checkpoints: tiny random checkpoints of a Qwen3.5 MoE and a Qwen3-Next model, with reference outputs.

tiny-moe-fused has the weights of tiny-moe in the layout of published checkpoints: fused experts under model.language_model.
"""
import argparse
import json
import os

import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig, Qwen3NextConfig, Qwen3NextForCausalLM

from goldens import greedy, states

SHAPE = dict(
    vocab_size=256, hidden_size=64, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1,
    head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False, layer_types=[
        "linear_attention", "linear_attention", "full_attention"
    ], linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
    linear_num_value_heads=4, initializer_range=0.08, pad_token_id=None, bos_token_id=None, eos_token_id=None, num_experts=4,
    num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16
)
ROPE = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)


@torch.no_grad()
def randomize(m):
    """Weights that matter: the defaults leave gates, norms and routers nearly constant."""
    for name, p in m.named_parameters():
        if name.endswith("A_log"):
            p.copy_(torch.log(torch.rand_like(p) * 4 + 0.05))
        elif p.ndim == 1:
            p.add_(torch.randn_like(p) * 0.1)
        elif "conv1d" in name:
            p.copy_(torch.randn_like(p) * 0.4)
        elif name.endswith("mlp.gate.weight") or "embed_tokens" in name:
            p.copy_(torch.randn_like(p) * 0.5)


@torch.no_grad()
def outputs(m):
    """Reference outputs in float32 of 75 random tokens and 32 greedy ones; the states are those after all of them."""
    ids = torch.randint(0, 256, (75, ), generator=torch.Generator().manual_seed(9))
    out = m(input_ids=ids[None], use_cache=True, output_hidden_states=True)
    hidden = torch.stack([h[0].float() for h in out.hidden_states])
    d = dict(ids=ids.to(torch.int32), logits=out.logits[0].float(), hidden_norms=hidden.norm(dim=-1), hidden_last=hidden[:, -1])
    d["greedy"], d["greedy_gap"], d["greedy_logits"] = greedy(m, out.logits[0, -1].float(), out.past_key_values, 32)
    for layer in (0, 1):
        d[f"recurrent_{layer}"], d[f"conv_{layer}"] = states(out.past_key_values, layer)
    return d


def write(folder, config, model_class):
    torch.manual_seed(3)
    m = model_class(config)
    randomize(m)
    m.to(torch.bfloat16).save_pretrained(folder)
    m = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    save_file({k: v.contiguous() for k, v in outputs(m).items()}, os.path.join(folder, "goldens.safetensors"))


def fuse(source, folder):
    """Gather the experts of a checkpoint into mlp.experts.gate_up_proj [E, 2I, H], gate first, and down_proj [E, H, I]."""
    os.makedirs(folder, exist_ok=True)
    tensors = load_file(os.path.join(source, "model.safetensors"))
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    out = {
        k.replace("model.", "model.language_model.", 1) if k.startswith("model.") else k: v
        for k, v in tensors.items() if ".mlp.experts." not in k
    }
    for layer in range(config["num_hidden_layers"]):
        part = [[tensors[f"model.layers.{layer}.mlp.experts.{e}.{name}_proj.weight"] for e in range(config["num_experts"])]
                for name in ("gate", "up", "down")]
        to = f"model.language_model.layers.{layer}.mlp.experts."
        out[to + "gate_up_proj"] = torch.stack([torch.cat(x) for x in zip(part[0], part[1])])
        out[to + "down_proj"] = torch.stack(part[2])
    save_file(out, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    outer = dict(
        architectures=["Qwen3_5MoeForConditionalGeneration"], model_type="qwen3_5_moe", text_config=config,
        tie_word_embeddings=False
    )
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(outer, f, indent=2)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("out", help="folder for tiny-moe, tiny-moe-fused and tiny-next")
    out = p.parse_args().out
    moe, fused, following = (os.path.join(out, name) for name in ("tiny-moe", "tiny-moe-fused", "tiny-next"))
    rope = dict(ROPE, mrope_section=[2, 1, 1], mrope_interleaved=True)
    write(moe, Qwen3_5MoeTextConfig(**SHAPE, rope_parameters=rope), Qwen3_5MoeForCausalLM)
    fuse(moe, fused)
    config = Qwen3NextConfig(
        **SHAPE, rope_parameters=dict(ROPE), decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True
    )
    write(following, config, Qwen3NextForCausalLM)


if __name__ == "__main__":
    main()
