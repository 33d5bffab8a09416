# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that call the operators of runtime/model/graph/operators.txt. A model has
one group of expressions. Each of its layers adds up the results of all expressions of
its input.

    tools/export/chimera-export test/e2e/operators.py group=math -o package

`exporter.py` exports every group and `exported.py` trains some of them."""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn

WIDTH = 8
# For each group: its modules, and expressions. In an expression, m has the modules and
# x is the layer's input, of shape [samples, context, WIDTH]. Three tensors are computed
# from x without a gradient: s has its signs (0 or 1), n has integers, and d has values.
# In all groups but the last, the results of a sample depend only on this sample.
GROUPS = {
    "activations": (
        dict(one=lambda: nn.PReLU(), each=lambda: nn.PReLU(8)),
        """
        F.glu(x); F.mish(x); F.hardswish(x); F.hardsigmoid(x); F.celu(x); F.selu(x)
        F.softsign(x); F.softshrink(x, .1); F.hardshrink(x); F.tanhshrink(x)
        F.logsigmoid(x); m.one(x); m.each(x); F.relu6(x); F.threshold(x, .1, 0.)
        F.elu(x); F.leaky_relu(x); F.softplus(x); F.gelu(x, approximate="tanh")
        F.silu(x); F.softmin(x, -1); F.log_softmax(x, -1); F.relu(x); torch.sigmoid(x)
        F.normalize(x, dim=-1); F.hardtanh(x); torch.logit(x.sigmoid())
        F.logsigmoid(x).clamp(min=-1); x.clamp_max(.3); torch.nan_to_num(x)
        """,
    ),
    "math": (
        {},
        """
        torch.tan(x); torch.asinh(x); torch.atan(x); torch.sinh(x); torch.cosh(x)
        torch.expm1(x); torch.ceil(x); torch.round(x); torch.trunc(x); torch.frac(x)
        x.abs(); x.sign(); torch.sgn(x); torch.square(x); torch.erfc(x); torch.erf(x)
        torch.sinc(x); torch.deg2rad(x); torch.rad2deg(x); torch.lgamma(x + 3)
        torch.digamma(x + 3); torch.isnan(x) * x; torch.isfinite(x) * x
        torch.isinf(x) * x; torch.signbit(x) * x; torch.asin(d.tanh() * .9 + 0 * x)
        torch.acos(x.tanh() * .9); torch.atanh(x.tanh() * .9); torch.erfinv(x.tanh() * .9)
        torch.acosh(x * x + 2); torch.log2(x * x + 1); torch.log10(x * x + 1)
        torch.exp2(x); torch.remainder(x, .3); torch.fmod(x, .3); torch.sqrt(x * x + 1)
        torch.remainder(x, d + 9); torch.fmod(x, d + 9); torch.floor_divide(d, .3) * x
        torch.div(x, .3, rounding_mode="trunc"); torch.atan2(x, x + 9)
        torch.hypot(x, x + 1); torch.fmax(x, 2 * x); torch.fmin(x, 2 * x)
        torch.maximum(x, 2 * x); torch.minimum(x, 2 * x); torch.lerp(x, 2 * x, .3)
        torch.lerp(x, 2 * x, x); torch.addcmul(x, x, x, value=2)
        torch.addcdiv(x, x, x * x + 1); torch.xlogy(x, x * x + 1); torch.copysign(x, -d)
        torch.heaviside(d, torch.ones(8)) * x; torch.logaddexp(x, 2 * x)
        torch.logaddexp2(x, 2 * x); torch.pow(x * x + 1, x); torch.pow(2., x)
        torch.logical_xor(s > 0, n > 1) * x; (n << 1) * x; (n >> 1) * x
        torch.bitwise_left_shift(n, s) * x; torch.bitwise_right_shift(n, s) * x
        (n ^ s) * x; (n & s) * x; (n | s) * x; (~n) * x; (x * x + 1).rsqrt() + x.floor()
        torch.rsub(x, 1); 1 / (x * x + 1); torch.clamp(x, -1, 1); x.cos() + x.sin()
        torch.log1p(x * x); torch.logspace(0, 1, 8) * x; torch.polygamma(1, x * x + 1)
        torch.empty(8).fill_(2.) * x; torch.full((8,), .5) * x; torch.full_like(x, .5) * x; x.new_full((8,), .5) * x
        (n == 1) * x + (n != 1) * x + (n < 1) * x + (n >= 1) * x + (n <= 1) * x
        torch.float_power(x.abs() + 1, 2).to(x.dtype); x.half().to(x.dtype)
        """,
    ),
    "losses": (
        {},
        """
        F.binary_cross_entropy(x.sigmoid(), d.sigmoid(), reduction="none")
        F.binary_cross_entropy_with_logits(x, d.sigmoid(), reduction="none")
        F.binary_cross_entropy_with_logits(x, s.to(x.dtype), reduction="none",
                                           pos_weight=torch.linspace(1, 2, 8))
        F.smooth_l1_loss(x, 0 * d, reduction="none"); F.l1_loss(x, d, reduction="none")
        F.huber_loss(x, 0 * d, reduction="none"); F.mse_loss(x, 0 * d, reduction="none")
        F.kl_div(x.log_softmax(-1), d.softmax(-1), reduction="none")
        F.soft_margin_loss(x, 2. * s.to(x.dtype) - 1, reduction="none")
        F.hinge_embedding_loss(x, s * 2 - 1, reduction="none")
        F.cosine_embedding_loss(x.flatten(0, 1), x.flatten(0, 1) + 1,
                                s[:, :, 0].flatten() * 2 - 1, reduction="none")
        F.triplet_margin_loss(x, 2 * x, x + 1, reduction="none")
        F.multilabel_soft_margin_loss(x.flatten(0, 1), s.flatten(0, 1).to(x.dtype),
                                      reduction="none")
        F.cross_entropy(x.transpose(1, 2), s[:, :, 0], label_smoothing=.1,
                        reduction="none")
        F.cross_entropy(x.flatten(0, 1), s[:, :, 0].flatten(), reduction="none",
                        weight=torch.linspace(1, 2, 8))
        F.cross_entropy(x.flatten(0, 1), d.flatten(0, 1).softmax(-1), reduction="none")
        F.poisson_nll_loss(x, s.to(x.dtype), reduction="none")
        F.margin_ranking_loss(x, 2 * x, 2. * s.to(x.dtype) - 1, reduction="none")
        F.pairwise_distance(x, x + 1); F.cosine_similarity(x, x + 1, -1)
        """,
    ),
    "planes": (
        dict(
            one=lambda: nn.Conv1d(8, 8, 3, padding=1, padding_mode="circular"),
            two=lambda: nn.Conv2d(1, 2, 3, padding="same"),
            three=lambda: nn.Conv3d(1, 2, 2), back=lambda: nn.ConvTranspose1d(8, 8, 3),
            stride=lambda: nn.ConvTranspose2d(1, 2, 3, stride=2),
            cube=lambda: nn.ConvTranspose3d(1, 2, 2),
        ),
        """
        F.max_pool1d(x, 2); F.max_pool2d(x, 2); F.max_pool2d(x[:, None], 3, 2, 1)
        F.max_pool3d(x.view(-1, 1, 2, 4, 8), 2); F.adaptive_max_pool1d(x, 2)
        F.adaptive_max_pool2d(x[:, None], 3); F.adaptive_avg_pool1d(x, 3)
        F.adaptive_avg_pool2d(x[:, None], 3); F.adaptive_avg_pool2d(x[:, None], 1)
        F.adaptive_avg_pool3d(x.view(-1, 1, 2, 4, 8), 2); F.avg_pool1d(x, 2)
        F.avg_pool2d(x, 2); F.avg_pool3d(x.view(-1, 1, 2, 4, 8), 2)
        F.lp_pool1d(x * x + 1, 2, 2); m.one(x); m.two(x[:, None]); m.back(x)
        m.three(x.view(-1, 1, 2, 4, 8)); m.stride(x[:, None])
        m.cube(x.view(-1, 1, 2, 4, 8)); F.pixel_shuffle(x.view(-1, 4, 2, 8), 2)
        F.pixel_unshuffle(x[:, None], 2); F.channel_shuffle(x[..., None], 2)
        F.interpolate(x, scale_factor=2); F.interpolate(x, size=11, mode="linear")
        F.interpolate(x[:, None], scale_factor=2, mode="bilinear")
        F.interpolate(x[:, None], size=(7, 5), mode="nearest")
        F.interpolate(x[:, None], scale_factor=2, mode="bicubic")
        F.unfold(x[:, None], 2); F.fold(x.view(-1, 4, 16), (5, 5), 2)
        F.pad(x, (1, 2), "reflect"); F.pad(x[:, None], (1, 2, 1, 1), "reflect")
        F.pad(x.view(-1, 1, 2, 4, 8), (1, 2, 1, 1, 1, 1), "reflect")
        F.pad(x, (1, 2), "replicate"); F.pad(x[:, None], (1, 2, 1, 1), "replicate")
        F.pad(x.view(-1, 1, 2, 4, 8), (1, 2, 1, 1, 1, 1), "replicate")
        F.pad(x, (1, 2), "circular"); F.pad(x, (1, 2)); torch.rot90(x, 1, (1, 2))
        F.grid_sample(x[:, None], x.view(-1, 8, 4, 2).tanh(), align_corners=False)
        """,
    ),
    "norms": (
        dict(
            rms=lambda: nn.RMSNorm(8), layer=lambda: nn.LayerNorm(8),
            group=lambda: nn.GroupNorm(2, 8),
            instance=lambda: nn.InstanceNorm1d(8, affine=True),
            local=lambda: nn.LocalResponseNorm(2),
            weight=lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)),
            fixed=lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)).eval(),
        ),
        """
        m.rms(x); m.layer(x); m.group(x); m.instance(x); m.local(x)
        m.weight(x); m.fixed(x); torch.norm(x, dim=-1); torch.std(x, -1); x.var(-1)
        torch.linalg.vector_norm(x, 1, -1); torch.std_mean(x, -1)[0]
        torch.var_mean(x, -1)[1]; torch.linalg.vector_norm(x, dim=-1)
        """,
    ),
    "choosing": (
        {},
        """
        torch.topk(x, 2)[0]; torch.sort(x)[0]; torch.argsort(d) * x; x.max(-1)[0]
        x.min(-1)[0]; x.amax(-1); x.amin(-1); torch.median(x, -1)[0]; d.argmin(-1) * 1.
        torch.prod(x, -1); torch.cumprod(x, -1); torch.cumsum(x, -1)
        torch.logcumsumexp(x, -1); torch.cummax(x, -1)[0]; torch.cummin(x, -1)[0]
        torch.logsumexp(x, -1); torch.nansum(x, -1); d.count_nonzero(-1) * 1.
        torch.all(s > 0, -1) * 1.; torch.any(s > 0, -1) * 1.; torch.diff(x)
        F.one_hot(s, 2) * x[..., None]; torch.bucketize(d, torch.arange(4.)) * x
        torch.searchsorted(torch.arange(4.), d) * x; x.repeat_interleave(2, -1)
        x.repeat_interleave(torch.tensor([1, 2, 1, 0, 0, 2, 1, 1]), 1, output_size=8)
        torch.gather(x, 1, s); x.scatter(1, s, 2.); x.scatter(1, s, 2 * x)
        x.scatter_add(1, s, 2 * x); x.scatter_reduce(1, s, 2 * x, "mean")
        x.scatter_reduce(1, s, 2 * x, "amax"); x.index_add(1, n[0, 0, :1] * 0, x[:, :1])
        x.index_copy(1, torch.tensor([0, 1]), 2 * x[:, :2])
        x.index_fill(1, torch.tensor([0, 1]), 2.); x[:, torch.tensor([0, 2])]
        x.masked_fill(s > 0, 1.); x.index_select(1, torch.tensor([0, 2]))
        torch.isin(n, torch.tensor([1, 2])) * x; torch.where(s > 0, x, 0.)
        torch.diag_embed(x); torch.diagonal(x, 0, 1, 2); x.tril() + x.triu(); x.flip(1); d.argmax(-1) * 1.
        torch.select_scatter(x, 2 * x[:, 0], 1, 0); torch.roll(x, 1, 1)
        torch.slice_scatter(x, 2 * x[:, :2], 1, 0, 2); x.unfold(1, 2, 1)
        torch.diagonal_scatter(x, x[..., 0], 0, 1, 2); torch.tile(x, (2,))
        x[:, torch.triu_indices(3, 3)[0]]; x[:, torch.tril_indices(3, 3)[0]]
        torch.stack(x.unbind(1), 1); torch.cat(x.chunk(2, -1), 1); x.squeeze() + x.neg()
        x.as_strided(x.shape, x.stride()).detach() * x; torch.cross(x[..., :3],
                                                                    x[..., 3:6], -1)
        """,
    ),
    "products": (
        dict(bilinear=lambda: nn.Bilinear(8, 8, 8)),
        """
        m.bilinear(x, x); torch.einsum("btc,bsc->bts", x, x); x @ x.transpose(1, 2)
        F.scaled_dot_product_attention(
            x[:, None], x[:, None], x[:, None, :, :3], attn_mask=torch.eye(8) > 0)
        torch.tensor([0.5]) * x; torch.baddbmm(x, x, x); torch.cdist(x, x + 1); torch.cdist(x, x + 1, p=1)
        torch.eye(8) @ x; torch.mv(torch.ones(8, 8), torch.ones(8)) * x
        torch.addmv(torch.ones(8), torch.ones(8, 8), torch.ones(8)) * x
        torch.addr(torch.eye(8), torch.ones(8), torch.ones(8)) * x
        torch.block_diag(torch.ones(3, 3), torch.ones(5, 5)) * x
        torch.dot(torch.ones(8), torch.ones(8)) * x; torch.eye(8).trace() * x
        torch.kron(torch.eye(2), torch.ones(4, 4)) * x
        torch.meshgrid(torch.arange(8.), torch.arange(8.), indexing="ij")[0] * x
        F.scaled_dot_product_attention(*3 * [x[:, None]], is_causal=True)
        """,
    ),
    "recurrent": (
        dict(
            lstm=lambda: nn.LSTM(8, 4, 2, batch_first=True, bidirectional=True),
            gru=lambda: nn.GRU(8, 8, batch_first=True),
            rnn=lambda: nn.RNN(8, 8, batch_first=True), cell=lambda: nn.LSTMCell(8, 8),
            attention=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
            decoder=lambda: nn.TransformerDecoderLayer(8, 2, 16, 0., batch_first=True),
        ),
        """
        m.lstm(x)[0]; m.gru(x)[0]; m.rnn(x)[0]; m.cell(x[:, 0])[0]; m.decoder(x, x)
        m.attention(x, x, x, key_padding_mask=s[..., 0] > 99)[0]
        """,
    ),
    "dropout": (
        dict(
            each=lambda: nn.Dropout(0.2),
            channels=lambda: nn.Dropout1d(0.2),
            planes=lambda: nn.Dropout2d(0.2),
        ),
        """
        m.each(x); m.channels(x); m.planes(x[..., None])
        F.scaled_dot_product_attention(x, x, x, dropout_p=.1)
        """,
    ),
    "mixed": (
        dict(batch=lambda: nn.BatchNorm1d(8, track_running_stats=False)),
        """
        m.batch(x); x.take(torch.tensor([0, 2])).sum() * x
        x.put(torch.tensor([0, 2]), x[0, 0, :2]); x.masked_scatter(s > 0, 2 * x)
        x.index_put((torch.tensor([0, -1]),), 2 * x[:1]); torch.norm(x) * x
        x.max() * x; x.std((1, 2), keepdim=True) * x; torch.median(x) * x; torch.prod(x[0, 0]) * x
        torch.dot(x[0, 0], x[0, 1]) * x; torch.mv(x[0], x[0, 0]) * x
        torch.addr(x[0], x[0, 0], x[0, 1]) * x; torch.kron(x[0], x[-1])[:8, :8] * x
        torch.trace(x[0]) * x; torch.block_diag(x[0], x[-1])[:8, :8] * x
        torch.outer(x[0, 0], x[0, 1]) * x; torch.roll(x, 1, 0)
        x.masked_fill(s > 0, x.max()); x.index_put((s[..., 0] > 0,), torch.tensor(2.))
        """,
    ),
}


def expressions(text):
    """The expressions of the text. An expression ends with a semicolon, or at the end
    of a line if no bracket is open."""
    found, start = [], ""
    for piece in text.replace(";", "\n").splitlines():
        start = f"{start} {piece.strip()}".strip()
        if start and start.count("(") == start.count(")"):
            found.append(start)
            start = ""
    return found


class Layer(nn.Module):
    def __init__(self, group):
        super().__init__()
        modules, text = GROUPS[group]
        self.line = nn.Linear(WIDTH, WIDTH)
        self.m = nn.Module()
        for name, make in modules.items():
            setattr(self.m, name, make())
        self.code = [compile(each, each, "eval") for each in expressions(text)]

    def forward(self, x):
        x = torch.tanh(self.line(x))
        d = x.detach()
        s = (d > 0).long()
        names = dict(x=x, d=d, s=s, n=s + (d > 0.5), m=self.m, torch=torch, F=F)
        total = 0
        for code in self.code:
            made = eval(code, names).reshape(x.shape[0], -1)
            total = total + (made * torch.linspace(0.5, 1, made.shape[1])).mean(1)
        return x + 0.1 * total[:, None, None]


class Net(nn.Module):
    def __init__(self, group, layers, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(Layer(group) for _ in range(layers))
        self.head = nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


def make(group, layers=1, samples=2, context=8, vocabulary=256, seed=0):
    torch.manual_seed(seed)
    net = Net(group, layers, vocabulary)  # first: the same buffers for any `samples`
    tokens = torch.randint(0, vocabulary, (samples, context))
    return Model(net, tokens, tokens, F.cross_entropy)
