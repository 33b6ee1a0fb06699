#!/usr/bin/env python3
"""docs/SEEDS.md: every row's command gives the row's figure. How to read one stands in that file."""
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
from tap import TOP, Run, finish, ok, same  # noqa: E402

COLUMNS = ["#", "claim", "command", "figure", "ours", "verdict"]
VERDICTS = ("agrees", "contradicts", "cannot be checked")
UNITS = {"": 1, "GB": 10**9, "GiB": 2**30}
COMPONENTS = ("weights", "kv_cache", "activations", "graphs", "runtime")
SUMS = {"need": "summary.need_bytes.likely", "reserved": "summary.reserved_bytes",
        "capacity": "summary.capacity_bytes"}
NAME = re.compile(r"(?:\d+\.)?[A-Za-z_]\w*(?:\.\w+)*")


def rows():
    with open(os.path.join(TOP, "docs", "SEEDS.md")) as f:
        lines = [line.strip() for line in f if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    same(table[0], COLUMNS, "the columns")
    return [dict(zip(COLUMNS, row)) for row in table[2:] if same(len(row), len(COLUMNS), "a row")]


def look_up(doc, name):
    """The value of a name or path: "need", "1.weights", "kv_cache.page_bytes", "verdict"."""
    first, _, rest = name.partition(".")
    if first.isdigit():
        doc, name = doc[int(first)], rest
    if name in COMPONENTS:
        name = "devices.0.components.%s.likely" % name
    for key in SUMS.get(name, name).split("."):
        doc = doc[int(key)] if isinstance(doc, list) else doc[key]
    return doc


def compute(doc, expression):
    """Names replaced by their values; what is left may be arithmetic only."""
    text = NAME.sub(lambda m: repr(look_up(doc, m.group())), expression)
    if not re.fullmatch(r"[\d.e+*/() -]+", text):
        raise ValueError(text)
    return eval(text, {"__builtins__": {}})


def holds(doc, figure):
    """Whether a figure such as "8 * weights = 282.8 GB +- 0.2" holds, and what it is."""
    left, _, right = (part.strip() for part in figure.partition(" = "))
    number = re.fullmatch(r"([\d.]+) ?(\w*) \+- ([\d.]+)", right)
    if not number:
        got = look_up(doc, left)
        return got == right, got
    unit = UNITS[number.group(2)]
    got = compute(doc, left) / unit
    return abs(got - float(number.group(1))) <= float(number.group(3)) + 1e-12, got


def check(row):
    name = "%s %s" % (row["#"], row["claim"])
    command, figure = row["command"].strip("`"), row["figure"].strip("`")
    verdict = row["verdict"].partition(":")[0]
    ok(verdict in VERDICTS, "%s: a verdict" % name, row["verdict"])
    if verdict == "cannot be checked" and not command:
        return ok(":" in row["verdict"], "%s: says why" % name, row["verdict"])
    words = shlex.split(command)
    if not ok(words[:1] == ["vramplan"] and words[-2:] == ["--format", "json"],
              "%s: a command with JSON" % name, command):
        return False
    r = Run(*words[1:], cwd=TOP)
    if not ok(r.code in (0, 1, 3), "%s: runs" % name, r):
        return False
    held, got = holds(r.json(), figure)
    return ok(held, "%s: %s" % (name, figure), "it is %s\n%s" % (got, r))


table = rows()
ok(len(table) >= 20, "there are rows", len(table))
same(len({row["#"] for row in table}), len(table), "numbered apart")
for row in table:
    check(row)

# The test itself: what it must not let pass.
DOC = {"verdict": "fits", "summary": {"need_bytes": {"likely": 5 * 10**9}},
       "devices": [{"components": {"weights": {"likely": 2 * 10**9}}}]}
same(holds(DOC, "need = 5 GB +- 0")[0], True, "an exact figure holds")
same(holds(DOC, "need = 5.2 GB +- 0.1")[0], False, "one that is off does not")
same(holds([DOC, DOC], "1.need - 0.weights = 3 GB +- 0")[0], True, "arithmetic of two scenarios")
same(holds(DOC, "verdict = at-risk")[0], False, "a wrong word does not hold")
finish()
