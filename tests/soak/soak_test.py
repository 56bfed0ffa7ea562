#!/usr/bin/env python3
"""tests/soak/run names what failed and what was left running, ends it, and says so by its exit code.

    soak_test.py FOLDER      an empty one is made of it
"""
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def soak(folder, tests, *flags):
    """Exit code and page of a run over a build that has these tests of solvers."""
    if "--resume" not in flags:
        shutil.rmtree(folder, ignore_errors=True)
    folders = folder / "build/tests/solvers"
    folders.mkdir(parents=True, exist_ok=True)
    (folders / "CTestTestfile.cmake").write_text("".join(f'add_test({name} "sh" "-c" "{command}")\n' for name, command in tests.items()))
    out = folder / "page.md"
    done = subprocess.run([HERE / "run", "--sections=simd", f"--build={folder / 'build'}", f"--out={out}", *flags], text=True, capture_output=True)
    return done.returncode, out.read_text() if out.exists() else done.stderr


def main():
    folder = pathlib.Path(sys.argv[1])
    good = {"good": "true", "simd": 'test \\\"$STOWAGE_SIMD\\\" != \\\"\\\" -a \\\"$STOWAGE_SOAK_RUN\\\" = 0'}
    code, page = soak(folder, good)
    assert code == 0, page
    assert "| solvers with generic loops | 1 | 2 | 0 | 0 |" in page and "Nothing failed." in page, page

    code, page = soak(folder, {**good, "bad": "false", "leaves": "sleep 98761 >/dev/null 2>&1 </dev/null & true"})
    assert code == 1, page
    assert "| solvers with generic loops | 1 | 3 | 0 | 2 |" in page, page
    assert "| solvers with generic loops | bad | 1 |" in page and "| solvers with generic loops | sleep, left running | 1 |" in page, page
    left = subprocess.run(["pgrep", "-fx", "sleep 98761"], text=True, capture_output=True).stdout
    assert not left, left

    # What ran is not run again, what it found stays; what did not is run now.
    state = folder / "page.json"
    done = json.loads(state.read_text())
    del done["done"]["solvers_with_generic_loops_tests_solvers_1"]
    state.write_text(json.dumps(done))
    code, resumed = soak(folder, {"good": "true", "new": "true"}, "--resume")
    assert "| solvers with generic loops | 1 | 2 | 0 | 0 |" in resumed, resumed
    assert resumed.count("| bad | 1 |") == page.count("| bad | 1 |") - 1 and code == (1 if "| bad | 1 |" in resumed else 0), resumed
    # What ran at another commit counts, and is said to be of that one.
    for counts in done["done"].values():
        counts["commit"] = "another"
    state.write_text(json.dumps(done))
    code, resumed = soak(folder, {"good": "true", "new": "true"}, "--resume", "--jobs=2")
    lines = [line for line in resumed.splitlines() if line.startswith("| solvers with") and line.count("|") == 8]
    assert len(lines) == len(done["done"]) + 1 and all(line.endswith("| another |") != ("generic" in line) for line in lines), resumed
    assert "Not run to their end: includes, processors, load, fuzz, faults, ranks." in resumed, resumed

    # What failed runs again where that is asked for, and so does nothing else.
    code, mended = soak(folder, {"good": "true"}, "--resume", "--again")
    assert code == 0 and "Nothing failed." in mended and mended.count("| another |") == 0, mended
    assert "| solvers with generic loops | 1 | 2 | 0 | 0 |" in mended, mended
    # What was broken off is a part, and said to be one.
    done = json.loads(state.read_text())
    done["done"]["solvers_with_generic_loops_tests_solvers_1"]["parts"] = 3
    state.write_text(json.dumps(done))
    code, part = soak(folder, {"good": "true"}, "--resume")
    assert "| solvers with generic loops | 1 of 3 | 2 |" in part, part

    code, page = soak(folder, {"good": "true"}, "--tests=bad")
    assert code == 0 and "| solvers with generic loops | 1 | 0 | 0 | 0 |" in page, page
    code, page = soak(folder, {})
    assert code == 1 and "no test ran" in page, page
    code, errors = soak(folder, good, "--repeats=0")
    assert code == 2 and "must be at least 1" in errors, errors


main()
