//===- Tokens.cpp - Sequences of tokens in files --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Tokens.h"

#include "runtime/program/File.h"
#include "runtime/stage/Mix.h"
#include "runtime/system/ReadAt.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as files hold them");

[[noreturn]] void fail(const std::string &path, const std::string &why) {
  throw std::runtime_error("cannot read the " + path + ": " + why);
}

std::string named(const char *kind, const std::string &path) {
  return std::string(kind) + " '" + path + "'";
}

struct stat statusOf(const std::string &path) {
  struct stat status;
  const std::string name = named("text file", path);
  if (::stat(path.c_str(), &status) != 0)
    fail(name, std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    fail(name, std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    fail(name, "expected a file or a pipe, got a device");
  return status;
}

/// A byte is a token.
class Text : public Tokens {
public:
  Text(const std::string &path, uint64_t mostBytes) : path(path) {
    const std::string name = named("text file", path);
    auto tooLong = [&](const std::string &got) {
      fail(name,
           "expected at most " + std::to_string(mostBytes) +
               " bytes, as every rank has the whole text in memory, got " +
               got);
    };
    const auto size = static_cast<uint64_t>(statusOf(path).st_size);
    if (size > mostBytes)
      tooLong(std::to_string(size));
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file)
      fail(name, std::strerror(errno));
    text.reserve(size);
    std::array<char, 1 << 16> block;
    while (file.read(block.data(), block.size()) || file.gcount() > 0) {
      text.insert(text.end(), block.data(), block.data() + file.gcount());
      // A pipe has no size, and a file may have grown.
      if (text.size() > mostBytes)
        tooLong("more");
    }
    if (file.bad())
      fail(name, std::strerror(errno));
  }

  uint64_t count() const override { return text.size(); }
  void read(uint64_t first, std::span<int64_t> tokens) const override {
    std::copy_n(text.begin() + static_cast<ptrdiff_t>(first), tokens.size(),
                tokens.begin());
  }
  uint64_t digest() const override {
    return program::checksum(std::as_bytes(std::span(text)));
  }
  std::string where() const override { return "'" + path + "'"; }
  uint64_t bound() const override { return 256; }

private:
  std::string path;
  std::vector<uint8_t> text;
};

/// llm.c's files begin with these: a number that tells them, the version of the
/// format, and how many tokens follow.
struct Header {
  int32_t magic, version;
  uint32_t tokens;
};
constexpr uint64_t kHeaderBytes = 256 * sizeof(int32_t);

/// The format that the header of file `name` says; `Auto` where it is none.
/// Throws std::runtime_error where it is one of another version.
TokenFormat formatOf(const Header &header, const std::string &name) {
  if (header.magic == 20240520 && header.version == 1)
    return TokenFormat::UInt16;
  if (header.magic == 20240801 && header.version == 7)
    return TokenFormat::UInt32;
  if (header.magic == 20240520 || header.magic == 20240801)
    fail(name, "expected llm.c's version 1 (16 bits) or 7 (32 bits), got "
               "version " +
                   std::to_string(header.version));
  return TokenFormat::Auto;
}

/// What llm.c's header at the begin of a file says; no file has none.
TokenFormat formatOf(const std::string &path) {
  if (!S_ISREG(statusOf(path).st_mode))
    return TokenFormat::Auto;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    fail(named("text file", path), std::strerror(errno));
  Header header{};
  readAt(file, 0, std::as_writable_bytes(std::span(&header, 1)));
  ::close(file);
  return formatOf(header, named("token file", path));
}

/// Files of numbers of T's size.
template <typename T> class TokenFiles : public Tokens {
public:
  // It delegates so that the destructor closes the files that are open where
  // `add` throws.
  explicit TokenFiles(const std::vector<std::string> &paths) : TokenFiles() {
    for (const std::string &path : paths)
      add(path);
  }
  ~TokenFiles() override {
    for (const Part &part : parts)
      ::close(part.file);
  }
  TokenFiles(const TokenFiles &) = delete;

  uint64_t count() const override { return total; }

  void read(uint64_t first, std::span<int64_t> tokens) const override {
    // The last part that does not begin behind `first`.
    auto part = std::prev(std::upper_bound(
        parts.begin(), parts.end(), first,
        [](uint64_t place, const Part &each) { return place < each.first; }));
    std::vector<T> block;
    for (; !tokens.empty(); ++part) {
      const uint64_t size =
          std::min<uint64_t>(tokens.size(), part->first + part->count - first);
      block.resize(size);
      readPart(*part, first - part->first, block);
      std::copy(block.begin(), block.end(), tokens.begin());
      tokens = tokens.subspan(size);
      first += size;
    }
  }

  uint64_t digest() const override {
    constexpr uint64_t kBlocks = 256;
    uint64_t state = mix({sizeof(T), parts.size()});
    std::vector<T> block;
    for (const Part &part : parts) {
      state = mix({state, part.count});
      for (uint64_t i = 0; i < kBlocks; ++i) {
        block.resize(std::min<uint64_t>(part.count, 1024));
        readPart(part, (part.count - block.size()) / kBlocks * i, block);
        state =
            mix({state, program::checksum(std::as_bytes(std::span(block)))});
      }
    }
    return state;
  }

  std::string where() const override {
    std::string first = "'" + parts.front().path + "'";
    return parts.size() == 1
               ? first
               : first + " and " + std::to_string(parts.size() - 1) + " more";
  }
  uint64_t bound() const override { return uint64_t{1} << (8 * sizeof(T)); }

private:
  TokenFiles() = default;

  struct Part {
    std::string path;
    int file;
    uint64_t offset; ///< bytes before its first token
    uint64_t first;  ///< number of that one in the sequence
    uint64_t count;
  };

  void add(const std::string &path) {
    const std::string name = named("token file", path);
    const struct stat status = statusOf(path);
    if (!S_ISREG(status.st_mode))
      fail(name, "expected a file, got a pipe");
    Part part{path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC), 0, total, 0};
    if (part.file < 0)
      fail(name, std::strerror(errno));
    parts.push_back(part);
    const auto size = static_cast<uint64_t>(status.st_size);
    Header header{};
    if (readAt(part.file, 0, std::as_writable_bytes(std::span(&header, 1))) < 0)
      fail(name, std::strerror(errno));
    const TokenFormat format = formatOf(header, name);
    constexpr TokenFormat kOwn =
        sizeof(T) == 2 ? TokenFormat::UInt16 : TokenFormat::UInt32;
    if (format != TokenFormat::Auto && format != kOwn)
      fail(name, std::string("expected numbers of ") +
                     (sizeof(T) == 2 ? "16" : "32") +
                     " bits, its header says others");
    if (format == kOwn) {
      if (size < kHeaderBytes)
        fail(name, "expected a header of " + std::to_string(kHeaderBytes) +
                       " bytes, got a file of " + std::to_string(size));
      part.offset = kHeaderBytes;
    }
    const uint64_t bytes = size - part.offset;
    if (bytes % sizeof(T) != 0)
      fail(name, "expected a whole number of tokens of " +
                     std::to_string(sizeof(T)) + " bytes, got " +
                     std::to_string(bytes) + " bytes");
    part.count = bytes / sizeof(T);
    if (format == kOwn && header.tokens != part.count)
      fail(name, "expected the " + std::to_string(header.tokens) +
                     " tokens that its header says, got " +
                     std::to_string(part.count));
    if (part.count == 0)
      fail(name, "expected a token or more, got none");
    total += part.count;
    parts.back() = part;
  }

  void readPart(const Part &part, uint64_t first, std::span<T> tokens) const {
    const ssize_t bytes = readAt(part.file, part.offset + first * sizeof(T),
                                 std::as_writable_bytes(std::span<T>(tokens)));
    if (bytes < 0)
      fail(named("token file", part.path), std::strerror(errno));
    if (static_cast<size_t>(bytes) < tokens.size_bytes())
      fail(named("token file", part.path), "it has become shorter");
  }

  std::vector<Part> parts;
  uint64_t total = 0;
};

} // namespace

std::unique_ptr<Tokens>
chimera::runtime::openTokens(const std::vector<std::string> &files,
                             TokenFormat format, uint64_t mostBytes) {
  if (format == TokenFormat::Auto)
    format = formatOf(files.front());
  switch (format) {
  case TokenFormat::UInt16:
    return std::make_unique<TokenFiles<uint16_t>>(files);
  case TokenFormat::UInt32:
    return std::make_unique<TokenFiles<uint32_t>>(files);
  case TokenFormat::Auto:
  case TokenFormat::Text:
    break;
  }
  if (files.size() > 1)
    throw std::runtime_error(
        "expected one text to train on, or files of tokens (llm.c's, or those "
        "that --tokens uint16 or uint32 says), got " +
        std::to_string(files.size()) + " texts");
  return std::make_unique<Text>(files.front(), mostBytes);
}
