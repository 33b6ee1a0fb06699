#!/usr/bin/env python3
"""packaging/slurm/vramplan-search.sbatch in a Slurm of its own: controller, node and munge on loopback, with
a configuration made here. Only with LONG=1; skipped visibly where Slurm is missing or does not start."""
import os
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tap import DIR, ENV, LONG, PROGRAM, TOP, Run, finish, ok, same, skip  # noqa: E402

TOOLS = ("slurmctld", "slurmd", "sbatch", "munged", "scontrol")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
BATCH = os.path.join(TOP, "packaging", "slurm", "vramplan-search.sbatch")
started = []


def which(tool):
    return shutil.which(tool, path=PATH)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def configure(folder):
    """slurm.conf with everything in a folder of this test."""
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "log", "run"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    lines = ["ClusterName=test", "SlurmctldHost=%s(127.0.0.1)" % host, "AuthType=auth/munge",
             "AuthInfo=socket=%s/run/munge.socket" % folder, "CredType=cred/munge",
             "SlurmUser=root", "SlurmdUser=root", "SlurmctldPort=%d" % free_port(),
             "SlurmdPort=%d" % free_port(), "StateSaveLocation=%s/state" % folder,
             "SlurmdSpoolDir=%s/spool" % folder, "SlurmctldPidFile=%s/run/ctld.pid" % folder,
             "SlurmdPidFile=%s/run/d.pid" % folder, "SlurmctldLogFile=%s/log/ctld" % folder,
             "SlurmdLogFile=%s/log/d" % folder, "ProctrackType=proctrack/linuxproc",
             "TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none",
             "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "ReturnToService=2",
             "AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none",
             "NodeName=%s NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN" % host,
             "PartitionName=all Nodes=%s Default=YES MaxTime=INFINITE State=UP" % host]
    path = os.path.join(folder, "slurm.conf")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path


def start(env, *command):
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    started.append(p)
    time.sleep(1)
    return p.poll() is None


def call(env, *command):
    p = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    return p.returncode, p.stdout.strip(), p.stderr.strip()


def bring_up(folder):
    """The environment of a Slurm that takes jobs; None and why not."""
    missing = [t for t in TOOLS if not which(t)]
    if missing:
        return None, "no %s" % missing[0]
    if os.getuid() != 0:
        return None, "daemons want root"
    env = {**ENV, "PATH": PATH, "SLURM_CONF": configure(folder)}
    key = os.path.join(folder, "run", "munge.key")
    with open(key, "wb") as f:
        f.write(os.urandom(128))
    os.chmod(key, 0o600)
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(folder, "run"), 0o755)
    munged = [which("munged"), "--foreground", "--force", "--key-file=%s" % key,
              "--socket=%s/run/munge.socket" % folder, "--pid-file=%s/run/munge.pid" % folder,
              "--log-file=%s/log/munge" % folder, "--seed-file=%s/run/munge.seed" % folder]
    for command in (munged, [which("slurmctld"), "-D", "-i"], [which("slurmd"), "-D"]):
        if not start(env, *command):
            return None, "%s does not start: %s" % (
                os.path.basename(command[0]), started[-1].stderr.read().decode()[-200:].strip())
    for _ in range(20):
        code, out, err = call(env, "sinfo", "-h", "-o", "%T")
        if code == 0 and out.startswith("idle"):
            return env, None
        time.sleep(1)
    return None, "its node does not become idle: %s %s" % (out, err[-200:])


def wait_for(env, job):
    for _ in range(120):
        code, out, err = call(env, "squeue", "-h", "-j", job)
        if code != 0 or not out:
            return True
        time.sleep(1)
    return False


def check(env, folder):
    trace = os.path.join(folder, "day.csv")
    with open(trace, "w") as f:
        f.write("arrival_s,prompt_tokens,output_tokens\n")
        for i in range(200):
            f.write("%.2f,%d,%d\n" % (i * 0.05, 300 + i % 5 * 400, 50 + i % 3 * 60))
    scenario = os.path.join(folder, "chat.yaml")
    with open(scenario, "w") as f:
        f.write('vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: h100-sxm}\nengine: {name: vllm, '
                'version: "0.19", args: {max_num_seqs: 128, max_num_batched_tokens: 4096}}\n'
                'serve: {context: 8192}\n')
    question = [scenario, "--trace", trace, "--slo", "ttft_p99<200ms,tpot_p95<20ms", "--gpu",
                "h100-sxm,mi300x"]
    env = {**env, "VRAMPLAN": PROGRAM, "OUT": folder}
    sbatch = [which("sbatch"), "--parsable", "--chdir", folder, "--output", folder + "/log/%A-%a"]
    code, job, err = call(env, *sbatch, "--array=1-3", BATCH, *question)
    ok(code == 0, "the array is taken", err)
    code, merge, err = call(env, *sbatch, "--dependency=afterok:%s" % job, BATCH, "--merge")
    ok(code == 0, "so is the merge behind it", err)
    ok(wait_for(env, job) and wait_for(env, merge), "both end")
    logs = "".join(open(os.path.join(folder, "log", n), errors="replace").read()
                   for n in sorted(os.listdir(folder + "/log")) if n[0].isdigit())
    merged = os.path.join(folder, "search.csv")
    if not ok(os.path.exists(merged), "the parts were put together", logs):
        return
    whole = Run("fit", *question, "--minimize", "gpus", "--format", "csv")
    same(open(merged).read(), whole.out, "the same bytes as the whole search", whole)
    best = open(os.path.join(folder, "best.csv")).read().splitlines()
    ok(len(best) >= 2 and ",fits,kept," in best[1], "and the smallest", "\n".join(best))


if not LONG:
    skip("a search in Slurm", "LONG=1 runs it")
else:
    folder = os.path.join(DIR, "slurm")
    os.makedirs(folder)
    try:
        env, why = bring_up(folder)
        if env:
            check(env, folder)
        else:
            skip("a search in Slurm", why)
    finally:
        for p in reversed(started):
            p.terminate()
        for p in started:
            p.wait()
finish()
