"""The sampler of include/gdn/gdn.h once more, in exact arithmetic and with sorting: made from the contract there and from the
formula of gdn_expf in src/kernel/math.h.  `python3 tests/unit/sampler_reference.py` prints the table `recorded` of
tests/unit/test_sampler.c.  Floats are fractions; f32 rounds one to the nearest float, ties to even."""
from fractions import Fraction as F

G, M64 = 0x9E3779B97F4A7C15, 2**64 - 1


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def f32(x):
    x = F(x)
    if x == 0:
        return x
    e, a = 0, abs(x)
    while a >= 2:
        a, e = a / 2, e + 1
    while a < 1:
        a, e = a * 2, e - 1
    quantum = F(2) ** (max(e, -126) - 23)
    return round(x / quantum) * quantum


LOG2E, LN2_HI, LN2_LO = f32(F("1.44269504")), f32(F("0.693359375")), f32(F("-2.12194440e-4"))
C = [f32(F(c)) for c in ("1.9875691500e-4", "1.3981999507e-3", "8.3334519073e-3", "4.1665795894e-2", "1.6666665459e-1",
                         "5.0000001201e-1")]


def exp(x):
    """gdn_expf: each f32 is one rounding, fma(a, b, c) = f32(a * b + c)."""
    x = max(x, F(-104))
    magic = F(12582912)
    n = f32(x * LOG2E + magic) - magic
    r1 = f32(n * -LN2_HI + x)
    r = f32(n * -LN2_LO + r1)
    r_low = f32(n * -LN2_LO + f32(r1 - r))
    p = C[0]
    for c in C[1:]:
        p = f32(p * r + c)
    h = f32(1 + r)
    h_low = f32(r - f32(h - 1))
    p = f32(h + f32(f32(p * f32(r * r) + r_low) + h_low))
    e1 = int(n) >> 1
    return f32(f32(p * F(2) ** e1) * F(2) ** (int(n) - e1))


def pick(logits, o, counts, n_output):
    l = list(logits)
    for t, v in o.get("bias", []):
        l[t] = f32(l[t] + f32(F(v)))
    rep, freq, pres = (f32(F(o.get(k, d))) for k, d in (("repetition", "1"), ("frequency", "0"), ("presence", "0")))
    for t, n in counts.items():
        l[t] = f32(l[t] * rep) if l[t] < 0 else f32(l[t] / rep)
        l[t] = f32(l[t] - f32(freq * n))
        if n:
            l[t] = f32(l[t] - pres)
    t32 = f32(F(o.get("temperature", "0")))
    by_logit = sorted(range(len(l)), key=lambda t: (-l[t], t))
    if t32 == 0:
        return by_logit[0]
    most = l[by_logit[0]]
    w = {t: int(exp(f32(f32(l[t] - most) / t32)) * 2**40) for t in by_logit[:o.get("top_k", 0) or len(l)]}
    w = {t: x for t, x in sorted(w.items(), key=lambda e: (-e[1], e[0])) if x}
    wanted, have, kept = int(F(float(o.get("top_p", "1"))) * 2**32 + F(1, 2)) * sum(w.values()), 0, {}
    for t, x in w.items():
        if kept and have * 2**32 >= wanted:
            break
        kept[t] = x
        have += x
    floor = F(float(o.get("min_p", "0"))) * max(w.values())
    kept = {t: x for t, x in kept.items() if x >= floor}
    random = mix((mix(o["seed"] + G & M64) + (n_output + 1) * G) & M64)
    below = random * sum(kept.values()) >> 64
    for t in sorted(kept):
        if below < kept[t]:
            return t
        below -= kept[t]


CASES = [
    dict(seed=0, temperature="1"),
    dict(seed=1, temperature="0.7", top_k=20, top_p="0.8"),
    dict(seed=2**64 - 1, temperature="1.5", top_p="0.95"),
    dict(seed=42, temperature="3.25", min_p="0.05"),
    dict(seed=12345678901234567890, temperature="2", top_k=30, top_p="0.9", min_p="0.02", repetition="1.3", presence="0.4",
         frequency="0.15", bias=[(3, "2.5"), (7, "-1.25")]),
]


def main():
    logits = [F((i * 37 + 11) % 101 - 50, 8) for i in range(64)]
    for o in CASES:
        counts, tokens = {5: 0, 9: 0, 42: 0}, []
        for i in range(20):
            tokens.append(pick(logits, o, counts, i))
            counts[tokens[-1]] = counts.get(tokens[-1], 0) + 1
        print("    {%s}," % ", ".join(map(str, tokens)))


if __name__ == "__main__":
    main()
