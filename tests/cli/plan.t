#!/usr/bin/env python3
"""plan and explain: formats, exit codes, several inputs, options against files."""
import csv
import io
import json
import os
import pty
import re
import sys

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, PROGRAM, Run, finish, ok, same  # noqa: E402

CODES = {"fits": 0, "does-not-fit": 1, "at-risk": 3}
CARD = ["--gpu", "mi210", "--engine", "vllm@0.19"]


def formats():
    r = Run("plan", "one.yaml", "--format", "json")
    doc = r.json()
    ok(isinstance(doc, dict), "one scenario is one JSON object", r)
    same(doc["schema"], "vramplan.result/1", "its schema", r)
    same(doc["scenario"], "one", "its name")
    same(doc["verdict"], "fits", "its verdict", r)
    same(r.code, 0, "fits ends with 0", r)
    same(r.err, "", "nothing on standard error")
    ok(r.out.endswith("}\n"), "JSON ends with a line break")
    same(Run("plan", "one.yaml", "--format", "json").bytes, r.bytes, "the same input, the same bytes")
    same(Run("plan", "one.yaml", "--format", "json", env={"LC_ALL": "de_DE.UTF-8"}).bytes, r.bytes,
         "in another locale too")
    same(Run("one.yaml", "--format", "json").bytes, r.bytes, "plan is the default command")
    same(Run("--format", "json", "one.yaml").bytes, r.bytes, "options may come first")
    same(Run("explain", "one.yaml", "--format", "json").bytes, r.bytes, "explain gives the same JSON")

    r = Run("plan", "several.yaml", "--format", "json")
    doc = r.json()
    ok(isinstance(doc, list), "several scenarios are a JSON list", r)
    same([d["scenario"] for d in doc], ["small", "large", "two-cards"], "in the order of the file")
    same(r.code, 1, "one that does not fit decides", r)

    r = Run("plan", "several.yaml", "--format", "csv")
    rows = list(csv.reader(io.StringIO(r.out)))
    same(len(rows), 4, "CSV: a header and a row each", r)
    same({len(row) for row in rows}, {len(rows[0])}, "CSV: rows of one length")
    same(r.code, 1, "CSV: the same exit code")

    r = Run("plan", "several.yaml", "--format", "markdown")
    ok(r.code == 1 and re.search(r"^#", r.out, re.M), "Markdown has a heading", r)
    ok("two-cards" in r.out, "Markdown names the scenarios", r)

    text = Run("plan", "one.yaml")
    ok("FITS" in text.out and text.code == 0, "text gives the verdict", text)
    ok(max(map(len, text.out.splitlines())) <= 80, "text is 80 columns wide", text)
    ok("\x1b" not in text.out, "no colour in a pipe")
    ok("\x1b" in Run("plan", "one.yaml", "--color", "always").out, "--color always")
    explain = Run("plan", "one.yaml", "--explain")
    ok("F-KV-01" in explain.out, "--explain shows formulas", explain)
    same(Run("explain", "one.yaml").bytes, explain.bytes, "explain is plan --explain")
    several = Run("plan", "several.yaml")
    ok(all(name in several.out for name in ("small", "large", "two-cards")),
       "text of several scenarios names them", several)


def exit_codes():
    same(Run("plan", "fits.yaml").code, 0, "all fit: 0")
    same(Run("plan", "several.yaml#large").code, 1, "does not fit: 1")
    same(Run("plan", "several.yaml#small").code, 0, "FILE#NAME picks one")
    r = Run("plan", "several.yaml#smal")
    ok(r.code == 2 and "small" in r.err, "FILE#NAME that there is not: did you mean", r)
    same(Run("plan", "nowhere.yaml").code, 2, "no such file: 2")
    same(Run("plan", "fits.yaml", "nowhere.yaml").code, 2, "2 outranks 0")
    same(Run("plan", "several.yaml", "nowhere.yaml").code, 2, "2 outranks 1")
    r = Run("plan", "several.yaml", "nowhere.yaml")
    ok("large" in r.out and "nowhere.yaml" in r.err, "what can be planned is planned", r)

    # Sequences added one by one: fits, then at risk, then does not fit, and never back.
    found, last = {}, -1
    order = ["fits", "at-risk", "does-not-fit"]
    verdict = lambda n: Run("plan", "one.yaml", "--concurrency", str(n), "--format", "json")
    low, high = 1, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        r = verdict(middle)
        found[r.json()["verdict"]] = (middle, r)
        low, high = (middle, high) if r.json()["verdict"] == "fits" else (low, middle)
    same(verdict(low).json()["verdict"], "fits", "the last number of sequences that fits")
    steps = [verdict(n) for n in (1, low, high, 2 * high, 1 << 20)]
    ranks = [order.index(r.json()["verdict"]) for r in steps]
    same(ranks, sorted(ranks), "more sequences never turn it back")
    for r in steps + [r for _, r in found.values()]:
        if r.code != CODES[r.json()["verdict"]]:
            return ok(False, "the exit code is the verdict's", r)
    ok(True, "the exit code is the verdict's")
    if "at-risk" in found:
        at_risk = found["at-risk"][1]
        same(at_risk.code, 3, "at risk: 3", at_risk)
        n = str(found["at-risk"][0])
        same(Run("plan", "one.yaml", "several.yaml", "--concurrency", n).code, 1, "1 outranks 3")
        same(Run("plan", "one.yaml", "llama-3.2-1b", *CARD, "--concurrency", "1", "--context", "1k",
                 "--format", "csv").code, 0, "the same with one sequence: 0")


def errors():
    r = Run("plan", "faults.yaml")
    ok(r.code == 2 and r.out == "", "a scenario with faults: 2, no result", r)
    ok("hardwear" in r.err and "hardware" in r.err, "an unknown key, and what was meant", r)
    ok("faults.yaml:4:" in r.err, "with file and line", r)
    ok("context" in r.err and "concurrency" in r.err, "all faults in one run", r)
    r = Run("plan", "faults.yaml", "--format", "json")
    doc = r.json()
    same(doc["schema"], "vramplan.result/1", "JSON without a result: schema", r)
    ok("verdict" in doc and doc["verdict"] is None, "JSON without a result: verdict null", r)
    ok(len(doc["diagnostics"]) >= 3, "JSON without a result: diagnostics", r)
    ok({"id", "severity", "file", "line", "column", "message", "hint"} <= set(doc["diagnostics"][0]),
       "diagnostics have the fields of the contract", doc["diagnostics"][0])
    ok("hardwear" in r.err, "and they are on standard error", r)
    r = Run("plan", "one.yaml", "faults.yaml", "--format", "json")
    doc = r.json()
    same([d["verdict"] for d in doc], ["fits", None], "JSON of a good and a bad input", r)
    same(r.code, 2, "ends with 2")
    r = Run("plan", "faults.yaml", "--format", "csv")
    same((r.code, r.out), (2, ""), "CSV without a result is empty")
    r = Run("plan", "no-such-model-anywhere", *CARD)
    ok(r.code == 2 and "no-such-model-anywhere" in r.err, "an unknown model", r)
    r = Run("plan", "./tiny-llama", "--gpu", "mi21", "--engine", "vllm@0.19")
    ok(r.code == 2 and "mi210" in r.err, "an unknown GPU, and what was meant", r)
    r = Run("plan", "./tiny-llama", *CARD, "--seq", "4k")
    ok(r.code == 2 and "train.sequence_length" in r.err or "train" in r.err,
       "training is not in this version", r)


def settings():
    def need(*args, **kw):
        r = Run("plan", *args, "--format", "json", **kw)
        return r.json()["summary"]["need_bytes"]["likely"], r.json()["kv_cache"]
    base = need("one.yaml")
    ok(need("one.yaml", "--concurrency", "16")[0] > base[0], "--concurrency outranks the file")
    same(need("one.yaml", "--batch", "16"), need("one.yaml", "--concurrency", "16"),
         "--batch is --concurrency")
    same(need("one.yaml", "--context", "8k"), need("one.yaml", "--context", "8192"), "8k is 8192")
    same(need("one.yaml", "--set", "serve.context=8192"), need("one.yaml", "--context", "8k"),
         "--set is the option by name")
    ok(need("one.yaml", "--kv-cache", "fp8")[1]["bytes_per_token"] * 2 == base[1]["bytes_per_token"],
       "--kv-cache fp8 halves the cache")
    ok(need("one.yaml", "--weights", "fp8")[0] < base[0], "--weights fp8")
    r = Run("plan", "one.yaml", "--gpu", "MI 300X", "--format", "json").json()
    ok(r["summary"]["capacity_bytes"] > 150 << 30, "--gpu by an alias", r["summary"])
    r = Run("plan", "one.yaml", "--count", "2", "--tp", "2", "--format", "json")
    ok(len(r.json()["devices"][0]["ranks"]) == 2, "--count and --tp", r)
    r = Run("plan", "one.yaml", "--count", "2", "--pp", "2", "--format", "json")
    ok(r.code == 0 and len(r.json()["devices"]) == 2, "--pp", r)
    r = Run("plan", "one.yaml", "--set", "serve.contxt=5")
    ok(r.code == 2 and "context" in r.err, "--set of an unknown field: did you mean", r)
    r = Run("plan", "one.yaml", "--context", "lots")
    ok(r.code == 2 and "--context" in r.err, "a bad value names the option", r)
    r = Run("plan", "./tiny-llama", *CARD, "--context", "4k", "--concurrency", "8", "--format", "json")
    same(r.json()["summary"]["need_bytes"], Run("plan", "one.yaml", "--format", "json")
         .json()["summary"]["need_bytes"], "a model and options are a scenario", r)
    text = open(os.path.join(FIXTURES, "one.yaml")).read()
    r = Run("plan", "-", "--format", "json", stdin=text)
    same(r.json()["summary"], Run("plan", "one.yaml", "--format", "json").json()["summary"],
         "a scenario from standard input", r)
    r = Run("-", "--format", "json", stdin=json.dumps(
        {"vramplan": 1, "model": "./tiny-moe.json", "hardware": {"gpu": "mi300x"},
         "engine": {"name": "vllm"}, "serve": {"context": 4096, "concurrency": 2}}))
    ok(r.code == 0 and r.json()["params"]["active"] < r.json()["params"]["total"],
       "JSON from standard input", r)


def notes():
    """Warnings are part of a text report; -v shows them on standard error too."""
    args = ["plan", "one.yaml", "--gpu", "mi250x", "--count", "1"]
    r = Run(*args, "--format", "json")
    ids = [d["id"] for d in r.json()["diagnostics"]]
    ok("VP302" in ids, "a package as a device is warned about", r)
    same(r.err, "", "not on standard error", r)
    ok("VP302" in Run(*args, "-v", "--format", "json").err, "with -v it is")
    ok("VP302" in Run(*args, "--format", "csv").err, "CSV has no place for it: standard error")


def cache_types():
    """llama.cpp has a type for keys and one for values: the title names both where they differ."""
    for k, v, title in (("q8_0", "f16", "q8_0/fp16 KV"), ("q8_0", "q8_0", "q8_0 KV"), ("f16", "q8_0", "fp16/q8_0 KV")):
        r = Run("plan", "llama-3.1-8b", "--engine", "llama.cpp", "--gpu", "rtx4090", "--weights", "q8_0", "--context",
                "8k", "--set", "engine.args.cache_type_k=" + k, "--set", "engine.args.cache_type_v=" + v)
        ok(" %s," % title in r.out.splitlines()[0], "titled %s" % title, r)


def terminal():
    """On a terminal there is colour, unless NO_COLOR or --color never."""
    def shown(*args, env=None):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.chdir(FIXTURES)
                os.execve(PROGRAM, [PROGRAM, *args],
                          {**ENV, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
            finally:
                os._exit(127)
        data = b""
        while True:
            try:
                block = os.read(fd, 65536)
            except OSError:
                break
            if not block:
                break
            data += block
        os.close(fd)
        os.waitpid(pid, 0)
        return data
    ok(b"\x1b[" in shown("plan", "one.yaml"), "colour on a terminal")
    ok(b"\x1b" not in shown("plan", "one.yaml", env={"NO_COLOR": "1"}), "NO_COLOR")
    ok(b"\x1b[" in shown("plan", "one.yaml", env={"NO_COLOR": ""}), "an empty NO_COLOR is none")
    ok(b"\x1b" not in shown("plan", "one.yaml", "--color", "never"), "--color never")
    ok(b"\x1b" not in shown("plan", "one.yaml", env={"TERM": "dumb"}), "TERM=dumb")
    path = os.path.join(DIR, "report.txt")
    shown("plan", "one.yaml", "-o", path)
    ok(b"\x1b" not in open(path, "rb").read(), "no colour in a file")


for part in (formats, exit_codes, errors, settings, notes, cache_types, terminal):
    try:
        part()
    except (ValueError, KeyError, IndexError, TypeError) as e:
        ok(False, "%s goes on to its end" % part.__name__, repr(e))
finish()
