# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's optimizers, as chimera.training names them. Needs torch."""

import contextlib

import torch


def optimizers_of(name, parameters, hidden, *, rate, decay, momentum=0.0, nesterov=False,
                  **of_adamw):  # fmt: skip
    """Returns the optimizers that together are the optimizer `name` of a program, for
    `parameters` by name. `hidden` has the names of those that Muon updates if `name` is
    "muon". Parameters with fewer than two dimensions do not decay."""
    optimizers = []
    hidden = set(hidden) if name == "muon" else set()
    if hidden:
        muon = torch.optim.Muon(
            [p for n, p in parameters.items() if n in hidden], lr=rate, weight_decay=decay,
            momentum=momentum, nesterov=nesterov, adjust_lr_fn="match_rms_adamw",
        )  # fmt: skip
        optimizers.append(muon)
    rest = [p for n, p in parameters.items() if n not in hidden]
    groups = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    if name.startswith("sgd"):
        own = torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=nesterov)
    else:
        own = torch.optim.AdamW(groups, lr=rate, **of_adamw)
    return [*optimizers, own]


@contextlib.contextmanager
def muon_in(dtype):
    """Makes torch.optim.Muon orthogonalise in another type than bfloat16."""
    own = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = lambda tensor: tensor.to(dtype, copy=True)
    try:
        yield
    finally:
        torch.Tensor.bfloat16 = own
