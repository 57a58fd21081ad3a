#!/usr/bin/env bash
# Decode and prefill of gdn and of a peer's llama-bench on the same shape, in alternation; prints medians and ratios as CSV.
#   run.sh LLAMA_BENCH MODEL.gguf        see README.md beside this file
set -euo pipefail

GDN=${GDN:-build/gdn}
GDN_ARGS=${GDN_ARGS:-}           # more options of gdn bench, such as "--cpu avx2"
PEER_ARGS=${PEER_ARGS:-}         # more options of llama-bench, such as "-rtr 1"
SHAPE=${SHAPE:-0.8B}
THREADS=${THREADS:-1 2}
PP=${PP:-512}
TG=${TG:-128}
ROUNDS=${ROUNDS:-5}
SAMPLES=${SAMPLES:-}             # a file to keep every sample in

fail() { echo "run.sh: $*" >&2; exit 1; }
[ $# -eq 2 ] || fail "give the peer's llama-bench and a GGUF file"
peer=$1 model=$2
[ -x "$peer" ] || fail "$peer is not a program: build the peer's llama-bench and give its path"
[ -f "$model" ] || fail "there is no $model: write it with make_checkpoint.py --gguf"
[ -x "$GDN" ] || fail "$GDN is not a program: run make, or say where gdn is with GDN=path"
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT

# One run of each prints lines "test tokens_per_second".
run_peer() { # threads
    # shellcheck disable=SC2086
    "$peer" -m "$model" -t "$1" -p "$PP" -n "$TG" -r 1 $PEER_ARGS -o csv 2> /dev/null | awk -v pp="pp$PP" -v tg="tg$TG" '
        !columns && /n_prompt/ { columns = split($0, name, ","); for (i in name) at[name[i]] = i; next }
        columns { gsub(/^"|"$/, ""); split($0, f, /","/); print (f[at["n_gen"]] > 0 ? tg : pp), f[at["avg_ts"]] }'
}

run_gdn() { # threads
    # shellcheck disable=SC2086
    "$GDN" bench --shape "$SHAPE" --pp "$PP" --tg "$TG" --threads "$1" --repeat 1 $GDN_ARGS --csv | awk -F, -v pp="pp$PP" -v tg="tg$TG" '
        !columns && /tokens_per_s/ { columns = NF; for (i = 1; i <= NF; i++) at[$i] = i; next }
        columns && $at["test"] == "pp" { print pp, $at["tokens_per_s"] }
        columns && $at["test"] == "tg" { print tg, $at["tokens_per_s"] }'
}

take() { # who threads
    local lines
    lines=$("run_$1" "$2") || fail "$1 failed with $2 threads; its call is the function run_$1 in this script"
    [ "$(grep -c . <<< "$lines")" -eq 2 ] || fail "$1 printed ${lines:-nothing} where a pp and a tg line were expected (run_$1 in this script)"
    while read -r line; do echo "$1 $2 $line" | tee -a "$samples" >&2; done <<< "$lines"
}

echo "round order: peer and gdn in turn, $ROUNDS rounds" >&2
for ((round = 0; round < ROUNDS; round++)); do
    for threads in $THREADS; do
        if ((round % 2)); then take gdn "$threads"; take peer "$threads"; else take peer "$threads"; take gdn "$threads"; fi
    done
done
[ -z "$SAMPLES" ] || cp "$samples" "$SAMPLES"

sort -k1,1 -k2,2n -k3,3 -k4,4g "$samples" | awk '
    function close_group() { if (n) { middle[key] = n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2; low[key] = x[1]; high[key] = x[n] } n = 0 }
    { new = $1 " " $2 " " $3; if (new != key) { close_group(); key = new }
      x[++n] = $4; if (!(($2 " " $3) in seen)) { seen[$2 " " $3]; order[++cases] = $2 " " $3 } }
    END { close_group(); print "threads,test,peer,peer_least,peer_most,gdn,gdn_least,gdn_most,ratio"
        for (i = 1; i <= cases; i++) { p = "peer " order[i]; g = "gdn " order[i]; split(order[i], f, " ")
            printf "%s,%s,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", f[1], f[2], middle[p], low[p], high[p], middle[g], low[g], high[g], middle[g] / middle[p] } }'
