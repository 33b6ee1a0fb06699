#!/usr/bin/env python3
"""GGUF files on the command line: any name of one, and what is wrong with it."""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, TOP, Run, finish, ok, same  # noqa: E402

CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus", "gguf")


def place(name, folder="", cut=None):
    """A copy of a kept input, under a name of its own; its first bytes only when cut is given."""
    to = os.path.join(DIR, folder)
    os.makedirs(to, exist_ok=True)
    path = os.path.join(to, "tiny.gguf")
    shutil.copyfile(os.path.join(CORPUS, name), path)
    if cut:
        os.truncate(path, cut)
    return path


def facts(run):
    got = run.json()
    return [got[k] for k in ("params_total", "tensor_bytes", "layers")]


def main():
    path = place("llama-header.gguf", "one")
    # 11 tensors: q4_0 matrices, a q8_0 embedding that is the head, three norms in f32
    elements = 8 * 32 + 4 * 32 * 32 + 3 * 32 * 64 + 3 * 32
    stored = 8 * 34 + (4 * 32 * 32 + 3 * 32 * 64) // 32 * 18 + 3 * 32 * 4
    for what, name in [("a file", path), ("its folder", os.path.dirname(path))]:
        run = Run("import", name, "--format", "json")
        ok(run.code == 0, "%s is read" % what, run)
        same(facts(run), [elements, stored, 1], "%s: parameters, bytes and layers" % what)
    run = Run("import", path)
    for words in ("general.architecture: llama", "tie_word_embeddings: true",
                  "its 11 tensors hold"):
        ok(words in run.out, "a skeleton of a scenario says: %s" % words, run)
    ok("VP207" in run.err, "that the data is missing is a warning", run)

    run = Run("import", place("llama-header.gguf", "cut", 300))
    same(run.code, 2, "a file that is cut ends with 2", run)
    ok("VP007" in run.err and "at byte" in run.err and "hint" in run.err,
       "and says where, and what to do", run)
    run = Run("import", place("nested.gguf", "nested"))
    ok(run.code == 2 and "array of arrays" in run.err, "what is wrong is named", run)
    run = Run("import", os.path.join(DIR, "none.gguf"))
    ok(run.code == 2 and "none.gguf" in run.err, "a file that is not there is named", run)
    finish()


main()
