#!/usr/bin/env python3
"""The forms in which the gate tells what it found. JUnit and SARIF are held against checks written
from their specifications: the JUnit schema that Jenkins publishes (testsuites, testsuite, testcase
and what may stand in them), and SARIF 2.1.0 (OASIS standard, sections 3.14 run, 3.19 toolComponent,
3.27 result, 3.30 region, 3.49 reportingDescriptor)."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

from tap import DIR, LONG, Run, finish, ok, same, skip
from git_repo import GIT_ENV, Repo
import gguf_writer

NASTY = 'a <b> & "c" | `d` \\ %0A::error'

BUDGET = """vramplan: 1
defaults:
  hardware: {gpu: mi300x}
  engine: {name: vllm, version: "0.19"}
scenarios:
  big:
    model: llama-3.1-70b
    precision: {weights: fp8}
    serve:
      context: %s
      concurrency: 8
    budget:
      memory: 160 GiB
      at_risk: likely
      growth: {percent: 0.5, min: 64 MiB}
      waivers:
        - {check: memory, up_to: 190 GiB, reason: "%s", expires: %s}
  small:
    model: models/small/config.json
    serve: {context: 8192, concurrency: 4}
    budget: {memory: 40 GiB, growth: {percent: 1, min: 1 MiB}}
  'odd %s':
    model: llama-3.1-8b
    serve: {context: %s, concurrency: 1}
    budget: {memory: 15 GiB, at_risk: likely}
"""
CONFIG = """{
  "model_type": "llama", "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": %d,
  "num_attention_heads": 32, "num_key_value_heads": 8,
  "max_position_embeddings": 131072, "vocab_size": 128256, "torch_dtype": "bfloat16"
}
"""


def budget(context, small_context="4096", expires="2027-01-31"):
    return BUDGET % (context, "ticket 7 & more", expires, NASTY.replace("'", "''"), small_context)


repo = Repo("outputs")
repo.commit("base", vramplan_DOT_budget_DOT_yaml=budget("32768"), models__small__config_DOT_json=CONFIG % 32)
repo.git("checkout", "-q", "-b", "change")
repo.commit("head", vramplan_DOT_budget_DOT_yaml=budget("40960"), models__small__config_DOT_json=CONFIG % 36)


def gate(*args, env=None, at=repo):
    return Run("gate", "--base", "main", "--date", "2026-11-30", *args, cwd=at.path, env={**GIT_ENV, **(env or {})})


def read(name):
    with open(os.path.join(repo.path, name), encoding="utf-8") as file:
        return file.read()


# ---- JUnit ----

def junit_faults(text, findings):
    faults = []
    root = ET.fromstring(text)
    if root.tag != "testsuites":
        faults.append("root " + root.tag)
    allowed = {"testsuites": {"testsuite"}, "testsuite": {"properties", "testcase", "system-out"},
               "properties": {"property"}, "testcase": {"skipped", "error", "failure", "system-out"}}
    needed = {"testsuites": set(), "testsuite": {"name", "tests"}, "testcase": {"name", "classname"},
              "property": {"name", "value"}, "failure": {"message", "type"}, "error": {"message", "type"}}
    known = {"testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
             "testsuite": {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname",
                           "id", "package"},
             "testcase": {"name", "assertions", "time", "classname", "status"}}
    for element in root.iter():
        odd = set(element.attrib) - known.get(element.tag, set(element.attrib))
        if odd:
            faults.append("%s of %s" % (odd, element.tag))
        for child in element:
            if child.tag not in allowed.get(element.tag, set()):
                faults.append("%s in %s" % (child.tag, element.tag))
        missing = needed.get(element.tag, set()) - set(element.attrib)
        if missing:
            faults.append("%s lacks %s" % (element.tag, missing))
    for suite in [root] + root.findall("testsuite"):
        cases = suite.findall(".//testcase")
        for name, found in (("tests", len(cases)), ("failures", len(suite.findall(".//failure"))),
                            ("errors", len(suite.findall(".//error"))),
                            ("skipped", len(suite.findall(".//skipped")))):
            if name in suite.attrib and int(suite.get(name)) != found:
                faults.append("%s of %s: %s, found %d" % (name, suite.get("name"), suite.get(name), found))
        names = [(c.get("classname"), c.get("name")) for c in cases]
        if len(set(names)) != len(names):
            faults.append("cases of one name")
    states = {(s["scenario"], c["check"]): c["state"] for s in findings["scenarios"] for c in s["checks"]}
    for case in root.findall(".//testcase"):
        state = states.pop((case.get("classname"), case.get("name")))
        want = {"fail": "failure", "inconclusive": "failure", "invalid": "error", "waived": "skipped"}.get(state)
        got = [c.tag for c in case if c.tag != "system-out"]
        if got != ([want] if want else []):
            faults.append("%s is %s: %s" % (case.get("name"), state, got))
    return faults + ["no case for %s" % (k,) for k in states]


# ---- SARIF ----

def location_faults(where, place):
    faults = []
    physical = place.get("physicalLocation", {})
    uri = physical.get("artifactLocation", {}).get("uri", "")
    if not re.fullmatch(r"(?:[A-Za-z0-9\-._~/:]|%[0-9A-F]{2})+", uri):
        faults.append("%s: uri %r" % (where, uri))
    region = physical.get("region", {})
    if not (isinstance(region.get("startLine"), int) and region["startLine"] >= 1):
        faults.append("%s: startLine %r" % (where, region.get("startLine")))
    if "startColumn" in region and region["startColumn"] < 1:
        faults.append("%s: startColumn" % where)
    return faults


def sarif_faults(log):
    faults = []
    if log.get("version") != "2.1.0":
        faults.append("version")
    if set(log) - {"$schema", "version", "runs"}:
        faults.append("keys %s" % set(log))
    for run in log.get("runs", [None]):
        driver = run["tool"]["driver"]
        rules = driver.get("rules", [])
        if not isinstance(driver.get("name"), str) or not driver["name"]:
            faults.append("driver.name")
        ids = [rule["id"] for rule in rules]
        if len(set(ids)) != len(ids):
            faults.append("rule ids %s" % ids)
        for rule in rules:
            if not rule["shortDescription"]["text"]:
                faults.append("shortDescription")
        prints = []
        for i, result in enumerate(run.get("results", [None])):
            where = "result %d" % i
            if not result["message"].get("text"):
                faults.append(where + ": message")
            if result.get("level") not in ("none", "note", "warning", "error"):
                faults.append(where + ": level")
            if "ruleIndex" in result and ids[result["ruleIndex"]] != result["ruleId"]:
                faults.append(where + ": ruleIndex")
            for place in result["locations"] + result.get("relatedLocations", []):
                faults += location_faults(where, place)
            for s in result.get("suppressions", []):
                if s.get("kind") not in ("inSource", "external"):
                    faults.append(where + ": suppression")
            if not all(isinstance(v, str) and v for v in result["partialFingerprints"].values()):
                faults.append(where + ": fingerprint")
            prints += result["partialFingerprints"].values()
        if len(set(prints)) != len(prints):
            faults.append("fingerprints are not unique")
    return faults


FILES = ("--json", "gate.json", "--junit", "gate.xml", "--sarif", "gate.sarif", "--gitlab", "gate.gl.json",
         "--markdown", "gate.md", "--metrics", "gate.txt")
run = gate(*FILES)
same(run.code, 1, "a budget exceeded, and growth: exit 1", run)
data = json.loads(read("gate.json"))
same(data["schema"], "vramplan.gate/1", "JSON names its schema")
same(data["exit"], 1, "and the exit code")
states = {(s["scenario"], c["check"]): c["state"] for s in data["scenarios"] for c in s["checks"]}
same([states[("big", "memory")], states[("big", "growth")], states[("small", "growth")]],
     ["waived", "fail", "fail"], "a waiver that holds, growth of two scenarios")
big, small = data["scenarios"][0], data["scenarios"][1]
same([c["path"] for c in big["changes"]], ["serve.context"], "the change that did it")
same((big["changes"][0]["file"], big["changes"][0]["line"]), ("vramplan.budget.yaml", 10), "where it stands")
same((small["changes"][0]["path"], small["changes"][0]["file"], small["changes"][0]["line"]),
     ("model.num_hidden_layers", "models/small/config.json", 4), "a key of a changed config.json")
same([s["unexplained_bytes"] for s in data["scenarios"]], [0, 0, 0], "nothing is left unexplained")
same(sum(s["need_bytes"] for s in big["steps"]),
     big["after"]["need_bytes"]["likely"] - big["before"]["need_bytes"]["likely"], "steps add up")

# ---- text ----
lines = run.out.splitlines()
ok(max(map(len, lines)) <= 80, "text stays within 80 columns", run)
ok("serve.context 32768 -> 40960" in run.out and "vramplan.budget.yaml:10" in run.out, "text: cause and place", run)
ok("to pass: serve.context of about" in run.out, "text: what would let it pass", run)
ok(re.search(r"failed.*; exit 1$", lines[-1]), "text: counts and exit in the last line", run)
fits = re.search(r"to pass: serve.context of about ([\d,]+)", run.out).group(1).replace(",", "")
repo.write("vramplan.budget.yaml", budget(fits))
again = gate("--only", "big")
same(again.code, 0, "and with that context it passes", again)
repo.write("vramplan.budget.yaml", budget("40960"))
for form in ("json", "junit", "sarif", "gitlab", "markdown"):
    name = dict(zip(("json", "junit", "sarif", "gitlab", "markdown"), FILES[1::2]))[form]
    same(gate("--format", form).out, read(name), "--format %s is what the file holds" % form)
quiet = gate("--only", "nosuch")
same(quiet.code, 2, "--only that names nothing is wrong input", quiet)

# ---- JUnit ----
xml = read("gate.xml")
same(junit_faults(xml, data), [], "JUnit: elements, attributes, counts, one case per check")
failure = ET.fromstring(xml).find(".//testcase[@classname='big'][@name='growth']/failure")
ok("serve.context 32768 -> 40960 (vramplan.budget.yaml:10): KV cache +20.00 GiB" in failure.text,
   "JUnit: the failure says what did it", failure.text)
values = {p.get("name"): p.get("value") for p in ET.fromstring(xml).findall("testsuite[@name='big']//property")}
same(values["head.need_bytes"], str(big["after"]["need_bytes"]["likely"]), "JUnit: bytes as properties")
same({c.get("classname") for c in ET.fromstring(xml).iter("testcase")}, {"big", "small", "odd " + NASTY},
     "JUnit: names survive their escapes")
if shutil.which("xmllint"):
    lint = subprocess.run(["xmllint", "--noout", "gate.xml"], cwd=repo.path, stderr=subprocess.PIPE)
    same(lint.returncode, 0, "xmllint reads it", lint.stderr)
else:
    skip("xmllint reads it", "there is no xmllint")
same(junit_faults(xml.replace('failures="', 'failures="1', 1), data) != [], True, "and the check sees a wrong count")

# ---- SARIF ----
sarif = json.loads(read("gate.sarif"))
same(sarif_faults(sarif), [], "SARIF: members, levels, lines, rules, fingerprints")
schema = os.environ.get("SARIF_SCHEMA")  # the standard's JSON schema, where somebody has it
try:
    import jsonschema
except ImportError:
    jsonschema = None
if schema and jsonschema:
    with open(schema, encoding="utf-8") as file:
        rules = json.load(file)
    validator = jsonschema.validators.validator_for(rules)(rules)
    same([e.message for e in validator.iter_errors(sarif)], [], "SARIF: the standard's schema")
else:
    skip("SARIF: the standard's schema", "SARIF_SCHEMA names no schema, or Python has no jsonschema")
results = {(r["properties"]["scenario"], r["properties"]["check"]): r for r in sarif["runs"][0]["results"]}
place = results[("small", "growth")]["locations"][0]["physicalLocation"]
same((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("models/small/config.json", 4),
     "SARIF: at the line of the model file that changed")
related = results[("small", "growth")]["relatedLocations"][0]["physicalLocation"]
same(related["artifactLocation"]["uri"], "vramplan.budget.yaml", "SARIF: the limit beside it")
same(results[("big", "memory")].get("suppressions"), [{"kind": "external", "justification": "ticket 7 & more"}],
     "SARIF: a waiver is a suppression")
broken = json.loads(read("gate.sarif"))
broken["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
same(len(sarif_faults(broken)), 1, "and the check sees a line 0")

# ---- GitLab ----
quality = json.loads(read("gate.gl.json"))
ok(all(set(q) == {"description", "check_name", "fingerprint", "severity", "location"} and
       q["severity"] in ("info", "minor", "major", "critical", "blocker") and
       q["location"]["lines"]["begin"] >= 1 and not q["location"]["path"].startswith(("/", "./"))
       for q in quality), "GitLab: the members that it needs", quality)
same(len({q["fingerprint"] for q in quality}), len(quality), "GitLab: fingerprints are unique")

# ---- fingerprints ----
repo.commit("more", vramplan_DOT_budget_DOT_yaml=budget("41472"))
gate("--sarif", "again.sarif")
again = {(r["properties"]["scenario"], r["properties"]["check"]): r["partialFingerprints"]
         for r in json.loads(read("again.sarif"))["runs"][0]["results"]}
same({k: r["partialFingerprints"] for k, r in results.items()}, again, "other figures are no other finding")

# ---- Markdown ----
text = read("gate.md")
same(text.splitlines()[0], "<!-- vramplan-gate -->", "Markdown: a marker in the first line")
rows = [line for line in text.splitlines() if line.startswith("| ")]
same({len(re.findall(r"(?<!\\)\|", r)) for r in rows[:4]}, {7}, "Markdown: a cell stays a cell", text)
ok("&lt;b> &amp;" in text and "\\`d\\`" in text and "<b>" not in text, "Markdown: names are no markup", text)

# ---- metrics ----
metrics = read("gate.txt")
same(metrics.splitlines()[-1], "# EOF", "metrics end as OpenMetrics asks")
label = r'\w+="(?:[^"\\\n]|\\["\\n])*"'
ok(all(re.fullmatch(r"\w+\{%s(,%s)*\} -?\d+" % (label, label), line)
       for line in metrics.splitlines() if not line.startswith("#")), "metrics: samples and their labels", metrics)
ok('vramplan_component_bytes{scenario="big",component="kv_cache"} 107374182400' in metrics, "metrics: bytes", metrics)

# ---- annotations ----
ok("::" not in run.err, "no annotations outside of GitHub", run)
marked = gate(env={"GITHUB_ACTIONS": "true"})
ok(re.search(r"^::error file=models/small/config.json,line=4,title=vramplan gate%3A growth::small: ", marked.err, re.M),
   "an annotation at the line that did it", marked)
ok(all("%" not in re.sub(r"%(25|0A|0D|3A|2C)", "", line) for line in marked.err.splitlines() if line.startswith("::")),
   "annotations: per cent and line ends are escaped", marked)
ok("::" not in gate("--annotations", "none", env={"GITHUB_ACTIONS": "true"}).err, "--annotations none")
same(marked.out, gate().out, "standard output is the same on GitHub")

# ---- a model file of two commits ----
GGUF = """vramplan: 1
scenarios:
  g:
    model: m.gguf
    hardware: {gpu: r9700}
    engine: {args: {ctx_size: %d}}
    budget: {growth: {percent: 0, min: 1 MiB}}
"""
files = Repo("gguf")
gguf_writer.write(os.path.join(files.path, "m.gguf"), layers=16)
files.commit("base", vramplan_DOT_budget_DOT_yaml=GGUF % 8192)
files.git("checkout", "-q", "-b", "change")
gguf_writer.write(os.path.join(files.path, "m.gguf"), layers=20)
files.commit("head", vramplan_DOT_budget_DOT_yaml=GGUF % 16384)
run = gate("--format", "json", at=files)
item = run.json()["scenarios"][0]
same([[item["changes"][i]["path"] for i in step["changes"]] for step in item["steps"]],
     [["model", "model (tensors)", "model.gguf.llama.block_count"], ["engine.args.ctx_size"]],
     "a changed GGUF file is one change, with what is different in it", run)
ok(item["steps"][0]["components"]["weights"] > 0 and "weights" not in item["steps"][1]["components"],
   "its bytes are its own", item["steps"])
same(item["unexplained_bytes"], 0, "and nothing is left")
ok("model m.gguf, other contents" in gate(at=files).out, "text says that the contents are others")

# ---- from a folder below ----
os.makedirs(os.path.join(files.path, "below"), exist_ok=True)
run = Run("gate", "--base", "main", "../vramplan.budget.yaml", "--sarif", "gate.sarif", "--gitlab", "gate.json",
          "--annotations", "github", cwd=os.path.join(files.path, "below"), env=GIT_ENV)
with open(os.path.join(files.path, "below", "gate.sarif"), encoding="utf-8") as file:
    uris = set(re.findall(r'"uri": "([^"]*budget[^"]*)"', file.read()))
with open(os.path.join(files.path, "below", "gate.json"), encoding="utf-8") as file:
    paths = {item["location"]["path"] for item in json.load(file)}
same((uris, paths), ({"vramplan.budget.yaml"},) * 2, "places are told from the top of the repository", run)
ok("::error file=vramplan.budget.yaml,line=" in run.err, "in annotations, too", run)

# ---- what cannot be planned any more ----
files.commit("bad", vramplan_DOT_budget_DOT_yaml=(GGUF % 16384).replace("r9700", "r97000"))
run = gate("--junit", "gate.xml", "--markdown", "gate.md", "--sarif", "gate.sarif", at=files)
same(run.code, 2, "a scenario that cannot be planned: exit 2", run)
ok("changed since the base: model m.gguf, other contents (m.gguf)" in " ".join(run.out.split()) and
   "hardware.gpu r9700 -> r97000 (vramplan.budget.yaml:5)" in " ".join(run.out.split()), "text says what changed", run)
with open(os.path.join(files.path, "gate.xml"), encoding="utf-8") as file:
    error = ET.fromstring(file.read()).find(".//error")
ok(error is not None and "r9700 -> r97000" in error.text, "JUnit: an error, with what changed", error)
with open(os.path.join(files.path, "gate.sarif"), encoding="utf-8") as file:
    bad = json.load(file)
same((sarif_faults(bad), bad["runs"][0]["results"][0]["ruleId"], bad["runs"][0]["results"][0]["level"]),
     ([], "VP301", "error"), "SARIF: the fault's own rule")

# ---- many scenarios ----
COUNT = 500 if LONG else 120
many = Repo("many")
head = "vramplan: 1\ndefaults:\n  model: llama-3.1-8b\n  hardware: {gpu: mi300x}\n" \
       "  budget: {memory: 15 GiB, growth: {percent: 0, min: 1 MiB}}\nscenarios:\n"


def all_of(context):
    return head + "".join("  s%03d-%s: {serve: {context: %s, concurrency: %d}}\n"
                          % (i, "long-name-" * 9, context, 1 + i % 7) for i in range(COUNT))


many.commit("base", vramplan_DOT_budget_DOT_yaml=all_of("4k"))
many.git("checkout", "-q", "-b", "change")
many.commit("head", vramplan_DOT_budget_DOT_yaml=all_of("8k"))
run = gate("--markdown", "gate.md", "--junit", "gate.xml", "--sarif", "gate.sarif", env={"GITHUB_ACTIONS": "true"}, at=many)
with open(os.path.join(many.path, "gate.md"), "rb") as file:
    size = file.read()
ok(len(size) <= 65000, "Markdown of %d scenarios: %d bytes" % (COUNT, len(size)), run)
ok(re.search(rb"\d+ further scenarios", size), "it says how many are left out", size[-600:])
notes = [line for line in run.err.splitlines() if line.startswith("::")]
same(len(notes), 10, "at most 10 annotations", run)
ok(re.search(r"::\d+ more findings", notes[-1]), "the tenth says how many more there are", notes[-1])
with open(os.path.join(many.path, "gate.sarif"), encoding="utf-8") as file:
    same(sarif_faults(json.load(file)), [], "SARIF of all of them")
same(sorted(os.listdir(many.path)), [".git", "gate.md", "gate.sarif", "gate.xml", "vramplan.budget.yaml"],
     "nothing is written but the files that were named")
finish()
