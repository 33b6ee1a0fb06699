#!/usr/bin/env python3
"""Training scenarios: what cannot be is said with what would work; recipes become plans."""
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, Run, finish, ok, same  # noqa: E402

CARDS = ["plan", "llama-3.1-8b", "--gpu", "mi300x", "--count", "8"]
BASE = [*CARDS, "--engine", "pytorch@2.9", "--seq", "4k"]


def refused(args, *words):
    r = Run(*args)
    ok(r.code == 2 and all(w in r.err for w in words), "refused: %s" % " ".join(args[1:]), r)


def planned(args, **want):
    r = Run(*args, "--format", "json")
    ok(r.code in (0, 1, 3), "planned: %s" % " ".join(args[1:]), r)
    doc = r.json()
    for key, value in want.items():
        got = doc
        for part in key.split("__"):
            got = got[part]
        same(got, value, "%s of %s" % (key.replace("__", "."), " ".join(args[1:])), r)
    return doc


def batches():
    refused([*BASE, "--set", "train.global_batch=13"], "VP304", "8 or 16 work")
    refused([*BASE, "--set", "train.global_batch=16", "--set", "train.gradient_accumulation=4"],
            "VP104")
    refused([*BASE, "--batch", "0"], "VP102")
    doc = planned([*BASE, "--batch", "2", "--set", "train.global_batch=32"])
    fields = {a["field"]: a["value"] for a in doc["assumptions"]}
    same(fields.get("train.gradient_accumulation"), "2", "accumulation follows")
    same(fields.get("parallel.data"), "8", "data follows from the devices")
    ok(not any(f.startswith("serve.") for f in fields), "nothing of serving is assumed", fields)
    r = Run(*BASE, "--context", "8k", "-v")
    ok("VP403" in r.err and "--context is of serving" in r.err, "a serving field is told", r)


def layouts():
    refused([*BASE, "--tp", "3"], "VP304", "sizes that work: 1, 2, 4, 8")
    refused([*BASE, "--pp", "3"], "VP304", "multiple of 3")
    refused([*BASE, "--set", "parallel.zero=4"], "VP304")
    refused([*CARDS, "--seq", "4k", "--engine", "deepspeed", "--pp", "2", "--set", "parallel.zero=3"], "VP304",
            "parallel.zero: 1 works")
    refused([*BASE, "--set", "parallel.virtual_pipeline=2"], "VP304")
    refused([*BASE, "--set", "parallel.expert=2", "--set", "model.model_type=mixtral",
             "--set", "model.num_local_experts=3", "--set", "model.num_experts_per_tok=2"],
            "3 experts", "2 ranks")
    refused([*CARDS, "--engine", "pytorch", "--seq", "4095", "--set", "parallel.context_parallel=2"], "VP304", "4095")


def values():
    refused([*BASE, "--set", "train.optimizer=adamww"], "did you mean adamw?")
    refused([*BASE, "--set", "train.recompute=sqrtt"], "VP102", "sqrt")
    refused([*BASE, "--set", "train.recompute={segments: [30, 3]}"], "the model has 32")
    refused([*BASE, "--set", "train.ops.attention=flsh"], "did you mean flash?")
    refused([*BASE, "--set", "train.lora.rank=8"], "train.lora.targets is missing")
    refused([*BASE, "--set", "train.lora={rank: 8, targets: [q_prj]}"], "did you mean q_proj?")
    refused([*BASE, "--set", "train.micro_bach=2"], "did you mean micro_batch?")
    refused([*BASE, "--weights", "fp8"], "VP104", "quantised")
    planned([*BASE, "--weights", "nf4", "--set", "train.lora={rank: 8, targets: all-linear}"])
    r = Run(*BASE, "--set", "engine.env.PYTORCH_ALLOC_CONF=foo:1", "-v")
    ok("VP410" in r.err, "an allocator setting that torch refuses", r)


def lengths():
    """Beyond what a model was trained for; the cap that fit stops at is the same."""
    doc = planned([*CARDS, "--engine", "pytorch@2.9", "--seq", "131072"])
    ok(not any(d["id"] == "VP210" for d in doc["diagnostics"]), "the model's whole context", doc["diagnostics"])
    doc = planned([*CARDS, "--engine", "pytorch@2.9", "--seq", "131073"])
    notes = [d for d in doc["diagnostics"] if d["id"] == "VP210"]
    ok(len(notes) == 1 and "131073" in notes[0]["message"] and "stops at 131072" in notes[0]["hint"],
       "one token more is noted", doc["diagnostics"])
    r = Run("fit", "llama-3.1-8b", "--gpu", "mi355x", "--engine", "pytorch", "--seq", "4k", "--maximize", "context",
            "--set", "train.recompute=full", "--set", "train.optimizer=sgd")
    ok("context 131,072, the model's longest" in r.out, "fit names the cap", r)
    refused(["plan", "gpt2", "--gpu", "h200", "--engine", "pytorch", "--seq", "1025"], "VP104",
            "learned positions for 1024 tokens only")
    planned(["plan", "gpt2", "--gpu", "h200", "--engine", "pytorch", "--seq", "1024"], verdict="fits")


def stage_layers():
    """Megatron's command line and its configuration have a name each for the layers of the ends."""
    words = [*CARDS, "--engine", "megatron", "--seq", "4k", "--pp", "4", "--tp", "2"]
    stages = []
    for first, last in (("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"),
                        ("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage")):
        doc = planned([*words, "--set", "engine.args.%s=6" % first, "--set", "engine.args.%s=4" % last])
        stages.append([s["allocated_peak_bytes"] for s in doc["training"]["stages"]])
    even = [s["allocated_peak_bytes"] for s in planned(words)["training"]["stages"]]
    ok(stages[0] == stages[1] != even, "both names divide the layers", (stages, even))


def modes():
    refused(["plan", "llama-3.1-8b", "--gpu", "mi300x", "--engine", "pytorch"], "VP103",
            "no train: block")
    refused([*CARDS, "--seq", "4k", "--engine", "vllm"], "VP104", "does not train")
    refused(["plan", "llama-3.1-8b", "--gpu", "mi300x", "--set", "parallel.zero=3"], "VP106",
            "parallel.zero")
    planned(["plan", "llama-3.1-8b", "--gpu", "mi300x", "--seq", "4k"], mode="train")


def recompute():
    peaks = {}
    for how in ("none", "full", "sqrt", "selective", "{every: 2}", "{first: 8}", "{layers: [0, 9]}",
                "{segments: [4, 4]}", "optimal"):
        doc = planned([*BASE, "--set", "train.recompute=" + how], mode="train")
        report = doc["engine_report"]
        peaks[how] = (report["saved_peak_bytes"], report["recomputed_block_forwards"])
    same(peaks["none"][1], 0, "nothing is recomputed")
    same(peaks["full"][1], 32, "each layer is")
    same(peaks["{first: 8}"][1], 8, "the first eight are")
    same(peaks["{layers: [0, 9]}"][1], 2, "the named ones are")
    same(peaks["{segments: [4, 4]}"][1], 8, "segments are, the rest runs plain")
    ok(peaks["full"][0] < peaks["sqrt"][0] < peaks["selective"][0] < peaks["none"][0],
       "a layer at a time keeps less than longer segments", peaks)
    same(peaks["optimal"], peaks["none"], "what fits as it is is not recomputed")


FAMILIES = ("qwen3.5-27b", "qwen3.5-35b-a3b", "nemotron-3-nano-30b-a3b", "nemotron-super-49b",
            "kimi-k2", "deepseek-v3.2", "deepseek-v4-flash", "gpt-oss-20b", "gemma-3-4b", "phi-3-mini",
            "mixtral-8x7b", "llama-4-scout", "minimax-m2.5", "command-r", "gpt2", "opt-125m", "bge-m3",
            "whisper-large-v3", "glm-4.5-air", "llama-3.2-11b-vision")
WAYS = (("pytorch@2.9", ["--weights", "bf16", "--set", "train.ops.attention=eager",
                         "--set", "train.ops.dropout=0.1"]),
        ("pytorch@1.13", ["--weights", "bf16", "--set", "train.dtype.parameters=fp32",
                          "--set", "train.dtype.autocast=bf16", "--set", "train.ops.attention=sdpa"]),
        ("megatron", ["--weights", "bf16", "--tp", "2", "--set", "parallel.sequence=true",
                      "--set", "engine.args.use_distributed_optimizer=true",
                      "--set", "train.recompute=selective"]),
        ("transformers@5.0", ["--weights", "nf4", "--set", "train.lora={rank: 8, targets: all-linear, "
                              "dropout: 0.1, dora: true}", "--set", "train.ops.mlp=fused",
                              "--set", "train.ops.cross_entropy=chunked"]),
        ("deepspeed", ["--weights", "bf16", "--set", "parallel.zero=3",
                       "--set", "train.offload.optimizer=true", "--set", "train.ops.norm=fused",
                       "--set", "train.ops.cross_entropy=fused_linear"]))


def families():
    """Every kind of layer in every framework: an answer, or a refusal that says why; a longer
    sequence never takes less, of memory or of time."""
    for engine, more in WAYS:
        short, fewer, refusals, untimed, faster = [], [], [], [], []
        for model in FAMILIES:
            args = ["plan", model, "--gpu", "mi300x", "--count", "8", "--engine", engine, *more,
                    "--format", "json"]
            runs = [Run(*args, "--seq", str(tokens)) for tokens in (224, 448)]
            if any(r.code not in (0, 1, 3) for r in runs):
                refusals += [r for r in runs if r.code != 2 or "error:" not in r.err]
                continue
            docs = [r.json() for r in runs]
            peaks = [d["engine_report"]["allocated_peak_bytes"] for d in docs]
            short.append(model)
            fewer += [(model, peaks)] if peaks[1] < peaks[0] else []
            steps = [d["latency"].get("step_ms") for d in docs]
            if not all(s and 0 < s["low"] <= s["likely"] <= s["high"] for s in steps):
                untimed.append((model, steps))
            elif steps[1]["likely"] < 0.98 * steps[0]["likely"]:  # measured forms are not steady
                faster.append((model, steps))
        same(refusals, [], "%s: what is refused is refused in words" % engine)
        ok(len(short) >= 15, "%s: most families are planned" % engine, short)
        same(fewer, [], "%s: more tokens never take less" % engine)
        same(untimed, [], "%s: every plan has a step time" % engine)
        same(faster, [], "%s: more tokens are never faster" % engine)


def step_times():
    """What a step takes, and what it is made of; what changes it, and how."""
    def latency(*more):
        return planned([*BASE, "--batch", "1", *more])["latency"]

    plain, again = latency(), latency("--set", "train.recompute=full")
    for key in ("low", "likely", "high"):
        parts = sum(p[key] for p in plain["step_parts_ms"])
        ok(abs(parts / plain["step_ms"][key] - 1) < 1e-4, "the parts are the step: %s" % key, plain)
    names = [p["part"] for p in plain["step_parts_ms"]]
    ok("recomputation" not in names and "linear layers" in names, "parts by name", names)
    more = again["step_ms"]["likely"] / plain["step_ms"]["likely"]
    ok(1.15 < more < 1.4, "recomputing every layer takes 15 to 40 % more", more)
    twice = latency("--set", "train.gradient_accumulation=2")["step_ms"]["likely"]
    ok(1.5 < twice / plain["step_ms"]["likely"] < 2, "twice the micro batches", twice)
    ok("mi300x" in plain["why"], "says what was measured", plain["why"])
    other = planned(["plan", "llama-3.2-1b", "--gpu", "rx7900xtx", "--engine", "pytorch@2.9", "--seq",
                     "4k", "--batch", "1"])["latency"]
    same(other["step_ms"]["basis"], "class", "no calibration of this card")
    ok("no calibration" in other["why"], "says so", other["why"])
    out = Run(*BASE, "--batch", "1").out
    ok("training step" in out and "recomputation" not in out.split("of a step:")[1][:300],
       "the text report has it", out)


def recipes():
    path = os.path.join(DIR, "recipe.yaml")
    for name, more in (("megatron.sh", ["--gpu", "mi300x"]),
                       ("axolotl.yaml", ["--gpu", "rx7900xtx", "--set", "model=llama-3.1-8b"]),
                       ("torchtune.yaml", ["--gpu", "mi300x"]),
                       ("trainer.json", ["--gpu", "mi300x"]),
                       ("deepspeed.json", ["--gpu", "mi300x", "--set", "model=llama-3.1-8b",
                                           "--seq", "2k", "--count", "8"])):
        r = Run("import", "recipes/" + name, "-o", path)
        ok(r.code == 0 and not r.err, "imported: %s" % name, r)
        doc = planned(["plan", path, *more], mode="train")
        ok(doc["engine_report"]["allocated_peak_bytes"] > 0, "%s has a peak" % name)


def host_memory():
    words = ["plan", "llama-2-7b", "--gpu", "a100-40-sxm", "--engine", "deepspeed", "--seq", "2k", "--batch", "1",
             "--set", "parallel.zero=3", "--set", "train.recompute=full", "--set", "train.offload.optimizer=true",
             "--set", "train.offload.parameters=true", "--set", "hardware.host_memory=94 GB"]
    doc = planned(words, reason="host-memory", verdict="does-not-fit")
    same(doc["suggestions"], [], "what only the card needs less of does not help the host")
    r = Run(*words, "--format", "markdown")
    ok("micro batch 1 x 2048 tokens, recompute full" in r.out and "KV" not in r.out.split("|")[0],
       "Markdown says the step, nothing of serving", r)
    words[1:4] = ["llama-3.1-70b", "--count", "8", "--gpu", "a100-80-sxm"]
    doc = planned([*words[:-1], "hardware.host_memory=1 TiB"], reason="host-memory")
    same(doc["suggestions"], [], "nor a loss without logits")
    doc = planned([*words[:-1], "hardware.memory=20 GiB"], reason="peak")
    same([s["change"] for s in doc["suggestions"]], ["fused linear cross entropy"], "but it helps the card")


batches()
host_memory()
layouts()
values()
lengths()
stage_layers()
modes()
recompute()
families()
step_times()
recipes()
finish()
