#!/usr/bin/env python3
"""Every source includes what it needs: each is compiled by itself, as far as its syntax, where the build compiles many together.

    includes_test.py SOURCE_DIRECTORY BINARY_DIRECTORY

Of the sources that need no LibTorch; with LibTorch it takes a quarter of an hour, and `tests/run dev` does it.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def commands(source, binary):
    """How each source would be compiled alone, without an output."""
    alone = binary / "includes_test"
    subprocess.run(["cmake", "-S", source, "-B", alone, "-G", "Ninja", "-DSTOWAGE_UNITY=OFF", "-DSTOWAGE_TORCH=OFF", "-DSTOWAGE_TESTS=OFF",
                    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-Wno-dev", "--log-level=WARNING"],
                   check=True, stdout=subprocess.DEVNULL)
    for entry in json.loads((alone / "compile_commands.json").read_text()):
        if not entry["file"].startswith(str(source)) or entry["file"].startswith(str(binary)):
            continue  # generated
        words = shlex.split(entry["command"])
        words[words.index("-o"):words.index("-o") + 2] = []
        # The messages that the build has generated.
        words = [word.replace(str(alone / "proto"), str(binary / "proto")) for word in words]
        yield entry["file"], words + ["-fsyntax-only", "-O0"]


def fault(named):
    file, words = named
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return f"{file}\n{done.stdout}" if done.returncode else ""


def main():
    source, binary = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    named = list(commands(source, binary))
    assert len(named) > 200, f"only {len(named)} sources"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [text for text in pool.map(fault, named) if text]
    sys.exit("\n".join(faults)) if faults else print(len(named), "sources")


main()
