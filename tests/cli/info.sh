#!/bin/sh
# `gdn info`: what it prints of the demo model, which model a name means, and what is said of wrong ones.
#     sh tests/cli/info.sh [path of gdn]
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"
HF_HOME=$dir/hf HF_HUB_CACHE=
export HF_HOME HF_HUB_CACHE

# Everything but the last line stands in models/demo: config.json, MODEL_CARD.md, the header of model.safetensors.
# Sizes: matrices in bf16 and panels of 16 rows, vectors in f32; 6 layers of 3*1024*4 bytes of tail and 4*128*128*4 of S, 2
# layers (and MTP) of 2*1*256*2 bytes.
cat >"$dir/want" <<'END'
model          models/demo
architecture   qwen3_5_text, made to run in BF16, the embedding as output matrix
layers         8: 6 linear attention (L), 2 full attention (F), in the order LLLFLLLF
sizes          hidden 256, vocabulary 4096, context 4096 tokens
linear         2 key heads of 128, 4 value heads of 128, convolution of 4
full           2 query heads and 1 key/value heads of 256, 64 of them rotary with theta 1e+07
feed-forward   dense, 256 wide
parameters     6,858,800 and 853,760 in an MTP layer
tensors        123 in 1 file (model.safetensors), 14.7 MiB: 111 BF16, 12 F32
tokenizer      4096 tokens
stop tokens    4081 <|im_end|>, 4079 <|endoftext|>

memory
  weights      13.2 MiB and 1.6 MiB for MTP
  state        1.6 MiB a sequence
  drafts       1.9 MiB a sequence
  KV           2.0 KiB a token and 1.0 KiB for MTP
END
demo() { # ARGUMENTS...
    run "$@"
    sed '$d' "$dir/out" | cmp -s - "$dir/want" && [ $status -eq 0 ] && [ ! -s "$dir/err" ]
}
for arguments in info 'info models/demo' 'info models/demo/' 'info models/demo/config.json'; do
    # shellcheck disable=SC2086 # split into arguments
    if demo $arguments; then ok; else fail "gdn $arguments"; fi
done
prints '^  fits         ([0-9,]+ tokens in|no: .* available, [0-9.]+ MiB needed|unknown)' info models/demo

# The same as numbers, and the sum that says what fits.
run info --json
cp "$dir/out" "$dir/json"
mlp=$((2 * 3 * 256 * 256))
linear=$((mlp + 2 * 256 * (1024 + 512 + 16 + 16 + 512) + 4 * (4 * 1024 + 128 + 2 * 256) + 2 * 64)) # the gates' vectors: a cache line
full=$((mlp + 2 * 256 * (1024 + 256 + 256 + 512) + 4 * (2 * 256 + 2 * 256)))
weights=$((2 * 4096 * 256 + 4 * (256 + 32) + 6 * linear + 2 * full))
mtp=$((full + 2 * 256 * 512 + 4 * 3 * 256))
state=$((6 * (3 * 1024 * 4 + 4 * 128 * 128 * 4)))
drafts=$((state + 6 * (9 * 1024 * 4 + 2 * 192) + 9 * 4096 * 4)) # nine rows: of qkv, of gates to a cache line, of logits
number() { sed -n 's/^ *"'"$1"'": \([0-9]*\),*$/\1/p' "$dir/json"; }
for line in parameters=6858800 mtp_parameters=853760 weight_bytes=$weights mtp_weight_bytes=$mtp \
    state_bytes_per_sequence=$state draft_bytes_per_sequence=$drafts kv_bytes_per_token=$((2 * 2 * 256 * 2)) \
    mtp_kv_bytes_per_token=$((2 * 256 * 2)) tokens=4096 count=123 context=4096; do
    if [ "$(number "${line%%=*}")" = "${line#*=}" ]; then ok; else fail "gdn info --json: $line"; fi
done
available=$(number available_bytes)
if [ -n "$available" ]; then
    fits=$(((available - weights - mtp - state - drafts) / 3072))
    if [ "$(number tokens_that_fit)" = $fits ]; then ok; else fail "gdn info --json: tokens_that_fit is not $fits"; fi
else
    skipped=$((skipped + 1))
    echo "skip what fits: the system does not say what is available"
fi

# Other architectures.
prints '^experts        2 of 4 used, 16 wide; a shared one, 16 wide$' info tests/checkpoints/tiny-moe
prints '^architecture   qwen3_next, made to run in BF16, its own output matrix$' info tests/checkpoints/tiny-next
prints '^tokenizer      none: there is no tokenizer.json$' info tests/checkpoints/tiny-moe-fused
prints '^layers         3: 2 linear attention \(L\), 1 full attention \(F\), in the order LLF$' info tests/checkpoints/tiny-next
prints '^  state        38.0 KiB a sequence$' info tests/checkpoints/tiny-moe # heads of 16 as heads of 32

# A cache: whole ids before parts, the newest snapshot.
cannot "gdn info: there is no folder 'tiny', and no Hugging Face cache to look in; give the folder of a model" info tiny
snapshot() { # REPOSITORY COMMIT TIME MODEL
    mkdir -p "$dir/hf/hub/$1/snapshots/$2"
    for file in "$PWD/$4"/*; do ln -s "$file" "$dir/hf/hub/$1/snapshots/$2/"; done
    touch -d "$3" "$dir/hf/hub/$1/snapshots/$2"
}
snapshot models--Some--Tiny 111 2026-01-01 tests/checkpoints/tiny-next
snapshot models--Some--Tiny 000 2026-01-02 models/demo
snapshot models--Some--Tiny-Base 222 2026-01-01 tests/checkpoints/tiny-moe
mkdir -p "$dir/hf/hub/models--Some--Empty/snapshots" "$dir/hf/hub/datasets--Some--Else/snapshots"
for name in Some/Tiny Tiny some/tiny; do prints "^model          $dir/hf/hub/models--Some--Tiny/snapshots/000\$" info $name; done
prints '^architecture   qwen3_5_moe_text' info Some/Tiny-Base
prints '^architecture   qwen3_5_moe_text' info y-b
for name in iny Some/T; do
    run info $name
    if [ $status -eq 1 ] && [ ! -s "$dir/out" ] &&
        grep -Eq "^gdn info: '$name' fits 2 models, Some/Tiny(-Base)?, Some/Tiny(-Base)?; write more of it\$" "$dir/err"; then
        ok
    else
        fail "gdn info $name"
    fi
done
cannot "gdn info: $dir/hf/hub/models--Some--Empty/snapshots has no snapshot of Some/Empty; download the model again" info Empty
for name in Else ../hf no/such/model; do
    cannot "gdn info: there is no folder '$name', and no model of this name in $dir/hf/hub; give the folder of a model" info $name
done

# The snapshot of refs/main before a newer one, if it is there; the folders that the variables name.
mkdir "$dir/hf/hub/models--Some--Tiny/refs"
printf 111 >"$dir/hf/hub/models--Some--Tiny/refs/main"
prints "^model          $dir/hf/hub/models--Some--Tiny/snapshots/111\$" info Some/Tiny
for commit in 333 ../../x ''; do
    printf '%s' "$commit" >"$dir/hf/hub/models--Some--Tiny/refs/main"
    prints "^model          $dir/hf/hub/models--Some--Tiny/snapshots/000\$" info Some/Tiny
done
mkdir -p "$dir/home/.cache" "$dir/xdg"
ln -s "$dir/hf" "$dir/home/.cache/huggingface"
ln -s "$dir/hf" "$dir/xdg/huggingface"
HF_HUB_CACHE=$dir/hf/hub HF_HOME=$dir/none prints "^model          $dir/hf/hub/models--" info Some/Tiny
HF_HOME='' XDG_CACHE_HOME=$dir/xdg prints "^model          $dir/xdg/huggingface/hub/models--" info Some/Tiny
HF_HOME='' XDG_CACHE_HOME='' HOME=$dir/home prints "^model          $dir/home/.cache/huggingface/hub/models--" info Some/Tiny

# Models that are none.
cannot "gdn info: the name of the model is empty; give its folder or id" info ''
mkdir "$dir/cut" "$dir/bare"
cp models/demo/config.json "$dir/cut"
head -c 1000000 models/demo/model.safetensors >"$dir/cut/model.safetensors"
for folder in bare cut; do
    run info "$dir/$folder"
    if [ $status -eq 1 ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q '^gdn info: ' "$dir/err"; then
        ok
    else
        fail "gdn info of a $folder folder (status $status)"
    fi
done

# Wrong command lines.
refuses "gdn info: unexpected argument 'more'; see 'gdn info --help'" info models/demo more
refuses "gdn info: unknown option '--frob'; see 'gdn info --help'" info --frob
refuses "gdn info: unknown option '-'; see 'gdn info --help'" info -
refuses "gdn info: --json takes no value, but got 'yes'" info --json=yes
prints '^usage: gdn info ' info --help
fits_screen info --help
unwritable info
unwritable info --json
finish
