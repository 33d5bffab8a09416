#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes modules with --no-values, which records the initial distributions of their
parameters. Compares the bounds, means and deviations of these with the values that
PyTorch gives the same modules. If a run cannot draw a parameter's initial values, the
export must report the parameter and the reason. Needs a Python with torch: that of
build/venv, unless another Python runs this script."""

import inspect
import math
import sys

from exporting import ROOT, run_inside

ELEMENTS = 200  # mean and deviation are compared if a parameter has at least so many elements


def cases(torch):
    """Returns for each case a function that makes a module, and its parameters that
    cannot be drawn. For each such parameter there is a part of its name and a part of
    the reason."""
    nn, F = torch.nn, torch.nn.functional
    init = nn.init

    class With(nn.Module):
        """A module with one parameter, which `begin` initialises."""

        def __init__(self, value, begin=None):
            super().__init__()
            self.p = nn.Parameter(value)
            if begin:
                with torch.no_grad():
                    begin(self.p)

    def with_(begin, *shape):
        return lambda: With(torch.empty(*(shape or (40, 30))), begin)

    def data(make):
        return lambda: With(make())

    def drawn_once():
        value = torch.randn(40, 30)
        return nn.ModuleList([With(value), With(value.clone() * 2)])

    def copied():
        layer = nn.TransformerEncoderLayer(16, 2, 32)
        return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    known = {
        "Linear": lambda: nn.Linear(30, 40),
        "Embedding": lambda: nn.Embedding(40, 30),
        "Conv2d": lambda: nn.Conv2d(8, 16, 3),
        "norms": lambda: nn.Sequential(nn.LayerNorm(9), nn.GroupNorm(3, 9), nn.RMSNorm(9)),
        "LSTM": lambda: nn.LSTM(16, 16, 2),
        "MultiheadAttention": lambda: nn.MultiheadAttention(32, 4),
        "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(16, 2, 32),
        "Bilinear": lambda: nn.Bilinear(8, 9, 10),
        "PReLU": lambda: nn.PReLU(),
        "uniform": with_(lambda p: init.uniform_(p, -0.5, 2)),
        "normal": with_(lambda p: init.normal_(p, 3, 0.25)),
        "truncated": with_(lambda p: init.trunc_normal_(p, std=0.02)),
        "truncated near": with_(lambda p: init.trunc_normal_(p, 0.5, 2, -1, 1.5)),
        "truncated by hand": with_(
            lambda p: p.uniform_(-0.9, 0.9).erfinv_().mul_(0.5 * math.sqrt(2)).add_(1)
            .clamp_(-9, 9)
        ),
        "Xavier": with_(lambda p: init.xavier_normal_(p, 2.5)),
        "Kaiming": with_(lambda p: init.kaiming_uniform_(p, nonlinearity="relu")),
        "scaled": with_(lambda p: p.normal_().mul_(0.3).sub_(2).div_(-4).neg_()),
        "data": with_(lambda p: p.data.uniform_(-1, 1).mul_(3)),
        "a view of all": with_(lambda p: p.view(-1).normal_(0, 7)),
        "copied in": with_(lambda p: p.copy_(torch.randn(40, 30) * 0.1)),
        "randn": data(lambda: torch.randn(40, 30) / 30**0.5),
        "rand": data(lambda: 1 - 2 * torch.rand(40, 30)),
        "transposed": data(lambda: torch.randn(30, 40).t().contiguous()),
        "full": data(lambda: torch.full((40, 30), 0.1)),
        "a number": data(lambda: torch.tensor(math.log(10))),
        "a computed constant": data(lambda: torch.ones(30).log() + 1e-6),
        "a constant that changes": with_(lambda p: p.fill_(2).sqrt_().add_(1).mul_(p)),
        "a row of zeros": lambda: nn.Embedding(40, 30, padding_idx=7),
        "a part as the whole": with_(lambda p: [p.zero_(), p[3].zero_(), p[:, 2].fill_(0)]),
        "a row of zeros in ones": with_(lambda p: [p.fill_(1), p[3].zero_()]),
        "rounded to integers": with_(
            lambda p: p.copy_(torch.full((40, 30), 2.7).long().float())
        ),
        "by a tensor": with_(lambda p: p.normal_().mul_(torch.tensor(0.5))),
        "filled by a tensor": with_(lambda p: p.fill_(torch.tensor(0.75))),
        "from a list": with_(lambda p: p.copy_(torch.tensor([0.5] * 30))),
        "in float64": data(lambda: torch.randn(40, 30).double() * 3),
        "converted": lambda: nn.ModuleList([shared := nn.Linear(30, 40), shared]).double(),
        "set again": with_(lambda p: [init.eye_(p), init.ones_(p)]),
        "padded": with_(lambda p: setattr(p, "data", F.pad(p.normal_(0, 2).data, (0, 0)))),
        "padded with itself": data(lambda: F.pad(torch.zeros(30), (0, 9))),
        "one of its class": lambda: nn.ModuleList([With(torch.ones(9)), With(torch.zeros(9))]),
    }  # fmt: skip
    unknown = {
        "orthogonal": (with_(init.orthogonal_), {"p": "from drawn ones"}),
        "identity": (with_(init.eye_), {"p": "are computed"}),
        "never set": (with_(None), {"p": "nothing sets its values"}),
        "two rows of their own": (
            with_(lambda p: [p.normal_(), p[3].zero_(), p[4].zero_()]), {"p": "differently"},
        ),
        "half a row": (
            with_(lambda p: [p.normal_(), p[3, :15].zero_()]), {"p": "differently"},
        ),
        "a column": (
            with_(lambda p: [p.normal_(), p[:, 3].zero_()]), {"p": "differently"},
        ),
        "a row of its own, scaled": (
            with_(lambda p: [p.normal_(), p[3].zero_(), p.mul_(2)]), {"p": "from drawn"},
        ),
        "computed": (data(lambda: torch.linspace(1, 2, 30)), {"p": "are computed"}),
        "drawn and computed": (
            data(lambda: torch.randn(1).exp()), {"p": "from drawn ones"}
        ),
        "chosen": (data(lambda: torch.bernoulli(torch.full((9,), 0.5))), {"p": "from drawn"}),
        "clamped": (with_(lambda p: p.normal_().clamp_(-1, 1)), {"p": "from drawn ones"}),
        "a sum of two": (
            data(lambda: torch.randn(40, 30) + torch.randn(40, 30)), {"p": "from drawn"}
        ),
        "repeated by a product": (
            with_(lambda p: p.copy_(torch.randn(30) * torch.ones(40, 30))),
            {"p": "from drawn ones"},
        ),
        "repeated": (with_(lambda p: p.copy_(torch.randn(30))), {"p": "values repeat"}),
        "one draw for two": (drawn_once, {"p": "same initial"}),
        "copied layers": (
            copied, {"linear1.weight": "same initial", "linear2.bias": "same initial",
                     "in_proj_weight": "same initial", "out_proj.weight": "same initial",
                     "linear1.bias": "same initial", "linear2.weight": "same initial"},
        ),
        "a weight's norm": (
            lambda: nn.utils.parametrizations.weight_norm(nn.Linear(30, 40)),
            {"original0": "from drawn ones", "original1": ""},
        ),
        "an LSTM's gate": (
            lambda: _gate(nn.LSTM(9, 9)), {"bias_ih_l0": "parts are initialised differently"},
        ),
    }  # fmt: skip
    return {name: (make, {}) for name, make in known.items()} | unknown


def _gate(lstm):
    lstm.bias_ih_l0.data[9:18].fill_(1)
    return lstm


def transformers_cases(transformers):
    small = {"num_hidden_layers": 3, "hidden_size": 32, "intermediate_size": 48,
             "num_attention_heads": 4}  # fmt: skip
    auto = transformers.AutoModelForCausalLM.from_config
    gpt2 = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, vocab_size=99, bos_token_id=0, eos_token_id=0
    )
    llama = transformers.LlamaConfig(**small, vocab_size=99)
    vit = transformers.ViTConfig(**small, image_size=32, patch_size=8)
    bert = transformers.BertConfig(**small, vocab_size=99)
    return {
        "GPT-2": (lambda: auto(gpt2), {}),
        "Llama": (lambda: auto(llama), {}),
        "ViT": (lambda: transformers.ViTModel(vit), {}),
        "BERT": (lambda: transformers.BertForPreTraining(bert), {}),
    }


def moments(start):
    """The mean and the standard deviation of a distribution."""
    if start.start == "Normal":
        return start.mean, start.deviation
    if start.start == "Uniform":
        return (start.low + start.high) / 2, (start.high - start.low) / math.sqrt(12)
    # A truncated normal distribution. a and b are its ends, in deviations from the
    # mean.
    a, b = ((end - start.mean) / start.deviation for end in (start.low, start.high))
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    mass = (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) / 2
    shift = (density(a) - density(b)) / mass
    variance = 1 + (a * density(a) - b * density(b)) / mass - shift**2
    return start.mean + start.deviation * shift, start.deviation * math.sqrt(variance)


def difference(torch, start, value):
    """Says how PyTorch's initial value differs from the distribution. None if it does
    not."""
    if start.entry().get("zero_row", 0) != (start.zero_row or (0,))[0]:
        return f"a package with the row {start.zero_row} of zeros expected, got {start.entry()}"
    if start.zero_row:
        row = value[start.zero_row[0]]
        if row.any() or start.zero_row[1] != row.numel():
            return f"row {start.zero_row} expected to be zero, got {row}"
        value = torch.cat([value[: start.zero_row[0]], value[start.zero_row[0] + 1 :]])
    value = value.double().flatten()
    if start.start == "Constant":
        exact = value.float().eq(value.new_tensor(start.mean).float()).all().item()
        return "" if exact else f"{start.mean} expected, got {value}"
    if start.start != "Normal":
        slack = 1e-5 * (start.high - start.low)
        if value.min() < start.low - slack or value.max() > start.high + slack:
            return f"{start} expected, got {value.min()} to {value.max()}"
    count = value.numel()
    if count < ELEMENTS:
        return ""
    mean, deviation = moments(start)
    if abs(value.mean() - mean) > 5 * deviation / math.sqrt(count):
        return f"a mean of {mean} expected, got {value.mean()}"
    if abs(value.std() / deviation - 1) > 5 / math.sqrt(count):
        return f"a deviation of {deviation} expected, got {value.std()}"
    far = ((value - mean).abs() > 2 * deviation).double().mean().item()
    if start.start == "Normal" and abs(far - 0.0455) > 5 * math.sqrt(0.0455 / count):
        return f"0.0455 of it further than 2 deviations expected, got {far}"
    return ""


def inside():
    sys.path.insert(0, str(ROOT / "tools/export"))
    import torch
    from chimera_export import empty, initial
    from chimera_export.model import Model

    example = torch.zeros(1, 1)

    def model_of(make):
        module = make()
        needed = inspect.signature(module.forward).parameters.values()
        count = sum(each.default is each.empty for each in needed) or 1
        return Model(module, (example,) * count, example, lambda output, labels: output)

    whole = cases(torch)
    try:
        import transformers

        whole |= transformers_cases(transformers)
    except ImportError:
        print("skipped: no transformers")
    failed = 0
    for name, (make, unknown) in whole.items():
        torch.manual_seed(1)
        values = dict(make().named_parameters())
        model = empty.without_values(lambda make=make: model_of(make))
        starts = {n: p.start for n, p in model.module.named_parameters()}
        problems = [] if starts.keys() == values.keys() else ["other parameters"]
        for path, start in starts.items():
            wanted = [reason for part, reason in unknown.items() if path.endswith(part)]
            if isinstance(start, initial.Unknown):
                if not wanted or wanted[0] not in start.reason:
                    problems.append(f"{path}: {start.reason}")
            elif wanted and wanted[0]:
                problems.append(f"{path}: {start}, {wanted} expected")
            elif text := difference(torch, start, values[path].detach()):
                problems.append(f"{path}: {text}")
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {name}", *problems, sep="\n     ")
    sys.exit(f"{failed} comparisons failed" if failed else 0)


if __name__ == "__main__":
    run_inside(__doc__, ["torch", "safetensors"], inside)
