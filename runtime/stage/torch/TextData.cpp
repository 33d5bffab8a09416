//===- TextData.cpp - Windows of a sequence of tokens ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/TextData.h"

#include "runtime/program/Layout.h"
#include "runtime/stage/torch/Random.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace chimera::runtime {

TextData::TextData(const std::string &path, const program::ProgramT &program,
                   double holdOut, uint64_t mostBytes)
    : TextData(openTokens({path}, TokenFormat::Text, mostBytes), program,
               holdOut) {}

TextData::TextData(std::unique_ptr<Tokens> given,
                   const program::ProgramT &program, double holdOut,
                   std::optional<Masking> masking)
    : tokens(std::move(given)), masking(masking), seed(program.seed) {
  if (!program.model)
    throw std::invalid_argument(
        "expected a program with a model to read text for, got one of bare "
        "stages");
  if (!(holdOut >= 0 && holdOut < 1))
    throw std::invalid_argument(
        "expected a held-out part in [0, 1) of the text, got " +
        std::to_string(holdOut));
  const std::optional<int64_t> inSample = program::contextOf(*program.model);
  if (!inSample)
    throw std::runtime_error(
        "expected a model whose samples are tokens (int64 numbers, as many "
        "labels as inputs) to read text for, got another");
  context = *inSample;
  vocabulary = program.model->package ? 0 : program.model->vocabulary;
  // A text may have any byte. Of token files those tokens are checked that are
  // read.
  if (vocabulary > 0 && isOfBytes() && vocabulary < 256)
    throw std::runtime_error(
        "expected a vocabulary of at least 256 for text as bytes, got " +
        std::to_string(vocabulary) +
        "; compile the program with vocabulary = 256");
  const auto size = static_cast<int64_t>(tokens->count());
  training = size - static_cast<int64_t>(
                        std::floor(static_cast<double>(size) * holdOut));
  auto require = [&](const char *part, int64_t count) {
    if (count < context + 1)
      throw std::runtime_error(
          "expected at least " + std::to_string(context + 1) +
          (isOfBytes() ? " bytes of " : " tokens of ") + part +
          " text (a context of " + std::to_string(context) +
          " and one more), got " + std::to_string(count) + " of the " +
          std::to_string(size) + " in " + tokens->where() +
          "; give a longer text");
  };
  require("training", training);
  if (holdOut > 0)
    require("held-out", size - training);
}

uint64_t TextData::digest() const {
  return mix({tokens->digest(), static_cast<uint64_t>(training)});
}

void TextData::read(uint64_t first, std::span<int64_t> into) const {
  tokens->read(first, into);
  if (vocabulary == 0)
    return;
  for (size_t i = 0; i < into.size(); ++i)
    if (static_cast<uint64_t>(into[i]) >= vocabulary)
      throw std::runtime_error("expected tokens of the model's vocabulary of " +
                               std::to_string(vocabulary) + ", got " +
                               std::to_string(into[i]) + " as token " +
                               std::to_string(first + i) + " of the data");
}

void TextData::load(program::ValueKind kind, MicroBatch microBatch,
                    Bytes output) {
  const size_t rowBytes = static_cast<size_t>(context) * sizeof(int64_t);
  const bool labels = kind == program::ValueKind::Labels;
  if ((!labels && kind != program::ValueKind::Tokens) || output.empty() ||
      output.size() % rowBytes != 0)
    throw std::invalid_argument(
        std::string("expected tokens or labels in rows of ") +
        std::to_string(rowBytes) + " bytes, got " +
        std::to_string(output.size()) + " bytes of " + program::nameOf(kind));
  auto *target = reinterpret_cast<int64_t *>(output.data());
  const auto starts = static_cast<uint64_t>(training - context);
  const uint64_t samples = output.size() / rowBytes;
  for (uint64_t row = 0; row < samples; ++row) {
    const uint64_t number = microBatch.index * samples + row;
    const Sample sample =
        sampleAt(mix({seed, kTextWindow, microBatch.step, number}) % starts,
                 mix({seed, kMasking, microBatch.step, number}));
    target =
        std::ranges::copy(labels ? sample.labels : sample.tokens, target).out;
  }
}

TextData::Sample TextData::sampleAt(uint64_t first, uint64_t key) const {
  Sample sample;
  const auto width = static_cast<size_t>(context);
  std::vector<int64_t> window(width + 1);
  read(first, window);
  sample.tokens.assign(window.begin(), window.end() - 1);
  if (!masking) {
    sample.labels.assign(window.begin() + 1, window.end());
    return sample;
  }
  sample.labels.assign(width, kIgnored);
  for (size_t i = 0; i < width; ++i) {
    // 53 bits make a number in [0, 1).
    if (static_cast<double>(mix({key, i, 0}) >> 11) * 0x1p-53 >= masking->rate)
      continue;
    sample.labels[i] = window[i];
    const uint64_t way = mix({key, i, 1}) % 10;
    if (way == 0)
      sample.tokens[i] = window[mix({key, i, 2}) % width];
    else if (way > 1)
      sample.tokens[i] = masking->token;
  }
  return sample;
}

TextData::Sample TextData::heldOutSample(uint64_t window,
                                         uint64_t windows) const {
  const auto room = static_cast<uint64_t>(heldOutTokens() - context - 1);
  // In double, for the product of two large numbers; the last is exact.
  const uint64_t start =
      windows < 2 ? 0
                  : static_cast<uint64_t>(static_cast<double>(room) *
                                          static_cast<double>(window) /
                                          static_cast<double>(windows - 1));
  return sampleAt(static_cast<uint64_t>(training) + start,
                  mix({seed, kMasking, UINT64_MAX, window}));
}

double TextData::unigramLoss(uint64_t windows) const {
  std::vector<double> counts(isOfBytes() ? 256 : vocabulary, 1);
  std::vector<int64_t> block(size_t{1} << 16);
  auto see = [&](int64_t token) {
    const auto number = static_cast<size_t>(token);
    if (number >= counts.size())
      counts.resize(number + 1, 1);
  };
  for (int64_t first = 0; first < training;
       first += static_cast<int64_t>(block.size())) {
    block.resize(static_cast<size_t>(
        std::min<int64_t>(int64_t{1} << 16, training - first)));
    read(static_cast<uint64_t>(first), block);
    for (int64_t token : block) {
      see(token);
      ++counts[static_cast<size_t>(token)];
    }
  }
  std::vector<int64_t> labels;
  for (uint64_t window = 0; window < windows; ++window)
    for (int64_t label : heldOutSample(window, windows).labels)
      if (label != kIgnored) {
        see(label);
        labels.push_back(label);
      }
  const double total =
      static_cast<double>(training) + static_cast<double>(counts.size());
  double sum = 0;
  for (int64_t label : labels)
    sum -= std::log(counts[static_cast<size_t>(label)] / total);
  return sum / static_cast<double>(labels.size());
}

} // namespace chimera::runtime
