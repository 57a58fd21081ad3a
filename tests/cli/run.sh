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

# A system message, standard input by its name, the context's end.
gives '66\n' run --quiet --chat --no-think --temperature 0 --system 'Give short and correct answers.' -p "$q"
printf '%s' "$q" >"$dir/in"
gives '66\n' run --quiet --chat --no-think --temperature 0 --system 'Give short and correct answers.' -f -
: >"$dir/in"
run run --context 8 -n 100 --temperature 0 -p 'Once upon a time'
if [ $status -eq 0 ] && [ "$(tail -n 1 "$dir/err")" = 'gdn run: the context of 8 tokens is full (--context)' ]; then
    ok
else
    fail "an answer that fills the context"
fi

# A call of a tool, as text and as JSON; thoughts apart from the text.
tools='[{"type":"function","function":{"name":"bash","description":"Run a shell command","parameters":{"type":"object",
"properties":{"command":{"type":"string","description":"The command"}},"required":["command"]}}}]'
printf '{"messages":[{"role":"user","content":"Run the command pwd"}],"tools":%s}' "$tools" >"$dir/tools.json"
gives '[call bash {"command":"pwd"}]\n' run --quiet --chat --no-think --temperature 0 -f "$dir/tools.json"
# json "PATTERN" ARGUMENTS...: on stdout one line of JSON that matches, nothing on stderr, exit status 0.
json() {
    pattern=$1
    shift
    prints "^\{.*$pattern.*\}\$" run --quiet --json --temperature 0 "$@"
    if [ "$(wc -l <"$dir/out")" -eq 1 ]; then ok; else fail "gdn run --json prints one line"; fi
}
json '"text": "", "reasoning": "", "tool_calls": \[\{"type": "function", "function": \{"name": "bash", "arguments": \{"command": "pwd"\}\}\}\], "finish_reason": "tool_calls", "stop": null' \
    --chat --no-think -f "$dir/tools.json"
json '"text": "1 \* 8 = 8", "reasoning": "1 \* 8 = 8", "tool_calls": \[\], "finish_reason": "stop", "stop": null' \
    --chat --think -p '1 * 8'
json '"text": "", "reasoning": "1 \*", "tool_calls": \[\], "finish_reason": "length"' --chat --think -p '1 * 8' -n 2
json '"prompt_tokens": 39, "cached_tokens": 0, "answer_tokens": 3, "first_token_ms": [0-9.]+, .*"cpu_level": "ref", "threads": 1' \
    --chat --no-think -f "$dir/chat.json" --cpu ref --threads 1
# What was computed before is read from a file, or found in a folder, and the text is the same.
for where in "--state $dir/state" "--cache-dir $dir/cache"; do
    for cached in 0 '3[0-9]'; do
        # shellcheck disable=SC2086
        json "\"text\": \"66\", .*\"prompt_tokens\": 39, \"cached_tokens\": $cached, " \
            --chat --no-think -f "$dir/chat.json" $where
    done
done
run run --chat --no-think --temperature 0 -f "$dir/chat.json" --cache-dir "$dir/cache"
if grep -q '^cached 39 of 39 tokens; prompt 0 tokens' "$dir/err"; then ok; else fail "the summary says what was cached"; fi
head -c 1000 "$dir/state" >"$dir/cut"
cannot "gdn run: $dir/cut: state: the file has 1000 bytes and should have $(wc -c <"$dir/state"); make it again" \
    run --chat --no-think -f "$dir/chat.json" --state "$dir/cut"
if [ "$(wc -c <"$dir/cut")" -eq 1000 ]; then ok; else fail "a file that is refused stays as it is"; fi
cannot "gdn run: cache: /proc/none cannot be made: No such file or directory; name another folder" run -p a --cache-dir /proc/none
# The likeliest token is what greedy picks, and a logprob cannot be above 0.
json '"logprobs": \[\{"id": 21, "piece": "6", "logprob": -([0-9.e-]+), "top": \[\{"id": 21, "piece": "6", "logprob": -\1\}, \{[^]]*\}\]\}, .*"piece": "<\|im_end\|>".*\]' \
    --chat --no-think -f "$dir/chat.json" --logprobs 2
json '"logprobs": \[\{"id": 21, "piece": "6", "logprob": -[0-9.e-]+, "top": \[\]\}' --chat --no-think -f "$dir/chat.json" --logprobs 0

# Stop strings: the one that comes first, within a token and across tokens; what would be said is 1 * 8 = 8.
gives '1 * \n' run --quiet --chat --no-think --temperature 0 -p '1 * 8' --stop '= 8' --stop '8 ='
gives '1\n' run --quiet --chat --no-think --temperature 0 -p '1 * 8' --stop=' * 8' --stop '= 8'
json '"text": "1 \* ", .* "finish_reason": "stop", "stop": "8 ="' --chat --no-think -p '1 * 8' --stop '= 8' --stop '8 ='

# Bias and penalties: a token that is forced, one that is forbidden, one that does not come again.
gives 'AAAA\n' run --quiet --temperature 0 -p 'a' -n 4 --bias 32=1000
gives 'AB\n' run --quiet --temperature 0 -p 'a' -n 2 --bias 32=1000 --bias 33=999 --presence 5
gives 'AAB\n' run --quiet --temperature 0 -p 'a' -n 3 --bias 32=1000 --bias 33=970 --frequency 20
run run --quiet --chat --no-think --temperature 0 -p '1 * 8' --bias 23=-inf
if [ $status -eq 0 ] && ! grep -q 8 "$dir/out"; then ok; else fail "a forbidden token"; fi

# Drafts change nothing but the speed: greedy and sampled text, logprobs, stop strings, the count of tokens and the context's end.
for how in 'off' 'auto' 'lookup' 'mtp' 'mtp --draft 3' 'auto --draft 16'; do
    # shellcheck disable=SC2086 # split into arguments
    for what in '--temperature 0 -n 60' '--temperature 1 --seed 5 -n 60' '--temperature 0 --stop newly -n 60' \
        '--temperature 0 --context 40'; do
        run run --quiet -p 'The function returns a' $what --spec $how
        if [ "$how" = off ]; then cp "$dir/out" "$dir/plain $what"; fi
        if [ $status -eq 0 ] && [ -s "$dir/out" ] && cmp -s "$dir/out" "$dir/plain $what"; then ok; else fail "run $what --spec $how"; fi
    done
done
json '"text": "1 \* 8 = 8".*"drafts": \{"passes": [0-9]+, "made": [1-9][0-9]*, "accepted": [1-9][0-9]*, "speed_up": ([0-9.]+|null)\}' \
    --chat --no-think -p '1 * 8'
run run --temperature 0 -n 100 -p 'The function returns a'
if grep -Eq '; [1-9][0-9]* of [1-9][0-9]* drafts accepted, [0-9.]+ times as fast' "$dir/err"; then ok; else fail "a summary of drafts"; fi
refuses "gdn run: --spec takes auto, lookup, mtp or off, not 'fast'" run -p a --spec fast
refuses "gdn run: --draft and --spec off contradict each other; use one of them" run -p a --spec off --draft 3
refuses "gdn run: --draft takes a whole number from 1 to 16, not '17'; see 'gdn run --help'" run -p a --draft 17

# Ctrl-C: the text so far stays, and the exit status says what happened.
endless='--temperature 0 -p a -n 100000 --bias 4081=-inf --bias 4079=-inf --cpu ref --threads 1'
interrupt() { # ARGUMENTS...: SIGINT when there is text; --json shows none before the end, and gets it once it is caught
    : >"$dir/out"
    # A job of a shell without job control ignores SIGINT, unless a program in between restores it.
    # shellcheck disable=SC2086 # split into arguments
    env --default-signal=INT "$gdn" run "$@" $endless >"$dir/out" 2>"$dir/err" &
    pid=$!
    if [ "$1" = --json ]; then
        until grep -q '^SigCgt:.*[2367abef]$' /proc/$pid/status; do sleep 0.01; done # SIGINT is caught
        sleep 0.5
    fi
    while [ "$1" != --json ] && [ ! -s "$dir/out" ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -INT $pid
    wait $pid
    status=$?
}
interrupt --chat
if [ $status -eq 130 ] && [ -s "$dir/out" ] && grep -q '^prompt .* interrupted$' "$dir/err"; then
    ok
else
    fail "SIGINT (status $status)"
fi
interrupt --json
if [ $status -eq 130 ] && grep -q '^{.*"text": ".*"finish_reason": "interrupted".*}$' "$dir/out"; then
    ok
else
    fail "SIGINT with --json (status $status)"
fi

# The reader goes away: no sentence, and no success, whether SIGPIPE ends the program or is ignored.
for trapped in '-' ''; do
    rm -f "$dir/closed" "$dir/status"
    {
        # shellcheck disable=SC2064 # it is to be expanded now
        trap "$trapped" PIPE
        while [ ! -e "$dir/closed" ]; do sleep 0.01; done
        "$gdn" run --quiet --temperature 0 -p a 2>"$dir/err"
        echo $? >"$dir/status"
    } | {
        exec </dev/null
        : >"$dir/closed"
    }
    while [ ! -s "$dir/status" ]; do sleep 0.01; done
    if [ "$(cat "$dir/status")" -ne 0 ] && [ ! -s "$dir/err" ]; then ok; else fail "a closed pipe (trap '$trapped')"; fi
done

fits_screen run --help
refuses "gdn run: the prompt is empty; give one with -p, -f or standard input" run
refuses "gdn run: -p and -f both give a prompt; use one of them" run -p a -f b
refuses "gdn run: --think and --no-think contradict each other; use one of them" run --chat --think --no-think -p a
refuses "gdn run: --system says how a chat is answered; add --chat" run --system a -p a
refuses "gdn run: --logprobs are a part of what --json prints; add --json" run --logprobs 2 -p a
refuses "gdn run: --bias takes ID=NUMBER, a token's id and what is added to its logit, not '5'" run --bias 5 -p a
refuses "gdn run: --bias takes ID=NUMBER, a token's id and what is added to its logit, not '5=x'" run --bias 5=x -p a
refuses "gdn run: --bias takes ID=NUMBER, a token's id and what is added to its logit, not '5='" run --bias 5= -p a
refuses "gdn run: --stop takes a text that is not empty; leave it out" run --stop '' -p a
refuses "gdn run: --cache-dir takes the name of a folder that is not empty; leave it out" run --cache-dir '' -p a
refuses "gdn run: the messages begin with a system message; leave out --system" run --chat --system a -f "$dir/chat.json"
refuses "gdn run: unknown option '--temprature=1' (did you mean --temperature?); see 'gdn run --help'" run --temprature=1
cannot "gdn run: the prompt has a message (number 1) that is no object with a role" run --chat -p '[1, 2]'
cannot "gdn run: the prompt has a message (number 1) whose content is neither a text nor a list of parts" \
    run --chat -p '[{"role": "user", "content": 5}]'
cannot "gdn run: the prompt has a message (number 2) with a part that is no text; gdn reads text alone" run --chat -p \
    '[{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"type": "image", "image": "a.png"}]}]'
cannot "gdn run: the prompt is not JSON (line 1: ']' expected near end of file)" run --chat -p ' [ {"role": "user", "content": "a"}'
cannot "gdn run: the prompt is not JSON (line 1: string or '}' expected near ''')" run --chat -p "{'messages': []}"
cannot "gdn run: the prompt has a tool (number 1) that is no object" \
    run --chat -p '{"messages": [{"role": "user", "content": "a"}], "tools": [5]}'
cannot "gdn run: the prompt has no messages" run --chat -p '{"messages": []}'
cannot "gdn run: the prompt has tools that are no list" run --chat -p '{"messages": [], "tools": 1}'
cannot "gdn run: the prompt is not UTF-8; convert it first" run -p "$(printf 'caf\351')"
cannot "gdn run: the prompt is not UTF-8; convert it first" run --chat -p "$(printf 'caf\351')"
refuses "gdn run: -n takes a whole number from 1 to 1000000, not '0'; see 'gdn run --help'" run -n 0 -p a
refuses "gdn run: --temperature takes a number from 0 to 100, not 'hot'; see 'gdn run --help'" run --temperature hot -p a
refuses "gdn run: -p needs a value after it; see 'gdn run --help'" run -p
cannot "gdn run: $dir/none cannot be opened: No such file or directory; check the path" run -f "$dir/none"

# A model with one file that is wrong.
cp -r models/demo "$dir/model"
: >"$dir/model/chat_template.jinja"
cannot "gdn run: chat_template.jinja is empty; get it again" run "$dir/model" --chat -p a
echo '{"a": x}' >"$dir/model/tokenizer_config.json"
cannot "gdn run: tokenizer_config.json is not valid JSON: line 1, column 7; mend it or get it again" run "$dir/model" -p a
echo '[]' >"$dir/model/config.json"
cannot "gdn run: config.json holds no JSON object; get it again" run "$dir/model" -p a
cannot 'gdn run: compute: this build has no level "avx1024"; leave the level out to get the best one' run --cpu avx1024 -p a
cannot "gdn run: the prompt has 34 tokens and the context has room for 8; shorten it, or raise --context" \
    run --context 8 --chat --no-think -p 'Help me with this: 957+6. Give only the number. Now.'
unwritable run --quiet --chat --no-think --temperature 0 -p "$q"
unwritable run --quiet --json --temperature 0 -p "$q" -n 2
finish
