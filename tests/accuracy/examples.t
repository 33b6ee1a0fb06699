#!/usr/bin/env python3
"""The worked examples: every one runs by its name, and those whose answer is known give it."""
import os
import re
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import Run, finish, ok, same  # noqa: E402

FILE = "examples.yaml"
CODES = {"fits": 0, "does-not-fit": 1, "at-risk": 3}
# A 30B in BF16 is 58.6 GB of weights on a card of 68.7 GB: nothing is left for a context of 16K.
# In FP8 it is half of that.
VERDICTS = {"mi210-30b-16k": "does-not-fit", "mi210-30b-16k-fp8": "fits"}


def names():
    """The keys below `scenarios:`, read without a YAML library."""
    with open(os.path.join(TOP, FILE)) as f:
        text = f.read()
    return re.findall(r"^  ([A-Za-z0-9._-]+):", text.split("\nscenarios:", 1)[1], re.M)


def main():
    found = names()
    ok(len(found) >= 10, "%s has %d scenarios" % (FILE, len(found)))
    for name in found:
        r = Run("plan", "%s#%s" % (FILE, name), "--format", "json", cwd=TOP)
        if not ok(r.code in CODES.values(), "%s runs" % name, r):
            continue
        doc = r.json()
        same(doc["scenario"], name, "%s: its name" % name, r)
        same(CODES.get(doc["verdict"]), r.code, "%s: the exit code is the verdict" % name, r)
        if name in VERDICTS:
            same(doc["verdict"], VERDICTS[name], "%s: %s" % (name, VERDICTS[name]), r)
        need = doc["summary"]["need_bytes"]
        ok(0 < need["low"] <= need["likely"] <= need["high"], "%s: an interval" % name, r)
    ok(set(VERDICTS) <= set(found), "the examples with a known answer are there", found)
    every = Run("plan", FILE, "--format", "json", cwd=TOP)
    same([d["scenario"] for d in every.json()], found, "all at once, in the order of the file", every)
    finish()


main()
