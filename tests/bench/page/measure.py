"""Measures a section within its limit of time, and keeps what came of it in a file of its own."""
import json
import os
import signal
import subprocess
import time

from tables import merged, of_benchmarks

SKIPPED = 77  # exit code: something that it needs is not installed


class Measured:
    """state: done, skipped, failed (exit code), cut off (limit), empty (no figures), missing (no such program)."""

    def __init__(self, section, commit, out, again=False):
        self.section = section
        self.commit = commit
        self.path = out / "sections" / f"{section.name}.json"
        self.state, self.seconds, self.markdown, self.pictures = "", 0.0, "", []
        if again or not self.path.exists():
            return
        kept = json.loads(self.path.read_text())
        if kept["command"] == section.command and kept["runs"] == section.runs and kept["commit"] == commit:
            self.state, self.seconds, self.markdown = kept["state"], kept["seconds"], kept["markdown"]
            self.pictures = kept["pictures"]

    @property
    def done(self):
        return self.state in ("done", "skipped")

    def measure(self, programs, cpus):
        section = self.section
        section.folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        texts = []
        self.state = "done" if (programs / section.command[0]).exists() else "missing"
        for _ in range(1 if section.kind == "benchmark" else section.runs):
            left = section.limit_s - (time.monotonic() - begun)
            if self.state != "done":
                break
            texts.append(self._run(programs, cpus, max(left, 1)))
        self.seconds = time.monotonic() - begun
        self.markdown = self._figures([text for text in texts if text])
        if self.state == "done" and not any(letter.isdigit() for letter in self.markdown):
            self.state = "empty"
        self.pictures = [str(path.relative_to(self.path.parents[1])) for pattern in section.pictures
                         for path in sorted(section.folder.glob(pattern))]
        self._keep()

    def _run(self, programs, cpus, limit_s):
        section = self.section
        command = (["taskset", "-c", cpus] if cpus else []) + [str(programs / section.command[0])] + section.command[1:]
        if section.kind == "benchmark":
            command += ["--benchmark_format=json", f"--benchmark_repetitions={section.runs}"]
        environment = dict(os.environ, OMP_WAIT_POLICY="passive")
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

    def _figures(self, texts):
        if not texts:
            return ""
        if self.section.kind == "benchmark" and self.state == "done":
            return of_benchmarks(json.loads(texts[0]))
        return merged(texts)

    def _keep(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({
            "command": self.section.command, "runs": self.section.runs, "commit": self.commit, "state": self.state,
            "seconds": self.seconds, "markdown": self.markdown, "pictures": self.pictures}, indent=1))
        fresh.replace(self.path)
