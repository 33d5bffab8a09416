//===- TextData.cpp - Byte-level tokens from a text file ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/TextData.h"

#include "runtime/program/File.h"
#include "runtime/program/Layout.h"
#include "runtime/stage/torch/Random.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>

namespace chimera::runtime {
namespace {

std::vector<uint8_t> readFile(const std::string &path, uint64_t mostBytes) {
  auto fail = [&](const std::string &why) {
    throw std::runtime_error("cannot read the text file '" + path +
                             "': " + why);
  };
  auto tooLong = [&](const std::string &got) {
    fail("expected at most " + std::to_string(mostBytes) +
         " bytes, as every rank has the whole text in memory, got " + got);
  };
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    fail(std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    fail(std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    fail("expected a file or a pipe, got a device");
  auto size = static_cast<uint64_t>(status.st_size);
  if (size > mostBytes)
    tooLong(std::to_string(size));

  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(std::strerror(errno));
  std::vector<uint8_t> text;
  text.reserve(size);
  std::array<char, 1 << 16> block;
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.insert(text.end(), block.data(), block.data() + file.gcount());
    // A pipe has no size, and a file may have grown.
    if (text.size() > mostBytes)
      tooLong("more");
  }
  if (file.bad())
    fail(std::strerror(errno));
  return text;
}

} // namespace

TextData::TextData(const std::string &path, const program::ProgramT &program,
                   double holdOut, uint64_t mostBytes)
    : seed(program.seed) {
  if (!program.model)
    throw std::invalid_argument(
        "expected a program with a model to read text for, got one of bare "
        "stages");
  if (!(holdOut >= 0 && holdOut < 1))
    throw std::invalid_argument(
        "expected a held-out part in [0, 1) of the text, got " +
        std::to_string(holdOut));
  const std::optional<int64_t> tokens = program::contextOf(*program.model);
  if (!tokens)
    throw std::runtime_error(
        "expected a model whose samples are tokens (int64 numbers, as many "
        "labels as inputs) to read text for, got another");
  if (!program.model->package && program.model->vocabulary < 256)
    throw std::runtime_error(
        "expected a vocabulary of at least 256 for text as bytes, got " +
        std::to_string(program.model->vocabulary) +
        "; compile the program with vocabulary = 256");
  context = *tokens;
  text = readFile(path, mostBytes);
  const auto size = static_cast<int64_t>(text.size());
  training = size - static_cast<int64_t>(
                        std::floor(static_cast<double>(size) * holdOut));
  auto require = [&](const char *part, int64_t bytes) {
    if (bytes < context + 1)
      throw std::runtime_error(
          "expected at least " + std::to_string(context + 1) + " bytes of " +
          part + " text (a context of " + std::to_string(context) +
          " and one more), got " + std::to_string(bytes) + " of the " +
          std::to_string(size) + " in '" + path + "'; give a longer text");
  };
  require("training", training);
  if (holdOut > 0)
    require("held-out", size - training);
}

uint64_t TextData::digest() const {
  return mix({program::checksum(std::as_bytes(std::span(text))),
              static_cast<uint64_t>(training)});
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
    const uint64_t start = mix({seed, kTextWindow, microBatch.step,
                                microBatch.index * samples + row}) %
                           starts;
    const uint8_t *source = text.data() + start + (labels ? 1 : 0);
    target = std::copy(source, source + context, target);
  }
}

std::span<const uint8_t> TextData::heldOutWindow(uint64_t window,
                                                 uint64_t windows) const {
  const auto room = static_cast<uint64_t>(heldOutBytes() - context - 1);
  // In double, for the product of two large numbers; the last is exact.
  const uint64_t start =
      windows < 2 ? 0
                  : static_cast<uint64_t>(static_cast<double>(room) *
                                          static_cast<double>(window) /
                                          static_cast<double>(windows - 1));
  return std::span(text).subspan(static_cast<size_t>(training) + start,
                                 static_cast<size_t>(context) + 1);
}

double TextData::unigramLoss(uint64_t windows) const {
  std::array<double, 256> counts;
  counts.fill(1);
  for (int64_t i = 0; i < training; ++i)
    ++counts[text[static_cast<size_t>(i)]];
  const double total = static_cast<double>(training) + 256;
  double sum = 0;
  for (uint64_t window = 0; window < windows; ++window)
    for (uint8_t label : heldOutWindow(window, windows).subspan(1))
      sum -= std::log(counts[label] / total);
  return sum / (static_cast<double>(windows) * static_cast<double>(context));
}

} // namespace chimera::runtime
