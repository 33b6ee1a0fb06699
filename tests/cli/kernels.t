#!/usr/bin/env python3
"""The GPU code that is kept in the tree: it belongs to the present source, has the instructions that
it is for, and compilers at run time take the same text. Tools that are not there are named and
skipped. LONG=1 compiles it anew and compares every byte, and has hipRTC compile it."""
import ctypes
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys

import tap

KERNELS = os.path.join(tap.TOP, "probe", "kernels")
GENERATED = os.path.join(KERNELS, "generated")
ARCHS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]

# Instructions by architecture: what must be there; what must not. Those with matrix units for FP8
# have FP8 products, the others have none and decode to bf16.
FP8 = r"v_(s?mfma|wmma)_\w*(fp8|f8f6f4)"
MUST = {
    "gfx90a": [r"v_mfma_f32_16x16x16bf16_1k"],
    "gfx942": [r"v_mfma_f32_16x16x16_bf16", r"v_mfma_f32_16x16x32_fp8_fp8", r"v_cvt_pk_f32_fp8"],
    "gfx950": [r"v_mfma_f32_16x16x32_bf16", r"v_mfma_(scale_)?f32_16x16x128_f8f6f4",
               r"v_cvt_pk_f32_fp8"],
    "gfx1100": [r"v_wmma_f32_16x16x16_bf16"],
    "gfx1201": [r"v_wmma_f32_16x16x16_bf16", r"v_wmma_f32_16x16x16_fp8_fp8",
                r"v_cvt_pk_f32_fp8"],
}
NEVER = {"gfx90a": [FP8, r"_fp8"], "gfx1100": [FP8, r"_fp8"]}


def source_text():
    order = re.findall(r'#include "probe/kernels/(\w+\.h)"',
                       open(os.path.join(KERNELS, "kernel_all.h")).read())
    return "".join(open(os.path.join(KERNELS, name)).read() for name in order)


def image(arch):
    """The ELF file out of the words of the C file, and that file's text."""
    text = open(os.path.join(GENERATED, "code_%s.c" % arch)).read()
    words = re.search(r"WORDS\[\] = \{(.*?)\};", text, re.S).group(1)
    data = b"".join(struct.pack("<Q", int(w, 0)) for w in re.findall(r"\w+", words))
    size = int(re.search(r"\* size: (\d+) bytes", text).group(1))
    return data[:size], len(data), text


def disassembler(arch):
    """llvm-objdump 19 does not know gfx950."""
    names = ["llvm-objdump-22"] + ([] if arch == "gfx950" else ["llvm-objdump-19"])
    return next((n for n in names if shutil.which(n)), None)


TEXT = source_text()
HASH = hashlib.sha256(TEXT.encode()).hexdigest()

for name in ["code_%s.c" % a for a in ARCHS] + ["kernel_text.c"]:
    head = open(os.path.join(GENERATED, name)).read(2000)
    tap.ok("source sha256: " + HASH in head, "%s is made of the present source" % name,
           "run make kernels; the source's hash is now " + HASH)

lines = re.findall(r'^    "(.*)\\n",$', open(os.path.join(GENERATED, "kernel_text.c")).read(), re.M)
tap.same("".join(l.replace('\\"', '"').replace("\\\\", "\\") + "\n" for l in lines), TEXT,
         "the text kept for compilers at run time is the source")

for arch in ARCHS:
    data, padded, _ = image(arch)
    tap.ok(data[:4] == b"\x7fELF" and padded - len(data) in range(8),
           "%s: an ELF file of the size that is named" % arch)
    tool = disassembler(arch)
    if not tool:
        tap.skip("%s: instructions" % arch, "no llvm-objdump that knows it (packages llvm-22, llvm-19)")
        continue
    path = os.path.join(tap.DIR, arch + ".co")
    with open(path, "wb") as f:
        f.write(data)
    code = subprocess.run([tool, "-d", path], capture_output=True, text=True, check=True).stdout
    # the kernel that an instruction stands in
    kernels = dict(re.findall(r"^[0-9a-f]+ <(vp_\w+)>:\n(.*?)(?=^[0-9a-f]+ <|\Z)", code, re.M | re.S))
    entries = re.findall(r"^X\((\w+)\)", open(os.path.join(tap.TOP, "probe",
                                                           "kernel_entries.def")).read(), re.M)
    tap.same(sorted(set(entries) - set(kernels)), [], "%s: every kernel is there" % arch)
    for pattern in MUST[arch]:
        tap.ok(re.search(pattern, code), "%s has %s" % (arch, pattern))
    for pattern in NEVER.get(arch, []):
        found = re.search(r"\w*" + pattern + r"\w*", re.sub(r"<.*?>", "", code))
        tap.ok(not found, "%s has no %s" % (arch, pattern), found)
    tap.ok(re.search(r"v_s?(mfma|wmma)", kernels.get("vp_gemm_bf16", "")),
           "%s: the bf16 product uses the matrix units" % arch)
    wanted = FP8 if arch not in NEVER else r"v_s?(mfma|wmma)\w*bf16"
    tap.ok(re.search(wanted, kernels.get("vp_gemm_fp8", "")),
           "%s: the FP8 product uses them too, %s" %
           (arch, "as FP8" if arch not in NEVER else "as bf16"))
    tap.ok(not re.search(r"scratch_|buffer_store_dword.*off, s\[", kernels.get("vp_gemm_bf16", "")),
           "%s: nothing of a product is spilled to memory" % arch)

# hipRTC as Debian has it (5.2.3, inside the runtime) compiles for gfx90a without any GPU, and is run
# in a process of its own, which it may kill.
PROGRAM = """
import ctypes, sys
h = ctypes.CDLL("libamdhip64.so.5")
p, n = ctypes.c_void_p(), ctypes.c_size_t()
assert h.hiprtcCreateProgram(ctypes.byref(p), open(sys.argv[1], "rb").read(), b"k", 0, None, None) == 0
options = (ctypes.c_char_p * 2)(b"--offload-arch=gfx90a", b"-O3")
error = h.hiprtcCompileProgram(p, 2, options)
if error:
    h.hiprtcGetProgramLogSize(p, ctypes.byref(n))
    log = ctypes.create_string_buffer(n.value)
    h.hiprtcGetProgramLog(p, log)
    sys.exit(log.value.decode()[:2000])
assert h.hiprtcGetCodeSize(p, ctypes.byref(n)) == 0
print(n.value)
"""
try:
    ctypes.CDLL("libamdhip64.so.5")
except OSError:
    missing = "no libamdhip64.so.5 (package libamdhip64-5)"
else:
    missing = None if os.environ.get("LONG") else "a long test: set LONG=1"
if missing:
    tap.skip("hipRTC takes the text", missing)
else:
    path = os.path.join(tap.DIR, "k.hip")
    with open(path, "w") as f:
        f.write(TEXT)
    run = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True)
    if "libhiprtc-builtins" in run.stderr:
        tap.skip("hipRTC takes the text", "no libhiprtc-builtins (package libhiprtc-builtins5)")
    else:
        tap.ok(run.returncode == 0 and int(run.stdout or 0) > 10000, "hipRTC takes the text",
               run.stdout + run.stderr)

if not os.environ.get("LONG"):
    tap.skip("compiled anew, every byte is the same", "a long test: set LONG=1")
elif not all(shutil.which(c) for c in ("clang-19", "clang-22", "ld.lld-19", "ld.lld-22")):
    tap.skip("compiled anew, every byte is the same", "no clang and lld 19 and 22")
else:
    run = subprocess.run([os.path.join(KERNELS, "generate"), "--check", GENERATED],
                         capture_output=True, text=True)
    tap.ok(run.returncode == 0, "compiled anew, every byte is the same", run.stderr)

tap.finish()
