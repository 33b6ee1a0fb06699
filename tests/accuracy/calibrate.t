#!/usr/bin/env python3
"""calibrate on public kernel tables: rows that were not fitted are predicted, from 40 chosen rows of
each kind and type and from four fifths of all rows; intervals hold; shipped profiles are what their
commands make."""
import concurrent.futures
import csv
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, ENV, LONG, PROGRAM, finish, ok  # noqa: E402

TABLES = os.path.join(TOP, "..", "shared", "data", "kernels")
CARDS = (("a100-80-sxm", "a100-sxm"), ("h100-sxm", "h100-sxm"), ("h200", "h200-sxm"),
         ("l40s", "l40s"))
KINDS = ("gemm", "prefill-attention", "decode-attention")
AGAIN = {"a100-80-sxm": "gemm", "h100-sxm": "prefill-attention", "h200": "decode-attention",
         "l40s": "gemm"}

# Most that the median error may be, by range and type; "" stands for all other types. Products of 16
# bit on L40S scatter by more than any form of their sizes says (docs/CALIBRATION.md).
PROBE = {"m<=16": {"": 0.10, "fp8_block": 0.14},
         "m>=512": {"": 0.09, "fp8_block": 0.11, "l40s fp8": 0.15, "l40s bfloat16": 0.10}}
PROBE_ATTENTION = 0.12
DENSE = {"": 0.06, "fp8_block": 0.09, "l40s bfloat16": 0.063}
DENSE_ATTENTION = 0.065
INSIDE = 0.80  # share of rows in their intervals: of one type, and of all
INSIDE_ALL = 0.85


def limit(table, card, dtype):
    return table.get("%s %s" % (card, dtype), table.get(dtype, table[""]))


def run(*args):
    p = subprocess.run([PROGRAM, "calibrate", *args], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, env=ENV, timeout=100)
    if p.returncode:
        raise RuntimeError("calibrate %s: %s" % (" ".join(args), p.stderr.decode()))
    return p.stdout.decode()


def read(path):
    with open(path) as f:
        rows = list(csv.reader(f))
    return rows[0], rows[1:]


def write(path, header, rows):
    with open(path, "w") as f:
        csv.writer(f, lineterminator="\n").writerows([header] + rows)


def scores(card, name, fitted, rest):
    """Fits to some tables and checks against others."""
    profile = os.path.join(DIR, "%s-%s.yaml" % (card, name))
    run(*fitted, "--gpu", card, "-o", profile)
    doc = json.loads(run("--profile", profile, "--check", *rest, "--format", "json"))
    return {(kind, dtype): ranges for kind in ("gemm", "prefill_attention", "decode_attention")
            for dtype, ranges in doc[kind].items()}


def probe(card, tables):
    """40 rows of each kind and type, chosen without looking at their times."""
    fitted, rest = [], []
    for kind, path in tables.items():
        header, rows = read(path)
        chosen = os.path.join(DIR, "%s-%s-chosen.csv" % (card, kind))
        run(path, "--choose-shapes", "40", "-o", chosen)
        taken = {tuple(row) for row in read(chosen)[1]}
        fitted.append(chosen)
        rest.append(os.path.join(DIR, "%s-%s-others.csv" % (card, kind)))
        write(rest[-1], header, [row for row in rows if tuple(row) not in taken])
    return scores(card, "probe", fitted, rest)


def dense(card, tables):
    """Every fifth row is held out."""
    fitted, rest = [], []
    for kind, path in tables.items():
        header, rows = read(path)
        for name, some, into in (("kept", lambda i: i % 5 != 2, fitted),
                                 ("held", lambda i: i % 5 == 2, rest)):
            into.append(os.path.join(DIR, "%s-%s-%s.csv" % (card, kind, name)))
            write(into[-1], header, [row for i, row in enumerate(rows) if some(i)])
    return scores(card, "dense", fitted, rest)


def shipped(card, tables):
    """How far the shipped profile's errors on its own rows are from those of a new fit; one kind of
    each card."""
    paths = [tables[AGAIN[card]]]
    profile = os.path.join(DIR, "%s-again.yaml" % card)
    run(*paths, "--gpu", card, "-o", profile)
    ours = os.path.join(TOP, "profiles", "calibration", card + ".yaml")
    a, b = (json.loads(run("--profile", p, "--check", *paths, "--format", "json"))
            for p in (profile, ours))
    return max(abs(v["p90_abs_rel_error"] - b[kind][dtype][r]["p90_abs_rel_error"])
               for kind in a if kind not in ("schema", "gpu", "diagnostics")
               for dtype, ranges in a[kind].items() for r, v in ranges.items())


def work(card):
    tables = {k: os.path.join(TABLES, "%s-%s.csv" % (card[1], k)) for k in KINDS}
    return probe(card[0], tables), dense(card[0], tables), shipped(card[0], tables)


def judge(card, results):
    sparse, full, drift = results
    for (kind, dtype), ranges in sparse.items():
        median = {r: v["median_abs_rel_error"] for r, v in ranges.items()}
        name = "%s, 40 rows: %s %s" % (card, kind, dtype)
        if kind == "gemm":
            for r, table in PROBE.items():
                most = limit(table, card, dtype)
                ok(median[r] <= most, "%s, %s: %.1f %%, at most %g %%"
                   % (name, r, 100 * median[r], 100 * most), ranges)
        else:
            ok(median["all"] <= PROBE_ATTENTION, "%s: %.1f %%, at most %g %%"
               % (name, 100 * median["all"], 100 * PROBE_ATTENTION), ranges)
    for (kind, dtype), ranges in full.items():
        most = limit(DENSE, card, dtype) if kind == "gemm" else DENSE_ATTENTION
        v = ranges["all"]
        ok(v["median_abs_rel_error"] <= most, "%s, rows held out: %s %s: %.1f %%, at most %g %%"
           % (card, kind, dtype, 100 * v["median_abs_rel_error"], 100 * most), ranges)
    ok(drift < 0.002, "%s: the shipped profile is what its tables give" % card, drift)
    for fits in (sparse, full):
        for (kind, dtype), ranges in fits.items():
            v = ranges["all"]
            ok(v["inside_interval"] >= INSIDE, "%s: %s %s: %.0f %% of %d rows inside" %
               (card, kind, dtype, 100 * v["inside_interval"], v["n"]), ranges)


def main():
    if not os.path.isdir(TABLES):
        print("1..0 # SKIP no %s" % os.path.relpath(TABLES, TOP))
        return
    cards = CARDS if LONG else CARDS[1::2]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(work, cards))
    rows = inside = 0
    for (card, _), results in zip(cards, found):
        judge(card, results)
        for fits in results[:2]:
            rows += sum(r["all"]["n"] for r in fits.values())
            inside += sum(r["all"]["n"] * r["all"]["inside_interval"] for r in fits.values())
    ok(inside >= INSIDE_ALL * rows, "%.1f %% of all %d rows inside" % (100 * inside / rows, rows))
    finish()


main()
