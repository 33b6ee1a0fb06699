#!/usr/bin/env python3
"""The manual page and the completion, made from the same rows as the help."""
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, PROGRAM, Run, finish, ok, same  # noqa: E402

OPTION = re.compile(r"^  (?:-(\w), )?--([a-z-]+)", re.M)
help_text = Run("help").out
options = {long for _, long in OPTION.findall(help_text)}
commands = re.findall(r"^  ([a-z-]+) ", help_text.split("Commands\n")[1].split("\n\n")[0], re.M)
ok({"gpu", "set", "format", "output", "help"} <= options, "help lists the options", options)
same(commands, ["plan", "explain", "import", "list", "help", "fit", "checkpoint", "timeline",
                "simulate", "sweep", "merge", "calibrate", "probe", "device", "import-log", "doctor",
                "gate", "diff", "report", "tui"],
     "help lists the commands")
ok(all(len(line) <= 80 for line in help_text.splitlines()), "help is 80 columns wide")

man = Run("help", "--man")
same((man.code, man.err), (0, ""), "help --man")
page = man.out.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
same({o for o in options if "--" + o not in page}, set(), "the manual page has every option")
same([c for c in commands if not re.search(r"^%s\b" % c, page, re.M)], [], "and every command")
for later in ("completion",):
    ok("--" + later not in page, "it does not have --" + later)
if shutil.which("groff"):
    p = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=man.out, text=True,
                       capture_output=True)
    same((p.returncode, p.stderr), (0, ""), "groff has nothing to say about it")

completion = Run("help", "--completion")
same((completion.code, completion.err), (0, ""), "help --completion")
path = DIR + "/completion.bash"
with open(path, "w") as f:
    f.write(completion.out)


def complete(*words):
    """What bash offers for the last of these words."""
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; '
              '_vramplan; printf "%s\\n" "${COMPREPLY[@]}"')
    p = subprocess.run(["bash", "-c", script, path, PROGRAM, *words], env=ENV, cwd=FIXTURES,
                       capture_output=True, text=True)
    return set(p.stdout.split()), p.stderr


def offers(words, wanted, unwanted, name):
    got, err = complete(*words)
    ok(wanted <= got and not unwanted & got and not err, name, (words, got, err))


offers([""], {"plan", "list", "llama-3.1-8b", "one.yaml"}, {"gates", "--gpu"}, "commands and inputs")
offers(["pl"], {"plan"}, {"list"}, "a command begun")
offers(["plan", "--c"], {"--context", "--concurrency", "--count"}, {"--gpu", "--completion"},
       "options of plan")
offers(["list", "--"], {"--format", "--fits-on", "--context"}, {"--tp", "--pp"}, "options of list")
offers(["list", ""], {"gpus", "models", "engines"}, {"one.yaml"}, "what there is to list")
offers(["help", ""], {"plan", "import"}, set(), "commands to explain")
offers(["plan", "x", "--format", "j"], {"json"}, {"text"}, "values of an option")
offers(["plan", "x", "--format", "=", ""], {"json", "csv"}, {"--gpu"}, "values after =")
offers(["gate", "x", "--format", ""], {"junit", "sarif"}, {"csv"}, "values of a command's own option")
offers(["plan", "x", "--gpu", "mi300"], {"mi300x", "mi300a"}, {"mi210"}, "GPUs")
offers(["plan", "x", "--engine", "v"], {"vllm"}, set(), "engines")
offers(["plan", "x", "-o", "one"], {"one.yaml"}, set(), "files")
offers(["plan", "tiny"], {"tiny-llama", "tiny-moe.json"}, set(), "inputs are files")
offers(["plan", "x", "--tp", ""], set(), {"one.yaml", "plan"}, "no offer for a number")
finish()
