#!/usr/bin/env python3
"""The shipped constants of served requests are those that the documented commands make
(profiles/calibration/README.md), and intervals hold requests of a model that was left out of the card's fit."""
import csv
import os
import re
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, Run, finish, ok  # noqa: E402

ROWS = [os.path.join(TOP, "..", "shared", "data", "serving-points", name)
        for name in ("published.csv", "points.csv")]
if not all(os.path.exists(path) for path in ROWS):
    print("1..0 # SKIP no ../shared/data/serving-points")
    sys.exit(0)


def numbers(text):
    """Constants by name, in order: [(name, value), ...]."""
    return [(k, float(v)) for k, v in re.findall(
        r"\b(\w+_us|kernel_scale|wait_steps|queue_share|\w+_spread): ([\d.e+-]+)", text)]


def close(a, b):
    """Fits of the same rows on another machine: last digits may differ."""
    return [k for k, _ in a] == [k for k, _ in b] and \
        all(abs(x - y) <= 0.02 * abs(y) + 0.02 for (_, x), (_, y) in zip(a, b))


# ---- cards without rows ----
for engine, classes in (("vllm", ("vllm:nvidia", "vllm:amd", "vllm@0.5")),
                        ("sglang", ("sglang:amd", "sglang"))):
    with open(os.path.join(TOP, "profiles", "engines", engine + ".yaml")) as f:
        shipped = f.read().split("\nlatency:\n")[1]
    made = "".join(Run("calibrate", *ROWS, "--serving-class", c).out for c in classes)
    ok(made and close(numbers(made), numbers(shipped)),
       "profiles/engines/%s.yaml: latency is made by its commands" % engine,
       "made:\n%s\nshipped:\n%s" % (made, shipped))

# ---- cards with rows ----
for card in ("a100-80-sxm", "b200", "b300", "h100-sxm", "h200", "mi300x"):
    path = os.path.join(TOP, "profiles", "calibration", card + ".yaml")
    again = os.path.join(DIR, card + ".yaml")
    run = Run("calibrate", *ROWS, "--profile", path, "-o", again)
    with open(path) as f:
        shipped = f.read().split("\nserving:\n")[-1]
    made = ""
    if run.code == 0:
        with open(again) as f:
            made = f.read().split("\nserving:\n")[-1]
    ok(made and close(numbers(made), numbers(shipped)), "%s: constants are made by the command"
       % card, "%s\nmade:\n%s\nshipped:\n%s" % (run, made, shipped))

# ---- a model that the fit has not seen ----
HELD = "openai/gpt-oss-120b"
without = os.path.join(DIR, "without.csv")
with open(ROWS[1], newline="") as f:
    rows = list(csv.DictReader(f))
    fields = list(rows[0])
with open(without, "w", newline="") as f:
    out = csv.DictWriter(f, fields)
    out.writeheader()
    out.writerows(r for r in rows if r["model"] != HELD)
profile = os.path.join(DIR, "held.yaml")
Run("calibrate", without, "--profile", os.path.join(TOP, "profiles", "calibration", "h200.yaml"),
    "-o", profile)
held = [r for r in rows if r["model"] == HELD and r["gpu"] == "h200" and r["engine"] == "vllm" and
        r["mode"] == "aggregated" and r["speculative"] == "none" and r["engine_version"]]
inside = right = n = 0
for r in held[::3]:
    share = 0.9 if r["length_sampling"] else 1
    prompt, output = (int(int(r[k]) * share) for k in ("input_tokens", "output_tokens"))
    got = Run("plan", "gpt-oss-120b", "--gpu", "h200", "--count", r["gpus"], "--tp", r["tensor"],
              "--engine", "vllm@" + r["engine_version"], "--calibration", profile,
              "--concurrency", r["concurrency"], "--context", str(prompt + output), "--set",
              "serve.prompt_tokens=%d" % prompt, "--set", "serve.output_tokens=%d" % output,
              "--format", "json").json()["latency"]["tpot_ms"]
    want = float(r["tpot_ms"])
    n += 1
    inside += got["low"] <= want <= got["high"]
    right += abs(got["likely"] / want - 1) <= 0.25
ok(n >= 10 and inside >= 0.8 * n and right >= 0.75 * n,
   "%s on H200, left out of the card's fit: %d of %d inside the interval, %d within 25 %%"
   % (HELD, inside, n, right))
finish()
