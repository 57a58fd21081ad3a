"""The gated delta rule in PyTorch: in chunks of 64 tokens for training and prompts, token by token for decoding.

Inside a chunk everything is matrix products; between chunks the state follows S' = M S + N with M = exp(G) I - Kd^T W and
N = Kd^T U, so that only one small batched product a chunk is sequential.
"""
import torch

CHUNK = 64


def inverse_torch(A):
    """Inverse of I + A, A strictly lower triangular, by block doubling: inv([[L11,0],[L21,L22]]) = [[I11,0],[-I22 L21 I11, I22]]."""
    C = A.shape[-1]
    sh = A.shape
    A = A.reshape(-1, C, C)
    T = torch.eye(C, dtype=A.dtype, device=A.device).expand_as(A).clone()
    s = 1
    while s < C:
        nb = C // (2 * s)
        Av = A.reshape(-1, nb, 2 * s, nb, 2 * s)
        Tv = T.view(-1, nb, 2 * s, nb, 2 * s)
        ix = torch.arange(nb, device=A.device)
        a21 = Av[:, ix, s:, ix, :s]  # [nb, N, s, s]
        t11 = Tv[:, ix, :s, ix, :s]
        t22 = Tv[:, ix, s:, ix, s:]
        Tv[:, ix, s:, ix, :s] = -(t22 @ a21 @ t11)
        s *= 2
    return T.reshape(sh)


try:
    import triton
    import triton.language as tl

    @triton.jit
    def inverse_kernel(A, T, C: tl.constexpr):
        pid = tl.program_id(0).to(tl.int64)
        r = tl.arange(0, C)
        off = pid * C * C + r[:, None] * C + r[None, :]
        x = tl.load(A + off)
        x = tl.where(r[:, None] > r[None, :], -x, 0.0)
        for i in range(1, C):
            row = -tl.load(A + pid * C * C + i * C + r)
            row = tl.where(r < i, row, 0.0)
            row = row + tl.sum(row[:, None] * x, 0)
            x = tl.where(r[:, None] == i, row[None, :], x)
        x = x + tl.where(r[:, None] == r[None, :], 1.0, 0.0)
        tl.store(T + off, x)

    def inverse_triton(A):
        A = A.contiguous()
        T = torch.empty_like(A)
        C = A.shape[-1]
        inverse_kernel[(A.numel() // (C * C), )](A, T, C, num_warps=4)
        return T
except ImportError:
    inverse_triton = None


class Settings:
    """How the large products are made; float32 and plain PyTorch unless use_gpu() changed it."""
    dtype = torch.float32
    inverse = staticmethod(inverse_torch)


settings = Settings()


def use_gpu(dtype):
    """On a GPU: the large products of the chunked rule in dtype, and the inverse by the triton kernel if its result is right."""
    settings.dtype = dtype
    if inverse_triton is not None:
        x = torch.randn(64, 64, 64, device="cuda").tril(-1) * 0.3
        right = inverse_torch(x.double())
        if (inverse_triton(x) - right).abs().max() < 1e-5 * right.abs().max():
            settings.inverse = inverse_triton


def inverse_backward(T, dT):
    Tt = T.transpose(-1, -2)
    return -(Tt @ dT @ Tt).tril(-1)


def scan_forward(M, N):
    """S_0 = 0, S_{i+1} = M_i S_i + N_i;  M, N [n, R, D, D'] -> S [n, R, D, D'] (the state before each chunk)."""
    S = torch.empty_like(N)
    S[0].zero_()
    if S.shape[0] > 1:
        S[1].copy_(N[0])
    for i in range(1, S.shape[0] - 1):
        torch.baddbmm(N[i], M[i], S[i], out=S[i + 1])
    return S


def scan_backward(M, S, dS):
    n = M.shape[0]
    G = torch.empty_like(dS)
    G[n - 1].copy_(dS[n - 1])
    for i in range(n - 2, -1, -1):
        torch.baddbmm(dS[i], M[i].transpose(-1, -2), G[i + 1], out=G[i])
    dN = torch.empty_like(G)
    dN[:-1].copy_(G[1:])
    dN[-1].zero_()
    dM = torch.empty_like(M)
    dM[-1].zero_()
    if n > 1:
        torch.matmul(G[1:], S[:-1].transpose(-1, -2), out=dM[:-1])
    return dM, dN


@torch.library.custom_op("gdn_train::inverse", mutates_args=())
def inverse(A: torch.Tensor) -> torch.Tensor:
    return settings.inverse(A)


@inverse.register_fake
def _(A):
    return torch.empty_like(A, memory_format=torch.contiguous_format)


inverse.register_autograd(
    lambda ctx, g: inverse_backward(ctx.saved_tensors[0], g),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
)


@torch.library.custom_op("gdn_train::scan", mutates_args=())
def scan(M: torch.Tensor, N: torch.Tensor) -> torch.Tensor:
    return scan_forward(M, N)


@scan.register_fake
def _(M, N):
    return torch.empty_like(N, memory_format=torch.contiguous_format)


@torch.library.custom_op("gdn_train::scan_grad", mutates_args=())
def scan_grad(M: torch.Tensor, S: torch.Tensor, dS: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return scan_backward(M, S, dS.contiguous())


@scan_grad.register_fake
def _(M, S, dS):
    return torch.empty_like(M), torch.empty_like(S)


scan.register_autograd(
    lambda ctx, g: scan_grad(ctx.saved_tensors[0], ctx.saved_tensors[1], g),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], output)
)


def l2n(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_chunks(q, k, v, g, beta, final_state=False):
    """q, k [B,T,Hk,D], v [B,T,Hv,Dv], g (log decay) and beta [B,T,Hv] -> [B,T,Hv,Dv] (and the last state)."""
    B, T, Hk, D = q.shape
    Hv, Dv = v.shape[2:]
    C, n, r = CHUNK, T // CHUNK, Hv // Hk
    cd = settings.dtype
    q = (l2n(q.float()) * D**-0.5).view(B, n, C, Hk, D).permute(1, 0, 3, 2, 4)
    k = l2n(k.float()).view(B, n, C, Hk, D).permute(1, 0, 3, 2, 4)
    v = v.view(B, n, C, Hv, Dv).permute(1, 0, 3, 2, 4)
    g = g.float().view(B, n, C, Hv).permute(1, 0, 3, 2)
    beta = beta.float().view(B, n, C, Hv).permute(1, 0, 3, 2)
    G = g.cumsum(-1)
    qc, kc = q.to(cd), k.to(cd)
    kk = (kc @ kc.transpose(-1, -2)).float()
    qk = (qc @ kc.transpose(-1, -2)).float()
    low = torch.ones(C, C, dtype=torch.bool, device=q.device).tril()
    dec = (G.unsqueeze(-1) - G.unsqueeze(-2)).masked_fill(~low, float("-inf")).exp().view(n, B, Hk, r, C, C)
    A = (kk.unsqueeze(3) * dec * beta.view(n, B, Hk, r, C, 1)).tril(-1).view(n, B * Hv, C, C)
    Ti = inverse(A).to(cd)
    eG = G.exp().view(n, B, Hk, r, C, 1)
    last = G[..., -1:]
    bv = (beta.unsqueeze(-1) * v.float()).to(cd).reshape(n, B * Hv, C, Dv)
    bk = (beta.view(n, B, Hk, r, C, 1) * eG * k.unsqueeze(3)).to(cd).reshape(n, B * Hv, C, D)
    U = Ti @ bv
    W = Ti @ bk
    kd = (k.unsqueeze(3) * (last - G).exp().view(n, B, Hk, r, C, 1)).to(cd).reshape(n, B * Hv, C, D)
    qd = (q.unsqueeze(3) * eG).to(cd).reshape(n, B * Hv, C, D)
    P = (qk.unsqueeze(3) * dec).to(cd).view(n, B * Hv, C, C)
    X = (kd.transpose(-1, -2) @ W).float()
    N = (kd.transpose(-1, -2) @ U).float()
    M = torch.diag_embed(last.exp().view(n, B * Hv, 1).expand(n, B * Hv, D)) - X
    S = scan(M, N)
    Sc = S.to(cd)
    vn = U - W @ Sc
    o = qd @ Sc + P @ vn
    o = o.view(n, B, Hv, C, Dv).permute(1, 0, 3, 2, 4).reshape(B, T, Hv, Dv)
    if final_state:
        return o, (torch.baddbmm(N[-1], M[-1], S[-1])).view(B, Hv, D, Dv)
    return o


def delta_step(q, k, v, g, beta, S):
    """One token: q, k [B,Hk,D], v [B,Hv,Dv], g, beta [B,Hv], S [B,Hv,D,Dv] float32."""
    r = v.shape[1] // q.shape[1]
    q = (l2n(q.float()) * q.shape[-1]**-0.5).repeat_interleave(r, 1)
    k = l2n(k.float()).repeat_interleave(r, 1)
    S = S * g.float().exp()[..., None, None]
    d = (v.float() - (S * k.unsqueeze(-1)).sum(-2)) * beta.float().unsqueeze(-1)
    S = S + k.unsqueeze(-1) * d.unsqueeze(-2)
    return (S * q.unsqueeze(-1)).sum(-2), S
