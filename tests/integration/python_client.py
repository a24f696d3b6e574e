#!/usr/bin/env python3
"""A client of another make than ours: Debian's grpcio against one daemon.

Usage: python_client.py STUBS CONTROL PEER TLS

  STUBS    folder of the modules that protoc made of the protos
  CONTROL  host:port of the control service
  PEER     host:port of the peer service
  TLS      folder with ca.pem, and NAME/cert.pem and NAME/key.pem of alice (an
           operator), eve (a viewer), b (a node) and mallory (an operator of an
           authority of her own); the daemon is node a of network plant-4

Valid, malformed, oversized, replayed and unauthorised calls on both planes.
Prints a line for each check; exit code 1 when one of them fails.
"""

import hashlib
import queue
import subprocess
import sys

import grpc

STUBS, CONTROL, PEER, TLS = sys.argv[1:5]
sys.path.insert(0, STUBS)

# pylint: disable=wrong-import-position
from dfl.control.v1 import control_pb2 as control  # noqa: E402
from dfl.control.v1 import control_pb2_grpc as control_grpc  # noqa: E402
from dfl.peer.v1 import peer_pb2 as peer  # noqa: E402
from dfl.peer.v1 import peer_pb2_grpc as peer_grpc  # noqa: E402
from dfl.record.v1 import record_pb2 as record  # noqa: E402

Code = grpc.StatusCode
SERVICE = "/dfl.control.v1.ControlService/"
PLAN = """version: %d
run: beside
seed: 11
members: [a, b]
model: {kind: linear, classes: 0}
topology: {kind: complete}
algorithm: {name: local}
batch_size: 10
stop: {steps: 5}
"""
URI = {"alice": "operator", "eve": "viewer", "b": "node",
       "mallory": "operator"}
# How a record ends that nobody may be given.
REFUSED = [Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT,
           Code.FAILED_PRECONDITION]
failures = 0


def check(name, holds, found=""):
    global failures
    print("%s %s %s" % ("ok    " if holds else "FAILED", name,
                        " ".join(found.split())[:120]))
    failures += not holds


def read(name):
    with open("%s/%s" % (TLS, name), "rb") as file:
        return file.read()


def channel(address, who):
    options = [("grpc.ssl_target_name_override", "a"),
               ("grpc.use_local_subchannel_pool", 1)]
    if who == "plaintext":
        return grpc.insecure_channel(address, options)
    if who == "nobody":
        credentials = grpc.ssl_channel_credentials(read("ca.pem"))
    else:
        credentials = grpc.ssl_channel_credentials(
            read("ca.pem"), read(who + "/key.pem"), read(who + "/cert.pem"))
    return grpc.secure_channel(address, credentials, options)


def code(call, *arguments):
    """The status with which a call ends, and its text."""
    try:
        call(*arguments, timeout=20)
    except grpc.RpcError as error:
        return error.code(), error.details()
    return Code.OK, ""


def expect(name, wanted, call, *arguments):
    found, text = code(call, *arguments)
    check(name, found in wanted, "%s %s" % (found.name, text[:100]))


def sign(signer, kind, counter, content, **changes):
    """A record, signed by the command of OpenSSL."""
    body = record.RecordBody(
        cluster="plant-4", kind=kind, counter=counter,
        author="spiffe://plant-4/%s/%s" % (URI[signer], signer),
        content_sha256=hashlib.sha256(content).digest())
    for key, value in changes.items():
        setattr(body, key, value)
    data = body.SerializeToString()
    signature = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", "%s/%s/key.pem" %
         (TLS, signer)], input=b"dfl-record-v1\n" + data,
        stdout=subprocess.PIPE, check=True).stdout
    certificate = subprocess.run(
        ["openssl", "x509", "-outform", "DER", "-in", "%s/%s/cert.pem" %
         (TLS, signer)], stdout=subprocess.PIPE, check=True).stdout
    return record.SignedRecord(body=data, signature=signature,
                               certificates=[certificate], content=content)


def plan(signer, version, **changes):
    return sign(signer, record.RECORD_KIND_PLAN, version,
                (PLAN % version).encode(), **changes)


def apply(signed):
    return control.ApplyPlanRequest(record=signed.SerializeToString())


def pause(signer, counter, **changes):
    content = record.PhaseOrder(phase=record.WANTED_PHASE_PAUSED,
                                run_id="beside").SerializeToString()
    return sign(signer, record.RECORD_KIND_PHASE, counter, content, **changes)


def put(signed):
    return control.PutRecordRequest(record=signed.SerializeToString())


def raw(link, method):
    return link.unary_unary(SERVICE + method, request_serializer=bytes,
                            response_deserializer=bytes)


def control_valid(alice):
    version = alice.GetVersion(control.GetVersionRequest(), timeout=20)
    check("control: version", version.node == "a" and
          version.cluster == "plant-4")
    status = alice.GetStatus(control.GetStatusRequest(), timeout=20).status
    check("control: status", status.node.node == "a" and not status.insecure
          and status.certificate_days > 0)
    first = next(alice.Watch(control.WatchRequest(), timeout=20))
    check("control: watch", first.status.node.node == "a")
    expect("control: dry run", [Code.OK], alice.ApplyPlan,
           control.ApplyPlanRequest(yaml=PLAN % 1, dry_run=True))
    expect("control: signed plan", [Code.OK], alice.ApplyPlan,
           apply(plan("alice", 1)))
    expect("control: signed phase", [Code.OK], alice.PutRecord,
           put(pause("alice", 1)))
    records = alice.ListRecords(control.ListRecordsRequest(), timeout=20)
    check("control: records", sorted(
        (r.kind, r.author) for r in records.records if r.current) == [
            ("phase", "spiffe://plant-4/operator/alice"),
            ("plan", "spiffe://plant-4/operator/alice")], str(records)[:200])


def control_replayed(alice):
    again = alice.ApplyPlan(apply(plan("alice", 2)), timeout=20)
    check("control: next plan", again.version == 2)
    signed = plan("alice", 3)
    expect("control: plan 3", [Code.OK], alice.ApplyPlan, apply(signed))
    again = alice.ApplyPlan(apply(signed), timeout=20)
    check("control: the same record again", again.unchanged)
    expect("control: an old record again", [Code.ABORTED], alice.ApplyPlan,
           apply(plan("alice", 2)))


def control_malformed(alice, link):
    bad = [Code.INTERNAL, Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED]
    for method in ("Train", "ApplyPlan", "PutRecord", "GetStatus"):
        expect("control: garbage to " + method, bad, raw(link, method),
               b"\xff\xff\xff\xff")
    expect("control: unset enum", [Code.INVALID_ARGUMENT], alice.Train,
           control.TrainRequest())
    expect("control: unknown method", [Code.UNIMPLEMENTED],
           raw(link, "Nothing"), b"")
    expect("control: garbage as a record", [Code.INVALID_ARGUMENT],
           alice.PutRecord, control.PutRecordRequest(record=b"\x00" * 100))
    broken = pause("alice", 9)
    broken.signature = broken.signature[:-1] + bytes(
        [broken.signature[-1] ^ 1])
    expect("control: broken signature", REFUSED, alice.PutRecord, put(broken))
    other = pause("alice", 9)
    other.content = record.PhaseOrder(
        phase=record.WANTED_PHASE_STOPPED,
        run_id="beside").SerializeToString()
    expect("control: other content", REFUSED, alice.PutRecord, put(other))
    expect("control: other cluster", REFUSED, alice.PutRecord,
           put(pause("alice", 9, cluster="plant-5")))
    expect("control: other author", REFUSED, alice.PutRecord,
           put(pause("alice", 9,
                     author="spiffe://plant-4/operator/bob")))


def control_oversized(alice):
    expect("control: plan of 8 MiB + 1", [Code.INVALID_ARGUMENT],
           alice.ApplyPlan, control.ApplyPlanRequest(
               yaml="#" * ((8 << 20) + 1), dry_run=True))
    expect("control: message of 9 MiB", [Code.RESOURCE_EXHAUSTED],
           alice.PutRecord, control.PutRecordRequest(record=bytes(9 << 20)))
    expect("control: metadata of 1 MiB",
           [Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE, Code.INTERNAL],
           lambda request, timeout: alice.GetStatus(
               request, timeout=timeout, metadata=[("x", "y" * (1 << 20))]),
           control.GetStatusRequest())


def control_unauthorised(alice):
    eve = control_grpc.ControlServiceStub(channel(CONTROL, "eve"))
    expect("control: viewer reads", [Code.OK], eve.GetStatus,
           control.GetStatusRequest())
    for name, call, request in (
            ("pauses", eve.Train, control.TrainRequest(
                action=control.TRAIN_ACTION_PAUSE)),
            ("brings a plan", eve.ApplyPlan, apply(plan("alice", 9))),
            ("brings a record", eve.PutRecord, put(pause("alice", 9)))):
        expect("control: viewer " + name, [Code.PERMISSION_DENIED], call,
               request)
    for author in ("eve", "b", "mallory"):
        expect("control: plan of " + author, REFUSED, alice.ApplyPlan,
               apply(plan(author, 9)))
    expect("control: unsigned plan", [Code.PERMISSION_DENIED],
           alice.ApplyPlan, control.ApplyPlanRequest(yaml=PLAN % 9))
    for who in ("b", "mallory", "nobody", "plaintext"):
        stub = control_grpc.ControlServiceStub(channel(CONTROL, who))
        expect("control: handshake of " + who, [Code.UNAVAILABLE],
               stub.GetStatus, control.GetStatusRequest())


class Messages:
    """A stream of requests that stays open until it is closed."""

    def __init__(self, *first):
        self.queue = queue.Queue()
        for message in first:
            self.queue.put(message)

    def __iter__(self):
        return self

    def __next__(self):
        message = self.queue.get()
        if message is None:
            raise StopIteration
        return message


def hello(node="b", cluster="plant-4", nonce=77, newest=2):
    return peer.Hello(protocol_version=newest, oldest_protocol_version=1,
                      node=node, incarnation=4711, link_nonce=nonce,
                      cluster=cluster)


def stream_end(link, first, later=()):
    """Answers to a Control stream until it ends, and how it ends."""
    messages = Messages(*first)
    stub = link.stream_stream(
        "/dfl.peer.v1.PeerService/Control", request_serializer=lambda m:
        m if isinstance(m, bytes) else m.SerializeToString(),
        response_deserializer=peer.ControlResponse.FromString)
    answers = []
    try:
        for answer in stub(messages, timeout=20):
            if not answers:
                for message in later:
                    messages.queue.put(message)
            answers.append(answer)
            if not later:
                break
    except grpc.RpcError as error:
        return answers, error.code()
    finally:
        messages.queue.put(None)
    return answers, Code.OK


def peer_calls():
    link = channel(PEER, "b")
    request = peer.ControlRequest
    # A link is a Control and a Bulk stream of the same nonce.
    bulk = Messages(peer.BulkRequest(hello=hello()))
    answers_of_bulk = peer_grpc.PeerServiceStub(link).Bulk(bulk, timeout=20)
    answers, _ = stream_end(link, [request(hello=hello())])
    check("peer: hello", bool(answers) and answers[0].hello.node == "a" and
          answers[0].hello.cluster == "plant-4" and
          answers[0].hello.link_nonce == 77, str(answers)[:200])
    bulk.queue.put(None)
    answers_of_bulk.cancel()

    def refused(name, first, later=()):
        with channel(PEER, "b") as other:
            answers, end = stream_end(other, first, later)
        named = [a for a in answers if a.HasField("hello")]
        check("peer: " + name, end != Code.OK and (later or not named),
              end.name)

    state = request(frame=peer.ControlFrame(state=peer.State()))
    refused("garbage", [b"\xff\xff\xff\xff"])
    refused("a frame before the hello", [state])
    refused("no node", [request(hello=hello(node=""))])
    refused("the name of another node", [request(hello=hello(node="c"))])
    refused("the daemon's own hello", [request(hello=hello(node="a"))])
    refused("another cluster", [request(hello=hello(cluster="plant-5"))])
    refused("no cluster", [request(hello=hello(cluster=""))])
    refused("no nonce", [request(hello=hello(nonce=0))])
    refused("a version without records",
            [request(hello=hello(newest=1))])
    refused("an oversized hello", [request(hello=hello(node="b" * 70000))])
    for who in ("alice", "eve", "mallory", "nobody", "plaintext"):
        with channel(PEER, who) as other:
            _, end = stream_end(other, [request(hello=hello())])
        check("peer: handshake of " + who, end == Code.UNAVAILABLE, end.name)
    # A node's certificate opens no control, and an operator's no peer plane.
    expect("peer: control on the peer plane", [Code.UNIMPLEMENTED],
           raw(link, "GetStatus"), b"")
    with channel(CONTROL, "alice") as other:
        _, end = stream_end(other, [request(hello=hello())])
    check("control: a peer's stream", end == Code.UNIMPLEMENTED, end.name)


def main():
    link = channel(CONTROL, "alice")
    alice = control_grpc.ControlServiceStub(link)
    control_valid(alice)
    control_replayed(alice)
    control_malformed(alice, link)
    control_oversized(alice)
    control_unauthorised(alice)
    peer_calls()
    expect("control: still there", [Code.OK], alice.GetStatus,
           control.GetStatusRequest())
    held = alice.GetPlan(control.GetPlanRequest(), timeout=20)
    check("control: no stranger changed the plan", held.version == 3)
    return 1 if failures else 0


sys.exit(main())
