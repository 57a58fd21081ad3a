#!/bin/sh
# `gdn chat` from a pipe and at a terminal: recorded replies of the demo model, the commands, the files, and what is said of
# wrong input.
#     sh tests/cli/chat.sh [path of gdn]
# shellcheck source=tests/support/cli.sh disable=SC1091,SC2154
. "$(dirname "$0")/../support/cli.sh"
HOME=$dir XDG_STATE_HOME=$dir/state
export HOME XDG_STATE_HOME

# says "INPUT" "TEXT" STATUS "MESSAGES" ARGUMENTS...: with this input, what printf makes of TEXT on stdout, this exit status and
# exactly these messages on stderr.
says() {
    # The texts are formats: their backslashes are escapes.
    # shellcheck disable=SC2059
    { printf "$1" >"$dir/in" && printf "$2" >"$dir/want" && printf "$4" >"$dir/messages"; }
    want=$3 input=$1
    shift 4
    run chat --temperature 0 "$@"
    if [ $status -eq "$want" ] && cmp -s "$dir/out" "$dir/want" && cmp -s "$dir/err" "$dir/messages"; then
        ok
    else
        fail "gdn chat $*, given $input (status $status, want $want, $(cat "$dir/want"), $(cat "$dir/messages"))"
    fi
}

# Conversations and replies of tests/golden/eval.json, greedy; what the model must remember was said in the first turn.
q='What is 54 plus 12? Answer with only the number.'
says "$q\n" '66\n' 0 '' --quiet --no-think --system 'Give short and correct answers.'
says "$q" '66\n' 0 '' --quiet --no-think --system 'Give short and correct answers.'
says "/system Give short and correct answers.\n\n$q\r\n/exit\n$q\n" '66\n' 0 '' --quiet --no-think
says '1 * 8\n' '1 * 8 = 8\n' 0 '' --quiet --think
says '/think on\n1 * 8\n' '1 * 8 = 8\n' 0 '' --quiet --no-think
remember='Remember the number 96.\nwhat is the capital city of Greece\nWhat was the number, please?\n'
replies='I will remember the number 96.\nThe capital of Greece is Athens.\n96\n'
says "$remember" "$replies" 0 '' --quiet --no-think

# A command that the quotes make a message, lines that they hold together, and a message without an end.
contents() { sed -n 's/^ *"content": "\(.*\)",*$/\1/p' "$1"; }
says '"""/exit\n\tnow"""\n"""/help"""\n/save '"$dir/quoted.json"'\n' '\n\n' 0 '' --quiet --no-think -n 1 --bias 4081=1000
if [ "$(contents "$dir/quoted.json")" = '/exit\n\tnow

/help' ]; then ok; else fail "quotes: $(contents "$dir/quoted.json")"; fi
says '"""abc\ndef' '' 1 'gdn chat: the input ended inside a message that """ began; it was not sent\n' --quiet

# What was saved is what was said, and a conversation goes on where it was loaded, also from a list and with tools.
says "Remember the number 96.\n/save $dir/c.json\n" 'I will remember the number 96.\n' 0 '' --quiet --no-think
cat >"$dir/saved" <<'END'
{
  "messages": [
    {
      "role": "user",
      "content": "Remember the number 96."
    },
    {
      "role": "assistant",
      "content": "I will remember the number 96."
    }
  ]
}
END
if cmp -s "$dir/c.json" "$dir/saved"; then ok; else fail "/save wrote $(cat "$dir/c.json")"; fi
says "/load ~/c.json\nwhat is the capital city of Greece\nWhat was the number, please?\n/save $dir/c.json\n" \
    'The capital of Greece is Athens.\n96\n' 0 '' --quiet --no-think
if [ "$(grep -c role "$dir/c.json")" -eq 6 ]; then ok; else fail "/save over an older conversation"; fi

# What was computed comes back with the messages, so that the next answer computes the new message alone; a state that is missing,
# damaged or of something else costs only that, and is said.
printf '<|im_start|>user\nWhat was the number, please?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n' >"$dir/turn"
turn=$("$gdn" tokenize --special -f "$dir/turn" | wc -w)
# computes TOKENS "NOTICE": after /load the next answer computes so many tokens of its prompt; what loading said matches.
computes() {
    printf '/load %s\nWhat was the number, please?\n' "$dir/d.json" >"$dir/in"
    run chat --temperature 0 --no-think
    if [ $status -eq 0 ] && [ "$(cat "$dir/out")" = 96 ] && sed -n 1p "$dir/err" | grep -Eq "^4 messages loaded from $dir/d.json, [0-9]+ tokens, $2\$" &&
        sed -n 2p "$dir/err" | grep -Eq "^(cached [0-9]+ of [0-9]+ tokens; )?prompt $1 tokens"; then ok; else fail "/load with a state: $1, $2"; fi
}
says "Remember the number 96.\nwhat is the capital city of Greece\n/save $dir/d.json\n" \
    'I will remember the number 96.\nThe capital of Greece is Athens.\n' 0 '' --quiet --no-think
computes "$turn" '[1-9][0-9]* of them computed'
if [ "$(stat -c %a "$dir/d.json" "$dir/d.json.state" | uniq)" = 600 ]; then ok; else fail "a state is as private as the messages"; fi
cp "$dir/d.json.state" "$dir/good"
all=$(($(sed -n 's/^cached [0-9]* of \([0-9]*\) tokens.*/\1/p' "$dir/err")))
head -c 100000 "$dir/good" >"$dir/d.json.state"
computes $all "to be computed since $dir/d.json.state: state: the file has 100000 bytes and should have [0-9]+; make it again"
{ head -c 300 "$dir/good" && printf x && tail -c +302 "$dir/good"; } >"$dir/d.json.state"
computes $all "to be computed since $dir/d.json.state: state: the file is damaged; make it again"
cp "$dir/c.json.state" "$dir/d.json.state"
computes $all "to be computed since $dir/d.json.state is of another conversation"
rm "$dir/d.json.state"
computes $all "to be computed since there is no $dir/d.json.state"
printf 'mine\n' >"$dir/d.json.state"
computes $all "to be computed since $dir/d.json.state: state: 5 bytes are too few for a saved sequence; make it again"
echo "/load $dir/d.json
/save $dir/d.json" >"$dir/in"
run chat
if [ "$(sed -n 2p "$dir/err")" = "4 messages saved in $dir/d.json, not what is computed of them: $dir/d.json.state exists and is no state; \
it was left as it is" ] && [ "$(cat "$dir/d.json.state")" = mine ]; then ok; else fail "/save over another state"; fi
cp "$dir/good" "$dir/d.json.state" # a conversation that goes on, and one whose thoughts the template takes out
says "/load $dir/d.json\nWhat was the number, please?\n/save $dir/e.json\n" '96\n' 0 '' --quiet --no-think
says "/load $dir/e.json\n/save $dir/e.json\n/load $dir/e.json\nWhat was the number, please?\n" '96\n' 0 '' --quiet --no-think
echo '[{"role":"user","content":"What is 2+3?"},{"role":"assistant","content":"5","reasoning_content":"Two and three are five."}]' >"$dir/t.json"
printf '/load %s\n/save %s\n/load %s\nWhat was the number, please?\n' "$dir/t.json" "$dir/t.json" "$dir/t.json" >"$dir/in"
run chat --temperature 0 --no-think
if [ $status -eq 0 ] && tail -n 1 "$dir/err" | grep -q "^cached [0-9]* of [0-9]* tokens; prompt $turn tokens"; then ok; else fail "a state without thoughts"; fi

echo '[{"role":"user","content":"Remember the number 96."}]' >"$dir/list.json"
says "/load $dir/list.json\n/regen\n/regen\nwhat is the capital city of Greece\nWhat was the number, please?\n" \
    'I will remember the number 96.\nI will remember the number 96.\nThe capital of Greece is Athens.\n96\n' 0 '' --quiet --no-think
says "/load $dir/list.json\n/reset\n/regen\n" '' 1 'gdn chat: there is nothing to answer yet; write a message\n' --quiet
cat >"$dir/tools.json" <<'END'
{"messages": [{"role": "user", "content": "Run the command pwd"}],
 "tools": [{"type": "function", "function": {"name": "bash", "description": "Run a shell command", "parameters": {"type":
 "object", "properties": {"command": {"type": "string", "description": "The command"}}, "required": ["command"]}}}]}
END
says "/load $dir/tools.json\n/regen\n/save $dir/called.json\n" '[call bash {"command":"pwd"}]\n' 0 '' --quiet --no-think
if [ "$(tr -d ' \n' <"$dir/called.json" | grep -c '"content":"","tool_calls":\[{"type":"function","function":{"name":"bash","arguments":{"command":"pwd"}}}\]')" = 1 ]; then
    ok
else
    fail "/save of a call wrote $(cat "$dir/called.json")"
fi

# Wrong files: the conversation and the files stay as they were.
echo '{"a": 1}' >"$dir/other.json"
echo '[{"role":"user","content":"a"},{"role":"tool"}]' >"$dir/bare.json"
echo '[{"role":"user","content":"a"},{"role":"system","content":"b"}]' >"$dir/order.json"
echo '[{"role":' >"$dir/cut.json"
same='; the conversation is as it was'
for line in "other.json is neither a list of messages nor an object with one$same" \
    "bare.json has a message (number 2) without content$same" \
    "cut.json is not JSON (line 2: unexpected token near end of file)$same" \
    "none.json cannot be opened: No such file or directory; check the path"; do
    says "/load $dir/${line%% *}\n" '' 1 "gdn chat: $dir/$line\n" --quiet
done
says "/load $dir/order.json\n" '' 1 \
    "gdn chat: $dir/order.json: chat template, line 49: The system message must come first.$same\n" --quiet
says "Hello\n/save $dir/other.json\n" "$(printf 'Hello\n' | "$gdn" chat --quiet --temperature 0 --no-think)\n" 1 \
    "gdn chat: $dir/other.json exists and is not a conversation; it was left as it is, name another file\n" --quiet --no-think
if [ "$(cat "$dir/other.json")" = '{"a": 1}' ]; then ok; else fail "/save over another file"; fi
says "/save $dir\n" '' 1 "gdn chat: $dir is a folder; name a file\n" --quiet
says "/save $dir/no/c.json\n" '' 1 "gdn chat: $dir/no/c.json cannot be written: No such file or directory\n" --quiet
if [ -w /dev/full ]; then
    says '/save /dev/full\n' '' 1 \
        'gdn chat: /dev/full exists and is not a conversation; it was left as it is, name another file\n' --quiet
fi

# A full context and a cut-off answer: the turn before is kept, what comes after works.
says "Remember the number 96.\nwhat is the capital city of Greece\n/save $dir/short.json\n" 'I will\nThe capital\n' 0 '' \
    --quiet --no-think -n 2
if [ "$(contents "$dir/short.json" | tail -n 3)" = 'I will
what is the capital city of Greece
The capital' ]; then ok; else fail "cut-off answers: $(contents "$dir/short.json")"; fi
echo Hello >"$dir/in"
run chat --no-think -n 2 --temperature 0
if [ "$(sed 1d "$dir/err")" = \
    'cut off after 2 tokens (-n); what the model said so far stays in the conversation' ]; then ok; else fail "a cut-off answer"; fi
long='one two three four five six seven eight nine ten eleven twelve'
says "$long\n" '' 1 "gdn chat: the conversation would have 34 tokens and the context has room for 16; it is as it was before: write \
less, /save it and begin another one with /reset, or start with --context\n" --quiet --no-think --context 16

# Wrong messages and commands.
says 'caf\351\n' '' 1 'gdn chat: the message is not UTF-8; it was not sent\n' --quiet
says '/rest\n' '' 1 'gdn chat: unknown command /rest (did you mean /reset?); /help lists them, and """ around a message makes it none\n' --quiet
says '/usr/bin\n' '' 1 'gdn chat: unknown command /usr/bin; /help lists them, and """ around a message makes it none\n' --quiet
says '/think maybe\n' '' 1 'gdn chat: /think takes on or off\n' --quiet
says '/load\n' '' 1 'gdn chat: /load needs the name of a file after it\n' --quiet
says '/reset all\n' '' 1 'gdn chat: /reset takes nothing after it\n' --quiet
says '\n  \n' '' 0 '' --quiet
says '' '' 0 '' --quiet

: >"$dir/in"
fits_screen chat --help
for verb in '' run chat info tokenize; do
    # shellcheck disable=SC2086 # without a verb there is no argument
    run $verb --help
    if awk 'length > 80 { exit 1 }' "$dir/out"; then ok; else fail "gdn $verb --help has lines of more than 80 columns"; fi
done
ends 2 "gdn: unknown verb 'chta' (did you mean chat?); see 'gdn --help'" chta
ends 2 "gdn: unknown verb 'frobnicate'; see 'gdn --help'" frobnicate
ends 2 "gdn: unknown option '--versoin' (did you mean --version?); see 'gdn --help'" --versoin
refuses "gdn chat: unknown option '--sistem' (did you mean --system?); see 'gdn chat --help'" chat --sistem a
refuses "gdn chat: --think and --no-think contradict each other; use one of them" chat --think --no-think
cannot "gdn chat: there is no folder 'none', and no Hugging Face cache to look in; give the folder of a model" chat none
printf '%s\n' "$q" >"$dir/in"
unwritable chat --quiet --no-think <"$dir/in"

# At a terminal.
if command -v "${PYTHON:-python3}" >/dev/null 2>&1; then
    "${PYTHON:-python3}" tests/cli/chat_terminal.py "$gdn" "$dir" >"$dir/out" 2>"$dir/err"
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$dir/out")
    [ -n "$counts" ] || counts='0 1'
    passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
    [ "${counts#* }" = 0 ] || cat "$dir/out" "$dir/err"
else
    skipped=$((skipped + 1))
    echo "skip the terminal: there is no ${PYTHON:-python3}"
fi
finish
