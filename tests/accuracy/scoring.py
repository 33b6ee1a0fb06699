"""Cases with known answers against floors: the share of figures that are right, per group and
stage. What score-*.t have in common. Standard library only."""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, ENV, PROGRAM, finish, ok  # noqa: E402

SCORE = os.path.join(TOP, "..", "shared", "score", "score.py")
SECONDS = 100  # of a group


def start(cases, group):
    out = os.path.join(DIR, group + ".json")
    return out, subprocess.Popen([sys.executable, SCORE, cases, "--only", group, "--bin", PROGRAM,
                                  "--json", out, "--misses", "60"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENV)


def run(cases, groups):
    """All groups side by side: the scores by (group, stage), the false fits, what was printed."""
    rows, false_fits, printed = {}, [], ""
    for group, (out, p) in [(g, start(cases, g)) for g in groups]:
        text = p.communicate(timeout=SECONDS)[0].decode(errors="replace")
        printed += text
        if not ok(p.returncode == 0 and os.path.exists(out), "the score script runs: %s" % group,
                  text):
            continue
        with open(out) as f:
            score = json.load(f)
        false_fits += score.pop("false_fits")
        rows.update((tuple(k.split("/")), v) for k, v in score.items())
    return rows, false_fits, printed


def hold(name, floors, fewest, inside, judged=None):
    """floors: {stage: (least share right in per cent, groups)}; fewest figures, and least share of
    true values inside their intervals, both over the groups in `judged` (all)."""
    cases = os.path.join(TOP, "..", "shared", "score", "cases", name)
    for path in (SCORE, cases):
        if not os.path.exists(path):
            print("1..0 # SKIP no %s" % os.path.relpath(path, TOP))
            return
    groups = sorted({g for _, names in floors.values() for g in names})
    rows, false_fits, text = run(cases, groups)
    for stage, (floor, names) in floors.items():
        present = [g for g in names if (g, stage) in rows]
        ok(present, "there are cases of stage %s" % stage, text)
        for group in present:
            row = rows[(group, stage)]
            share = 100.0 * row["right"] / row["n"]
            misses = "\n".join(line for line in text.splitlines()
                               if line.startswith("MISS %s/%s " % (group, stage)))
            ok(share >= floor, "%s, %s: %.1f %% of %d right, at least %d %%"
               % (group, stage, share, row["n"], floor), misses)
    some = [v for (group, _), v in rows.items() if not judged or group in judged]
    figures = sum(v["n"] for v in some)
    ok(figures >= fewest, "%d figures, at least %d" % (figures, fewest), text)
    intervals = sum(v["intervals"] for v in some)
    share = 100.0 * sum(v["inside"] for v in some) / max(intervals, 1)
    ok(share >= inside, "%.1f %% of %d true values are inside their intervals, at least %d %%"
       % (share, intervals, inside), text)
    ok(false_fits == [], "nothing is said to fit that ran out of memory", false_fits)
    finish()
