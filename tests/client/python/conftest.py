"""Skipped tests by name, in GoogleTest's words: tests/run lists them with all others."""


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"[  SKIPPED ] {report.nodeid} ({round(1000 * report.duration)} ms)")
