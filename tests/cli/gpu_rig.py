"""Stand-ins for the drivers of GPUs (tests/fakes), and runs of the probe on them."""
import csv
import os
import re
import subprocess
import tempfile

import tap

PROBE = os.path.join(os.path.dirname(tap.PROGRAM), "vramplan-probe")
# make has built them (VRAMPLAN_FAKES), else they are built here.
FAKES = os.environ.get("VRAMPLAN_FAKES") or os.path.join(tap.DIR, "fakes")
CUDA = os.path.join(FAKES, "cuda")
ROCM5 = os.path.join(FAKES, "rocm5")
HIP_LIBRARY = os.path.join(FAKES, "libamdhip64.so.7")
CUDA_LIBRARY = os.path.join(CUDA, "libcuda.so.1")


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


if not os.environ.get("VRAMPLAN_FAKES"):
    subprocess.run([os.path.join("tests", "fakes", "build"), FAKES], check=True, cwd=tap.TOP)
