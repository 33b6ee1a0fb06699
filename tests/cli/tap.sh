# Helpers of the command-line tests in sh; a test sources this file. Prints TAP.
#
#   run ARGUMENT...       runs the program; then $code, $dir/out, $dir/err
#   ok NAME COMMAND...    a test: passes when the command succeeds
#   code_is N             succeeds when the last run ended with N
#   out_has, err_has PAT  ... when that stream has a line with the basic regular expression
#   no_out, no_err        ... when that stream is empty
#   finish                prints the plan
#
# The environment is the test's own: no profiles, caches or colours of the user.
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 4
VRAMPLAN=${VRAMPLAN:-$top/vramplan}
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/home"
export HOME="$dir/home"
export VRAMPLAN_PROFILES="$top/profiles"
unset XDG_CONFIG_HOME XDG_CACHE_HOME HF_HOME HF_HUB_CACHE NO_COLOR
count=0
code=

run() {
    "$VRAMPLAN" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
}

ok() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
        return
    fi
    echo "not ok $count - $name"
    echo "# failed: $*; the last run ended with $code"
    sed -e 's/^/# out: /' "$dir/out" 2>/dev/null | head -n 20
    sed -e 's/^/# err: /' "$dir/err" 2>/dev/null | head -n 20
}

code_is() { [ "$code" = "$1" ]; }
out_has() { grep -q -e "$1" "$dir/out"; }
err_has() { grep -q -e "$1" "$dir/err"; }
no_out() { [ ! -s "$dir/out" ]; }
no_err() { [ ! -s "$dir/err" ]; }
finish() { echo "1..$count"; }
