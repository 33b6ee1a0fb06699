#!/usr/bin/env python3
"""The matrix kernels without a GPU: which rows a lane loads and where it stores, as kernel_matrix.h
says it, put through the instructions as the vendors describe them, must give a product.

The instructions: AMD's matrix instruction calculator and ISA documents, the PTX ISA ("Matrix
fragments for mma"). They are written down here again, apart from the kernels. A fragment is 32 bytes
of a lane; elements are bytes here, for how k is ordered within a fragment must not matter."""
import os
import random
import re

import tap

TEXT = open(os.path.join(tap.TOP, "probe", "kernels", "kernel_matrix.h")).read()
GEMM = open(os.path.join(tap.TOP, "probe", "kernels", "kernel_gemm.h")).read()
BYTES = 32


def family_text(name):
    begin = re.search(r"^#(el)?if defined\(VP_FAMILY_%s\)\n\n" % name, TEXT, re.M).end()
    return TEXT[begin:re.search(r"^#el(if defined\(VP_FAMILY|se)", TEXT[begin:], re.M).start() + begin]


class Family:
    """The macros of a family as functions of lane and piece."""

    def __init__(self, name):
        self.name, text = name, family_text(name)
        for macro in ("WAVE", "STEP_BYTES", "PIECES", "RUNS", "RUN"):
            setattr(self, macro.lower(), int(re.search(r"VP_%s (\d+)" % macro, text).group(1)))
        for macro in ("A_ROW", "B_ROW", "PIECE_BYTE", "OUT_ROW", "OUT_COLUMN"):
            body = re.search(r"#define VP_%s\((\w+)(?:, (\w+))?\) (.*)" % macro, text)
            code = "lambda %s, %s: %s" % (body.group(1), body.group(2) or "_",
                                          body.group(3).replace("/", "//"))
            setattr(self, macro.lower(), eval(code))  # pylint: disable=eval-used

    def fragment(self, matrix, row_of, lane):
        """As vp_fragment_load does it."""
        out = []
        for p in range(2):
            skip = 0 if self.pieces == 2 else 16 * p
            at = self.piece_byte(lane, 0) + skip
            out += matrix[row_of(lane, p)][at:at + 16]
        return out

    def out(self, acc):
        """As vp_tile_store does it: every float of the wave to its place."""
        result = [[None] * 16 for _ in range(16)]
        for lane in range(self.wave):
            for run in range(self.runs):
                for i in range(self.run):
                    row, column = self.out_row(lane, run), self.out_column(lane, run) + i
                    assert result[row][column] is None, "stored twice"
                    result[row][column] = acc[lane][self.float_of(run * self.run + i)]
        return result

    def float_of(self, i):
        """VP_ACC_AT."""
        if self.name != "PTX":
            return i
        body = re.search(r"#define VP_ACC_AT\(acc, i\) \(acc\)\.v\[(.*)\]", GEMM).group(1)
        return eval(body.replace("/", "//"), {"i": i})  # pylint: disable=eval-used


def dot(x, y):
    return sum(p * q for p, q in zip(x, y))


def mfma(first, second):
    """v_mfma 16x16: lane l has row l % 16 of either operand, a quarter of k; float i of lane l is row
    4 (l / 16) + i, column l % 16."""
    return [[sum(dot(first[4 * (lane // 16) + i + 16 * q], second[lane % 16 + 16 * q])
                 for q in range(4)) for i in range(4)] for lane in range(64)]


def wmma11(first, second):
    """v_wmma of gfx11: lane l has row l % 16, all of k, the halves of the wave the same."""
    for half in (first, second):
        assert half[:16] == half[16:]
    return [[dot(first[2 * i + lane // 16], second[lane % 16]) for i in range(8)]
            for lane in range(32)]


def wmma12(first, second):
    """v_wmma of gfx12: half of k in each half of the wave."""
    return [[sum(dot(first[8 * (lane // 16) + i + 16 * h], second[lane % 16 + 16 * h])
                 for h in range(2)) for i in range(8)] for lane in range(32)]


def ptx(a, b):
    """The four mma m16n8 of VP_PTX_FOUR. With g = lane / 4, t = lane % 4: registers 0 and 2 of a are
    of row g, 1 and 3 of row g + 8, 0 and 1 of the first half of k; those of b are of column g; floats
    0 and 1 are of row g, columns 2 t and 2 t + 1, 2 and 3 of row g + 8."""
    acc = [[0] * 8 for _ in range(32)]
    calls = re.findall(r"VP_PTX_MMA\(shape, acc\.v( \+ 4)?, (.*?)\)", TEXT)
    assert len(calls) == 4
    for second_half, words in calls:
        words = re.findall(r"([ab])\.u\[(\d)\]", words)
        assert [w[0] for w in words] == list("aaaabb")

        def reg(frags, lane, number):
            word = int(words[number][1])
            return frags[lane][4 * word:4 * word + 4]

        for lane in range(32):
            g, t = lane // 4, lane % 4
            for i in range(4):
                row, column = g + 8 * (i // 2), 2 * t + i % 2
                # row r of a is in the lanes r % 8 * 4 + s, column c of b in the lanes c * 4 + s
                acc[lane][i + (4 if second_half else 0)] += sum(
                    dot(reg(a, row % 8 * 4 + s, row // 8), reg(b, column * 4 + s, 4)) +
                    dot(reg(a, row % 8 * 4 + s, row // 8 + 2), reg(b, column * 4 + s, 5))
                    for s in range(4))
    return acc


def product(family, a, b):
    x = [family.fragment(a, family.a_row, lane) for lane in range(family.wave)]
    y = [family.fragment(b, family.b_row, lane) for lane in range(family.wave)]
    if family.name == "PTX":
        return family.out(ptx(x, y))
    instruction = {"MFMA": mfma, "WMMA11": wmma11, "WMMA12": wmma12}[family.name]
    return family.out(instruction(y, x))  # AMD's get b first


random.seed(1)
for name in ("MFMA", "WMMA11", "WMMA12", "PTX"):
    family = Family(name)
    a, b = ([[random.randint(-9, 9) for _ in range(family.step_bytes)] for _ in range(16)]
            for _ in range(2))
    want = [[dot(a[i], b[j]) for j in range(16)] for i in range(16)]
    tap.same(product(family, a, b), want, "%s: 16 x 16 results, each in its place" % name)
    used = sorted({i for lane in range(family.wave)
                   for i in range(family.piece_byte(lane, 0),
                                  family.piece_byte(lane, 0) + BYTES // family.pieces)})
    tap.same(used, list(range(family.step_bytes)), "%s: every byte of a step is loaded" % name)
# AMD's instructions get b as their first operand, each as often as a fragment has parts.
calls = re.findall(r"__builtin_amdgcn_w?mf?ma_\w+\((\w)\.\w+(?:\[(\d)\])?, (\w)\.\w+(?:\[(\d)\])?",
                   re.sub(r"\s+", " ", TEXT))
tap.ok(len(calls) == 18 and all(c[0] == "b" and c[2] == "a" and c[1] == c[3] for c in calls),
       "AMD's instructions multiply equal parts, b first", calls)
tap.finish()
