#!/bin/sh
# Where the result goes: standard output, -o, failing writes, colour.
. "$(dirname "$0")/tap.sh"

list() { "$VRAMPLAN" list gpus --format csv "$@"; }
out=$dir/result.csv
run list gpus --format csv
cp "$dir/out" "$dir/want"

# --- failing writes ---
list >&- 2>"$dir/err"
code=$?
ok "closed standard output" code_is 4
ok "closed standard output is told" err_has 'writing standard output failed: .*\[VP901\]'
if [ -w /dev/full ]; then
    list >/dev/full 2>"$dir/err"
    code=$?
    ok "a full disk" code_is 4
    ok "a full disk is told" err_has 'No space left'
    run list gpus -o /dev/full
    ok "a full disk behind -o" code_is 4
fi
# The reader is gone before the program writes.
{
    sleep 0.3
    list 2>"$dir/err"
    echo $? >"$dir/code"
} | true
code=$(cat "$dir/code")
ok "a reader that went away" code_is 4
ok "a reader that went away is told" err_has 'Broken pipe'
list >"$dir/out" 2>&-
code=$?
ok "closed standard error does not matter" code_is 0
ok "and nothing is written elsewhere" cmp -s "$dir/out" "$dir/want"
"$VRAMPLAN" plan nowhere.yaml >"$dir/out" 2>&- <&-
code=$?
ok "an error that cannot be told" code_is 2
"$VRAMPLAN" plan - >"$dir/out" 2>"$dir/err" <&-
code=$?
ok "closed standard input" code_is 4
ok "closed standard input is told" err_has 'standard input'

# --- -o ---
run list gpus --format csv -o "$out"
ok "-o" code_is 0
ok "-o holds the result" cmp -s "$out" "$dir/want"
ok "-o prints nothing" no_out
(umask 027 && list --output="$dir/mode.csv")
ok "a new file has the usual mode" sh -c "[ \"\$(ls -l '$dir/mode.csv' | cut -c1-10)\" = -rw-r----- ]"
chmod 604 "$out"
echo old >"$out"
list -o "$out"
ok "an old file keeps its mode" sh -c "[ \"\$(ls -l '$out' | cut -c1-10)\" = -rw----r-- ]"
ok "and is replaced" cmp -s "$out" "$dir/want"
echo old >"$dir/real"
ln -s real "$dir/link"
list -o "$dir/link"
ok "a link stays a link" test -L "$dir/link"
ok "what it names is replaced" cmp -s "$dir/real" "$dir/want"
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/piped" &
list -o "$dir/pipe"
wait
ok "a pipe is written to, not replaced" test -p "$dir/pipe"
ok "and gets the result" cmp -s "$dir/piped" "$dir/want"
list -o - >"$dir/out"
ok "-o - is standard output" cmp -s "$dir/out" "$dir/want"
run list gpus -o "$dir/nowhere/x"
ok "-o in a folder that is not there" code_is 4
ok "-o in a folder that is not there is told" err_has 'nowhere/x failed: No such file'
run list gpus -o "$dir/home"
ok "-o on a folder" code_is 4
echo old >"$out"
run plan "$dir/nowhere.yaml" -o "$out"
ok "an input that is not there" code_is 2
ok "leaves the old result" grep -q old "$out"
run plan "$dir/nowhere.yaml" -o "$out" --format json
ok "the same in JSON" code_is 2
ok "puts the error there" grep -q '"verdict": null' "$out"
ok "and is told on standard error" err_has 'nowhere.yaml'
ok "no temporary file is left" sh -c "! ls '$dir' | grep -q '\.[A-Za-z0-9]\{6\}\$'"

# --- colour of messages (that of reports: plan.t) ---
escape=$(printf '\033')
run lisst gpus
ok "no colour in a file" sh -c "! grep -q '$escape' '$dir/err'"
run list nothing --color always
ok "--color always" err_has "$escape"
NO_COLOR=1 "$VRAMPLAN" list nothing --color always >"$dir/out" 2>"$dir/err"
ok "--color always outranks NO_COLOR" err_has "$escape"
run list nothing --color never
ok "--color never" sh -c "! grep -q '$escape' '$dir/err'"
finish
