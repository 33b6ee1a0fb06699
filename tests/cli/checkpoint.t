#!/usr/bin/env python3
"""checkpoint --chain: answers, the frontier, and what is refused."""
import json
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, FIXTURES, Run, finish, ok, same  # noqa: E402

CHAIN = json.load(open(os.path.join(FIXTURES, "chain.json")))


def ask(*words, chain="chain.json"):
    return Run("checkpoint", "--chain", chain, *words, "--format", "json")


def written(chain, name="wrong.json"):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(chain if isinstance(chain, str) else json.dumps(chain))
    return path


def answers():
    r = ask("--budget", "2GiB")
    doc = r.json()
    same((r.code, doc["class"], doc["feasible"], doc["optimal"]), (0, "e", True, True),
         "class e is the default", r)
    ok(doc["peak_bytes"] <= 2 << 30 and doc["gap"] == 0, "within the budget", r)
    same(sum(1 if s[0] == "K" else s[2] - s[1] + 1 for s in doc["plan"]), CHAIN["n"],
         "the plan covers the chain", r)
    ok(doc["certificate"]["plan_checked"] and doc["certificate"]["bound_checked"], "certified", r)
    same(ask("--budget", str(2 << 30)).out, r.out, "2GiB in bytes: the same bytes")
    r = ask("--budget", "100MiB")
    same((r.code, r.json()["feasible"]), (1, False), "no plan fits: exit 1", r)
    least = r.json()["least_bytes"]
    same(ask("--budget", str(least)).json()["peak_bytes"], least, "the least peak is reached")
    same(ask("--budget", str(least - 1)).code, 1, "a byte less is too little")
    times = {c: ask("--budget", "2GiB", "--class", c).json()["time"] for c in ("a", "b", "d", "e", "c0", "c")}
    ok(times["e"] <= min(times["b"], times["d"]) and times["b"] <= times["a"], "more choice, no slower",
       times)
    ok(times["c"] <= min(times["c0"], times["e"]), "nested segments and options are no slower", times)
    doc = ask("--budget", "2GiB", "--class", "c0").json()
    ok(doc["plan"] == [] and doc["schedule"][-1] == ["B", 0], "class c0 has a schedule", doc)
    same(len(ask("--budget", "2GiB", "--class", "a").json()["lengths"]), 24, "class a: all lengths")
    one, four = (ask("--budget", "6GiB", "--inflight", n).json() for n in ("1", "4"))
    same(four["class"], "pp", "--inflight means class pp")
    ok(four["time"] > one["time"], "microbatches in flight take memory", four)
    r = Run("checkpoint", "--chain", "-", "--budget", "2GiB", "--format", "json",
            stdin=json.dumps(CHAIN))
    same(r.json(), ask("--budget", "2GiB").json(), "a chain from standard input", r)


def frontier():
    path = os.path.join(DIR, "frontier.csv")
    for name in ("a", "b", "d", "e", "c0"):
        r = Run("checkpoint", "--chain", "chain.json", "--class", name, "--frontier", path)
        same((r.code, r.out), (0, ""), "--frontier alone prints nothing", r)
        lines = open(path).read().splitlines()
        points = [tuple(map(int, line.split(","))) for line in lines[1:]]
        ok(lines[0] == "peak_bytes,time,bound" and points, "class %s: CSV" % name, lines[:3])
        ok(all(a[0] < b[0] and a[1] > b[1] for a, b in zip(points, points[1:])), "it is monotone")
        for peak, time, bound in points[:: max(1, len(points) // 4)]:
            doc = ask("--class", name, "--budget", str(peak)).json()
            same((doc["time"], doc["peak_bytes"], bound), (time, peak, time), "a point is an answer")


def text():
    r = Run("checkpoint", "--chain", "chain.json", "--budget", "2GiB")
    for words in ("sqrt(N)", "no recomputation", "Megatron", "checkpoint_sequential", "proven",
                  "The peak is at", "Certificate"):
        ok(words in r.out, "the text has: %s" % words, r)


def refused():
    def wrong(name, words, *args, chain=None, code=2):
        args = ("--chain", written(chain), *args) if chain is not None else args
        r = Run("checkpoint", *args)
        ok(r.code == code and r.out == "" and words in r.err, name, r)

    def changed(**keys):
        return {**CHAIN, **keys}

    budget = ("--budget", "1GiB")
    wrong("no input", "needs an argument", *budget)
    wrong("no budget", "--budget", "--chain", "chain.json")
    wrong("a bad budget", "is a size", "--chain", "chain.json", "--budget", "lots")
    wrong("a bad class", "--class is", "--chain", "chain.json", *budget, "--class", "z")
    wrong("in flight in another class", "goes with class pp", "--chain", "chain.json", *budget,
          "--class", "e", "--inflight", "2")
    wrong("nothing in flight", "--inflight", "--chain", "chain.json", *budget, "--inflight", "0")
    wrong("no such file", "nowhere.json", "--chain", "nowhere.json", *budget)
    wrong("not JSON", "wrong.json:1:", *budget, chain="[1,")
    wrong("a list", "is a map", *budget, chain=[1])
    wrong("empty", "'f'", *budget, chain={})
    wrong("a missing key", "no 'wn'", *budget, chain={k: v for k, v in CHAIN.items() if k != "wn"})
    wrong("an unknown key", "no 'hold'", *budget, chain=changed(hold=[0] * 14))
    wrong("... and what was meant", "did you mean 'held'", *budget, chain=changed(hold=[0] * 14))
    wrong("lengths that disagree", "'x' has 14", *budget, chain=changed(x=CHAIN["x"][:-1]))
    wrong("n disagrees", "n is 13", *budget, chain=changed(n=13))
    wrong("a negative number", "f[0] is -1", *budget, chain=changed(f=[-1] + CHAIN["f"][1:]))
    wrong("a fraction", "b[0] is 1.5", *budget, chain=changed(b=[1.5] + CHAIN["b"][1:]))
    wrong("a text", "wn[0] is", *budget, chain=changed(wn=["1"] + CHAIN["wn"][1:]))
    wrong("a body out of range", "'body'", *budget, chain=changed(body=[2, 15]))
    wrong("a body from back to front", "'body'", *budget, chain=changed(body=[3, 2]))
    wrong("no options", "opts[0]", *budget, chain=changed(opts=[[]] + CHAIN["opts"][1:]))
    wrong("options of too few stages", "'opts' has 13", *budget, chain=changed(opts=CHAIN["opts"][1:]))
    bad = [[{**CHAIN["opts"][0][0], "r": 4}]] + CHAIN["opts"][1:]
    wrong("a first option that recomputes", "full tape", *budget, chain=changed(opts=bad))
    bad = [[{"t": 1, "r": 0, "wf": 0}]] + CHAIN["opts"][1:]
    wrong("an option without wb", "no 'wb'", *budget, chain=changed(opts=bad))
    wrong("sums beyond 64 bits", "2^60", *budget, chain=changed(f=[1 << 59] * 14))
    wrong("too many stages", "1 to 1024", *budget, chain=changed(f=[1] * 1025))
    r = Run("checkpoint", "--chain", written(changed(f=[-1] + CHAIN["f"][1:], n=3, body=[9])), *budget)
    ok(all(w in r.err for w in ("f[0]", "n is 3", "'body'")), "all faults in one run", r)
    r = Run("checkpoint", "--chain", written(changed(n=3)), *budget, "--format", "json")
    same((r.code, r.json()["schema"]), (2, "vramplan.checkpoint/1"), "faults as JSON", r)


for part in (answers, frontier, text, refused):
    part()
finish()
