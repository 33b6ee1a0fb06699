#!/usr/bin/env python3
"""Times of served requests: the share of figures within a quarter, per group; intervals that hold
what was measured; configurations in the order in which they were measured."""
import os
import sys

sys.dont_write_bytecode = True
from scoring import ENV, PROGRAM, hold, ok  # noqa: E402
import latency_cases  # noqa: E402

NVIDIA = ("serving-b200", "serving-b300", "serving-h100_sxm", "serving-h200")
if os.path.exists(latency_cases.CASES):
    rows = latency_cases.collect(PROGRAM, ENV)
    none = sorted({r["case"] for r in rows if r["low"] is None or r["high"] is None})
    ok(not none, "every case has an interval", "\n".join(none))
    static = sorted(latency_cases.error(r) for r in rows
                    if r["gpu"] == "mi300x" and r["kind"] == "static")
    ok(static[len(static) // 2] <= 0.12, "static batches on MI300X: median error %.1f %%, at most 12"
       % (100 * static[len(static) // 2]))
    right, pairs = latency_cases.ranks(rows)
    ok(pairs > 500 and right >= 0.9 * pairs, "%d of %d pairs ranked as measured, at least 90 %%"
       % (right, pairs))
    wide = sorted(r["high"] / r["low"] for r in rows if r["stage"] == "tpot" and r["low"])
    ok(wide[len(wide) // 2] <= 2, "intervals of times between tokens: high / low %.2f in the median,"
       " at most 2" % wide[len(wide) // 2])

# Least share of figures within 25 % in per cent, by group and stage.
hold("latency.json", {
    "tpot": (80, NVIDIA + ("static-mi300x", "static-h100_sxm")),
    "ttft": (60, ("serving-b200", "serving-b300", "serving-h200")),
}, fewest=180, inside=88)
