#!/usr/bin/env python3
"""docs/SERVING-EXTRAS.md: the figures of its table are those of docs/extras.yaml."""
import os
import re
import sys

sys.dont_write_bytecode = True
from tap import TOP, Run, finish, ok, same  # noqa: E402

ROW = re.compile(r"^\| `([\w-]+)` \| `((?:host\.)?)(\w+) = ([\d.]+) GiB` \|", re.M)
GIB = 2**30


def component(doc, host, name):
    """Likely bytes of a component on the first card, or on the host."""
    devices = [d for d in doc["devices"] if (d["kind"] == "host") == bool(host)]
    return devices[0]["components"].get(name, {"likely": 0})["likely"]


def main():
    with open(os.path.join(TOP, "docs", "SERVING-EXTRAS.md")) as f:
        rows = ROW.findall(f.read())
    ok(len(rows) >= 8, "there are rows", len(rows))
    plans = Run("plan", "docs/extras.yaml", "--format", "json", cwd=TOP).json()
    plans = {doc["scenario"]: doc for doc in plans}
    ok({row[0] for row in rows} <= set(plans), "of scenarios that are there", rows)
    for scenario, host, name, figure in rows:
        got = component(plans[scenario], host, name) / GIB
        ok(abs(got - float(figure)) < 0.001, "%s: %s%s = %s GiB" % (scenario, host, name, figure), got)
    notes = [d["id"] for d in plans["sleeping"]["diagnostics"]]
    ok("VP505" in notes, "sleeping: what stays on the card", notes)
    for name, doc in plans.items():
        hosts = [d for d in doc["devices"] if d["kind"] == "host"]
        same(len(hosts), int("offload" in name), "%s: the host is listed where it is used" % name)
        ok(doc["verdict"] in ("fits", "at-risk"), "%s: a verdict" % name, doc["verdict"])
    finish()


main()
