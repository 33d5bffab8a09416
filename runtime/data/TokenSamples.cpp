//===- TokenSamples.cpp - Samples from a sequence of tokens ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenSamples.h"

#include "runtime/random/Random.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The number of [CLS] and [SEP] tokens in a pair.
constexpr size_t kMarks = 3;
/// A temporary label: this token must not be masked.
constexpr int64_t kMark = -1;
} // namespace

TokenSamples::TokenSamples(Read read, DocumentEnd documentEnd, int64_t context,
                           const TokenSampleOptions &form, uint64_t seed)
    : read(std::move(read)), documentEnd(std::move(documentEnd)),
      context(static_cast<size_t>(context)), form(form), seed(seed) {
  if (!form.pairing)
    return;
  if (context < static_cast<int64_t>(kMarks) + 2)
    throw std::invalid_argument(
        "expected a context of at least " + std::to_string(kMarks + 2) +
        " tokens for pairs of sentences, got " + std::to_string(context));
}

Sample TokenSamples::sampleAt(uint64_t first, TokenRange part, uint64_t step,
                              uint64_t number) const {
  Sample sample =
      form.pairing ? pair(first, part, mix({seed, kSentencePair, step, number}))
                   : window(first);
  if (form.masking)
    mask(sample, mix({seed, kMasking, step, number}));
  sample.positions.resize(context);
  std::iota(sample.positions.begin(), sample.positions.end(), 0);
  if (form.separatesDocuments)
    separateDocuments(sample, first);
  return sample;
}

Sample TokenSamples::window(uint64_t first) const {
  Sample sample;
  std::vector<int64_t> tokens(context + 1);
  read(first, tokens);
  sample.tokens.assign(tokens.begin(), tokens.end() - 1);
  if (form.masking)
    sample.labels = sample.tokens;
  else
    sample.labels.assign(tokens.begin() + 1, tokens.end());
  sample.segments.resize(context);
  sample.attention.resize(context, 1);
  return sample;
}

/// Restarts the positions after each end of a document, and ignores the label
/// there, unless tokens are masked: the next token is another document's.
void TokenSamples::separateDocuments(Sample &sample, uint64_t first) const {
  std::vector<int64_t> text(context);
  read(first, text); // the sample may have masked a document's end
  uint64_t end = documentEnd(first);
  int64_t position = 0;
  for (size_t i = 0; i < context; ++i) {
    sample.positions[i] = position++;
    const bool isEnd = first + i + 1 == end;
    if (!isEnd && text[i] != form.documentEnd)
      continue;
    position = 0;
    if (!form.masking)
      sample.labels[i] = kIgnored;
    if (isEnd && i + 1 < context)
      end = documentEnd(end);
  }
}

Sample TokenSamples::pair(uint64_t first, TokenRange part, uint64_t key) const {
  const size_t most = context - kMarks;
  const auto draw = [&](uint64_t choice) { return mix({key, choice}); };
  const size_t length = draw(0) % 10 == 0 ? 2 + draw(1) % (most - 1) : most;
  const size_t ofFirst = 1 + draw(2) % (length - 1);

  std::vector<int64_t> text(context);
  // Returns at most `count` tokens of one document, from index `from` of `text`
  // on. According to the files, this document ends at index `known` of `text`.
  const auto sentence = [&](size_t from, size_t count, size_t known) {
    const size_t last = std::max(from, std::min(from + count, known));
    const auto begin = text.begin() + static_cast<ptrdiff_t>(from);
    auto end = text.begin() + static_cast<ptrdiff_t>(last);
    if (form.documentEnd)
      end = std::find(begin, end, *form.documentEnd);
    return std::span<const int64_t>(begin, end);
  };
  // The index in `text` at which the first document starts.
  const auto begin = [&] {
    size_t from = 0;
    while (form.documentEnd && from < context &&
           text[from] == *form.documentEnd)
      ++from;
    return from;
  };

  Sample sample;
  const auto add = [&](std::span<const int64_t> tokens, int64_t segment,
                       bool areMarks) {
    for (int64_t token : tokens) {
      sample.tokens.push_back(token);
      sample.labels.push_back(areMarks ? kMark : token);
      sample.segments.push_back(segment);
      sample.attention.push_back(1);
    }
  };
  const auto addMark = [&](int64_t token, int64_t segment) {
    add({&token, 1}, segment, /*areMarks=*/true);
  };
  // The index in `text` at which the document at index `from` ends, according
  // to the files. `text` starts at token `place`.
  const auto knownOf = [&](uint64_t place, size_t from) {
    return from == context
               ? context
               : std::min<uint64_t>(context, documentEnd(place + from) - place);
  };
  read(first, text);
  const size_t from = begin();
  const size_t known = knownOf(first, from);
  const std::span<const int64_t> left = sentence(from, ofFirst, known);
  addMark(form.pairing->classification, 0);
  add(left, 0, /*areMarks=*/false);
  addMark(form.pairing->separator, 0);
  std::span<const int64_t> right =
      sentence(from + left.size(), length - ofFirst, known);
  if (draw(3) % 2 != 0 || right.empty()) {
    sample.nextSentence = 1;
    const uint64_t place = part.first + draw(4) % (part.count - context);
    read(place, text);
    const size_t at = begin();
    right = sentence(at, length - ofFirst, knownOf(place, at));
  }
  add(right, 1, /*areMarks=*/false);
  addMark(form.pairing->separator, 1);
  sample.attention.resize(context);
  sample.segments.resize(context);
  sample.tokens.resize(context, form.pairing->padding);
  sample.labels.resize(context, kMark);
  return sample;
}

/// Chooses tokens at random and masks them (see Masking). The labels of all
/// other tokens become kIgnored.
void TokenSamples::mask(Sample &sample, uint64_t key) const {
  std::vector<int64_t> words;
  for (int64_t label : sample.labels)
    if (label != kMark)
      words.push_back(label);
  for (size_t i = 0; i < context; ++i) {
    const int64_t word = std::exchange(sample.labels[i], kIgnored);
    // 53 random bits give a number in [0, 1).
    if (word == kMark ||
        static_cast<double>(mix({key, i, 0}) >> 11) * 0x1p-53 >=
            form.masking->rate)
      continue;
    sample.labels[i] = word;
    const uint64_t way = mix({key, i, 1}) % 10;
    if (way == 0)
      sample.tokens[i] = words[mix({key, i, 2}) % words.size()];
    else if (way > 1)
      sample.tokens[i] = form.masking->token;
  }
}
