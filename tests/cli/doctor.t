#!/usr/bin/env python3
"""doctor: every cause from a message that shows it, its arithmetic, and what is not recognised."""
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, FIXTURES, Run, finish, ok, same  # noqa: E402

LOGS = os.path.join(FIXTURES, "logs")


def doctor(name, *args, code=0, stdin=""):
    words = ["doctor"] + ([os.path.join("logs", name)] if name else [])
    run = Run(*words, *args, "--format", "json", stdin=stdin)
    same(run.code, code, "%s: exit %d" % (name or "standard input", code), run)
    doc = run.json()
    same(doc["schema"], "vramplan.doctor/1", "schema")
    return doc


def causes(doc):
    return [(f["cause"], f["surety"]) for f in doc["findings"]]


def text_of(doc, cause):
    f = [f for f in doc["findings"] if f["cause"] == cause][0]
    steps = [s["command"] for s in f["next"] if s["command"]]
    return "\n".join(f["arithmetic"]), "\n".join(steps)


# name, further arguments, all causes in order, words of the first one's arithmetic, of its steps
CASES = [
    ("oom-plenty-free.txt", [], [("not-capacity", "certain")],
     "asked for 594 MiB, 179.98 GiB free of 191.45 GiB", "vm.max_map_count"),
    ("oom-pieces.txt", [], [("fragmentation", "likely")], "unallocated: 7.15 GiB",
     "expandable_segments:True"),
    ("oom-others.txt", [], [("another-process", "certain"), ("capacity", "possible")],
     "79.10 GiB - 2.31 GiB free - 26.60 GiB of this process = 50.19 GiB of others",
     "hardware.reserved=50.19 GiB"),
    ("oom-huge.txt", [], [("single-allocation", "certain")],
     "asked for 192.00 GiB in one piece; the card has 191.98 GiB", "vramplan explain"),
    ("oom-full.txt", [], [("graphs", "likely"), ("capacity", "certain")],
     "in private pools: 3.10 GiB", ""),
    ("oom-full.txt", ["--gpu", "mi300x"],
     [("partition", "certain"), ("graphs", "likely"), ("capacity", "certain")],
     "23.98 GiB is 1/8 of the 191.98 GiB", "hardware.partition=CPX"),
    ("oom-full.txt", ["--gpu", "rx7900xtx"], [("graphs", "likely"), ("capacity", "certain")],
     "", ""),
    ("oom-limit.txt", [], [("process-limit", "certain")],
     "reserved 11.26 GiB + asked 1.00 GiB > allowed 12.00 GiB", ""),
    ("oom-apu.txt", ["--gpu", "strix-halo"], [("apu-limit", "likely"), ("capacity", "certain")],
     "25165824 pages", "ttm.pages_limit=25165824"),
    ("oom-growth.txt", [], [("growth", "likely"), ("capacity", "certain")],
     "60.10 GiB at line 2, 73.30 GiB at line 8 (4 messages)", "vramplan timeline"),
    ("oom-serving.log", [], [("capacity", "certain")],
     "short by 1018 MiB\nof that the KV cache, taken at the start: 54.43 GiB",
     "--gpu-memory-utilization 0.93\nvramplan fit meta-llama/Llama-3.1-8B --engine vllm@0.24.0"),
    ("oom-vllm.txt", [], [("another-process", "certain"), ("request-length", "certain")],
     "23.98 GiB - 11.21 GiB free = 12.77 GiB held by others", "--gpu-memory-utilization 0.46"),
    ("vllm-restart.log", [], [("engine-share", "certain")], "short by 2.22 GiB before any cache",
     "--gpu-memory-utilization 0.25"),
    ("oom-llama.txt", [], [("capacity", "likely")], "asked for 23.17 GiB", "rocm-smi"),
    ("oom-llama-kv.log", [], [("capacity", "certain")],
     "asked for 20.00 GiB, 19.16 GiB free\nits buffers so far on GPU0: 4.30 GiB\n"
     "short by 861 MiB", "vramplan fit"),
    ("oom-host.txt", [], [("host-memory", "certain")], "", "memory.max"),
    ("oom-nccl.txt", [], [("communication", "likely")], "", "NCCL_BUFFSIZE"),
    ("amd-smi.txt", [], [("another-process", "possible")],
     "GPU1: 141.00 GiB in use of 191.98 GiB, 50.98 GiB free", "rocm-smi"),
]
for name, args, want, arithmetic, steps in CASES:
    doc = doctor(name, *args)
    same(causes(doc), want, "%s %s: causes" % (name, " ".join(args)), doc["findings"])
    lines, commands = text_of(doc, want[0][0])
    ok(arithmetic in lines, "%s: arithmetic" % name, lines)
    ok(steps in commands, "%s: what to do next" % name, commands)

length = text_of(doctor("oom-vllm.txt"), "request-length")
ok("131,072 tokens needs 16.00 GiB, there is 6.50 GiB" in length[0], "a request too long", length)
ok("--max-model-len 53232" in length[1], "and the longest that fits", length)

same(causes(doctor("", stdin="torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU "
                   "0 has a total capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB "
                   "allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with "
                   "17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is "
                   "reserved by PyTorch but unallocated.\n")), [("process-limit", "certain")],
     "a limit that only the allocator's segment exceeds")
same(causes(doctor("", stdin="RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 "
                   "GiB total capacity; 6.64 GiB already allocated; 21.00 MiB free; 150.86 MiB "
                   "cached)\n")), [("capacity", "likely")], "the form of PyTorch 1.3")

# One line each: what is recognised of engines and hosts.
ONE_LINE = [
    ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
     "Please try lowering `max_num_seqs`", "warm-up", "--max-num-seqs 512"),
    ("AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory "
     "71.2 GiB.", "another-process", ""),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
     "engine-share", "--mem-fraction-static"),
    ("Exception: Capture cuda graph failed: CUDA out of memory.", "graphs", "--cuda-graph-max-bs"),
    ("warning: failed to mlock 4617355264-byte buffer (after previously locking 0 bytes)",
     "host-limit", "ulimit -l"),
    ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
     "shared memory (shm).", "host-limit", "--ipc=host"),
    ("Error: model requires more system memory (21.5 GiB) than is available (14.2 GiB)",
     "host-memory", "free -h"),
    ("RuntimeError: [enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: "
     "you tried to allocate 34359738368 bytes.", "host-memory", "free -h"),
    ("ggml_gallocr_reserve_n: compute buffer allocation failed, retrying without pipeline "
     "parallelism", "retried", "vramplan fit"),
    ("torch.distributed.elastic: exitcode: -9 (pid: 3)", "host-memory", "memory.max"),
]
for line, cause, step in ONE_LINE:
    doc = doctor("", stdin=line + "\n")
    same([f["cause"] for f in doc["findings"]], [cause], "%s: %s..." % (cause, line[:40]))
    ok(step in text_of(doc, cause)[1], "and what to do", doc["findings"])

# An APU: what the runtime shows may be too little, or more than the driver gives.
ROCM = ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate %s GiB. GPU 0 has a total "
        "capacity of %s GiB of which %s GiB is free. Of the allocated memory %s GiB is allocated by "
        "PyTorch, and 75.82 MiB is reserved by PyTorch but unallocated.\n")
for figures, want in (((16, 15.24, 15.09, 0), [("apu-limit", "likely"), ("capacity", "certain")]),
                      ((3.31, 128, 0.76, 57.7), [("apu-limit", "likely"), ("capacity", "possible")]),
                      ((1.08, 62.47, 0.75, 61.41), [("apu-limit", "likely"),
                                                    ("capacity", "certain")]),
                      ((4, 120, 1, 117), [("capacity", "certain")])):
    run = Run("doctor", "--gpu", "strix-halo", "--format", "json", stdin=ROCM % figures)
    same(causes(run.json()), want, "Strix Halo: %r" % (figures,), run)
same(causes(doctor("", stdin=ROCM % (3.31, 128, 0.76, 57.7)))[0], ("another-process", "likely"),
     "what no message explains, the card not named")

# More of the partition, and of a message that was pasted in pieces.
doc = doctor("", stdin=open(os.path.join(LOGS, "amd-smi.txt")).read().replace("SPX", "CPX"))
same(causes(doc)[0], ("partition", "likely"), "a table that shows CPX")
doc = doctor("oom-apu.txt")
same(doc["messages"][0]["figures"]["torch_allocated_bytes"], int(14.10 * 2**30 + 0.5),
     "a message over several lines")
same(doc["lines"], 4, "which are counted")

# The same message from every rank is one finding.
text = open(os.path.join(LOGS, "oom-full.txt")).read()
many = "".join("[rank%d]: %s" % (i, text) for i in range(500))
doc = doctor("", stdin=many)
same(len(doc["findings"]), 2, "500 ranks that say the same")
same(doc["findings"][0]["messages"], 500, "are counted")
other = "".join(text.replace("22.85", "%.2f" % (20 + i / 1000)) for i in range(2000))
doc = doctor("", stdin=other)
ok(doc["messages_left_out"] > 0 and len(doc["messages"]) <= 48, "a message every step is capped")

# Open, unknown and wrong.
doc = doctor("", code=3, stdin="RuntimeError: HIP error: out of memory\n")
same(causes(doc), [("unknown", "possible")], "a message without figures stays open")
doc = doctor("", code=3, stdin="nothing of the kind\n")
same((doc["cause"], doc["findings"]), (None, []), "no message")
same(doc["diagnostics"][0]["id"], "VP120", "is said")
for words, code, what in ((["doctor", "no-such-file"], 2, "a file that is not there"),
                          (["doctor", "."], 2, "a folder"),
                          (["doctor", "logs/oom-full.txt", "--gpu", "nix"], 2, "an unknown card"),
                          (["doctor", "a", "b"], 2, "two files")):
    run = Run(*words)
    same((run.code, run.out), (code, ""), what, run)

# The other forms.
run = Run("doctor", "logs/oom-others.txt")
ok(max(len(line) for line in run.out.splitlines()) <= 80, "text is at most 80 wide", run)
ok(run.out.startswith("1. Another process holds memory of this card (certain)\n"), "text", run)
run = Run("doctor", "logs/oom-others.txt", "--format", "csv")
same(run.out.splitlines(), ["cause,surety,line,messages", "another-process,certain,1,1",
                            "capacity,possible,1,1"], "CSV")
run = Run("doctor", "logs/oom-others.txt", "--format", "markdown")
ok("### Another process holds memory of this card (certain)" in run.out, "Markdown", run)
out = os.path.join(DIR, "out.txt")
same((Run("doctor", "logs/oom-full.txt", "-o", out).out, os.path.getsize(out) > 0), ("", True),
     "-o FILE")
bad = bytes(range(256)).decode("latin-1") * 40
same(Run("doctor", stdin=bad).code, 3, "any bytes")
finish()
