"""Prints the table of docs/aggregation.md from the results of a run.

python3 aggregation.py FOLDER
"""

import json
import pathlib
import sys

RULES = ("mean", "trimmed-mean", "median", "centred-clipping")
ATTACKS = ("sign-flip", "scale", "huge", "noise", "stale", "labels")


def accuracy(folder, variant):
    """The mean accuracy of the honest nodes at the end, in percent, or a dash."""
    summary = folder / variant / "summary.json"
    if not summary.exists():
        return "-"
    run = json.loads(summary.read_text())
    last = run["last"]["accuracy"]
    return run["end"] if last is None else f"{100 * last:.1f}"


def main():
    """Prints a row for each attack and number of hostile nodes."""
    folder = pathlib.Path(sys.argv[1])
    print("| hostile | attack |", " | ".join(RULES), "|")
    print("| --- | --- |", " | ".join("---" for _ in RULES), "|")
    rows = [(0, "none", "-0")]
    rows += [(f, a, f"-{f}-{a}") for f in (1, 2) for a in ATTACKS]
    for count, attack, suffix in rows:
        cells = [accuracy(folder, rule + suffix) for rule in RULES]
        print(f"| {count} | {attack} |", " | ".join(cells), "|")


main()
