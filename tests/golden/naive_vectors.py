#!/usr/bin/env python3
"""Computes the vectors of swarm, fedavg+ and local, and DeceFL's local form on
a graph that leaves nodes alone, in plain float64 loops: an independent reading
of the formulas. Problems and starts are those of older vectors.

  tests/golden/naive_vectors.py FOLDER    writes them to FOLDER
"""

import json
import os
import random
import sys

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors")


def read(name):
    with open(os.path.join(VECTORS, name + ".json")) as file:
        return json.load(file)


def gradient(node, x, batch):
    """Of 1/(2 rows) |A x - b|^2 over the rows of `batch`."""
    rows = range(len(node["b"])) if batch is None else batch
    out = [0.0] * len(x)
    for r in rows:
        a = node["A"][r]
        error = sum(p * q for p, q in zip(a, x)) - node["b"][r]
        for l, value in enumerate(a):
            out[l] += error * value / len(rows)
    return out


def step(x, scale, by):
    return [p + scale * q for p, q in zip(x, by)]


def mixed(weights, models):
    return [
        sum(w * model[l] for w, model in zip(weights, models))
        for l in range(len(models[0]))
    ]


def epochs(rng, rows, size, count):
    """The batches of `count` passes over shuffled rows."""
    batches = []
    for _ in range(count):
        order = list(range(rows))
        rng.shuffle(order)
        for at in range(0, rows, size):
            batches.append(sorted(order[at : at + size]))
    return batches


def rounded(value):
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    return float("%.12g" % value) if isinstance(value, float) else value


def local_batches(rng, case):
    params = case["params"]
    return [
        epochs(rng, len(node["b"]), params["batch_size"], params["E"])
        for node in case["problem"]["nodes"]
    ]


def trained(case, x, local):
    """Every node's model after its local steps."""
    out = []
    for node, start, batches in zip(case["problem"]["nodes"], x, local):
        model = start
        for batch in batches:
            grad = gradient(node, model, batch)
            model = step(model, -case["params"]["eta"], grad)
        out.append(model)
    return out


def with_progress(mean, mu, before, after):
    """mean - mu (before - after)."""
    return [m - mu * (b - a) for m, b, a in zip(mean, before, after)]


def play(case, weights_of):
    """Mixes by `weights_of(k, i)` in every round, and adds own progress."""
    x = case["x0"]
    params = case["params"]
    case["trajectory"] = []
    for k, now in enumerate(case["schedule"]):
        state = {"k": k}
        means = [mixed(weights_of(k, i), x) for i in range(case["m"])]
        if params["mode"] == "local":
            state["x_local"] = trained(case, x, now["local"])
            x = [
                with_progress(*of)
                for of in zip(
                    means, [params["mu"]] * case["m"], x, state["x_local"]
                )
            ]
        else:
            x = [
                step(mean, -params["eta"], gradient(node, at, batch))
                for mean, node, at, batch in zip(
                    means, case["problem"]["nodes"], x, now["batch"]
                )
            ]
        state["x"] = x
        case["trajectory"].append(rounded(state))
    return case


def based_on(old, name, algorithm, source, params):
    keys = ("m", "n", "problem", "graph", "W", "A", "B", "x0", "check_x0")
    case = {"name": name, "algorithm": algorithm, "source": source}
    case.update({key: old[key] for key in keys})
    case["params"] = params
    return case


def identity(m):
    return [[float(i == j) for j in range(m)] for i in range(m)]


def decefl_local_lone_node():
    old = read("decefl_lone_node")
    case = based_on(
        old,
        "decefl_local_lone_node",
        "decefl",
        "paper 002 eq. 1, supplement eq. 2 and 11",
        {
            "sample_weighting": False,
            "mode": "local",
            "rule": "metropolis",
            "eta": 0.05,
            "mu": 0.4,
            "E": 2,
            "batch_size": 4,
        },
    )
    case["Ws"], case["edge_sets"] = old["Ws"], old["edge_sets"]
    rng = random.Random(1)
    case["schedule"] = [
        {"W": k % len(case["Ws"]), "local": local_batches(rng, case)}
        for k in range(10)
    ]
    return play(case, lambda k, i: case["Ws"][k % len(case["Ws"])][i])


def fedavg_plus():
    old = read("fedavg_uniform")
    start = 5
    case = based_on(
        old,
        "fedavg_plus",
        "fedavg+",
        "baseline of the thesis, ch. 4",
        {
            "sample_weighting": False,
            "mode": "local",
            "rule": "uniform",
            "eta": 0.05,
            "mu": 1.0,
            "E": 1,
            "batch_size": 3,
            "fine_tune_from": start,
        },
    )
    case["Ws"], case["edge_sets"] = old["Ws"], old["edge_sets"]
    rng = random.Random(2)
    case["schedule"] = [
        {"W": 0, "local": local_batches(rng, case)} for _ in range(10)
    ]
    alone = identity(case["m"])
    return play(
        case, lambda k, i: case["Ws"][0][i] if k < start else alone[i]
    )


def swarm(name, params, seed, lost):
    old = read("fedavg_uniform")
    case = based_on(old, name, "swarm", "Swarm Learning, Methods", params)
    case["W"] = old["Ws"][0]
    m = case["m"]
    rng = random.Random(seed)
    case["schedule"] = []
    for k in range(10):
        now = {"leader": rng.randrange(m)}
        if k in lost:
            now["lost"] = True
        if params["mode"] == "local":
            now["local"] = local_batches(rng, case)
        else:
            now["batch"] = [
                sorted(rng.sample(range(len(node["b"])), 3))
                for node in case["problem"]["nodes"]
            ]
        case["schedule"].append(now)
    alone = identity(m)

    def weights(k, i):
        now = case["schedule"][k]
        if now.get("lost") and i != now["leader"]:
            return alone[i]
        return case["W"][i]

    return play(case, weights)


def local(name, params, seed):
    old = read("dpsgd")
    case = based_on(old, name, "local", "baseline", params)
    rng = random.Random(seed)
    nodes = case["problem"]["nodes"]
    case["schedule"] = [
        {"batch": [sorted(rng.sample(range(len(n["b"])), 3)) for n in nodes]}
        for _ in range(12)
    ]
    x = case["x0"]
    case["trajectory"] = []
    for k, now in enumerate(case["schedule"]):
        eta = params.get("eta")
        if "sigma0" in params:
            eta = 1 / (params["sigma0"] * params["gamma"] ** k * params["m"])
        x = [
            step(at, -eta, gradient(node, at, batch))
            for node, at, batch in zip(nodes, x, now["batch"])
        ]
        case["trajectory"].append(rounded({"k": k, "x": x}))
    return case


def main():
    plain = {"sample_weighting": False, "mode": "gradient", "eta": 0.05}
    epochs_form = {
        "sample_weighting": False,
        "mode": "local",
        "eta": 0.04,
        "mu": 0.5,
        "E": 2,
        "batch_size": 3,
    }
    for case in (
        decefl_local_lone_node(),
        fedavg_plus(),
        swarm("swarm", plain, 3, ()),
        swarm("swarm_local_lost", epochs_form, 4, (3, 7)),
        local("local", {"eta": 0.05}, 5),
        local("local_pame_steps", {"sigma0": 4.0, "gamma": 1.05, "m": 3}, 6),
    ):
        lines = [
            '"%s": %s' % (key, json.dumps(value, separators=(",", ":")))
            for key, value in case.items()
        ]
        path = os.path.join(sys.argv[1], case["name"] + ".json")
        with open(path, "w") as file:
            file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
