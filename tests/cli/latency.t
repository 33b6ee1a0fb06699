#!/usr/bin/env python3
"""How fast a plan is, as a user sees it: text, JSON, CSV, Markdown; and calibrate on served rows."""
import csv
import io
import json
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, Run, finish, ok  # noqa: E402

LOAD = ["--context", "4096", "--concurrency", "8", "--set", "serve.prompt_tokens=1024",
        "--set", "serve.output_tokens=512"]


def plan(*args):
    return Run("plan", *args)


def latency(*args):
    r = plan(*args, "--format", "json")
    return json.loads(r.out)["latency"] if r.out else {}


FIGURES = ("ttft_ms", "tpot_ms", "step_ms", "prefill_tokens_per_s", "decode_tokens_per_s")

# ---- three bases ----
for gpu, engine, basis in (("h200", "vllm", "calibrated"), ("mi325x", "vllm", "class"),
                           ("rtx4090", "sglang", "class"), ("h100-sxm", "transformers", "bound")):
    got = latency("llama-3.1-8b", "--gpu", gpu, "--engine", engine, *LOAD)
    ok(all(got.get(f, {}).get("basis") == basis for f in FIGURES),
       "%s on %s is %s" % (engine, gpu, basis), str(got))
    if basis == "bound":
        ok(got["tpot_ms"]["likely"] is None and got["tpot_ms"]["low"] > 0 and
           got["tpot_ms"]["high"] is None and got["decode_tokens_per_s"]["low"] is None,
           "a bound has no likely figure", str(got))
    else:
        ok(all(0 < got[f]["low"] <= got[f]["likely"] <= got[f]["high"] for f in FIGURES),
           "low, likely and high are in order", str(got))
        parts = sum(p["likely"] for p in got["step_parts_ms"])
        ok(abs(parts - got["step_ms"]["likely"]) < 1e-3 * parts, "parts sum up", str(got))

# ---- what is read ----
r = plan("llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD)
for words in ("first token", "each further token", "output tokens", " ms to ", "calibrated: vllm"):
    ok(words in r.out, "the text says '%s'" % words, r.out)
ok(all(len(line) <= 80 for line in r.out.splitlines()), "at most 80 columns", r.out)
ok("assumed" not in r.out.split("calibrated:")[1].split("\n\n")[0],
   "lengths that are said are not called assumed", r.out)
r = plan("llama-3.1-8b", "--gpu", "mi325x", "--engine", "vllm", "--context", "8192")
ok("by class of card" in r.out and "vramplan probe" in r.out and "4096 tokens" in
   r.out.replace("\n    ", " "), "a class says what would make it better, and what is assumed", r.out)
r = plan("llama-3.1-8b", "--gpu", "h100-sxm", "--engine", "transformers", *LOAD)
ok("at least" in r.out and "at most" in r.out and "not calibrated" in r.out and
   "vramplan probe" not in r.out, "bounds say so; a probe would not help here", r.out)
r = plan("llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD, "--format", "csv")
row = next(csv.DictReader(io.StringIO(r.out)))
ok(float(row["tpot_ms"]) > 0 and row["latency_basis"] == "calibrated", "CSV has the times", r.out)
r = plan("llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD, "--format", "markdown")
ok("| each further token |" in r.out, "Markdown has the times", r.out)
r = Run("explain", "llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD)
ok("each further token" in r.out, "explain has the times", r.out)

# ---- drafts: how many tokens are kept is not known ----
got = latency("llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD, "--set",
              "engine.args.speculative_config={method: ngram, num_speculative_tokens: 3}")
plain = latency("llama-3.1-8b", "--gpu", "h200", "--engine", "vllm", *LOAD)
ok(got["tpot_ms"]["basis"] == "bound" and got["tpot_ms"]["low"] < plain["tpot_ms"]["low"] and
   "accepted" in got["why"], "speculative decoding is a bound", str(got))

# ---- llama.cpp with weights on the host ----
MIXTURE = ["deepseek-r1", "--engine", "llama.cpp", "--weights", "q8_0", "--gpu", "h100-sxm",
           "--set", "engine.args.cpu_moe=true"]


def host_memory(size, *more):
    args = [*MIXTURE, "--set", "hardware.host_memory=" + size, *more]
    text, markdown = plan(*args), plan(*args, "--format", "markdown")
    return plan(*args, "--format", "json").json(), " ".join(text.out.split()), markdown.out


doc, text, _ = host_memory("1000 GB")
tpot, rate = doc["latency"]["tpot_ms"], doc["latency"]["decode_tokens_per_s"]
host = [d for d in doc["devices"] if d["id"] == "host"][0]["peak"]["bytes"]
hit = 1 - (1 - 8 / 256) ** 4  # experts that four tokens wake
ok(tpot["basis"] == "bound" and tpot["low"] > 0.98 * host * hit / 614.4e6,
   "a step reads the host's experts, at the most that a socket reads", (tpot, host))
ok(0 < rate["high"] <= 1.001 * 4e3 / tpot["low"], "and the rate is bounded by that", rate)
ok("/s with host memory at 614 GB/s" in text and "two channels have 102" in text,
   "what the bound takes for granted stands beside it", text)
ok(not any(d["id"] == "VP508" for d in doc["diagnostics"]), "all pages stay", doc["diagnostics"])
doc, text, markdown = host_memory("640 GB")
ok(doc["verdict"] == "at-risk" and any(d["id"] == "VP508" for d in doc["diagnostics"]),
   "more is mapped than the host has", doc["diagnostics"])
ok("52.12 GiB or more are read from the disk again and again" in text and
   "without mmap it would not load" in text, "how much is paged, and what no mmap would do", text)
ok(not any(k in doc["latency"] for k in FIGURES) and "disk" in doc["latency"]["why"] and
   "no speed is given: " in text and "Speed: none is given: " in markdown,
   "no speed as if it ran from memory", doc["latency"])
doc, text, _ = host_memory("640 GB", "--set", "engine.args.mmap=false")
ok(doc["verdict"] == "does-not-fit" and "VP508" not in text, "without mmap it does not load", text)
text = " ".join(plan(*MIXTURE[:-2], "--set", "hardware.host_memory=640 GB", "--count", "0").out.split())
ok("VP508" in text and "more layers on the GPUs" not in text, "the processor alone pages too", text)
small = ["llama-3.1-8b", "--engine", "llama.cpp", "--weights", "q8_0", "--gpu", "rtx4090", "--context", "8k"]
whole = latency(*small)["tpot_ms"]
part = [latency(*small, "--set", "engine.args.n_gpu_layers=%d" % n)["tpot_ms"]["low"] for n in (0, 16, 32)]
ok(whole["basis"] == "class" and part[0] > part[1] > part[2] > 0, "fewer layers on the host, a lower bound", part)

apu = ["gpt-oss-120b", "--engine", "llama.cpp", "--gpu", "strix-halo-96", "--context", "8k", "--set",
       "hardware.memory=96 GiB", "--set", "hardware.host_memory=128 GiB", "--set"]
lows = [latency(*apu, "engine.args.cpu_moe=" + moe)["tpot_ms"]["low"] for moe in ("true", "false")]
ok(abs(lows[0] / lows[1] - 1) < 0.25, "an APU's host memory is the card's: the bound hardly moves", lows)

# ---- calibrate on served rows ----
HEAD = ("model,gpu,gpus,engine,engine_version,mode,weights,input_tokens,output_tokens,concurrency,"
        "tensor,attention_data,layout,speculative,ttft_ms,tpot_ms\n")


def measured(base, n, tokens):
    """Milliseconds between tokens: weights, sequences, prompts of the others."""
    return base * 3.1 + 0.05 * n + (n - 1) / 256 * 0.16 * tokens


rows = [HEAD]
for model, base in (("meta-llama/Llama-3.1-8B", 11.0), ("Qwen/Qwen3-8B", 11.5)):
    for n in (1, 4, 16, 64):
        for tokens in (512, 2048):
            rows.append("%s,r9700,1,vllm,0.19.0,aggregated,bf16,%d,256,%d,1,1,as-given,none,%.1f,%.2f\n"
                        % (model, tokens, n, 150 + tokens / 8 + 30 * n,
                           measured(base, n, tokens)))
path = os.path.join(DIR, "served.csv")
with open(path, "w") as f:
    f.writelines(rows)
profile = os.path.join(DIR, "r9700.yaml")
r = Run("calibrate", path, "--gpu", "r9700", "-o", profile)
ok(r.code == 0 and "served rows: 16 used" in r.out, "calibrate reads served rows", r.out + r.err)
with open(profile) as f:
    text = f.read()
ok("serving:" in text and "kernel_scale:" in text and 'release: "vllm 0.19.0"' in text,
   "their constants are in the profile", text)
before = latency("llama-3.1-8b", "--gpu", "r9700", "--engine", "vllm", *LOAD)
after = latency("llama-3.1-8b", "--gpu", "r9700", "--engine", "vllm", *LOAD, "--calibration", profile)
ok(before["tpot_ms"]["basis"] == "class" and after["tpot_ms"]["basis"] == "calibrated",
   "the profile is used", str(after))
got = latency("llama-3.1-8b", "--gpu", "r9700", "--engine", "vllm", "--calibration", profile,
              "--context", "2304", "--concurrency", "16", "--set", "serve.prompt_tokens=2048",
              "--set", "serve.output_tokens=256")
want = measured(11.0, 16, 2048)
ok(abs(got["tpot_ms"]["likely"] / want - 1) < 0.15, "and says what was measured: %.1f for %.1f ms"
   % (got["tpot_ms"]["likely"], want))
r = Run("calibrate", path, "--serving-class", "vllm:amd")
ok(r.code == 0 and "vendor: amd" in r.out and "kernel_scale" in r.out, "a class row", r.out + r.err)
for wrong in ("tgi", "vllm@", "vllm:", "vllm@zero:amd"):
    r = Run("calibrate", path, "--serving-class", wrong)
    ok(r.code == 2 and "--serving-class %s" % wrong in r.err, "refused: --serving-class %s" % wrong,
       r.out + r.err)
r = Run("calibrate", path, "--serving-class", "sglang")
ok(r.code == 2 and "too few rows of sglang" in r.err, "no rows of that engine", r.out + r.err)
finish()
