# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small modules that cannot be exported, for other reasons than their loss. Each has
the output that `exporter.py` expects of chimera-export. modules.py explains the form of
a case."""

from modules import PLAIN

REFUSED = [
    (
        "an input that is no parameter of the module",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    module = nn.Sequential(nn.Embedding(16, C), Block(), nn.Linear(C, 16))
    return Model(module, {"image": tokens}, {"labels": tokens}, cross_entropy)
""",
        "expected inputs that fit the parameters of Sequential.forward ('input'), got 'image': "
        "rename a parameter or its tensor, or give inputs as a tuple",
    ),
    (
        "an input too many",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Net(), (tokens, tokens), tokens, cross_entropy)
""",
        "('tokens'), got 'tokens', 'inputs[1]': too many positional arguments",
    ),
    (
        "parameters behind detach",
        """
class Detached(Block):
    def forward(self, x):
        return x + self.line(x).detach()
def make(): return model(Net(Detached))
""",
        "the loss is not differentiable in",
    ),
    (
        "an autograd function",
        """
class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clamp(-1, 1)
    @staticmethod
    def backward(ctx, g): return g * 2
class Custom(Block):
    def forward(self, x): return Through.apply(super().forward(x))
def make(): return model(Net(Custom))
""",
        "an autograd function with a backward of its own, which would not run",
    ),
    (
        "hooks on a backward",
        """
def make():
    net = Net()
    net.blocks[1].register_full_backward_hook(lambda *_: None)
    return model(net)
""",
        "'blocks.1' has one, and it would not run",
    ),
    (
        "a norm over the batch",
        """
class Norm(Block):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(C)
    def forward(self, x):
        return self.norm(super().forward(x).transpose(1, 2)).transpose(1, 2)
def make(): return model(Net(Norm))
""",
        "changes blocks.0.norm.running_mean",
    ),
    (
        "a buffer that is assigned",
        """
class Counter(Block):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.ones(()))
    def forward(self, x):
        self.n = self.n * 1.5
        return super().forward(x) * self.n
def make(): return model(Net(Counter))
""",
        "whose forward changes no buffer, but it changes blocks.0.n",
    ),
    (
        "a view of what is changed in place",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        z = y.view(-1)
        y += 1
        return x + z.view_as(y)
def make(): return model(Net(InPlace))
""",
        "expected operations that do not change tensors in place, got aten::add_",
    ),
    (
        "a slice that is changed in place and shown by a view",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        z = y[:, :2]
        y[:, 0] *= 2
        return x + y + z.sum()
def make(): return model(Net(InPlace))
""",
        "expected operations that do not change tensors in place, got aten::mul_",
    ),
    (
        "a slice of another shape that is changed in place",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        y.flatten(1)[:, 0] *= 2
        return x + y
def make(): return model(Net(InPlace))
""",
        "expected operations that do not change tensors in place, got aten::mul_",
    ),
    (
        "dropout with --check",
        """
class Dropping(Block):
    def forward(self, x): return F.dropout(super().forward(x), 0.1, self.training)
def make(): return model(Net(Dropping))
""",
        "needs a model without dropout, because autograd drops other elements: for the "
        "check, set its probability to 0 or call the module's eval()",
    ),
    (
        "dropout in an attention with --check",
        """
class Attends(Block):
    def forward(self, x):
        y = x[:, None]
        return x + F.scaled_dot_product_attention(y, y, y, dropout_p=0.1)[:, 0]
def make(): return model(Net(Attends))
""",
        "needs a model without dropout, because autograd drops other elements",
    ),
    (
        "dropout of what has no samples first",
        """
class Drop(Block):
    def forward(self, x):
        return x + F.dropout(self.line.weight.sum(0)[:3].mean(0, keepdim=True), 0.5)
def make(): return model(Net(Drop))
""",
        "a tensor whose first dimension counts samples, 4 of them",
    ),
    (
        "random numbers",
        """
class Noise(Block):
    def forward(self, x): return super().forward(x) + torch.rand_like(x)
def make(): return model(Net(Noise))
""",
        "no operator but dropout that may draw random numbers, got aten::rand_like",
    ),
    (
        "dropout by the operator that packages replace",
        """
class Native(Block):
    def forward(self, x): return torch.native_dropout(super().forward(x), 0.1, False)[0]
def make(): return model(Net(Native))
""",
        "no operator but dropout that may draw random numbers, got aten::native_dropout",
    ),
    (
        "a region without gradients",
        """
class NoGrad(Block):
    def forward(self, x):
        with torch.no_grad():
            scale = x.abs().mean()
        return super().forward(x) / scale
def make(): return model(Net(NoGrad))
""",
        "expected a forward without regions like torch.no_grad(), got one in 'blocks.0', "
        "source.py:39: scale = x.abs().mean(): detach() cuts gradients too",
    ),
    (
        "parameters that middle layers share",
        """
def make():
    net = Net()
    net.blocks[1].line.weight = net.blocks[0].line.weight
    return model(net)
""",
        "layers 1 and 2 share 'blocks.0.line.weight'",
    ),
    (
        "modules that run twice",
        """
class Again(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in [*self.blocks, self.blocks[0]]:
            x = block(x)
        return self.head(x)
def make(): return model(Again())
""",
        "'blocks.0' runs again after 'blocks.2'",
    ),
    *[
        (
            f"{what} by a tensor's value",
            f"""
def steps(x):
    n = 0
    for _ in range(int(x)): n += 1
    return n
class ByValue(Block):
    def forward(self, x):
        if {condition}: x = x * 2
        return super().forward(x) * {factor}
def make(): return model(Net(ByValue), lambda o, l: cross_entropy(o, l){term})
""",
            "chimera-export: expected no 'if', loop or Python number that depends on a "
            f"tensor's value, got one in {where}: a trace cannot follow it, so write it with "
            "torch.where or a mask",
        )
        for what, condition, factor, term, where in (
            ("an if", "x.sum() > 0", "2", "", "source.py:42: if x.sum() > 0: x = x * 2"),
            ("a loop", "T > 0", "steps(x.argmax())", "",
             "source.py:38: for _ in range(int(x)): n += 1"),
            ("a choice in a loss", "T > 0", "2", " if l.max() > 3 else o.sum()",
             "the loss, source.py:44: def make(): return model(Net(ByValue), lambda o, l: "
             "cross_entropy(o, l) if l.max() > 3 else o.sum())"),
        )
    ],
    (
        "no ModuleList and no Sequential",
        PLAIN + "def make(): return model(Plain())",
        'name the module whose children are the layers with --split-at; --split-at "" is the '
        "whole module",
    ),
    (
        "modules to cut at that there are not",
        "def make(): return model(Net(), split_at='layers')",
        "--split-at: expected a module of the model, got 'layers'",
    ),
    (
        "a large frozen parameter",
        """
class Wide(Block):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(C, 20000).requires_grad_(False)
    def forward(self, x): return super().forward(x) + self.wide(x).mean()
def make(): return model(Net(Wide))
""",
        "expected buffers and frozen parameters of at most 1048576 bytes, got one of",
    ),
    (
        "a recurrent layer that drops",
        """
class Drops(Block):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(C, C, 2, batch_first=True, dropout=0.1)
    def forward(self, x): return super().forward(x) + self.lstm(x)[0]
def make(): return model(Net(Drops))
""",
        "no operator but dropout that may draw random numbers, got aten::lstm",
    ),
    (
        "an operator that is not listed",
        """
class Inverse(Block):
    def forward(self, x): return super().forward(torch.linalg.inv(x @ x.mT + torch.eye(T)) @ x)
def make(): return model(Net(Inverse))
""",
        "expected one of the operators that packages may call (operators.txt), got "
        "aten::linalg_inv_ex in 'blocks.0'",
    ),
    (
        "a view that is there when its tensor is changed again",
        """
class Twice(Block):
    def forward(self, x):
        y = self.line(x)
        y += 1
        z = y.flatten(1)
        y *= 2
        return x + z.view_as(x)
def make(): return model(Net(Twice))
""",
        "aten::mul_",
    ),
    (
        "an argument that the function does not have",
        "def make(): return model(Net())",
        "source.py: got an unexpected keyword argument 'layers'",
        "layers=2",
    ),
    *[
        (
            f"an embedding with {argument}",
            f"""
class Embeds(Net):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, C, {argument})
def make(): return model(Embeds())
""",
            answer,
        )
        for argument, answer in (
            ("scale_grad_by_freq=True",
             "got scale_grad_by_freq=True in 'embedding', source.py:23: "
             "x = self.embedding(tokens): leave it out"),
            ("sparse=True", "got sparse=True in 'embedding', source.py:23: "),
            ("max_norm=1.0", "an embedding with max_norm changes its own weight"),
        )
    ],
    (
        "complex numbers",
        """
class Rotate(Block):
    def forward(self, x):
        z = torch.view_as_complex(x.view(-1, T, C // 2, 2))
        return super().forward(torch.view_as_real(z * 1j).flatten(2))
def make(): return model(Net(Rotate))
""",
        "got complex ones in 'blocks.0', source.py:38: z = torch.view_as_complex(x.view(-1, "
        "T, C // 2, 2)): packages have none. Compute with both parts",
    ),
    (
        "complex numbers between layers",
        """
class Spectrum(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        z = torch.fft.rfft(x, dim=1)
        for block in self.blocks: x = block(x) + z.real[:, :1]
        return self.head(x)
def make(): return model(Spectrum())
""",
        "got complex ones in source.py:39: z = torch.fft.rfft(x, dim=1)",
    ),
    (
        "a sum of embeddings",
        """
class Bag(Block):
    def forward(self, x):
        return x + F.embedding_bag(torch.arange(C).view(1, C), self.line.weight)
def make(): return model(Net(Bag))
""",
        "got aten::_embedding_bag in 'blocks.0', source.py:38: return x + F.embedding_bag("
        "torch.arange(C).view(1, C), self.line.weight): F.embedding and a sum",
    ),
    (
        "experts as a grouped product",
        """
class Experts(Block):
    def forward(self, x):
        experts, ends = self.line.weight.bfloat16().expand(2, C, C), torch.tensor([B, B * T])
        return x + torch._grouped_mm(
            x.flatten(0, 1).bfloat16(), experts, offs=ends.int()).view_as(x)
def make(): return model(Net(Experts))
""",
        "got aten::_grouped_mm in 'blocks.0', source.py:39: return x + torch._grouped_mm(: "
        "transformers' experts_implementation='batched_mm' has a form that can be exported",
    ),
    (
        "a tensor that is too large for a run",
        """
class Wide(Block):
    def forward(self, x):
        return super().forward(x) + (x.mean() * torch.ones(3_000_000)).mean()
def make(): return model(Net(Wide))
""",
        "got a tensor of 24,000,000 bytes in 'blocks.0', source.py:38: return super()",
    ),
    (
        "a parameter without elements",
        """
class Empty(Block):
    def __init__(self):
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(0))
    def forward(self, x): return super().forward(x) + self.nothing.sum()
def make(): return model(Net(Empty))
""",
        "expected tensors with elements, got a parameter",
    ),
    *[
        (
            f"mixed precision {where}",
            f"""
class Mixed(Block):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled={module}):
            return super().forward(x)
def loss(logits, labels):
    with torch.autocast("cpu", torch.bfloat16, enabled=True):
        return cross_entropy(logits @ logits.mT @ logits, labels)
def make(): return model(Net({block}), {loss})
""",
            answer,
        )
        for where, module, block, loss, answer in (
            ("in a module", True, "Mixed", "cross_entropy",
             "expected a forward without torch.autocast(), got one in 'blocks.0.line', "
             "source.py:14: return x + torch.tanh(self.line(x)): leave it out: "
             "activation_type(bf16)"),
            ("in a loss", False, "Block", "loss",
             "expected a forward without torch.autocast(), got one in the loss, source.py:"),
        )
    ],
    (
        "checkpointing by another library",
        """
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g * 2
class Custom(Block):
    def forward(self, x):
        return Checkpoint.apply(super().forward(x))
def make(): return model(Net(Custom))
""",
        "source.Checkpoint in source.py:43: return Checkpoint.apply(super().forward(x)), an "
        "autograd function with a backward of its own, which would not run: switch it off, "
        "because recompute",
    ),
    (
        "a norm whose gradients are traced otherwise than they are",
        """
class Norm(Block):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(C, track_running_stats=False)
    def forward(self, x): return x + torch.tanh(self.norm(self.line(x).mT).mT)
def make(): return model(Net(Norm))
""",
        "expected operators that run as they were traced, but aten::view does not",
    ),
    (
        "modules to cut at that have another name",
        "def make(): return model(Net(), split_at='block')",
        "got 'block'; did you mean blocks?",
    ),
    (
        "a head that is a copy",
        """
def make():
    net = Net()
    net.head.weight.data.copy_(net.embedding.weight)
    return model(net)
""",
        "expected 'embedding.weight' and 'head.weight' to be one parameter, because "
        "they have equal values, but they are two",
    ),
    (
        "a part of another parameter's memory",
        """
def make():
    net = Net()
    net.head.weight = nn.Parameter(net.embedding.weight.data.view(8, 16).t())
    return model(net)
""",
        "but 'head.weight' and 'embedding.weight' share some",
    ),
    (
        "a configuration with a tied head",
        """
import types
class Configured(Net):
    config = types.SimpleNamespace(tie_word_embeddings=True)
    def get_input_embeddings(self): return self.embedding
    def get_output_embeddings(self): return self.head
def make(): return model(Configured())
""",
        "expected 'embedding.weight' and 'head.weight' to be one parameter, because the "
        "configuration says tie_word_embeddings",
    ),
    ("no function", "nothing = 0", "expected a function 'make', found none"),
    ("something else", "def make(): return Net()", "chimera_export.Model, got a value of type Net"),
    ("a number", "def make(): return 3", "chimera_export.Model, got a value of type int"),
]
