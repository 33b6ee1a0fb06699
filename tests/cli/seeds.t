#!/usr/bin/env python3
"""docs/SEEDS.md: every row's command gives the row's figure. How to read one stands in that file."""
import sys

sys.dont_write_bytecode = True
from claims import answer, holds, table  # noqa: E402
from tap import finish, ok, same  # noqa: E402

COLUMNS = ["#", "claim", "command", "figure", "ours", "verdict"]
VERDICTS = ("agrees", "contradicts", "cannot be checked")


def check(row, answered):
    name = "%s %s" % (row["#"], row["claim"])
    verdict = row["verdict"].partition(":")[0]
    ok(verdict in VERDICTS, "%s: a verdict" % name, row["verdict"])
    if answered is None:
        return ok(verdict == "cannot be checked" and ":" in row["verdict"],
                  "%s: says why" % name, row["verdict"])
    problem, got, about = answered
    return ok(problem is None, "%s: %s" % (name, row["figure"].strip("`")),
              "%s: %s\n%s" % (problem, got, about))


head, rows, odd = table("SEEDS.md")
same(head, COLUMNS, "the columns")
same(odd, [], "every row has them")
ok(len(rows) >= 20, "there are rows", len(rows))
same(len({row["#"] for row in rows}), len(rows), "numbered apart")
for row in rows:
    check(row, answer(row))

# The test itself: what it must not let pass.
DOC = {"verdict": "fits", "summary": {"need_bytes": {"likely": 5 * 10**9}},
       "devices": [{"components": {"weights": {"likely": 2 * 10**9}}}]}
same(holds(DOC, "need = 5 GB +- 0")[0], True, "an exact figure holds")
same(holds(DOC, "need = 5.2 GB +- 0.1")[0], False, "one that is off does not")
same(holds(DOC, "need = 5.2 GB +- 5 %")[0], True, "a relative tolerance")
same(holds([DOC, DOC], "1.need - 0.weights = 3 GB +- 0")[0], True, "arithmetic of two scenarios")
same(holds(DOC, "verdict = at-risk")[0], False, "a wrong word does not hold")
finish()
