#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports models with many classes. Checks whether the last linear layer and the loss
become one call, whether the backward computes the loss, and that the package computes
what autograd computes. Needs a Python with torch: that of build/venv, unless another
Python runs this script."""

import sys

from exporting import ROOT, run_inside

WIDTH, TOKENS, CLASSES, SAMPLES = 8, 4, 4096, 3
NONE, CALL, LOSS = "none", "a call", "a call whose backward computes the loss"


def cases(torch):
    """For each case: its name, the loss, the number of classes, whether the linear layer
    has a bias, and what is expected."""
    from torch.nn import functional

    def entropy(logits, labels, **options):
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), **options)

    def with_weight(logits, labels):
        labels = labels.masked_fill(labels % 3 == 0, -100)
        return entropy(logits, labels, reduction="sum"), labels.ne(-100).sum()

    def by_view(logits, labels):
        rows = logits.float().contiguous().view(-1, logits.shape[-1])
        return functional.cross_entropy(rows, labels.reshape(-1))

    return [
        ("a mean", entropy, CLASSES, False, LOSS),
        ("a mean, and a bias", entropy, CLASSES, True, LOSS),
        ("a sum and its weight", with_weight, CLASSES, True, LOSS),
        ("rows by a view of contiguous numbers", by_view, CLASSES, False, LOSS),
        ("a sum of two losses", lambda o, l: entropy(o, l) + 1e-3 * (l * 0.5).mean(),
         CLASSES, False, CALL),
        ("a product", lambda o, l: 2 * entropy(o, l), CLASSES, False, CALL),
        ("few classes", entropy, CLASSES - 1, False, NONE),
        ("label smoothing", lambda o, l: entropy(o, l, label_smoothing=0.1), CLASSES, False,
         NONE),
        ("weights of classes",
         lambda o, l: entropy(o, l, weight=torch.arange(CLASSES) / CLASSES), CLASSES, False,
         NONE),
        ("logits with another use", lambda o, l: entropy(o, l) + 1e-4 * o.logsumexp(-1).mean(),
         CLASSES, False, NONE),
        ("scaled logits", lambda o, l: entropy(o / 2, l), CLASSES, False, NONE),
        ("classes second", lambda o, l: functional.cross_entropy(o.mT, l), CLASSES, False,
         LOSS),
        ("classes second by a transpose",
         lambda o, l: functional.cross_entropy(o.transpose(-1, 1), l, reduction="mean"),
         CLASSES, True, LOSS),
        ("classes second by a permutation",
         lambda o, l: (functional.cross_entropy(o.permute(0, 2, 1), l, reduction="sum"),
                       l.numel()),
         CLASSES, True, LOSS),
        ("tokens and samples swapped",
         lambda o, l: functional.cross_entropy(o.permute(1, 2, 0), l.T), CLASSES, False,
         NONE),
    ]  # fmt: skip


def model_of(torch, model, loss, classes, bias):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(classes, WIDTH)
            self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
            self.head = nn.Linear(WIDTH, classes, bias=bias)

        def forward(self, tokens):
            x = self.embedding(tokens)
            for block in self.blocks:
                x = x + torch.tanh(block(x))
            return self.head(x)

    torch.manual_seed(1)
    tokens = torch.randint(0, classes, (SAMPLES, TOKENS))
    return model.Model(Net(), (tokens,), (tokens.roll(1, 0),), loss)


def found_in(package):
    graphs = package["kinds"][-1]["graphs"]
    calls = [c["operator"] for name in ("forward", "backward") for c in graphs[name]["calls"]]
    names = [c.removeprefix("chimera::") for c in calls if "linear_cross_entropy" in c]
    if not names:
        return NONE
    assert names == ["linear_cross_entropy", "linear_cross_entropy_backward"], names
    made = [p["role"] for p in graphs["backward"]["outputs"]]
    # The logits would be the largest tensors of the layer.
    shapes = [v["shape"][-1:] for v in (*graphs["saved"], *graphs["kept_shapes"])]
    assert [CLASSES] not in shapes, shapes
    return LOSS if "Output" in made else CALL


def inside():
    sys.path.insert(0, str(ROOT / "tools/export"))
    import torch
    from chimera_export import check, model, package

    failed = 0
    for name, loss, classes, bias, wanted in cases(torch):
        made = model_of(torch, model, loss, classes, bias)
        types = (torch.float32, torch.bfloat16)
        packages = package.Exporter(made, types).export()
        found = {found_in(each) for each in packages}
        check.compare(packages[0], made, ())
        failed += found != {wanted}
        print("ok  " if found == {wanted} else "FAIL", f"{name}: {' or '.join(found)}")
    sys.exit(f"{failed} cases failed" if failed else 0)


if __name__ == "__main__":
    run_inside(__doc__, ["torch"], inside)
