"""A headless Chromium, driven over its DevTools protocol through a pipe: the standard library alone.

    with Browser() as browser:
        page = browser.open("file:///tmp/page.html", 1280, 900)
        page.evaluate("document.title")
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

SECONDS = 60  # for any one answer


def need_chromium(test):
    """The path of Chromium; without one the test is skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        print(f"{test}: skipped, there is no chromium (deploy/setup --tests installs it)")
        raise SystemExit(77)
    return found


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="stowage_chromium_")
        commands, ours = os.pipe()
        theirs, answers = os.pipe()
        # Chromium reads its file 3 and writes its file 4; moved up first, lest one is on the other's place.
        moved = [os.dup(fd) for fd in (commands, answers)]
        high = [os.dup2(fd, 100 + k, inheritable=True) for k, fd in enumerate(moved)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--disable-sync",
             "--hide-scrollbars", "--force-color-profile=srgb", f"--user-data-dir={self.folder.name}"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (commands, answers, *moved, *high):
            os.close(fd)
        self.input, self.output = ours, theirs
        self.rest = b""
        self.number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.input)
        os.close(self.output)
        self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        try:
            self.folder.cleanup()
        except OSError:  # a helper process may still be writing there
            shutil.rmtree(self.folder.name, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.rest:
            chunk = os.read(self.output, 1 << 20)
            if not chunk:
                raise RuntimeError(f"chromium ended with {self.process.poll()}")
            self.rest += chunk
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self.input, json.dumps(request).encode() + b"\0")
        while True:
            message = self.receive()
            if "id" not in message:
                self.events.append(message)
            elif message["id"] == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, url, width, height, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        self.media(dark=dark)
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def seen(self, method):
        return [e["params"] for e in self.browser.events if e["method"] == method and e.get("sessionId") == self.session]

    def wait_for(self, method):
        end = time.monotonic() + SECONDS
        while not self.seen(method):
            if time.monotonic() > end:
                raise RuntimeError(f"no {method}")
            self.call("Runtime.evaluate", expression="1")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, dark=False, printed=False):
        self.call("Emulation.setEmulatedMedia", media="print" if printed else "screen",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Until what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def requests(self):
        return [e["request"]["url"] for e in self.seen("Network.requestWillBeSent")]

    def complaints(self):
        """What the console says is wrong."""
        found = [str(e["exceptionDetails"]) for e in self.seen("Runtime.exceptionThrown")]
        found += [str(e) for e in self.seen("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")]
        found += [str(e["entry"]) for e in self.seen("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
        return found

    def screenshot(self, path, whole=True):
        options = {"captureBeyondViewport": True}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **options)["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
