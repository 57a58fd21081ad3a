#!/bin/sh
# The direction of includes: a folder of src/ uses itself and the folders before it in this list.  Public headers and
# examples use public headers only; the oracle, which judges src/, and what it stands on use nothing of it.
order="base format kernel cuda device state model text engine server cli"
cd "$(dirname "$0")/.." || exit 2
# shellcheck disable=SC2046 # file names here have no spaces
awk -v order="$order" '
BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\""); target = quoted[2]
    split(target, to, "/"); split(FILENAME, from, "/")
    if (from[1] == "src") ok = to[1] == "gdn" || (to[1] in rank && from[2] in rank && rank[to[1]] <= rank[from[2]])
    else if (from[1] == "tests") ok = to[1] == from[2] || to[1] == "support" || to[1] == "gdn"
    else ok = to[1] == "gdn"
    seen++
    if (!ok) { printf "%s:%d: may not include \"%s\"\n", FILENAME, FNR, target; bad++ }
}
END { printf "%d includes, %d of them wrong\n", seen, bad; exit bad != 0 }
' $(find src include examples tests/oracle tests/support -name '*.[ch]' -o -name '*.cu' 2>/dev/null | sort)
