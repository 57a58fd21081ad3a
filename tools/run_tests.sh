#!/bin/sh
# Run each argument as a command, show what failed or was skipped, add up the counts, and end with the one line
# "N passed, N failed, N skipped".  An argument "skip WHAT: REASON" is a skip that the caller has decided on.
#
# Counts come from cmocka's summary and from closing lines "[NAME: ]N passed, N failed[, N skipped]".  A program that exits
# non-zero without counting a failure (a crash, a hang, a failed set-up) is one failure, and so is one that counts nothing.
TIME_LIMIT=${TIME_LIMIT:-900}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

count() {
    awk '
        /^\[  PASSED  \] [^ ]*:? ?[0-9]+ test\(s\)/  { match($0, /[0-9]+ test/); p += substr($0, RSTART) + 0 }
        /^\[  FAILED  \] .*[0-9]+ test\(s\), listed/ { match($0, /[0-9]+ test/); f += substr($0, RSTART) + 0 }
        /^\[  SKIPPED \] .*[0-9]+ test\(s\), listed/ { match($0, /[0-9]+ test/); s += substr($0, RSTART) + 0 }
        /^([A-Za-z0-9_ -]+: )?[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
            sub(/^.*: /, "")
            n = split($0, word, " ")
            p += word[1]; f += word[3]; s += n > 4 ? word[5] : 0
        }
        END { print p + 0, f + 0, s + 0 }' "$1"
}

for test in "$@"; do
    case $test in
    "skip "*)
        echo "skip   ${test#skip }"
        skipped=$((skipped + 1))
        continue
        ;;
    esac
    start=$(date +%s)
    # A test is a command with its arguments: it is meant to be split.
    # shellcheck disable=SC2086
    timeout "$TIME_LIMIT" $test >"$log" 2>&1 </dev/null
    status=$?
    seconds=$(($(date +%s) - start))
    read -r p f s <<EOF
$(count "$log")
EOF
    why=
    if [ $((p + f + s)) -eq 0 ]; then why=" (ran no test)"; fi
    case $status in
    0) ;;
    124) why=" (no end after $TIME_LIMIT s)" ;;
    *) [ "$f" -gt 0 ] || why=" (exit status $status)" ;;
    esac
    [ -z "$why" ] || f=$((f + 1))
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        echo "FAIL   $test$why: $p passed, $f failed, $s skipped, $seconds s"
        tail -n 200 "$log" | sed 's/^/       | /'
    else
        echo "ok     $test: $p passed, $s skipped, $seconds s"
        [ "$s" -eq 0 ] || grep -iE '^skip|^[^,]+ skipped: |^\[  SKIPPED \] [a-z_0-9]+$' "$log" | sort -u | sed 's/^/       | /'
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
