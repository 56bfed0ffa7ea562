"""Skipped tests by name, in GoogleTest's words: tests/run lists them with all others."""


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        milliseconds = round(1000 * getattr(report, "duration", 0.0))  # a whole file has none
        terminalreporter.write_line(f"[  SKIPPED ] {report.nodeid} ({milliseconds} ms)")
