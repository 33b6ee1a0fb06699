"""Tables of claims in docs/: rows of a Markdown table, each with a command whose JSON gives a figure.

A figure is "NAME = NUMBER UNIT +- TOLERANCE" or "NAME = WORD". NAME: a component of the worst device
(weights, kv_cache, ...), a sum (need, reserved, capacity), or a path into the JSON; "1.NAME" where the
command answers several scenarios; arithmetic of these. "+- 10 %" is relative. "text: WORDS": the
output holds these words. Standard library only."""
import functools
import os
import re
import shlex

from tap import ENV, TOP, Run

# What measures the processor takes one thread: two would wait for each other on a busy machine.
ENV["OMP_NUM_THREADS"] = "1"

UNITS = {"": 1, "GB": 10**9, "GiB": 2**30, "MB": 10**6, "MiB": 2**20, "ms": 1, "%": 0.01}
COMPONENTS = ("weights", "kv_cache", "activations", "graphs", "runtime")
SUMS = {"need": "summary.need_bytes.likely", "reserved": "summary.reserved_bytes",
        "capacity": "summary.capacity_bytes"}
NAME = re.compile(r"(?:\d+\.)?[A-Za-z_]\w*(?:\.\w+)*")
FIGURE = re.compile(r"([\d.]+) ?([A-Za-z]*) \+- ([\d.]+)( %)?")


def table(path):
    """The rows of the tables in a Markdown file with the columns of the first one, as maps."""
    with open(os.path.join(TOP, "docs", path)) as f:
        lines = [line.strip() for line in f if line.startswith("|")]
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
             for line in lines]
    head = cells[0]
    rows = [row for row in cells if row != head and not set("".join(row)) <= set("-: ")]
    return head, [dict(zip(head, row)) for row in rows], [row for row in rows
                                                         if len(row) != len(head)]


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
    number = FIGURE.fullmatch(right)
    if not number:
        got = look_up(doc, left)
        return str(got) == right, got
    got = compute(doc, left) / UNITS[number.group(2)]
    want, off = float(number.group(1)), float(number.group(3))
    if number.group(4):
        off *= want / 100
    return abs(got - want) <= off + 1e-12, got


@functools.lru_cache(maxsize=None)
def output(words):
    """The run of a command, for all rows that have it."""
    return Run(*words, cwd=TOP)


def run(command, figure):
    """(problem, what it is, the run): problem None when the command's output holds the figure."""
    words = shlex.split(command)
    text = figure.startswith("text: ")
    if words[:1] != ["vramplan"] or (not text and words[-2:] != ["--format", "json"]):
        return "no command with JSON", command, command
    r = output(tuple(words[1:]))
    if r.code not in (0, 1, 3):
        return "ends with %d" % r.code, "", r
    if text:
        flat = " ".join((r.out + r.err).split())
        return (None if figure[6:] in flat else "the words are not there"), "", r
    try:
        held, got = holds(r.json(), figure)
    except (KeyError, IndexError, TypeError, ValueError) as e:
        return "no such figure: %r" % e, "", r
    return (None if held else "it is another figure"), got, r


def answer(row):
    """run() of a row's command and figure; None when it has no command."""
    command, figure = row["command"].strip("`"), row["figure"].strip("`")
    return run(command, figure) if command else None
