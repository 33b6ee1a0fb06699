#!/usr/bin/env python3
"""The probe on AMD and NVIDIA GPUs that are not there: no library, Debian's libamdhip64 without a
device, and stand-ins for the drivers (tests/fakes) that fail in every call in turn, hang and crash.
What the stand-ins cannot show is that real drivers do as the vendors' headers say."""
import csv
import ctypes
import os
import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tap

PROBE = os.path.join(os.path.dirname(tap.PROGRAM), "vramplan-probe")
FAKES = os.path.join(tap.DIR, "fakes")
CUDA = os.path.join(FAKES, "cuda")


def skip(name, why):
    tap.count += 1
    print("ok %d - %s # SKIP %s" % (tap.count, name, why))


def build():
    compiler = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-w", "-I" + tap.TOP]

    def make(out, sources, *more):
        subprocess.run([*compiler, *flags, "-o", out, *[os.path.join(tap.TOP, s) for s in sources],
                        *more], check=True)

    driver, blas = "tests/fakes/fake_driver.c", ["tests/fakes/fake_blas.c", "probe/fp8.c"]
    os.makedirs(CUDA)
    hip, cuda = os.path.join(FAKES, "libamdhip64.so.7"), os.path.join(CUDA, "libcuda.so.1")
    make(hip, [driver], "-DVP_FNUZ=1", "-Wl,-soname,libamdhip64.so.7", "-lm")
    make(os.path.join(FAKES, "libhipblaslt.so.1"), blas, hip, "-lm")
    make(os.path.join(FAKES, "librccl.so.1"), ["tests/fakes/fake_collective.c"])
    make(cuda, [driver], "-DCUDA", "-Wl,-soname,libcuda.so.1", "-lm")
    make(os.path.join(CUDA, "libcublasLt.so.12"), blas, "-DCUDA", cuda, "-lm")
    make(os.path.join(CUDA, "libnccl.so.2"), ["tests/fakes/fake_collective.c"])
    for name in ("libnvrtc.so.12", "libnvidia-ml.so.1"):
        os.symlink("libcuda.so.1", os.path.join(CUDA, name))
    return hip, cuda


class Probe:
    """One run; out and err together, seconds, the sample files as lists of dicts."""

    def __init__(self, backend, script="", only="launch", libraries=None, env=None, limit="30"):
        self.folder = tempfile.mkdtemp(dir=tap.DIR)
        libraries = libraries or (FAKES if backend == "hip" else CUDA)
        self.what = "FAKE_GPU='%s' --backend %s --only %s" % (script, backend, only)
        p = subprocess.run(
            [PROBE, "--backend", backend, "--quick", "--only", only, "--csv", self.folder,
             "--limit", limit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
            env={**tap.ENV, "VRAMPLAN_GPU_LIBRARIES": libraries, "FAKE_GPU": script, **(env or {})})
        self.code, self.text = p.returncode, p.stdout.decode()

    def rows(self, name):
        try:
            with open(os.path.join(self.folder, name + ".csv")) as f:
                return list(csv.DictReader(f))
        except OSError:
            return []

    def device(self):
        return {r["property"]: r["value"] for r in self.rows("device")}

    def __str__(self):
        return "%s: ended with %d\n%s" % (self.what, self.code, self.text)


def ended(run, code, pattern, name):
    return tap.ok(run.code == code and re.search(pattern, run.text, re.S), name, run)


hip_library, cuda_library = build()

# ---- no library, no device -------------------------------------------------------------------------

empty = os.path.join(tap.DIR, "empty")
os.mkdir(empty)
ended(Probe("hip", libraries=empty), 4, r"no library: libamdhip64\.so was not found",
      "without HIP: a clear line and exit 4")
ended(Probe("cuda", libraries=empty), 4, r"no library: libcuda\.so was not found",
      "without CUDA: the same")
try:
    ctypes.CDLL("libamdhip64.so.5")
except OSError:
    skip("Debian's HIP without a device", "no libamdhip64.so.5 (package libamdhip64-5)")
else:
    folder = next((d for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
                   if os.path.exists(os.path.join(d, "libamdhip64.so.5"))), "")
    if os.path.exists("/dev/kfd") or not folder:
        skip("Debian's HIP without a device", "this machine may have one")
    else:
        ended(Probe("hip", libraries=folder), 4, r"no device: hip\w+: error 10[01], hipError\w+Device",
              "Debian's HIP without a device: loads, says so, exit 4")
ended(Probe("hip", "devices=0"), 4, r"no device: hipInit: error 101", "a HIP that finds no device")
ended(Probe("cuda", "devices=0"), 4, r"no device: cuInit: error 100", "a CUDA that finds no device")
ended(Probe("hip", "devices=2", only="launch", env={}), 0, r"launch: ", "two devices: the first")

# ---- whole runs ------------------------------------------------------------------------------------

sysfs = os.path.join(tap.DIR, "sys")
card = os.path.join(sysfs, "bus/pci/devices/0000:c1:00.0")
os.makedirs(os.path.join(card, "hwmon/hwmon3"))
for name, value in (("mem_info_vram_total", 8 << 30), ("mem_info_vram_used", 284 << 20),
                    ("hwmon/hwmon3/power1_cap", 750000000), ("hwmon/hwmon3/freq1_input", 1900000000),
                    ("hwmon/hwmon3/power1_average", 512000000)):
    with open(os.path.join(card, name), "w") as f:
        f.write("%d\n" % value)

everything = "memory,launch,copy,bandwidth,gemm,decode,kernels"
run = Probe("hip", only=everything, env={"VRAMPLAN_SYSFS": sysfs})
ended(run, 0, r"hipBLASLt|figures", "HIP: a whole run")
tap.ok("wrong results" not in run.text, "HIP: products are right", run)
about = run.device()
for name, want in (("arch", "gfx942"), ("driver", "HIP 7.0.51831"), ("kernels", "built ahead for gfx942"),
                   ("library", "hipBLASLt 1"), ("compute_units", "304"), ("power_cap_mw", "750000")):
    tap.ok(re.search(want, about.get(name, "")), "HIP: %s is %s" % (name, want),
           about)
gemm = run.rows("gemm")
tap.ok(len(gemm) >= 20 and {"bfloat16", "fp8"} <= {r["quant_dtype"] if "quant_dtype" in r else
                                                  r.get("dtype", "") for r in gemm},
       "HIP: products of bf16 and FP8", gemm[:2])
tap.ok(any("hipBLASLt" in str(r) for r in gemm), "HIP: they are the vendor's", gemm[:2])
tap.ok("512000" in str(gemm) or "512" in str(gemm), "HIP: power comes from sysfs", gemm[:1])
constants = {r.get("name", r.get("constant", "")): r for r in run.rows("constants")}
tap.ok(constants.get("context") and constants.get("blas") and constants.get("graph"),
       "HIP: context, library and graph memory", constants)

run = Probe("cuda", only=everything)
ended(run, 0, r"figures", "CUDA: a whole run")
about = run.device()
for name, want in (("arch", "sm_90"), ("driver", "CUDA 12.8"), ("kernels", "compiled by NVRTC for sm_90"),
                   ("library", "cuBLASLt 12"), ("power_cap_mw", "700000")):
    tap.ok(re.search(want, about.get(name, "")), "CUDA: %s is %s" % (name, want),
           about)
tap.ok("cuBLASLt" in str(run.rows("gemm")), "CUDA: products are the vendor's", run)

run = Probe("hip", "devices=4", only="allreduce")
ended(run, 0, r"allreduce", "all-reduce over the devices that there are")
tap.same({r["gpus"] for r in run.rows("allreduce")}, {"2", "4"}, "over 2 and 4 of them", run)

# ---- architectures ---------------------------------------------------------------------------------

for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"):
    ended(Probe("hip", "arch=%s:xnack-" % arch), 0, "built ahead for " + arch,
          "%s: its code is in the program" % arch)
ended(Probe("hip", "arch=gfx1151"), 0, "compiled by hipRTC for gfx1151", "gfx1151: hipRTC compiles")
ended(Probe("hip", "arch=gfx999"), 4, r"do not compile for gfx999: kernels\(1\): error: no such GPU",
      "an unknown GPU: what the compiler says")
ended(Probe("hip", "arch=Radeon"), 4, "names no architecture", "a runtime that says nothing usable")
# an older loader that refuses our code objects gets the compiler's
run = Probe("hip", "fail=hipModuleLoadData")
ended(run, 4, "hipModuleLoadData: error 719", "a loader that takes no code at all")
for arch, has in (("gfx90a", False), ("gfx1100", False), ("gfx942", True)):
    run = Probe("hip", "arch=" + arch, only="gemm")
    fp8 = [r for r in run.rows("gemm") if "fp8" in str(r.values())]
    tap.ok(run.code == 0 and fp8 and ("hipBLASLt" in str(fp8)) == has,
           "%s: FP8 products are %s" % (arch, "the library's" if has else "ours, decoded to bf16"),
           run)

# ---- troubles --------------------------------------------------------------------------------------

ended(Probe("hip", "wrong=1", only="gemm"), 4, "wrong results on this GPU",
      "products that are wrong are not timed")
ended(Probe("hip", "memory=600000000", only="gemm"), 0, "figures", "a GPU with little memory")
ended(Probe("hip", "memory=1000000"), 4, "no memory: hipMalloc: error 2, hipErrorOutOfMemory",
      "a GPU without any left")


def calls(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    return [n for n in re.findall(r" T (\w+)$", out, re.M)
            if re.search(r"^(hip|cu|nv|nccl)", n) and not re.search("Error(Name|String)", n)]


# Every call failing from its first and from a later time on: the run ends by itself, with samples, or
# with exit 4 and a line that is not about a crash. Calls that a probe can do without, and those of the
# vendor's products, for which ours stand in, fail silently.
for backend, libraries in (("hip", [hip_library, FAKES + "/libhipblaslt.so.1",
                                    FAKES + "/librccl.so.1"]),
                           ("cuda", [cuda_library, CUDA + "/libcublasLt.so.12"])):
    cases = []
    for library in libraries:
        only = ("memory" if "blas" in library else "allreduce" if "ccl" in library
                else "memory,launch,copy")
        for call in calls(library):
            cases.append((call, 1, only))
            if re.search("Alloc|Malloc|Launch|Memcpy|EventRecord|StreamSync", call):
                cases.append((call, 5, only))

    def one(case):
        return case[0], Probe(backend, "fail=%s after=%d devices=2" % case[:2], only=case[2])

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(one, cases))
    failed = [str(r) for _, r in runs
              if r.code not in (0, 4) or "signal" in r.text or "nothing came" in r.text]
    quiet = [str(r) for _, r in runs if r.code == 4 and "error" not in r.text]
    named = sum(call in r.text for call, r in runs)
    tap.ok(not failed, "%s: no failing call kills or hangs the run" % backend, "\n".join(failed[:3]))
    tap.ok(not quiet, "%s: a run without samples says why" % backend, "\n".join(quiet[:3]))
    tap.ok(named > 25, "%s: the call that failed is named" % backend,
           "%d of %d\n%s" % (named, len(runs), [c for c, r in runs if c not in r.text]))

for kind, pattern in (("crash", r"killed by signal 11"), ("abort", r"signal 6 .*LLVM ERROR"),
                      ("hang", r"nothing came for 1 s")):
    for call in ("hipInit", "hipModuleLoadData", "hipMalloc"):
        run = Probe("hip", "%s=%s" % (kind, call), limit="1")
        ended(run, 4, "while the device was opened.*" + pattern, "%s in %s" % (kind, call))
    run = Probe("hip", "%s=hipModuleLaunchKernel after=60" % kind, only="launch,bandwidth", limit="1")
    tap.ok(re.search(pattern, run.text), "%s in a launch in the middle: told, and the run ends" % kind,
           run)

tap.finish()
