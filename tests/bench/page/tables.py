"""Figures of several runs as one table."""
import re
import statistics

NUMBER = re.compile(r"(?<![\w.,])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w.,]*\d)")
# Of Google Benchmark's own fields; the others are counters of the program.
OWN = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
       "iterations", "real_time", "cpu_time", "time_unit", "label"}


def short(value):
    return f"{value:.4g}" if abs(value) < 1e5 else f"{value:.0f}"


def of_benchmarks(report):
    """Time of each benchmark over its repetitions, and its counters: of the CPU, but where the program has its own clock, or is timed by the wall."""
    runs = {}
    for entry in report["benchmarks"]:
        if entry.get("run_type") == "iteration" and not entry.get("error_occurred"):
            runs.setdefault(entry["run_name"], []).append(entry)
    counters = sorted({key for entries in runs.values() for key in entries[0] if key not in OWN})
    rows = [["benchmark", "unit", "least", "median", "most", "runs"] + counters]
    for name, entries in runs.items():
        clock = "real_time" if name.endswith(("/manual_time", "/real_time")) else "cpu_time"
        times = [entry[clock] for entry in entries]
        values = [short(statistics.median(entry[key] for entry in entries)) if key in entries[0] else "" for key in counters]
        rows.append([f"`{name}`", entries[0]["time_unit"], short(min(times)), short(statistics.median(times)), short(max(times)),
                     str(len(times))] + values)
    if len(rows) == 1:
        return ""
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0])] + rows[1:])


def alike(words):
    """What was printed for one number, several times: itself, or the median, the least and the most."""
    if len(set(words)) == 1:
        return words[0]
    values = sorted((float(word.replace(",", "")), word) for word in words)
    return f"{values[len(values) // 2][1]} ({values[0][1]} to {values[-1][1]})"


def merged(texts):
    """One text of several that differ in numbers alone, line by line; the first where they differ otherwise."""
    lines = [text.strip("\n").split("\n") for text in texts]
    if len({len(one) for one in lines}) > 1:
        return laid_out(lines[0]) + "\n\n(The runs differ in more than numbers: this is the first.)"
    result = []
    for versions in zip(*lines):
        if len({NUMBER.sub("#", version) for version in versions}) > 1:
            result.append(versions[0])
            continue
        numbers = [NUMBER.findall(version) for version in versions]
        columns = iter([alike(words) for words in zip(*numbers)])
        result.append(NUMBER.sub(lambda _, columns=columns: next(columns), versions[0]))
    return laid_out(result)


def joined(texts, means):
    """One table of several with the same head; last, the mean of the first numbers in each of the columns named. What a text says beside its
    table is of that part alone, and left out."""
    tables = [[line for line in text.split("\n") if line.startswith("|")] for text in texts]
    assert all(table[:2] == tables[0][:2] for table in tables), "parts of one section have one head"
    rows = [row for table in tables for row in table[2:]]
    return "\n".join(tables[0][:2] + rows + ([mean_row(tables[0][0], rows, means)] if means else []))


def cells(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def mean_row(head, rows, means):
    result = [f"mean of {len(rows)}"]
    for column, title in list(enumerate(cells(head)))[1:]:
        numbers = [NUMBER.search(cells(row)[column]).group() for row in rows] if title in means else []
        sign, unit = "+" * (bool(numbers) and numbers[0][0] in "+-"), "%" * (bool(numbers) and f"{numbers[0]}%" in rows[0])
        result.append(f"{statistics.mean(float(number.replace(',', '')) for number in numbers):{sign}.1f}{unit}" if numbers else "")
    return "| " + " | ".join(result) + " |"


def laid_out(lines):
    """Markdown stays as it is; what is laid out by blanks goes between fences."""
    if any(line.startswith("|") for line in lines):
        return "\n".join("#" + line if line.startswith("## ") else line for line in lines)
    return fenced("\n".join(lines))


def fenced(text):
    return "```text\n" + text.strip("\n") + "\n```"
