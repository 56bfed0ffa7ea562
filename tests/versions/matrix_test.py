#!/usr/bin/env python3
"""What matrix.py reads of ctest's log, and what the page says of it."""
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


def check_page():
    begin = {"torch": "2.11.0", "cuda": "13.0", "commit": "abc", "sources": "123", "date": "2026-11-25 09:20 UTC", "machine": {"cores": "2"}}
    broken = dict(begin, torch="3.0", failure="does not compile")
    entries = {each["torch"]: (matrix.row(each), matrix.section(each)) for each in (broken, dict(begin, **matrix.read_log(LOG)))}
    page = matrix.page({"cores": "2"}, entries)
    for words in ("| 2.11.0 | 13.0 | 4 | 3 | 2 | 3 | 2 | 21 | 2 | 3 | abc | 123 | 2026-11-25 09:20 UTC |",
                  "| 3.0 | 13.0 | does not compile |  |  |  |  |  |  |  | abc | 123 | 2026-11-25 09:20 UTC |", "| cores | 2 |",
                  '- 1 skipped, "there is no GPU here":\n  - On/Chain: Trains/cuda',
                  '- 1 skipped, "PyTorch 2.7 - or later":\n  - front_test.py: test_compiles[a b]', "  - other_test.py: all of it",
                  "- failed: crash_test", "- failed: python_crash_test", "- does not compile"):
        assert words in page, f"{words!r} is not in\n{page}"
    titles = ["1.13.0, Debian's", "2.9.1", "2.11.0", "2.15.0"]
    assert sorted(reversed(titles), key=matrix.order) == titles
    check_what_stays(begin, page, entries)


def check_what_stays(begin, page, entries):
    """What is on the page is kept by it, nowhere else."""
    machine, known = matrix.read_page(page)
    assert machine == {"cores": "2"} and known == entries, known
    assert matrix.page(machine, known) == page and matrix.read_page("") == ({}, {})
    new = dict(begin, version="newest", torch="2.15.0", sources="456", **matrix.read_log(LOG))
    one = matrix.on_page(known, new, "456", False)
    assert sorted(one) == ["2.11.0", "2.15.0", "3.0"] and one["2.11.0"] == entries["2.11.0"]
    assert sorted(matrix.on_page(known, new, "456", True)) == ["2.15.0"], "all are measured: those of other sources go"
    assert sorted(matrix.on_page(known, dict(new, sources="123"), "123", True)) == ["2.11.0", "2.15.0", "3.0"]
    unknown = dict(new, torch="newest", failure="no environment of Python")
    assert sorted(matrix.on_page(matrix.on_page(known, unknown, "456", True), new, "456", True)) == ["2.15.0"]


check_log()
check_page()
print("ok")
