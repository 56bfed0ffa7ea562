#!/usr/bin/env python3
"""An upgrade and the way back, as server/operating.md describes them, by the programs of two versions.

    upgrade_test.py OLD NEW PROFILES

OLD and NEW are folders with a version's `stowage` and `stowaged`, PROFILES one with profiles. Everything that is kept or sent is written by
one version and read by the other: plans and decisions in files, what `--export_decisions` prints, plans, leases and decisions in a Redis that
replicas of both share, the contract between commands and servers of both. tests/run gives one build as both, tests/upgrade/run two versions.

Exits with 77, "skipped", where there is no redis-server.
"""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_programs, start  # noqa: E402

# A chain; a chain, a graph and a compute DAG with a link to the host; each with a budget that has a plan, as the least has.
NETWORKS = {"chain_rand_L50_s1": "60%", "profile_chain": "90%", "profile_graph": "85%", "profile_dag": "100%"}
ASKED = [*NETWORKS.items(), *((network, "least") for network in NETWORKS)]
INFEASIBLE = 3
TOLD_S = 20  # a decision is with all servers within 5 s
RENEWED_S = 60  # what another version solved is solved anew, one plan in two seconds


def until(seconds, holds, what):
    """The first true value of holds()."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.2)
    return value


class Version:
    """The programs of one version."""

    def __init__(self, folder, profiles):
        self._folder, self.profiles = pathlib.Path(folder), pathlib.Path(profiles)
        said = self.stowage("--version").stdout  # "stowage 0.1.0 (solvers 0.1.8)"; before 0.1.0 one number was both
        self.name = said.split()[1]
        self.solvers = said.split("solvers ")[-1].split()[-1].rstrip(")")
        self.stowaged = str(self._folder / "stowaged")

    def stowage(self, *words, code=0):
        done = subprocess.run([str(self._folder / "stowage"), *words], text=True, capture_output=True, timeout=120)
        assert done.returncode == code, f"stowage {' '.join(words)}: code {done.returncode}: {done.stderr}"
        return done

    def plan(self, address, network, budget):
        """The plan as JSON, by a server alone."""
        return json.loads(self.stowage("plan", f"--profile={self.profiles}/{network}.json", f"--budget={budget}", f"--server={address}",
                                       "--no_local", "--format=json").stdout)

    def plans(self, address):
        """Digest of each plan, by network and budget."""
        self.stowage("plan", f"--profile={self.profiles}/profile_chain.json", "--budget=1", f"--server={address}", "--no_local", code=INFEASIBLE)
        return {asked: self.plan(address, *asked)["digest"] for asked in ASKED}

    def revisions(self, address):
        """What the server keeps."""
        return json.loads(self.stowage("cache", "ls", f"--server={address}", "--format=json").stdout)

    def decide(self, address, *words):
        self.stowage("cache", *words, f"--server={address}")


class Server:
    """A server of a version, until the block ends; then it drains."""

    def __init__(self, version, folder, *flags, port=0):
        self._log = folder / f"log.{time.monotonic_ns()}"
        with open(self._log, "w") as log:
            self._process, port, _ = start(version.stowaged, "--reload_interval=1s", f"--listen=127.0.0.1:{port}", *flags, log=log)
        self.address = f"127.0.0.1:{port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            code = self._process.wait(60)
        finally:
            self._process.kill()
        assert code == 0, f"stowaged ended with {code}: {self._log.read_text()}"

    def solved(self):
        """How many answers were no plan that was kept."""
        events = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return sum(event.get("source") == "solved" for event in events if event["event"] == "rpc")


def keys(version, address):
    """Of each network, its key."""
    names = {json.loads((version.profiles / f"{network}.json").read_text())["name"]: network for network in NETWORKS}
    return {names[plan["name"]]: plan["key"] for plan in version.revisions(address)}


def same(plans, expected, what):
    differing = sorted(asked for asked in expected if plans[asked] != expected[asked])
    assert not differing, f"{what}: other plans of {differing}"


class Decided:
    """One plan pinned, the plans of one network frozen, those of one deleted."""

    pinned = ASKED[0]
    frozen = "profile_graph"
    deleted = "profile_chain"

    def __init__(self, version, address):
        self.of = keys(version, address)
        budget = version.plan(address, *self.pinned)["budget_bytes"]
        version.decide(address, "pin", self.of[self.pinned[0]], f"--budget={budget}")
        version.decide(address, "pin", self.of[self.frozen], "--action=freeze")
        version.decide(address, "rm", self.of[self.deleted])

    def hold(self, version, address):
        """None is missing there; nothing that was deleted is there."""
        kept = version.revisions(address)
        pinned = [plan for plan in kept if plan["pinned"]]
        return ({plan["key"] for plan in pinned} == {self.of[self.pinned[0]]} and len(pinned) == 1
                and {plan["key"] for plan in kept if plan["frozen"]} == {self.of[self.frozen]}
                and self.of[self.deleted] not in {plan["key"] for plan in kept})

    def stays(self, asked):
        return asked == self.pinned or asked[0] == self.frozen


def check_files(old, new, folder):
    """The newer program in the place of the older, and back."""
    flags = (f"--store=sqlite:{folder}/plans.db", f"--decisions_file={folder}/decisions.db")
    with Server(old, folder, *flags) as server:
        first = new.plans(server.address)
        same(old.plans(server.address), first, "another command")
        decided = Decided(old, server.address)
        assert decided.hold(new, server.address)

    with Server(new, folder, *flags) as server:
        assert decided.hold(old, server.address)
        kept = {asked: old.plan(server.address, *asked)["digest"] for asked in ASKED if asked[0] != decided.deleted}
        same(first, kept, "after the upgrade")
        assert server.solved() == 0, "the upgrade has lost plans"
        for asked in ASKED:
            if asked[0] == decided.deleted:
                new.plan(server.address, *asked)
        assert server.solved() > 0, "a plan that was deleted is back"
        renewed(new, server.address, decided)
        second = new.plans(server.address)
        same(second, {asked: first[asked] for asked in ASKED if decided.stays(asked)}, "pinned and frozen")

    with Server(old, folder, *flags) as server:
        same(old.plans(server.address), second, "after the way back")
        assert server.solved() == 0, "the way back has lost plans"
        assert [plan for plan in old.revisions(server.address) if plan["pinned"]], "the way back has lost a pin"
    print(f"files: {len(first)} plans kept, renewed and brought back")


def renewed(version, address, decided):
    """Waits until all but what is decided is of this version."""
    def done():
        version.plans(address)
        serving = [plan for plan in version.revisions(address) if plan["state"] == "serving"]
        moving = [plan for plan in serving if not plan["pinned"] and plan["key"] != decided.of[decided.frozen]]
        return moving and all(plan["solver_version"] == version.solvers for plan in moving)
    until(RENEWED_S, done, f"all plans are of solvers {version.solvers}")


def check_export(old, new, folder):
    """A backup of decisions, taken by one version, read by the other into an empty place."""
    for source, target in ((old, new), (new, old)):
        place = folder / f"export.{source is old}"
        place.mkdir()
        with Server(source, place, f"--store=sqlite:{place}/plans.db", f"--decisions_file={place}/decisions.db") as server:
            plans = source.plans(server.address)
            decided = Decided(source, server.address)
        printed = subprocess.run([source.stowaged, "--export_decisions", f"--decisions_file={place}/decisions.db"], check=True,
                                 capture_output=True, timeout=60)
        (place / "backup").write_bytes(printed.stdout)
        subprocess.run([target.stowaged, f"--import_decisions={place}/backup", f"--decisions_file={place}/imported.db"], check=True,
                       capture_output=True, timeout=60)
        with Server(target, place, "--store=memory", f"--decisions_file={place}/imported.db") as server:
            plan = target.plan(server.address, *decided.pinned)
            assert plan["digest"] == plans[decided.pinned] and server.solved() == 0, "the pin was not put back"
    print("decisions: exported and imported, both ways")


@contextlib.contextmanager
def redis(folder):
    path = folder / "redis.sock"
    process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)],
                               stdout=subprocess.DEVNULL)
    try:
        until(20, path.exists, "a Redis")
        yield path
    finally:
        process.kill()
        process.wait()


class Asking:
    """A thread that asks replicas for one plan after the other, until the block ends."""

    def __init__(self, version, address):
        self.answers, self._version, self._address = [], version, address
        self._end, self._thread = threading.Event(), threading.Thread(target=self._ask)

    def _ask(self):
        while not self._end.is_set():
            for asked in NETWORKS.items():
                try:
                    self.answers.append((asked, self._version.plan(self._address, *asked)["digest"]))
                except Exception as error:  # no answer, or none that is understood
                    self.answers.append((asked, error))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def check_replicas(old, new, folder):
    """Replicas of both versions on one Redis, while one takes the other's place."""
    ports = free_port(), free_port()
    both = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    with redis(folder) as path, contextlib.ExitStack() as servers:
        def serve(version, number):
            place = folder / f"replica.{number}.{version is new}"
            place.mkdir()
            return Server(version, place, "--store=memory", f"--redis={path}", f"--decisions_file={place}/decisions.db", port=ports[number])

        left = servers.enter_context(serve(old, 0))
        first = old.plans(left.address)
        with serve(new, 1) as right:
            same(new.plans(right.address), first, "through Redis")
            assert right.solved() == 0, "the newer replica does not read what the older wrote"
            decided = Decided(old, left.address)
            until(TOLD_S, lambda: decided.hold(new, right.address), "the newer replica knows what was decided")
            new.decide(right.address, "pin", decided.of[decided.frozen], "--action=unfreeze")
            until(TOLD_S, lambda: not any(plan["frozen"] for plan in old.revisions(left.address)), "the older replica knows of the thaw")
            new.decide(right.address, "pin", decided.of[decided.frozen], "--action=freeze")
            until(TOLD_S, lambda: decided.hold(old, left.address), "the older replica knows of the freeze")
            with Asking(old, both) as by_old, Asking(new, both) as by_new:
                time.sleep(1)
                servers.close()
                servers.enter_context(serve(new, 0))
                time.sleep(1)
        for version, asking in ((old, by_old), (new, by_new)):
            failed = [answer for answer in asking.answers if isinstance(answer[1], Exception)]
            assert not failed and len(asking.answers) > len(NETWORKS), f"{version.name}: {failed}"
            assert all(digest == first[asked] for asked, digest in asking.answers if decided.stays(asked)), "a pinned or frozen plan has changed"
        print(f"replicas: {len(by_old.answers) + len(by_new.answers)} plans during a rolling upgrade")


def main():
    need_programs("redis-server")
    old, new = (Version(folder, sys.argv[3]) for folder in sys.argv[1:3])
    print(f"from {old.name} to {new.name}")
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_files, check_export, check_replicas):
            place = pathlib.Path(folder) / check.__name__
            place.mkdir()
            check(old, new, place)
    print("passed")


if __name__ == "__main__":
    main()
