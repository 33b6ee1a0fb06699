#!/usr/bin/env python3
"""The probe on AMD and NVIDIA GPUs that are not there: no library, Debian's libamdhip64 without a
device, and stand-ins for the drivers (gpu_rig.py). What the stand-ins cannot show is that real
drivers do as the vendors' headers say. gpu-faults.t makes them fail."""
import ctypes
import os
import re

import tap
from gpu_rig import CUDA, FAKES, ROCM5, Probe, ended

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
    tap.skip("Debian's HIP without a device", "no libamdhip64.so.5 (package libamdhip64-5)")
else:
    folder = next((d for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
                   if os.path.exists(os.path.join(d, "libamdhip64.so.5"))), "")
    if os.path.exists("/dev/kfd") or not folder:
        tap.skip("Debian's HIP without a device", "this machine may have one")
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
ended(Probe("hip", "fail=hipModuleLoadData code=200 upto=1"), 0, "compiled by hipRTC for gfx942",
      "a loader that refuses our code objects gets the compiler's")
ended(Probe("hip", "arch=gfx90a:sramecc+", libraries=ROCM5), 0, "built ahead for gfx90a",
      "a runtime of ROCm 5: the architecture from the older structure")
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

tap.finish()
