#!/usr/bin/env python3
"""Times of models that no constant was fitted to: each model of the public rows is left out, the
constants of the class are fitted to the others (calibrate --serving-class), and its rows are
planned with them, without any calibration of a card. Prints the table of docs/ACCURACY.md:
latency_held_out.py [PROGRAM]. Standard library only; half a minute."""
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = os.path.join(TOP, "..", "shared", "data", "serving-points")
# as stored under the name; another format is asked for
STORED = {"MiniMaxAI/MiniMax-M2.5": "fp8", "openai/gpt-oss-120b": "mxfp4",
          "moonshotai/Kimi-K2.5": "int4", "deepseek-ai/DeepSeek-R1": "fp8"}


def usable(r):
    return (r["mode"] == "aggregated" and r["layout"] != "uncertain" and
            r["speculative"] == "none" and r["tpot_ms"])


def settings(r):
    share = 0.9 if r["length_sampling"] else 1
    prompt, output = (round(int(r[k]) * share) for k in ("input_tokens", "output_tokens"))
    tensor, data = int(r["tensor"] or 1), int(r["attention_data"] or 1)
    version = r["engine_version"] if r["engine_version"][:1].isdigit() else ""
    args = ["--gpu", r["gpu"], "--count", r["gpus"] or str(tensor * data), "--engine",
            r["engine"] + ("@" + version if version else ""), "--tp",
            str(tensor * data if r["engine"] == "sglang" else tensor), "--concurrency",
            r["concurrency"], "--context", str(prompt + output), "--format", "json"]
    for key, value in (("serve.prompt_tokens", prompt), ("serve.output_tokens", output)):
        args += ["--set", "%s=%d" % (key, value)]
    if data > 1:
        args += ["--set", "parallel.attention_data=%d" % data]
    if int(r["expert"] or 1) > 1:
        args += ["--set", "parallel.expert=" + r["expert"]]
    if r["weights"] != STORED.get(r["model"], "bf16"):
        args += ["--weights", r["weights"]]
    return args


def profiles_with(row, engine, folder):
    """The shipped profiles without calibrations, with that row in front of the others."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "engines"))
    for name in os.listdir(os.path.join(TOP, "profiles")):
        if name not in ("engines", "calibration"):
            os.symlink(os.path.join(TOP, "profiles", name), os.path.join(folder, name))
    for name in os.listdir(os.path.join(TOP, "profiles", "engines")):
        with open(os.path.join(TOP, "profiles", "engines", name)) as f:
            text = f.read()
        if name == engine + ".yaml":
            text = re.sub(r"\nlatency:\n", "\nlatency:\n" + row.replace("\\", "\\\\"), text)
        with open(os.path.join(folder, "engines", name), "w") as f:
            f.write(text)


def without(program, folder, rows, engine, what, model):
    """The environment of a program whose constants have not seen the model: those of the class,
    fitted to the other rows, in a folder of profiles without calibrations."""
    others = os.path.join(folder, "others.csv")
    with open(others, "w", newline="") as f:
        out = csv.DictWriter(f, list(rows[0]))
        out.writeheader()
        out.writerows(r for r in rows if r["model"] != model)
    env = {**os.environ, "VRAMPLAN_PROFILES": os.path.join(TOP, "profiles")}
    row = subprocess.run([program, "calibrate", os.path.join(ROWS, "published.csv"), others,
                          "--serving-class", what], capture_output=True, text=True, env=env,
                         check=True).stdout
    env["VRAMPLAN_PROFILES"] = os.path.join(folder, "profiles")
    profiles_with(row, engine, env["VRAMPLAN_PROFILES"])
    return env


def main(program):
    with open(os.path.join(ROWS, "points.csv"), newline="") as f:
        rows = list(csv.DictReader(f))
    folder = tempfile.mkdtemp()
    print("| engine | model left out | rows | TPOT median error | within 25 % | inside "
          "| TTFT median error | within 25 % | inside |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for engine, what in (("vllm", "vllm:nvidia"), ("sglang", "sglang")):
        own = [r for r in rows if r["engine"] == engine and usable(r)]
        for model in sorted({r["model"] for r in own}):
            env = without(program, folder, rows, engine, what, model)
            found = {"tpot_ms": [], "ttft_ms": []}
            for r in (r for r in own if r["model"] == model):
                p = subprocess.run([program, "plan", model, *settings(r)], capture_output=True,
                                   text=True, env=env)
                latency = json.loads(p.stdout).get("latency") or {}
                for key, errors in found.items():
                    if key in latency and r[key]:
                        want, e = float(r[key]), latency[key]
                        errors.append((abs(e["likely"] / want - 1), e["low"] <= want <= e["high"]))
            cells = []
            for errors in found.values():
                n = max(len(errors), 1)
                cells += ["%.0f %%" % (100 * statistics.median([e for e, _ in errors] or [1])),
                          "%.0f %%" % (100 * sum(e <= 0.25 for e, _ in errors) / n),
                          "%.0f %%" % (100 * sum(i for _, i in errors) / n)]
            print("| %s | %s | %d | %s |" % (engine, model, len(found["tpot_ms"]),
                                             " | ".join(cells)))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "vramplan")))
