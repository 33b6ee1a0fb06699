"""Helpers of the command-line tests in Python: running the program, TAP. Standard library only."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("VRAMPLAN") or os.path.join(TOP, "vramplan")
FIXTURES = os.path.join(TOP, "tests", "fixtures")
DIR = tempfile.mkdtemp()
atexit.register(shutil.rmtree, DIR, ignore_errors=True)

# The test's own: no profiles, caches or colours of the user.
ENV = {k: v for k, v in os.environ.items()
       if k not in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "NO_COLOR")}
ENV["HOME"] = os.path.join(DIR, "home")
ENV["VRAMPLAN_PROFILES"] = os.path.join(TOP, "profiles")
os.mkdir(ENV["HOME"])

# Everything, as `make check-long` wants it, instead of a part.
LONG = bool(os.environ.get("LONG"))

count = 0


class Run:
    """One run of the program: code, out, err (text), json()."""

    def __init__(self, *args, stdin="", env=None, cwd=FIXTURES, program=PROGRAM):
        self.args = args
        p = subprocess.run([program, *args], input=stdin.encode(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, cwd=cwd, env={**ENV, **(env or {})}, timeout=100)
        self.code, self.bytes = p.returncode, p.stdout
        self.out, self.err = p.stdout.decode(), p.stderr.decode()

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return "vramplan %s\nended with %d\n%s\n%s" % (" ".join(self.args), self.code,
                                                      self.out[:1500], self.err[:1500])


def ok(passed, name, about=""):
    """A test. about: what to show when it fails, such as a Run."""
    global count
    count += 1
    print("%sok %d - %s" % ("" if passed else "not ", count, name))
    if not passed:
        print("\n".join("# " + line for line in str(about).splitlines()))
    sys.stdout.flush()
    return passed


def same(got, want, name, about=""):
    return ok(got == want, name, "got  %r\nwant %r\n%s" % (got, want, about))


def skip(name, why):
    """A test that cannot be made here; shown as such."""
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, name, why))


def finish():
    print("1..%d" % count)
