"""Start-up logs as engines print them, made from known figures. Standard library only.

log(case) takes a case of the score files and returns its lines, and what a reader is to find in
them: {key: value} with "kv_mib.GPU0" for what has a place."""


def version(case):
    engine = case["scenario"].get("engine", {})
    words = str(engine.get("version", "")).split(".")
    return tuple(int(w) if w.isdigit() else 0 for w in words[:2])


def figures(case):
    """The logged quantities of a case: {"weights_gib": 14.99, "kv_mib.GPU0": 512.0}."""
    out = {}
    for e in case["expect"]:
        if e["path"].startswith("engine_report.") and not isinstance(e["value"], str):
            out[e["path"][len("engine_report."):]] = e["value"]
    return out


def number(value, decimals):
    return "%.*f" % (decimals, value)


def vllm(case, f):
    """{key: (value, decimals)} -> lines. Versions before 0.10 print other lines."""
    length = case["scenario"].get("serve", {}).get("context") or 8192
    old = version(case) < (0, 10)
    v = case["scenario"]["engine"]["version"]
    lines = ["INFO 06-01 10:00:00 [api_server.py:1] vLLM API server version %s" % v]
    found = {}

    def say(key, text, decimals=2):
        if key in f:
            shown = number(f[key], decimals)
            lines.append(text % shown)
            found[key] = float(shown)

    say("weights_gib", "INFO 06-01 10:00:01 [gpu_model_runner.py:1] Loading model weights took %s GB"
        if old else "INFO 06-01 10:00:01 [gpu_model_runner.py:1] Model loading took %s GiB and 4.2 "
        "seconds", 4)
    say("block_size", "INFO 06-01 10:00:01 [config.py:1] Setting attention block size to %s tokens to "
        "ensure that attention page size is >= mamba page size.", 0)
    if old:
        say("non_torch_gib", "INFO 06-01 10:00:02 [worker.py:1] non_torch_memory takes %sGiB;")
        say("activation_peak_gib", "PyTorch activation peak memory takes %sGiB; the rest")
        say("available_kv_cache_gib", "of the memory reserved for KV Cache is %sGiB.")
        say("num_gpu_blocks", "INFO 06-01 10:00:03 [executor.py:1] # GPU blocks: %s, # CPU blocks: "
            "2048", 0)
    else:
        say("available_kv_cache_gib", "INFO 06-01 10:00:03 [gpu_worker.py:1] Available KV cache "
            "memory: %s GiB")
        say("num_gpu_blocks", "DEBUG 06-01 10:00:03 [core.py:1] num_gpu_blocks is: %s", 0)
        if "kv_cache_tokens" in f:
            lines.append("INFO 06-01 10:00:03 [kv_cache_utils.py:1] GPU KV cache size: {:,} tokens"
                         .format(int(f["kv_cache_tokens"])))
            found["kv_cache_tokens"] = int(f["kv_cache_tokens"])
    say("max_concurrency", "INFO 06-01 10:00:03 [kv_cache_utils.py:1] Maximum concurrency for "
        "{:,} tokens per request: %sx".format(length))
    say("graph_gib", "INFO 06-01 10:00:09 [gpu_model_runner.py:1] Graph capturing finished in 7 "
        "secs, took %s GiB")
    if not old and "activation_peak_gib" in f:
        say("activation_peak_gib", "INFO 06-01 10:00:09 [gpu_worker.py:1] Free memory on device "
            "(78.1/79.2 GiB) on startup. Desired GPU memory utilization is (0.9, 71.28 GiB). Actual "
            "usage is %.2f GiB for weight, %%s GiB for peak activation, %.2f GiB for non-torch "
            "memory, and %.2f GiB for CUDAGraph memory."
            % (f.get("weights_gib", 0), f.get("non_torch_gib", 0), f.get("graph_gib", 0)))
        if "non_torch_gib" in f:
            found["non_torch_gib"] = float(number(f["non_torch_gib"], 2))
    return lines, found


def sglang(case, f):
    lines = ["[2026-01-01 10:00:00] server_args=ServerArgs(model_path='org/model', tp_size=1)"]
    found = {}
    if "weights_gib" in f:
        found["weights_gib"] = float(number(f["weights_gib"], 2))
        lines.append("[2026-01-01 10:00:01] Load weight end. type=X, dtype=torch.bfloat16, avail "
                     "mem=60.00 GB, mem usage=%.2f GB." % f["weights_gib"])
    if "kv_gib" in f:
        found["kv_gib"] = float(number(f["kv_gib"], 2))
        lines.append("[2026-01-01 10:00:02] KV Cache is allocated. #tokens: 1, KV size: %.2f GB"
                     % f["kv_gib"])
    tokens = f.get("max_total_num_tokens")
    if tokens:
        found["max_total_num_tokens"] = tokens
        lines.append("[2026-01-01 10:00:03] max_total_num_tokens=%d, chunked_prefill_size=8192"
                     % tokens)
    return lines, found


LLAMA = {"model_mib": "load_tensors: %12s model buffer size = %9s MiB",
         "kv_mib": "llama_kv_cache: %10s KV buffer size = %8s MiB",
         "state_mib": "llama_memory_recurrent: %10s RS buffer size = %8s MiB",
         "compute_mib": "llama_context: %10s compute buffer size = %8s MiB",
         "output_mib": "llama_context: %10s  output buffer size = %8s MiB"}


def llama(case, f):
    rocm = "rx" in str(case["scenario"].get("hardware", {}).get("gpu", "")) or "rocm" in case["group"]
    backend = "ROCm" if rocm else "CUDA"
    places = {"CPU": "CPU", "GPU_Host": backend + "_Host"}
    lines, found = [], {}
    if case["scenario"]["engine"]["name"] == "ollama":
        lines.append('time=2026-01-01T10:00:00Z level=INFO msg="starting runner" cmd="/usr/bin/ollama '
                     'runner"')
    lines.append("build: 7000 (abcdef) with gcc for x86_64")
    for key, text in LLAMA.items():  # in the order of the log
        if key == "kv_mib":
            lines.append("llama_context: constructing llama_context")
        for name, value in f.items():
            if not name.startswith(key + "."):
                continue
            place = name.split(".")[1]
            shown = number(value, 2)
            if key == "model_mib" and place == "CPU":
                printed = "CPU_Mapped"
            else:
                printed = places.get(place, backend + place[3:])
            lines.append(text % (printed, shown))
            found[name] = float(shown)
    return lines, found


def megatron(case, f):
    keys = ("allocated_bytes", "allocated_peak_bytes", "reserved_peak_bytes")
    if not any(k in f for k in keys):
        return [], {}
    mb = [f.get(k, 0) / 2.0**20 for k in keys]
    return ["[Rank 0] (after 2 iterations) memory (MB) | allocated: %.6f | max allocated: %.6f | "
            "reserved: %.1f | max reserved: %.6f" % (mb[0], mb[1], mb[2], mb[2])], {
                k: f[k] for k in keys if k in f}


WRITERS = {"vllm": vllm, "sglang": sglang, "llama.cpp": llama, "ollama": llama, "megatron": megatron}


def log(case):
    writer = WRITERS.get(case["scenario"].get("engine", {}).get("name"))
    return writer(case, figures(case)) if writer else ([], {})
