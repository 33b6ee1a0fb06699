#!/usr/bin/env python3
"""What users paste into their CI: action.yml, the GitLab job, the pre-commit hook, the Makefile's line.
The test takes the shell lines out of these files and runs them as they stand, in the environment that
such a system sets, against real git repositories."""
import json
import os
import re
import shlex
import shutil
import subprocess

from tap import DIR, PROGRAM, TOP, finish, ok, same, skip
from git_repo import GIT_ENV, Repo

BIN = os.path.join(DIR, "bin")
os.mkdir(BIN)
os.symlink(os.path.abspath(PROGRAM), os.path.join(BIN, "vramplan"))
PATHED = {**GIT_ENV, "PATH": BIN + os.pathsep + GIT_ENV["PATH"]}

BUDGET = """vramplan: 1
defaults: {hardware: {gpu: mi300x}}
scenarios:
  chat:
    model: llama-3.1-8b
    serve:
      context: %s
      concurrency: 16
    budget: {growth: {percent: 0, min: 1 MiB}, at_risk: likely}
%s"""
SECOND = "  second: {model: llama-3.1-8b, serve: {context: 4k}, budget: {memory: 60 GiB}}\n"
NAME = "vramplan.budget.yaml"
FILE = "vramplan_DOT_budget_DOT_yaml"


def text_of(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return file.read()


def run_blocks(text):
    """The `run: |` blocks of an action, in order."""
    blocks, lines = [], text.splitlines()
    for i, line in enumerate(lines):
        if line.strip() != "run: |":
            continue
        depth = len(line) - len(line.lstrip())
        block = []
        for following in lines[i + 1:]:
            if following.strip() and len(following) - len(following.lstrip()) <= depth:
                break
            block.append(following[depth + 2:])
        blocks.append("\n".join(block) + "\n")
    return blocks


class Shell:
    def __init__(self, script, repo, env):
        p = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=repo.path,
                           env={**PATHED, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        self.code, self.out, self.err = p.returncode, p.stdout.decode(), p.stderr.decode()

    def __str__(self):
        return "ended with %d\n%s\n%s" % (self.code, self.out, self.err)


# ---- GitHub ----

action = text_of("action.yml")
FIND, GATE = run_blocks(action)
ok("${{" not in FIND + GATE, "action: expressions stand in env alone, where they cannot be code")
ok("uses:" not in action, "action: needs no other action")
turn = 0


def github(repo, **more):
    """Both steps of the action; the shell, the summary, the outputs."""
    global turn
    turn += 1
    files = {name: os.path.join(DIR, "%s-%d" % (name.lower(), turn)) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for path in files.values():
        open(path, "w").close()
    env = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_ACTION_PATH": TOP, "GITHUB_BASE_REF": "main", **files,
           "PROGRAM": "", "FILES": NAME, "BASE": "", "ARGS": "", "REPORTS": os.path.join(DIR, "reports-%d" % turn), **more}
    first = Shell(FIND, repo, env)
    with open(files["GITHUB_OUTPUT"]) as file:
        outputs = dict(line.rstrip("\n").split("=", 1) for line in file)
    if first.code != 0:
        return first, "", outputs
    shell = Shell(GATE, repo, {**env, "PROGRAM": outputs["program"]})
    with open(files["GITHUB_OUTPUT"]) as file:
        outputs = dict(line.rstrip("\n").split("=", 1) for line in file)
    with open(files["GITHUB_STEP_SUMMARY"], encoding="utf-8") as file:
        return shell, file.read(), outputs


up = Repo("upstream")
up.commit("base", **{FILE: BUDGET % ("8k", SECOND)})
up.git("checkout", "-q", "-b", "same")
up.commit("a comment", **{FILE: "# budgets\n" + BUDGET % ("8k", SECOND)})
up.git("checkout", "-q", "-b", "grows", "main")
up.commit("longer", **{FILE: BUDGET % ("12k", SECOND)})
up.git("checkout", "-q", "main")
up.commit("main goes on", README_DOT_md="hello\n")
up.git("checkout", "-q", "-b", "merge", "main")
up.git("merge", "-q", "--no-ff", "-m", "merge", "grows")
clone = Repo("clone", up)


def at(branch):
    clone.git("checkout", "-q", "--detach", "origin/" + branch)
    return clone


shell, summary, outputs = github(at("same"))
same(shell.code, 0, "GitHub: nothing changed", shell)
same(outputs["exit-code"], "0", "the exit code is an output")
ok(summary.startswith("<!-- vramplan-gate -->\n### Memory plan: 2 passed"), "the step summary is written", summary)
ok("::" not in shell.out + shell.err, "no annotations", shell)
shell, summary, outputs = github(at("grows"))
same((shell.code, outputs["exit-code"]), (1, "1"), "GitHub: it grew, the step fails", shell)
ok("::error file=%s,line=7,title=" % NAME in shell.err, "an annotation at the line that did it", shell)
ok("serve.context 8k -> 12k" in summary and "| chat |" in summary, "the summary says why", summary)
same(sorted(os.listdir(os.path.dirname(outputs["junit"]))), ["gate.md", "gate.sarif", "gate.xml"], "the reports are there")
with open(outputs["sarif"], encoding="utf-8") as file:
    same(json.load(file)["version"], "2.1.0", "SARIF among them")
shell, _, _ = github(at("merge"))
same(shell.code, 1, "GitHub: the merge commit that a pull request is checked out as", shell)
ok("merge base of HEAD and origin/main" in shell.out, "against the target branch", shell)
shell, _, _ = github(at("grows"), BASE="origin/grows")
same(shell.code, 0, "the input `base`", shell)
shell, _, _ = github(at("grows"), ARGS="--only second")
same(shell.code, 0, "the input `args`", shell)
shell, summary, _ = github(at("grows"), FILES="nosuch.yaml")
same(shell.code, 2, "GitHub: a file that is not there", shell)
shell, _, outputs = github(at("same"), PROGRAM=os.path.join(BIN, "vramplan"))
same(outputs["program"], os.path.join(BIN, "vramplan"), "the input `program`")

for word, recipe in (("works", "ln -s %s vramplan" % shlex.quote(os.path.abspath(PROGRAM))), ("fails", "false")):
    folder = os.path.join(DIR, "action-" + word)
    os.mkdir(folder)
    with open(os.path.join(folder, "Makefile"), "w") as file:
        file.write("vramplan:\n\t%s\n" % recipe)
    shell, _, outputs = github(at("same"), GITHUB_ACTION_PATH=folder, PATH=GIT_ENV["PATH"])
    if shutil.which("vramplan"):
        skip("a build that " + word, "there is a vramplan on PATH already")
    elif word == "works":
        same((shell.code, outputs["program"]), (0, os.path.join(folder, "vramplan")), "not on PATH: built in the action's folder", shell)
    else:
        same((shell.code, "::error title=vramplan gate::it could not be built" in shell.out), (4, True), "a build that fails is told", shell)

shallow = Repo("shallow", up, "--depth", "1", "--branch", "grows")
shell, summary, outputs = github(shallow)
same((shell.code, outputs["exit-code"]), (2, "2"), "GitHub: a shallow clone does not pass", shell)
ok("fetch-depth: 0" in shell.err, "it says how to fix that", shell)
ok("::error title=vramplan gate::nothing could be checked" in shell.out, "and marks the run", shell)

# ---- renaming, deletion, no base ----

up.git("checkout", "-q", "-b", "renamed", "main")
up.git("mv", NAME, "budgets.yaml")
up.commit("renamed and longer", budgets_DOT_yaml=BUDGET % ("12k", SECOND))
up.git("checkout", "-q", "-b", "deleted", "main")
up.commit("one scenario less", **{FILE: BUDGET % ("8k", "")})
up.git("checkout", "-q", "-b", "gone", "main")
up.commit("no budgets", **{FILE: None})
clone.git("fetch", "-q", "origin")
shell, summary, _ = github(at("renamed"), FILES="budgets.yaml")
same(shell.code, 1, "a renamed file is compared with what it was", shell)
ok("::error file=budgets.yaml,line=7," in shell.err, "at its new place", shell)
shell, summary, _ = github(at("deleted"))
same(shell.code, 0, "a scenario that is gone is no failure", shell)
ok(re.search(r"\| second \|.*removed", summary), "but is told", summary)
shell, _, _ = github(at("gone"))
same(shell.code, 2, "a budget file that is gone is wrong input", shell)
alone = Repo("alone")
alone.commit("first", **{FILE: BUDGET % ("8k", SECOND)})
shell, summary, _ = github(alone, GITHUB_BASE_REF="")
same(shell.code, 0, "no target branch: the default branch", shell)
plain = Repo("plain")
plain.write(NAME, BUDGET % ("8k", SECOND))
shutil.rmtree(os.path.join(plain.path, ".git"))
shell, summary, _ = github(plain, GITHUB_BASE_REF="")
same(shell.code, 3, "no repository, no base: growth is inconclusive", shell)
ok("| second |" in summary and "Base: none" in summary, "budgets are checked all the same", summary)

# ---- GitLab ----

gitlab = text_of("packaging/ci/gitlab-ci.yml")
script = re.search(r"^  script:\n((?:    - .*\n)+)", gitlab, re.M).group(1)
commands = "\n".join(line[len("    - "):] for line in script.splitlines())
reports = re.search(r"    reports:\n((?:      .*\n)+)", gitlab).group(1)
named = [line.split(":")[1].strip() for line in reports.splitlines()]
ok('GIT_DEPTH: "0"' in gitlab, "GitLab: the job asks for the whole history")
base = up.git("rev-parse", "grows~1")
shell = Shell(commands, at("grows"), {"GITLAB_CI": "true", "CI": "true", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base})
same(shell.code, 1, "GitLab: it grew", shell)
ok(base[:12] in shell.out, "against the commit that GitLab names", shell)
same([os.path.exists(os.path.join(clone.path, name)) for name in named], [True] * 3, "the reports of the job are there", named)
with open(os.path.join(clone.path, "gl-code-quality-report.json"), encoding="utf-8") as file:
    found = json.load(file)
same(found[0]["location"], {"path": NAME, "lines": {"begin": 7}}, "Code Quality points to the line", found)
shell = Shell(commands, shallow, {"GITLAB_CI": "true", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base})
same(shell.code, 2, "GitLab: a shallow clone does not pass", shell)
ok("GIT_DEPTH" in shell.err, "it says how to fix that", shell)

# ---- pre-commit ----

hook = text_of(".pre-commit-hooks.yaml")
entry = re.search(r"^  entry: (.*)$", hook, re.M).group(1)
pattern = re.search(r"^  files: (.*)$", hook, re.M).group(1)
same([bool(re.search(pattern, name)) for name in (NAME, "m/config.json", "m/model.gguf", "src/a.py")],
     [True, True, True, False], "pre-commit: the files that it looks at")
work = Repo("work", up)
work.git("checkout", "-q", "main")
shell = Shell(entry, work, {})
same(shell.code, 0, "pre-commit: nothing changed", shell)
work.write(NAME, BUDGET % ("12k", SECOND))
shell = Shell(entry, work, {})
same(shell.code, 1, "pre-commit: what is in the working tree, before it is committed", shell)
if shutil.which("pre-commit"):
    work.git("add", "-A")
    p = subprocess.run(["pre-commit", "try-repo", TOP, "vramplan-gate", "--all-files"], cwd=work.path, env=PATHED,
                       stdout=subprocess.PIPE)
    same((p.returncode, b"serve.context 8k -> 12k" in p.stdout), (1, True), "pre-commit itself runs the hook", p.stdout)
else:
    skip("pre-commit itself runs the hook", "pre-commit is not installed")

# ---- make ----

rule = re.search(r"```make\n(.*?)```", text_of("docs/GATE.md"), re.S).group(1)
work.write("Makefile", rule)
target = re.match(r"([\w-]+):", rule.split("\n", 1)[1] if rule.startswith(".PHONY") else rule).group(1)
shell = Shell("make " + shlex.quote(target), work, {})
same(shell.code, 2, "make: the rule fails as make does", shell)
ok("serve.context 8k -> 12k" in shell.out, "and shows why", shell)
work.write(NAME, BUDGET % ("8k", SECOND))
same(Shell("make " + shlex.quote(target), work, {}).code, 0, "make: it passes")
finish()
