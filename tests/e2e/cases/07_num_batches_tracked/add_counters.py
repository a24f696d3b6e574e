"""Adds a counter beside each running mean of a safetensors file.

add_counters.py FILE NEW: NAME.num_batches_tracked, a scalar of dtype I64, for
each NAME.running_mean.
"""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    raw = file.read()
size = struct.unpack("<Q", raw[:8])[0]
head, body = json.loads(raw[8:8 + size]), raw[8 + size:]
counters = b""
for name in [n for n in head if n.endswith(".running_mean")]:
    at = len(body) + len(counters)
    counters += struct.pack("<q", 7)
    head[name.replace("running_mean", "num_batches_tracked")] = {
        "dtype": "I64",
        "shape": [],
        "data_offsets": [at, at + 8],
    }
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[2], "wb") as file:
    for part in (struct.pack("<Q", len(text)), text, body, counters):
        file.write(part)
