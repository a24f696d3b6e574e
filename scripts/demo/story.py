"""What happens in the demo, from the first daemon's start to the last step."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from fleet import DemoError, Fleet
from screen import bytes_text, table
from ways import WAYS

NAMES = ["node-1", "node-2", "node-3", "node-4"]
VALUES = ["fp32", "fp16", "bf16", "int8"]
DATA = "/usr/share/datasets/fashion-mnist"
TRAIN = [f"{DATA}/train-images-idx3-ubyte.gz",
         f"{DATA}/train-labels-idx1-ubyte.gz"]
TEST = [f"{DATA}/t10k-images-idx3-ubyte.gz",
        f"{DATA}/t10k-labels-idx1-ubyte.gz"]
DATA_FILES = TRAIN + TEST

BATCH = 32
DURING = 2000         # test images looked at while training
EVALUATIONS = 20      # looks at them in a run
CLASSES = 10

# When dflctl steps in, as shares of the steps: the graph becomes a ring, and a
# knob changes: with PaME the node that lags behind gets participation rate 1.
RING_AT = 0.1
RATE_AT = 0.2

STALL_SECONDS = 60    # nobody moves for that long: something is wrong

SETTINGS = """\
# {name} of the demo. Every setting is explained in deploy/dfld.yaml.
name: {name}
state_dir: {folder}/state
# Four daemons on loopback: nobody else reaches them.
security: insecure
peer:
  listen: ["127.0.0.1:0"]  # the system chooses the port
control:
  socket: {socket}
data:
  format: idx
  classes: {classes}
  train:
    paths:
      - {train[0]}
      - {train[1]}
  test:
    paths:
      - {test[0]}
      - {test[1]}
  # All four read the same files; this is the part that is this node's.
  partition: {{kind: dirichlet, theta: 0.3, count: {count}, index: {index},
              seed: {seed}}}
compute:
  threads: 1
"""

PLAN = """\
# The demo's run plan. Every key is explained in deploy/plan.example.yaml.
seed: {seed}
participants: {{fixed: [{members}]}}
model: {{kind: cnn, classes: {classes}}}
batch_size: {batch}
algorithm:
  name: {algorithm}
  knobs: {{{knobs}}}
topology: {{kind: complete}}
codec: {{coordinates: {coordinates}, values: {values}}}
evaluation: {{every_steps: {every}, examples: {during}}}
stop: {{steps: {steps}}}
"""


@dataclass
class Adoption:
    """A plan as a node took it up."""
    version: int
    step: int          # from which it was in force
    need: int          # neighbours asked in an exchange: PaME's m; else 1
    neighbours: list


@dataclass
class NodeRecord:
    """What one node did, together with the others and alone."""
    name: str
    train_rows: int = 0
    kappa: int = 0
    adopted_at: list = field(default_factory=list)  # steps; version 1 first
    adoptions: list = field(default_factory=list)
    steps_of_m: list = field(default_factory=list)  # (end step, m)
    # (step, accuracy, bytes sent, dense bytes); on DURING test images, on all
    # of them at the end
    together: list = field(default_factory=list)
    alone: list = field(default_factory=list)       # (step, accuracy)
    together_accuracy: float = 0.0   # on all test images
    alone_accuracy: float = 0.0
    bytes_sent: int = 0
    dense_bytes: int = 0
    missed: int = 0
    seconds: float = 0.0


@dataclass
class Result:
    seed: int
    steps: int
    values: str
    title: str             # of the algorithm
    nodes: list
    changes: list          # dflctl's, by which plans 2, 3, ... came about
    test_rows: int = 0
    seconds_together: float = 0.0
    seconds_alone: float = 0.0
    seconds: float = 0.0

    def mean(self, attribute):
        return sum(getattr(n, attribute) for n in self.nodes) / len(self.nodes)

    def total(self, attribute):
        return sum(getattr(n, attribute) for n in self.nodes)


class Story:

    def __init__(self, arguments, programs, folder, screen):
        self._arguments = arguments
        self._folder = Path(folder)
        self._screen = screen
        self._fleet = Fleet(programs, folder, NAMES)
        self._nodes = {name: NodeRecord(name) for name in NAMES}
        self._status = {}
        self._moved = (0, 0.0)  # sum of all steps, and when it last changed
        self._changes = []     # what dflctl did
        self._way = WAYS[arguments.algorithm]()
        self._changed_node = ""  # whose knob was changed, where it is one's

    def tell(self):
        with self._fleet:
            started = time.monotonic()
            self._start()
            self._together()
            between = time.monotonic()
            self._alone()
            ended = time.monotonic()
        return Result(
            seed=self._arguments.seed, steps=self._arguments.steps,
            values=self._arguments.values, title=self._way.title,
            nodes=list(self._nodes.values()),
            changes=self._changes,
            test_rows=self._status[NAMES[0]]["evaluation"]["rows"],
            seconds_together=between - started, seconds_alone=ended - between,
            seconds=self._screen.elapsed())

    # ----------------------------------------------------------- commands ----

    def _dflctl(self, *words, to=None):
        """Runs it for all to see."""
        self._screen.say("$ dflctl " + " ".join(
            str(word) for word in words if word != "--yes"))
        return self._fleet.dflctl(*words, to=to)

    def _plan(self, name, **values):
        path = self._folder / name
        path.write_text(PLAN.format(
            seed=self._arguments.seed, classes=CLASSES, batch=BATCH,
            values=self._arguments.values, during=DURING,
            coordinates=self._way.coordinates,
            every=max(1, self._arguments.steps // EVALUATIONS), **values))
        return path

    def _update(self, wait=1.0):
        """Takes in one update of a node, as (record, status, events)."""
        update = self._fleet.next(wait)
        moved = sum(s["step"] for s in self._status.values())
        if moved != self._moved[0] or self._moved[1] == 0:
            self._moved = (moved, time.monotonic())
        elif time.monotonic() - self._moved[1] > STALL_SECONDS:
            where = ", ".join(f"{name}: {s['phase']} at step {s['step']}"
                              for name, s in sorted(self._status.items()))
            raise DemoError(f"nothing has moved for {STALL_SECONDS} s ({where});"
                            f" the logs are in {self._folder}/node-*/dfld.log")
        if update is None:
            return None
        daemon, status, events = update
        self._status[daemon.name] = status
        if status["last_error"]:
            raise DemoError(f"{daemon.name} cannot train: "
                            f"{status['last_error']}; {daemon.log_tail()}")
        return self._nodes[daemon.name], status, events

    # -------------------------------------------------------------- start ----

    def _start(self):
        self._screen.say(f"starts {len(NAMES)} daemons on loopback "
                         f"(seed {self._arguments.seed})")
        self._fleet.start(self._settings)
        self._fleet.connect()
        self._fleet.watch()
        while not self._linked():
            self._update()
        for daemon in self._fleet.daemons:
            self._screen.say(f"{daemon.name} listens on {daemon.address}, "
                             f"its log is {daemon.log}")

    def _settings(self, index, daemon):
        return SETTINGS.format(
            name=daemon.name, folder=daemon.folder, socket=daemon.socket,
            classes=CLASSES, train=TRAIN, test=TEST, count=len(NAMES),
            index=index, seed=self._arguments.seed)

    def _linked(self):
        return len(self._status) == len(NAMES) and all(
            sum(peer["linked"] for peer in status["peers"]) == len(NAMES) - 1
            for status in self._status.values())

    # ----------------------------------------------------------- together ----

    def _together(self):
        steps = self._arguments.steps
        plan = self._plan(
            "plan.yaml", algorithm=self._way.name, members=", ".join(NAMES),
            knobs=self._way.knobs(), steps=steps)
        self._dflctl("plan", "apply", plan, "--yes")
        self._dflctl("train", "start")
        # When, as a share of the steps; what; how its effect shows.
        changes = [(RING_AT, self._make_ring, self._is_ring),
                   (RATE_AT, self._change_knob, self._has_knob)]
        waits_for = None  # version that is being taken up
        while True:
            update = self._update()
            if update is not None:
                self._note_together(*update)
            self._screen.progress(self._together_block, self._together_line)
            if len(self._status) < len(NAMES):
                continue
            if waits_for is not None:
                if any(len(node.adoptions) < waits_for[0]
                       for node in self._nodes.values()):
                    continue
                self._show_taken_up(waits_for[1])
                waits_for = None
            done = self._slowest_step()
            if changes and done >= changes[0][0] * steps:
                _, change, check = changes.pop(0)
                words = change()
                self._changes.append(" ".join(words))
                answers = self._dflctl(*words)["targets"]
                waits_for = (answers[0]["version"], check)
            elif all(s["phase"] == "finished" for s in self._status.values()):
                break
        if changes:
            raise DemoError("the nodes had finished before dflctl could step in")
        self._screen.progress(self._together_block, self._together_line, True)
        self._screen.settle()
        for name, status in self._status.items():
            self._conclude_together(self._nodes[name], status)

    def _slowest_step(self):
        return min(s["step"] for s in self._status.values())

    def _note_together(self, node, status, events):
        node.train_rows = status["train_rows"]
        # An event may come some milliseconds before the status shows it.
        node.adopted_at += [event["step"] for event in events
                            if event["kind"] == "plan-adopted"]
        if len(node.adoptions) < status["plan_version"] <= len(node.adopted_at):
            neighbours = self._neighbours(status)
            node.adoptions.append(Adoption(
                status["plan_version"],
                node.adopted_at[status["plan_version"] - 1],
                self._way.need(status, len(neighbours)), neighbours))
        self._note_evaluation(status, node.together,
                              status["bytes_sent"], status["dense_bytes_sent"])

    @staticmethod
    def _note_evaluation(status, curve, *more):
        evaluation = status["evaluation"]
        if evaluation is None:
            return
        if curve and curve[-1][0] >= evaluation["step"]:
            return
        curve.append((evaluation["step"], evaluation["accuracy"], *more))

    @staticmethod
    def _neighbours(status):
        return [p["node"] for p in status["peers"] if p["neighbour"]]

    def _show_taken_up(self, check):
        for name in NAMES:
            status = self._status[name]
            check(name, status)
            adoption = self._nodes[name].adoptions[-1]
            self._screen.say(
                f"  {name}: plan {status['plan_version']} in force from step "
                f"{adoption.step}; {status['topology']}, neighbours "
                f"{' '.join(self._neighbours(status))}; "
                f"{self._way.knob} = {status['knobs'][self._way.knob]:g}")

    @staticmethod
    def _make_ring():
        return "topology", "set", "ring"

    def _change_knob(self):
        def accuracy(name):
            curve = self._nodes[name].together
            return curve[-1][1] if curve else 0.0
        self._changed_node = min(NAMES, key=accuracy)
        return self._way.change(self._changed_node)

    def _is_ring(self, name, status):
        at = NAMES.index(name)
        expected = sorted({NAMES[at - 1], NAMES[(at + 1) % len(NAMES)]})
        if self._neighbours(status) != expected:
            raise DemoError(
                f"{name} has plan {status['plan_version']} in force, and its "
                f"neighbours are {self._neighbours(status)}, not {expected}")

    def _has_knob(self, name, status):
        expected = self._way.expected(name, self._changed_node)
        found = status["knobs"][self._way.knob]
        if found != expected:
            raise DemoError(
                f"{name} has plan {status['plan_version']} in force, and its "
                f"{self._way.knob} is {found}, not {expected}")

    def _conclude_together(self, node, status):
        node.together_accuracy = status["evaluation"]["accuracy"]
        node.bytes_sent = status["bytes_sent"]
        node.dense_bytes = status["dense_bytes_sent"]
        node.missed = status["missed"]
        node.seconds = status["training_seconds"]
        if not self._way.divides:
            node.steps_of_m = [(self._arguments.steps, 1)]
            return
        node.kappa = round(status["gauges"]["kappa"])
        node.steps_of_m = self._steps_of_m(node)
        if round(status["gauges"]["m"]) != node.steps_of_m[-1][1]:
            raise DemoError(
                f"{node.name} ended with m = {status['gauges']['m']:g}, and by "
                f"its plans it would be {node.steps_of_m[-1][1]}; did a "
                f"neighbour miss a deadline? ({node.missed} answers did)")

    def _steps_of_m(self, node):
        """(end, m): the node divided its steps by m before step `end`.

        m changes in an exchange, at a multiple of kappa; and a node asks one
        step ahead, so the exchange of the very step at which a plan comes into
        force still goes by the plan before.
        """
        segments = []
        for adoption, following in zip(node.adoptions, node.adoptions[1:]):
            end = -(-(following.step + 1) // node.kappa) * node.kappa
            segments.append((min(end, self._arguments.steps), adoption.need))
        segments.append((self._arguments.steps, node.adoptions[-1].need))
        merged = []
        for end, m in segments:
            if merged and merged[-1][1] == m:
                merged.pop()
            if not merged or merged[-1][0] < end:
                merged.append((end, m))
        return merged

    def _together_block(self):
        rows = [["node", "step", "accuracy", "loss", "plan", "topology",
                 "neighbours", "sent", "dense would be"]]
        for name, s in sorted(self._status.items()):
            evaluation = s["evaluation"]
            rows.append([
                name, f"{s['step']}/{s['stop_steps']}",
                "-" if evaluation is None else f"{evaluation['accuracy']:.3f}",
                f"{s['loss']:.3f}", str(s["plan_version"]), s["topology"],
                " ".join(self._neighbours(s)), bytes_text(s["bytes_sent"]),
                bytes_text(s["dense_bytes_sent"])])
        return [self._bar()] + table(rows, right={1, 2, 3, 4, 7, 8})

    def _bar(self):
        steps = self._arguments.steps
        done = sum(s["step"] for s in self._status.values()) / len(NAMES)
        speed = sum(s["steps_per_second"] for s in self._status.values())
        width = 40
        filled = min(width, int(width * done / steps))
        return (f"[{'#' * filled}{'.' * (width - filled)}] "
                f"{100 * done / steps:3.0f} %  {speed:.0f} steps/s")

    def _together_line(self):
        sent = sum(s["bytes_sent"] for s in self._status.values())
        return f"{self._line()}; sent {bytes_text(sent)}"

    def _line(self):
        return (f"step {self._slowest_step()}/{self._arguments.steps}; "
                "accuracy " + " ".join(
                    "-" if s["evaluation"] is None
                    else f"{s['evaluation']['accuracy']:.3f}"
                    for _, s in sorted(self._status.items())))

    # -------------------------------------------------------------- alone ----

    def _alone(self):
        """The same nodes, data, first model and steps, and no exchange.

        A network has one plan, so each is a network of its own now. Its plan's
        stop rule ends where m changed in the run together; dflctl then sets the
        next m and the next end.
        """
        self._screen.say("now each alone: same first model, batches, steps and "
                         "step sizes, no exchange; the daemons start anew and "
                         "do not know of one another")
        self._fleet.start_anew("-alone", self._settings)
        self._status = {}
        self._moved = (0, 0.0)
        self._fleet.watch()
        ahead = {}   # what each has yet to do: (end, m)
        ends = {}    # of what each is doing now
        for daemon in self._fleet.daemons:
            node = self._nodes[daemon.name]
            (end, m), *ahead[node.name] = node.steps_of_m
            ends[node.name] = end
            plan = self._plan(
                f"alone-{node.name}.yaml", algorithm="local",
                members=node.name, steps=end,
                knobs=self._way.alone(m))
            self._dflctl("plan", "apply", plan, "--yes", to=[daemon])
        self._dflctl("train", "start")
        targets = {d.name: d for d in self._fleet.daemons}
        left = set(NAMES)
        while left:
            update = self._update()
            if update is None:
                continue
            node, status, _ = update
            if node.name not in left:
                continue
            self._note_evaluation(status, node.alone)
            self._screen.progress(self._alone_block, self._alone_line)
            # Updates may come from before the last order.
            if (status["phase"] != "finished"
                    or not status["step"] == status["stop_steps"]
                    == ends[node.name]):
                continue
            if not ahead[node.name]:
                node.alone_accuracy = status["evaluation"]["accuracy"]
                left.remove(node.name)
                continue
            ends[node.name], m = ahead[node.name].pop(0)
            to = [targets[node.name]]
            self._fleet.dflctl("set", f"algorithm.knobs.m={m}",
                               f"stop.steps={ends[node.name]}", to=to)
            self._fleet.dflctl("train", "start", to=to)
        self._screen.progress(self._alone_block, self._alone_line, True)
        self._screen.settle()

    def _alone_block(self):
        rows = [["node", "step", "accuracy", "loss", "m"]]
        for name, s in sorted(self._status.items()):
            evaluation = s["evaluation"]
            rows.append([
                name, f"{s['step']}/{self._arguments.steps}",
                "-" if evaluation is None else f"{evaluation['accuracy']:.3f}",
                f"{s['loss']:.3f}", str(s["knobs"].get("m", "-"))])
        return [self._bar()] + table(rows, right={1, 2, 3, 4})

    def _alone_line(self):
        return "alone: " + self._line()
