#!/usr/bin/env python3
"""device: made-up systems by their sysfs, what a process may take of them, GPUs by name, what-ifs, no GPU,
nonsense in every file, other probes."""
import json
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tap  # noqa: E402
import system_tree as tree  # noqa: E402
from system_tree import GIB, MIB, MI300X  # noqa: E402
from tap import DIR, Run, finish, ok, same  # noqa: E402

PROBE = os.path.join(os.path.dirname(tap.PROGRAM), "vramplan-probe")
tap.ENV.pop("VRAMPLAN_GPU_LIBRARIES", None)
made = 0


def top():
    global made
    made += 1
    return os.path.join(DIR, "system%d" % made)


def device(system, *options, env=None):
    return Run("device", *options, env={"VRAMPLAN_SYSFS": system.sysfs, **(env or {})})


def gpus(system, *options):
    r = device(system, "--format", "json", *options)
    same((r.code, r.err), (0, ""), "it is shown", r)
    return r.json()["gpus"]


def words(run):
    """Its text without line ends and columns."""
    return " ".join(run.out.split())


def exactly(n):
    return {"low": n, "likely": n, "high": n}


def steps(n):
    return n // (2 * MIB) * (2 * MIB)


def mi300x():
    s, ids = tree.mi300x(top(), used=6 * GIB, product_name="AMD Instinct MI300X OAM")
    s.process(77, "vllm", kfd=[(ids[0], 5 * GIB)])
    g, = gpus(s)
    same((g["profiles"], g["arch"], g["compute_units"], g["pci"], g["device_id"]),
         (["mi300x"], "gfx942", 304, "0000:c1:00.0", 0x74a1), "MI300X: which card it is")
    same((g["partition"], g["memory_partition"], g["partitions"], g["xgmi_hive"], g["power_cap_mw"]),
         ("SPX", "NPS1", "SPX, DPX, QPX, CPX", "1234", 750000), "MI300X: how it is set")
    b = g["budget"]
    same((b["devices"], b["total_bytes"], b["pool"]), (1, MI300X, "vram"), "MI300X: one device")
    same(b["page_table_bytes"], MI300X >> 14, "MI300X: page tables")
    same(b["usable_bytes"], exactly(steps(MI300X - 6 * GIB - (MI300X >> 14))), "MI300X: for a process")
    same(g["holders"], [{"pid": 77, "program": "vllm", "vram_bytes": 5 * GIB, "gtt_bytes": None}],
         "MI300X: who holds it")
    same(g["fp8"], {"support": "native", "kind": "fnuz", "formats": "e4m3fnuz e5m2fnuz"}, "MI300X: FP8")
    r = device(s)
    for text in ("0000:c1:00.0 AMD Instinct MI300X OAM", "191.98 GiB (206141652992 bytes), by sysfs",
                  "vllm (77): 5.00 GiB", "12 MiB are kept back for page tables", "SPX, NPS1; can be SPX, DPX",
                  "750 W", "6.8.0-made-up", "6.2.4-120"):
        ok(text in words(r), "MI300X: says %s" % text, r)
    ok(max(map(len, r.out.splitlines())) <= 80, "80 columns", r)
    same(device(s).out, r.out, "the same again")
    s, _ = tree.mi300x(top())
    same(gpus(s)[0]["profiles"], ["mi300x"], "MI300X: found without a name, by units and memory")


def partitions():
    for memory in ("NPS1", "NPS4"):
        # the topology may show the whole card for each partition: it is divided all the same
        for bank in (None, MI300X):
            s, ids = tree.mi300x(top(), "CPX", memory, bank=bank)
            g, = gpus(s)
            b = g["budget"]
            same((g["profiles"], g["compute_units"], b["devices"], b["total_bytes"]),
                 (["mi300x"], 304, 8, MI300X // 8), "CPX, %s: 8 devices, each an eighth" % memory)
            least, most = steps(b["total_bytes"] - 8 * MIB - 297312256), steps(b["total_bytes"] - 8 * MIB)
            same((b["usable_bytes"]["low"], b["usable_bytes"]["high"]), (least, most),
                 "CPX: all of what is used, or nothing, is this device's")
            ok(least < b["usable_bytes"]["likely"] < most, "CPX: its share is likely", b)
    s.process(88, "trainer", kfd=[(ids[0], GIB), (ids[7], 2 * GIB)])
    r = device(s)
    ok("trainer (88): 3.00 GiB" in words(r) and "listed as 8 devices" in words(r), "CPX: in words", r)
    g, = gpus(s)
    modes = {m["mode"]: m for m in g["partition_modes"]}
    same((modes["CPX"]["devices"], modes["CPX"]["device_bytes"]), (8, 24574 * MIB), "CPX of the profile")
    same(modes["CPX"]["memory_domains"][1], {"mode": "NPS4", "bytes": MI300X // 4, "devices": 2},
         "a domain of NPS4 is a quarter, which two devices share")


def mi250x():
    g = gpus(tree.mi250x(top()))
    same([(c["pci"], c["profiles"], c["arch"], c["budget"]["total_bytes"]) for c in g],
         [("0000:29:00.0", ["mi250x-gcd"], "gfx90a", 65520 * MIB),
          ("0000:2c:00.0", ["mi250x-gcd"], "gfx90a", 65520 * MIB)], "MI250X: two devices")
    same(g[0]["fp8"]["support"], "emulated", "MI250X: no FP8 units")


def strix():
    s = tree.strix(top())
    g, = gpus(s)
    b = g["budget"]
    same((g["profiles"], b["pool"], b["limit_bytes"], b["total_bytes"]),
         (["strix-halo-8060s"], "gtt", 16376832 * 4096, 16376832 * 4096), "Strix Halo: half of the host")
    same(b["usable_bytes"], exactly(steps(16376832 * 4096 - GIB)), "Strix Halo: for a process")
    r = device(s)
    ok("ttm.pages_limit=16376832" in r.out and "to change it" in r.out and "never both" in words(r),
       "Strix Halo: the limit and its parameter", r)
    b = gpus(tree.strix(top(), pages=25165824))[0]["budget"]
    same(b["total_bytes"], 103079215104, "25165824 pages are 96 GiB")
    b = gpus(tree.strix(top(), pages=25165824, gtt=64 * GIB))[0]["budget"]
    same((b["total_bytes"], b["limit_bytes"]), (64 * GIB, 96 * GIB), "a smaller GTT limits, too")
    b = gpus(tree.strix(top(), pages=25165824, available=30 * GIB))[0]["budget"]
    same(b["usable_bytes"], {"low": 30 * GIB, "likely": 30 * GIB, "high": 95 * GIB},
         "no more than the host has left")
    s = tree.strix(top(), vram=96 * GIB, host=31 * GIB, pages=4000000)
    ok("firmware's settings" in words(device(s)), "a large carve-out: where to change it")
    g, = gpus(s)
    same((g["budget"]["pool"], g["budget"]["total_bytes"]), ("vram", 96 * GIB), "a large carve-out is used")
    g, = gpus(tree.strix(top(), host=62 * GIB, pages=8000000))
    same(g["profiles"], ["strix-halo-64"], "a smaller system is another profile")


def mi300a():
    """Four APUs in one host: limits are the system's."""
    s = tree.System(top())
    s.host(505 * GIB, 480 * GIB)
    s.put("sys/module/amdttm/parameters/pages_limit", 4 * 96 * GIB // 4096)
    for bus in ("01", "41", "81", "c1"):
        s.card("0000:%s:00.0" % bus, 0x74a0, 512 * MIB, MIB, 228, 90402, bank=96 * GIB,
               mem_info_gtt_total=4 * 96 * GIB, mem_info_gtt_used=0, current_compute_partition="SPX")
    g = gpus(s)
    same([c["profiles"] for c in g], [["mi300a"]] * 4, "MI300A: four of them")
    same({(c["budget"]["pool"], c["budget"]["total_bytes"]) for c in g}, {("gtt", 505 * GIB // 4)},
         "MI300A: no more than its share of the host")


def desktop():
    s = tree.desktop(top())
    g, = gpus(s)
    same(g["profiles"], ["rx7900xtx"], "a desktop's card")
    same([(h["pid"], h["program"], h["vram_bytes"]) for h in g["holders"]],
         [(5000, "python3", 2049 * MIB), (4711, "Xorg", 700 * MIB)],
         "processes, each client once, the larger of two figures")
    same(g["budget"]["usable_bytes"]["likely"], steps(25753026560 - 3 * GIB - 8 * MIB), "what is left")


def by_name():
    r = Run("device", "--gpu", "mi300x", "--format", "json")
    g, = r.json()["gpus"]
    same((r.code, g["runtime_bytes"], len(g["partition_modes"]), r.json()["system"]), (0, MI300X, 4, None),
         "by name, without the card", r)
    ok("domains of 48.00 GiB, 2 devices each" in words(Run("device", "--gpu", "mi300x")), "its domains")
    r = Run("device", "--gpu", "mi210")
    ok(r.code == 0 and "emulated" in r.out and "_scaled_mm" in words(r) and "1.86 GiB" in words(r),
       "FP8 on a card without units: both figures, and what is refused", r)
    ok("e4m3fn e5m2" in Run("device", "--gpu", "h100").out, "OCP by name")
    ok("a setting" in Run("device", "--gpu", "strix-halo").out, "an APU by name")
    r = Run("device", "--gpu", "mi3000")
    ok(r.code == 2 and "VP301" in r.err, "no such GPU", r)


def what_if():
    r = Run("device", "--what-if", "pages_limit=25165824", "--what-if", "gtt=100 GiB", "--format", "json")
    w = r.json()["what_if"]
    same((r.code, [(x["pages"], x["gtt_bytes"], x["parameter"]) for x in w]),
         (0, [(25165824, 103079215104, "ttm.pages_limit=25165824"),
              (26214400, 100 * GIB, "ttm.pages_limit=26214400")]), "pages to bytes and back", r)
    r = Run("device", "--what-if", "gttsize=98304", "--gpu", "strix-halo")
    ok(r.code == 0 and "amdgpu.gttsize=98304" in words(r) and "did not change" in words(r), "gttsize", r)
    for bad in ("pages_limit=x", "pages=1", "gtt=", "pages_limit=0", "pages_limit=99999999999999999", "gtt"):
        r = Run("device", "--what-if", bad)
        ok(r.code == 2 and "VP107" in r.err, "refused: %s" % bad, r)
    r = Run("device", "--what-if", "gtt=1GiB", "--gpu", "mi300x")
    ok(r.code == 2 and "memory of its own" in r.err, "a card has no such limit", r)


def local():
    """plan --gpu local: the profile, what is there and what others hold, as settings."""
    def plan(system, *options):
        return Run("plan", "llama-3.1-8b", "--gpu", "local", "--format", "json", "--set",
                   "engine.args.gpu_memory_utilization=1", *options,
                   env={"VRAMPLAN_SYSFS": system.sysfs})

    def hardware(r):
        s = r.json()["summary"]
        return s["capacity_bytes"], s["capacity_bytes"] - s["usable_bytes"] # the others' part

    s, _ = tree.mi300x(top(), used=10 * GIB)
    r = plan(s)
    same(hardware(r), (MI300X, 10 * GIB), "plan --gpu local", r)
    same(hardware(plan(s, "--set", "hardware.reserved=1GiB"))[1], GIB, "what is said stays")
    s, _ = tree.mi300x(top(), "CPX", used=8 * GIB)
    same(hardware(plan(s)), (MI300X // 8, GIB), "a partition, and its share of what is used")
    same(hardware(plan(tree.strix(top(), pages=25165824))), (96 * GIB, GIB), "an APU")
    r = plan(tree.System(top()))
    ok(r.code == 4 and "VP909" in r.err, "no GPU here: exit 4", r)
    s = tree.System(top())
    s.card("0000:01:00.0", 0x740f, 65520 * MIB, MIB, 104, 90010)
    r = plan(s)
    ok(r.code == 2 and "VP910" in r.err and "mi210" in r.err and "mi250-gcd" in r.err, "one of two", r)
    s = tree.System(top())
    s.card("0000:01:00.0", 0x9999, 7 * GIB, MIB, 12, 130000)
    r = plan(s)
    ok(r.code == 2 and "no card that is known" in r.err, "an unknown card", r)
    r = device(s)
    ok(r.code == 0 and "none that is like it" in r.out and "gfx1300" in r.out, "device shows it", r)
    r = Run("fit", "llama-3.1-8b", "--gpu", "local", env={"VRAMPLAN_SYSFS": tree.desktop(top()).sysfs})
    ok(r.code in (0, 1, 3), "fit --gpu local", r)


def smi():
    """The real librocm_smi64 over a made-up /sys, in a mount namespace of its own."""
    s, _ = tree.mi300x(top(), "CPX", used=8 * GIB)
    library = subprocess.run("ldconfig -p 2>/dev/null | grep -q librocm_smi64", shell=True).returncode == 0
    space = subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode == 0
    if not library or not space:
        ok(True, "real librocm_smi64 # SKIP %s" % ("not installed" if not library else "no namespaces here"))
        return
    p = subprocess.run(["unshare", "-rm", "sh", "-c", 'mount --bind "$1" /sys && exec "$2" --facts', "sh",
                        s.sysfs, PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tap.ENV)
    facts = json.loads(p.stdout)
    g = facts["gpus"][0]
    same((facts["smi"][:13], g["smi_total_bytes"], g["devices"]), ("librocm_smi64", MI300X, 8),
         "real librocm_smi64: the whole card, though it is divided", facts)
    same(len(facts["gpus"]), 1, "no further card", facts)


FAKE_SMI = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(const char *name) {
    const char *told = getenv("FAKE_SMI");
    if (told && !strcmp(told, "crash") && !strcmp(name, "total")) abort();
    if (told && !strcmp(told, "hang") && !strcmp(name, "total")) for (;;) pause();
    return told && !strcmp(told, name) ? 8 : 0;
}
int rsmi_init(uint64_t flags) { (void)flags; return fails("init"); }
int rsmi_shut_down(void) { return fails("shut_down"); }
int rsmi_num_monitor_devices(uint32_t *n) { *n = 1; return fails("count"); }
int rsmi_dev_pci_id_get(uint32_t i, uint64_t *out) { *out = 0xc100 + i; return fails("pci_id"); }
int rsmi_dev_memory_total_get(uint32_t i, int k, uint64_t *out) { *out = 64ull << 30; return fails("total") + 0 * (int)i * k; }
#ifndef LACKING
int rsmi_dev_memory_usage_get(uint32_t i, int k, uint64_t *out) { *out = 1 << 30; return fails("used") + 0 * (int)i * k; }
#endif
int rsmi_dev_name_get(uint32_t i, char *out, size_t n) { memset(out, 'x', n); (void)i; return fails("name"); }
"""


def fake_smi():
    """Each call of the library made to fail: a text in the facts, never a failure."""
    folder = os.path.join(DIR, "smi")
    os.mkdir(folder)
    source = os.path.join(folder, "smi.c")
    with open(source, "w") as f:
        f.write(FAKE_SMI)
    library = os.path.join(folder, "librocm_smi64.so.7")
    compiler = (os.environ.get("CC") or "cc").split()
    if subprocess.run(compiler + ["-shared", "-fPIC", "-o", library, source]).returncode != 0:
        ok(True, "fake librocm_smi64 # SKIP no compiler")
        return
    s, _ = tree.mi300x(top())

    def facts(told=""):
        r = Run("--facts", program=PROBE, env={"VRAMPLAN_SYSFS": s.sysfs, "FAKE_SMI": told,
                                               "VRAMPLAN_GPU_LIBRARIES": folder})
        same((r.code, len(r.json()["gpus"])), (0, 1), "librocm_smi64 that fails in %s" % told, r)
        return r.json()

    f = facts()
    same((f["smi"], f["gpus"][0]["smi_total_bytes"]), ("librocm_smi64 7", 64 * GIB), "a second witness", f)
    same(len(f["gpus"][0]["name"]) < 96, True, "a name without an end")
    r = Run("device", env={"VRAMPLAN_SYSFS": s.sysfs, "VRAMPLAN_GPU_LIBRARIES": folder})
    ok("disagreement" in r.out, "it disagrees with the kernel", r)
    for told, words in (("init", "rsmi_init: status 8"), ("count", "rsmi_num_monitor_devices: status 8"),
                        ("pci_id", "lists no device"), ("total", "lists no device"),
                        ("used", "librocm_smi64 7"), ("name", "librocm_smi64 7"), ("crash", "killed by signal 6"),
                        ("shut_down", "librocm_smi64 7")):
        same(facts(told)["smi"], words, "it says so: %s" % told)
    r = Run("--facts", "--limit", "0.5", program=PROBE, env={
        "VRAMPLAN_SYSFS": s.sysfs, "FAKE_SMI": "hang", "VRAMPLAN_GPU_LIBRARIES": folder})
    same((r.code, r.json()["smi"]), (0, "gave no answer within 0.5 s"), "a library that hangs", r)
    subprocess.run(compiler + ["-DLACKING", "-shared", "-fPIC", "-o", library, source])
    ok("rsmi_dev_memory_usage_get" in facts()["smi"], "a function is missing")


def nvidia():
    s = tree.System(top())
    s.put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar")
    s.put("proc/driver/nvidia/gpus/0000:19:00.0/information",
          "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 16\nBus Location: \t 0000:19:00.0")
    r = device(s)
    ok(r.code == 0 and "0000:19:00.0 NVIDIA H100" in words(r) and "h100-sxm" in r.out and
       "550.54.15" in r.out and "not told" in r.out, "NVIDIA without its libraries: a name, no memory", r)


def drivers():
    """Stand-ins for HIP and CUDA over made-up systems."""
    import gpu_rig
    s, _ = tree.mi300x(top())
    cuda = tree.System(top())

    def run(system, libraries, script):
        r = device(system, "--format", "json", env={"VRAMPLAN_GPU_LIBRARIES": libraries, "FAKE_GPU": script})
        return r.json()

    j = run(s, gpu_rig.FAKES, "memory=%d" % (MI300X - GIB))
    same((j["system"]["hip"], j["gpus"][0]["budget"]["total_bytes"], j["gpus"][0]["budget"]["total_by"]),
         ("HIP 7.0.51831", MI300X - GIB, "HIP"), "HIP's total comes first", j)
    j = run(s, gpu_rig.FAKES, "devices=2 memory=%d" % MI300X)
    same([(g["pci"], g["profiles"]) for g in j["gpus"]],
         [("0000:c1:00.0", ["mi300x"]), ("0000:c2:00.0", ["mi300x"])], "a card that only HIP shows", j)
    for script, text in (("crash=hipInit", ""), ("fail=hipInit", "hipInit: error 719"),
                         ("abort=hipGetDeviceCount", "LLVM ERROR"), ("devices=0", "hipInit: error 101")):
        j = run(s, gpu_rig.FAKES, script)
        ok(text in j["system"]["hip"] and j["gpus"][0]["budget"]["total_by"] == "sysfs",
           "HIP, %s: the kernel's figures stay" % script, j["system"])
    ok(re.search("killed by signal 11|ended with 99", run(s, gpu_rig.FAKES, "crash=hipInit")["system"]["hip"]),
       "a crash is told (99: seen by a sanitizer)")
    j = run(cuda, gpu_rig.CUDA, "")
    g, = j["gpus"]
    same((g["vendor"], g["budget"]["total_by"], g["budget"]["usable_bytes"]["high"] < g["runtime_bytes"]),
         ("nvidia", "CUDA", True), "a card that only CUDA shows", j)
    j = run(cuda, gpu_rig.CUDA, "devices=0")
    same((j["diagnostics"][0]["id"], "cuInit: error 100" in j["diagnostics"][0]["message"]), ("VP909", True),
         "no device of either", j)


def constants():
    """The context that a calibration measured is the least that an engine's process takes."""
    path = os.path.join(DIR, "mi300x.yaml")
    with open(path, "w") as f:
        f.write("vramplan_calibration: 1\ngpu: mi300x\nunits: 304\nmemory: {context_bytes: %d}\n" % (2 * GIB))

    def plan(*options):
        r = Run("plan", "llama-3.1-8b", "--gpu", "mi300x", "--format", "json", *options).json()
        why = [a["why"] for a in r["assumptions"] if a["field"] == "engine overheads"]
        return r["devices"][0]["components"]["runtime"], why[0]

    train = ("--engine", "pytorch", "--set", "train.micro_batch=1", "--set", "train.sequence_length=128")
    for options in (("--engine", "sglang"), ("--engine", "transformers"), train):
        before, after = plan(*options), plan(*options, "--calibration", path)
        name = " ".join(options[:2])
        ok(before[0]["low"] < 2 * GIB <= after[0]["low"] <= after[0]["likely"] <= after[0]["high"],
           "%s: at least the context" % name, (before, after))
        same(after[0]["high"], max(before[0]["high"], after[0]["low"]), "%s: no wider for it" % name)
        ok("2048 MiB" in after[1] and "2048" not in before[1], "%s: it says so" % name, after)
    same(plan("--engine", "vllm"), plan("--engine", "vllm", "--calibration", path), "vLLM counts behind it")


def none():
    s = tree.System(top())
    r = device(s)
    ok(r.code == 4 and not r.out and "VP909" in r.err, "no GPU: exit 4", r)
    r = device(s, "--format", "json")
    same((r.code, r.json()["schema"], r.json()["diagnostics"][0]["id"]), (4, "vramplan.device/1", "VP909"),
         "no GPU, as JSON", r)
    s.host(GIB, GIB)
    ok("though the amdgpu driver is loaded" in device(s).err, "a driver without a card")
    r = device(s, env={"VRAMPLAN_PROBE": "/nowhere/probe"})
    ok(r.code == 4 and "/nowhere/probe" in r.err, "no program", r)
    for text in ("", "{", "[]", '{"schema": "vramplan.facts/1", "gpus": 3}', '{"schema": "x", "gpus": []}'):
        path = os.path.join(DIR, "other-probe")
        with open(path, "w") as f:
            f.write("#!/bin/sh\nprintf '%%s' '%s'\n" % text)
        os.chmod(path, 0o755)
        r = device(s, env={"VRAMPLAN_PROBE": path})
        ok(r.code == 4 and r.err, "a program that prints %r" % text, r)
    for options in (("--format", "csv"), ("word",)):
        same(device(s, *options).code, 2, "refused: %s" % " ".join(options))


def nonsense():
    """Each file in turn empty, binary, huge or a folder: always an answer, never a crash."""
    dice = random.Random(7)
    files = []
    s = tree.desktop(top())
    for folder, _, names in os.walk(s.top):
        files += [os.path.join(folder, n) for n in names if not os.path.islink(os.path.join(folder, n))]
    wrong = []
    for path in sorted(files):
        with open(path, "rb") as f:
            good = f.read()
        for text in (b"", bytes(dice.randrange(256) for _ in range(300)), b"9" * 40000,
                     b"-1\n", b"0x\n18446744073709551615 18446744073709551615\n"):
            with open(path, "wb") as f:
                f.write(text)
            p = subprocess.run([PROBE, "--facts"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**tap.ENV, "VRAMPLAN_SYSFS": s.sysfs})
            if p.returncode != 0 or not p.stdout.endswith(b"}\n") or p.stderr:
                wrong.append((path, text[:20], p.returncode))
        with open(path, "wb") as f:
            f.write(good)
    ok(not wrong, "nonsense in %d files" % len(files), wrong[:5])
    for path in files:
        with open(path, "wb") as f:
            f.write(bytes(dice.randrange(256) for _ in range(50)))
    r = device(s)
    ok(r.code in (0, 4), "nonsense in all of them", r)


for test in (mi300x, partitions, mi250x, strix, mi300a, desktop, by_name, what_if, local, smi, fake_smi, nvidia, drivers, constants, none, nonsense):
    test()
finish()
