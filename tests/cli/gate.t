#!/usr/bin/env python3
"""gate: budgets and growth of scenario files, against a real git repository that this test builds.

One repository for all: `main` is the base; most cases change a file of the working tree, run the
gate and put the file back. Figures of the tiny model are pinned where a case needs exact ones."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
from tap import Run, ok, same

if not shutil.which("git"):
    tap.skip("gate", "there is no git")
    tap.finish()
    sys.exit(0)

CI = ("GITHUB_BASE_REF", "GITHUB_ACTIONS", "GITLAB_CI", "CI_MERGE_REQUEST_DIFF_BASE_SHA",
      "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")
for name in CI:
    tap.ENV.pop(name, None)
tap.ENV.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1",
               GIT_CEILING_DIRECTORIES=tap.DIR)
REPO = os.path.join(tap.DIR, "repo")
FILE = "vramplan.budget.yaml"
DAY = ("--date", "2026-11-30")

BASE = """vramplan: 1
defaults:
  model: models/config.json
  hardware: {gpu: mi300x}
  engine: {name: vllm, version: "0.19"}
  measured: {activation_peak_gib: 1, non_torch_gib: 1, graph_gib: 0}
  budget: {growth: {percent: 0.5, min: 64 MiB, components: {kv_cache: 1 %}}}
scenarios:
  chat:
    serve: {context: 8192, concurrency: 16}
    budget:
      memory: 4.5 GiB
      components: {kv_cache: 1.5 GiB}
      min_context: 8k
  batch:
    serve: {context: 4096, concurrency: 32}
"""


def git(*words, cwd=REPO):
    p = subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@example.org",
                        "-c", "protocol.file.allow=always", *words], cwd=cwd, env=tap.ENV,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode != 0:
        sys.exit("git %s: %s" % (" ".join(words), p.stdout.decode()))
    return p.stdout.decode().strip()


def write(name, text, at=REPO):
    path = os.path.join(at, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def gate(*args, cwd=REPO, env=None):
    return Run("gate", *DAY, *args, cwd=cwd, env=env)


def edit(*changes, text=BASE):
    """The base's file with some texts replaced."""
    for old, new in changes:
        if text.count(old) < 1:
            sys.exit("no %r to replace" % old)
        text = text.replace(old, new, 1)
    return text


def flat(run):
    return " ".join((run.out + " " + run.err).split())


def case(name, text, code, *wants, args=(), never=(), long=False):
    """The gate on a changed file: its exit code, and texts that it must or must not say. long: the
    unit tests hold the same, so only with LONG."""
    if long and not tap.LONG:
        return None
    write(FILE, text)
    r = gate(*args)
    said = flat(r)
    missing = [w for w in wants if w not in said] + ["(not) " + w for w in never if w in said]
    ok(r.code == code and not missing, name, "want %d and %s\n%s" % (code, missing, r))
    write(FILE, BASE)
    return r


def build():
    os.makedirs(REPO)
    git("init", "-q", "-b", "main")
    write(FILE, BASE)
    write("models/config.json", open(os.path.join(tap.FIXTURES, "tiny-llama/config.json")).read())
    write("one.yaml", edit(("defaults:", "name: one"), ("  model:", "model:"),
                           ("  hardware", "hardware"), ("  engine", "engine"),
                           text="vramplan: 1\ndefaults:\n  model: models/config.json\n"
                                "  hardware: {gpu: mi300x}\n  engine: {name: vllm, "
                                "version: \"0.19\"}\n") +
          "serve: {context: 4096, concurrency: 8}\nbudget: {growth: 0}\n")
    git("add", "-A")
    git("commit", "-q", "-m", "base")
    git("checkout", "-q", "-b", "pr")


def waiver(what, expires="2026-12-31"):
    return edit(("      min_context: 8k", "      waivers: [{%s, reason: ticket 1, expires: %s}]"
                 % (what, expires)), ("concurrency: 16", "concurrency: 18"))


build()

# ---- limits -------------------------------------------------------------------------------------

case("nothing changed", BASE, 0, "merge base of HEAD and main", "2 passed; exit 0")
case("within the budget", edit(("memory: 4.5", "memory: 4.2")), 0)
case("over the budget", edit(("memory: 4.5", "memory: 3")), 1,
     "above the limit of 3.00 GiB [VP701]", FILE + ":12", "1 failed, 1 passed; exit 1")
case("at risk", edit(("memory: 4.5", "memory: 3.8")), 3, "the limit of 3.80 GiB lies inside [VP705]",
     "exit 3")
case("at risk, as the budget says: fail",
     edit(("memory: 4.5", "at_risk: fail\n      memory: 3.8")), 1, "[VP705]")
case("at risk, as the budget says: warn",
     edit(("memory: 4.5", "at_risk: warn\n      memory: 3.8")), 0, "[VP705]", long=True)
case("at risk, as the budget says: likely",
     edit(("memory: 4.5", "at_risk: likely\n      memory: 3.8")), 0, long=True)
case("at risk, as the command line says", edit(("memory: 4.5", "memory: 3.8")), 1,
     args=("--at-risk", "fail"))
case("a component over its limit", edit(("kv_cache: 1.5", "kv_cache: 1.2")), 1,
     "kv_cache on one GPU 1.25 GiB, 51 MiB above", "[VP701]", FILE + ":13", long=True)
case("too little headroom", edit(("min_context: 8k", "headroom: 100 %")), 1,
     "below the limit of 172.79 GiB [VP701]", long=True)
case("headroom in per cent", edit(("min_context: 8k", "headroom: 5 %")), 0, long=True)
case("context too short", edit(("min_context: 8k", "min_context: 32k")), 1,
     "longest context 16,384 tokens, 16,384 tokens below the limit of 32,768 tokens [VP701]")
case("too few sequences", edit(("min_context: 8k", "min_concurrency: 9000")), 1, "fit at once:",
     long=True)
case("a limit that the same change raises", edit(("memory: 4.5", "memory: 5"), ("percent: 0.5, min",
     "percent: 2, min"), ("min_context: 8k", "headroom: 1 %")), 0,
     "chat: this change raises the budget's memory from 4.50 GiB to 5.00 GiB [VP717]",
     "takes min_context out of the budget [VP717]",
     "batch: this change raises what the budget's growth allows [VP717]", args=("-v",))
case("a check that only warns",
     edit(("memory: 4.5", "warn_only: [memory, growth]\n      memory: 3"),), 0, "[VP701]")
case("does not fit its device",
     edit(("context: 8192, concurrency: 16", "context: 16384, concurrency: 4000"),
          ("serve:", "engine: {args: {max_model_len: 16384}}\n    serve:")), 1, "[VP704]")

# ---- growth, by each lever ----------------------------------------------------------------------

LEVERS = [("the context", "context: 8192", "context: 12288", "serve.context 8192 -> 12288"),
          ("requests", "concurrency: 32", "concurrency: 48", "serve.concurrency 32 -> 48"),
          ("the weights' format", "  batch:\n", "  batch:\n    precision: {weights: fp32}\n",
           "precision.weights fp32"),
          ("overheads", "non_torch_gib: 1", "non_torch_gib: 2", "measured.non_torch_gib 1 -> 2"),
          ("adapters", "concurrency: 32", "concurrency: 32, lora: {slots: 8, rank: 128}",
           "serve.lora")]
for lever, old, new, cause in LEVERS:
    case("growth by " + lever, edit((old, new)), 1, "[VP702]", cause, FILE + ":")
config = open(os.path.join(REPO, "models/config.json")).read()
write("models/config.json", config.replace('"num_hidden_layers": 10', '"num_hidden_layers": 14'))
case("growth by the model's own file", BASE, 1, "[VP702]", "num_hidden_layers 10 -> 14",
     "models/config.json:7")
write("models/config.json", config)
case("growth within the allowance", edit(("concurrency: 32", "concurrency: 32"),
                                          ("kv_cache: 1 %", "kv_cache: 100 MiB"),
                                          ("context: 4096", "context: 4352")), 1, "+80 MiB",
     "allowed +64 MiB", "[VP702]", never=("kv_cache 1.25 GiB ->",))
case("both conditions must be exceeded",
     edit(("percent: 0.5, min: 64 MiB", "percent: 0.5, min: 100 MiB"), ("kv_cache: 1 %", "kv_cache: "
                                                                      "100 MiB"),
          ("context: 4096", "context: 4352")), 0, long=True)
case("shrinking passes", edit(("context: 4096", "context: 2048")), 0, long=True)
case("a component that moved, the total within",
     edit(("percent: 0.5, min: 64 MiB", "percent: 50"), ("context: 4096", "context: 5120")), 1,
     "kv_cache 1.25 GiB -> 1.56 GiB, +320 MiB (+25.00 %); allowed +13 MiB [VP702]")

# ---- waivers ------------------------------------------------------------------------------------

case("a waiver that is valid", waiver("component: kv_cache, grows_by: 200 MiB"), 0,
     "waived until 2026-12-31: ticket 1 [VP708]")
case("a waiver on its last day", waiver("component: kv_cache, grows_by: 200 MiB", "2026-11-30"), 0,
     long=True)
case("a waiver that expired", waiver("component: kv_cache, grows_by: 200 MiB", "2026-11-29"), 3,
     "the waiver expired on 2026-11-29: ticket 1 [VP709]")
write(FILE, waiver("component: kv_cache, grows_by: 200 MiB", "2026-11-29"))
same(Run("gate", "--date", "2026-11-29", cwd=REPO).code, 0, "the day is the one of --date")
write(FILE, BASE)
case("a waiver that does not reach", waiver("component: kv_cache, grows_by: 100 MiB"), 1,
     "the waiver allows growth by 100 MiB only [VP702]")
case("a waiver of the total only", waiver("check: growth, grows_by: 200 MiB"), 1,
     "kv_cache 1.25 GiB -> 1.41 GiB")
case("a waiver of a limit", edit(("min_context: 8k", "waivers: [{check: memory, up_to: 4.5 GiB, "
                                  "reason: r, expires: 2027-01-01}]"), ("memory: 4.5", "memory: 3")),
     0, "[VP708]", long=True)
case("a waiver that nothing needs",
     edit(("min_context: 8k", "waivers: [{check: growth, grows_by: 1 GiB, reason: r, expires: "
           "2027-01-01}]")), 0, "chat: nothing needs the waiver of growth [VP710]", args=("-v",))

# ---- scenarios that come and go -----------------------------------------------------------------

case("a scenario added", BASE + "  more:\n    serve: {context: 4096}\n", 0,
     "more", "new: it is not in the base [VP711]", "1 new")
case("a scenario removed", BASE[:BASE.index("  batch:")], 0,
     "removed: it is in the base only [VP712]", "1 removed")
case("only one scenario is asked for", edit(("memory: 4.5", "memory: 3")), 0,
     args=("--only", "batch"), never=("chat",))
case("a scenario that is not there", BASE, 2, "no scenario is called nightly [VP105]",
     args=("--only", "nightly"))
r = gate(FILE + "#batch")
ok(r.code == 0 and "chat" not in r.out, "FILE#name takes one scenario, of the base too", r)

os.rename(os.path.join(REPO, FILE), os.path.join(REPO, "renamed.yaml"))
write("renamed.yaml", edit(("concurrency: 32", "concurrency: 48")))
git("add", "-A")
r = gate("renamed.yaml")
ok(r.code == 1 and "serve.concurrency 32 -> 48" in flat(r) and "was in " + FILE in r.out,
   "a renamed file finds its base", r)
git("reset", "-q", "--hard")

write("moved.yaml", "vramplan: 1\n" + BASE[BASE.index("defaults:"):BASE.index("  chat:")] +
      BASE[BASE.index("  batch:"):].replace("concurrency: 32", "concurrency: 48"))
write(FILE, BASE[:BASE.index("  batch:")])
r = gate(FILE, "moved.yaml")
ok(r.code == 1 and "serve.concurrency 32 -> 48" in flat(r), "a scenario that moved to a new file", r)
os.remove(os.path.join(REPO, "moved.yaml"))
write(FILE, BASE)

os.remove(os.path.join(REPO, FILE))
r = gate()
ok(r.code == 2 and "there is no " + FILE + " here [VP001]" in r.err, "the budget file is deleted", r)
r = gate(FILE, "one.yaml")
ok(r.code == 2 and "cannot open" in r.err, "one of two files is deleted", r)
git("reset", "-q", "--hard")

write("one.yaml", open(os.path.join(REPO, "one.yaml")).read()
      .replace("name: one", "name: other").replace("concurrency: 8", "concurrency: 16"))
r = gate("one.yaml")
ok(r.code == 1 and "[VP702]" in r.out, "the only scenario of a file, under another name", r)
git("reset", "-q", "--hard")

write("new.yaml", open(os.path.join(REPO, "one.yaml")).read())
r = gate("new.yaml")
ok(r.code == 0 and "[VP711]" in r.out, "a file that git does not know is new", r)
os.remove(os.path.join(REPO, "new.yaml"))

r = Run("gate", *DAY, "-", stdin=BASE, cwd=REPO)
ok(r.code == 3 and "[VP706]" in r.out and "[VP711]" not in r.out,
   "standard input has nothing to compare with", r)

# ---- faults -------------------------------------------------------------------------------------

W = "waivers: [{%s}]"
BAD = [("memory: 4.5 GiBs", "budget.memory must be a size"),
       ("memry: 4.5 GiB", "did you mean memory?"),
       ("memory: {}", "budget.memory must be a size"),
       ("components: {kv_cash: 1.5 GiB}", "did you mean kv_cache?"),
       ("components: 5 GiB", "budget.components"),
       ("growth: {percent: much}", "budget.growth.percent must be a percentage"),
       ("growth: {percnt: 0.5}", "did you mean percent?"),
       ("growth: {components: {weights: 1 %, graphs: x}}", "budget.growth.components.graphs must"),
       ("min_context: many", "budget.min_context must be a number of tokens"),
       ("min_concurrency: 1.5", "budget.min_concurrency must be a number of sequences"),
       ("at_risk: maybe", "inconclusive, fail, warn or likely"),
       ("warn_only: [growht]", "did you mean growth?"),
       ("warn_only: growth", "budget.warn_only must be a list"),
       ("waivers: {}", "budget.waivers must be a list"),
       (W % "check: growth, grows_by: 1 GiB, expires: 2027-01-01", "a waiver needs a reason"),
       (W % "check: growth, grows_by: 1 GiB, reason: r", "a waiver needs a day on which it ends"),
       (W % "check: growth, grows_by: 1 GiB, reason: r, expires: 2027-02-30",
        "must be a day of the calendar"),
       (W % "check: growth, component: kv_cache, grows_by: 1, reason: r, expires: 2027-01-01",
        "a waiver is for one check, or for one component"),
       (W % "component: kv_cash, grows_by: 1 GiB, reason: r, expires: 2027-01-01",
        "did you mean kv_cache?"),
       (W % "check: memory, grows_by: 1 GiB, reason: r, expires: 2027-01-01",
        "a waiver of memory says up_to, not grows_by"),
       (W % "check: min_context, up_to: 8k, reason: r, expires: 2027-01-01",
        "a waiver of min_context says down_to, not up_to"),
       (W % "check: memory, reason: r, expires: 2027-01-01", "a waiver says how much"),
       (W % "check: memory, up_to: much, reason: r, expires: 2027-01-01",
        "budget.waivers.up_to must be a size"),
       ("measured: [{tolerance: 2 %}]", "a measured record is a file, or values"),
       ("measured: [{values: {weights_gib: x}}]", "measured weights_gib must be a number"),
       ("measured: [{record: r.yaml, tolerance: {weights_gib: 2}}]", "must be a percentage")]
write("bad.yaml", BASE[:BASE.index("  chat:")] +
      "".join("  bad%d: {budget: {%s}}\n" % (i, text) for i, (text, _) in enumerate(BAD)))
r = gate("bad.yaml")
lines = {}
for line in r.err.replace("\n  hint", " hint").splitlines():
    if line.startswith("bad.yaml:"):
        lines.setdefault(int(line.split(":")[1]), []).append(line)
for i, (text, words) in enumerate(BAD):
    said = " ".join(lines.get(9 + i, []))
    ok(words in said, "malformed: %s" % text[:60], said or r)
same(r.code, 2, "the code of malformed budgets")
os.remove(os.path.join(REPO, "bad.yaml"))
case("all faults in one run",
     edit(("memory: 4.5 GiB", "memory: x"), ("kv_cache: 1.5 GiB", "kv_cash: 1")), 2,
     "budget.memory", "did you mean kv_cache?")
case("bounds of serving in a training scenario",
     BASE + "  tune:\n    engine: {name: pytorch, version: \"2.6\"}\n    measured: null\n"
            "    train: {micro_batch: 1, sequence_length: 1024}\n    budget: {min_context: 8k}\n", 2,
     "budget.min_context is a bound for serving; this scenario trains")
case("the file is no scenario", "a: [1\n", 2, FILE + ":")
r = gate("--date", "2026-11-31")
ok(r.code == 2, "a day that is none", r)
r = gate("--base", "main", "--base-dir", "models")
ok(r.code == 2 and "exclude each other" in r.err, "two bases", r)

# ---- measured records ---------------------------------------------------------------------------

RECORD = """vramplan: 1
model: models/config.json
engine: {name: vllm, version: "%s"}
measured: {non_torch_gib: %s}
"""


def measured(text, record=None):
    if record:
        write("record.yaml", record)
    return edit(("min_context: 8k", "measured: [{%s}]" % text))


case("a measured record within its tolerance", measured(
    "record: record.yaml, tolerance: 2 %", RECORD % ("0.19", "1.01")), 0)
case("a measured record outside of it", measured(
    "record: record.yaml, tolerance: {non_torch_gib: 2 %}", RECORD % ("0.19", "1.25")), 1,
     "planned 1.00 GiB, measured 1.25 GiB: further apart than the tolerance of 2.00 % [VP703]",
     "record.yaml:4")
case("without a tolerance the interval decides", measured(
    "record: record.yaml", RECORD % ("0.19", "1.00")), 0, long=True)
case("a record of another version", measured(
    "record: record.yaml, tolerance: 2 %", RECORD % ("0.10", "1")), 3,
     "the record is of vllm 0.10, the plan of 0.19 [VP707]")
case("measured values in the budget itself", measured(
    "values: {non_torch_gib: 1}, engine: vllm@0.19, tolerance: 2 %"), 0, long=True)
case("a figure that the engine does not have", measured("values: {weight_gib: 0.19}"), 3,
     "the plan has no figure weight_gib [VP707]", "did you mean weights_gib?", long=True)
case("a record that is not there", measured("record: gone.yaml"), 2, "cannot open")
case("a record without figures", measured("record: record.yaml", "vramplan: 1\n"), 2,
     "there is no measured: in this record")
os.remove(os.path.join(REPO, "record.yaml"))
RUN = ("vramplan: 1\nname: l8b\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x}\nengine: {name: vllm, "
       "version: \"0.19\", args: {gpu_memory_utilization: 0.85}}\nserve: {context: 16384, "
       "concurrency: 64}\n")
write("run.yaml", RUN)
r = Run("import-log", os.path.join(tap.FIXTURES, "logs/vllm-v1.log"), "--scenario", "run.yaml",
        "--measured-out", "measured.yaml", cwd=REPO)
write("run.yaml", RUN + "budget: {measured: [{record: measured.yaml, tolerance: {weights_gib: 1 %, "
      "available_kv_cache_gib: 1 %, graph_gib: 15 %}}]}\n")
r = gate("run.yaml", "-v")
ok(r.code == 0 and "measured.weights_gib: planned 15.31 GiB, measured 15.25 GiB" in flat(r),
   "a record that import-log made", r)
for name in ("run.yaml", "measured.yaml"):
    os.remove(os.path.join(REPO, name))

# ---- where the base comes from ------------------------------------------------------------------

MORE = edit(("concurrency: 32", "concurrency: 48"))
write(FILE, MORE)
git("commit", "-qam", "more")
same(gate().code, 1, "a committed change")
same(gate("--base", "pr").code, 0, "against itself")
same(gate("--base", "HEAD~1").code, 1, "against a commit")
r = gate("--base", "nowhere")
ok(r.code == 2 and "--base names nowhere, which is not in this clone [VP714]" in r.err,
   "a base that is not there", r)
same(gate(env={"GITHUB_BASE_REF": "main"}).code, 1, "GITHUB_BASE_REF")
r = gate(env={"GITHUB_BASE_REF": "release"})
ok(r.code == 2 and "GITHUB_BASE_REF names release" in r.err, "GITHUB_BASE_REF that is not there", r)
r = gate(env={"CI_MERGE_REQUEST_DIFF_BASE_SHA": git("rev-parse", "main")})
ok(r.code == 1 and "base: CI_MERGE_REQUEST_DIFF_BASE_SHA" in r.out, "GitLab's base commit", r)
same(gate(env={"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}).code, 1, "GitLab's target branch")
git("branch", "-m", "main", "trunk")
r = gate("-v")
ok(r.code == 3 and "no branch to compare with was found" in r.err and "[VP706]" in r.out,
   "no base: growth is inconclusive", r)
case("no base, and no growth asked for", edit(("  budget: {growth: {percent: 0.5, min: 64 MiB, "
                                               "components: {kv_cache: 1 %}}}\n", "")), 0,
     "base: none")
git("checkout", "-q", "-f", "pr")
git("branch", "-m", "trunk", "main")

# main went on: only what the branch did counts
git("checkout", "-q", "main")
write(FILE, edit(("concurrency: 16", "concurrency: 64")))
git("commit", "-qam", "main goes on")
git("checkout", "-q", "pr")
r = gate()
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r) and "concurrency 64" not in r.out,
   "the merge base, not the tip of the branch", r)
git("merge", "-q", "--no-edit", "-m", "merge", "main")
r = gate("--only", "batch")
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r), "a merge commit", r)
r = gate("--only", "chat")
ok("0 passed" not in r.out and "+0" in r.out, "what main did is not charged to the branch", r)

git("checkout", "-q", "-b", "broken", "main")
write(FILE, "vramplan: 1\nscenarios: {chat: {model: [1\n")
git("commit", "-qam", "broken")
write(FILE, BASE)
r = gate("--base", "HEAD")
ok(r.code == 3 and "[VP713]" in r.err and "cannot be read" in r.err, "an unreadable base", r)
write(FILE, BASE.replace("models/config.json", "models/other.json"))
git("commit", "-qam", "model missing")
write(FILE, BASE)
r = gate("--base", "HEAD")
ok(r.code == 3 and "cannot be planned" in r.err, "a base whose model is missing", r)
git("reset", "-q", "--hard")
git("checkout", "-q", "pr")

# files beside the scenario are read as they were
write("models/config.json", config.replace('"num_hidden_layers": 10', '"num_hidden_layers": 14'))
os.rename(os.path.join(REPO, "models"), os.path.join(REPO, "nets"))
write(FILE, open(os.path.join(REPO, FILE)).read().replace("models/", "nets/"))
git("add", "-A")
r = gate("--only", "batch")
ok(r.code == 1 and "num_hidden_layers 10 -> 14" in flat(r), "a model whose folder was renamed", r)
git("reset", "-q", "--hard")
os.makedirs(os.path.join(REPO, "sub"), exist_ok=True)
r = gate("../" + FILE, cwd=os.path.join(REPO, "sub"))
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r), "from a folder below", r)
r = gate("./sub/../" + FILE, "--annotations", "github")
ok(r.code == 1 and "::error file=%s," % FILE in r.err, "annotations name files without ..", r)
r = gate("repo/" + FILE, cwd=tap.DIR)
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r), "from outside of the repository", r)

write("nets.json", config.replace('"num_hidden_layers": 10', '"num_hidden_layers": 12'))
os.remove(os.path.join(REPO, "models/config.json"))
os.symlink("../nets.json", os.path.join(REPO, "models/config.json"))
r = gate("--only", "batch")
ok(r.code == 1 and "num_hidden_layers 10 -> 12" in flat(r), "a file that became a link", r)
git("add", "-A")
git("commit", "-qm", "a link")
write("nets.json", config)
r = gate("--base", "HEAD", "--only", "batch")
ok(r.code == 0 and "-192" not in r.out and "merge base" in r.out, "a link on both sides", r)
os.remove(os.path.join(REPO, "models/config.json"))
write("models/config.json", config.replace('"num_hidden_layers": 10', '"num_hidden_layers": 16'))
r = gate("--base", "HEAD", "--only", "batch")
ok(r.code == 1 and "num_hidden_layers 12 -> 16" in flat(r), "a link in the base", r)
git("reset", "-q", "--hard", "HEAD~1")

# as a hook runs it
hook = {"GIT_INDEX_FILE": ".git/index"}
r = gate("sub/../" + FILE, env=hook)
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r), "with git's variables of a hook", r)
r = gate("sub/../" + FILE, env={**hook, "GIT_DIR": ".git"})
ok(r.code == 1 and "concurrency 32 -> 48" in flat(r), "with GIT_DIR", r)

# folders instead of git
OLD = os.path.join(tap.DIR, "old")
write(FILE, BASE, at=OLD)
shutil.copytree(os.path.join(REPO, "models"), os.path.join(OLD, "models"))
r = gate("--base-dir", "../old", "--only", "batch")
ok(r.code == 1 and "base: folder ../old" in r.out and "concurrency 32 -> 48" in flat(r),
   "--base-dir", r)
r = gate("--base-dir", "../nowhere")
ok(r.code == 2 and "[VP714]" in r.err, "--base-dir that is not there", r)
r = gate("one.yaml", "--base-dir", "../old")
ok(r.code == 0 and "[VP711]" in r.out, "a file that --base-dir does not have", r)
r = gate(cwd=OLD)
ok(r.code == 3 and "[VP706]" in r.out, "not a repository", r)
r = gate("--base", "main", cwd=OLD)
ok(r.code == 2 and "not a git repository" in r.err, "not a repository, a base asked for", r)
r = gate("--only", "batch", env={"PATH": OLD})
ok(r.code == 3 and "[VP706]" in r.out, "no git: growth is inconclusive", r)

# a shallow clone
SHALLOW = os.path.join(tap.DIR, "shallow")
git("clone", "-q", "--depth", "1", "--no-single-branch", "-b", "pr", "file://" + REPO, SHALLOW,
    cwd=tap.DIR)
r = gate("--base", "origin/main", cwd=SHALLOW)
ok(r.code == 2 and "no commit in common in this clone [VP714]" in r.err
   and "fetch-depth: 0" in r.err and "git fetch --unshallow" in r.err.replace("\n", " "),
   "a shallow clone says what is missing", r)
r = gate("--base", "origin/main", cwd=SHALLOW, env={"GITLAB_CI": "true"})
ok(r.code == 2 and "GIT_DEPTH: 0" in r.err, "the same for GitLab", r)

git("update-ref", "-d", "refs/remotes/origin/main", cwd=SHALLOW)
git("remote", "set-head", "origin", "-d", cwd=SHALLOW)
r = gate(cwd=SHALLOW, env={"GITHUB_BASE_REF": "main"})
ok(r.code == 2 and "GITHUB_BASE_REF names main, which is not in this clone" in flat(r)
   and "fetch-depth: 0" in r.err, "a shallow clone without the target branch", r)
r = gate(cwd=SHALLOW)
ok(r.code == 2 and "the default branch is not in this shallow clone" in flat(r),
   "a shallow clone without the default branch", r)

# ---- what it leaves behind, and how it looks ----------------------------------------------------

git("checkout", "-q", "-f", "pr")
STATUS = ("--no-optional-locks", "status", "--porcelain", "--ignored")
before = git(*STATUS)
index = os.stat(os.path.join(REPO, ".git/index")).st_mtime_ns
first, again = gate(), gate()
same(first.bytes, again.bytes, "the same bytes twice")
ok(git(*STATUS) == before and
   os.stat(os.path.join(REPO, ".git/index")).st_mtime_ns == index, "nothing is written")
r = gate("--format", "json")
ok(r.code == 1 and r.json()["schema"].startswith("vramplan.gate/"), "--format json", r)
out = {f: os.path.join(tap.DIR, "out." + f) for f in ("json", "junit", "sarif", "gitlab",
                                                      "markdown")}
r = gate(*[w for f in out for w in ("--" + f, out[f])])
ok(r.code == 1 and all(os.path.getsize(p) > 0 for p in out.values()), "several files at once", r)
r = gate("--junit", "/nowhere/x")
ok(r.code == 4, "a file that cannot be written", r)
r = gate(env={"GITHUB_ACTIONS": "true"})
ok("::error file=" in r.err, "annotations on GitHub", r)

# ---- --init, --self-test ------------------------------------------------------------------------

r = gate("--init")
ok(r.code == 2 and "--init wants the inputs" in r.err, "--init without inputs", r)
r = gate("--init", "models/config.json", "--gpu", "mi300x", "-o", "first.yaml")
ok(r.code == 0, "--init", r)
made = open(os.path.join(REPO, "first.yaml")).read()
ok("growth: {percent: 0.5, min: 64 MiB}" in made and "# today" in made, "it says today's figures",
   made)
r = gate("first.yaml")
ok(r.code == 0 and "[VP711]" in r.out, "what --init wrote passes", r)
r = gate("--self-test", "first.yaml")
ok(r.code == 0 and "0 not seen" in r.out, "and sees planted regressions", r)
os.makedirs(os.path.join(REPO, "sub/deep"), exist_ok=True)
r = gate("--init", FILE, "one.yaml", "-o", "sub/deep/b.yaml")
ok(r.code == 0 and '"../../models/config.json"' in
   open(os.path.join(REPO, "sub/deep/b.yaml")).read(),
   "--init for another folder names files from there; an old budget does not count", r)
same(gate("sub/deep/b.yaml").code, 0, "and finds them")
shutil.copy(os.path.join(REPO, "models/config.json"), os.path.join(REPO, "sub/deep/net.json"))
r = gate("--init", "sub/deep/net.json", "--gpu", "mi300x", "-o", "sub/deep/c.yaml")
ok(r.code == 0 and "    model: net.json\n" in open(os.path.join(REPO, "sub/deep/c.yaml")).read(),
   "a file beside the budget is named from there", r)
shutil.rmtree(os.path.join(REPO, "sub/deep"))
r = gate("--init", os.path.join(tap.TOP, "examples.yaml"), "-o", os.path.join(tap.DIR, "all.yaml"))
ok(r.code == 1 and "not every scenario fits" in r.err, "--init of scenarios that do not fit", r)
r = gate("all.yaml", "--format", "json", cwd=tap.DIR)
fails = [(s["scenario"], c["check"]) for s in r.json()["scenarios"] for c in s["checks"]
         if c["state"] != "pass"]
ok(r.code == 1 and all(c == "fits" for _, c in fails), "all limits of --init pass",
   "%s\n%s" % (fails, r))
r = gate("--self-test")
ok(r.code == 0 and "serve.context 4096 -> 8192" in r.out, "--self-test", r)
write("loose.yaml", edit(("  budget: {growth: {percent: 0.5, min: 64 MiB, components: {kv_cache: "
                          "1 %}}}\n", "")))
r = gate("--self-test", "loose.yaml", "--format", "json")
blind = [p for p in r.json()["planted"] if not p["seen"]]
ok(r.code == 1 and "[VP716]" in r.err and {p["scenario"] for p in blind} == {"batch"},
   "--self-test finds a budget without growth", r)

# ---- --update ----------------------------------------------------------------------------------

TIGHT = edit(("memory: 4.5 GiB", "memory: 3 GiB  # per card"), ("min_context: 8k", "min_context: 32k"),
             ("components: {kv_cache: 1.5 GiB}",
              "components: {weights: '100 MiB', kv_cache: 1 GiB, activations: 8 GiB}"))
write("tight.yaml", "# mine\n" + TIGHT)
r = gate("--update", "tight.yaml")
ok(r.code == 2 and "needs --reason" in r.err, "--update without a reason", r)
r = gate("--reason", "ticket 7", "tight.yaml")
ok(r.code == 2 and "--reason belongs to --update" in r.err, "a reason without --update", r)
r = gate("--update", "--reason", "ticket 7", "tight.yaml", env={"CI": "true"})
ok(r.code == 2 and "does not run in CI" in r.err, "--update in CI", r)
r = gate("--update", "--reason", "ticket 7", "tight.yaml", env={"CI": ""})
want = "# mine\n" + edit(
    ("memory: 3 GiB  # per card", "memory: 4.2 GiB  # per card # raised 2026-11-30: ticket 7"),
    ("'100 MiB'", "'192 MiB'"),
    ("kv_cache: 1 GiB, activations: 8 GiB}",
     "kv_cache: 1.3 GiB, activations: 8 GiB} # raised 2026-11-30: ticket 7"),
    ("min_context: 32k", "min_context: 16384 # raised 2026-11-30: ticket 7"), text=TIGHT)
same(open(os.path.join(REPO, "tight.yaml")).read(), want, "--update raises limits, and no more", r)
ok(r.code == 0 and "tight.yaml:13: memory 3 GiB -> 4.2 GiB\n" in r.out, "it tells which", r)
same(gate("tight.yaml").code, 0, "after which the gate passes")
r = gate("--update", "--reason", "x", "tight.yaml", env={"CI": ""})
ok(r.code == 0 and r.out == "no limit to raise\n", "and there is nothing more to raise", r)

write("tight.json", json.dumps({"vramplan": 1, "name": "größe", "model": "models/config.json",
                                "hardware": {"gpu": "mi300x"}, "budget":
                                {"memory": "1 GiB", "components": {"weights": 1000}}},
                               ensure_ascii=False))
r = gate("--update", "--reason", "x", "tight.json", env={"CI": ""})
after = json.load(open(os.path.join(REPO, "tight.json")))
same((r.code, after["budget"]["components"]["weights"], gate("tight.json").code),
     (0, 192 << 20, 0), "--update of JSON", after)

# ---- speed --------------------------------------------------------------------------------------

many = BASE[:BASE.index("  chat:")] + "".join(
    "  s%d: {serve: {context: %d, concurrency: %d}}\n" % (i, 1024 * (1 + i % 7), 1 + i % 9)
    for i in range(100))
write("many.yaml", many)
git("add", "-A")
git("commit", "-qm", "many")
write("many.yaml", many.replace("context: 2048", "context: 3072"))
start = time.monotonic()
r = gate("many.yaml", "--base", "HEAD")
took = time.monotonic() - start
print("# 100 scenarios against a base: %.2f s" % took)
ok(r.code == 1 and "growth" in r.out and took < (1 if tap.LONG else 10), "100 scenarios", took)
tap.finish()
