#!/usr/bin/env python3
"""sweep and merge: rows against single plans, parts, going on after a stop, what is refused."""
import csv
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, PROGRAM, Run, finish, ok, same  # noqa: E402

SCENARIO = "sweep.yaml"
VARY = ["--vary", "parallel.tensor=1,2,3,8", "--vary", "precision.weights=bf16,fp8",
        "--vary", "serve.context=8k..128k*4"]
MANY = ["--vary", "serve.context=1k..256k+256", "--vary", "serve.concurrency=1..64+1"]


def path(name):
    return os.path.join(DIR, name)


def content(name):
    with open(path(name), "rb") as f:
        return f.read()


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def sweep(*options):
    return Run("sweep", SCENARIO, *options)


def compare_with_plans():
    """Every row says what the plan of that combination says."""
    run = sweep(*VARY, "--format", "csv", "--latency")
    same((run.code, run.err), (0, ""), "a sweep runs, whatever its verdicts", run)
    rows = rows_of(run.out)
    same([int(r["row"]) for r in rows], list(range(24)), "a row for each combination, in order")
    same([r["parallel.tensor"] for r in rows], [t for t in "1238" for _ in range(6)],
         "the last field varies fastest")
    wrong, refused = [], 0
    for row in rows:
        settings = [x for f in ("parallel.tensor", "precision.weights", "serve.context")
                    for x in ("--set", "%s=%s" % (f, row[f]))]
        plan = Run("plan", SCENARIO, *settings, "--format", "json")
        doc = plan.json()
        if row["verdict"] == "refused":
            refused += 1
            first = doc["diagnostics"][0]
            if (plan.code, first["id"], first["message"]) != (2, row["reason"], row["message"]):
                wrong.append(row)
            continue
        summary = doc["summary"]
        worst = [d for d in doc["devices"] if d["id"] == summary["worst_device"]][0]
        parts = {k: v["likely"] for k, v in worst["components"].items()}
        expected = {"verdict": doc["verdict"], "device": summary["worst_device"],
                    "need_low_bytes": summary["need_bytes"]["low"],
                    "need_likely_bytes": summary["need_bytes"]["likely"],
                    "need_high_bytes": summary["need_bytes"]["high"],
                    "usable_bytes": summary["usable_bytes"],
                    "headroom_bytes": summary["headroom_bytes"],
                    "reserved_bytes": summary["reserved_bytes"],
                    "kv_tokens": doc["kv_cache"]["tokens"]}
        expected.update(("%s_bytes" % k, v) for k, v in parts.items())
        if any(str(v) != row[k] for k, v in expected.items()):
            wrong.append((row, expected))
        step = doc["latency"]["step_ms"]
        for key in "low", "likely", "high":
            cell = row["step_%s_ms" % key]
            if (cell == "") != (step[key] is None) or cell and abs(
                    float(cell) - step[key]) > 1e-5 * step[key]:
                wrong.append((row, step))
    same(wrong[:1], [], "each row is the plan of its combination")
    same(refused, 6, "what cannot be divided over 3 ranks is refused in its row")
    ok("3 ranks" in rows[12]["message"], "with the reason", rows[12])
    verdicts = {r["verdict"] for r in rows}
    ok({"fits", "does-not-fit"} <= verdicts, "both verdicts occur", verdicts)


def forms():
    table = sweep(*VARY, "--format", "csv")
    lines = [json.loads(line) for line in sweep(*VARY, "--format", "json").out.splitlines()]
    rows = rows_of(table.out)
    same([line["schema"] for line in lines], ["vramplan.sweep/1"] * 24, "JSON lines")
    differ = [line for line, row in zip(lines, rows)
              if {k: str(v) for k, v in line.items() if k != "schema"} !=
              {k: v for k, v in row.items() if v}]
    same(differ[:1], [], "the same values in both forms")
    text = sweep(*VARY)
    ok(all(len(line) <= 80 for line in text.out.splitlines()), "text in 80 columns", text)
    ok(text.out.endswith("24 combinations: 11 fit, 0 at risk, 7 do not fit, 6 refused\n"),
       "text ends with a count", text)
    text = sweep(*VARY, "--latency")
    ok("step ms" in text.out and all(len(line) <= 80 for line in text.out.splitlines()),
       "times in text", text)
    for name, begins in ("f.csv", b"row,"), ("f.jsonl", b'{"schema"'), ("f.txt", b"tensor"):
        run = sweep(*VARY, "-o", path(name))
        same((run.code, run.out, run.err), (0, "", ""), "-o %s is quiet" % name)
        ok(content(name).startswith(begins) and not os.path.exists(path(name + ".part")),
           "its form goes by its name")
    same(content("f.csv"), table.bytes, "the file is what standard output has")
    pairs = sweep("--vary", "parallel.tensor,hardware.count=1:1,8:16", "--format", "csv")
    same([(r["parallel.tensor"], r["devices"]) for r in rows_of(pairs.out)],
         [("1", "1"), ("8", "16")], "fields that vary together", pairs)
    lacking = Run("sweep", "tiny-moe.json", "--vary", "hardware.gpu=mi300x,h200", "--format", "csv")
    same([r["verdict"] for r in rows_of(lacking.out)], ["fits", "fits"],
         "what the input lacks may be what varies", lacking)


def where():
    run = sweep(*VARY, "--where", "parallel.tensor != 3 && serve.context * 2 > 64k",
                "--format", "csv")
    same([int(r["row"]) for r in rows_of(run.out)], [2, 5, 8, 11, 20, 23],
         "--where leaves rows out, the others keep their numbers", run)
    run = sweep(*VARY, "--where", "serve.concurrency == 16 && engine.name == vllm")
    ok("24 combinations" in run.out, "fields that do not vary count too", run)


def parts():
    for ending in "csv", "jsonl":
        whole = "whole." + ending
        sweep(*VARY, "-o", path(whole))
        for count in 1, 3, 24, 30:
            names = [path("p%d.%s" % (i, ending)) for i in range(1, count + 1)]
            for i, name in enumerate(names, 1):
                sweep(*VARY, "--shard", "%d/%d" % (i, count), "-o", name)
            run = Run("merge", *reversed(names), "-o", path("merged." + ending))
            same((run.code, run.err), (0, ""), "merge of %d parts, %s" % (count, ending))
            same(content("merged." + ending), content(whole), "gives the bytes of the whole")
    same(Run("merge", path("whole.csv")).bytes, content("whole.csv"), "a whole one is itself")
    names = [path("p%d.csv" % i) for i in (1, 2, 3)]
    for i, name in enumerate(names, 1):
        sweep(*VARY, "--shard", "%d/3" % i, "-o", name)
    sweep(*VARY, "--set", "serve.concurrency=17", "--shard", "3/3", "-o", path("other.csv"))
    sweep(*VARY, "--shard", "3/3", "-o", path("p3.jsonl"))
    cut = write("cut.csv", content("p3.csv")[:-5])
    lines = content("p3.csv").splitlines(True)
    mixed = write("mixed.csv", b"".join([lines[0]] + lines[:0:-1]))
    for files, words in [(names[:2], "of 3 parts 1 are missing, such as 3"),
                         (names[1:], "such as 1"), (names + names[:1], "given twice"),
                         (names[:2] + [path("other.csv")], "not a part of the sweep"),
                         (names[:2] + [path("p3.jsonl")], "one part is CSV"),
                         (names[:2] + [cut], "cut off"), (names[:2] + [mixed], "not in order"),
                         ([os.path.join(FIXTURES, SCENARIO)], "no file that `sweep` wrote"),
                         ([path("whole.csv")] * 2, "given twice"), ([path("none.csv")], "none.csv")]:
        run = Run("merge", *files)
        ok(run.code == 2 and words in run.err, "merge says: %s" % words, run)


def pareto():
    run = sweep(*VARY, "--pareto", "--objectives", "devices,headroom,context", "--format", "csv")
    rows = [r for r in rows_of(sweep(*VARY, "--format", "csv").out) if r["verdict"] == "fits"]

    def point(row):
        return (int(row["devices"]), -int(row["headroom_bytes"]), -int(row["serve.context"]))

    best = [r for r in rows if not any(
        all(a <= b for a, b in zip(point(o), point(r))) and point(o) != point(r) for o in rows)]
    same([r["row"] for r in rows_of(run.out)], [r["row"] for r in best],
         "--pareto keeps what nothing beats", run)
    for i in 1, 2, 3:
        for ending in "csv", "jsonl":
            sweep(*VARY, "--shard", "%d/3" % i, "-o", path("p%d.%s" % (i, ending)))
    for ending in "csv", "jsonl":
        merged = Run("merge", "--pareto", "--objectives", "devices,headroom,context",
                     *[path("p%d.%s" % (i, ending)) for i in (1, 2, 3)])
        form = "csv" if ending == "csv" else "json"
        alone = sweep(*VARY, "--pareto", "--objectives", "devices,headroom,context",
                      "--format", form)
        same(merged.bytes, alone.bytes, "merge --pareto of parts is that of the whole, " + ending)
    ok("beaten by none: " in sweep(*VARY, "--pareto").out, "the text counts them")
    for options, words in [(["--objectives", "need"], "belongs to --pareto"),
                           (["--pareto", "--shard", "1/2"], "merge --pareto"),
                           (["--pareto", "--objectives", "neet"], "no column")]:
        refused = sweep(*VARY, *options)
        ok(refused.code == 2 and words in refused.err, "refused: %s" % words, refused)


def going_on():
    whole = sweep(*VARY, "--format", "csv").bytes
    other = sweep(*VARY, "--set", "serve.concurrency=17", "--format", "csv").bytes
    head = whole.index(b"\n") + 1
    for size in 0, 5, head, head + 7, len(whole) // 2, len(whole) - 1, len(whole):
        write("r.csv.part", whole[:size])
        run = sweep(*VARY, "-o", path("r.csv"))
        ok(run.code == 0 and content("r.csv") == whole and not os.path.exists(path("r.csv.part")),
           "goes on after %d of %d bytes" % (size, len(whole)), run)
    # rows that are there are kept, not made again
    row = whole.splitlines(True)[1]
    write("r.csv.part", whole[:head] + row.replace(b",gpu0,", b",GPU0,"))
    sweep(*VARY, "-o", path("r.csv"))
    ok(b",GPU0," in content("r.csv"), "rows before are kept")
    for data in other[:len(other) // 2], b"a,b\n1,2\n", whole[:head] + b"x\n" + whole[head:]:
        write("r.csv.part", data)
        run = sweep(*VARY, "-o", path("r.csv"))
        ok(run.code == 2 and "r.csv.part holds rows of another sweep" in run.err and
           content("r.csv.part") == data, "another sweep's rows are neither used nor lost", run)
    run = sweep(*VARY, "-o", path("r.csv"), "--restart")
    ok(run.code == 0 and content("r.csv") == whole, "--restart throws them away", run)
    os.symlink("r.csv", path("link.csv"))
    sweep(*VARY, "-o", path("link.csv"))
    ok(os.path.islink(path("link.csv")) and content("r.csv") == whole, "a link stays a link")


def interrupt():
    """Ctrl-C leaves whole rows, and the next run ends with the same bytes."""
    command = [PROGRAM, "sweep", SCENARIO, *MANY, "-o", path("i.csv"), "--threads", "1"]
    for name in "i.csv", "i.csv.part":
        if os.path.exists(path(name)):
            os.remove(path(name))
    started = subprocess.Popen(command, cwd=FIXTURES, env=ENV, stderr=subprocess.PIPE)
    end = time.time() + 60
    while time.time() < end and not (os.path.exists(path("i.csv.part")) and
                                     os.path.getsize(path("i.csv.part")) > 20000):
        time.sleep(0.002)
    started.send_signal(signal.SIGSTOP)
    second = Run("sweep", SCENARIO, *MANY, "-o", path("i.csv"))
    ok(second.code == 4 and "another sweep is writing" in second.err, "one at a time", second)
    started.send_signal(signal.SIGINT)
    started.send_signal(signal.SIGCONT)
    err = started.communicate()[1].decode()
    ok(started.returncode == 4 and "interrupted" in err and "goes on from there" in err,
       "Ctrl-C ends it with 4 and says how to go on", err)
    part = content("i.csv.part")
    ok(part.endswith(b"\n") and not os.path.exists(path("i.csv")), "whole rows are left")
    ok(Run("merge", path("i.csv.part")).code == 2, "which merge does not take for a whole")
    run = sweep(*MANY, "-o", path("i.csv"))
    ok(run.code == 0 and content("i.csv").startswith(part), "the next run goes on", run)
    sweep(*MANY, "-o", path("j.csv"), "--threads", "1")
    same(content("i.csv") == content("j.csv"), True, "as if it had never stopped, on one thread")
    same(content("i.csv").count(b"\n"), 1021 * 64 + 1, "with all rows")


def bar():
    """On a terminal there is a progress bar, which is gone at the end."""
    master, slave = pty.openpty()
    p = subprocess.Popen([PROGRAM, "sweep", SCENARIO, *MANY, "-o", path("bar.csv"), "--threads", "1"],
                         cwd=FIXTURES, env=ENV, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        if not select.select([master], [], [], 60)[0]:
            break
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    p.wait()
    os.close(master)
    ok(re.search(rb"\[#*\.*\] +\d+%  [\d,]+ of 65,344  [\d,]+/s  \d+:\d\d left", seen) or
       p.returncode == 0 and seen == b"", "a bar with rate and time left", seen[-300:])
    ok(seen == b"" or seen.endswith(b"\r" + b" " * 79 + b"\r"), "it is taken away")


def plot():
    """Data and script are there with or without gnuplot; refused lines are not drawn."""
    run = sweep(*VARY, "--plot", path("x.svg"), "-o", path("x.csv"))
    ok(run.code == 0 and b"<svg" in content("x.svg"), "--plot draws", run)
    rows = {(r["parallel.tensor"], r["precision.weights"], r["serve.context"]): r
            for r in rows_of(content("x.csv").decode())}
    same(len(rows), 24, "the rows are written too")
    wrong, lines, band = [], 0, []
    for block in content("x.dat").decode().split("\n\n\n"):
        points = [line.split() for line in block.splitlines() if not line.startswith("#")]
        title = re.search("^# tensor (.*), weights (.*): x y$", block, re.M)
        if not title:  # the band of the line that follows, or what may be used
            band = points
            continue
        lines += 1
        for (x, low, high), (x2, likely) in zip(band, points):
            row = rows[title.group(1), title.group(2), x]
            cells = [row["need_%s_bytes" % c] for c in ("low", "likely", "high")]
            want = [int(c) / 2**30 if c else float("nan") for c in cells]
            got = [float(v) for v in (low, likely, high)]
            if x != x2 or any(not (g == w or abs(g - w) < 1e-9 * w or g != g and w != w)
                              for g, w in zip(got, want)):
                wrong.append((x, got, want))
    ok(lines > 3, "lines are drawn", lines)
    same(wrong, [], "with the values of the rows")
    script = content("x.gp").decode()
    ok("tensor 8, weights fp8" in script and "tensor 3" not in script, "refused lines are left out",
       script)
    for options, words in [(["--vary", "precision.weights=bf16,fp8"], "varies over numbers"),
                           (VARY + ["--chart", "pareto"], "goes with --pareto"),
                           (VARY + ["--chart", "heat"], "two fields that vary"),
                           (VARY + ["--chart", "kv"], "has no --chart kv"),
                           (VARY + ["--shard", "1/2"], "without --shard")]:
        run = sweep(*options, "--plot", path("y.png"))
        ok(run.code == 2 and words in run.err, "--plot: %s" % words, run)
    run = sweep(*VARY, "--chart", "heat")
    ok(run.code == 2 and "goes with --plot" in run.err, "--chart without --plot", run)
    run = sweep("--vary", "serve.context=1..20+1", "--vary", "parallel.tensor=1,2", "--plot",
                path("y.png"))
    ok(run.code == 2 and "20 lines of 2 points" in run.err, "too many lines", run)


def refused():
    for options, words in [
            ([], "needs a field to vary"), (["--vary", "serve.context"], "no '='"),
            (["--vary", "serve.context=8k..4k*2"], "ends before it begins"),
            (["--vary", "serve.context=1,x"], "serve.context=1,x:1:17: error"),
            (["--vary", "serve.contxt=1,2"], "serve.contxt=1,2:1:1: error"),
            (["--vary", "hardware.gpu=mi300x,mi33"], "hardware.gpu=mi300x,mi33:1:21: error"),
            (["--vary", "serve.context=1..1000000+1", "--vary", "serve.concurrency=1..1001+1"],
             "10^9"),
            (["--vary", "serve.context=1,2", "--context", "8k"], "--vary varies"),
            (["--vary", "serve.context=1,2", "--where", "serve.context <"], "ends where"),
            (["--vary", "serve.context=1,2", "--shard", "3/2"], "--shard is I/N"),
            (["--vary", "serve.context=1,2", "--shard", "0/2"], "--shard is I/N"),
            (["--vary", "serve.context=1,2", "--threads", "0"], "--threads"),
            (["--vary", "serve.context=1,2", "--format", "markdown"], "markdown")]:
        run = sweep(*options)
        ok(run.code == 2 and words in run.err and run.out == "", "refused: %s" % words, run)
    run = Run("sweep", "several.yaml", "--vary", "serve.context=1,2")
    ok(run.code == 2 and "one scenario is wanted" in run.err, "one scenario at a time", run)
    run = Run("sweep", "tiny-moe.json", "--vary", "serve.context=1k,2k")
    ok(run.code == 2 and "hardware.gpu" in run.err and run.out == "",
       "what all combinations lack is an error, not a column", run)
    run = sweep(*VARY, "-o", os.path.join(DIR, "no", "such", "s.csv"))
    ok(run.code == 4 and "No such file" in run.err, "a file that cannot be made", run)
    if os.path.exists("/dev/full"):
        run = sweep(*VARY, "-o", "/dev/full")
        ok(run.code == 4 and "No space left" in run.err, "a full disk", run)


compare_with_plans()
forms()
where()
parts()
pareto()
going_on()
interrupt()
bar()
plot()
refused()
shutil.rmtree(path("none"), ignore_errors=True)
finish()
