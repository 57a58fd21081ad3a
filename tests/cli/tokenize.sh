#!/bin/sh
# `gdn tokenize`: the ids that were recorded of Hugging Face's tokenizers, the way back, and what is said of wrong input.
#     sh tests/cli/tokenize.sh [path of gdn]
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"
end='<|im_end|>'

# The recordings, as far as their texts have no escapes: all ids of one line, both ways.
tr '}' '\n' <tests/golden/tokenizer.json |
    sed -n 's/^.*{"text":"\([^"\\]*\)","ids":\[\([0-9,]*\)\],"decoded":"\([^"\\]*\)"$/\2	\1	\3/p' >"$dir/recorded"
tab=$(printf '\t')
lines=0
while IFS= read -r line; do
    ids=${line%%"$tab"*} line=${line#*"$tab"}
    text=${line%%"$tab"*} decoded=${line#*"$tab"}
    spaced=$(echo "$ids" | tr ',' ' ')
    lines=$((lines + 1))
    run tokenize --special "-p=$text"
    if [ $status -eq 0 ] && [ "$(cat "$dir/out")" = "$spaced" ]; then ok; else fail "gdn tokenize --special -p '$text', want $spaced"; fi
    run tokenize "--decode=$ids"
    printf '%s' "$decoded" >"$dir/want"
    if [ $status -eq 0 ] && cmp -s "$dir/out" "$dir/want"; then ok; else fail "gdn tokenize --decode '$ids', want $decoded"; fi
done <"$dir/recorded"
if [ $lines -ge 90 ]; then ok; else fail "only $lines recordings were read"; fi

# The text from an argument, a file or standard input: the same ids.
gives '3360 11 3647 0\n' tokenize -p 'Hello, world!'
gives '3360 11 3647 0\n' tokenize models/demo -p 'Hello, world!'
gives '3360 11 3647 0\n' tokenize -p 'Hello, world!' models/demo/tokenizer.json
printf 'Hello, world!' >"$dir/in"
gives '3360 11 3647 0\n' tokenize
gives '3360 11 3647 0\n' tokenize -f "$dir/in"
: >"$dir/in"
gives '\n' tokenize
gives '[]\n' tokenize --json
gives '\n' tokenize -p ''

# What looks like a control token is text, unless it is asked to be one; the text comes back either way.
gives '64 4081 65\n' tokenize --special -p "a${end}b"
run tokenize -p "a${end}b"
ids=$(cat "$dir/out")
case " $ids " in
*" 4081 "* | *" "[0-9]" ") fail "gdn tokenize -p 'a${end}b' makes a control token" ;;
*) ok ;;
esac
gives "a${end}b" tokenize --decode "$ids"
gives "a${end}b" tokenize --decode '64 4081 65'

# Pieces; a NUL, an invalid byte, half a character.
gives '[{"id": 64, "piece": "a"},\n {"id": 127, "piece": "\357\277\275", "bytes": [195]},\n {"id": 102, "piece": "\357\277\275", "bytes": [169]}]\n' \
    tokenize --json -p "$(printf 'a\303\251')"
gives '[{"id": 4081, "piece": "<|im_end|>"}]\n' tokenize --json --special -p "$end"
printf 'a\000b' >"$dir/in"
run tokenize
ids=$(cat "$dir/out")
gives 'a\000b' tokenize --decode "$ids"
gives '"a\\u0000b"\n' tokenize --json --decode "$ids"
printf 'a\377b' >"$dir/in"
run tokenize
gives 'a\357\277\275b' tokenize --decode "$(cat "$dir/out")"
: >"$dir/in"
gives '\357\277\275' tokenize --decode 127
gives '' tokenize --decode ''
gives 'aa' tokenize --decode ' 64,
64 '

# Wrong command lines and files.
refuses "gdn tokenize: -p and -f are two texts; give one of them" tokenize -p a -f b
refuses "gdn tokenize: --decode takes ids instead of a text; leave out -p" tokenize --decode 1 -p a
refuses "gdn tokenize: --decode takes ids instead of a text; leave out -f" tokenize --decode 1 -f a
refuses "gdn tokenize: --decode takes ids instead of a text; leave out --special" tokenize --decode 1 --special
for word in x -1 1.5 0x1 '[1]'; do
    refuses "gdn tokenize: --decode takes whole numbers separated by spaces or commas, not '$word'" tokenize --decode "1 $word"
done
for id in 4096 99999999999999999999; do
    refuses "gdn tokenize: --decode: $id is no token of this model, whose ids end at 4095" tokenize --decode "1,$id"
done
for option in -p -f --decode; do
    refuses "gdn tokenize: $option needs a value after it; see 'gdn tokenize --help'" tokenize $option
done
refuses "gdn tokenize: unexpected argument 'more'; see 'gdn tokenize --help'" tokenize models/demo more
cannot "gdn tokenize: $dir/none cannot be opened: No such file or directory; check the path" tokenize -f "$dir/none"
cannot "gdn tokenize: $dir cannot be read: Is a directory" tokenize -f "$dir"
run tokenize tests/checkpoints/tiny-moe -p a
if [ $status -eq 1 ] && [ ! -s "$dir/out" ] && grep -q '^gdn tokenize: .*tokenizer.json' "$dir/err"; then ok; else fail "a model without a tokenizer"; fi
prints '^usage: gdn tokenize ' tokenize --help
fits_screen tokenize --help
unwritable tokenize -p a
unwritable tokenize -p a --json
unwritable tokenize --decode 64
finish
