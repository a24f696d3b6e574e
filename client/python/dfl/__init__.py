"""Steers a network of dfld daemons from Python.

    import dfl

    with dfl.connect("unix:/run/dfld/control.sock") as network:
        network.apply("plan.yaml", start=True)
        for progress in network.follow():
            print(progress.step, progress.loss)
        weights = network.fetch_model()
        print(weights["fc.weight"].shape)

Any one daemon answers for the network: members() is its table of them, and
status_of_all() has each member's own report. Every call has a deadline and
raises dfl.Error, whose `code` is the name of a gRPC status code.

Needs Debian's python3-grpcio and python3-protobuf; fetch_model() and
read_safetensors() also python3-numpy. apply(), start(), pause(), resume(),
stop(), save_checkpoint() and restore_checkpoint() call `dflctl`, which
completes plans and signs orders.
"""

from dfl.client import Member, MemberStatus, Network, Progress, connect
from dfl.errors import Error
from dfl.model import Model, read_safetensors

__all__ = ["Error", "Member", "MemberStatus", "Model", "Network", "Progress",
           "connect", "read_safetensors"]
