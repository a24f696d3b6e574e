# Predicts with a logistic model: use_model.py model.safetensors 5.1,3.5,1.4,0.2
import json, sys
import numpy as np

raw = open(sys.argv[1], "rb").read()
start = 8 + int.from_bytes(raw[:8], "little")
header = json.loads(raw[8:start])
contract = json.loads(header.pop("__metadata__")["dfl.contract"])
tensor = {name: np.frombuffer(raw, "<f4", (e := t["data_offsets"])[1] - e[0] >> 2, start + e[0]).reshape(t["shape"])
          for name, t in header.items() if t["dtype"] == "F32"}
scale = contract["input"]
row = np.array(sys.argv[2].split(","), float) / scale["divide"]
row = (row - np.array(scale.get("mean", 0))) / np.array(scale.get("std", 1))
print(contract["classes"][(tensor["linear.weight"] @ row + tensor["linear.bias"]).argmax()])
