#!/usr/bin/env python3
"""Closed loops of the public table, simulated: times between tokens and output tokens per second near
what was measured, configurations in the order in which they were measured; static batches on MI300X.
A part of the rows, with LONG=1 all of them."""
import os
import statistics
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import ENV, LONG, PROGRAM, finish, ok  # noqa: E402
import simulate_points as points  # noqa: E402

if not os.path.exists(points.ROWS):
    print("1..0 # SKIP no ../shared/data/serving-points")
    sys.exit(0)


def median(found, key):
    return statistics.median(points.error(f[key]) for f in found)


def near(found, key, most, name):
    ok(found and median(found, key) <= most, "%s: median error %.1f %% of %d, at most %.0f"
       % (name, 100 * median(found, key), len(found), 100 * most))


rows = points.points()
if not LONG:
    rows = rows[::48]
found = points.collect(PROGRAM, rows, ENV)
refused = [f["why"] for f in found if f["why"]]
ok(not refused, "%d of %d rows are simulated" % (len(found) - len(refused), len(found)),
   "\n".join(refused))
found = [f for f in found if not f["why"]]
ok({f["basis"] for f in found} == {"calibrated"}, "all by constants of their card")
near(found, "tpot", 0.20, "time between tokens")
near(found, "rate", 0.20, "output tokens/s")
inside = sum(points.inside(f["tpot"]) for f in found)
ok(inside >= 0.8 * len(found), "%d of %d times between tokens are inside their intervals, at least "
   "80 %%" % (inside, len(found)))
if LONG:
    for engine in ("vllm", "sglang"):
        own = [f for f in found if f["row"]["engine"] == engine]
        near(own, "tpot", 0.20, engine + ", time between tokens")
        near(own, "ttft", 0.40, engine + ", time to the first token")
    for name, equal in (("", ()), (" with as many requests in flight", ("concurrency",))):
        right, pairs = points.ranks(found, equal)
        ok(pairs > 500 and right >= 0.85 * pairs, "%d of %d pairs of configurations%s ranked as "
           "measured, at least 85 %%" % (right, pairs, name))

card = list(points.published())
card = points.collect(PROGRAM, card if LONG else card[3::13], ENV, points.simulate_published)
refused = [f["why"] for f in card if f["why"]]
ok(not refused, "MI300X: %d rows are simulated" % len(card), "\n".join(refused))
near([f for f in card if not f["why"]], "figure", 0.20, "MI300X")
finish()
