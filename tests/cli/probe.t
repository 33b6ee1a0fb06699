#!/usr/bin/env python3
"""probe: the list, the fake and the cpu back end, a profile and its use, devices that are missing,
fail, crash or hang."""
import csv
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import tap  # noqa: E402
from tap import DIR, Run, finish, ok, same  # noqa: E402

PROBE = os.path.join(os.path.dirname(tap.PROGRAM), "vramplan-probe")
# One thread: a machine that does other work beside does not make it slow.
tap.ENV.update(OMP_NUM_THREADS="1", TMPDIR=DIR)


def path(name):
    return os.path.join(DIR, name)


def rows(folder, name):
    with open(os.path.join(path(folder), name)) as f:
        return list(csv.DictReader(f))


def probe(*options, script="", **more):
    return Run("probe", *options, env={"VRAMPLAN_FAKE": script}, **more)


def fake(*options, script="", **more):
    return probe("--backend", "fake", "--quick", *options, script=script, **more)


def direct(*options, script=""):
    return Run(*options, program=PROBE, env={"VRAMPLAN_FAKE": script})


def lists():
    r = probe("--list")
    same((r.code, r.err), (0, ""), "the list needs no device", r)
    kinds = [line.split(":")[0] for line in r.out.splitlines() if not line.startswith(" ")]
    same(sorted(kinds), sorted(["memory", "launch", "copy", "bandwidth", "gemm", "decode",
                                "prefill", "kernels", "errors", "allreduce"]), "every kind", r)
    ok("    gemm bfloat16 1 x 512 x 4096\n" in r.out, "products by shape", r)
    ok(len(probe("--list", "--quick").out) < len(r.out), "--quick takes fewer")
    host = probe("--list", "--backend", "cpu")
    ok("    gemm bfloat16 256 x 8192 x 512\n" in host.out and "copy:" not in host.out,
       "a processor gets smaller shapes", host)
    block = probe("--list", "--only", "block,errors")
    ok(block.out.startswith("errors:") and "block:" in block.out and "gemm" not in block.out,
       "--only", block)
    r = probe("--list", "-o", path("list.txt"))
    same((r.code, r.out), (0, ""), "-o takes the list")


def refusals():
    for options, words in ((("--only", "gem"), 'nothing is called "gem"'),
                           (("--backend", "gpu"), "--backend"),
                           (("--verify", "no.yaml"), "no.yaml"),
                           (("--verify", "x", "-o", "y"), "--verify"),
                           (("word",), "takes no argument")):
        r = probe(*options)
        ok(r.code == 2 and words in r.err, "refused: %s" % " ".join(options), r)
    r = probe("--only", "gem", "--format", "json")
    ok(r.code == 2 and r.json()["schema"] == "vramplan.probe/1" and r.json()["diagnostics"],
       "a refusal as JSON", r)
    r = fake("--samples", path("list.txt"))
    ok(r.code == 4 and "list.txt" in r.err, "a folder that is a file", r)
    r = Run("probe", "--backend", "fake", env={"VRAMPLAN_PROBE": "/nowhere/probe"})
    ok(r.code == 4 and "/nowhere/probe" in r.err, "no program", r)
    for options in (("--backend", "none"), ("--only", "x"), ("--limit", "0"), ("word",), ("--what",)):
        same(direct(*options).code, 2, "vramplan-probe %s" % " ".join(options))
    ok(direct("--help").out.startswith("usage: vramplan-probe"), "vramplan-probe --help")


def missing():
    """Exit 4, a clear line, what else can be done; as text and as JSON."""
    for script, words in (("library=0", "no library: libfake.so"), ("devices=0", "no device"),
                          ("fail=open", "fake error 719 in open"), ("crash=open", "signal 11"),
                          ("abort=use", "invalid pointer"), ("fail=use", "fake error 719 in use")):
        r = fake(script=script)
        ok(r.code == 4 and words in r.err and "--backend cpu" in r.err, "%s: %s" % (script, words),
           r)
        same(r.out, "", "nothing on standard output")
    r = fake("--format", "json", "-o", path("never.yaml"), script="devices=0")
    same((r.code, r.json()["diagnostics"][0]["id"]), (4, "VP905"), "as JSON", r)
    ok(not os.path.exists(path("never.yaml")), "no profile is left behind")
    r = fake("--gpu", "3")
    ok(r.code == 4 and 'there is no device "3"; there are 1' in r.err, "no such number", r)
    r = fake("--gpu", "h100")
    ok(r.code == 4 and 'no device "h100"' in r.err, "no such name", r)
    same(fake("--gpu", "0000:c1", "--only", "launch").code, 0, "by its bus address")


def partial():
    """What brings the process down is named, all else is kept."""
    whole = fake("--only", "launch,bandwidth,kernels", "--format", "json").json()
    for script, words in (("crash=norm", "signal 11"), ("abort=norm", "saying: munmap_chunk")):
        r = fake("--only", "launch,bandwidth,kernels", "--format", "json", script=script)
        doc = r.json()
        same((r.code, doc["troubles"], doc["figures"]), (0, 2, whole["figures"] - 2), script, r)
        same([d["id"] for d in doc["diagnostics"]], ["VP906"] * 2, "each is a diagnostic", r)
        ok(words in doc["diagnostics"][0]["message"], words, r)
    r = fake("--only", "bandwidth,kernels", "--format", "json", script="fail=norm")
    ok(r.json()["left_out"] == 2 and r.json()["troubles"] == 0, "a failure is a note", r)
    r = direct("--backend", "fake", "--only", "bandwidth", "--limit", "0.3", "--csv", path("hung"),
               script="hang=triad")
    ok(r.code == 0 and "nothing came for 0.3 s" in r.err, "a hang is ended", r)
    same([row["operation"] for row in rows("hung", "bandwidth.csv")], ["read", "copy"],
         "the others are there")
    r = fake("--only", "gemm", script="unsupported=blas")
    ok(r.code == 0, "without the vendor's product ours is measured", r)
    r = fake("--only", "gemm", "--format", "json", script="crash=blas")
    ok(r.code == 4 or r.json()["figures"] == 0, "a device that always crashes is given up", r)


def samples():
    r = fake("--samples", path("fake"), "--only", "memory,launch,bandwidth,gemm,decode,errors",
             script="name=mi300x")
    same(r.code, 0, "samples are kept", r)
    constants = {row["constant"]: int(row["bytes"]) for row in rows("fake", "constants.csv")}
    same(constants["context"], 300 << 20, "the context's size")
    same(constants["granularity"], 2 << 20, "the step of allocations")
    gemm = rows("fake", "gemm.csv")
    row = next(row for row in gemm if (row["dtype"], row["m"], row["n"]) == ("bfloat16", "4096",
                                                                            "16384"))
    # the fake's roofline: 5 us and 100 TFLOP/s, 0.9 of it by its library
    want = 0.9 * (5 + 2 * 4096 * 16384 * int(row["k"]) / 100e6)
    ok(abs(float(row["latency_us"]) / want - 1) < 1e-3, "the time of the device's clock", row)
    same((row["noisy"], row["source"], row["clock_mhz"]), ("0", "fakeBLAS 1.0", "1900"),
         "what a row says of itself")
    noisy = fake("--only", "gemm", "--samples", path("noisy"), "--format", "json", script="noise=0.5")
    ok(noisy.json()["noisy"] == noisy.json()["figures"] and
       "VP907" in [d["id"] for d in noisy.json()["diagnostics"]], "noise is noticed", noisy)
    same({row["noisy"] for row in rows("noisy", "gemm.csv")}, {"1"}, "and marked in the samples")
    r = fake("--only", "gemm", "-o", path("noisy.yaml"), script="name=mi300x noise=0.5")
    ok(r.code == 4 and not os.path.exists(path("noisy.yaml")), "nothing is fitted to noise", r)
    drift = fake("--only", "bandwidth", "-v", script="drift=0.01")
    ok("drifts by" in drift.err, "drift is noticed", drift)
    again = Run("calibrate", *[os.path.join(path("fake"), f) for f in os.listdir(path("fake"))],
                "--gpu", "mi300x", "-o", path("again.yaml"))
    same(again.code, 0, "calibrate takes the whole folder", again)


def profiles():
    r = fake("-o", path("fake.yaml"), script="name=mi300x")
    same(r.code, 0, "a profile of the fake device", r)
    ok(all(len(line) <= 80 for line in r.out.splitlines()), "the report has 80 columns", r)
    plan = ["plan", "llama-3.1-8b", "--gpu", "mi300x", "--format", "json"]
    with_it = Run(*plan, "--calibration", path("fake.yaml"))
    same(with_it.code, 0, "a plan takes it", with_it)
    ok(with_it.json()["latency"]["ttft_ms"] != Run(*plan).json()["latency"]["ttft_ms"],
       "and plans with it", with_it)
    r = fake("--only", "launch", "-o", path("unknown.yaml"), script="name=nothing")
    ok(r.code == 2 and "nothing" in r.err and "samples are kept in" in r.err,
       "a device without a profile", r)
    left = [f for f in os.listdir(DIR) if f.startswith("vramplan-")]
    same(len(left), 1, "temporary samples are gone, but for those that were named")


def errors():
    """Figures of narrow formats: seeded, the same on every machine."""
    a = probe("--backend", "cpu", "--only", "errors", "--format", "json")
    b = fake("--only", "errors", "--format", "json")
    same(a.code, 0, "errors", a)
    same(a.json()["errors"], b.json()["errors"], "the same on every device")
    e = a.json()["errors"]["weights"]
    # E4M3 has steps of an eighth: at most a sixteenth of a value, 2.6 % in the mean
    ok(abs(e["fp8_e4m3"]["per_channel"]["rms_relative"] - 0.0264) < 0.0005, "E4M3", e)
    ok(e["int8"]["per_channel"]["rms_relative"] < e["int8"]["per_tensor"]["rms_relative"] / 2,
       "INT8 gains by a scale per channel", e)
    ok(e["fp8_e4m3"]["per_tensor"]["rms_relative"] <
       1.02 * e["fp8_e4m3"]["per_channel"]["rms_relative"], "FP8 does not", e)


def processor():
    r = probe("--backend", "cpu", "--quick", "--only", "launch,bandwidth,kernels", "--format",
              "json", "--samples", path("cpu"))
    doc = r.json()
    same((r.code, doc["device"]["backend"], doc["troubles"], doc["left_out"]), (0, "cpu", 0, 0),
         "the processor", r)
    ok(all(f["bytes_share"] < 0.51 and 0.2 < f["time_share"] < 3 for f in doc["fusion"]),
       "fusion: half of the bytes", doc["fusion"])
    ok(all(t["recompute_us"] > t["read_us"] for t in doc["tapes"]), "tapes", doc["tapes"])
    gbs = [float(row["gb_per_s"]) for row in rows("cpu", "bandwidth.csv")]
    ok(all(0.2 < v < 2000 for v in gbs), "bandwidths", gbs)


def closed_output():
    p = subprocess.run([tap.PROGRAM, "probe", "--backend", "fake", "--only", "launch"],
                       stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, env=tap.ENV)
    ok(p.returncode == 4, "a full disk", p.stderr.decode())


lists()
refusals()
missing()
partial()
samples()
profiles()
errors()
processor()
closed_output()
finish()
