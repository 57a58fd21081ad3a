# What the tests of the command line share: `. tests/support/cli.sh`, checks, finish.  $gdn is the program, $dir a folder that
# goes away at the end.
# shellcheck shell=sh
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

# run ARGUMENTS...: what it writes goes to out and err, and its exit status to $status.  Standard input is $dir/in.
: >"$dir/in"
run() {
    "$gdn" "$@" <"$dir/in" >"$dir/out" 2>"$dir/err"
    status=$?
}

# ends STATUS "MESSAGE" ARGUMENTS...: this exit status, nothing on stdout, exactly that one line on stderr.
ends() {
    want=$1 message=$2
    shift 2
    run "$@"
    printf '%s\n' "$message" >"$dir/want"
    if [ $status -eq "$want" ] && [ ! -s "$dir/out" ] && cmp -s "$dir/err" "$dir/want"; then
        ok
    else
        fail "gdn $* (status $status, want $want and: $message)"
    fi
}

# A command line that is wrong; a command that cannot be done.
refuses() { ends 2 "$@"; }
cannot() { ends 1 "$@"; }

# prints "PATTERN" ARGUMENTS...: exit status 0, nothing on stderr, a line that matches on stdout.
prints() {
    pattern=$1
    shift
    run "$@"
    if [ $status -eq 0 ] && [ ! -s "$dir/err" ] && grep -Eq -e "$pattern" "$dir/out"; then
        ok
    else
        fail "gdn $* (status $status, want 0 and a line like: $pattern)"
    fi
}

# gives "TEXT" ARGUMENTS...: exit status 0, nothing on stderr, on stdout what printf makes of TEXT and nothing else.
gives() {
    # The text is a format: its backslashes are escapes.
    # shellcheck disable=SC2059
    printf "$1" >"$dir/want"
    shift
    run "$@"
    if [ $status -eq 0 ] && [ ! -s "$dir/err" ] && cmp -s "$dir/out" "$dir/want"; then
        ok
    else
        fail "gdn $* (status $status, want 0 and: $(cat "$dir/want"))"
    fi
}

# fits_screen ARGUMENTS...: at most 24 lines.
fits_screen() {
    run "$@"
    if [ $status -eq 0 ] && [ "$(wc -l <"$dir/out")" -le 24 ]; then ok; else fail "gdn $* fits a screen"; fi
}

# unwritable ARGUMENTS...: results that cannot be written are a failure, said once.
unwritable() {
    : >"$dir/out"
    "$gdn" "$@" >&- 2>"$dir/err"
    status=$?
    if [ $status -eq 1 ] && [ "$(cat "$dir/err")" = "gdn: standard output is closed; nothing to write results to" ]; then
        ok
    else
        fail "gdn $* with stdout closed (status $status)"
    fi
    if [ -w /dev/full ]; then
        "$gdn" "$@" >/dev/full 2>"$dir/err"
        status=$?
        want="gdn: the results could not be written to standard output (No space left on device); they are incomplete"
        if [ $status -eq 1 ] && [ "$(cat "$dir/err")" = "$want" ]; then ok; else fail "gdn $* >/dev/full (status $status)"; fi
    else
        skipped=$((skipped + 1))
        echo "skip a full standard output: no /dev/full"
    fi
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
}
