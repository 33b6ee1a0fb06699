#!/usr/bin/env python3
"""The planner's caching allocator against allocator_replay.py, on the same traces: a training loop
and random ones, for several settings and device sizes. All figures must be the same."""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "tests", "cli")]
from allocator_replay import (EMPTY, GIVE, KIB, MIB, SYNC, TAKE, USE, Allocator,  # noqa: E402
                              Settings)
from tap import PROGRAM, finish, ok  # noqa: E402

CONFS = [
    "",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:2,32:4,>:1]",
    "max_split_size_mb:24",
    "max_split_size_mb:40,max_non_split_rounding_mb:30",
    "garbage_collection_threshold:0.6",
    "max_split_size_mb:64,garbage_collection_threshold:0.5,large_segment_size_mb:12",
    "expandable_segments:True",
    "expandable_segments:True,large_segment_size_mb:14,roundup_power2_divisions:2",
]


def helper():
    """The C side: the unit test's program, built beside the planner."""
    for folder in (os.path.dirname(PROGRAM), os.path.join(os.path.dirname(PROGRAM), "build")):
        path = os.path.join(folder, "tests", "unit", "test_allocator")
        if os.access(path, os.X_OK):
            return path
    return None


def training(layers, steps, tokens):
    """Forward keeps three tensors of a layer, backward frees them; gradients and states stay."""
    trace, names = [], iter(range(1 << 30))

    def take(n):
        name = next(names)
        trace.append((TAKE, 0, name, n))
        return name

    def give(*which):
        trace.extend((GIVE, 0, name, 0) for name in which)

    for layer in range(layers):
        take((layer % 3 + 5) * MIB + 512)
        take(9000)
    states = []
    for step in range(steps):
        width = tokens + 64 * (step % 3)
        kept = []
        for layer in range(layers):
            kept.append([take(width * 4096), take(width * 14336), take(width * 4)])
            give(take(width * 22000))
        gradients = []
        for layer in reversed(range(layers)):
            flow = take(width * 4096)
            gradients.append(take((layer % 3 + 5) * MIB + 512))
            give(take(width * 14336), *kept[layer], flow)
        if not states:
            states = [take((layer % 3 + 5) * MIB + 512) for layer in range(2 * layers)]
        give(*gradients)
    return trace


def mixed(seed, events):
    """Anything, on three streams."""
    rnd = random.Random(seed)
    live, trace, name = [], [], 0
    for _ in range(events):
        what = rnd.random()
        if what < 0.01:
            trace.append((SYNC, rnd.randrange(3), 0, 0))
        elif what < 0.013:
            trace.append((EMPTY, 0, 0, 0))
        elif what < 0.06 and live:
            trace.append((USE, rnd.randrange(3), rnd.choice(live), 0))
        elif what < 0.5 and live:
            trace.append((GIVE, 0, live.pop(rnd.randrange(len(live))), 0))
        else:
            unit = rnd.choice((1, 700, 37 * KIB, 400 * KIB, MIB))
            trace.append((TAKE, rnd.randrange(3), name, unit * rnd.randrange(60)))
            live.append(name)
            name += 1
    return trace


def compare(program, name, trace, conf, device, other):
    fraction = 900000000 if device else 0
    lines = "".join("%d,%d,%d,%d\n" % event for event in trace)
    done = subprocess.run([program, conf, str(device), str(other), str(fraction)], input=lines,
                          stdout=subprocess.PIPE, text=True)
    said = {w[0]: tuple(map(int, w[1:])) for w in map(str.split, done.stdout.splitlines())}
    second = Allocator(Settings(conf, device, other, fraction))
    second.run(trace)
    expected = second.result()
    ok(done.returncode == 0 and said == expected,
       "%s, %s, device %d MiB" % (name, conf or "no settings", device // MIB),
       "exit %d\nplanner %r\nreplay  %r" % (done.returncode, said, expected))
    return expected


def main():
    program = helper()
    if program is None:
        print("1..0 # SKIP the unit tests are not built")
        return
    met = {"retries": 0, "failures": 0}
    for conf in CONFS:
        results = [compare(program, "training", training(6, 5, 700), conf, 0, 0),
                   compare(program, "training", training(6, 5, 700), conf, 280 * MIB, 10 * MIB),
                   compare(program, "mixed", mixed(1, 700), conf, 0, 0),
                   compare(program, "mixed", mixed(2, 900), conf, 300 * MIB, 20 * MIB)]
        for key in met:
            met[key] += sum(r[key][0] for r in results)
    ok(met["retries"] > 20 and met["failures"] > 5, "the traces made memory run out", repr(met))
    finish()


main()
