#!/bin/sh
# The command line: what is refused, how it is told, help.
. "$(dirname "$0")/tap.sh"

refused() { code_is 2 && no_out && err_has "$1"; }

run
ok "no arguments: help on standard error" refused '^usage: vramplan'
run help
ok "help: on standard output" code_is 0
ok "help lists plan" out_has '^  plan INPUT'
ok "help says nothing on standard error" no_err
cp "$dir/out" "$dir/help"
run --help
ok "--help is help" cmp -s "$dir/out" "$dir/help"
run -h
ok "-h is help" cmp -s "$dir/out" "$dir/help"
run plan --help
ok "plan --help has the options of plan" out_has '--concurrency N'
cp "$dir/out" "$dir/help-plan"
run help plan
ok "help plan is plan --help" cmp -s "$dir/out" "$dir/help-plan"
run plan --nonsense --help
ok "--help wins over a wrong option" cmp -s "$dir/out" "$dir/help-plan"
run list --help
ok "an option that list lacks is not in its help" sh -c "! grep -q -e --tp '$dir/out'"
ok "one that it has is" out_has '--fits-on NAME'
run plan --help
ok "plan has it not" sh -c "! grep -q -e --fits-on '$dir/out'"
run --version
ok "--version" out_has '^vramplan [0-9]*\.[0-9]*'
ok "--version ends with 0" code_is 0
run plan --version
ok "plan --version" out_has '^vramplan [0-9]*\.[0-9]*'

run paln model.yaml
ok "unknown command" refused "unknown command 'paln'"
ok "unknown command: did you mean" err_has "did you mean 'plan'"
run help paln
ok "help for an unknown command" refused "did you mean 'plan'"
for command in simulate gate diff report tui; do
    ok "$command is listed" sh -c "grep -q '^  $command ' '$dir/help'"
done

run plan
ok "no input" refused "needs an argument"
run import
ok "import without an input" refused "needs an argument"
run import a b
ok "import with two inputs" refused "takes one argument"
run list
ok "list of nothing" refused "gpus|models|engines"
run list gpu
ok "list of an unknown thing" refused "did you mean 'gpus'"
run plan - -
ok "standard input twice" refused "given twice"
run plan ''
ok "an empty input" refused "empty"

run plan x.yaml#a -o x.yaml
ok "the result would replace the input" refused "would replace the input x.yaml"
run report x.yaml --html x.yaml
ok "a report would replace the input" refused "would replace the input x.yaml"
run simulate x.yaml --trace day.csv --csv day.csv
ok "the series would replace the trace" refused "would replace the input day.csv"
run gate --junit gate.out --sarif gate.out
ok "two results in one file" refused "--junit and --sarif are both to write gate.out"
run --color never list gpus
ok "an option before the command" refused "the command comes first: vramplan list"

run plan x --contxt 4k
ok "unknown option" refused "unknown option --contxt"
ok "unknown option: did you mean" err_has "did you mean --context?"
run plan x --conc 4
ok "an abbreviation is refused" refused "did you mean --concurrency?"
run plan x --max-model-len 4
ok "an engine's flag" refused "--set engine.args.max_model_len=VALUE"
run plan x -q
ok "unknown short option" refused "unknown option -q"
run plan x --context
ok "a missing value" refused "--context needs a value: TOKENS"
run plan x -o
ok "a missing value of a short option" refused "--output needs a value: FILE"
run plan x --context=
ok "an empty value" refused "--context needs a value: TOKENS"
run plan x --explain=yes
ok "a value where none belongs" refused "--explain takes no value"
run plan x --format yaml
ok "a format that there is not" refused "text|json|csv|markdown, not 'yaml'"
run plan x --color=sometimes
ok "a colour choice that there is not" refused "auto|always|never"
run plan x --set serve.context
ok "--set without a value" refused "wants FIELD=VALUE"
run plan x --set =5
ok "--set without a field" refused "wants FIELD=VALUE"
run plan x --engine @0.19
ok "--engine without a name" refused 'wants NAME\[@VERSION\]'
run plan x --engine vllm@
ok "--engine with an empty version" refused 'wants NAME\[@VERSION\]'
run list gpus --plot a.png
ok "--plot is of what draws" refused "'list' has no option --plot"
run plan x --plot a.gif
ok "--plot draws what is known" refused ".png, .svg, .pdf or .txt"
run plan x --chart kv
ok "--chart goes with --plot" refused "goes with --plot"
run plan x --plot - --chart pie
ok "a chart that there is not" refused "has no --chart pie"
run timeline x --emit vllm
ok "--emit is an option of plan, fit and checkpoint" refused "'timeline' has no option --emit"
run list gpus --tp 4
ok "an option of another command" refused "'list' has no option --tp"
run import x --format csv
ok "import has no CSV" refused "text or json"
run plan x -o a -o b
ok "two outputs" refused "given twice"
run plan x --context 4k --set serve.context=8k
ok "a field set twice" refused "--context says 4k and --set serve.context says 8k"
run plan x --context 4k --set serve.context=4096 --tp 2 --tp 4
ok "a field set twice, equal values are fine" sh -c "! grep -q serve.context '$dir/err'"
ok "the same option twice with other values" refused "--tp says 2 and --tp says 4"

run plan x --contxt 4 --explain=1 --format yaml -q
ok "all faults in one run" sh -c "[ \$(grep -c 'VP107' '$dir/err') -eq 4 ]"
run plan -- --context
ok "-- ends the options" sh -c "! grep -q VP107 '$dir/err'"

run plan --contxt 4 --format json
ok "JSON carries the faults of the command line" out_has '"verdict": null'
ok "they are on standard error too" err_has 'unknown option --contxt'
finish
