#!/usr/bin/env python3
"""docs/USER-QUESTIONS.md: every answered question's command gives the answer that stands there, and
the counts at the top of that file are those of its rows."""
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from claims import answer, table  # noqa: E402
from tap import TOP, finish, ok, same, skip  # noqa: E402

COLUMNS = ["#", "question", "command", "figure", "answer", "agrees"]
AGREES = ("yes", "no", "open")  # with what the asker saw; open: nothing to compare with


def check(row, answered):
    name = "%s %s" % (row["#"], row["question"])
    agrees = row["agrees"].partition(":")[0]
    if answered is None:
        return ok(agrees == "not answered" and ":" in row["agrees"], "%s: says why not" % name,
                  row["agrees"])
    problem, got, about = answered
    ok(agrees in AGREES and (agrees != "no" or ":" in row["agrees"]), "%s: agreement" % name,
       row["agrees"])
    return ok(problem is None, "%s: %s" % (name, row["figure"].strip("`")),
              "%s: %s\n%s" % (problem, got, about))


def expectations(rows):
    """The figures beyond doubt of the cases, where those are at hand: within their tolerance."""
    path = os.path.join(TOP, "..", "shared", "knowledge", "user-cases.yaml")
    if not os.path.exists(path):
        return skip("the expected figures", "no ../shared/knowledge/user-cases.yaml")
    text = open(path).read()
    cases = {m.group(1): m.group(2) for m in
             re.finditer(r"^- id: (U\d+)\n(.*?)(?=^- id: |\Z)", text, re.M | re.S)}
    same(sorted(row["#"] for row in rows), sorted(cases), "one row for each case")
    expect = {k for k, body in cases.items() if re.search(r"^  expect:", body, re.M)}
    held = {row["#"] for row in rows if row["#"] in expect and row["agrees"].startswith("yes")}
    answered = [row for row in rows if row["command"]]
    print("# %d of %d answered by one command; %d of %d with an expected figure agree" %
          (len(answered), len(rows), len(held), len(expect)))
    ok(len(answered) >= 0.9 * len(rows), "nine of ten are answered", len(answered))
    ok(len(held) >= 0.9 * len(expect), "nine of ten expected figures agree", sorted(expect - held))


head, rows, odd = table("USER-QUESTIONS.md")
same(head, COLUMNS, "the columns")
same(odd, [], "every row has them")
same(len({row["#"] for row in rows}), len(rows), "numbered apart")
with ThreadPoolExecutor(2) as pool:
    for row, answered in zip(rows, pool.map(answer, rows)):
        check(row, answered)
expectations(rows)
finish()
