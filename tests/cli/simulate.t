#!/usr/bin/env python3
"""simulate: traffic in, a promise kept or not out. Figures come from the planner's own calibration, so
they are held against each other and against bounds, not against fixed numbers; the golden output masks
them. Bad traces are told with their line."""
import csv
import io
import json
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tap import DIR as TMP  # noqa: E402
from tap import LONG, PROGRAM, TOP, Run, finish, ok, same, skip  # noqa: E402

MODEL = """vramplan: 1
name: chat
model: llama-3.1-8b
hardware: {gpu: %s}
engine: {name: vllm, version: "0.19"}
"""


def write(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def scenario(name, serve, gpu="h100-sxm"):
    return write(name, MODEL % gpu + "serve: %s\n" % serve)


CHAT = scenario("chat.yaml", "{context: 8192, prompt_tokens: 1200, output_tokens: "
                "{lognormal: [250, 1.0]}, slo: {ttft_p99: 2 s, tpot_p95: 50 ms}}")


def trace(name, rows, head="arrival_s,prompt_tokens,output_tokens"):
    return write(name, "\n".join([head] + rows) + "\n")


DAY = trace("day.csv", ["%.3f,%d,%d" % (i * 0.5, 200 + i % 7 * 300, 20 + i % 5 * 40)
                        for i in range(400)])


def run(*args, stdin=""):
    r = Run(*args, stdin=stdin, cwd=TMP)
    return r.code, r.out, r.err


def data(*args, **keys):
    code, out, err = run("simulate", *args, "--format", "json", **keys)
    return code, json.loads(out) if out.strip() else None, err


# ---- the answer ----
code, out, err = run("simulate", CHAT, "--trace", DAY)
same((code, err), (0, ""), "a small trace on one H100: kept")
ok(out.startswith("KEPT  the promise is kept: "), "the answer first", out[:200])
ok(all(len(line) <= 80 for line in out.splitlines()), "80 columns",
   [line for line in out.splitlines() if len(line) > 80])
for word in ("limited by", "Promise", "ttft_p99", "Latency", "whole request", "goodput", "KV cache",
             "preemptions", "Over time", "formulas say", "400 requests of "):
    ok(word in out, "says %r" % word, out)
code, d, err = data(CHAT, "--trace", DAY)
same(code, 0, "as JSON")
same((d["schema"], d["promise"], d["setup"]["gpus"]), ("vramplan.simulate/1", "kept", 1), "its keys")
same((d["totals"]["arrived"], d["totals"]["finished"]), (400, 400), "all requests are served")
same(d["totals"]["output_tokens"], sum(20 + i % 5 * 40 for i in range(400)), "all tokens come out")
same(sum(b["arrivals"] for b in d["series"]), 400, "the series adds up to the requests")
for kind in ("ttft_ms", "tpot_ms", "e2e_ms", "queue_ms"):
    figures = [d["latency"][kind][f]["likely"] for f in ("p50", "p90", "p95", "p99", "max")]
    same(figures, sorted(figures), "%s: percentiles in order" % kind)
    ok(all(f["low"] <= f["likely"] <= f["high"] for f in d["latency"][kind].values()),
       "%s: low <= likely <= high" % kind)
ok(0.3 < d["analytic"]["e2e_ms"] / d["latency"]["e2e_ms"]["mean"]["likely"] < 3,
   "the formulas are near in quiet traffic", d["analytic"])
same(run("simulate", CHAT, "--trace", DAY, "--threads", "1")[1], out,
     "one thread gives the same bytes")

code, d, err = data(CHAT, "--trace", DAY, "--slo", "ttft_p99<1ms")
same((code, d["promise"]), (1, "broken"), "a promise that cannot be kept: exit 1")
ok(d["promises"][0]["margin"] < 0, "by a margin below 0")
same([p["name"] for p in d["promises"]], ["ttft_p99"], "--slo replaces the scenario's")
fast = d["promises"][0]["seen_ms"]
between = (fast["low"] + fast["likely"]) / 2
code, d, err = data(CHAT, "--trace", DAY, "--slo", "ttft_p99=%.3fms" % between)
same((code, d["promise"]), (3, "at-risk"), "a limit within the interval: exit 3")
code, out, err = run("simulate", CHAT, "--trace", DAY, "--set", "serve.slo=null")
ok(code == 0 and "KEPT" in out, "a null says nothing", out[:100])
plain = scenario("plain.yaml", "{context: 8192}")
code, out, err = run("simulate", plain, "--trace", DAY)
ok(code == 0 and out.startswith("SIMULATED"), "nothing promised: done", out[:100])

# ---- processes ----
SHORT = ["--duration", "60s", "--seeds", "3"]
code, d, err = data(CHAT, "--arrivals", "poisson:4/s", *SHORT)
same((code, d["traffic"]["seeds"], d["traffic"]["warmup_s"]), (0, 3, 6), "Poisson, three seeds")
ok(d["latency"]["ttft_ms"]["mean"]["chance"] > 0, "what chance leaves open is told")
ok(abs(d["throughput"]["requests_per_s"]["likely"] - 4) < 1, "four a second are served")
again = data(CHAT, "--arrivals", "poisson:4/s", *SHORT)[1]
same(again, d, "equal seeds, equal bytes")
other = data(CHAT, "--arrivals", "poisson:4/s", *SHORT, "--seed", "9")[1]
ok(other["latency"] != d["latency"], "another seed is another day")
twice = data(CHAT, "--arrivals", "poisson:4/s", *SHORT, "--rate-scale", "2")[1]
same(twice["traffic"]["rate_per_s"], 8, "--rate-scale doubles the rate")
ok(twice["latency"]["tpot_ms"]["mean"]["likely"] > d["latency"]["tpot_ms"]["mean"]["likely"],
   "and more load is slower")
for process in ("gamma:4/s:3", "ramp:1/s:8/s:60s", "batch", "closed_loop"):
    code, d, err = data(CHAT, "--arrivals", process, "--concurrency", "8", *SHORT)
    ok(code == 0 and d["totals"]["finished"] > 0, "%s is served" % process, err)
code, d, err = data(CHAT, "--arrivals", "poisson:200/s", "--duration", "20s", "--seeds", "1")
same((code, d["promise"], d["analytic"]["overloaded"]), (1, "broken", True), "far too much")
ok(d["limited_by"] in ("kv-memory", "prefill-compute", "sequence-slots"), "and what limits it",
   d["limited_by"])
four = data(CHAT, "--arrivals", "poisson:200/s", "--duration", "20s", "--seeds", "1", "--set",
            "serve.replicas=4")[1]
same((four["setup"]["gpus"], four["setup"]["replicas"]), (4, 4), "four replicas are four GPUs")
ok(four["latency"]["ttft_ms"]["p99"]["likely"] < d["latency"]["ttft_ms"]["p99"]["likely"],
   "and faster than one")

# ---- classes, prefixes, disaggregation ----
CLASSES = scenario("classes.yaml", "{context: 8192, arrival: {poisson: 4}, classes: [{name: chat, "
                   "share: 3, prompt_tokens: 400, output_tokens: 100}, {name: documents, share: 1, "
                   "prompt_tokens: 4000, output_tokens: 50, prefix: {tokens: 3000, groups: 2}}]}")
code, d, err = data(CLASSES, *SHORT)
same([c["name"] for c in d["classes"]], ["chat", "documents"], "latencies by class")
ok(d["totals"]["hit_tokens"] > 0, "a shared prefix is found again", d["totals"])
ok(d["classes"][1]["ttft_ms"]["p50"]["likely"] > d["classes"][0]["ttft_ms"]["p50"]["likely"],
   "long prompts wait longer for their first token")
split = scenario("split.yaml", "{context: 8192, prompt_tokens: 2000, output_tokens: 200, arrival: "
                 "{poisson: 4}, disaggregated: {prefill: {replicas: 1}, decode: {replicas: 2}, "
                 "link_gbs: 50}}")
code, d, err = data(split, *SHORT)
same((code, d["setup"]["gpus"], d["setup"]["prefill_replicas"]), (0, 3, 1),
     "prefill and decode apart: three GPUs")

# ---- nothing to tell ----
code, out, err = run("simulate", CHAT, "--trace", DAY, "--chrome-trace",
                     os.path.join(TMP, "none.json"), "--window", "900000s..900001s")
ok(code in (0, 1, 3) and "the window is empty" in err, "a window behind the day is told", err)
for name, words, code, text in (
        ("no request arrives", ("--arrivals", "poisson:1/h", "--duration", "1s", "--seeds", "1"), 2,
         "no request comes in the time that counts"),
        ("a warm-up longer than the trace", ("--trace", DAY, "--warmup", "2000000s", "--slo",
                                             "ttft_p99<2s"), 2, "no request comes"),
        ("a closed loop of requests that are all too long", ("--set", "serve.prompt_tokens=100k"),
         2, "no request is served: all are longer"),
        ("more requests than anybody waits for", ("--arrivals", "poisson:100000/s", "--duration",
                                                  "100000s"), 2, "the cap is 20000000")):
    got, out, err = run("simulate", CHAT, *words)
    ok(got == code and text in err and not out, name, (got, out[:300], err))

# ---- files ----
csv_path, plot, chrome = (os.path.join(TMP, n) for n in ("over.csv", "day.txt", "day.json"))
code, out, err = run("simulate", CHAT, "--trace", DAY, "--csv", csv_path, "--plot", plot,
                     "--chrome-trace", chrome, "--window", "10s..20s", "--format", "csv")
same((code, err), (0, ""), "--csv, --plot, --chrome-trace")
rows = list(csv.DictReader(open(csv_path)))
same(sum(float(r["arrivals"]) for r in rows), 400, "the series as a table")
table = {(r["quantity"], r["figure"]): r for r in csv.DictReader(io.StringIO(out))}
ok(float(table["ttft_ms", "p99"]["likely"]) > 0, "--format csv: figures as rows")
ok(all(os.path.getsize(os.path.join(TMP, n)) > 200
       for n in ("day.txt", "day-cache.txt", "day-tokens.txt")), "three charts")
events = json.load(open(chrome))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
ok(spans and all(e["ts"] <= 20e6 and e["ts"] + e["dur"] >= 10e6 for e in spans),
   "iterations of the window alone", len(spans))
code, out, err = run("simulate", CHAT, "--trace", DAY, "--format", "markdown")
ok(code == 0 and out.startswith("### Traffic: kept") and "| first token |" in out, "as Markdown")

# ---- traces ----
stdin = open(DAY).read()
code, d, err = data(CHAT, "--trace", "-", stdin=stdin)
same((code, d["totals"]["arrived"]), (0, 400), "a trace from standard input")
azure = trace("azure.csv", ["2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:50.9951690,396,109",
                            "2023-11-16 18:15:51.2221670,0,55"],
              "TIMESTAMP,ContextTokens,GeneratedTokens")
code, d, err = data(CHAT, "--trace", azure)
same((code, d["traffic"]["trace_requests"], d["traffic"]["trace_dropped"]), (0, 2, 1),
     "Azure's columns; a row without a prompt is dropped and counted")
ok(any(x["id"] == "VP009" and x["line"] == 4 for x in d["diagnostics"]), "and told", d["diagnostics"])
long = trace("long.csv", ["0,9000,10", "1,8000,500", "2,100,5"])
code, d, err = data(CHAT, "--trace", long)
same((code, d["totals"]["refused_length"], d["totals"]["cut"]), (1, 1, 1),
     "longer than the engine's longest sequence: refused, or cut; a promise is then broken")
BAD = [("unsorted", ["0,5,5", "2,5,5", "1,5,5"], None, ":4: error: requests are not in order"),
       ("negative", ["0,-5,5"], None, ":2: error: -5 is no number of prompt tokens"),
       ("early", ["-1,5,5"], None, ":2: error: a negative time"),
       ("words", ["0,5,many"], None, ":2: error: 'many' is no number of output tokens"),
       ("columns", ["0,5"], "arrival_s,prompt", ":1: error: the trace has no column prompt_tokens"),
       ("short", ["0,5"], None, ":2: error: 2 fields, where the first line names 3"),
       ("nothing", [], None, ":1: error: the trace holds no request")]
for name, rows, head, said in BAD:
    path = trace(name + ".csv", rows, head or "arrival_s,prompt_tokens,output_tokens")
    code, out, err = run("simulate", CHAT, "--trace", path)
    ok(code == 2 and out == "" and path + said in err, "%s: told with its line" % name, err)
empty = write("empty.csv", "")
code, out, err = run("simulate", CHAT, "--trace", empty)
ok(code == 2 and "is empty" in err, "an empty file", err)
code, out, err = run("simulate", CHAT, "--trace", os.path.join(TMP, "none.csv"))
ok(code == 2 and "cannot open" in err, "a file that is not there", err)

# ---- wrong input ----
for args, said in [(["--arrivals", "weekly"], "--arrivals must be an arrival process"),
                   (["--arrivals", "poisson:0"], "--arrivals must be an arrival process"),
                   (["--duration", "soon"], "--duration is a time above 0"),
                   (["--seeds", "0"], "--seeds is a whole number from 1"),
                   (["--rate-scale", "-1"], "--rate-scale is a number from 0.001"),
                   (["--slo", "ttft_p99=2"], "no time above 0 with a unit"),
                   (["--slo", "step=2s"], "of a training step"),
                   (["--window", "1..2"], "--window belongs to --chrome-trace"),
                   (["--duration", "5s", "--warmup", "5s"], "leaves nothing"),
                   (["--plot", "day.bmp"], "--plot draws")]:
    code, out, err = run("simulate", CHAT, *args)
    ok(code == 2 and said in err, "%s: refused" % " ".join(args), err)
code, out, err = run("simulate", plain)
ok(code == 2 and "how long requests are is not said" in err, "lengths have no default", err)
code, out, err = run("simulate", scenario("both.yaml", "{trace: day.csv, arrival: batch}"))
ok(code == 2 and "but so does" in err, "a trace and a process in one file contradict", err)
code, out, err = run("simulate", CHAT, "--gpu", "rtx3060", "--arrivals", "poisson:1")
ok(code == 2 and "VP509" in err, "what does not fit serves nothing", err)
draft = scenario("draft.yaml", "{context: 4096, prompt_tokens: 500, output_tokens: 100, arrival: "
                 "{poisson: 1}, draft: {method: ngram, tokens: 3}}")
code, out, err = run("simulate", draft, *SHORT)
ok(code == 2 and "serve.draft.acceptance" in err, "drafts without an acceptance are refused", err)
code, d, err = data(draft, *SHORT, "--set", "serve.draft.acceptance=0.6")
ok(code == 0 and 0 < d["totals"]["accepted_tokens"] < d["totals"]["drafted_tokens"],
   "with one, some are accepted", err)

# ---- what others do with it ----
code, out, err = run("plan", CHAT, "--format", "json")
notes = [x for x in json.loads(out)["diagnostics"] if x["id"] in ("VP616", "VP617")]
same([x["id"] for x in notes], ["VP616", "VP616"], "plan holds its means against serve.slo")
code, out, err = run("plan", CHAT, "--format", "json", "--set", "serve.slo.tpot_mean=1us")
ok(any(x["id"] == "VP617" for x in json.loads(out)["diagnostics"]), "and warns of what is beyond")
code, out, err = run("fit", CHAT, "--minimize", "gpus", "--format", "json")
same(json.loads(out)["slo"], {"ttft_p99": "2 s", "tpot_p95": "50 ms", "state": "likely"},
     "fit keeps the scenario's promise")

# ---- the smallest deployment ----
ENGINE = ["--set", "engine.args.max_num_seqs=128", "--set", "engine.args.max_num_batched_tokens=4096"]
HEAVY = trace("heavy.csv", ["%.3f,%d,%d" % (i * 0.01, 500 + i % 7 * 400, 50 + i % 5 * 40)
                            for i in range(300)])
ASK = ["fit", CHAT, "--trace", HEAVY, "--minimize", "gpus", "--slo", "ttft_p99<400ms,tpot_p95<40ms",
       *ENGINE]
code, out, err = run(*ASK, "--gpu", "h100-sxm,mi300x", "--price", "h100-sxm=3,mi300x=2")
ok(code == 0 and out.startswith("SMALLEST  ") and "vramplan simulate " in out, "a smallest one", out + err)
code, out, err = run(*ASK, "--gpu", "h100-sxm", "--format", "json")
d = json.loads(out)
best = d["deployments"][0]
same((d["question"], best["state"]), ("deployment", "kept"), "as JSON")
same(best["gpus"], best["replicas"] * best["gpus_per_replica"], "its GPUs add up")
ok(best["least_replicas"] <= best["likely_replicas"] <= best["replicas"], "bounds in order", best)
words = best["command"].replace("'", "").split()[1:]
code, d, err = data(*words[1:])
same((code, d["promise"], d["setup"]["gpus"]), (0, "kept", best["gpus"]),
     "its command keeps the promise", best["command"] + err)
if best["replicas"] > 1:
    fewer = [w if not w.startswith("serve.replicas=") else
             "serve.replicas=%d" % (best["replicas"] - 1) for w in words]
    ok(data(*fewer[1:])[0] != 0, "one replica fewer does not")
if LONG:
    code, whole, err = run(*ASK, "--gpu", "h100-sxm", "--format", "csv")
    parts = []
    for i in (1, 2):
        parts.append(os.path.join(TMP, "part%d.csv" % i))
        run(*ASK, "--gpu", "h100-sxm", "--format", "csv", "--shard", "%d/2" % i, "-o", parts[-1])
    same(run("merge", *parts)[1], whole, "merged parts are the whole search")
    least = min(int(r["devices"]) for r in csv.DictReader(io.StringIO(whole)) if r["state"] == "kept")
    same(least, best["gpus"], "searched shape by shape the smallest is the same")
code, out, err = run("fit", CHAT, "--arrivals", "poisson:1/h", "--duration", "1s", "--seeds", "1",
                     "--minimize", "gpus")
same(code, 1, "of no request at all no promise is kept", out)
code, out, err = run("simulate", CHAT, "--trace", HEAVY, "--set", "serve.replicas=5000")
same((code, "at most 4096" in err), (2, True), "more replicas than can be simulated are refused", err)
for args, said in [(["fit", CHAT, "--trace", HEAVY], "--minimize gpus"),
                   (["fit", plain, "--trace", HEAVY, "--minimize", "gpus"], "nothing is promised"),
                   (["fit", CHAT, "--trace", HEAVY, "--minimize", "cost"], "no price is known"),
                   (["fit", CHAT, "--arrivals", "batch", "--minimize", "gpus"], "wait for each other"),
                   (["fit", TOP + "/examples.yaml#mi300x8-70b-train-full", "--trace", HEAVY,
                     "--minimize", "gpus", "--slo", "ttft_p99<2s"], "a training run serves no"),
                   (["fit", TOP + "/examples.yaml#mi300x-70b-fp8", "--arrivals", "poisson:4/s",
                     "--minimize", "gpus", "--slo", "ttft_p99<2s"], "how long requests are"),
                   (["fit", CHAT, "--seeds", "3"], "of which nothing is said"),
                   ([*ASK, "--shard", "1/2"], "--shard takes --format csv")]:
    code, out, err = run(*args)
    ok(code == 2 and said in err, "%s: refused" % " ".join(args[2:4]), err)

# ---- bound only ----
bound = scenario("bound.yaml", "{context: 2048, prompt_tokens: 500, output_tokens: 100, arrival: "
                 "{poisson: 1}, slo: {ttft_p99: 20 s}}", "mi300x")
code, d, err = data(bound, *SHORT, "--engine", "transformers@4.57")
if d and d["basis"] == "bound":
    same((code, d["promise"]), (3, "open"), "only a bound is known: nothing is promised")
    same(d["latency"]["ttft_ms"]["p99"]["high"], None, "and it has no upper end")
else:
    skip("a set-up of which only bounds are known", "this one has a class")

# ---- how fast ----
AZURE = os.path.join(TOP, "..", "shared", "data", "traces", "azure-2023-conversation.csv")
if not LONG:
    skip("speed", "LONG=1 runs it")
elif not os.path.exists(AZURE):
    skip("speed of the conversation trace", "no ../shared/data/traces")
else:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, d, err = data(CHAT, "--trace", AZURE, "--threads", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime
    print("# 19,366 requests: %.2f s of one core, three simulations" % cpu)
    ok(cpu <= 1.0, "the conversation trace on one replica in a second of one core", cpu)
if LONG and os.path.exists(AZURE):
    begin, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code, out, err = run("fit", CHAT, "--trace", AZURE, "--minimize", "gpus", "--gpu",
                         "h100-sxm,mi300x,r9700", "--format", "json", "--threads", "2")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, simulated = after.ru_utime - before.ru_utime, json.loads(out)["simulated"]
    print("# %d deployments: %.1f s, %.1f s of processors" % (simulated, time.time() - begin, cpu))
    ok(simulated >= 200 and cpu / simulated * 200 <= 120,
       "200 deployments in a minute on two cores", (simulated, cpu))
if LONG:
    command = [PROGRAM, "simulate", CHAT, "--arrivals", "poisson:4/s", "--duration", "250000s",
               "--seeds", "1", "--threads", "1", "--format", "json"]
    begin = time.time()
    done = subprocess.run(["/usr/bin/env", "python3", "-c",
                           "import resource,subprocess,sys;p=subprocess.run(sys.argv[1:],"
                           "capture_output=True,text=True);r=resource.getrusage("
                           "resource.RUSAGE_CHILDREN);print(r.ru_utime,r.ru_maxrss,"
                           "'finished' in p.stdout)"] + command, capture_output=True, text=True)
    cpu, kib, good = done.stdout.split()
    print("# 10^6 requests: %s s of one core, %d MiB, three simulations" % (cpu, int(kib) >> 10))
    ok(good == "True" and float(cpu) <= 60 and int(kib) < 1000000,
       "a million requests in a minute and a gigabyte", done.stdout)
finish()
