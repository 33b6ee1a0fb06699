"""Git repositories for tests: made in the test's folder, with no settings of the user's."""
import os
import shutil
import subprocess
import sys

from tap import DIR, ENV, finish, skip

if not shutil.which("git") or not shutil.which("bash"):
    skip("everything", "there is no git, or no bash")
    finish()
    sys.exit(0)

GIT_ENV = {**{k: v for k, v in ENV.items() if not k.startswith(("GIT_", "GITHUB_", "GITLAB_", "CI"))},
           "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "Test", "GIT_AUTHOR_EMAIL": "test@example.org",
           "GIT_COMMITTER_NAME": "Test", "GIT_COMMITTER_EMAIL": "test@example.org",
           "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}


class Repo:
    """A working tree in DIR/name; `main` is its first branch."""

    def __init__(self, name, clone=None, *options):
        self.path = os.path.join(DIR, name)
        if clone:
            subprocess.run(["git", "clone", "-q", *options, "file://" + clone.path, self.path],
                           check=True, env=GIT_ENV, stderr=subprocess.DEVNULL)
        else:
            os.makedirs(self.path)
            self.git("init", "-q", "-b", "main")

    def git(self, *words):
        return subprocess.run(["git", *words], check=True, cwd=self.path, env=GIT_ENV,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode().strip()

    def write(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def commit(self, message, **files):
        """files: by path, with __ for / and _DOT_ for dots; None takes one away."""
        for name, text in files.items():
            name = name.replace("__", "/").replace("_DOT_", ".")
            if text is None:
                self.git("rm", "-q", name)
            else:
                self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
