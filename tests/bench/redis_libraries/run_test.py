#!/usr/bin/env python3
"""tests/bench/redis_libraries/run without the libraries: its servers answer as badly as it says, other sources are refused, turns alternate."""
import importlib.machinery
import importlib.util
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
RUN = pathlib.Path(__file__).resolve().parent / "run"
loader = importlib.machinery.SourceFileLoader("redis_libraries_run", str(RUN))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(run)


def started(*words):
    return subprocess.run([sys.executable, RUN, *map(str, words)], text=True, capture_output=True)


def check_flags(folder):
    said = started("--help")
    assert said.returncode == 0 and all(f"--{name}=DIR" in said.stdout for name in run.SOURCES), said
    (folder / "a.c").write_text("int a;\n")
    said = started(f"--hiredis={folder}", f"--redis_plus_plus={folder}")
    assert said.returncode == 2 and f"--hiredis={folder}: must be the sources" in said.stderr, said


def check_digest(folder):
    (folder / "a.c").write_text("int a;\n")
    first = run.digest(folder)
    (folder / "notes.md").write_text("of no account\n")
    assert run.digest(folder) == first
    (folder / "a.c").write_text("int b;\n")
    assert run.digest(folder) != first, "another content"
    (folder / "a.c").write_text("int a;\n")
    (folder / "a.c").rename(folder / "b.c")
    assert run.digest(folder) != first, "another name"
    for name in ("CMakeLists.txt", "find.cmake", "features.h.in"):
        before = run.digest(folder)
        (folder / name).write_text("built otherwise\n")
        assert run.digest(folder) != before, name


def all_of(port, most):
    """What a server answers to a GET, up to that many bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert client.recv(100) == b"+OK\r\n"
        client.sendall(b"*2\r\n$3\r\nget\r\n$3\r\nkey\r\n")
        answer = b""
        while len(answer) < most and (some := client.recv(65536)):
            answer += some
        return answer


def check_servers():
    server = run.BadServer(lambda send: run.trickle(send, pause_s=0))
    assert all_of(server.port, 10**6) == b"$500\r\n" + b"x" * 500 + b"\r\n"
    server.close()
    assert server.sent == 508
    # It ends by itself, and with its client, whichever is first.
    server = run.BadServer(lambda send: run.endless(send, most=4 * 2**20))
    head, rest = all_of(server.port, 10**9).split(b"\r\n", 1)
    assert int(head[1:]) > 10**11 and len(rest) == 4 * 2**20, head
    server.close()
    server = run.BadServer(run.endless)
    all_of(server.port, 10**6)
    server.close()
    assert server.sent < 10**8, server.sent


def check_sent(folder):
    """What is sent while a server closes counts."""

    class Closing:
        def __init__(self, answer):
            self.port, self.sent = 7, 1

        def close(self):
            self.sent = 2

    program = folder / "program"
    program.write_text("#!/bin/sh\necho '{\"seconds\": 1}'\n")
    program.chmod(0o755)
    real, run.BadServer = run.BadServer, Closing
    try:
        assert run.asked_once({"ours": program}, run.endless) == {"ours": {"seconds": 1, "sent": 2}}
    finally:
        run.BadServer = real


def check_turns(folder):
    log = folder / "log"
    programs = {}
    for name in ("theirs", "ours"):
        programs[name] = folder / name
        programs[name].write_text(f'#!/bin/sh\necho {name} >>{log}\necho "{{\\"p50_us\\": $(wc -l <{log}), \\"words\\": \\"$*\\"}}"\n')
        programs[name].chmod(0o755)
    got = run.in_turns(programs, 7, "1.8_kB")
    assert log.read_text().split() == ["theirs", "ours"] * 3
    assert {name: of["p50_us"] for name, of in got.items()} == {"theirs": 3, "ours": 4}
    assert got["ours"]["words"] == f"many 7 {run.PATIENT_MS} 1.8_kB"


def check_table():
    once = {"theirs": {"seconds": 20.5999, "sent": 2e9, "peak_mib": 2001.2}, "ours": {"seconds": 0.051, "sent": 3e6, "peak_mib": 9}}
    got = {"1.8 kB": {"theirs": {"p50_us": 14.42, "p99_us": 30}, "ours": {"p50_us": 15.2, "p99_us": 31}}}
    lines = run.table(once, once, got).split("\n")
    assert lines[0] == "| | theirs | ours |" and len(lines) == 8
    assert "| a reply that trickles: s | 20.600 | 0.051 |" in lines
    assert "| MB of it that were sent | 2000 | 3 |" in lines
    assert "| GET of 1.8 kB, us: p50 | 14.4 | 15.2 |" in lines


def main():
    for check in (check_flags, check_digest, check_sent, check_turns):
        with tempfile.TemporaryDirectory(prefix="redis_libraries") as folder:
            check(pathlib.Path(folder))
    check_servers()
    check_table()


main()
