#!/usr/bin/env python3
"""--emit and --from-command: what is written, read back, is the same plan; wrong input."""
import os
import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, TOP, Run, finish, ok, same

EXAMPLES = os.path.join(TOP, "examples.yaml")
COMMANDS = ("vllm", "sglang", "llama.cpp", "megatron")
NUMBER = iter(range(1000000))


def write(name, text):
    path = os.path.join(DIR, "%d-%s" % (next(NUMBER), name))
    if name == "Modelfile":
        os.mkdir(path)
        path = os.path.join(path, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def beside(run):
    """The settings that stand beside what was written, in its comments or on standard error."""
    words = []
    for line in run.out.splitlines():
        if line.startswith("#   --set "):
            words += shlex.split(line[1:])
    for line in run.err.splitlines():
        if "not part of it:" in line:
            words += shlex.split(re.sub(r" \[VP\d+\]$", "", line.split("not part of it:")[1]))
    return words


def figures(run):
    """What a plan is compared by: whatever is computed, not how it came to be said."""
    if run.code not in (0, 1, 3):
        return str(run)
    d = run.json()
    if isinstance(d, list):
        return [len(d)]
    return [d[key] for key in ("verdict", "summary", "devices", "intervals", "kv_cache")]


def round_trip(target, name, args):
    first = Run("plan", *args, "--format", "json")
    emitted = Run("plan", *args, "--emit", target)
    if emitted.code != first.code:
        return name, emitted, first, "codes differ"
    settings = beside(emitted)
    if target == "ollama":
        variables = re.search(r"#   (OLLAMA.*)", emitted.out).group(1).split()
        settings += [w for v in variables for w in ("--set", "engine.env." + v)]
        source = [write("Modelfile", emitted.out)]
    elif target in COMMANDS:
        source = ["--from-command", emitted.out]
    else:
        kind = "json" if target in ("hf", "deepspeed") else "yaml"
        source = [write("scenario.yaml", Run("import", write("r." + kind, emitted.out)).out)]
    again = Run("plan", *source, *settings, "--format", "json")
    return name, figures(again), figures(first), "%s\n%s" % (emitted, again)


def model(name):
    return [name, "--gpu", "mi300x"]


ENGINE_OF = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llama.cpp", "ollama": "ollama",
             "megatron": "megatron", "transformers": "hf", "pytorch": "torchtune",
             "deepspeed": "deepspeed"}


def example_cases():
    """Every scenario of examples.yaml, for the target of its engine."""
    for d in Run("plan", EXAMPLES, "--format", "json").json():
        source = EXAMPLES + "#" + d["scenario"]
        other = re.search(r"the scenario is for (\S+)", Run("plan", source, "--emit", "vllm").err)
        target = ENGINE_OF[other.group(1) if other else "vllm"]
        if "trains nothing" in Run("plan", source, "--emit", target).err:
            continue  # generate() has no command line
        yield target, d["scenario"], [source]


def grid():
    yield "vllm", "vllm", [*model("llama-3.1-70b"), "--tp", "4", "--context", "32k",
                           "--concurrency", "64", "--kv-cache", "fp8"]
    yield "vllm", "vllm fp8", [*model("qwen3-32b"), "--engine", "vllm@0.11", "--weights", "fp8",
                               "--set", "engine.args.enforce_eager=true"]
    yield "vllm", "vllm int4", [*model("qwen3-32b"), "--weights", "int4", "--tp", "2"]
    yield "vllm", "vllm arguments", [
        *model("qwen3-30b-a3b"), "--set", "engine.args.tp=2", "--set", "parallel.data=2",
        "--set", "engine.args.enable_expert_parallel=true", "--set",
        "engine.args.gpu_memory_utilization=0.85", "--set", "engine.args.max_num_seqs=64",
        "--set", "engine.args.no_enable_prefix_caching=true"]
    yield "vllm", "vllm draft", [*model("llama-3.1-70b"), "--tp", "4", "--set",
                                 "serve.draft.model=llama-3.2-1b", "--set",
                                 "serve.draft.method=draft_model", "--set", "serve.draft.tokens=4"]
    yield "vllm", "vllm lora", [*model("llama-3.1-8b"), "--set", "engine.args.enable_lora=true",
                                "--set", "serve.lora.slots=4", "--set", "serve.lora.rank=32"]
    yield "vllm", "vllm offload", [*model("llama-3.1-70b"), "--set", "serve.offload.weights=8GiB"]
    yield "vllm", "a flag over an argument", [
        *model("llama-3.1-70b"), "--set", "engine.args.tensor_parallel_size=2", "--context", "16k"]
    yield "sglang", "sglang", [*model("deepseek-v3"), "--engine", "sglang", "--tp", "8", "--set",
                               "parallel.attention_data=8", "--context", "16k"]
    yield "sglang", "sglang arguments", [
        *model("qwen3-32b"), "--engine", "sglang", "--set", "engine.args.mem_fraction_static=0.8",
        "--set", "engine.args.disable_radix_cache=true", "--set",
        "engine.args.chunked_prefill_size=4096", "--set", "engine.args.max_running_requests=48"]
    for engine in ("llama.cpp", "ollama"):
        yield engine, engine, ["llama-3.1-8b", "--gpu", "rx7900xtx", "--engine", engine,
                               "--weights", "q4_k", "--context", "16k"]
    yield "llama.cpp", "llama.cpp arguments", [
        "qwen3-30b-a3b", "--gpu", "rx7900xtx", "--engine", "llama.cpp", "--weights", "q4_k",
        "--set", "engine.args.ctx_size=8192", "--set", "engine.args.n_cpu_moe=12", "--set",
        "engine.args.cache_type_k=q8_0", "--set", "engine.args.cache_type_v=q8_0"]
    train = ["--gpu", "mi300x", "--set", "train.micro_batch=2", "--seq", "4096"]
    for name in ("llama-3.1-8b", "llama-2-70b", "gpt2", "qwen3-30b-a3b", "mixtral-8x7b"):
        length = "1024" if name == "gpt2" else "4096"  # as many as it has learned positions for
        yield "megatron", "megatron " + name, [
            name, *train[:-1], length, "--engine", "megatron", "--count", "8", "--tp", "2", "--set",
            "parallel.zero=1", "--set", "train.global_batch=32", "--set", "train.recompute=full"]
    lora = ["--set", "train.lora.rank=16", "--set", "train.optimizer=adamw_8bit"]
    for target, engine in (("hf", "transformers"), ("axolotl", "transformers"),
                           ("torchtune", "pytorch")):
        yield target, target, ["llama-3.1-8b", *train, "--engine", engine]
        yield target, target + " qlora", [
            "llama-3.1-8b", *train, *lora, "--engine", engine, "--weights", "nf4", "--set",
            "train.lora.targets=all-linear", "--set", "train.recompute=full"]
        yield target, target + " targets", [
            "llama-3.1-8b", *train, *lora, "--engine", engine, "--set",
            "train.lora.targets=[q_proj, v_proj]", "--set", "train.ops.attention=sdpa"]
        yield target, target + " fused", [
            "qwen2.5-7b", *train, "--engine", engine, "--count", "4", "--set", "parallel.fsdp=true",
            "--set", "train.ops.norm=fused", "--set", "train.ops.mlp=fused", "--set",
            "train.ops.cross_entropy=fused_linear"]
    for stage in "23":
        yield "deepspeed", "deepspeed " + stage, [
            "llama-3.1-8b", *train, "--engine", "deepspeed", "--count", "8", "--set",
            "parallel.zero=" + stage, "--set", "train.offload.optimizer=true"]


def round_trips():
    cases = [*example_cases(), *grid()]
    with ThreadPoolExecutor(2) as pool:
        for name, got, want, about in pool.map(lambda c: round_trip(*c), cases):
            apart = [(g, w) for g, w in zip(got, want) if g != w] if type(got) is type(want) else got
            ok(got == want, "written and read back: %s" % name, "%s\n%s" % (apart, about))


def plan_of(command, *args):
    return Run("plan", "--from-command", command, "--format", "json", *args)


def commands():
    plain = figures(plan_of("vllm serve llama-3.1-70b -tp 4 --max-model-len 32768", "--gpu",
                            "mi300x"))
    for text in ("HF_TOKEN=x python3 -m vllm.entrypoints.openai.api_server --model=llama-3.1-70b "
                 "--tensor-parallel-size=4 --max-model-len 32K",
                 "docker run --rm --device /dev/kfd -e A=b rocm/vllm:latest \\\n  vllm serve "
                 "llama-3.1-70b \\\n  --trust-remote-code --tensor_parallel_size 4 \\\n  "
                 "--max-model-len 32.768k # as it was",
                 "export X=1; nohup /opt/bin/vllm serve llama-3.1-70b --tensor-parallel-size '4' "
                 "--max-model-len \"32768\" > log 2>&1 &"):
        same(figures(plan_of(text, "--gpu", "mi300x")), plain, "the same server: " + text[:30])
    same(figures(Run("plan", "vllm serve llama-3.1-70b -tp 4 --max-model-len 32768", "--gpu",
                     "mi300x", "--format", "json")), plain, "a command line is an input")
    r = plan_of("docker run vllm/vllm-openai:v0.9.1 --model llama-3.1-8b", "--gpu", "mi300x")
    ok("vLLM 0.9.1" in Run("plan", "--from-command", "docker run vllm/vllm-openai:v0.9.1 --model "
                            "llama-3.1-8b", "--gpu", "mi300x").out, "the version of an image", r)
    r = plan_of("vllm serve llama-3.1-8b --speculative-config "
                "'{\"method\": \"ngram\", \"num_speculative_tokens\": 3}'", "--gpu", "mi300x")
    ok("speculative" not in str([d["message"] for d in r.json()["diagnostics"]]), "a map", r)
    r = Run("fit", "--from-command", "vllm serve llama-3.1-405b -tp 4", "--gpu", "mi300x")
    ok(r.code in (0, 1, 3) and "405b" in r.out, "fit takes a command line", r)


def read_once():
    """Standard input can be read once; what is imported from a command is its plan."""
    for command in ("plan", "fit"):
        r = Run(command, "-", "--emit", "vllm", stdin="vramplan: 1\nmodel: llama-3.1-8b\n"
                "hardware: {gpu: mi300x}\nserve: {context: 8192}\n")
        ok(r.code == 0 and "vllm serve" in r.out, "%s --emit from standard input" % command, r)
    command = "vllm serve llama-3.1-70b -tp 4 --max-model-len 32768 --kv-cache-dtype fp8"
    r = Run("import", "--from-command", command)
    again = Run("plan", write("scenario.yaml", r.out), "--gpu", "mi300x", "--format", "json")
    same(figures(again), figures(plan_of(command, "--gpu", "mi300x")), "import of a command", r)
    r = Run("import", write("Modelfile", "FROM llama-3.1-8b\nPARAMETER num_ctx 4096\n"))
    ok(r.code == 0 and "num_ctx: 4096" in r.out and "# serve:" in r.out, "of a Modelfile", r)
    r = Run("plan", "tiny-llama/config.json", "--gpu", "mi300x", "--emit", "vllm")
    ok("vllm serve tiny-llama\n" in r.out, "a checkpoint is its folder", r)
    again = Run("plan", "--from-command", r.out, *beside(r), "--format", "json")
    same(figures(again), figures(Run("plan", "tiny-llama/config.json", "--gpu", "mi300x",
                                     "--format", "json")), "and is the same plan", again)
    r = Run("import", "--from-command", "vllm serve")
    ok(r.code == 2 and "names no model" in r.err, "of one that is wrong", r)


def refused():
    for text, want in (("make all", "command:1:1: error: this command starts no engine"),
                       ("vllm serve --enforce-eager", "names no model"),
                       ("vllm serve llama-3.1-8b \\\n --max-model-len abc",
                        "command:2:18: error: engine.args.max_model_len"),
                       ("ollama run llama3.1:70b", "no model llama3.1:70b")):
        r = Run("plan", "--from-command", text, "--gpu", "mi300x")
        ok(r.code == 2 and want in r.err, "refused: " + text[:40], r)
    for args, want in ((["--emit", "sglang"], "the scenario is for vllm"),
                       (["--emit", "hf"], "the scenario is for vllm"),
                       (["--engine", "transformers", "--emit", "hf"], "trains nothing"),
                       (["--emit", "primus"], "'checkpoint' has others"),
                       (["--emit", "vlm"], "did you mean vllm?")):
        r = Run("plan", *model("llama-3.1-8b"), *args)
        ok(r.code == 2 and want in r.err and not r.out, "refused: " + " ".join(args), r)
    r = Run("plan", EXAMPLES, "--emit", "vllm")
    ok(r.code == 2 and "FILE#NAME" in r.err, "one scenario only", r)


def best_answers():
    """fit --emit: what is written fits when it is planned again."""
    for args in (["llama-3.1-405b", "--gpu", "mi300x", "--count", "8"],
                 ["llama-3.1-70b", "--gpu", "mi300x", "--context", "32k", "--maximize",
                  "concurrency"],
                 ["mixtral-8x22b", "--gpu", "mi300x", "--keep", "gpus,gpu"]):
        r = Run("fit", *args, "--emit", "vllm")
        again = Run("plan", "--from-command", r.out, *beside(r), "--format", "json")
        ok(r.code == again.code == 0 and again.json()["verdict"] == "fits",
           "fit writes what fits: " + args[0], "%s\n%s" % (r, again))
    r = Run("fit", "qwen3-30b-a3b", "--engine", "llama.cpp", "--weights", "q4_k", "--gpu",
            "rx7900xtx", "--maximize", "context", "--emit", "llama.cpp")
    again = Run("plan", "--from-command", r.out, *beside(r), "--format", "json")
    ok(r.code == again.code == 0 and " -c 40960" in r.out, "and for llama.cpp",
       "%s\n%s" % (r, again))
    r = Run("fit", "llama-3.1-405b", "--gpu", "rx7900xtx", "--keep", "gpus,gpu", "--emit", "vllm")
    ok(r.code == 1 and r.err.count("nothing to emit") == 1 and not r.out, "nothing fits", r)


round_trips()
best_answers()
commands()
read_once()
refused()
finish()
