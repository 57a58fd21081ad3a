#!/bin/sh
# Print the functions that the given public headers declare, one a line, sorted; with --map, as a linker version script.
map=
[ "$1" = --map ] && { map=1; shift; }
names=$(cat "$@" | awk '
    # Take out comments and directives (with their continued lines); what is left ends in semicolons.
    { text = text $0 "\n" }
    END {
        while ((i = index(text, "/*")) > 0) {
            rest = substr(text, i + 2)
            text = substr(text, 1, i - 1) " " substr(rest, index(rest, "*/") + 2)
        }
        n = split(text, lines, "\n")
        for (i = 1; i <= n; i++) {
            if (directive || lines[i] ~ /^[ \t]*#/) { directive = lines[i] ~ /\\$/; continue }
            code = code " " lines[i]
        }
        n = split(code, statements, ";")
        for (i = 1; i <= n; i++)
            if (statements[i] !~ /typedef/ && match(statements[i], /gdn_[a-z0-9_]+\(/))
                print substr(statements[i], RSTART, RLENGTH - 1)
    }' | sort -u)
if [ -n "$map" ]; then
    echo "GDN_0 {"
    echo "global:"
    echo "$names" | sed 's/.*/    &;/'
    echo "local:"
    echo "    *;"
    echo "};"
else
    echo "$names"
fi
