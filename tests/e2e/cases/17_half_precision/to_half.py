"""Narrows every F32 tensor of a safetensors file to F16.

to_half.py FILE NEW
"""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    raw = file.read()
size = struct.unpack("<Q", raw[:8])[0]
head, body, out = json.loads(raw[8:8 + size]), raw[8 + size:], b""
for name, tensor in head.items():
    if name == "__metadata__":
        continue
    begin, end = tensor["data_offsets"]
    count = (end - begin) // 4
    values = struct.unpack(f"<{count}f", body[begin:end])
    half = struct.pack(f"<{count}e", *values)
    tensor["dtype"] = "F16"
    tensor["data_offsets"] = [len(out), len(out) + len(half)]
    out += half
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[2], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + out)
