#!/usr/bin/env python3
"""What deploy/release refuses, and what it takes from CHANGELOG.md for a release's notes.

    release_test.py DEPLOY_DIRECTORY

Exits with 77, "skipped", where there is no git.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_programs  # noqa: E402

CHANGELOG = """# Changelog

## Unreleased

- Not yet.

## 1.2.3 (2026-01-02)

- One thing.
  Said in two lines.

- Another.

## 1.2.30

- Not of 1.2.3.

## 1.2.2
"""


class Tree:
    """A work tree of git that has what the script looks at."""

    def __init__(self, folder, release):
        self.folder = folder
        (folder / "deploy").mkdir()
        shutil.copy(release, folder / "deploy/release")
        (folder / "CHANGELOG.md").write_text(CHANGELOG)
        self.git("init", "--quiet")
        self.set_version("1.2.3")

    def git(self, *words):
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        subprocess.run(["git", *identity, *words], cwd=self.folder, check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null"))

    def set_version(self, version):
        (self.folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(stowage VERSION {version} LANGUAGES CXX)\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", version)

    def release(self, *words):
        done = subprocess.run([self.folder / "deploy/release", *words], cwd="/", text=True, capture_output=True, timeout=60)
        return done.returncode, done.stdout, done.stderr


def check_notes(tree):
    assert tree.release("--check") == (0, "v1.2.3\n\n- One thing.\n  Said in two lines.\n\n- Another.\n", "")
    assert tree.release("--check", "--draft")[1] == "v1.2.3\n\n- Not yet.\n"
    for version in ("1.2.2", "1.2.4", "1.2"):  # nothing below it, no section, part of a name
        tree.set_version(version)
        code, _, error = tree.release("--check")
        assert code == 1 and f"says nothing below '## {version}'" in error, error
    print("notes: of the version alone")


def check_refusals(tree):
    tree.set_version("1.2.3")
    (tree.folder / "new").write_text("")
    code, _, error = tree.release("--check")
    assert code == 1 and "changes that are not committed" in error, error
    assert tree.release("--check", "--draft")[0] == 0
    (tree.folder / "new").unlink()
    tree.git("tag", "v1.2.3")
    code, _, error = tree.release("--check")
    assert code == 1 and "there is a tag v1.2.3" in error, error
    code, _, error = tree.release("--draft", tree.folder)
    assert code == 1 and "is there already" in error, error
    code, _, error = tree.release("--chekc")
    assert code == 2 and "--chekc" in error, error
    print("refused: changes, a tag, a folder that is there, an unknown option")


def main():
    need_programs("git")
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(pathlib.Path(folder), pathlib.Path(sys.argv[1]) / "release")
        check_notes(tree)
        check_refusals(tree)
    print("passed")


if __name__ == "__main__":
    main()
