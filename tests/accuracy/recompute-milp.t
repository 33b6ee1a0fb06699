#!/usr/bin/env python3
"""One tape option per stage (class d) against a mixed-integer program that GLPK solves."""
import json
import os
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from tap import DIR, Run, finish, ok  # noqa: E402

CHAINS, STAGES = 8, 14


def make_chain(rng):
    n = STAGES
    opts = [[{"t": rng.randint(20, 200), "r": 0, "wf": rng.randint(0, 20), "wb": rng.randint(0, 40)}]
            for _ in range(n)]
    for stage in opts:
        for share in (2, 4):
            stage.append({"t": stage[0]["t"] // share, "r": rng.randint(1, 20) * share,
                          "wf": rng.randint(0, 20), "wb": rng.randint(0, 40) + stage[0]["t"] // share})
    size = lambda: [rng.randint(1, 30) for _ in range(n + 1)]  # noqa: E731
    return {"x": size(), "g": size(), "f": [rng.randint(5, 30) for _ in range(n)],
            "b": [rng.randint(5, 60) for _ in range(n)], "wn": [0] * n, "opts": opts}


def program(chain, budget):
    """CPLEX LP text: stored bytes before each stage, and what its option needs, within the budget."""
    x, g, opts = chain["x"], chain["g"], chain["opts"]
    cells = [(i, j) for i in range(len(opts)) for j in range(len(opts[i]))]
    need = {(i, j): x[i] + opts[i][j]["t"] + max(x[i + 1] + opts[i][j]["wf"],
                                                 g[i + 1] + g[i] + opts[i][j]["wb"])
            for i, j in cells}
    lines = ["minimize", " cost: " + " + ".join("%d z%d_%d" % (opts[i][j]["r"], i, j) for i, j in cells),
             "subject to"]
    for i in range(len(opts)):
        lines.append(" one%d: " % i + " + ".join("z%d_%d" % (i, j) for j in range(len(opts[i]))) + " = 1")
        terms = ["%d z%d_%d" % (opts[k][j]["t"], k, j) for k, j in cells if k < i]
        terms += ["%d z%d_%d" % (need[i, j], i, j) for j in range(len(opts[i]))]
        lines.append(" room%d: %s <= %d" % (i, " + ".join(terms), budget - sum(x[:i])))
    return "\n".join(lines + ["binary"] + [" z%d_%d" % c for c in cells] + ["end", ""])


def glpk(chain, budget):
    """The optimum, None when there is no plan."""
    lp, out = os.path.join(DIR, "model.lp"), os.path.join(DIR, "out.txt")
    with open(lp, "w") as f:
        f.write(program(chain, budget))
    p = subprocess.run(["glpsol", "--lp", lp, "-w", out], stdout=subprocess.PIPE, text=True, timeout=60)
    with open(out) as f:
        status = [line.split() for line in f if line.startswith("s mip")][0]
    assert status[4] in "on", p.stdout
    return int(float(status[5])) if status[4] == "o" else None


def main():
    if not shutil.which("glpsol"):
        print("1..0 # SKIP no glpsol (Debian: glpk-utils)")
        return
    rng = random.Random(7)
    path = os.path.join(DIR, "chain.json")
    for c in range(CHAINS):
        chain = make_chain(rng)
        with open(path, "w") as f:
            json.dump(chain, f)
        ask = lambda m: Run("checkpoint", "--chain", path, "--class", "d", "--budget", str(m),  # noqa: E731
                            "--format", "json").json()
        least, most = ask(0)["least_bytes"], ask(1 << 40)["peak_bytes"]
        base = sum(chain["f"]) + sum(chain["b"])
        for budget in (least - 1, least, (3 * least + most) // 4, (least + most) // 2, most):
            answer, extra = ask(budget), glpk(chain, budget)
            mine = answer["time"] - base if answer["feasible"] else None
            ok(mine == extra, "chain %d, budget %d: %s" % (c, budget, extra), "got %s" % mine)
    finish()


main()
