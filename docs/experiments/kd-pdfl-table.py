"""Writes the test rows of two groups of classes of Fashion-MNIST to data/."""

import gzip
DATA = "/usr/share/datasets/fashion-mnist/t10k-"
images = gzip.open(DATA + "images-idx3-ubyte.gz").read()
labels = gzip.open(DATA + "labels-idx1-ubyte.gz").read()[8:]
for group, classes in (("a", range(5)), ("b", range(5, 10))):
    rows = [i for i, label in enumerate(labels) if label in classes]
    count = len(rows).to_bytes(4, "big")
    with gzip.open(f"data/fashion-{group}-images.gz", "wb") as out:
        out.write(images[:4] + count + images[8:16])
        out.write(b"".join(images[16 + 784 * i:800 + 784 * i] for i in rows))
    with gzip.open(f"data/fashion-{group}-labels.gz", "wb") as out:
        out.write(b"\0\0\x08\x01" + count + bytes(labels[i] for i in rows))
