#!/bin/sh
# Checks of the source and of the built library in $BUILD; each prints its findings and one line, the last line is
# "N passed, N failed, N skipped".
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
cc=${CC:-cc}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

sources() { find include src tests examples bench -name '*.[ch]' 2>/dev/null | sort; }
repo_files() { git ls-files -co --exclude-standard 2>/dev/null || find . -type f ! -path './.git/*' ! -path './build/*'; }
have() { command -v "$1" >/dev/null 2>&1; }

# check NAME COMMAND...: the command's status decides, its output is shown when it failed.
check() {
    name=$1
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok     $name"
        passed=$((passed + 1))
    else
        echo "FAIL   $name"
        head -n 100 "$log" | cut -c 1-300 | sed 's/^/       | /'
        failed=$((failed + 1))
    fi
}
# check_with TOOL NAME COMMAND...: a skip where the tool is absent.
check_with() {
    tool=$1
    shift
    if have "$tool"; then
        check "$@"
    else
        echo "skip   $1: $tool is not installed"
        skipped=$((skipped + 1))
    fi
}

# ---- source --------------------------------------------------------------------------------------------------------

format() { # prints the lines that clang-format would change
    lines=$(sources | xargs clang-format-14 --dry-run 2>&1 | grep -oE '^[^ :]+:[0-9]+' | sort -t : -k 1,1 -k 2,2n -u)
    [ -z "$lines" ] || { echo "$lines"; return 1; }
}

sizes() {
    { sources; find tools tests -name '*.sh'; } | xargs wc -l |
        awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines, more than 600"; bad = 1 }
             $2 ~ /^src\/(base|kernel|device|state|model)\// { n += $1 }
             END { if (n > 8000) { print "what computes: " n " lines, more than 8000"; bad = 1 } exit bad }'
}

# Folders of somebody's machine; recorded texts may speak of any.  The letters in brackets keep this file from matching itself.
paths() { ! repo_files | grep -v '^tests/golden/.*json$' | xargs grep -InE '(^|[^A-Za-z0-9_.])/([h]ome|[r]oot|[U]sers|[w]ork)/|\.\./[s]hared' --; }

leftovers() { ! sources | xargs grep -nE '\b([T]ODO|[F]IXME|[X]XX)\b|^[ 	]*#[ 	]*if 0'; }

headers() {
    for header in include/gdn/*.h; do
        "$cc" -std=c11 -Wall -Wextra -Werror -Wpedantic -Iinclude -fsyntax-only -x c "$header" || return 1
        if have c++; then
            c++ -std=c++11 -Wall -Wextra -Werror -Wpedantic -Iinclude -fsyntax-only -x c++ "$header" || return 1
        else
            clang++ -std=c++11 -Wall -Wextra -Werror -Wpedantic -Iinclude -fsyntax-only -x c++ "$header" || return 1
        fi
    done
}

# ---- the built libraries -------------------------------------------------------------------------------------------

symbol_names() { # every global symbol of the archives is ours
    nm -g --defined-only "$build/libgdn.a" "$build/libgdn-engine.a" | awk 'NF == 3 && $3 !~ /^gdn_/ { print $3; bad = 1 } END { exit bad }'
}
exports() { # exports LIBRARY HEADER...: it exports the functions of these public headers, neither more nor less
    nm -D --defined-only "$build/$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$log.exported"
    shift
    sh tools/exports.sh "$@" | diff - "$log.exported"
    result=$?
    rm -f "$log.exported"
    return $result
}
imports() { # the library does not print, exit, abort or read the environment
    nm -u "$build/libgdn.a" "$build/libgdn-engine.a" | awk '
        $1 == "U" && $2 ~ /^(_*(v?f?printf|puts|fputs|putchar|perror)(_chk)?|std(out|err)|_?_?_?exit|quick_exit|abort|__assert_fail|(secure_)?getenv|system)$/ {
            print $2; bad = 1
        }
        END { exit bad }'
}
needs_nothing() { # the heart has no other library under it
    ! nm -u "$build/libgdn.a" | grep -E ' (json|utf8proc)_'
}
globals() { # the library has no variables: all that it remembers is in objects that were opened
    objdump -t "$build/libgdn.a" "$build/libgdn-engine.a" | awk '
        /\.o: / { file = $1 }
        NF > 4 && $(NF - 2) ~ /^\.(data|bss|tdata|tbss)/ && $(NF - 2) !~ /^\.data\.rel\.ro/ && $(NF - 1) !~ /^0+$/ {
            print file, $NF; bad = 1
        }
        END { exit bad }'
}

# ---- analysers -----------------------------------------------------------------------------------------------------

run_cppcheck() { # uninitvar does not see that a loop runs at least once; the compilers and MemorySanitizer do better
    cppcheck --quiet --std=c11 --error-exitcode=1 --enable=warning,performance,portability --suppress=missingIncludeSystem \
        --suppress=uninitvar --template='{file}:{line}: {id}: {message}' -Isrc -Iinclude -j 2 src examples
}

# One file, with the instruction set that its name asks for; a script for the shells that xargs starts.
# shellcheck disable=SC2016
tidy_one='
case $1 in
*avx512.c) isa="-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq" ;;
*avx2.c) isa="-mavx2 -mfma -mf16c" ;;
esac
! clang-tidy-14 --quiet "$1" -- -std=c11 -D_GNU_SOURCE -Isrc -Iinclude $isa 2>/dev/null | grep -E "(error|warning): "'
run_tidy() { find src examples -name '*.c' ! -name '*neon.c' | sort | xargs -P 2 -n 1 sh -c "$tidy_one" tidy; }

python_syntax() { # compiles nothing to disk
    repo_files | grep '\.py$' | xargs python3 -c 'import sys
for name in sys.argv[1:]: compile(open(name, encoding="utf-8").read(), name, "exec")'
}

run_shellcheck() { { find tools tests -name '*.sh'; echo .ci/run; } | xargs shellcheck; }

check_with clang-format-14 format format
check layers sh tools/check_layers.sh
check sizes sizes
check "no machine paths" paths
check "no leftovers" leftovers
check "headers alone, C and C++" headers
check "symbol names" symbol_names
check "exported functions of libgdn" exports libgdn.so include/gdn/delta.h include/gdn/status.h
check "exported functions of libgdn-engine" exports libgdn-engine.so include/gdn/gdn.h
check "imported functions" imports
check "no other library under libgdn" needs_nothing
check "no variables" globals
check_with cppcheck cppcheck run_cppcheck
check_with clang-tidy-14 clang-tidy run_tidy
check_with shellcheck shellcheck run_shellcheck
check_with python3 "Python syntax" python_syntax
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
