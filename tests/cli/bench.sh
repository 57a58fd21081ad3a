#!/bin/sh
# The command line of `gdn`: exit statuses, what is said where, and short benchmarks of the operations and of the demo model.
#     sh tests/cli/bench.sh [path of gdn]
# The words of $short and $arguments are meant to be split:
# shellcheck disable=SC2086
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"

prints '^usage: gdn VERB' --help
prints '^usage: gdn VERB' -h
prints '^  gdn bench --ops ' --help
prints '^gdn [0-9]+\.[0-9]+\.[0-9]+ \(commit [^ ]+\), CPU level (ref|avx2|avx512|amx|neon), [a-z0-9_]+, backends: CPU$' --version
prints '^usage: gdn bench \[MODEL \| --shape NAME\]' bench --help
prints '^usage: gdn bench --ops' bench --ops --help
prints '^usage: gdn bench --spec' bench --spec --help
fits_screen --help
fits_screen bench --help
fits_screen bench --ops --help
fits_screen bench --spec --help

refuses "gdn: no verb given; see 'gdn --help'"
refuses "gdn: unknown verb 'fly'; see 'gdn --help'" fly
refuses "gdn: unknown verb ''; see 'gdn --help'" ''
refuses "gdn: unknown option '--frob'; see 'gdn --help'" --frob
refuses "gdn: unexpected argument 'now' after --version" --version now
refuses "gdn bench: unknown option '--frob'; see 'gdn bench --help'" bench --ops --frob
refuses "gdn bench: unknown option '--op-name=gates'; see 'gdn bench --help'" bench --ops --op-name=gates
refuses "gdn bench: unexpected argument 'gates'; see 'gdn bench --help'" bench --ops gates
refuses "gdn bench: --csv takes no value, but got 'yes'" bench --ops --csv=yes

for value in 0 -1 abc 9999 '' 1.5 0x1 ' 2' 2x - 99999999999999999999; do
    refuses "gdn bench: --threads takes a whole number from 1 to 256, not '$value'; see 'gdn bench --help'" \
        bench --ops --threads "$value"
done
for value in 0 -1 abc 1e3 61 nan inf .; do
    refuses "gdn bench: --seconds takes a number from 0.001 to 60, not '$value'; see 'gdn bench --help'" \
        bench --ops --seconds "$value"
done
refuses "gdn bench: --heads takes a whole number from 1 to 256, not '257'; see 'gdn bench --help'" bench --ops --heads 257
refuses "gdn bench: --tokens takes a whole number from 1 to 8192, not '0'; see 'gdn bench --help'" bench --ops --tokens=0
for option in op cpu threads heads tokens seconds; do
    refuses "gdn bench: --$option needs a value after it; see 'gdn bench --help'" bench --ops --$option
    refuses "gdn bench: --$option needs a value after it; see 'gdn bench --help'" bench --$option --ops
done
refuses "gdn bench: --op 'foo' is not an operation; choose one of conv_silu, qk_norm, gates, delta, gated_norm, matmul, layer, round" \
    bench --ops --op foo

# Which levels there are depends on the machine: those that are not in the list are refused by name.
run bench --ops --cpu avx1024
levels=$(sed -n "s/^gdn bench: --cpu 'avx1024' is not a level of this machine; choose one of \(ref[a-z0-9, ]*\)\$/\1/p" "$dir/err")
if [ $status -eq 2 ] && [ ! -s "$dir/out" ] && [ -n "$levels" ]; then ok; else fail "gdn bench --ops --cpu avx1024"; fi
for level in avx2 avx512 neon; do
    case ", $levels," in
    *", $level,"*) ;;
    *) refuses "gdn bench: --cpu '$level' is not a level of this machine; choose one of $levels" bench --ops --cpu $level ;;
    esac
done

# A short run: every level has its lines, in the table and in CSV; only CSV lines in CSV.
short="bench --ops --op gates --seconds 0.02"
for level in $(echo "$levels" | tr -d ,); do
    prints "^gates +step +$level +1 +1 +32 +[0-9.]+ +[0-9.]+ " $short
    prints "^gates,sequence,$level,1,7,5,[0-9.]+,[0-9.]+,,[0-9.]+,,[0-9.]*,,\$" $short --tokens 7 --heads 5 --csv --cpu "$level"
    if [ "$(awk -F, '{ print NF }' "$dir/out" | sort -u)" = 14 ]; then ok; else fail "every CSV line has 14 fields"; fi
done
prints '^delta +hot +ref +1 +1 +3 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ ' \
    bench --ops --op delta --heads 3 --tokens 1 --cpu ref --seconds 0.02
prints '^rollback +keep 15 +[a-z0-9]+ +1 +16 +3 .* of verify$' bench --ops --op round --heads 1 --seconds 0.02

# Whole models: what is wrong in the command line.
list() { printf '%s' "gdn bench: $1 takes 1 to 16 whole numbers from $2 with commas between, not '$3'; see 'gdn bench --help'"; }
for value in '' ',' '5,' ',5' 5,,6 -1 x 1.5 ' 5' 1000000 99999999999999999999 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
    refuses "$(list --pp '0 to 999999' "$value")" bench --pp "$value"
done
for value in 0 257 1,0 a; do refuses "$(list --threads '1 to 256' "$value")" bench --threads "$value"; done
refuses "gdn bench: --tg takes a whole number from 0 to 999999, not '-1'; see 'gdn bench --help'" bench --tg -1
refuses "gdn bench: --piece takes a whole number from 1 to 8192, not '0'; see 'gdn bench --help'" bench --piece 0
refuses "gdn bench: --repeat takes a whole number from 1 to 100, not '101'; see 'gdn bench --help'" bench --repeat 101
refuses "gdn bench: --pp 0 and --tg 0 leave nothing to measure" bench --pp 0 --tg 0
refuses "gdn bench: --csv and --json contradict each other; use one of them" bench --csv --json
refuses "gdn bench: --reuse and --snapshot contradict each other; use one of them" bench --reuse --snapshot
refuses "gdn bench: --reuse has no --csv; use --json" bench --reuse --csv
refuses "gdn bench: --snapshot has no --csv; use --json" bench --snapshot --csv
refuses "gdn bench: --shape 2B and the model 'demo' contradict each other; use one of them" bench demo --shape 2B
refuses "gdn bench: --shape '7B' is not a published shape; choose one of 0.8B, 2B, 4B, 9B, 27B, 35B-A3B" bench --shape 7B
refuses "gdn bench: 4097 tokens in one sequence; this model was made for 4096" bench --pp 4097 --tg 0
refuses "gdn bench: 4097 tokens in one sequence; this model was made for 4096" bench --depth 4090 --tg 7
refuses "gdn bench: compute: this build has no level \"foo\"; leave the level out to get the best one" bench --cpu foo
refuses "gdn bench: unknown option '--op'; see 'gdn bench --help'" bench --op gates
HF_HOME=$dir/nothing cannot "gdn bench: there is no folder 'nothing', and no Hugging Face cache to look in; give the folder of a model" \
    bench nothing
if [ -n "${SAN:-}" ]; then
    echo "skip whole models: the definition alone takes a quarter of an hour under a sanitizer"
    skipped=$((skipped + 1))
    finish
    exit
fi
# The demo model: each thread count has its lines, in this order; numbers stand where there are any, and only there.
few="bench --pp 3,70 --tg 4 --depth 5 --piece 32 --threads 1,2 --repeat 1"
run $few --csv --cpu ref
sed 's/[0-9]*\.[0-9]*/#/g' "$dir/out" >"$dir/lines"
{
    echo "test,level,threads,tokens,depth,tokens_per_s,tokens_per_s_least,tokens_per_s_most,ms_median,gflops,matrix_share,gbytes_per_s,read_share"
    for threads in 1 2; do
        echo "pp,ref,$threads,3,0,#,#,#,#,#,,,"
        echo "pp,ref,$threads,70,0,#,#,#,#,#,,,"
        echo "tg,ref,$threads,4,5,#,#,#,#,,,#,#"
        echo "read,ref,$threads,,,,,,#,,,#,"
    done
} >"$dir/want"
case "$levels" in
ref) # a machine without vectors has no reader
    grep -v '^read' "$dir/want" | sed 's/^\(tg.*\),#$/\1,/' >"$dir/none"
    mv "$dir/none" "$dir/want"
    ;;
esac
if [ $status -eq 0 ] && [ ! -s "$dir/err" ] && cmp -s "$dir/lines" "$dir/want"; then ok; else fail "gdn $few --csv --cpu ref"; fi
best=${levels##*, }
run $few --csv
if [ "$best" = ref ] || [ "$(grep -c "^matrix,$best,[12],,,,,,[0-9.]*,[0-9.]*,,,\$" "$dir/out")" = 2 ]; then
    ok
else
    fail "gdn $few --csv: one line of matrix for each thread count"
fi

number='[0-9.]+'
prints "^gdn [0-9.]+ \(commit [^ ]+\), .*; level $best; huge pages [a-z]+; medians of 1\$" $few
for line in '^model models/demo, 6,858,800 parameters; prompts in pieces of 32$' \
    '^test +thr tokens +depth +tokens/s +least +most +ms +GFLOP/s +% matrix +GB/s +% read$' \
    "^pp +2 +70 +0 +$number +$number +$number +$number +$number +($number|-) +- +-\$" \
    "^tg +1 +4 +5 +$number +$number +$number +$number +- +- +$number +($number|-)\$" \
    '^memory  plan 17\.2 MiB: weights 13\.2 MiB, states 3\.1 MiB, KV 158\.0 KiB, buffers [0-9.]+ KiB$' \
    "^        resident [0-9.]+ MiB beside the program's [0-9.]+ MiB: [-+][0-9.]+ % of the plan; [0-9]+ % on huge pages\$"; do
    if grep -Eq "$line" "$dir/out"; then ok; else fail "gdn $few: a line like $line"; fi
done

# JSON: what CSV has, and where the memory is.
run $few --json --cpu ref
if [ $status -eq 0 ] && [ ! -s "$dir/err" ] && [ "$(grep -c '"test": "pp"' "$dir/out")" = 4 ] &&
    [ "$(grep -c '"tokens_per_s": null' "$dir/out")" = "$(grep -c '"test": "[rm]' "$dir/out")" ] &&
    grep -q '"weight_bytes": 13853568,' "$dir/out" && grep -q '"random_weights": false,' "$dir/out"; then
    ok
else
    fail "gdn $few --json"
fi

# Conversations: what is computed of them is a matter of counting.  Of the first prompt nothing can be reused, of the second
# conversation's first all but its 22 last tokens.
run bench --reuse
for line in '^cold: the index is empty +122960 +4323 +96\.48 +96\.51$' \
    '^  of these, prompts 2 to 40 +120538 +1901 +98\.42 +98\.45$' \
    '^second: another task, the same tools +122960 +1923 +98\.44 +98\.46$' \
    "^  with another last message $number ms \($number % of cold, 22 tokens computed\)\$"; do
    if [ $status -eq 0 ] && grep -Eq "$line" "$dir/out"; then ok; else fail "gdn bench --reuse: a line like $line"; fi
done
prints '^\{"turns": 40, "cold": \{"prompt_tokens": 122960, "computed_tokens": 4323, .*"second": \{.*"computed_tokens": 1923, .*"warm_tokens": 22,' \
    bench --reuse --json
cannot 'gdn bench: --reuse plays prompts of up to 4000 tokens; this model was made for 512' \
    bench --reuse --pp 64 tests/checkpoints/tiny-next

# Snapshots: nothing is left of the files.
for line in 'take a copy' 'save, durable' 'save, cache_dir' load; do
    prints "^$line +$number +$number +$number\$" bench --snapshot --threads 1
done
prints '^\{"state_bytes": 1[0-9]+, "file_bytes": 1[0-9]+, "take": \{"median_ms": .*"load": \{.*"cpu_ms": [0-9.]+\}\}$' bench --snapshot --json
if ls gdn-bench-* >"$dir/left" 2>&1; then fail "gdn bench --snapshot leaves $(cat "$dir/left")"; else ok; fi

# Drafts: nine passes, seven ways to make a text, also of several at once; wrong chances.
drafts='bench --spec --tg 8 --repeat 1 --threads 1'
prints "^   4 +$number +$number +$number +$number\$" $drafts
prints "^        1    auto +$number +$number +$number\$" $drafts
prints "^        3       5 +$number +$number +$number\$" $drafts --sequences 1,3
if [ "$(grep -c '^        [13] ' "$dir/out")" = 14 ]; then ok; else fail "seven lines for each number of sequences"; fi
for value in 0 65 2,,3 x; do refuses "$(list --sequences '1 to 64' "$value")" $drafts "--sequences=$value"; done
prints '^\{"cpu_level": "ref", "threads": 1, "verify": \[\{"rows": 1, .*\{"rows": 9, .*"sequences": 1, "drafts": "auto", .*\}\]\}$' $drafts --json --cpu ref
for chances in 1.5 -1 a 0.5,,1 '0.5,' ''; do
    refuses "gdn bench: --accept takes numbers from 0 to 1 with commas between, not '$chances'" $drafts "--accept=$chances"
done
refuses "gdn bench: --shape 0.8B and the model 'models/demo' contradict each other; use one of them" \
    $drafts --shape 0.8B models/demo

for arguments in --help --version "$short --cpu ref" "$few"; do unwritable $arguments; done
finish
