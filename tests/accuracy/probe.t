#!/usr/bin/env python3
"""End to end on the processor: probe it, predict transformer blocks of other shapes, measure those.
The median error is at most 15 %. Machines that do other work beside measure badly: a run of which a
third is noisy does not count, and the best of a few runs is taken."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import tap  # noqa: E402
from tap import DIR, Run, finish, ok  # noqa: E402

AIM, RUNS = 0.15, 4
# One thread: others' work takes turns with it instead of holding up half of it.
tap.ENV.update(OMP_NUM_THREADS="1", TMPDIR=DIR)


def run():
    profile = os.path.join(DIR, "cpu.yaml")
    probe = Run("probe", "--backend", "cpu", "--quick", "--only", "launch,bandwidth,gemm,prefill",
                "-o", profile, "--format", "json")
    if probe.code != 0:
        return None, 0, probe
    verify = Run("probe", "--backend", "cpu", "--quick", "--verify", profile, "--format", "json")
    doc = verify.json()
    noisy = probe.json()["noisy"] / probe.json()["figures"]
    blocks = doc["verification"]
    if blocks["good"] < 4:
        return 1, 1, verify
    return blocks["median_abs_rel_error"], noisy, verify


def main():
    if "asan" in os.path.basename(tap.PROGRAM):
        print("1..0 # SKIP times of a program with sanitizers say nothing")
        return
    if not tap.LONG:
        print("1..0 # SKIP a long test: set LONG=1")
        return
    found = []
    for _ in range(RUNS):
        error, noisy, about = run()
        if error is None:
            ok(False, "the processor can be probed", about)
            return finish()
        print("# median error %.1f %%, %.0f %% of the figures noisy" % (100 * error, 100 * noisy))
        found.append((error, noisy))
        if error <= AIM and noisy <= 1 / 3:
            break
    good = [error for error, noisy in found if noisy <= 1 / 3]
    if not good:
        print("1..0 # SKIP this machine is too busy to measure anything")
        return
    ok(min(good) <= AIM, "blocks of other shapes: %.1f %%, aim %.0f %%" %
       (100 * min(good), 100 * AIM))
    finish()


main()
