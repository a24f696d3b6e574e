#!/usr/bin/env python3
"""Exports a PyTorch module as TorchScript for dfld, and checks that it trains.

Usage: export_model.py FILE.py:FUNCTION --input 1,28,28 --classes 10 --out M.pt

FUNCTION, without arguments, returns the module. The file is for
`model: {kind: torchscript, path: M.pt}` in a plan.

  --input A,B,...   shape of one row
  --classes N       scores that it returns; 0: it is a regression
  --trace           traces the module instead of scripting it: for code that
                    cannot be scripted and does not depend on the values
  --out FILE        what is written, once all checks have passed

Needs PyTorch (Debian: python3-torch). Exit code: 0 written, 1 a node would
refuse or spoil it (the cause is printed), 2 wrong usage.
"""

import argparse
import importlib.util
import os
import sys

import torch

STEPS = 10  # one or two do not show what LibTorch's optimiser breaks
NORMALISING = (torch.nn.modules.batchnorm._BatchNorm,)


class Unfit(Exception):
    """Why a node would refuse or spoil the model."""


def load(place):
    path, _, name = place.partition(":")
    if not name:
        raise Unfit(f"{place}: write FILE.py:FUNCTION")
    if not os.path.exists(path):
        raise Unfit(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location("users_model", path)
    users = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(users)
    if not hasattr(users, name):
        raise Unfit(f"{path}: has no function {name}")
    module = getattr(users, name)()
    if not isinstance(module, torch.nn.Module):
        raise Unfit(f"{place}: returns {type(module).__name__}, no "
                    "torch.nn.Module")
    return module


def check_tensors(module):
    trained = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    if not trained:
        raise Unfit("it has no parameter that requires a gradient")
    for name, tensor in trained:
        if tensor.dtype != torch.float32:
            raise Unfit(f"{name} is {tensor.dtype}; parameters are float32: "
                        "call .float() on the module")
        if not torch.isfinite(tensor).all():
            raise Unfit(f"{name} has a value that is not finite")
    frozen = [n for n, p in module.named_parameters() if not p.requires_grad]
    print(f"{sum(p.numel() for _, p in trained):,} parameters in "
          f"{len(trained)} tensors" +
          (f"; frozen: {', '.join(frozen)}" if frozen else ""))


def script(module, shape, trace):
    try:
        if trace:
            return torch.jit.trace(module, torch.zeros(2, *shape))
        return torch.jit.script(module)
    except Exception as error:
        raise Unfit(
            f"it cannot be {'traced' if trace else 'scripted'}: {error}\n"
            "TorchScript knows a part of Python: give types to arguments that "
            "are no tensors, and leave out **kwargs"
            + ("" if trace else "; or try --trace")) from error


def check_shape(module, shape, classes):
    module.eval()
    for rows in (1, 2, 5):
        with torch.no_grad():
            out = module(torch.zeros(rows, *shape))
        if not isinstance(out, torch.Tensor):
            raise Unfit(f"it returns {type(out).__name__}, no tensor")
        allowed = ([(rows, classes)] if classes else [(rows,), (rows, 1)])
        if tuple(out.shape) not in allowed:
            raise Unfit(
                f"for {rows} row{'s' if rows > 1 else ''} it returns shape "
                f"{list(out.shape)}, expected {list(allowed[0])}" +
                ("; a .squeeze() without a dimension loses the row of a batch "
                 "of one" if rows == 1 else ""))
        if out.dtype != torch.float32:
            raise Unfit(f"it returns {out.dtype}, expected float32")
    return classes or 1


def check_rows_alone(module, shape):
    module.eval()
    torch.manual_seed(1)
    rows = torch.rand(4, *shape)
    with torch.no_grad():
        whole = module(rows)
        alone = torch.cat([module(r.unsqueeze(0)).reshape(1, -1) for r in rows])
    if not torch.allclose(whole.reshape(4, -1), alone, atol=1e-4):
        raise Unfit("in evaluation mode a row's result depends on the rows "
                    "beside it, so scores of different batches differ")


def check_training(module, shape, classes):
    """Ten steps on one batch, as a node takes them."""
    torch.manual_seed(1)
    rows = torch.rand(8, *shape)
    labels = (torch.arange(8) % classes) if classes else torch.rand(8)
    module.train()
    first = last = None
    for step in range(STEPS):
        module.zero_grad()
        out = module(rows)
        if classes:
            loss = torch.nn.functional.cross_entropy(out, labels)
        else:
            loss = torch.nn.functional.mse_loss(out.reshape(-1), labels)
        loss.backward()
        if not torch.isfinite(loss):
            raise Unfit(f"its loss is {float(loss)} in training step {step + 1}")
        with torch.no_grad():
            for name, tensor in module.named_parameters():
                if not tensor.requires_grad:
                    continue
                if tensor.grad is None:
                    raise Unfit(f"{name} gets no gradient: the output does not "
                                "depend on it, so it would never be trained")
                tensor -= 0.02 * tensor.grad
        first = float(loss) if first is None else first
        last = float(loss)
    if last >= first:
        print(f"warning: in {STEPS} steps on one batch the loss went from "
              f"{first:.4f} to {last:.4f}; start with small steps")
    else:
        print(f"{STEPS} training steps: loss {first:.4f} to {last:.4f}")


def tell_modes(module):
    norms = [n for n, m in module.named_modules() if isinstance(m, NORMALISING)]
    if norms:
        print(f"normalises by the batch: {', '.join(norms)}; a last batch of "
              "one row is joined to the one before, and batch_size 1 is "
              "refused")
    asleep = [n or "the whole model" for n, m in module.named_modules()
              if not m.training]
    if asleep:
        print(f"stays in evaluation mode: {', '.join(asleep)}; call train() "
              "on what is trained")
    for name, part in module.named_modules():
        if isinstance(part, NORMALISING) and part.training and not any(
                p.requires_grad for p in part.parameters()):
            print(f"warning: {name} is frozen, and its statistics move all the "
                  "same: call eval() on it")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("place")
    parser.add_argument("--input", required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    try:
        shape = [int(n) for n in options.input.split(",")]
        if min(shape) < 1 or options.classes < 0:
            raise ValueError
    except ValueError:
        parser.error("--input is integers of at least 1 such as 1,28,28, and "
                     "--classes at least 0")
    try:
        module = load(options.place)
        modes = {name: part.training for name, part in module.named_modules()}
        check_tensors(module)
        # What is checked is thrown away: the file has the weights as they are.
        state = {k: v.clone() for k, v in module.state_dict().items()}
        scripted = script(module, shape, options.trace)
        check_shape(scripted, shape, options.classes)
        check_rows_alone(scripted, shape)
        check_training(scripted, shape, options.classes)
        scripted.load_state_dict(state)
        for name, part in module.named_modules():
            part.training = modes[name]
        scripted = script(module, shape, options.trace)
        tell_modes(module)

        part = options.out + ".part"
        torch.jit.save(scripted, part)
        back = torch.jit.load(part)
        back.eval()
        module.eval()
        with torch.no_grad():
            sample = torch.rand(3, *shape)
            if not torch.equal(back(sample), module(sample)):
                os.remove(part)
                raise Unfit("what was saved gives other numbers than the "
                            "module")
        os.replace(part, options.out)
    except Unfit as why:
        print(f"export_model.py: {why}", file=sys.stderr)
        return 1
    print(f"wrote {options.out}; in the plan: "
          f"model: {{kind: torchscript, path: {os.path.abspath(options.out)}}}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
