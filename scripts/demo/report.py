"""What the demo ends with: a table, a plot, and the numbers behind both."""

import csv
import json
import math
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

from fleet import DemoError
from screen import bytes_text, table

PLOT = "accuracy.png"
SUMMARY = "summary.json"

# The plot's columns: see _curves.
CURVES = "curves.csv"

GNUPLOT = r"""
set terminal pngcairo size 1200,720 font "DejaVu Sans,14" rounded linewidth 1.2
set output "{plot}"
set datafile separator ","

together = "#0b6e99"
alone = "#b5651d"
ink = "#333333"

set border 3 linewidth 1 linecolor rgb "#888888"
set tics nomirror out scale 0.6 textcolor rgb ink
set grid ytics linewidth 0.8 linecolor rgb "#e4e4e4"
set lmargin 10
set rmargin 22
set tmargin 4.6
set bmargin 5

set label 1 "Four nodes learn Fashion-MNIST together, with no server" \
  at graph -0.075,1.12 font "DejaVu Sans,18" textcolor rgb ink
set label 2 "{subtitle}" \
  at graph -0.075,1.05 font "DejaVu Sans,12" textcolor rgb "#666666"
set xlabel "sent by a node so far, MB" offset 0,0.3 textcolor rgb ink
set ylabel "accuracy on test images" textcolor rgb ink
set format y "%.1f"
set xrange [0:{x_max}]
set yrange [{y_min}:{y_max}]
set ytics 0.1
unset key

# What dflctl did.
{events}

# At the right edge, what each curve is and where it ended.
set label 20 "together: {together:.3f}" at graph 1.02,first {together_label} \
  left font "DejaVu Sans,14" textcolor rgb together
set label 21 "alone: {alone:.3f}" at graph 1.02,first {alone_label} \
  left font "DejaVu Sans,14" textcolor rgb alone
set label 22 "nothing sent" at graph 1.02,first {alone_label} offset 0,-1.1 \
  left font "DejaVu Sans,11" textcolor rgb "#666666"
set label 23 "{sent} a node, {share} of\nthe {dense} of a\ndense exchange" \
  at graph 1.02,first {together_label} offset 0,-1.1 \
  left font "DejaVu Sans,11" textcolor rgb "#666666"

set style fill transparent solid 0.16 noborder
plot \
  "{curves}" using 2:4:5 every ::1 with filledcurves linecolor rgb together, \
  "" using 2:7:8 every ::1 with filledcurves linecolor rgb alone, \
  "" using 2:6 every ::1 with lines linewidth 2 dashtype (8,5) \
    linecolor rgb alone, \
  "" using 2:3 every ::1 with linespoints linewidth 3 pointtype 7 \
    pointsize 0.9 linecolor rgb together
"""

EVENT = """\
set arrow {tag} from {x},graph 0 to {x},graph 1 nohead linewidth 1 \\
  dashtype (3,4) linecolor rgb "#aaaaaa"
set label {tag} "{text}" at {x},graph {y} offset 0.7,0 left \\
  font "DejaVu Sans,11" textcolor rgb "#666666"
"""


def check_gnuplot():
    if shutil.which("gnuplot") is None:
        raise DemoError("there is no gnuplot (package gnuplot-nox): "
                        "scripts/install-deps.sh run")


def _curves(result):
    """Rows of (step, MB sent by a node, accuracy together: mean, least, most,
    alone: mean, least, most), for the steps at which all were evaluated."""
    rows = []
    steps = set.intersection(
        *(({p[0] for p in n.together} & {p[0] for p in n.alone})
          for n in result.nodes))
    for step in sorted(steps):
        together = [next(p for p in n.together if p[0] == step)
                    for n in result.nodes]
        alone = [next(p for p in n.alone if p[0] == step)[1]
                 for n in result.nodes]
        accuracies = [p[1] for p in together]
        sent = sum(p[2] for p in together) / len(together) / 1e6
        rows.append((step, sent,
                     sum(accuracies) / len(accuracies),
                     min(accuracies), max(accuracies),
                     sum(alone) / len(alone), min(alone), max(alone)))
    return rows


def _event_x(result, version, rows):
    """MB sent by a node when it took up plan `version`, on the curves' scale."""
    step = sum(next(a.step for a in n.adoptions if a.version == version)
               for n in result.nodes) / len(result.nodes)
    before = (0, 0.0)
    for row in rows:
        if row[0] >= step:
            share = (step - before[0]) / (row[0] - before[0])
            return before[1] + share * (row[1] - before[1])
        before = row[:2]
    return before[1]


def _plot(result, folder, rows):
    count = len(result.nodes)
    together = result.mean("together_accuracy")
    alone = result.mean("alone_accuracy")
    x_max = rows[-1][1]
    versions = sorted(a.version for a in result.nodes[0].adoptions)[1:]
    texts = ["dflctl " + change.replace(" --", "\\n--")
             for change in result.changes]
    events = ""
    for i, (version, text) in enumerate(zip(versions, texts)):
        x = _event_x(result, version, rows)
        # One below the other: they may come soon after each other.
        events += EVENT.format(tag=10 + i, x=f"{x:.4f}", text=text,
                               y=f"{0.07 + 0.08 * (len(texts) - 1 - i):.2f}")
    sent, dense = result.total("bytes_sent"), result.total("dense_bytes")
    lowest = min(min(row[3], row[6]) for row in rows)
    highest = max(max(row[4], row[7]) for row in rows)
    bottom, top = math.floor(lowest * 10) / 10, math.ceil(highest * 10) / 10
    # The labels at the right must not run into each other.
    room = 0.19 * (top - bottom)
    values = {
        "plot": PLOT, "curves": CURVES, "events": events,
        "subtitle": f"CNN, {result.title} with {result.values} values, "
                    f"Dirichlet(0.3), {result.steps} steps a node, seed {result.seed}. Lines: "
                    f"mean of the four; bands: least to most.",
        "x_max": f"{1.001 * x_max:.4f}",
        "y_min": f"{bottom:.1f}", "y_max": f"{top:.1f}",
        "together": together, "together_label": f"{rows[-1][2]:.4f}",
        "alone": alone,
        "alone_label": f"{min(rows[-1][5], rows[-1][2] - room):.4f}",
        "sent": bytes_text(sent / count), "dense": bytes_text(dense / count),
        "share": f"{100 * sent / dense:.0f} %"}
    script = GNUPLOT.format(**values)
    (folder / "accuracy.gnuplot").write_text(script.lstrip())
    done = subprocess.run(["gnuplot", "accuracy.gnuplot"], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=60)
    if done.returncode != 0 or not (folder / PLOT).exists():
        raise DemoError(f"gnuplot failed:\n{done.stderr.strip()}")


def write(result, folder):
    """Writes the numbers as JSON and CSV, and the plot."""
    folder = Path(folder)
    rows = _curves(result)
    with open(folder / CURVES, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "megabytes_sent_by_a_node", "together_mean",
                         "together_min", "together_max", "alone_mean",
                         "alone_min", "alone_max"])
        for row in rows:
            writer.writerow([row[0], *(f"{value:.6f}" for value in row[1:])])
    (folder / SUMMARY).write_text(json.dumps(asdict(result), indent=2) + "\n")
    if rows:
        _plot(result, folder, rows)


def final_table(result):
    rows = [["node", "images", "together", "alone", "gain", "m", "sent",
             "dense would be"]]
    for n in result.nodes:
        rows.append([
            n.name, f"{n.train_rows:,}", f"{n.together_accuracy:.4f}",
            f"{n.alone_accuracy:.4f}",
            f"{n.together_accuracy - n.alone_accuracy:+.4f}",
            " ".join(str(m) for _, m in n.steps_of_m),
            bytes_text(n.bytes_sent), bytes_text(n.dense_bytes)])
    together = result.mean("together_accuracy")
    alone = result.mean("alone_accuracy")
    rows.append([
        "mean", f"{result.mean('train_rows'):,.0f}", f"{together:.4f}",
        f"{alone:.4f}", f"{together - alone:+.4f}", "",
        bytes_text(result.mean("bytes_sent")),
        bytes_text(result.mean("dense_bytes"))])
    lines = table(rows, right={1, 2, 3, 4, 6, 7})
    lines.insert(1, "-" * max(map(len, lines)))
    lines.insert(-1, lines[1])
    missed = result.total("missed")
    sent, dense = result.total("bytes_sent"), result.total("dense_bytes")
    return lines + [
        "",
        f"Accuracy: on all {result.test_rows:,} test images. Alone: the same "
        "steps, step sizes and batches",
        "without exchange; m divides the steps, in the run alone as in the run "
        "together.",
        f"All together sent {bytes_text(sent)}, {100 * sent / dense:.1f} % of "
        f"a dense fp32 exchange; {missed} asks got no answer.",
        f"It took {result.seconds:.0f} s: {result.seconds_together:.0f} s "
        f"together, {result.seconds_alone:.0f} s alone."]
