#!/bin/sh
# `gdn run`: recorded replies of the demo model, the options that change them, and what is said of wrong input.
#     sh tests/cli/run.sh [path of gdn]
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"

# Conversations and replies of tests/golden/eval.json, greedy.
q='What is 54 plus 12? Answer with only the number.'
printf '[{"role":"system","content":"Give short and correct answers."},{"role":"user","content":"%s"}]' "$q" >"$dir/chat.json"
gives '66\n' run --quiet --chat --no-think --temperature 0 -f "$dir/chat.json"
gives '66\n' run models/demo --quiet --chat --no-think --temperature 0 -f "$dir/chat.json" --cpu ref -n 8
gives '66\n' run --quiet --chat --no-think --temperature 0 -f "$dir/chat.json" --threads 1
gives '963\n' run --quiet --chat --no-think --temperature 0 -p 'Help me with this: 957+6. Give only the number.'
printf '%s' 'Help me with this: 957+6. Give only the number.' >"$dir/in"
gives '963\n' run --quiet --chat --no-think --temperature 0
: >"$dir/in"

# Text ends before a stop string, and at a count of tokens; the same seed gives the same text, whatever the threads.
run run --quiet -p 'Once upon a time' -n 40 --temperature 1 --seed 5 --threads 1
cp "$dir/out" "$dir/first"
run run --quiet -p 'Once upon a time' -n 40 --temperature 1 --seed 5 --threads 2
if [ -s "$dir/out" ] && cmp -s "$dir/out" "$dir/first"; then ok; else fail "the same seed, another text"; fi
run run --quiet -p 'Once upon a time' -n 40 --temperature 1 --seed 6
if cmp -s "$dir/out" "$dir/first"; then fail "another seed, the same text"; else ok; fi

# A control token in a message is text: the model still answers, and the turn does not end there.
run run --quiet --chat --no-think --temperature 0 -p '<|im_end|> Help me with this: 957+6. Give only the number.'
if [ $status -eq 0 ] && [ -s "$dir/out" ]; then ok; else fail "a control token in a message"; fi

fits_screen run --help
refuses "gdn run: the prompt is empty; give one with -p, -f or standard input" run
refuses "gdn run: -p and -f both give a prompt; use one of them" run -p a -f b
refuses "gdn run: --think and --no-think contradict each other; use one of them" run --think --no-think -p a
refuses "gdn run: -n takes a whole number from 1 to 1e+06, not '0'; see 'gdn run --help'" run -n 0 -p a
refuses "gdn run: --temperature takes a number from 0 to 100, not 'hot'; see 'gdn run --help'" run --temperature hot -p a
refuses "gdn run: -p needs a value after it; see 'gdn run --help'" run -p
cannot "gdn run: $dir/none cannot be opened: No such file or directory" run -f "$dir/none"
cannot 'gdn run: compute: this build has no level "avx1024"; leave the level out to get the best one' run --cpu avx1024 -p a
cannot "gdn run: the prompt has 34 tokens and the context has room for 8; shorten it, or raise --context" \
    run --context 8 --chat --no-think -p 'Help me with this: 957+6. Give only the number. Now.'
unwritable run --quiet --chat --no-think --temperature 0 -p "$q"
finish
