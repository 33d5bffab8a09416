# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The random numbers of a run, as runtime/random/Random.h documents them, and dropout."""

import torch

WORD = (1 << 64) - 1
DROPOUT, SAMPLE_ORDER, FIRST_WINDOW = 2, 3, 6
EMBEDDING, ATTENTION, ATTENTION_RESIDUAL, MLP_RESIDUAL = 0, 0, 1, 2


def split_mix(x):
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def mix(*words):
    value = 0
    for word in words:
        value = split_mix(value ^ word)
    return value


LOW = (1 << 32) - 1


def philox(counter, key):
    """Philox4x32-10. The counter has four tensors of 32-bit words, stored as 64-bit
    integers."""
    a, b, c, d = counter
    low, high = key & LOW, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = (second >> 32) & LOW ^ b ^ low, second & LOW
        c, d = (first >> 32) & LOW ^ d ^ high, first & LOW
        low, high = (low + 0x9E3779B9) & LOW, (high + 0xBB67AE85) & LOW
    return a, b, c, d


class Dropout:
    """Dropout for the samples of one micro-batch of one step."""

    def __init__(self, probability, seed, step, micro_batch):
        self.p, self.seed, self.step = probability, seed, step
        self.micro_batch = micro_batch

    def __call__(self, x, layer, site):
        if self.p == 0:
            return x
        key = mix(self.seed, DROPOUT, layer, site, self.step)
        first = self.micro_batch * x.numel()
        last = first + x.numel()
        counter = torch.arange(first // 4, (last + 3) // 4)
        zero = torch.zeros_like(counter)
        numbers = philox((counter & LOW, counter >> 32, zero, zero), key)
        numbers = torch.stack(numbers, -1).flatten()[first % 4 :][: x.numel()]
        # Convert integers to floats in (0, 1] as cuRAND does.
        uniform = numbers.float() * 2.0**-32 + 2.0**-33
        kept = (uniform > self.p).reshape(x.shape)
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
