#!/usr/bin/env python3
"""What matrix.py reads of ctest's log, and what the page says of it."""
import json
import os
import pathlib
import tempfile

import matrix

LOG = """Start testing: Nov 25 04:00 UTC
----------------------------------------------------------
1/4 Testing: chain_test
1/4 Test: chain_test
Command: "/build/chain_test"
Output:
----------------------------------------------------------
[ RUN      ] On/Chain.Trains/cpu
[       OK ] On/Chain.Trains/cpu (3 ms)
[ RUN      ] On/Chain.Trains/cuda
/tests/chain_test.cc:39: Skipped
there is no GPU here

[  SKIPPED ] On/Chain.Trains/cuda (0 ms)
[ RUN      ] On/Chain.Casts/test
/tests/chain_test.cc:88: Skipped
LibTorch has no autocast for it

[  SKIPPED ] On/Chain.Casts/test (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] On/Chain.Trains/cuda
[  SKIPPED ] On/Chain.Casts/test
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Passed.
"chain_test" end time: Nov 25 04:00 UTC
2/4 Testing: graph_test
2/4 Test: graph_test
Output:
----------------------------------------------------------
[ RUN      ] Graph.Adds
[  FAILED  ] Graph.Adds (1 ms)
[ RUN      ] On/Graph.Trains/cpu
[  FAILED  ] On/Graph.Trains/cpu, where GetParam() = "cpu" (2 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Graph.Adds
<end of output>
Test Failed.
3/4 Testing: crash_test
3/4 Test: crash_test
Output:
----------------------------------------------------------
[ RUN      ] Crash.Ends
[       OK ] Crash.Ends (1 ms)
[ RUN      ] Crash.EndsTheProgram
<end of output>
Test Failed.
4/4 Testing: hooks_test
4/4 Test: hooks_test
Output:
----------------------------------------------------------
ok
<end of output>
Test Passed.
5/5 Testing: python_front_test
5/5 Test: python_front_test
Command: "/venv/bin/python3" "-m" "pytest" "-q" "front_test.py" "other_test.py"
Output:
----------------------------------------------------------
s..FsE                                                                   [100%]
=========================== short test summary info ============================
SKIPPED other_test.py - Skipped: could not import 'transformers'
SKIPPED front_test.py::test_compiles[a b] - Skipped: PyTorch 2.7 - or later
FAILED front_test.py::test_trains[conv] - AssertionError: 3
ERROR front_test.py::test_saves - ValueError
1 failed, 21 passed, 2 skipped, 1 error in 0.05s
<end of output>
Test Failed.
6/6 Testing: python_crash_test
6/6 Test: python_crash_test
Command: "/venv/bin/python3" "-m" "pytest" "-q" "crash_test.py"
Output:
----------------------------------------------------------
Fatal Python error: Segmentation fault
<end of output>
Test Failed.
"""


def check_log():
    result = matrix.read_log(LOG)
    assert result["cpp"] == {
        "programs": 4, "passed": 3,  # one that is not GoogleTest's is one test
        "skipped": {"there is no GPU here": ["On/Chain.Trains/cuda"], "LibTorch has no autocast for it": ["On/Chain.Casts/test"]},
        "failed": ["graph_test: Graph.Adds", "graph_test: On/Graph.Trains/cpu", "crash_test"]}, result
    assert result["python"] == {
        "programs": 2, "passed": 21,
        "skipped": {"could not import 'transformers'": ["other_test.py"], "PyTorch 2.7 - or later": ["front_test.py::test_compiles[a b]"]},
        "failed": ["python_front_test: front_test.py::test_trains[conv]", "python_front_test: front_test.py::test_saves",
                   "python_crash_test"]}, result


CTEST = """#!/bin/sh
echo "$*" >> asked
cp answer "$2/Testing/Temporary/LastTest.log"
"""


def check_failed():
    """What failed runs again alone, and the rest is what ran before; a log of nothing that failed runs nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder, path = pathlib.Path(name), os.environ["PATH"]
        (folder / "build/Testing/Temporary").mkdir(parents=True)
        (folder / "ctest").write_text(CTEST)
        (folder / "ctest").chmod(0o755)
        root, matrix.ROOT, os.environ["PATH"] = matrix.ROOT, folder, f"{folder}:{path}"  # programs are called in the root
        try:
            run = lambda again: matrix.run(folder / "log", folder / "build", ["cpp"], "", folder / "kept", again)  # noqa: E731
            (folder / "answer").write_text(LOG)
            assert run(False) == matrix.read_log(LOG)
            mended = LOG[LOG.index("2/4 Testing: graph_test"):LOG.index("4/4 Testing")].replace("  FAILED  ", "       OK ").replace(', where GetParam() = "cpu"', "")
            (folder / "answer").write_text(mended.replace("Test Failed.", "Test Passed."))
            expected = matrix.read_log(LOG)["cpp"]
            assert run(True)["cpp"] == {**expected, "passed": 3 + 2, "failed": []}
            asked = (folder / "asked").read_text().splitlines()
            assert "-E ^python_" in asked[0]
            assert "-R ^(graph_test|crash_test|python_front_test|python_crash_test)$" in asked[1], asked[1]
            (folder / "kept").unlink()
            try:
                run(True)
                raise AssertionError("ran what nobody knows")
            except matrix.Failure:
                pass
        finally:
            matrix.ROOT, os.environ["PATH"] = root, path


OF = {"commit": "abc", "sources": "123", "date": "2026-11-25 09:20 UTC"}


def data_of(title, result, kinds=tuple(matrix.KINDS), data=None, of=OF, name="newest"):
    """The data with one more result."""
    given = data or {"machine": {"system": "Debian", "cores": "2"}, "versions": {}}
    return matrix.with_result(given, dict(result, torch=title, cuda="13.0"), kinds, {kind: of for kind in matrix.KINDS}, name)


def check_page():
    data = data_of("2.11.0", matrix.read_log(LOG))
    data = data_of("3.0", {"failure": "does not compile"}, data=data)
    page = matrix.page(data)
    for words in ("| 2.11.0 | 13.0 | C++ | 4 | 3 | 2 | 3 | abc | 123 | 2026-11-25 09:20 UTC |\n"
                  "| 2.11.0 | 13.0 | Python | 2 | 21 | 2 | 3 | abc | 123 | 2026-11-25 09:20 UTC |\n"
                  "| 3.0 | 13.0 | C++ | does not compile |  |  |  | abc | 123 | 2026-11-25 09:20 UTC |", "| cores | 2 |",
                  '- C++: 1 skipped, "there is no GPU here":\n  - On/Chain: Trains/cuda',
                  '- Python: 1 skipped, "PyTorch 2.7 - or later":\n  - front_test.py: test_compiles[a b]', "  - other_test.py: all of it",
                  "- failed: crash_test", "- failed: python_crash_test", "- failed: does not compile"):
        assert words in page, f"{words!r} is not in\n{page}"
    titles = ["1.13.0, Debian's", "2.9.1", "2.11.0", "2.15.0"]
    assert sorted(reversed(titles), key=matrix.order) == titles
    assert matrix.page(json.loads(json.dumps(data))) == page
    check_what_stays(data)


def check_what_stays(data):
    """What is known of other versions, and of the other kind of tests."""
    of = dict(OF, sources="456", commit="def")
    entry = data_of("2.11.0", matrix.read_log(LOG), ["python"], data, of)["versions"]["2.11.0"]
    assert entry["cpp"] == data["versions"]["2.11.0"]["cpp"] and entry["python"]["commit"] == "def", entry
    all_new = data_of("2.15.0", matrix.read_log(LOG), data=data, of=of)
    assert sorted(all_new["versions"]) == ["2.11.0", "2.15.0", "3.0"]
    of_all = {kind: of for kind in matrix.KINDS}
    assert sorted(matrix.without_others(all_new, list(matrix.KINDS), of_all)["versions"]) == ["2.15.0"]
    python_alone = matrix.without_others(all_new, ["python"], of_all)["versions"]
    assert python_alone["2.11.0"] == {"cuda": "13.0", "cpp": data["versions"]["2.11.0"]["cpp"]}, python_alone["2.11.0"]
    assert matrix.faults(python_alone["2.11.0"], ["python"]) == [] and matrix.faults(python_alone["2.11.0"], matrix.KINDS)
    unknown = data_of("newest", {"failure": "no environment of Python"}, data=data)
    assert "newest" not in data_of("2.15.0", matrix.read_log(LOG), data=unknown)["versions"]


def check_outdated():
    """A page of other sources, of too few versions or with a failure is not what is to be committed."""
    now = {kind: matrix.digest_of_sources(kind) for kind in matrix.KINDS}
    if not all(now.values()):
        return  # outside a clone of git
    good = {kind: {"programs": 1, "passed": 1, "skipped": {}, "failed": [], "sources": now[kind]} for kind in matrix.KINDS}
    versions = {title: {"cuda": "-", **good} for title in ("1", "2", "3")}
    assert not matrix.outdated({"versions": versions})
    assert matrix.outdated({"versions": {**versions, "3": {"cuda": "-", "cpp": good["cpp"]}}})
    assert matrix.outdated({"versions": {**versions, "3": {**good, "cpp": dict(good["cpp"], sources="older")}}})
    assert matrix.outdated({"versions": {**versions, "3": {**good, "python": dict(good["python"], failed=["one"])}}})
    assert matrix.outdated({"versions": {title: versions[title] for title in ("1", "2")}})


def check_committed_page():
    data = json.loads(matrix.DATA.read_text())
    assert matrix.PAGE.read_text() == matrix.page(data), f"{matrix.PAGE} is not of {matrix.DATA}"
    wrong = matrix.outdated(data)
    assert not wrong, "\n".join(wrong + ["run tests/run_torch --matrix (with --python where only client/python has changed), and commit its page"])


check_log()
check_failed()
check_page()
check_outdated()
check_committed_page()
print("ok")
