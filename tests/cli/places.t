#!/usr/bin/env python3
"""Where profiles and models are found."""
import os
import resource
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import DIR, ENV, FIXTURES, PROGRAM, TOP, Run, finish, ok, same  # noqa: E402

bare = {"VRAMPLAN_PROFILES": ""}
wanted = Run("list", "gpus").out

far = os.path.join(DIR, "a", "b", "bin")
os.makedirs(far)
program = shutil.copy(PROGRAM, os.path.join(far, "vramplan"))
r = Run("list", "gpus", env=bare, program=program)
ok(r.code == 4 and "VP902" in r.err and "VRAMPLAN_PROFILES" in r.err, "no profiles: 4", r)
r = Run("plan", "x", "--format", "json", env=bare, program=program)
ok(r.code == 4 and r.json()["diagnostics"][0]["id"] == "VP902", "no profiles, in JSON", r)
same(Run("help", env=bare, program=program).code, 0, "help needs none")
r = Run("list", "gpus", env={"VRAMPLAN_PROFILES": os.path.join(DIR, "nowhere")})
ok(r.code == 4 and "nowhere" in r.err, "VRAMPLAN_PROFILES of a folder that there is not", r)
share = os.path.join(DIR, "a", "b", "share", "vramplan")
os.makedirs(share)
os.symlink(os.path.join(TOP, "profiles"), os.path.join(share, "profiles"))
same(Run("list", "gpus", env=bare, program=program).out, wanted, "../share/vramplan/profiles")
os.symlink(program, os.path.join(DIR, "link"))
same(Run("list", "gpus", env=bare, program=os.path.join(DIR, "link")).out, wanted,
     "a link to the program does not matter")
os.makedirs(os.path.join(far, "profiles", "gpus"))
shutil.copy(os.path.join(TOP, "profiles", "gpus", "mi210.yaml"), os.path.join(far, "profiles", "gpus"))
r = Run("list", "gpus", "--format", "csv", env=bare, program=program)
same(len(r.out.splitlines()), 2, "profiles beside the program come first", r)

# A model in the local Hugging Face cache.
ARGS = ["--gpu", "mi210", "--engine", "vllm", "--context", "1k", "--concurrency", "1",
        "--format", "json"]
hub = os.path.join(DIR, "hub")
repo = os.path.join(hub, "models--my-org--my-model")
snapshot = os.path.join(repo, "snapshots", "0123456789abcdef")
os.makedirs(snapshot)
os.makedirs(os.path.join(repo, "refs"))
with open(os.path.join(repo, "refs", "main"), "w") as f:
    f.write("0123456789abcdef")
shutil.copy(os.path.join(FIXTURES, "tiny-llama", "config.json"), snapshot)
r = Run("plan", "my-org/my-model", *ARGS)
ok(r.code == 2 and "my-org/my-model" in r.err, "a hub id that is not there", r)
r = Run("plan", "my-org/my-model", *ARGS, env={"HF_HUB_CACHE": hub})
same(r.code, 0, "HF_HUB_CACHE", r)
same(Run("plan", "my-org/my-model", *ARGS, env={"HF_HOME": DIR}).code, 0, "HF_HOME/hub")
os.makedirs(os.path.join(ENV["HOME"], ".cache", "huggingface"))
os.symlink(hub, os.path.join(ENV["HOME"], ".cache", "huggingface", "hub"))
same(Run("plan", "my-org/my-model", *ARGS).code, 0, "~/.cache/huggingface/hub")
same(Run("plan", "my-org/my-model", *ARGS, env={"HF_HUB_CACHE": os.path.join(DIR, "nowhere")}).code,
     2, "HF_HUB_CACHE outranks it")

# One's own model profile.
models = os.path.join(ENV["HOME"], ".config", "vramplan", "models")
os.makedirs(models)
with open(os.path.join(models, "mine.yaml"), "w") as f:
    f.write("vramplan_model: 1\nid: mine\nconfig: %s\n"
            % open(os.path.join(FIXTURES, "tiny-llama", "config.json")).read())
same(Run("plan", "mine", *ARGS).code, 0, "a model profile in ~/.config/vramplan")

# Too little memory is told, not crashed into. Below some limit the system cannot even load the
# program and its libraries: it ends before it begins (127, or a signal).
if "asan" not in os.path.basename(PROGRAM):
    codes, others = set(), []
    for kib in range(2048, 32768, 512):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))
        loads = subprocess.run([PROGRAM, "--version"], env=ENV, preexec_fn=limit,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode == 0
        if not loads and not codes:
            continue
        p = subprocess.run([PROGRAM, "list", "gpus"], env=ENV, preexec_fn=limit,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        codes.add(p.returncode)
        if p.returncode not in (0, 4, 127) or (p.returncode == 4) != (b"no memory left" in p.stderr):
            others.append((kib, p.returncode, p.stderr))
    same(others, [], "out of memory: 4, and said")
    ok(4 in codes and 0 in codes, "both were seen", codes)
finish()
