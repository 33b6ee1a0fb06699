"""Stand-ins for the drivers of GPUs (tests/fakes), and runs of the probe on them."""
import csv
import os
import re
import shlex
import subprocess
import tempfile

import tap

PROBE = os.path.join(os.path.dirname(tap.PROGRAM), "vramplan-probe")
FAKES = os.path.join(tap.DIR, "fakes")
CUDA = os.path.join(FAKES, "cuda")
ROCM5 = os.path.join(FAKES, "rocm5")


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
    os.mkdir(ROCM5)
    hip, cuda = os.path.join(FAKES, "libamdhip64.so.7"), os.path.join(CUDA, "libcuda.so.1")
    make(hip, [driver], "-DVP_FNUZ=1", "-Wl,-soname,libamdhip64.so.7", "-lm")
    make(os.path.join(FAKES, "libhipblaslt.so.1"), blas, hip, "-lm")
    make(os.path.join(FAKES, "librccl.so.1"), ["tests/fakes/fake_collective.c"])
    make(os.path.join(ROCM5, "libamdhip64.so.5"), [driver],
         "-DhipGetDevicePropertiesR0600=fake_absent", "-lm")
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


HIP_LIBRARY, CUDA_LIBRARY = build()
