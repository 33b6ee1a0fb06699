#!/usr/bin/env python3
"""The probe when a driver fails in every call in turn, crashes, aborts or hangs: a run ends by itself,
with samples, or with exit 4 and a line that is not about a crash of its own."""
import re
import subprocess

import tap
from gpu_rig import CUDA, CUDA_LIBRARY, FAKES, HIP_LIBRARY, Probe, ended


def calls(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    return [n for n in re.findall(r" T (\w+)$", out, re.M)
            if re.search(r"^(hip|cu|nv|nccl)", n) and not re.search("Error(Name|String)", n)]


# Every call failing from its first and from a later time on. Calls that a probe can do without, and
# those of the vendor's products, for which ours stand in, fail silently.
for backend, libraries in (("hip", [HIP_LIBRARY, FAKES + "/libhipblaslt.so.1",
                                    FAKES + "/librccl.so.1"]),
                           ("cuda", [CUDA_LIBRARY, CUDA + "/libcublasLt.so.12"])):
    cases = []
    for library in libraries:
        only = ("memory" if "blas" in library else "allreduce" if "ccl" in library
                else "memory,launch,copy")
        for call in calls(library):
            cases.append((call, 1, only))
            if re.search("Alloc|Malloc|Launch|Memcpy|EventRecord|StreamSync", call):
                cases.append((call, 5, only))
    if backend == "cuda" and not tap.LONG:
        cases = cases[::3]  # the two back ends share all but the names

    def one(case):
        return case[0], Probe(backend, "fail=%s after=%d devices=2" % case[:2], only=case[2])

    runs = [one(case) for case in cases]
    failed = [str(r) for _, r in runs
              if r.code not in (0, 4) or "signal" in r.text or "nothing came" in r.text]
    quiet = [str(r) for _, r in runs if r.code == 4 and "error" not in r.text]
    named = sum(call in r.text for call, r in runs)
    tap.ok(not failed, "%s: no failing call kills or hangs the run" % backend, "\n".join(failed[:3]))
    tap.ok(not quiet, "%s: a run without samples says why" % backend, "\n".join(quiet[:3]))
    tap.ok(named > 0.4 * len(runs), "%s: the call that failed is named" % backend,
           "%d of %d\n%s" % (named, len(runs), [c for c, r in runs if c not in r.text]))

# Under the sanitizers a crash is an exit with 99.
for kind, pattern, limit in (("crash", r"killed by signal 11|ended with 99", "30"),
                             ("abort", r"signal 6 .*LLVM ERROR", "30"),
                             ("hang", r"nothing came for 0\.3 s", "0.3")):
    for call in ("hipInit", "hipModuleLoadData", "hipMalloc"):
        run = Probe("hip", "%s=%s" % (kind, call), limit=limit)
        ended(run, 4, "while the device was opened.*" + pattern, "%s in %s" % (kind, call))
    run = Probe("hip", "%s=hipModuleLaunchKernel after=60" % kind, only="launch,bandwidth",
                limit=limit)
    tap.ok(re.search(pattern, run.text), "%s in a launch in the middle: told, and the run ends" % kind,
           run)

tap.finish()
