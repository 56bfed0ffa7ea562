#!/usr/bin/env python3
"""Copies the page that tests/bench/all wrote, and of all that lies beside it only the pictures that the page shows.

    publish.py OUT FOLDER
"""
import pathlib
import re
import shutil
import sys


def publish(out, folder):
    if not (out / "figures.md").exists():
        sys.exit(f"publish.py: no figures.md in '{out}', where tests/bench/all writes it")
    page = (out / "figures.md").read_text()
    for name in ["figures.md"] + re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(out / name, folder / name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    publish(*map(pathlib.Path, sys.argv[1:]))
