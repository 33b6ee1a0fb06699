#!/usr/bin/env python3
"""--plot: every chart as a picture and as characters, with gnuplot and without."""
import os
import re
import shutil
import struct
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, LONG, Run, TOP, finish, ok, same, skip  # noqa: E402

EXAMPLES = os.path.join(TOP, "examples.yaml")
SERVE, TRAIN = EXAMPLES + "#mi300x-70b-fp8", "train-torch.yaml"
GNUPLOT = shutil.which("gnuplot")
NO_PATH = {"PATH": "/nonexistent"}

# name, command, what a picture of it has to say
SWEEP = ["sweep", SERVE, "--vary", "serve.context=8k..64k*2"]
CHARTS = (
    ("breakdown", ["plan", SERVE], ["memory (GiB)", "weights", "KV cache", "usable", "capacity",
                                    "gpu0"]),
    ("several", ["plan", "several.yaml"], ["memory (GiB)", "capacity"]),
    ("kv", ["plan", SERVE, "--chart", "kv"],
     ["context (tokens)", "KV cache per device (GiB)", "fp8 (this plan)", "bf16",
      "room beside all else"]),
    ("roofline", ["plan", SERVE, "--chart", "roofline"],
     ["operations per byte moved (FLOP/byte)", "speed (TFLOP/s)", "fp8: 2615 TFLOP/s",
      "decode, this plan", "prefill, this plan", "matrix products, measured"]),
    ("calibration", ["plan", SERVE, "--chart", "calibration"],
     ["measured (microseconds)", "by the form alone (microseconds)", "equal"]),
    ("timeline", ["timeline", TRAIN], ["allocated (GiB)", "reserved", "capacity", "optimizer",
                                       "a later step"]),
    ("plan-timeline", ["plan", TRAIN, "--chart", "timeline"], ["allocated (GiB)", "reserved"]),
    ("frontier", ["checkpoint", TRAIN, "--budget", "1 GiB"],
     ["peak of the device (GiB)", "extra time (% of the step)", "best plans", "budget"]),
    ("fit", ["fit", EXAMPLES + "#mi210-30b-16k"],
     ["memory (GiB)", "as it is", "capacity", "weights fp8"]),
    ("lines", SWEEP + ["--vary", "precision.weights=bf16,fp8"],
     ["serve.context", "need (GiB)", "weights bf16", "weights fp8", "usable"]),
    ("heat", SWEEP + ["--vary", "serve.concurrency=1,16,64", "--chart", "heat"],
     ["serve.context", "serve.concurrency", "does not fit"]),
    ("pareto", SWEEP + ["--vary", "serve.concurrency=1,16,64", "--pareto"],
     ["beaten by none", "headroom_bytes, wanted large (GiB)"]),
)


def path(name):
    return os.path.join(DIR, name)


def content(name):
    with open(path(name), "rb") as f:
        return f.read()


def words_of_svg(data):
    root = ET.fromstring(data)
    return root, " ".join(" ".join(e.itertext()) for e in root.iter()
                          if e.tag.endswith(("text", "tspan", "title", "desc")))


def missing(said, wanted):
    """Labels that are not there; lines may be broken anywhere."""
    flat = re.sub(r"\s+", " ", said)
    return [w for w in wanted if w not in flat]


def texts():
    """What needs nothing: characters, at most 80 wide; the file is what is shown."""
    for name, command, wanted in CHARTS:
        r = Run(*command, "--plot", "-", "-o", path("result"), env=NO_PATH)
        ok(r.code in (0, 1, 3) and r.err == "", "%s: as characters" % name, r)
        same(missing(r.out, wanted), [], "%s: they say what is drawn" % name, r.out)
        ok(max(map(len, r.out.splitlines())) <= 80 and r.out.isascii(), "%s: 80 columns" % name,
           r.out)
    r = Run("plan", SERVE, "--plot", path("b.txt"))
    shown = Run("plan", SERVE, "--plot", "-")
    same(shown.out, r.out + "\n" + content("b.txt").decode(), "- shows the file behind the result")
    r = Run("plan", SERVE, "--plot", "-", "--format", "json")
    ok(r.json()["verdict"] == "fits" and "Memory by device" in r.err,
       "with JSON on standard output the chart is on the other one", r)
    bar = [line for line in content("b.txt").decode().splitlines() if line.startswith("gpu0")][0]
    plan = Run("plan", SERVE, "--format", "json").json()
    parts = plan["devices"][0]["components"]
    for letter, key in ("W", "weights"), ("K", "kv_cache"):
        share = parts[key]["likely"] / plan["summary"]["need_bytes"]["likely"]
        drawn = bar.count(letter) / len(re.findall("[A-Z]", bar))
        ok(abs(share - drawn) < 0.03, "the bar has %s's share" % key, (share, drawn))


def without_gnuplot():
    r = Run("plan", SERVE, "--plot", path("no.png"), env=NO_PATH)
    same(r.code, 4, "a .png without gnuplot ends with 4")
    ok("[VP904]" in r.err and "no.gp" in r.err and "gnuplot-nox" in r.err, "and says so", r)
    ok("FITS" in r.out and "memory (GiB)" in r.out, "result and chart are shown", r)
    ok(not os.path.exists(path("no.png")) and b"plot" in content("no.gp") and
       b"# weights" in content("no.dat"), "script and data stay")
    r = Run("plan", SERVE, "--plot", path("own.svg"), env=NO_PATH)
    ok(r.code == 0 and "[VP911]" in r.err, "an .svg is drawn without it", r)
    root, words = words_of_svg(content("own.svg"))
    same(missing(words, CHARTS[0][2]), [], "with all labels")
    ok(b"<title" in content("own.svg") and b"<desc" in content("own.svg") and
       root.get("role") == "img", "title and description")
    ok(b"http" not in content("own.svg").replace(b"http://www.w3.org/2000/svg", b""),
       "nothing from outside")


def png_size(data):
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    return struct.unpack(">II", data[16:24])


def pictures():
    """The cheapest forms of every chart; all forms in the long run."""
    for name, command, wanted in CHARTS:
        if not LONG and name in ("several", "plan-timeline"):  # drawn as others are
            continue
        forms = ("svg", "png", "pdf") if LONG or name == "breakdown" else ("svg",)
        for form in forms:
            image = name + "." + form
            r = Run(*command, "--plot", path(image), "-o", path("result"))
            if not ok(r.code in (0, 1, 3) and r.err == "", "%s is drawn" % image, r):
                continue
            data = content(image)
            if form == "png":
                same(png_size(data), (1200, 700), "%s: a picture" % image)
                ok(len(data) > 5000, "%s: with something in it" % image, len(data))
            elif form == "pdf":
                ok(data.startswith(b"%PDF") and len(data) > 3000, "%s: a document" % image)
            else:
                _, words = words_of_svg(data)
                same(missing(words, wanted), [], "%s: its labels" % image, words)
        script = content(name + ".gp").decode()
        same(missing(script, wanted), [], "%s: labels of the script" % name, script)


def blocks(name):
    """Series of a data file: label -> rows of numbers."""
    out = {}
    for block in content(name).decode().split("\n\n\n"):
        lines = block.splitlines()
        label = [line for line in lines if line.startswith("#")][-1][2:].rsplit(":", 1)[0]
        out[label] = [[float(v) for v in line.split()] for line in lines
                      if not line.startswith("#")]
    return out


def figures():
    """The data say what the result says."""
    plan = Run("plan", SERVE, "--format", "json").json()
    parts = plan["devices"][0]["components"]
    drawn = blocks("breakdown.dat")
    for label, key in ("weights", "weights"), ("KV cache", "kv_cache"), ("graphs", "graphs"):
        x = drawn[label][0]
        ok(abs((x[3] - x[2]) * 2**30 - parts[key]["likely"]) < 1, "breakdown: %s" % label, x)
    ok(abs(drawn["capacity"][0][0] * 2**30 - plan["summary"]["capacity_bytes"]) < 1,
       "breakdown: capacity")
    lines = blocks("kv.dat")
    token = plan["kv_cache"]["bytes_per_token"]
    wrong = [(c, gib) for c, gib in lines["fp8 (this plan)"] if gib * 2**30 != 16 * c * token]
    same(wrong, [], "kv: sequences x tokens x bytes per token")
    ok(all(b[1] == 2 * f[1] for b, f in zip(lines["bf16"], lines["fp8 (this plan)"])),
       "kv: 16 bit takes twice as much")
    roof = blocks("roofline.dat")
    peak = max(y for _, y in roof["fp8: 2615 TFLOP/s"])
    points = [p for kind in ("decode", "prefill") for p in roof[kind + ", this plan"]]
    same([p for p in points if p[1] > 1.001 * min(peak, p[0] * 5.3)], [], "nothing above the roof")
    # 16 rows and a byte per weight: 32 operations per byte, less what activations move; attention:
    # 8 query heads look at each cached byte, 2 operations each
    intensity = sorted(x for x, _ in roof["decode, this plan"])
    ok(abs(intensity[0] - 16) < 0.1 and all(30 < x < 32 for x in intensity[1:]),
       "operations per byte of a decode iteration", intensity)
    step = Run("timeline", TRAIN, "--format", "json").json()
    peak = max(step[s]["peak"]["bytes"] for s in ("step", "first_step"))
    areas = blocks("timeline.dat")
    top = max(row[2] for label, rows in areas.items() for row in rows
              if label not in ("reserved", "peak of a later step"))
    ok(abs(top * 2**30 - peak) < 1, "timeline: the areas reach the peak", (top, peak))
    best = blocks("frontier.dat")["best plans"]
    ok(best == sorted(best) and all(a[1] > b[1] for a, b in zip(best, best[1:])),
       "frontier: more memory, less time")


def names():
    """What a name holds is text: no command of gnuplot, no markup."""
    with open(path("odd.yaml"), "w") as f:
        f.write("vramplan: 1\nmodel: llama-3-8b\nname: \"<b>'`touch pwned`\\\"&\"\n"
                "hardware: {gpu: mi300x}\nserve: {context: 4096}\n")
    r = Run("plan", path("odd.yaml"), path("odd.yaml"), "--plot", path("odd.svg"), cwd=DIR)
    ok(r.code == 0, "an odd name", r)
    ok(not os.path.exists(path("pwned")), "runs nothing")
    _, words = words_of_svg(content("odd.svg"))
    ok("<b>'`touch pwned`\"&" in words, "and is shown as it is", words)


def refused():
    for command, said in (
            (["plan", SERVE, "--plot", "a.gif"], ".png, .svg, .pdf or .txt"),
            (["plan", SERVE, "--plot", ".png"], ".png, .svg, .pdf or .txt"),
            (["fit", SERVE, TRAIN, "--plot", "-"], "draws the answer for one input"),
            (["fit", "several.yaml", "--plot", "-"], "draws one scenario"),
            (["plan", SERVE, "--chart", "kv"], "goes with --plot"),
            (["plan", SERVE, "--plot", "-", "--chart", "pie"], "has no --chart pie"),
            (["plan", SERVE, "--plot", "-", "--chart", "timeline"], "nothing is trained"),
            (["plan", TRAIN, "--plot", "-", "--chart", "kv"], "nothing is served"),
            (["plan", "several.yaml", "--plot", "-", "--chart", "kv"], "draws one scenario"),
            (["plan", SERVE, "--gpu", "mi100", "--plot", "-", "--chart", "calibration"],
             "no calibration"),
            (["sweep", SERVE, "--vary", "serve.context=8k,16k", "--plot", "-", "--pareto",
              "--gpu", "rtx3060-12"], "nothing fits")):
        r = Run(*command)
        ok(r.code == 2 and said in r.err, "refused: %s" % " ".join(command[2:]), r)
    os.mkdir(path("dat.dat"))
    r = Run("plan", SERVE, "--plot", path("dat.png"))
    ok(r.code == 4 and "dat.dat" in r.err, "data that cannot be written", r)


texts()
without_gnuplot()
refused()
if GNUPLOT:
    pictures()
    figures()
    names()
else:
    skip("pictures", "no gnuplot")
finish()
