#!/usr/bin/env python3
"""Every relative link of every page of the tree leads to a file, or to a heading or anchor of one; and what a page shows as code is run.

    pages_test.py SOURCE_DIRECTORY
"""
import pathlib
import re
import subprocess
import sys


def pages(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], text=True, capture_output=True, check=True)
        names = listed.stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # no checkout
        names = [path.relative_to(root) for path in root.rglob("*.md") if "build" not in path.relative_to(root).parts]
    return [root / name for name in names if name and (root / name).exists()]


def anchors(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda match: match.group(1) or "", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def links(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def check_code(root):
    """README.md has a test of its own (tests/client/agent); all other pages are in the CMakeLists.txt beside this."""
    held = (root / "tests/pages/CMakeLists.txt").read_text()
    shown = 0
    for page in pages(root):
        name = str(page.relative_to(root))
        for language in set(re.findall(r"^```(cpp|sh|json|conf)\b", page.read_text(), re.M)) if name != "README.md" else ():
            shown += 1
            word = "stowage_page_source|stowage_page_program" if language == "cpp" else "stowage_page_shell"
            assert re.search(rf"({word})\([^)]*\b{re.escape(name)}\b", held), f"{name}: its {language} is run by no test (tests/pages/CMakeLists.txt)"
    assert shown >= 7, shown


def check_names(root):
    """Nothing that a job can say to its agent, or hears from it, is missing from the page on training."""
    page = (root / "client/agent/training.md").read_text()
    options = re.search(r"^struct AgentOptions \{(.*?)^\};", (root / "client/agent/agent_options.h").read_text(), re.M | re.S).group(1)
    names = re.findall(r"^  [\w:<>()* ]+ \*?(\w+)(?:;| = |\{)", options, re.M)
    names += re.findall(r"^struct (\w+Event) \{", (root / "client/agent/agent_event.h").read_text(), re.M)
    assert len(names) > 35, names
    missing = [name for name in names if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"client/agent/training.md does not name {', '.join(missing)}"


def durations(text):
    """(number, unit) of the prose and tables of a page, and durations in words, which have no number to look up."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)  # what a command printed
    return (re.findall(r"(?<![\w.])(\d+(?:\.\d+)?) (us|ms|s|seconds?|min|minutes?|hours?)\b", text),
            re.findall(r"\b(?:two|three|four|five|six|ten|some|few|dozen)(?: of)? (?:seconds|minutes|hours)\b", text))


# A unit as README has it, and as measured pages may.
UNITS = {"us": "us", "ms": "ms", "s": "s|seconds?", "second": "s|seconds?", "seconds": "s|seconds?", "min": "min|minutes?",
         "minute": "min|minutes?", "minutes": "min|minutes?", "hour": "h|hours?", "hours": "h|hours?"}


def measured_lines(text):
    """Every line of a page, a row of a table together with the table's head, which has the units."""
    head = ""
    for line in text.split("\n"):
        row = line.startswith("|")
        head = (head or line) if row else ""
        yield f"{head} {line}" if row else line


def is_measured(number, unit, lines):
    value = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\d.]*\d)")
    named = re.compile(rf"(?<![A-Za-z])(?:{UNITS[unit]})(?![A-Za-z])")
    return any(value.search(line) and named.search(line) for line in lines)


def check_durations(root):
    """What the first pages say that something takes, the measured pages have, and nothing older does."""
    lines = [line for page in sorted((root / "tests/bench/measured").rglob("*.md")) for line in measured_lines(page.read_text())]
    assert durations("4 s, 0.5 ms of 3 stages; four minutes") == ([("4", "s"), ("0.5", "ms")], ["four minutes"])
    table = list(measured_lines("| name | CPU minutes |\n|---|---|\n| build | 6.0 |\n\n8 stages"))
    assert is_measured("6.0", "minutes", table) and not is_measured("8", "minutes", table) and not is_measured("6.0", "ms", table)
    found = 0
    for name in ("README.md", "deploy/quickstart.md"):
        numbers, words = durations((root / name).read_text())
        assert not words, f"{name}: {words[0]}: say it in figures that tests/bench/measured has"
        for number, unit in numbers:
            found += 1
            assert is_measured(number, unit, lines), f"{name}: {number} {unit}: no page of tests/bench/measured has it"
    assert found >= 3, found


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    check_code(root)
    check_names(root)
    check_durations(root)
    looked_at, wrong = 0, []
    for page in pages(root):
        for link in links(page.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            looked_at += 1
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                wrong.append(f"{page.relative_to(root)}: {link}: no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                wrong.append(f"{page.relative_to(root)}: {link}: no such heading")
    assert looked_at > 10, f"only {looked_at} links were found"
    assert not wrong, "\n".join(wrong)
    print(looked_at, "links")


main()
