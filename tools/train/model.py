"""A small Qwen3.5 text model in PyTorch: gated delta and full attention layers, and one MTP layer; loss, decoding, export."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from delta import delta_chunks, delta_step


@dataclass
class Config:
    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 256
    num_hidden_layers: int = 8
    num_attention_heads: int = 2
    num_key_value_heads: int = 1
    head_dim: int = 256
    linear_num_key_heads: int = 2
    linear_num_value_heads: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_conv_kernel_dim: int = 4
    rope_theta: float = 10000000.0
    partial_rotary_factor: float = 0.25
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 4096
    full_attention_interval: int = 4

    def kind(self, i):
        return "full_attention" if (i + 1) % self.full_attention_interval == 0 else "linear_attention"


def lin(x, w):
    return F.linear(x, w.to(x.dtype))


def rms(x, w, eps):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps) * (1.0 + w.float())
    return y.to(x.dtype)


class Norm(nn.Module):

    def __init__(self, d, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x):
        return rms(x, self.weight, self.eps)


class Linear(nn.Module):

    def __init__(self, o, i, std=0.02):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i) * std)

    def forward(self, x):
        return lin(x, self.weight)


class MLP(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.gate_proj = Linear(c.intermediate_size, c.hidden_size, c.hidden_size**-0.5)
        self.up_proj = Linear(c.intermediate_size, c.hidden_size, c.hidden_size**-0.5)
        self.down_proj = Linear(
            c.hidden_size, c.intermediate_size, 0.3 * c.intermediate_size**-0.5 / math.sqrt(2 * c.num_hidden_layers) * 2
        )

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Attention(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        h, d, s = c.hidden_size, c.head_dim, c.hidden_size**-0.5
        self.q_proj = Linear(c.num_attention_heads * d * 2, h, s)
        self.k_proj = Linear(c.num_key_value_heads * d, h, s)
        self.v_proj = Linear(c.num_key_value_heads * d, h, s)
        self.o_proj = Linear(
            h, c.num_attention_heads * d, 0.6 * (c.num_attention_heads * d)**-0.5 / math.sqrt(2 * c.num_hidden_layers)
        )
        self.q_norm = Norm(d, c.rms_norm_eps)
        self.k_norm = Norm(d, c.rms_norm_eps)

    def qkv(self, x, cos, sin):
        B, T, _ = x.shape
        d = self.c.head_dim
        q, gate = self.q_proj(x).view(B, T, -1, 2 * d).chunk(2, -1)
        q = self.q_norm(q).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(B, T, -1, d)).transpose(1, 2)
        v = self.v_proj(x).view(B, T, -1, d).transpose(1, 2)
        return rope(q, cos, sin), rope(k, cos, sin), v, gate.reshape(B, T, -1)

    def out(self, o, gate):
        B, H, T, d = o.shape
        return self.o_proj(o.transpose(1, 2).reshape(B, T, H * d) * torch.sigmoid(gate))

    def forward(self, x, cos, sin):
        q, k, v, gate = self.qkv(x, cos, sin)
        return self.out(attend(q, k, v), gate)


def attend(q, k, v, mask=None):
    r = q.shape[1] // k.shape[1]
    if r > 1:
        B, H, T, d = k.shape
        k = k.unsqueeze(2).expand(B, H, r, T, d).reshape(B, H * r, T, d)
        v = v.unsqueeze(2).expand(B, H, r, T, d).reshape(B, H * r, T, d)
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    s = (q.float() @ k.float().transpose(-1, -2)) * q.shape[-1]**-0.5
    s = s.masked_fill(~mask, -1e9)
    return (s.softmax(-1) @ v.float()).to(q.dtype)


def rope(x, cos, sin):
    n = cos.shape[-1]
    a, b = x[..., :n], x[..., n:]
    h = n // 2
    rot = torch.cat((-a[..., h:], a[..., :h]), -1)
    return torch.cat(((a.float() * cos + rot.float() * sin).to(x.dtype), b), -1)


class DeltaNet(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.kd, self.vd = c.linear_num_key_heads * c.linear_key_head_dim, c.linear_num_value_heads * c.linear_value_head_dim
        h, s = c.hidden_size, c.hidden_size**-0.5
        self.in_proj_qkv = Linear(2 * self.kd + self.vd, h, s)
        self.in_proj_z = Linear(self.vd, h, s)
        self.in_proj_b = Linear(c.linear_num_value_heads, h, s)
        self.in_proj_a = Linear(c.linear_num_value_heads, h, 0.5 * s)
        self.conv1d = nn.Module()
        self.conv1d.weight = nn.Parameter((torch.rand(2 * self.kd + self.vd, 1, c.linear_conv_kernel_dim) - 0.5))
        dt = torch.exp(torch.rand(c.linear_num_value_heads) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        self.A_log = nn.Parameter(torch.log(1 + 15 * torch.rand(c.linear_num_value_heads)))
        self.norm = nn.Module()
        self.norm.weight = nn.Parameter(torch.ones(c.linear_value_head_dim))
        self.out_proj = Linear(h, self.vd, 0.6 * self.vd**-0.5 / math.sqrt(2 * c.num_hidden_layers))

    def parts(self, x, mixed):
        """mixed: the convolved and activated qkv [B,T,*]"""
        c = self.c
        B, T, _ = x.shape
        q, k, v = mixed.split((self.kd, self.kd, self.vd), -1)
        q = q.reshape(B, T, c.linear_num_key_heads, c.linear_key_head_dim)
        k = k.reshape(B, T, c.linear_num_key_heads, c.linear_key_head_dim)
        v = v.reshape(B, T, c.linear_num_value_heads, c.linear_value_head_dim)
        beta = torch.sigmoid(self.in_proj_b(x).float())
        g = -self.A_log.float().exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias.float())
        return q, k, v, g, beta

    def conv(self, x, w):
        K = self.c.linear_conv_kernel_dim
        T = x.shape[1]
        xp = F.pad(x, (0, 0, K - 1, 0))
        y = sum(xp[:, j:j + T] * w[:, 0, j] for j in range(K))
        return F.silu(y)

    def finish(self, o, x):
        c = self.c
        B, T = x.shape[:2]
        z = self.in_proj_z(x).view(B, T, c.linear_num_value_heads, c.linear_value_head_dim)
        o = o.float()
        o = o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + c.rms_norm_eps) * self.norm.weight.float()
        o = (o * F.silu(z.float())).to(x.dtype)
        return self.out_proj(o.reshape(B, T, -1))

    def forward(self, x):
        mixed = self.conv(self.in_proj_qkv(x), self.conv1d.weight.to(x.dtype))
        q, k, v, g, beta = self.parts(x, mixed)
        return self.finish(delta_chunks(q, k, v, g, beta), x)


class DeltaLayer(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.input_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.linear_attn = DeltaNet(c)
        self.post_attention_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.mlp = MLP(c)

    def forward(self, x):
        x = x + self.linear_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class FullLayer(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.input_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.mlp = MLP(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class MTP(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.fc = Linear(c.hidden_size, 2 * c.hidden_size, (2 * c.hidden_size)**-0.5)
        self.pre_fc_norm_hidden = Norm(c.hidden_size, c.rms_norm_eps)
        self.pre_fc_norm_embedding = Norm(c.hidden_size, c.rms_norm_eps)
        self.layers = nn.ModuleList([FullLayer(c)])
        self.norm = Norm(c.hidden_size, c.rms_norm_eps)

    def mix(self, h, e):
        return self.fc(torch.cat((self.pre_fc_norm_embedding(e), self.pre_fc_norm_hidden(h)), -1))


class Model(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Module()
        self.embed_tokens.weight = nn.Parameter(torch.randn(c.vocab_size, c.hidden_size) * 0.02)
        self.layers = nn.ModuleList([
            FullLayer(c) if c.kind(i) == "full_attention" else DeltaLayer(c) for i in range(c.num_hidden_layers)
        ])
        self.norm = Norm(c.hidden_size, c.rms_norm_eps)
        self.mtp = MTP(c)

    def rot(self, pos):
        c = self.c
        n = int(c.head_dim * c.partial_rotary_factor)
        inv = 1.0 / (c.rope_theta**(torch.arange(0, n, 2, dtype=torch.float32, device=pos.device) / n))
        f = pos.float().unsqueeze(-1) * inv
        f = torch.cat((f, f), -1)
        return f.cos(), f.sin()

    def embed(self, ids, dt):
        return F.embedding(ids, self.embed_tokens.weight).to(dt)

    def trunk(self, ids, dt, cos, sin):
        x = self.embed(ids, dt)
        for layer in self.layers:
            x = layer(x, cos, sin) if isinstance(layer, FullLayer) else layer(x)
        return self.norm(x)

    def logits(self, h):
        return lin(h, self.embed_tokens.weight)

    @torch.no_grad()
    def prefill(self, ids, mask, dt=torch.float32):
        """ids [B,T] left-padded, T a multiple of CHUNK; mask bool.  -> normalised hidden states, cache"""
        B, T = ids.shape
        cos, sin = self.rot(torch.arange(T, device=ids.device))
        am = torch.ones(T, T, dtype=torch.bool, device=ids.device).tril()[None, None] & mask[:, None, None, :]
        x = self.embed(ids, dt)
        cache = []
        for layer in self.layers:
            y = layer.input_layernorm(x)
            if isinstance(layer, FullLayer):
                q, k, v, gate = layer.self_attn.qkv(y, cos, sin)
                o = layer.self_attn.out(attend(q, k, v, am), gate)
                cache.append([k, v])
            else:
                a = layer.linear_attn
                y = y * mask.unsqueeze(-1)
                m = a.in_proj_qkv(y)
                cs = m[:, -(self.c.linear_conv_kernel_dim - 1):]
                q, k, v, g, beta = a.parts(y, a.conv(m, a.conv1d.weight.to(dt)))
                o, S = delta_chunks(q, k, v, g, beta, True)
                o = a.finish(o, y)
                cache.append([cs, S])
            x = x + o
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x), cache

    @torch.no_grad()
    def step(self, ids, mask, pos, cache):
        """ids [B]; mask [B, S] over the cached positions and this one; pos: its position."""
        dt = cache[0][0].dtype
        cos, sin = self.rot(torch.tensor([pos], device=ids.device))
        x = self.embed(ids[:, None], dt)
        for layer, ca in zip(self.layers, cache):
            y = layer.input_layernorm(x)
            if isinstance(layer, FullLayer):
                q, k, v, gate = layer.self_attn.qkv(y, cos, sin)
                ca[0] = torch.cat((ca[0], k), 2)
                ca[1] = torch.cat((ca[1], v), 2)
                o = layer.self_attn.out(attend(q, ca[0], ca[1], mask[:, None, None, :]), gate)
            else:
                a = layer.linear_attn
                m = torch.cat((ca[0], a.in_proj_qkv(y)), 1)
                ca[0] = m[:, 1:]
                w = a.conv1d.weight.to(dt)[:, 0].t()
                mixed = F.silu((m * w).sum(1, keepdim=True))
                q, k, v, g, beta = a.parts(y, mixed)
                o, ca[1] = delta_step(q[:, 0], k[:, 0], v[:, 0], g[:, 0], beta[:, 0], ca[1])
                o = a.finish(o[:, None].to(dt), y)
            x = x + o
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x)[:, 0]


def ce_loss(h, emb, y, w):
    """weighted cross entropy; -> (sum of w * nll, sum of w)"""
    lg = F.linear(h, emb.to(h.dtype)).float()
    lse = torch.logsumexp(lg, -1)
    nll = lse - lg.gather(-1, y.unsqueeze(-1)).squeeze(-1)
    return (nll * w).sum(), w.sum()


class Step(nn.Module):
    """Forward of one batch, split in pieces that torch.compile can treat one by one."""

    def __init__(self, m, mtp_weight=0.15, mtp2_weight=0.0, compile=False):
        super().__init__()
        self.m = m
        self.mtp_weight, self.mtp2_weight = mtp_weight, mtp2_weight
        self.ce = ce_loss
        if compile:
            kw = dict(dynamic=False, fullgraph=True)
            self.ce = torch.compile(ce_loss, **kw)
            for layer in list(m.layers) + list(m.mtp.layers):
                layer.compile(**kw)
            m.mtp.mix = torch.compile(m.mtp.mix, **kw)
            m.norm.compile(**kw)
            m.mtp.norm.compile(**kw)

    def forward(self, ids, w, T, dt):
        """ids, w [B, T+3]: tokens and the weight of each token's loss"""
        m = self.m
        x, y1, y2, y3 = (ids[:, i:T + i] for i in range(4))
        cos, sin = m.rot(torch.arange(T, device=ids.device))
        h = m.trunk(x, dt, cos, sin)
        a, n = self.ce(h, m.embed_tokens.weight, y1, w[:, 1:T + 1])
        loss = a / n
        z = m.mtp.norm(m.mtp.layers[0](m.mtp.mix(h, m.embed(y1, dt)), cos, sin))
        b, n2 = self.ce(z, m.embed_tokens.weight, y2, w[:, 2:T + 2])
        mtp = b / n2
        total = loss + self.mtp_weight * mtp
        if self.mtp2_weight:
            # the MTP layer once more, on its own hidden state and the next token (true positions differ by one
            # everywhere, which rotary embeddings do not see)
            z2 = m.mtp.norm(m.mtp.layers[0](m.mtp.mix(z, m.embed(y2, dt)), cos, sin))
            c, n3 = self.ce(z2, m.embed_tokens.weight, y3, w[:, 3:T + 3])
            total = total + self.mtp2_weight * (c / n3)
        return total, loss.detach(), mtp.detach()


def export_tensors(m):
    """Tensors by Qwen3.5's names in bf16; A_log and the gated norm in float32, as in its own checkpoints (the values are bf16 values)."""
    out = {}
    for k, p in m.named_parameters():
        name = k if k.startswith("mtp.") else "model." + k
        t = p.detach().float().cpu().to(torch.bfloat16)
        out[name] = (t.float() if name.endswith(("linear_attn.A_log", "linear_attn.norm.weight")) else t).contiguous()
    return out


def export_config(c, eos, pad):
    """config.json."""
    return dict(
        architectures=["Qwen3_5ForCausalLM"], model_type="qwen3_5_text", vocab_size=c.vocab_size, hidden_size=c.hidden_size,
        intermediate_size=c.intermediate_size, num_hidden_layers=c.num_hidden_layers, num_attention_heads=c.num_attention_heads,
        num_key_value_heads=c.num_key_value_heads, head_dim=c.head_dim, hidden_act="silu",
        max_position_embeddings=c.max_position_embeddings, initializer_range=0.02, rms_norm_eps=c.rms_norm_eps, use_cache=True,
        tie_word_embeddings=True, attention_bias=False, attention_dropout=0.0, attn_output_gate=True, rope_parameters=dict(
            rope_type="default", rope_theta=c.rope_theta, partial_rotary_factor=c.partial_rotary_factor, mrope_section=[
                11, 11, 10
            ], mrope_interleaved=True
        ), layer_types=[c.kind(i) for i in range(c.num_hidden_layers)], full_attention_interval=c.full_attention_interval,
        linear_conv_kernel_dim=c.linear_conv_kernel_dim, linear_key_head_dim=c.linear_key_head_dim,
        linear_value_head_dim=c.linear_value_head_dim, linear_num_key_heads=c.linear_num_key_heads,
        linear_num_value_heads=c.linear_num_value_heads, mamba_ssm_dtype="float32", mtp_num_hidden_layers=1,
        mtp_use_dedicated_embeddings=False, bos_token_id=None, eos_token_id=eos, pad_token_id=pad, dtype="bfloat16"
    )


def save(m, path):
    save_file(export_tensors(m), path, metadata={"format": "pt"})


def load(path):
    """The model in path, a file that save() wrote, in float32."""
    m = Model(Config())
    tensors = load_file(path)
    with torch.no_grad():
        for k, p in m.named_parameters():
            p.copy_(tensors[k if k.startswith("mtp.") else "model." + k])
    return m
