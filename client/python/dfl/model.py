"""Model files as NumPy arrays."""

import json

from dfl.errors import Error

# NumPy's names; "BF16" has none, and becomes float32.
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4",
          "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}
_MOST_HEADER_BYTES = 100 << 20


class Model(dict):
    """Arrays by name. `step` is how many steps the model has seen, and
    `description` what a stranger needs to use it."""

    def __init__(self, arrays, step=0, description=None, metadata=None):
        super().__init__(arrays)
        self.step = step
        self.description = description or {}
        self.metadata = metadata or {}


def _damaged(text):
    return Error("DATA_LOSS", "this is no safetensors file: " + text)


def _array(numpy, raw, start, name, entry):
    try:
        kind, shape = entry["dtype"], [int(n) for n in entry["shape"]]
        begin, end = (int(n) for n in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged("tensor %r has no type, shape and place" % name) \
            from error
    if not 0 <= begin <= end <= len(raw) - start or min(shape, default=0) < 0:
        raise _damaged("tensor %r lies outside the file" % name)
    numbers = 1
    for length in shape:
        numbers *= length
    data = memoryview(raw)[start + begin:start + end]
    if kind == "BF16":
        if numbers * 2 != end - begin:
            raise _damaged("tensor %r has the wrong length" % name)
        wide = numpy.frombuffer(data, "<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(shape)
    if kind not in _TYPES:
        raise _damaged("tensor %r is of type %r" % (name, kind))
    if numbers * numpy.dtype(_TYPES[kind]).itemsize != end - begin:
        raise _damaged("tensor %r has the wrong length" % name)
    return numpy.frombuffer(data, _TYPES[kind]).reshape(shape).copy()


def read_safetensors(raw):
    """The tensors of a safetensors file, given its bytes."""
    try:
        import numpy  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Error("FAILED_PRECONDITION",
                    "install python3-numpy to read models") from error
    if len(raw) < 8:
        raise _damaged("it has %d bytes" % len(raw))
    length = int.from_bytes(raw[:8], "little")
    if length > min(len(raw) - 8, _MOST_HEADER_BYTES):
        raise _damaged("its header would have %d bytes" % length)
    try:
        header = json.loads(raw[8:8 + length])
        metadata = header.pop("__metadata__", {})
    except (ValueError, AttributeError) as error:
        raise _damaged("its header is no JSON object") from error
    return Model({name: _array(numpy, raw, 8 + length, name, entry)
                  for name, entry in header.items()}, metadata=metadata)
