#!/usr/bin/env python3
"""The life of the StatefulSet of deploy/kubernetes, as rendered: of overlay dev,
and its start as overlay secure has it.

Usage: statefulset_test.py PROGRAMS [TEST...]

PROGRAMS is the folder of dfld and dflctl. Takes root and kubectl; says what is
missing and ends with 77 where it cannot be done.
"""

import os
import shutil
import signal
import sys

from little_cluster import Cluster, enter, render, run, until

OVERLAYS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../deploy/kubernetes/overlays")
GRACE = 10  # s, in which dfld ends by SIGTERM


def linked(cluster, pod):
    return {p["node"] for p in cluster.status(pod).get("peers", [])
            if p["linked"]}


def all_linked(cluster, pods):
    names = {p.name for p in pods}
    for pod in pods:
        until(f"{pod.name} is linked to {sorted(names - {pod.name})}",
              lambda pod=pod: linked(cluster, pod) >= names - {pod.name})


def learns_with_others(cluster, pod):
    """It makes steps, and models of others come, from now on."""
    before = until(f"{pod.name} answers", lambda: cluster.status(pod))

    def look():
        now = cluster.status(pod)
        return now and now["phase"] == "training" and \
            now["step"] > before["step"] and \
            now["models_received"] > before["models_received"] and not \
            now.get("alone")
    until(f"{pod.name} learns with others", look)


def start_network(cluster, count=3):
    """All pods at once, and the plan by the Job."""
    pods = [cluster.start_pod(i) for i in range(count)]
    for pod in pods:
        pod.wait_ready()
    cluster.run_job("dfld-plan")
    for pod in pods:
        learns_with_others(cluster, pod)
    return pods


def test_parallel_start_and_plan_job(cluster):
    """Pods that start at once find one another by the headless Service; the Job
    gives them the plan through Service dfld-control, and they train."""
    pods = start_network(cluster)
    all_linked(cluster, pods)
    parts = [cluster.status(p)["train_rows"] for p in pods]
    assert all(rows > 0 for rows in parts) and sum(parts) < 240, parts
    # The same plan again is the same run, and nothing begins anew.
    steps = cluster.status(pods[0])["step"]
    run_id = cluster.status(pods[0])["run_id"]
    cluster.run_job("dfld-plan")
    assert cluster.status(pods[0])["run_id"] == run_id
    assert cluster.status(pods[0])["step"] >= steps


def test_ordered_start(cluster):
    """With OrderedReady a pod starts when the one before is ready: a node is
    ready alone, before any other is there."""
    pods = []
    for ordinal in range(3):
        pods.append(cluster.start_pod(ordinal))
        pods[-1].wait_ready()
    all_linked(cluster, pods)


def test_rescheduled_pod(cluster):
    """A machine is lost. Its pod starts elsewhere: another address, the same
    name and volume. It goes on from its checkpoint, and others find it."""
    pods = start_network(cluster)
    lost = pods[1]
    until("dfld-1 has a checkpoint",
          lambda: cluster.dflctl(lost, "checkpoint", "save") and
          cluster.status(lost).get("checkpoint_step", 0) > 0)
    kept = cluster.status(lost)["checkpoint_step"]
    old_address = lost.address
    lost.process.kill()
    lost.process.wait()
    back = cluster.start_pod(1)
    assert back.address != old_address
    back.wait_ready()
    pods[1] = back
    assert until("dfld-1 trains again", lambda: cluster.status(
        back).get("step", 0)) >= kept
    assert "checkpoint" in back.log()
    all_linked(cluster, pods)
    for pod in pods:
        learns_with_others(cluster, pod)
    addresses = cluster.members(pods[0])["dfld-1"]["addresses"]
    assert addresses == [back.address + ":7600"], addresses


def test_rolling_restart(cluster):
    """From the highest ordinal down, each ends by SIGTERM in order and is ready
    again before the next one goes. The others train on."""
    pods = start_network(cluster)
    run_id = cluster.status(pods[0])["run_id"]
    for ordinal in reversed(range(3)):
        steps = cluster.status(pods[ordinal])["step"]
        others = [p for p in pods if p is not pods[ordinal]]
        code = pods[ordinal].stop()
        assert code == 0, f"ended with {code}:\n{pods[ordinal].log()}"
        for pod in others:
            until(f"{pod.name} knows that it has left", lambda pod=pod: cluster.
                  members(pod)[f"dfld-{ordinal}"]["state"] == "left")
            learns_with_others(cluster, pod)
        pods[ordinal] = cluster.start_pod(ordinal)
        pods[ordinal].wait_ready()
        now = until("it trains again", lambda: cluster.status(
            pods[ordinal]).get("step", 0))
        assert now >= steps, f"{now} after {steps}"
    all_linked(cluster, pods)
    for pod in pods:
        learns_with_others(cluster, pod)
        assert cluster.status(pod)["run_id"] == run_id


def test_scaling_drains(cluster):
    """scale.sh takes the set from 3 to 2 and back to 3. The node that goes has
    halted before it is stopped, and takes part again when it comes back."""
    pods = start_network(cluster)
    calls = cluster.file("kubectl-calls")
    # What the script asks of the cluster is done here; it speaks to the nodes
    # themselves.
    kubectl = cluster.file("kubectl")
    with open(kubectl, "w", encoding="utf-8") as out:
        out.write(f"#!/bin/sh\necho \"$*\" >>{calls}\n"
                  "case \"$*\" in *jsonpath*) printf %s \"$REPLICAS\" ;; esac\n")
    os.chmod(kubectl, 0o755)
    script = os.path.join(OVERLAYS, "../scale.sh")
    target = "unix:" + os.path.join(pods[0].volumes["run"], "control.sock")
    environment = dict(
        os.environ, PATH=f"{cluster.folder}:{os.environ['PATH']}",
        DFLCTL=f"{cluster.programs}/dflctl --target {target}")

    run("sh", script, "2", env=dict(environment, REPLICAS="3"))
    with open(calls, encoding="utf-8") as text:
        assert "scale statefulset dfld --replicas=2" in text.read()
    assert cluster.status(pods[2])["phase"] == "paused"
    assert cluster.members(pods[0])["dfld-2"]["state"] == "draining"
    for pod in pods[:2]:
        learns_with_others(cluster, pod)
        until("it has no edge to dfld-2", lambda pod=pod: not any(
            p["node"] == "dfld-2" and p.get("weight", 0) > 0
            for p in cluster.status(pod)["peers"]))
    assert pods[2].stop() == 0, pods[2].log()

    pods[2] = cluster.start_pod(2)
    pods[2].wait_ready()
    run("sh", script, "3", env=dict(environment, REPLICAS="2"))
    all_linked(cluster, pods)
    learns_with_others(cluster, pods[2])


def test_wrong_settings_end_the_container(cluster):
    """A mistake in the ConfigMap ends the container with 78, and the log names
    file and key: CrashLoopBackOff, and nothing trains."""
    settings = next(o for o in cluster.objects if o["kind"] == "ConfigMap"
                    and "dev.yaml" in o["data"])
    settings["data"]["dev.yaml"] = "security: insecure\npaers: [a:7600]\n"
    pod = cluster.start_pod(0)
    assert pod.process.wait(60) == 78, pod.log()
    assert "dev.yaml:2" in pod.log() and "paers" in pod.log(), pod.log()


def test_term_while_it_starts(cluster):
    """A pod that is deleted before it is ready ends at once."""
    pod = cluster.start_pod(0)
    pod.process.send_signal(signal.SIGTERM)
    assert pod.process.wait(GRACE) in (0, -signal.SIGTERM), pod.log()


def test_frozen_pod_fails_its_probe(cluster):
    """A frozen process fails the liveness probe, so the kubelet would start it
    again; the others' probes pass, and they go on."""
    pods = start_network(cluster)
    pods[2].process.send_signal(signal.SIGSTOP)
    assert not pods[2].probe("livenessProbe")
    for pod in pods[:2]:
        assert pod.probe("livenessProbe") and pod.probe("readinessProbe")
        learns_with_others(cluster, pod)
    pods[2].process.send_signal(signal.SIGCONT)
    until("it passes again", lambda: pods[2].probe("livenessProbe"))


def test_secured_start(cluster):
    """Each pod finds its own certificate among the Secrets, whose files are
    root's, and the Job signs the plan with the operator's."""
    authority = cluster.file("authority")
    dflctl = os.path.join(cluster.programs, "dflctl")
    run(dflctl, "cert", "init", "dfl", "--dir", authority)

    def issue(name, role, secret):
        out = cluster.file("tls-" + name)
        run(dflctl, "cert", "issue", name, "--role", role, "--dir", authority,
            "--out", out)
        cluster.secrets[secret] = {}
        for key, file in (("ca.crt", "ca.pem"), ("tls.crt", "cert.pem"),
                          ("tls.key", "key.pem")):
            with open(os.path.join(out, file), "rb") as data:
                cluster.secrets[secret][key] = data.read()

    issue("cluster-job", "operator", "dfld-operator")
    for i in range(3):
        issue(f"dfld-{i}", "node", f"dfld-{i}-tls")
        data = cluster.file(f"claim-data-dfld-{i}")
        os.makedirs(data)
        shutil.copy(os.path.join(OVERLAYS, "dev/train.csv"), data)
    pods = start_network(cluster)
    all_linked(cluster, pods)
    status = cluster.status(pods[0])
    assert not status["insecure"] and status["certificate_days"] > 300, status


test_secured_start.overlay = "secure"


def main(arguments):
    if not arguments:
        print(__doc__)
        return 2
    tests = {name: value for name, value in globals().items()
             if name.startswith("test_")}
    for name in arguments[1:] or tests:
        overlay = getattr(tests[name], "overlay", "dev")
        objects = render(os.path.join(OVERLAYS, overlay))
        with Cluster(objects, os.path.abspath(arguments[0])) as cluster:
            tests[name](cluster)
        print("passed:", name, flush=True)
    return 0


if __name__ == "__main__":
    enter()
    sys.exit(main(sys.argv[1:]))
