#!/usr/bin/env python3
"""report: HTML, Markdown and CSV of plans; the page is whole, says what the result says, and asks
for nothing."""
import csv
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, ENV, LONG, Run, TOP, finish, ok, same, skip  # noqa: E402

EXAMPLES = os.path.join(TOP, "examples.yaml")
SERVE, TRAIN, LLAMA = EXAMPLES + "#mi300x-70b-fp8", "train-torch.yaml", "llama.yaml#part"
VOID = {"meta", "br", "rect", "line", "path", "circle"}


def path(name):
    return os.path.join(DIR, name)


def content(name):
    with open(path(name), encoding="utf-8") as f:
        return f.read()


class Page(HTMLParser):
    """Tables by caption (rows of cell texts), exact bytes, headings, faults of the markup."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.ids, self.links, self.outside = [], [], [], [], []
        self.tables, self.table, self.headings, self.words = {}, None, [], []
        self.bytes = {}
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append("left open: %s" % self.open)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for key in ("src", "href", "xlink:href", "action", "data", "poster"):
            if key in attrs and attrs[key].startswith("#"):
                self.links.append(attrs[key][1:])
            elif key in attrs:
                self.outside.append((tag, attrs[key]))
        if any(key.startswith("on") for key in attrs) or tag in ("script", "link", "iframe", "img",
                                                                 "object", "embed", "base"):
            self.outside.append((tag, attrs))
        self.links += re.findall(r"url\(#([^)]*)\)", " ".join(v or "" for v in attrs.values()))
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.table = {"caption": "", "rows": [], "bytes": []}
        elif tag == "tr":
            self.table["rows"].append([])
            self.table["bytes"].append([])
        elif tag in ("td", "th"):
            if tag == "th" and "scope" not in attrs:
                self.faults.append("a head without a scope")
            self.table["rows"][-1].append("")
            self.table["bytes"][-1].append(None)
        elif tag == "data":
            self.table["bytes"][-1][-1] = int(attrs["value"])
        elif tag in ("h1", "h2", "h3"):
            self.headings.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append("</%s> does not fit" % tag)
        if tag == "table":
            if not self.table["caption"]:
                self.faults.append("a table without a caption")
            self.tables.setdefault(self.table["caption"], []).append(self.table)
            self.table = None

    def handle_data(self, data):
        self.words.append(data)
        if "caption" in self.open:
            self.table["caption"] += data
        elif self.open and ("td" in self.open or "th" in self.open):
            self.table["rows"][-1][-1] += data
        elif self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings[-1] += data

    def named(self, beginning):
        return [t for c, all in self.tables.items() if c.startswith(beginning) for t in all]


def is_sound(page, text, name):
    same(page.faults, [], "%s: the markup is balanced" % name)
    same(page.outside, [], "%s: nothing from outside, no script" % name)
    ok("http:" not in text and "https:" not in text and "@import" not in text,
       "%s: no address in it" % name)
    ok(len(set(page.ids)) == len(page.ids), "%s: ids are unique" % name)
    same([link for link in page.links if link not in page.ids], [], "%s: links lead somewhere" % name)
    ok("prefers-color-scheme:dark" in text and "@media print" in text, "%s: dark, print" % name)


def figures(page, plan, name):
    """The tables hold the numbers of the JSON result, to the byte."""
    worst = [d for d in plan["devices"] if d["id"] == plan["summary"]["worst_device"]][0]
    table = page.named(worst["id"] + ", by component")[0]
    shown = {row[0].lower(): b[1] for row, b in zip(table["rows"][1:], table["bytes"][1:])}
    wanted = {k.replace("_", " ").lower(): v["likely"] for k, v in worst["components"].items()
              if v["high"] > 0}
    same({k: shown.get(k) for k in wanted}, wanted, "%s: components" % name)
    same(shown["needed"], plan["summary"]["need_bytes"]["likely"], "%s: need" % name)
    same({row[0]: row[4] for row in table["rows"][1:] if row[0].lower() in wanted},
         {row[0]: worst["components"][row[0].lower().replace(" ", "_")]["confidence"]
          for row in table["rows"][1:] if row[0].lower() in wanted}, "%s: confidence" % name)
    rows = page.named("Devices")[0]["bytes"][1:]
    same([r[7] for r in rows][0], plan["summary"]["headroom_bytes"], "%s: spare" % name)
    ledger = sum(b[2] for t in page.named("Ledger of") for b in t["bytes"][1:])
    same(ledger, sum(row["bytes"]["likely"] for row in plan["ledger"]), "%s: ledger" % name)
    same(len(page.named("Every value")[0]["rows"]) - 1, len(plan["assumptions"]),
         "%s: assumptions" % name)
    same(sum(len(t["rows"]) - 1 for t in page.named("Changes")), len(plan["suggestions"]),
         "%s: suggestions" % name)
    same(sum(len(t["rows"]) - 1 for t in page.named("What the planner found")),
         len(plan["diagnostics"]), "%s: diagnostics" % name)


def pages():
    for name, scenario, wanted in (
            ("serve", SERVE, ["Where the bytes go", "KV cache", "Speed", "Ledger", "Formulas",
                              "How to make it again"]),
            ("train", TRAIN, ["Training step", "Ledger"]),
            ("llama", LLAMA, ["Placement by llama.cpp", "Ledger"]),
            ("unfit", EXAMPLES + "#mi210-30b-16k", ["Suggestions"])):
        r = Run("report", scenario, "--html", path(name + ".html"))
        plan = Run("plan", scenario, "--format", "json")
        ok(r.code == plan.code and r.out == "" and r.err == "", "%s: written" % name, r)
        text = content(name + ".html")
        page = Page(text)
        is_sound(page, text, name)
        same([w for w in wanted if w not in page.headings], [], "%s: its sections" % name)
        figures(page, plan.json(), name)
        ok(len(re.findall("<svg ", text)) == len(re.findall("<details>\n<summary>The figures", text)),
           "%s: each chart has its table" % name)
        same(Run("report", scenario, "--html", "-").out, text, "%s: the same again" % name)
    levels = [int(n) for n in re.findall(r"<h(\d)", content("serve.html"))]
    ok(levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])),
       "no level of headings is left out", levels)
    first = content("serve.html").split("<h2>")[0]
    ok("FITS" in first and "context 32768, 16 sequences" in first, "verdict and assumptions first")
    last = content("serve.html").rsplit("<h2>", 1)[1]
    ok("vramplan plan" in last and "mi300x" in last, "last how to make it again", last)
    for caption in ("Predicted against measured", "Where the time of a step goes"):
        ok(caption in content("serve.html"), "a calibrated plan: %s" % caption)
    command = shlex.split(html.unescape(re.search("<pre>vramplan (.*)</pre>", last).group(1)))
    same(Run(*command).out, Run("plan", SERVE).out, "the command makes it again")


def several():
    r = Run("report", "several.yaml", "one.yaml", "--html", path("all.html"), "--markdown",
            path("all.md"), "--csv", path("all.csv"))
    plans = Run("plan", "several.yaml", "one.yaml", "--format", "json").json()
    ok(r.out == "", "several files at once", r)
    text = content("all.html")
    page = Page(text)
    is_sound(page, text, "several")
    rows = page.named("All plans")[0]["rows"][1:]
    same([row[1].lower().replace(" ", "-") for row in rows], [p["verdict"] for p in plans],
         "verdicts of the overview")
    same(len([h for h in page.headings if h == "Where the bytes go"]), len(plans), "one section each")
    same(content("all.csv"), Run("plan", "several.yaml", "one.yaml", "--format", "csv").out,
         "the table is that of plan")
    same(len(list(csv.reader(content("all.csv").splitlines()))), len(plans) + 1, "a line for each")
    md = content("all.md")
    ok(md.startswith("| plan | verdict |") and md.count("### ") == len(plans) and
       md.count("```sh\nvramplan plan ") == len(plans), "Markdown: overview and sections", md)


def forms():
    md = Run("report", SERVE)
    ok(md.code == 0 and md.out.startswith("### mi300x-70b-fp8: fits"), "Markdown by default", md)
    for ending, begins in ((".html", "<!DOCTYPE html>"), (".csv", "name,verdict"), (".md", "### "),
                           (".json", "{")):
        Run("report", SERVE, "-o", path("f" + ending))
        ok(content("f" + ending).startswith(begins), "-o *%s" % ending)
    same(json.loads(content("f.json")), Run("plan", SERVE, "--format", "json").json(),
         "JSON is the result")
    r = Run("report", SERVE, "--context", "16k", "--html", path("set.html"))
    ok("--context 16k" in content("set.html") and "context 16384" in content("set.html"),
       "settings of the command line", r)
    r = Run("report", "--from-command", "vllm serve llama-3-8b --max-model-len 8192", "--gpu",
            "mi300x")
    ok("vramplan plan --from-command 'vllm serve llama-3-8b --max-model-len 8192' --gpu mi300x" in
       r.out, "a command line in place of a file", r)
    with open(os.path.join(TOP, "tests", "fixtures", "one.yaml")) as f:
        r = Run("report", "-", "--html", "-", stdin=f.read())
    ok(r.code == 0 and "p1-breakdown" in r.out and "p1-kv" not in r.out, "standard input", r)
    r = Run("report", "one.yaml", "nowhere.yaml", "--html", path("part.html"))
    ok(r.code == 2 and "NOT PLANNED" in content("part.html"), "what cannot be planned is named", r)
    r = Run("report", "nowhere.yaml", "--html", path("none.html"))
    ok(r.code == 2 and not os.path.exists(path("none.html")), "nothing to write", r)
    r = Run("report", SERVE, "--html", path("no/such/folder.html"))
    ok(r.code == 4 and "folder.html" in r.err, "a file that cannot be written", r)


def odd_names():
    with open(path("odd.yaml"), "w") as f:
        f.write("vramplan: 1\nmodel: llama-3-8b\nname: \"</title><script>x</script>'&\\\"|`\"\n"
                "hardware: {gpu: mi300x}\nserve: {context: 4096}\n")
    Run("report", path("odd.yaml"), "--html", path("odd.html"), "--markdown", path("odd.md"))
    text = content("odd.html")
    page = Page(text)
    is_sound(page, text, "odd")
    ok("<script" not in text and "</title><script>x</script>'&\"|`" in "".join(page.words),
       "names are text in HTML")
    ok("<script" not in content("odd.md"), "names are text in Markdown")


def browser(program, name):
    """A real browser: no console line, no request but the file, something on the picture."""
    log, shot = path(name + ".net"), path(name + ".png")
    p = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                        "--disable-background-networking", "--disable-component-update",
                        "--disable-sync", "--disable-default-apps", "--user-data-dir=" + path("ud"),
                        "--enable-logging=stderr", "--log-net-log=" + log, "--screenshot=" + shot,
                        "--window-size=1000,1600", "file://" + path(name + ".html")],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, timeout=90)
    said = p.stderr.decode(errors="replace")
    if not os.path.exists(shot):
        skip("%s in a browser" % name, "chromium does not run here")
        return
    same(re.findall(r".*CONSOLE.*", said), [], "%s: nothing on the console" % name)
    with open(log) as f:
        asked = set(re.findall(r'"url":"((?:https?|wss?|ftp)://[^"]*)"', f.read()))
    # what the browser itself asks for, whatever page is shown
    own = re.compile(r"https?://[^/]*\.(google|googleapis|gvt1|gstatic|google-analytics)\.com[:/]")
    same(sorted(u for u in asked if not own.match(u)), [], "%s: no request" % name)
    ok(os.path.getsize(shot) > 20000, "%s: a picture of it" % name, os.path.getsize(shot))


pages()
several()
forms()
odd_names()
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if not CHROMIUM:
    skip("in a browser", "no chromium")
elif not LONG:
    skip("in a browser", "LONG=1 only")
else:
    for page in "serve", "train", "all":
        browser(CHROMIUM, page)
finish()
