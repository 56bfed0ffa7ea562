"""What deployments give stowaged, and whether it fits the memory and the time that they leave it."""
import re

# Memory that a byte of an open request takes: four times for what is made of it, twice for gRPC (operating.md).
REQUEST_FACTOR = 6
CLOSING_SECONDS = 3  # after the drain
DEFAULTS = {"solver_memory_bytes": 4 << 30, "cache_bytes": 256 << 20, "request_bytes": 256 << 20, "request_reserve_bytes": 4 << 20,
            "drain_timeout": "30s"}
VARIABLE = "STOWAGED_"


def quantity(text):
    """"2Gi", "7G" of systemd and compose (powers of 1024 both), "100m", 4: as a number."""
    text = str(text)
    factors = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "K": 2**10, "M": 2**20, "G": 2**30, "m": 1e-3}
    for suffix, factor in factors.items():
        if text.endswith(suffix):
            return float(text[:-len(suffix)]) * factor
    return float(text)


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(ms|s|min|m|h)", str(text)).groups()
    return float(number) * {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}[unit]


def conf_values(path):
    """The names and values of a configuration file."""
    return conf_values_of_text(path.read_text())


def conf_values_of_text(text):
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines()]
    return dict((part.strip() for part in line.split("=", 1)) for line in lines if line)


def with_variables(values, environment):
    """The environment goes before the file."""
    return {**values, **{name[len(VARIABLE):].lower(): value for name, value in environment.items() if name.startswith(VARIABLE)}}


def check_fit(values, memory_limit, patience, pause):
    """What a server may take is within the limit that ends it; it has drained before patience ends, `pause` being before the signal."""
    values = {**DEFAULTS, **values}
    requests = float(values["request_bytes"]) + float(values["request_reserve_bytes"])
    needs = float(values["solver_memory_bytes"]) + float(values["cache_bytes"]) + REQUEST_FACTOR * requests
    assert needs < memory_limit, f"{needs / 2**30:.2f} GiB may be taken, {memory_limit / 2**30:.2f} GiB are there"
    needed = pause + seconds(values["drain_timeout"]) + CLOSING_SECONDS
    assert needed < patience, f"the end takes up to {needed} s, {patience} s are there"
