#!/usr/bin/env python3
"""Scenarios of the Python package dfl; python_module_test.cc starts the daemons.

Usage: python_module.py SCENARIO ARGUMENT...
"""

import os
import signal
import struct
import subprocess
import sys

import numpy

import dfl

PLAN = """members: [%s]
seed: 7
model: {kind: logistic, classes: 3}
algorithm: {name: d-psgd, knobs: {eta: 0.05}}
batch_size: 8
evaluation: {every_steps: 20}
stop: {steps: 200}
"""


def expect_error(codes, call, *arguments, **named):
    """The text of the error, whose code is one of `codes`."""
    try:
        result = call(*arguments, **named)
    except dfl.Error as error:
        assert error.code in codes.split(), "%s: %s" % (error.code, error)
        return str(error)
    raise AssertionError("%r instead of %s" % (result, codes))


def train(folder, *targets):
    networks = [dfl.connect(target) for target in targets]
    first = networks[0]
    assert first.version().node == "a"
    plan = PLAN % "a, b"
    path = os.path.join(folder, "plan.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(plan)
    # A path and a text are the same plan.
    first.apply(path)
    networks[1].apply(plan)
    assert networks[0].plan() == networks[1].plan()
    first.start()

    steps = [progress.step for progress in first.follow(interval=0.1)]
    assert steps == sorted(steps), steps
    assert steps[-1] == 200, steps
    last = list(first.follow())
    assert len(last) == 1 and last[0].phase == "finished", last
    assert last[0].loss < 1.2 and last[0].accuracy > 0.5, last[0]
    assert last[0].node == "a" and last[0].plan_version == 1
    # Leaving the loop ends the call, and nothing else.
    for _ in first.follow(until_end=False):
        break
    assert first.status().node.step == 200

    members = first.members()
    me = [member for member in members if member.is_self]
    assert [member.node for member in me] == ["a"], members
    answers = first.status_of_all(nodes=["a"])
    assert answers["a"].error is None
    assert answers["a"].status.node.step == 200
    assert answers["a"].age_seconds < 60
    assert first.ping("a") == 0
    assert any("plan version 1" in event.text for event in first.events())

    saved = os.path.join(folder, "a.ckpt")
    said = first.save_checkpoint(saved)["targets"][0]
    assert said["checkpoint"]["steps"] == 200, said
    assert os.path.getsize(saved) == said["checkpoint"]["bytes"]
    newest = first.checkpoints()[0]
    assert newest.node == "a" and newest.steps == 200, newest
    back = first.restore_checkpoint(saved)["targets"][0]
    assert back["phase"] == "paused", back
    list(networks[1].follow())  # until it does not train, either
    assert "of node a, and this node is b" in expect_error(
        "FAILED_PRECONDITION", networks[1].restore_checkpoint, saved)

    model = first.fetch_model()
    assert model.step == 200
    assert model["linear.weight"].shape == (3, 4), model
    assert model["linear.weight"].dtype == numpy.float32
    assert numpy.isfinite(model["linear.bias"]).all()
    assert "dfl.contract" in model.description or model.description, model
    exported = os.path.join(folder, "exported.safetensors")
    subprocess.run([os.environ["DFLCTL"], "model", "export", exported,
                    "--target", targets[0]], check=True,
                   stdout=subprocess.DEVNULL)
    with open(exported, "rb") as file:
        same = dfl.read_safetensors(file.read())
    assert set(same) == set(model)
    for name, array in model.items():
        assert (same[name] == array).all(), name
    for network in networks:
        network.close()


def errors(target):
    network = dfl.connect(target, timeout=5)
    text = expect_error("NOT_FOUND", network.members, nodes=["nobody"])
    assert "nobody" in text, text
    expect_error("NOT_FOUND", network.status_of_all, nodes=["nobody"])
    expect_error("NOT_FOUND", network.ping, "nobody")
    expect_error("FAILED_PRECONDITION", network.fetch_model)  # there is no plan
    text = expect_error("FAILED_PRECONDITION", network.start)
    assert "plan" in text, text
    expect_error("FAILED_PRECONDITION",
                 dfl.connect(target, dflctl="/nonexistent").start)
    network.apply(PLAN % "a")
    text = expect_error("FAILED_PRECONDITION INVALID_ARGUMENT", network.apply,
                        PLAN.replace("logistic", "logistik") % "a")
    assert "logistic" in text, text

    text = expect_error("UNAVAILABLE",
                        dfl.connect("unix:/nonexistent", timeout=2).status)
    assert "/nonexistent" in text, text
    expect_error("UNAVAILABLE", list,
                 dfl.connect("unix:/nonexistent", timeout=2).follow())
    expect_error("INVALID_ARGUMENT", dfl.connect, "nonsense")
    expect_error("UNAUTHENTICATED", dfl.connect, "127.0.0.1:1")

    good = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    whole = struct.pack("<Q", len(good)) + good + struct.pack("<2f", 1, 2)
    assert dfl.read_safetensors(whole)["x"].tolist() == [1, 2]
    wide = good.replace(b"F32", b"BF16").replace(b"0,8", b"0,4")
    wide = struct.pack("<Q", len(wide)) + wide + b"\x80\x3f\x00\x40"
    assert dfl.read_safetensors(wide)["x"].tolist() == [1, 2]
    for damaged in [b"", whole[:4], whole[:-1],
                    struct.pack("<Q", 1 << 60) + good,
                    whole.replace(b"F32", b"F31"),
                    whole.replace(b"[2]", b"[3]"),
                    whole.replace(b"[0,8]", b"[1,8]"),
                    whole.replace(b'{"x"', b'["x"')]:
        expect_error("DATA_LOSS", dfl.read_safetensors, damaged)


def dying(target, pid):
    network = dfl.connect(target, timeout=1)
    # It freezes while it is followed, and wakes up again.
    stream = network.follow(interval=0.2, until_end=False)
    assert next(stream).node == "a"
    os.kill(int(pid), signal.SIGSTOP)
    try:
        text = expect_error("DEADLINE_EXCEEDED", list, stream)
        assert "and then nothing" in text, text
        expect_error("DEADLINE_EXCEEDED", network.status)
    finally:
        os.kill(int(pid), signal.SIGCONT)
    network = dfl.connect(target, timeout=20)
    stream = network.follow(interval=0.2, until_end=False)
    assert next(stream).node == "a"
    os.kill(int(pid), signal.SIGKILL)
    text = expect_error("UNAVAILABLE", list, stream)
    assert target in text, text


def secured(folder, address):
    def who(name):
        return os.path.join(folder, name)
    network = dfl.connect(address, identity=who("alice"))
    assert network.version().cluster == "plant-4"
    network.apply(PLAN % "a", start=True)  # signed by alice
    assert list(network.follow(interval=0.1))[-1].phase == "finished"
    assert network.fetch_model().step == 200
    viewer = dfl.connect(address, identity=who("eve"))
    assert viewer.status().node.node == "a"
    expect_error("PERMISSION_DENIED", viewer.fetch_model)
    expect_error("PERMISSION_DENIED", viewer.stop)
    # An authority of the same name is another network.
    expect_error("UNAUTHENTICATED", dfl.connect, address,
                 identity=who("mallory"))
    expect_error("FAILED_PRECONDITION", dfl.connect, address,
                 identity=who("nobody"))
    # Plain text is not spoken there.
    expect_error("UNAVAILABLE",
                 dfl.connect("insecure:" + address, timeout=2).status)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
