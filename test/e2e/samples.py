# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT's samples of a text, by the formulas of runtime/random/Random.h and
TokenSamples.h."""

from reference import mix, window_start


class BertSamples:
    """The samples of a run. `run` has the seed, the context, the number of samples of a
    micro-batch, the numbers of micro-batches and copies, and the held-out part of the
    text. `token` is the token [MASK]. `marks`
    are [CLS], [SEP] and [PAD]. Without `marks`, a sample is one window of the text and
    not a pair of sentences."""

    def __init__(self, text, run, token, marks, rate=0.15):
        self.text, self.run, self.token, self.marks = text, run, token, marks
        self.rate = rate
        self.training = len(text) - int(len(text) * run.hold_out)

    def of(self, step, micro_batch):
        """The inputs and then the labels of the micro-batch. Each is a list over the
        samples."""
        columns, samples = [], self.run.micro_batch_size
        starts = self.training - self.run.context
        for row in range(micro_batch * samples, (micro_batch + 1) * samples):
            first = window_start(self.training, self.run, step, row)
            key = mix(self.run.seed, 4, step, row)
            if not self.marks:
                window = list(self.text[first : first + self.run.context])
                labels = self._mask(window, range(len(window)), key)
                columns.append((window, labels))
                continue
            pair = self._pair(first, starts, mix(self.run.seed, 5, step, row))
            tokens, segments, seen, words, elsewhere = pair
            labels = self._mask(tokens, words, key)
            columns.append((tokens, segments, seen, labels, elsewhere))
        return list(zip(*columns))

    def _mask(self, window, words, key):
        """Masks tokens of the window in place. Only the positions in `words` may be
        masked. Returns the labels."""
        original, labels = list(window), [-100] * len(window)
        for i in words:
            if (mix(key, i, 0) >> 11) * 2.0**-53 >= self.rate:
                continue
            labels[i] = original[i]
            way = mix(key, i, 1) % 10
            if way == 0:
                window[i] = original[words[mix(key, i, 2) % len(words)]]
            elif way > 1:
                window[i] = self.token
        return labels

    def _pair(self, first, starts, key):
        """A pair of sentences. Returns its tokens, the sentence of each token, which
        tokens are not padding, the positions that may be masked, and whether the second
        sentence is from elsewhere."""
        most, text = self.run.context - 3, self.text
        length = 2 + mix(key, 1) % (most - 1) if mix(key, 0) % 10 == 0 else most
        middle = 1 + mix(key, 2) % (length - 1)
        a, b = text[first : first + middle], text[first + middle : first + length]
        elsewhere = mix(key, 3) % 2
        if elsewhere:
            begin = mix(key, 4) % starts
            b = text[begin : begin + length - middle]
        begin, between, padding = self.marks
        tokens = [begin, *a, between, *b, between]
        segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        words = [i for i in range(1, len(tokens) - 1) if i != len(a) + 1]
        rest = self.run.context - len(tokens)
        seen = [1] * len(tokens) + [0] * rest
        return tokens + [padding] * rest, segments + [0] * rest, seen, words, elsewhere
