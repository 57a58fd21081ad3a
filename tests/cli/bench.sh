#!/bin/sh
# The command line of `gdn`: exit statuses, what is said where, and a short benchmark.
#     sh tests/cli/bench.sh [path of gdn]
# The words of $short and $arguments are meant to be split:
# shellcheck disable=SC2086
gdn=${1:-${BUILD:-build}/gdn}
[ -x "$gdn" ] || { echo "no program at $gdn: give its path as the argument" && exit 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAIL $1"
    sed 's/^/  stdout: /' "$dir/out"
    sed 's/^/  stderr: /' "$dir/err"
}

# refuses "MESSAGE" ARGUMENTS...: exit status 2, nothing on stdout, exactly that one line on stderr.
refuses() {
    message=$1
    shift
    "$gdn" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    printf '%s\n' "$message" >"$dir/want"
    if [ $status -eq 2 ] && [ ! -s "$dir/out" ] && cmp -s "$dir/err" "$dir/want"; then
        ok
    else
        fail "gdn $* (status $status, want 2 and: $message)"
    fi
}

# prints "PATTERN" ARGUMENTS...: exit status 0, nothing on stderr, a line that matches on stdout.
prints() {
    pattern=$1
    shift
    "$gdn" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    if [ $status -eq 0 ] && [ ! -s "$dir/err" ] && grep -Eq -e "$pattern" "$dir/out"; then
        ok
    else
        fail "gdn $* (status $status, want 0 and a line like: $pattern)"
    fi
}

prints '^usage: gdn VERB' --help
prints '^usage: gdn VERB' -h
prints '^  gdn bench --ops ' --help
prints '^gdn [0-9]+\.[0-9]+\.[0-9]+ \(commit [^ ]+\), CPU level (ref|avx2|avx512|neon), [a-z0-9_]+$' --version
prints '^usage: gdn bench --ops' bench --help
if [ "$("$gdn" --help | wc -l)" -le 24 ] && [ "$("$gdn" bench --help | wc -l)" -le 24 ]; then ok; else fail "help fits a screen"; fi

refuses "gdn: no verb given; see 'gdn --help'"
refuses "gdn: unknown verb 'fly'; see 'gdn --help'" fly
refuses "gdn: unknown verb ''; see 'gdn --help'" ''
refuses "gdn: unknown option '--frob'; see 'gdn --help'" --frob
refuses "gdn: unexpected argument 'now' after --version" --version now
refuses "gdn bench: say what to measure: --ops; see 'gdn bench --help'" bench
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
for option in op level threads heads tokens seconds; do
    refuses "gdn bench: --$option needs a value after it; see 'gdn bench --help'" bench --ops --$option
    refuses "gdn bench: --$option needs a value after it; see 'gdn bench --help'" bench --$option --ops
done
refuses "gdn bench: --op 'foo' is not an operation; choose one of conv_silu, qk_norm, gates, delta, gated_norm, layer, round" \
    bench --ops --op foo

# Which levels there are depends on the machine: those that are not in the list are refused by name.
"$gdn" bench --ops --level avx1024 >"$dir/out" 2>"$dir/err"
status=$?
levels=$(sed -n "s/^gdn bench: --level 'avx1024' is not a level of this machine; choose one of \(ref[a-z0-9, ]*\)\$/\1/p" "$dir/err")
if [ $status -eq 2 ] && [ ! -s "$dir/out" ] && [ -n "$levels" ]; then ok; else fail "gdn bench --ops --level avx1024"; fi
for level in avx2 avx512 neon; do
    case ", $levels," in
    *", $level,"*) ;;
    *) refuses "gdn bench: --level '$level' is not a level of this machine; choose one of $levels" bench --ops --level $level ;;
    esac
done

# A short run: every level has its lines, in the table and in CSV; only CSV lines in CSV.
short="bench --ops --op gates --seconds 0.02"
for level in $(echo "$levels" | tr -d ,); do
    prints "^gates +step +$level +1 +1 +32 +[0-9.]+ +[0-9.]+ " $short
    prints "^gates,sequence,$level,1,7,5,[0-9.]+,[0-9.]+,,[0-9.]+,,[0-9.]*,,\$" $short --tokens 7 --heads 5 --csv --level "$level"
    if [ "$(awk -F, '{ print NF }' "$dir/out" | sort -u)" = 14 ]; then ok; else fail "every CSV line has 14 fields"; fi
done
prints '^delta +hot +ref +1 +1 +3 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ ' \
    bench --ops --op delta --heads 3 --tokens 1 --level ref --seconds 0.02
prints '^rollback +keep 15 +[a-z0-9]+ +1 +16 +3 .* of verify$' bench --ops --op round --heads 1 --seconds 0.02

# Results that cannot be written are a failure, said once.
"$gdn" --help >&- 2>"$dir/err"
status=$?
: >"$dir/out"
if [ $status -eq 1 ] && [ "$(cat "$dir/err")" = "gdn: standard output is closed; nothing to write results to" ]; then
    ok
else
    fail "gdn --help with stdout closed (status $status)"
fi
if [ -w /dev/full ]; then
    for arguments in --help --version "$short --level ref"; do
        "$gdn" $arguments >/dev/full 2>"$dir/err"
        status=$?
        want="gdn: the results could not be written to standard output (No space left on device); they are incomplete"
        if [ $status -eq 1 ] && [ "$(cat "$dir/err")" = "$want" ]; then ok; else fail "gdn $arguments >/dev/full (status $status)"; fi
    done
else
    skipped=$((skipped + 3))
    echo "skip a full standard output, 3 checks: no /dev/full"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
