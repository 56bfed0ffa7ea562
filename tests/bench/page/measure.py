"""Measures a section within its limit of time, and keeps what came of it in a file of its own."""
import json
import os
import signal
import subprocess
import time

from machine import moment
from tables import fenced, joined, merged, of_benchmarks

SKIPPED = 77  # exit code: something that it needs is not installed


class Measured:
    """state: done, skipped, failed (exit code), cut off (limit), empty (no figures), missing (no such program); "" before.

    A section of parts is run part by part, and begins again with the first that is not done. What was measured of another commit is kept
    until it is measured again."""

    def __init__(self, section, machine, commit, out, again=False):
        self.section = section
        self.commit = commit
        self._now = commit
        self.path = out / "sections" / f"{section.name}.json"
        self.state, self.seconds, self.markdown, self.pictures = "", 0.0, "", []
        self.moment, self.parts = {}, {}
        self._key = {"command": section.command, "runs": section.runs, "machine": machine}
        if again or not self.path.exists():
            return
        kept = json.loads(self.path.read_text())
        if kept.pop("key", None) == self._key:
            vars(self).update(kept)

    @property
    def done(self):
        return self.state in ("done", "skipped") and self.commit == self._now

    def measure(self, programs, cpus):
        section = self.section
        section.folder.mkdir(parents=True, exist_ok=True)
        if self.commit != self._now:
            self.commit, self.parts = self._now, {}
        if not self.parts:  # otherwise it goes on, and was begun then
            self.moment = moment(cpus)
        self.state = "done" if (programs / section.command[0]).exists() else "missing"
        if self.state == "done":
            measure = self._measure_parts if section.part_flag else self._measure_runs
            measure(programs, cpus)
        if self.state == "done" and not any(letter.isdigit() for letter in self.markdown):
            self.state = "empty"
        self.pictures = [str(path.relative_to(self.path.parents[1])) for pattern in section.pictures
                         for path in sorted(section.folder.glob(pattern))]
        self._keep()

    def _measure_runs(self, programs, cpus):
        section = self.section
        begun = time.monotonic()
        texts = []
        for _ in range(1 if section.kind == "benchmark" else section.runs):
            if self.state != "done":
                break
            texts.append(self._run(section.command, programs, cpus, max(section.limit_s - (time.monotonic() - begun), 1)))
        self.seconds = time.monotonic() - begun
        texts = [text for text in texts if text]
        if section.kind == "benchmark" and self.state == "done":
            self.markdown = of_benchmarks(json.loads(texts[0]))
        else:
            self.markdown = merged(texts) if texts else ""

    def _measure_parts(self, programs, cpus):
        section = self.section
        names = self._run([section.command[0], "--list"], programs, cpus, section.limit_s).split()
        if self.state != "done":
            return
        for name in names:
            if self.parts.get(name, {}).get("state") == "done":
                continue
            begun = time.monotonic()
            self.state = "done"
            text = self._run(section.command + [section.part_flag + name], programs, cpus, section.limit_s)
            self.parts[name] = {"state": self.state, "seconds": time.monotonic() - begun, "text": text}
            self._show(names)
            # Not done before all are.
            self.state = "broken off"
            self._keep()
        self._show(names)

    def _show(self, names):
        """The parts that there are, as one."""
        ran = [self.parts[name] for name in names if name in self.parts]
        good = [part["text"] for part in ran if part["state"] == "done"]
        bad = [part for part in ran if part["state"] != "done"]
        self.seconds = sum(part["seconds"] for part in ran)
        self.markdown = "\n\n".join([joined(good, self.section.means)] * bool(good) + [fenced(part["text"]) for part in bad])
        self.state = bad[0]["state"] if bad else "done"

    def _run(self, words, programs, cpus, limit_s):
        section = self.section
        command = (["taskset", "-c", cpus] if cpus else []) + [str(programs / words[0])] + words[1:]
        if section.kind == "benchmark":
            command += ["--benchmark_format=json", f"--benchmark_repetitions={section.runs}"]
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", STOWAGE_PROGRAMS=str(programs))
        with open(section.folder / "output", "w+") as output, open(section.folder / "errors", "w+") as errors:
            # A group of its own: a program that is cut off takes its servers with it.
            process = subprocess.Popen(command, stdout=output, stderr=errors, cwd=section.folder, env=environment, start_new_session=True)
            try:
                code = process.wait(timeout=limit_s)
                if code:
                    self.state = "skipped" if code == SKIPPED else "failed"
            except subprocess.TimeoutExpired:
                self.state = "cut off"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            errors.seek(0)
            text, complaints = output.read(), errors.read()
        if self.state == "failed":
            return f"exit code {process.returncode}\n\n{complaints[-2000:]}\n{text}"
        if section.kind == "file" and self.state == "done":
            return (section.folder / section.file).read_text()
        return text

    def _keep(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({
            "key": self._key, "state": self.state, "seconds": self.seconds, "markdown": self.markdown, "pictures": self.pictures,
            "commit": self.commit, "moment": self.moment, "parts": self.parts}, indent=1))
        fresh.replace(self.path)
