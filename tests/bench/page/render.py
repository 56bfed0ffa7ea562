"""The page."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]


def page(machine, measured, quick):
    lines = ["# Figures", ""]
    if quick:
        lines += ["**Quick: a small part of each, to show that all runs. These are no figures.**", ""]
    lines += ["Written by `tests/bench/all`. Where a program ran several times, a figure that was not the same each time is the median, with the "
              "least and the most in brackets.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()]
    missing = [f"{result.section.name} ({result.state})" for result in measured if result.state != "done"]
    if missing:
        lines += ["", "Without figures: " + ", ".join(missing) + "."]
    lines += ["", "| section | time taken | commit | begun | bound to | load before |", "|---|---:|---|---|---|---|"]
    lines += [f"| [{result.section.title}](#{anchor(result.section.title)}) | {result.seconds:.0f} s | " + " | ".join([result.commit, *result.moment.values()]) + " |"
              for result in measured]
    for result in measured:
        lines += section(result)
    return "\n".join(lines) + "\n"


def anchor(title):
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")


def section(result):
    command = " ".join(word.replace(str(result.section.folder), "FOLDER").replace(f"{ROOT}/", "") for word in result.section.command)
    times = {True: "", False: f", {result.section.runs} times"}[result.section.runs == 1]
    lines = ["", f"## {result.section.title}", "", f"`{command}`{times}. {result.section.says}", ""]
    if result.state != "done":
        lines += [f"**{result.state}** after {result.seconds:.0f} s.", ""]
    if result.markdown:
        lines += [result.markdown]
    for picture in result.pictures:
        lines += ["", f"![{picture}]({picture})"]
    return lines
