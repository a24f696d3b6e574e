"""One daemon, and through it the network."""

import collections
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time

import grpc

from dfl.control.v1 import control_pb2 as pb
from dfl.control.v1 import control_pb2_grpc
from dfl.errors import Error
from dfl.model import read_safetensors
from dfl.tls import Identity, channel, split

_PART_BYTES = 1 << 20
_MOST_MESSAGE_BYTES = 16 << 20
_ATTEMPTS = 4

Member = collections.namedtuple("Member", [
    "node", "state", "reason", "suspect", "labels", "addresses", "rows",
    "participation", "plan_version", "plan_hash", "linked", "seconds_in_state",
    "starts", "is_self"])
Member.__doc__ = """A member as the daemon that answers believes it to be;
`state` is "alone", "joining", "member", "degraded", "draining", "left" or
"dead"."""

MemberStatus = collections.namedtuple(
    "MemberStatus", ["member", "status", "age_seconds", "error"])
MemberStatus.__doc__ = """What a member says of itself: `status` is a message
dfl.control.v1.DaemonStatus, at most `age_seconds` old. Or None, and then
`error` is the dfl.Error that says why."""

Progress = collections.namedtuple("Progress", [
    "node", "phase", "step", "round", "loss", "accuracy", "steps_per_second",
    "plan_version", "events", "status"])
Progress.__doc__ = """How a node's training is. `phase` is "training",
"finished", ...; `loss` and `accuracy` are None before there are any. `events`
are the sentences of what happened since the one before, and `status` is the
message dfl.control.v1.DaemonStatus that all of this is from."""

# After these a run does not go on by itself.
_ENDS = ("finished", "stopped", "failed")


def _word(enum, value, prefix):
    try:
        return enum.Name(value)[len(prefix):].lower()
    except ValueError:
        return "unknown"  # of a newer daemon


def _member(message):
    return Member(
        message.node,
        _word(pb.MemberState, message.state, "MEMBER_STATE_"), message.reason,
        message.suspect, dict(message.labels), list(message.addresses),
        message.rows,
        _word(pb.Participation, message.participation, "PARTICIPATION_"),
        message.plan_version, message.plan_hash, message.linked,
        message.seconds_in_state, message.starts, getattr(message, "self"))


def _progress(message):
    node = message.status.node
    scored = node.HasField("evaluation") and \
        node.evaluation.HasField("accuracy")
    return Progress(
        node.node, _word(pb.Phase, node.phase, "PHASE_"), node.step, node.round,
        node.loss if node.HasField("loss") else None,
        node.evaluation.accuracy if scored else None, node.steps_per_second,
        node.plan_version, [event.text for event in message.events],
        message.status)


class _Watchdog:
    """Cancels a stream on which nothing comes for too long."""

    def __init__(self, call):
        self._call = call
        self._timer = None
        self.fired = False

    def arm(self, seconds):
        self.disarm()
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def disarm(self):
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self):
        self.fired = True
        self._call.cancel()


def connect(target, identity=None, timeout=10.0, dflctl=None):
    """A daemon at "unix:/path" or "host:port" (mutual TLS, with the folder
    `identity` of a person's certificate), or at "insecure:host:port".

    `timeout` is in seconds and for each call. `dflctl` is the program that
    gives orders; by default $DFLCTL, or what the PATH has."""
    return Network(target, identity, timeout, dflctl)


class Network:
    """Made by connect(). May be used by several threads."""

    def __init__(self, target, identity, timeout, dflctl):
        if target.startswith(("/", "./")):
            target = "unix:" + target
        self.target = target
        self.timeout = timeout
        self._folder = identity
        self._dflctl = dflctl or os.environ.get("DFLCTL") or \
            shutil.which("dflctl")
        options = [("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
                   ("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0),
                   ("grpc.initial_reconnect_backoff_ms", 50),
                   ("grpc.max_reconnect_backoff_ms", 1000),
                   ("grpc.use_local_subchannel_pool", 1)]
        if target.startswith("unix:"):
            self._channel = grpc.insecure_channel(target, options)
        elif target.startswith("insecure:"):
            address = target[len("insecure:"):]
            split(address)
            self._channel = grpc.insecure_channel(address, options)
        else:
            split(target)
            if identity is None:
                raise Error("UNAUTHENTICATED",
                            "%s: a daemon on the network is told who calls; "
                            "give the folder of your certificate as identity="
                            % target)
            self._channel = channel(target, Identity(identity), timeout,
                                    options)
        self._stub = control_pb2_grpc.ControlServiceStub(self._channel)

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- what is there ----

    def version(self):
        """The message GetVersionResponse."""
        return self._read(self._stub.GetVersion, pb.GetVersionRequest())

    def status(self):
        """The daemon's own status, as a message DaemonStatus."""
        return self._read(self._stub.GetStatus, pb.GetStatusRequest()).status

    def members(self, nodes=(), labels=()):
        """The members that one of the names or labels ("site=north") means; all
        by default. Those that left or died are listed for a while."""
        answer = self._read(self._stub.ListMembers, pb.ListMembersRequest(
            selection=pb.MemberSelection(nodes=nodes, labels=labels)))
        return [_member(member) for member in answer.members]

    def ask(self, nodes=(), labels=(), within=5.0):
        """Yields a MemberStatus for each member, as soon as it has answered or
        failed to within so many seconds."""
        request = pb.AskMembersRequest(
            selection=pb.MemberSelection(nodes=nodes, labels=labels),
            timeout_seconds=within)
        longest = self.timeout + within
        for answer in self._stream(self._stub.AskMembers, request, longest,
                                   longest):
            if answer.HasField("status"):
                yield MemberStatus(_member(answer.member), answer.status,
                                   answer.age_seconds, None)
            else:
                yield MemberStatus(
                    _member(answer.member), None, 0,
                    Error(_code_name(answer.failure.code), "%s: %s" % (
                        answer.member.node, answer.failure.text)))

    def status_of_all(self, nodes=(), labels=(), within=5.0):
        """The MemberStatus of each member, by its name."""
        answers = {}
        for answer in self.ask(nodes, labels, within):
            answers[answer.member.node] = answer
        return answers

    def ping(self, node, within=2.0):
        """Seconds to `node` and back."""
        return self._read(
            self._stub.PingMember,
            pb.PingMemberRequest(node=node, timeout_seconds=within),
            self.timeout + within).round_trip_seconds

    def events(self, limit=256):
        """The newest messages Event that the daemon remembers, oldest first."""
        return list(self._read(self._stub.ListEvents, pb.ListEventsRequest(
            limit=limit)).events)

    def plan(self):
        """The text of the newest plan that the daemon holds; "": none."""
        return self._read(self._stub.GetPlan, pb.GetPlanRequest()).yaml

    # ---- training ----

    def apply(self, plan, start=False):
        """Brings a plan, the path of its file or its text, to the network; with
        `start` training begins. Returns what `dflctl plan apply` says."""
        arguments = ["plan", "apply", "--yes"] + ["--start"] * bool(start)
        if "\n" not in plan and ": " not in plan:
            return self._order(arguments + [plan])
        with tempfile.NamedTemporaryFile(
                "w", suffix=".yaml", encoding="utf-8") as file:
            file.write(plan)
            file.flush()
            return self._order(arguments + [file.name])

    def start(self, nodes=(), labels=()):
        """Training begins: on these nodes and those with these labels, or by
        default on all. The network passes the order on."""
        return self._train("start", nodes, labels)

    def pause(self, nodes=(), labels=()):
        """Training halts at the next boundary."""
        return self._train("pause", nodes, labels)

    def resume(self, nodes=(), labels=()):
        """Training goes on after a pause."""
        return self._train("resume", nodes, labels)

    def stop(self, nodes=(), labels=()):
        """Training ends at the next boundary."""
        return self._train("stop", nodes, labels)

    def follow(self, interval=1.0, until_end=True):
        """Yields a Progress at once, every so many seconds, and after each
        evaluation. With `until_end` the one that says that the run is over is
        the last. Leaving the loop ends the call."""
        for message in self._stream(
                self._stub.Watch, pb.WatchRequest(interval_seconds=interval),
                self.timeout, max(interval, 1.0) + self.timeout):
            progress = _progress(message)
            yield progress
            if until_end and progress.phase in _ENDS:
                return
        raise Error("UNAVAILABLE", "%s: the stream ended" % self.target)

    def fetch_model(self):
        """The node's model, as a dfl.Model of NumPy arrays."""
        raw, opened = self.fetch_model_file()
        model = read_safetensors(raw)
        model.step = opened.step
        model.description = json.loads(opened.description or "{}")
        return model

    def fetch_model_file(self):
        """The bytes of a safetensors file, and the message BeginExportResponse.
        """
        opened = self._once(self._stub.BeginExport, pb.BeginExportRequest(
            format=pb.MODEL_FORMAT_SAFETENSORS))
        parts = []
        offset = 0
        try:
            while offset < opened.total_bytes:
                part = self._read(self._stub.ReadExport, pb.ReadExportRequest(
                    token=opened.token, offset=offset,
                    max_bytes=_PART_BYTES)).data
                if not part or len(part) > opened.total_bytes - offset:
                    raise Error("DATA_LOSS",
                                "%s: the export gave %d bytes at offset %d of "
                                "%d; try again" % (self.target, len(part),
                                                   offset, opened.total_bytes))
                parts.append(part)
                offset += len(part)
        finally:
            try:
                self._once(self._stub.EndTransfer,
                           pb.EndTransferRequest(token=opened.token))
            except Error:
                pass  # the daemon forgets it by itself in a minute
        return b"".join(parts), opened

    # ---- checkpoints ----

    def checkpoints(self):
        """The messages CheckpointInfo of what the daemon's node holds, the
        newest first."""
        return list(self._read(self._stub.ListCheckpoints,
                               pb.ListCheckpointsRequest()).checkpoints)

    def save_checkpoint(self, path=None):
        """The daemon's node writes a checkpoint at its next boundary; with
        `path` the newest one is then in that file, too. Returns what
        `dflctl checkpoint save` says."""
        return self._order(["checkpoint", "save"] +
                           ([] if path is None else ["--to", path]))

    def restore_checkpoint(self, path, force=False):
        """The daemon's node, which must not train, goes on from that file once
        it is told to train. With `force` it may be of another version of the
        plan. Returns what `dflctl checkpoint restore` says."""
        return self._order(["checkpoint", "restore", path] +
                           ["--force"] * bool(force))

    # ---- how it is done ----

    def _error(self, error, timeout):
        code = error.code()
        text = error.details() or code.name
        if code == grpc.StatusCode.DEADLINE_EXCEEDED and \
                text == "Deadline Exceeded":
            text = "no answer within %g s" % timeout
        if code == grpc.StatusCode.UNAVAILABLE and "daemon" not in text:
            text = "nobody answers there (%s)" % text
        if code == grpc.StatusCode.UNIMPLEMENTED:
            text = "the daemon is older than this call"
        return Error(code.name, "%s: %s" % (self.target, text))

    def _once(self, method, request, timeout=None):
        timeout = timeout or self.timeout
        try:
            return method(request, timeout=timeout)
        except grpc.RpcError as error:
            raise self._error(error, timeout) from error

    def _read(self, method, request, timeout=None):
        """A call that changes nothing, and may be made twice."""
        timeout = timeout or self.timeout
        deadline = time.monotonic() + timeout
        wait = 0.05
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return method(request,
                              timeout=max(deadline - time.monotonic(), 0.001))
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or \
                        attempt == _ATTEMPTS or \
                        time.monotonic() + wait >= deadline:
                    raise self._error(error, timeout) from error
            time.sleep(wait * random.uniform(0.8, 1.2))
            wait *= 2
        raise AssertionError("unreachable")

    def _stream(self, method, request, first, later):
        call = method(request)
        watchdog = _Watchdog(call)
        came = False
        try:
            watchdog.arm(first)
            for message in call:
                watchdog.disarm()
                came = True
                yield message
                watchdog.arm(later)
        except grpc.RpcError as error:
            if watchdog.fired:
                raise Error("DEADLINE_EXCEEDED", "%s: %s for %g s" % (
                    self.target,
                    "answered, and then nothing" if came else "nothing",
                    later if came else first)) from error
            raise self._error(error, first) from error
        finally:
            watchdog.disarm()
            call.cancel()

    def _train(self, action, nodes, labels):
        arguments = ["train", action, "--network"]
        if nodes:
            arguments += ["--node", ",".join(nodes)]
        if labels:
            arguments += ["--label", ",".join(labels)]
        return self._order(arguments)

    def _order(self, arguments):
        if self._dflctl is None:
            raise Error("FAILED_PRECONDITION",
                        "there is no dflctl in the PATH, and it gives the "
                        "orders; name it with dflctl= or $DFLCTL")
        command = [self._dflctl, *arguments, "--target", self.target,
                   "--output", "json", "--timeout",
                   "%dms" % max(1, round(self.timeout * 1000))]
        if self._folder is not None:
            command += ["--identity", self._folder]
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, check=False,
                                   text=True)
        except OSError as error:
            raise Error("FAILED_PRECONDITION", str(error)) from error
        if ended.returncode != 0:
            raise Error(_EXIT_CODES.get(ended.returncode, "UNKNOWN"),
                        ended.stderr.strip() or "dflctl ended with %d"
                        % ended.returncode)
        return json.loads(ended.stdout) if ended.stdout.strip() else None


def _code_name(number):
    for code in grpc.StatusCode:
        if code.value[0] == number:
            return code.name
    return "UNKNOWN"


# How dflctl ends; see `dflctl --help`.
_EXIT_CODES = {1: "FAILED_PRECONDITION", 2: "INVALID_ARGUMENT",
               3: "UNAVAILABLE", 4: "PERMISSION_DENIED",
               5: "DEADLINE_EXCEEDED", 7: "ABORTED", 8: "UNIMPLEMENTED"}
