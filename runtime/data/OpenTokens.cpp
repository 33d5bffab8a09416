//===- OpenTokens.cpp - Opens texts and token files -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenTokens.h"

#include "runtime/data/MegatronIndex.h"
#include "runtime/data/TokenFiles.h"
#include "runtime/program/File.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {

/// A text. Each byte is a token.
class Text : public Tokens {
public:
  Text(const std::string &path, uint64_t mostBytes) : path(path) {
    auto tooLong = [&](const std::string &got) {
      fail("expected at most " + std::to_string(mostBytes) +
           " bytes, as every rank has the whole text in memory, got " + got);
    };
    const auto size = static_cast<uint64_t>(statusOfData(path).st_size);
    if (size > mostBytes)
      tooLong(std::to_string(size));
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file)
      fail(std::strerror(errno));
    text.reserve(size);
    std::array<char, 1 << 16> block;
    while (file.read(block.data(), block.size()) || file.gcount() > 0) {
      text.insert(text.end(), block.data(), block.data() + file.gcount());
      // Check the size after reading, because a pipe has no size, and a file
      // may have grown.
      if (text.size() > mostBytes)
        tooLong("more");
    }
    if (file.bad())
      fail(std::strerror(errno));
  }

  /// Throws std::runtime_error if the bytes have another known format, or if
  /// more than 1 % of them are 0.
  void expectText() const {
    if (text.empty())
      return;
    const std::string advice = adviceOnFormat(
        std::as_bytes(std::span(text).first(std::min(text.size(), kHeadBytes))),
        static_cast<std::byte>(text.back()), text.size(), AssumedFormat::Text);
    if (!advice.empty())
      fail("expected text, got " + advice);
    const auto zeros =
        static_cast<size_t>(std::count(text.begin(), text.end(), 0));
    if (zeros > text.size() / 100)
      fail("expected text, got bytes of which " + std::to_string(zeros) +
           " of " + std::to_string(text.size()) +
           " are 0: give --tokens uint16 or uint32 if they are tokens, or "
           "--tokens bytes if each byte is one");
  }

  uint64_t count() const override { return text.size(); }
  void read(uint64_t first, std::span<int64_t> tokens) const override {
    std::copy_n(text.begin() + static_cast<ptrdiff_t>(first), tokens.size(),
                tokens.begin());
  }
  uint64_t digest() const override {
    return program::checksum(std::as_bytes(std::span(text)));
  }
  std::string fileNames() const override { return "'" + path + "'"; }
  std::string describePosition(uint64_t token) const override {
    return "byte " + std::to_string(token) + " of '" + path + "'";
  }
  uint64_t tokenBound() const override { return 256; }
  std::optional<uint64_t> findAtLeast(uint64_t limit, uint64_t first,
                                      uint64_t count) const override {
    if (limit > UINT8_MAX)
      return std::nullopt;
    const auto begin = text.begin() + static_cast<ptrdiff_t>(first),
               end = begin + static_cast<ptrdiff_t>(count),
               found = std::find_if(
                   begin, end, [&](uint8_t each) { return each >= limit; });
    return found == end
               ? std::nullopt
               : std::optional(static_cast<uint64_t>(found - text.begin()));
  }

private:
  [[noreturn]] void fail(const std::string &why) const {
    failToRead("text file", path, why);
  }

  std::string path;
  std::vector<uint8_t> text;
};

/// Throws std::runtime_error for a file of unknown format. Its bytes are read
/// as tokens only if the user says so (--tokens bytes).
[[noreturn]] void rejectBytes(const std::string &path, uint64_t vocabulary) {
  if (const auto status = statusOfData(path);
      S_ISREG(status.st_mode) && status.st_size == 0)
    throw std::runtime_error("expected tokens, got '" + path +
                             "', which is empty");
  throw std::runtime_error(
      "expected tokens for a model " +
      (vocabulary > 0 ? "with a vocabulary of " + std::to_string(vocabulary)
                      : std::string("with an unknown vocabulary")) +
      ", got '" + path +
      "', whose format is unknown: give --tokens uint16 or uint32 if its "
      "tokens are plain numbers, or --tokens bytes if each byte is a token. "
      "tools/export/chimera-tokens turns a text into tokens");
}

} // namespace

std::unique_ptr<Tokens>
chimera::runtime::openTokens(const std::vector<std::string> &files,
                             const TokenOptions &options) {
  const std::string &first = files.front();
  const bool mayBeText = options.format == TokenFormat::Auto;
  if (options.format == TokenFormat::UInt16)
    return openTokenFiles(files, 2, options);
  if (options.format == TokenFormat::UInt32)
    return openTokenFiles(files, 4, options);
  // If the user asks for bytes, a header is ignored, because bytes may look
  // like a header. An index is not ignored.
  const uint32_t width = mayBeText ? declaredTokenWidth(first)
                         : MegatronIndex::openBeside(first) ? 1
                                                            : 0;
  if (width > 0)
    return openTokenFiles(files, width, options);
  if (mayBeText && S_ISREG(statusOfData(first).st_mode))
    rejectKnownFormat(first, AssumedFormat::Text);
  if (mayBeText && options.vocabulary != 256)
    rejectBytes(first, options.vocabulary);
  if (files.size() > 1)
    throw std::runtime_error(
        "expected one text to train on, or files of tokens (of llm.c or "
        "Megatron, or with --tokens uint16 or uint32), got " +
        std::to_string(files.size()) + " texts");
  auto text = std::make_unique<Text>(first, options.mostBytes);
  if (mayBeText)
    text->expectText();
  return text;
}
