#!/usr/bin/env python3
"""tui: screens as text against tests/golden/ (GOLDEN_UPDATE=1 rewrites them), the questions of
docs/TUI.md with the keys that answer them, wrong command lines, and the program itself in a terminal
(tmux): start, change, resize, search, export, quit; the terminal is as before after SIGTERM and SIGINT."""
import difflib
import os
import re
import shutil
import signal as signals
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, LONG, PROGRAM, TOP, Run, finish, ok, skip  # noqa: E402

GOLDEN = os.path.join(TOP, "tests", "golden")
UPDATE = os.environ.get("GOLDEN_UPDATE") == "1"

# ---- golden screens ----

# name: input, size, keys
SCREENS = {
    "serve-80": ("one.yaml", "80x24", ""),
    "serve-120": ("one.yaml", "120x40", "/ context Enter Enter 16384 Enter Space + + Tab"),
    "serve-200": ("one.yaml", "200x60", "/ concurrency Enter Enter 64 Enter Space"),
    "short-80": ("one.yaml", "80x24", ": \"context 128k\" Enter : \"concurrency 900\" Enter"),
    "choices-80": ("one.yaml", "80x24", "/ \"kv cache\" Enter Enter Down"),
    "explain-80": ("one.yaml", "80x24", "Tab j Enter"),
    "help-80": ("one.yaml", "80x24", "?"),
    "train-80": ("train-torch.yaml", "80x24", ""),
    "devices-120": ("llama.yaml#split", "120x40", "Tab j"),
    "step-80": ("train-torch.yaml", "80x24", "2"),
    "recompute-120": ("train-torch.yaml", "120x40", "3 j j"),
    "compare-80": ("one.yaml", "80x24", "Space : \"kv-cache fp8\" Enter Space 4"),
    "suggestions-120": ("one.yaml", "120x40", ": \"context 16k\" Enter : \"concurrency 900\" Enter 5"),
    "ledger-80": ("one.yaml", "80x24", "6 s"),
    "step-120": ("train-pipeline.yaml", "120x40", "2 h j j"),
    "pins-80": ("one.yaml", "80x24", "Space : \"context 128k\" Enter Space "
                ": \"weights int8\" Enter Space 4 l l d l"),
    "suggestions-80": ("train-torch.yaml", "80x24", "5 j"),
    "row-80": ("train-torch.yaml", "80x24", "6 s s s s s Enter"),
    "ledger-120": ("one.yaml", "120x40", "6 / graph Enter"),
    "small-40": ("one.yaml", "40x10", ""),
}


def dump(source, size, keys, *more):
    return Run("tui", source, "--dump", "--size", size, "--keys", "-", *more, stdin=keys)


def golden(name, run):
    path = os.path.join(GOLDEN, "tui-%s.txt" % name)
    if UPDATE:
        with open(path, "w") as f:
            f.write(run.out)
    want = open(path).read() if os.path.exists(path) else ""
    ok(run.code == 0 and run.out == want, "screen " + name, "".join(difflib.unified_diff(
        want.splitlines(True), run.out.splitlines(True), "golden", "now"))[:4000] + run.err)


def cells(line):
    """Columns of a line; the screens here hold no wide characters."""
    return len(line)


for name, (source, size, keys) in SCREENS.items():
    run = dump(source, size, keys)
    golden(name, run)
    width, height = map(int, size.split("x"))
    lines = run.out.split("\n")[:-1]
    ok(len(lines) == height and max(map(cells, lines)) <= width, "screen %s fills its size" % name,
       "%d lines, %d columns" % (len(lines), max(map(cells, lines), default=0)))

run = dump("one.yaml", "80x24", "", "--ascii")
ok(run.code == 0 and run.out.isascii(), "--ascii draws with ASCII", run)
run = dump("one.yaml", "80x24", "", "--color", "always")
ok("\033[" in run.out and re.sub("\033\\[[0-9;]*m", "", run.out).split() ==
   dump("one.yaml", "80x24", "").out.split(), "colours change no character", run)
run = dump("one.yaml", "80x24", "c", "--color", "always", "--theme", "light")
ok("theme: mono" in run.out, "c walks the themes", run)

# ---- what it says is what plan says ----

run = dump("one.yaml", "200x60", ": \"context 8k\" Enter : \"kv-cache fp8\" Enter")
command = re.search(r"same as vramplan (.*?) *$", run.out, re.M)
plan = Run(*command.group(1).split(), "--format", "json") if command else None
verdict = re.search(r"^ (FITS|AT RISK|DOES NOT FIT)", "\n".join(
    line[line.rfind("│", 0, -2) + 1:] for line in run.out.split("\n")), re.M)
likely = plan.json()["summary"]["need_bytes"]["likely"] / 2**30 if plan else 0
ok(plan and "%.2f GiB" % likely in run.out, "the command of 'same as' gives the figures shown",
   "%s\n%s" % (run, plan))

# ---- files ----

ONE = os.path.join(FIXTURES, "one.yaml")
WRITE = ': "write written.yaml" Enter '
run = Run("tui", ONE, "--dump", "--keys", "-", stdin=WRITE + WRITE, cwd=DIR)
ok("written.yaml is there already" in run.out, "a file is not written over unasked", run)
before = open(os.path.join(DIR, "written.yaml")).read()
run = Run("tui", ONE, "--dump", "--keys", "-", stdin=': "context 2k" Enter ' + WRITE + "Enter",
          cwd=DIR)
after = open(os.path.join(DIR, "written.yaml")).read()
ok("written" in run.out and before != after and "2048" in after, "a second Enter does", run)
run = Run("tui", ONE, "--dump", "--keys", "-", stdin=': "export no/such/folder.md" Enter', cwd=DIR)
ok(run.code == 0 and "No such file" in " ".join(run.out.split()), "a file that cannot be written is told", run)
for form in ("json", "md", "html", "csv", "txt"):
    run = Run("tui", ONE, "--dump", "--keys", "-", stdin=': "export out.%s" Enter' % form, cwd=DIR)
    ok(os.path.getsize(os.path.join(DIR, "out." + form)) > 100, "exported as " + form, run)
plan = Run("plan", ONE, "--format", "json", cwd=DIR)
ok(open(os.path.join(DIR, "out.json")).read() == plan.out, "the exported JSON is plan's", plan)

# ---- wrong command lines ----

run = Run("tui", "one.yaml")
ok(run.code == 2 and "terminal" in run.err and "vramplan plan one.yaml" in run.err,
   "without a terminal: exit 2 and what to do", run)
run = Run("tui", "faults.yaml", "--dump")
ok(run.code == 2 and "faults.yaml:" in run.err and not run.out, "faults of a scenario end it", run)
run = Run("tui", "one.yaml", "--dump", "--size", "wide")
ok(run.code == 2 and "--size" in run.err, "--size is checked", run)
run = Run("tui", "one.yaml", "--dump", "--format", "json")
ok(run.code == 2 and "--format" in run.err, "--format is refused", run)
run = dump("one.yaml", "80x24", "j\nsize 1")
ok(run.code == 2 and ":2" in run.err, "faults of a script have a place", run)
run = Run("tui", "several.yaml", "--dump")
ok(run.code == 2, "several scenarios are refused", run)

# ---- docs/TUI.md: the questions, and the list of keys ----

MANUAL = os.path.join(TOP, "docs", "TUI.md")


def questions(text):
    """Of each question: its heading, the command, the keys, the words that must be on the screen."""
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        found = {}
        for label in ("input", "keys", "shows"):
            m = re.search(r"^%s: (.*)$" % label, part, re.M)
            if m:
                found[label] = re.findall(r"`([^`]+)`", m.group(1))
        if len(found) == 3:
            yield part.split("\n")[0], found["input"][0], found["keys"][0], found["shows"]


def count_keys(keys):
    """Presses: a word that is typed counts as one entry, as a person does."""
    return len(re.findall(r'"[^"]*"|\S+', keys))


text = open(MANUAL).read() if os.path.exists(MANUAL) else ""
asked = list(questions(text))
ok(len(asked) >= 10, "docs/TUI.md answers ten questions", len(asked))
for title, source, keys, words in asked:
    run = Run("tui", *source.split(), "--dump", "--keys", "-", stdin=keys, cwd=TOP)
    missing = [w for w in words if w not in run.out]
    ok(run.code == 0 and not missing, "question: " + title[:60], "%s\nmissing: %r\n%s" %
       (keys, missing, run.out + run.err))
    ok(count_keys(keys) <= 12, "at most 12 keys: " + title[:50], keys)

rows = re.findall(r'^X\((\w+),\s*[^"]*"([^"]+)",\s*"[^"]*",\s*"([^"]+)"\)',
                  open(os.path.join(TOP, "tui", "keys.def")).read(), re.M)
missing = [r for r in rows if "| `%s` |" % "` `".join(r[1].split()) not in text.replace("\\|", "|")
           or r[2] not in text]
ok(len(rows) > 30 and not missing, "docs/TUI.md lists the keys of keys.def", missing)

# ---- the program in a terminal ----

TMUX = shutil.which("tmux")
SOCKET = os.path.join(DIR, "tmux")


class Terminal:
    """A shell in tmux, in a folder of its own."""

    def __init__(self, columns, lines, term="screen-256color"):
        env = {**ENV, "LC_ALL": "C.UTF-8", "TERM": term, "PS1": "$ ", "SHELL": "/bin/sh"}
        self.folder = os.path.join(DIR, "terminal")
        os.makedirs(self.folder, exist_ok=True)
        self.env = env
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  "-c", self.folder, "env", "PS1=$ ", "/bin/sh")

    def tmux(self, *words):
        p = subprocess.run([TMUX, "-S", SOCKET, *words], env=self.env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=20)
        return p.stdout.decode()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def line(self, text):
        self.tmux("send-keys", "-l", text)
        self.keys("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, words, seconds=10, gone=False):
        """The screen once it holds the words (or no longer does)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            now = self.screen()
            if (words in now) != gone:
                return now
            time.sleep(0.02)
        return None

    def close(self):
        self.tmux("kill-server")


def started(t, name):
    """The program runs; its screen, or a failed test."""
    t.line("stty -g > before; %s tui %s" % (PROGRAM, os.path.join(FIXTURES, "one.yaml")))
    now = t.wait("settings")
    ok(now, name, t.screen())
    return now


def ended(t, code):
    """The program is gone, with that exit status. A shell whose program SIGINT ended drops the rest of
    its line, so it is asked afterwards."""
    t.wait("settings", gone=True)
    t.line("echo ended=$?")
    return t.wait("ended=%d" % code)


def terminal_is_back(t, signal):
    t.line("stty -g > after; echo re''ad " + signal)
    t.wait("read " + signal)  # typed as re''ad
    before, after = (open(os.path.join(t.folder, f)).read() for f in ("before", "after"))
    ok(before and before == after and "settings" not in t.screen(), "the terminal is as before, after " + signal,
       "%s\n%s\n%s" % (before, after, t.screen()))


def signalled(t, signal):
    t.line("clear")
    started(t, "it starts (to be ended by %s)" % signal)
    shell = t.tmux("display-message", "-p", "#{pane_pid}").strip()
    for pid in open("/proc/%s/task/%s/children" % (shell, shell)).read().split():
        os.kill(int(pid), getattr(signals, signal))
    code = 128 + getattr(signals, signal)
    ok(ended(t, code), "%s ends it with %d" % (signal, code), t.screen())
    terminal_is_back(t, signal)


def end_to_end():
    t = Terminal(80, 24)
    try:
        if not started(t, "it starts in a terminal"):
            return
        t.keys("/", "c", "o", "n", "c", "Enter")
        ok(t.wait(">concurrency"), "a search finds a setting", t.screen())
        t.keys("+")
        ok(t.wait("history concurrency"), "a key changes it", t.screen())
        t.tmux("resize-window", "-x", "120", "-y", "40")
        ok(t.wait("what follows"), "a larger terminal shows more", t.screen())
        t.tmux("resize-window", "-x", "60", "-y", "12")
        ok(t.wait("80x24"), "a small one waits", t.screen())
        t.tmux("resize-window", "-x", "80", "-y", "24")
        ok(t.wait(">concurrency"), "and nothing is lost", t.screen())
        t.tmux("set-buffer", "qq")
        t.tmux("paste-buffer", "-p")
        ok(t.wait("pasted text"), "pasted text is no command", t.screen())
        t.keys("w", "C-u")
        t.line("out.yaml")
        ok(t.wait("out.yaml") and os.path.exists(os.path.join(t.folder, "out.yaml")) or
           t.wait("written") and os.path.exists(os.path.join(t.folder, "out.yaml")),
           "the scenario is written", t.screen())
        t.keys("q")
        ok(ended(t, 0), "it ends with 0", t.screen())
        terminal_is_back(t, "q")
        run = Run("plan", os.path.join(t.folder, "out.yaml"), "--format", "json")
        ok(run.code in (0, 1, 3), "what was written can be planned", run)
        for signal in ("SIGTERM", "SIGINT") + (("SIGHUP", "SIGSEGV", "SIGABRT") if LONG else ()):
            signalled(t, signal)
    finally:
        t.close()


if TMUX:
    end_to_end()
else:
    skip("the program in a terminal", "tmux is not installed")
finish()
