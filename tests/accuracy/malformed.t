#!/usr/bin/env python3
"""Bad configs, safetensors and GGUF files, and indexes: the exit code, what the message names, and
the time and memory that it takes to find out."""
import json
import os
import re
import resource
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, ENV, PROGRAM, finish, ok  # noqa: E402

SANITIZED = "asan" in os.path.basename(PROGRAM)
CPU_SECONDS = 5.0 if SANITIZED else 1.0
RESIDENT_KIB = None if SANITIZED else 200 * 1024
ADDRESS_BYTES = None if SANITIZED else 1 << 29
WALL_SECONDS = 30  # ends a program that hangs

FOLDER = os.path.join(TOP, "..", "shared", "data", "malformed")
# What the table does not list: a file of nothing but opening brackets
ALSO = [("big-10mb-brackets.json", "2", "depth|nest")]


def cases():
    with open(os.path.join(FOLDER, "expected.tsv")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, codes, words = line.rstrip("\n").split("\t")
                yield name, codes, words
    yield from ALSO


def limits():
    if ADDRESS_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    signal.alarm(WALL_SECONDS)  # survives exec: its signal ends the program


def run(path):
    """(exit code or minus the signal, output, CPU seconds, resident KiB) of one plan"""
    engine = {"name": "vllm", "version": "0.19", "args": {"max_model_len": 512}}
    if path.endswith(".gguf"):
        engine = {"name": "llama.cpp", "version": "2026-08-18", "args": {"ctx_size": 512}}
    scenario = {"vramplan": 1, "model": path, "hardware": {"gpu": "mi300x", "count": 1},
                "engine": engine}
    with open(os.path.join(DIR, "in"), "w") as f:
        json.dump(scenario, f)
    with open(os.path.join(DIR, "in")) as f, open(os.path.join(DIR, "out"), "wb") as out:
        p = subprocess.Popen([PROGRAM, "plan", "-", "--format", "json"], stdin=f, stdout=out,
                             stderr=subprocess.STDOUT, cwd=FOLDER, env=ENV, preexec_fn=limits)
        _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    with open(os.path.join(DIR, "out"), errors="replace") as f:
        return p.returncode, f.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    if not os.path.exists(os.path.join(FOLDER, "expected.tsv")):
        print("1..0 # SKIP no %s" % os.path.relpath(FOLDER, TOP))
        return
    subprocess.check_call(["sh", os.path.join(FOLDER, "make-big.sh"), DIR])
    tried = 0
    for name, codes, words in cases():
        tried += 1
        path = os.path.join(DIR, name) if name.startswith("big-") else name
        code, text, seconds, kib = run(path)
        about = "ended with %d after %.2f s of CPU, %d MiB\n%s" % (code, seconds, kib >> 10, text[:800])
        ok(str(code) in codes.split("/"), "%s: ends with %s" % (name, codes), about)
        said = text.replace(path, "").replace(name, "")
        ok(words == "-" or re.search(words, said, re.I), "%s: says what is wrong" % name, about)
        ok(seconds <= CPU_SECONDS, "%s: within %g s" % (name, CPU_SECONDS), about)
        if RESIDENT_KIB:
            ok(kib <= RESIDENT_KIB, "%s: within %d MiB" % (name, RESIDENT_KIB >> 10), about)
    ok(tried >= 60, "%d inputs were tried, at least 60" % tried)
    finish()


main()
