#!/usr/bin/env python3
"""import-log: every engine's log, beside a plan, as figures to pin and as a profile."""
import csv
import io
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, Run, finish, ok, same  # noqa: E402

LOGS = os.path.join(FIXTURES, "logs")
GIB, MIB = 2**30, 2**20


def read(name):
    with open(os.path.join(LOGS, name)) as f:
        return f.read()


def import_log(name, *args, code=0, stdin=""):
    run = Run("import-log", os.path.join("logs", name) if name else "-", *args, "--format", "json",
              stdin=stdin)
    same(run.code, code, "%s: exit %d" % (name or "standard input", code), run)
    doc = run.json()
    same(doc["schema"], "vramplan.import-log/1", "schema")
    return doc


def measured(doc):
    return doc["measured"]


def figure(doc, key):
    return [f for f in doc["figures"] if f["key"] == key][0]


# ---- what each engine's log says ----

ALONE = {
    "vllm-v1.log": ("vllm", "0.19.0", {"weights_gib": 15.25, "graph_gib": 0.98,
                                       "available_kv_cache_gib": 145.12}),
    "vllm-v0.log": ("vllm", "0.6.4.post1", {
        "weights_gib": 14.9888, "activation_peak_gib": 1.26, "non_torch_gib": 1.79,
        "graph_gib": 0.31, "available_kv_cache_gib": 53.15, "num_gpu_blocks": 27212}),
    "vllm-tp2.log": ("vllm", "0.15.0", {"weights_gib": 65.7513, "graph_gib": 1.10,
                                        "available_kv_cache_gib": 76.37}),
    "vllm-new.log": ("vllm", "0.24.0", {
        "weights_gib": 14.99, "activation_peak_gib": 1.94, "non_torch_gib": 0.25,
        "graph_gib": 0.74, "available_kv_cache_gib": 50.31}),
    "vllm-consumed.log": ("vllm", "0.26.0", {
        "weights_gib": 14.99, "activation_peak_gib": 1.94, "non_torch_gib": 0.75,
        "graph_gib": 0.74, "available_kv_cache_gib": 54.43}),
    "sglang.log": ("sglang", None, {"weights_gib": 15.07, "kv_gib": 53.5,
                                    "max_total_num_tokens": 438272, "mem_fraction_static": 0.874}),
    "llama.log": ("llama.cpp", "b7205", {
        "model_mib": {"CPU": 281.81, "GPU0": 4403.49}, "kv_mib": {"GPU0": 2048},
        "compute_mib": {"GPU0": 258.5, "GPU_Host": 40.01}, "output_mib": {"GPU_Host": 1.96}}),
    "ollama.log": ("ollama", "0.12.6", {"model_mib": {"GPU0": 4403, "CPU": 281.8},
                                        "kv_mib": {"GPU0": 2048}, "compute_mib": {"GPU0": 300}}),
    "megatron.log": ("megatron", None, {"allocated_bytes": 26330320077,
                                        "allocated_peak_bytes": 43387673641,
                                        "reserved_peak_bytes": 44108 * MIB}),
    "torch-summary.txt": ("pytorch", None, {"allocated_bytes": 15310 * MIB,
                                            "allocated_peak_bytes": 22519 * MIB,
                                            "reserved_peak_bytes": 23552 * MIB}),
}
for name, (engine, version, want) in ALONE.items():
    doc = import_log(name)
    same((doc["log"]["engine"], doc["log"]["version"]), (engine, version), "%s: engine" % name)
    same(measured(doc), want, "%s: figures" % name, doc["figures"])
    same(doc["diagnostics"], [], "%s: nothing to say" % name)

tp = figure(import_log("vllm-tp2.log"), "available_kv_cache_gib")
same((tp["least"], tp["most"], tp["lines"], tp["line"]), (76.37, 76.91, 2, 6),
     "several ranks: the worst, with the range and its line")
same(figure(import_log("vllm-consumed.log"), "activation_peak_gib")["how"],
     "the printed peak less graphs, which it includes", "a figure that was computed says so")

# ---- restarts, colours, rank prefixes, cut-off files ----

doc = import_log("vllm-restart.log")
same((doc["log"]["starts"], doc["log"]["line"], doc["log"]["last_line"]), (2, 1, 11),
     "a restart that failed")
same([d["id"] for d in doc["diagnostics"]], ["VP122"], "is told")
same(measured(doc)["available_kv_cache_gib"], 53.15, "and the last complete start-up is taken")
same([m["line"] for m in doc["messages"]], [15], "with the line that says why")
again = import_log("", stdin=read("vllm-restart.log") + read("vllm-v1.log"))
same((measured(again)["weights_gib"], again["log"]["starts"], again["diagnostics"]), (15.25, 3, []),
     "a later one that worked counts")
same(measured(import_log("", stdin=read("vllm-v1.log").replace("\x1b[1;36m", "")
                         .replace("\x1b[0;0m", ""))), measured(import_log("vllm-v1.log")),
     "colours do not matter")
same(measured(import_log("", stdin=read("llama.log").replace("\n", "\r\n"))),
     measured(import_log("llama.log")), "carriage returns neither")
same(measured(import_log("", stdin=read("llama.log").replace("ROCm", "CUDA"))),
     measured(import_log("llama.log")), "nor the backend's name")
stamped = "".join("0.%03d.456 I %s\n" % (i, x) for i, x in enumerate(read("llama.log").split("\n")))
same(measured(import_log("", stdin=stamped)), measured(import_log("llama.log")), "nor time stamps")
same(measured(import_log("", stdin=read("vllm-v1.log") + "x" * 3000000 + "\n"
                         "GPU KV cache size: 1 tokens")), measured(import_log("vllm-v1.log")),
     "a line of 3 MB, and figures of a server that is ready")
text = read("vllm-v0.log")
for cut in range(0, len(text), 97):
    run = Run("import-log", "-", stdin=text[:cut])
    if run.code not in (0, 3) or "error" in run.err:
        ok(False, "cut off after %d bytes" % cut, run)
ok(True, "a log cut off anywhere is read")

# ---- tables ----

doc = import_log("rocm-smi.txt")
same([(d["place"], d["total_bytes"], d["used_bytes"]) for d in doc["devices"]],
     [("GPU0", 206141652992, 297312256), ("GPU1", 206141652992, 151397597184)], "rocm-smi")
same([(d["total_bytes"] // MIB, d["used_bytes"] // MIB) for d in import_log("amd-smi.txt")["devices"]],
     [(196592, 283), (196592, 144384)], "amd-smi")
same([(d["total_bytes"] // MIB, d["used_bytes"] // MIB)
      for d in import_log("nvidia-smi.txt")["devices"]], [(24564, 2210), (24564, 12)], "nvidia-smi")

# ---- beside a plan ----

SCENARIO = os.path.join(DIR, "s.yaml")
with open(SCENARIO, "w") as f:
    f.write("vramplan: 1\nname: l8b\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x}\n"
            "engine: {name: vllm, version: \"0.19\"}\nserve: {context: 16384, concurrency: 64}\n")
MEASURED, PROFILE = os.path.join(DIR, "m.yaml"), os.path.join(DIR, "vllm.yaml")
doc = import_log("vllm-v1.log", "--scenario", SCENARIO, "--measured-out", MEASURED, "--profile-out",
                 PROFILE)
same(doc["scenario"], "l8b", "the scenario's name")
weights = figure(doc, "weights_gib")
ok(abs(weights["predicted"]["likely"] / 15.25 - 1 - weights["deviation"]) < 1e-5,
   "deviation is planned against logged", weights)
ok(all(f["predicted"]["low"] <= f["predicted"]["likely"] <= f["predicted"]["high"]
       for f in doc["figures"]), "planned figures are intervals", doc["figures"])
uses = {s["path"]: s["use"] for s in doc["settings"]}
same((uses["engine.args.gpu_memory_utilization"], uses["engine.args.max_num_seqs"],
      uses["engine.args.max_model_len"]), ("filled", "filled", "agrees"),
     "settings of the log fill what the scenario leaves out")
pinned = Run("plan", MEASURED, "--format", "json")
report = pinned.json()["engine_report"]
same((report["weights_gib"], report["graph_gib"], report["available_kv_cache_gib"]),
     (15.25, 0.98, 145.12), "--measured-out: the plan has the logged figures", pinned)
same(report["kv_cache_tokens"], 1188816, "and computes what the log printed from them")
with open(MEASURED) as f:
    head = f.read().splitlines()[:2]
same(head, ["# measured: vllm 0.19.0, meta-llama/Llama-3.1-8B",
            "# from vllm-v1.log, line 1 on, by vramplan import-log"], "with where it is from")
bare = os.path.join(DIR, "bare.yaml")
run = Run("import-log", "logs/vllm-v1.log", "--scenario", "llama-3.1-8b", "--gpu", "mi300x",
          "--engine", "vllm@0.19", "--measured-out", bare)
same(Run("plan", bare, "--format", "json").json()["engine_report"], report,
     "a model and options instead of a scenario", run)

command = Run("import-log", "logs/vllm-v1.log", "--gpu", "mi300x", "--from-command",
              "vllm serve meta-llama/Llama-3.1-8B --max-model-len 16384", "--format", "json")
same({s["path"]: s["use"] for s in command.json()["settings"]}["engine.args.max_model_len"], "agrees",
     "--from-command instead of a scenario", command)

# ---- the refit profile ----

user = os.path.join(ENV["HOME"], ".config", "vramplan", "engines")
os.makedirs(user)
plain = Run("plan", SCENARIO, "--format", "json").json()
other = Run("plan", SCENARIO, "--gpu", "mi210", "--format", "json")
os.rename(PROFILE, os.path.join(user, "vllm.yaml"))
after = Run("plan", SCENARIO, "--format", "json").json()
width = [d["intervals"]["available_kv_cache_gib"] for d in (plain, after)]
ok(width[1]["high"] - width[1]["low"] < width[0]["high"] - width[0]["low"],
   "a refit profile narrows the plan of this card", width)
same(Run("plan", SCENARIO, "--gpu", "mi210", "--format", "json").out, other.out,
     "and changes no other card's")
doc2 = import_log("vllm-v1.log", "--scenario", SCENARIO)
same((doc["refit"]["runs"], doc2["refit"]["runs"]), (1, 2), "a second run is counted")
same(doc2["refit"]["class"], "Instinct", "against the same class")
for change in doc2["refit"]["changes_mib"]:
    low, likely, high = change["after"]
    ok(low <= likely <= high, "%s is an interval" % change["key"], change)
os.remove(os.path.join(user, "vllm.yaml"))

# ---- what does not agree, and what is wrong ----

doc = import_log("vllm-v1.log", "--scenario", SCENARIO, "--set",
                 "engine.args.gpu_memory_utilization=0.9")
same([d["id"] for d in doc["diagnostics"]], ["VP121"], "a setting that disagrees is told")
same({s["path"]: s["use"] for s in doc["settings"]}["engine.args.gpu_memory_utilization"], "differs",
     "and the scenario's is planned with")
doc = import_log("vllm-v1.log", "--scenario", "fits.yaml#short")
ok(any("another model or format" in d["message"] and d["hint"].endswith("Llama-3.1-8B")
       for d in doc["diagnostics"]), "weights of another model are told", doc["diagnostics"])
for words, code, what in (
        (["logs/no-such-file"], 2, "a log that is not there"),
        (["logs/vllm-v1.log", "--measured-out", MEASURED], 2, "--measured-out without a scenario"),
        (["logs/vllm-v1.log", "--gpu", "mi300x"], 2, "settings without a scenario"),
        (["logs/sglang.log", "--scenario", SCENARIO], 2, "a log of another engine"),
        (["-", "--scenario", "-"], 2, "both on standard input"),
        (["logs/vllm-v1.log", "--scenario", "no-such-model"], 2, "a scenario that is not there"),
        (["logs/rocm-smi.txt", "--scenario", SCENARIO, "--profile-out", PROFILE], 2,
         "a profile from a log that says nothing of it"),
        ([], 2, "no log")):
    run = Run("import-log", *words)
    same((run.code, bool(run.err)), (code, True), what, run)
doc = import_log("", code=3, stdin="nothing of the kind\n")
same(([d["id"] for d in doc["diagnostics"]], doc["figures"]), (["VP120"], []), "an unknown text")

# ---- the other forms ----

run = Run("import-log", "logs/vllm-v1.log", "--scenario", SCENARIO)
ok(max(len(line) for line in run.out.splitlines()) <= 80, "text is at most 80 wide", run)
ok("\nmeasured:\n  weights_gib: 15.2500\n" in run.out, "with lines to paste", run)
rows = list(csv.DictReader(io.StringIO(Run("import-log", "logs/vllm-v1.log", "--scenario", SCENARIO,
                                           "--format", "csv").out)))
same((rows[0]["key"], rows[0]["logged"], rows[0]["inside"]), ("weights_gib", "15.2500", "true"), "CSV")
ok("| weights_gib | 15.2500 |" in Run("import-log", "logs/vllm-v1.log", "--format", "markdown").out,
   "Markdown")
same(Run("import-log", "logs/llama.log").bytes, Run("import-log", "logs/llama.log").bytes,
     "the same input gives the same bytes")
finish()
