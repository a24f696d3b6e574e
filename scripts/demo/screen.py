"""What the demo shows while it runs: lines that stay, and a block below them
that is drawn again and again on a terminal, or a line now and then elsewhere.
"""

import shutil
import sys
import time

# Between two lines of progress where nothing can be redrawn.
PLAIN_PERIOD = 5.0
# Between two drawings on a terminal.
DRAW_PERIOD = 0.25


class Screen:

    def __init__(self, out=sys.stdout):
        self._out = out
        self._started = time.monotonic()
        self._terminal = out.isatty()
        self._drawn = 0      # lines of the block on the terminal now
        self._last = 0.0     # when progress was last shown

    def elapsed(self):
        """Seconds since the demo began."""
        return time.monotonic() - self._started

    def _clock(self):
        seconds = int(self.elapsed())
        return f"[{seconds // 60}:{seconds % 60:02d}]"

    def _erase(self):
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def say(self, text=""):
        """A fact, with the time since the start."""
        self.show(f"{self._clock()} {text}")

    def show(self, text=""):
        """Lines as they are."""
        self._erase()
        self._out.write(text + "\n")
        self._out.flush()

    def progress(self, block, line, now=False):
        """`block` (lines) on a terminal, or `line` elsewhere, if it is time.

        Both are functions, called only when something is shown.
        """
        period = DRAW_PERIOD if self._terminal else PLAIN_PERIOD
        if not now and time.monotonic() - self._last < period:
            return
        self._last = time.monotonic()
        if not self._terminal:
            self.show(f"{self._clock()} {line()}")
            return
        width = shutil.get_terminal_size().columns
        lines = [text[:width - 1] for text in block()]
        self._erase()
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()
        self._drawn = len(lines)

    def settle(self):
        """Leaves the block where it is; what follows goes below it."""
        self._drawn = 0


def table(rows, right=()):
    """`rows` of texts as aligned lines; columns in `right` end flush."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(text.rjust(width) if c in right else text.ljust(width)
                      for c, (text, width) in enumerate(zip(row, widths)))
            .rstrip() for row in rows]


def bytes_text(count):
    """12.3 MB: decimal units, three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    if unit == "B" or count >= 99.95:
        return f"{count:.0f} {unit}"
    return f"{count:.1f} {unit}" if count >= 9.995 else f"{count:.2f} {unit}"
