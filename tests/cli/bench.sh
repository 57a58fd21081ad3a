#!/bin/sh
# The command line of `gdn`: exit statuses, what is said where, and a short benchmark.
#     sh tests/cli/bench.sh [path of gdn]
# The words of $short and $arguments are meant to be split:
# shellcheck disable=SC2086
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"

prints '^usage: gdn VERB' --help
prints '^usage: gdn VERB' -h
prints '^  gdn bench --ops ' --help
prints '^gdn [0-9]+\.[0-9]+\.[0-9]+ \(commit [^ ]+\), CPU level (ref|avx2|avx512|neon), [a-z0-9_]+$' --version
prints '^usage: gdn bench --ops' bench --help
fits_screen --help
fits_screen bench --help

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
refuses "gdn bench: --op 'foo' is not an operation; choose one of conv_silu, qk_norm, gates, delta, gated_norm, matmul, layer, round" \
    bench --ops --op foo

# Which levels there are depends on the machine: those that are not in the list are refused by name.
run bench --ops --level avx1024
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

for arguments in --help --version "$short --level ref"; do unwritable $arguments; done
finish
