//===- TokenFiles.cpp - Files of tokens as plain numbers ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenFiles.h"

#include "runtime/data/MegatronIndex.h"
#include "runtime/program/File.h"
#include "runtime/random/Mix.h"
#include "runtime/system/ReadAt.h"
#include "runtime/system/VectorWidths.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <stdexcept>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

void chimera::runtime::failToRead(const char *kind, const std::string &path,
                                  const std::string &why) {
  throw std::runtime_error(std::string("cannot read the ") + kind + " '" +
                           path + "': " + why);
}

struct stat chimera::runtime::statusOfData(const std::string &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    failToRead("text file", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    failToRead("text file", path, std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    failToRead("text file", path, "expected a file or a pipe, got a device");
  return status;
}

namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as files hold them");

[[noreturn]] void failToReadTokens(const std::string &path,
                                   const std::string &why) {
  failToRead("token file", path, why);
}

/// A file that is open for reading.
class OpenFile {
public:
  explicit OpenFile(const std::string &path, const char *kind = "token file")
      : path(path), file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file < 0)
      failToRead(kind, path, std::strerror(errno));
  }
  ~OpenFile() {
    if (file >= 0)
      ::close(file);
  }
  OpenFile(OpenFile &&other) noexcept
      : path(std::move(other.path)), file(std::exchange(other.file, -1)) {}

  /// Reads from `offset` on, until `bytes` is full or the file ends. Returns
  /// the number of bytes that were read.
  size_t read(uint64_t offset, std::span<std::byte> bytes) const {
    const ssize_t count = readAt(file, offset, bytes);
    if (count < 0)
      failToReadTokens(path, std::strerror(errno));
    return static_cast<size_t>(count);
  }

private:
  std::string path;
  int file;
};

/// The start of llm.c's header: a magic number, the version of the format, and
/// the number of tokens.
struct LlmcHeader {
  int32_t magic, version;
  uint32_t tokens;
};
constexpr uint64_t kLlmcHeaderBytes = 256 * sizeof(int32_t);

/// The bytes per token according to `header`; 0 if this is not a header of
/// llm.c. Throws std::runtime_error if the version is not supported.
uint32_t widthOf(const LlmcHeader &header, const std::string &path) {
  if (header.magic == 20240520 && header.version == 1)
    return 2;
  if (header.magic == 20240801 && header.version == 7)
    return 4;
  if (header.magic == 20240520 || header.magic == 20240801)
    failToReadTokens(path,
                     "expected llm.c's version 1 (16 bits) or 7 (32 bits), got "
                     "version " +
                         std::to_string(header.version));
  return 0;
}

LlmcHeader llmcHeaderOf(const OpenFile &file) {
  LlmcHeader header{};
  file.read(0, std::as_writable_bytes(std::span(&header, 1)));
  return header;
}

CHIMERA_FOR_EACH_SIMD_WIDTH uint8_t largest(const uint8_t *tokens,
                                            size_t count) {
  uint8_t most = 0;
  for (size_t i = 0; i < count; ++i)
    most = std::max(most, tokens[i]);
  return most;
}
CHIMERA_FOR_EACH_SIMD_WIDTH uint16_t largest(const uint16_t *tokens,
                                             size_t count) {
  uint16_t most = 0;
  for (size_t i = 0; i < count; ++i)
    most = std::max(most, tokens[i]);
  return most;
}
CHIMERA_FOR_EACH_SIMD_WIDTH uint32_t largest(const uint32_t *tokens,
                                             size_t count) {
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i)
    most = std::max(most, tokens[i]);
  return most;
}

/// Whether the numbers look like the lower and upper halves of wider tokens
/// below `vocabulary`. They do if every second number is at most the largest
/// possible upper half, and if some of the other numbers are larger.
template <typename T>
bool areHalves(std::span<const T> numbers, uint64_t vocabulary) {
  constexpr size_t kFewest = 64; // fewer may match by chance
  const uint64_t upper =
      (std::max<uint64_t>(vocabulary, 1) - 1) >> (8 * sizeof(T));
  bool haveLower = false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % 2 == 1 && numbers[i] > upper)
      return false;
    haveLower |= i % 2 == 0 && numbers[i] > upper;
  }
  return haveLower && numbers.size() >= kFewest;
}

/// Whether 32-bit numbers look like pairs of 16-bit tokens: most are outside
/// the vocabulary, but all halves are inside.
bool arePairs(std::span<const uint32_t> numbers, uint64_t vocabulary) {
  constexpr size_t kFewest = 32; // fewer may match by chance
  const auto isToken = [&](uint32_t number) { return number < vocabulary; };
  // Allow a few numbers inside the vocabulary, which may occur by chance.
  const auto tokens = std::ranges::count_if(numbers, isToken);
  return numbers.size() >= kFewest &&
         static_cast<size_t>(tokens) < numbers.size() / 2 &&
         std::ranges::all_of(numbers, [&](uint32_t number) {
           return isToken(number & UINT16_MAX) && isToken(number >> 16);
         });
}

/// Whether the numbers are characters of ASCII text.
template <typename T> bool areText(std::span<const T> characters) {
  constexpr size_t kFewest = 64; // fewer may match by chance
  return characters.size() >= kFewest &&
         std::ranges::all_of(characters, [](T each) {
           return (each >= ' ' && each <= '~') ||
                  (each >= '\t' && each <= '\r');
         });
}

/// Files of numbers of type T.
template <typename T> class TokenFiles : public Tokens {
public:
  TokenFiles(const std::vector<std::string> &paths, const TokenOptions &options)
      : options(options) {
    for (const std::string &path : paths)
      add(path);
  }

  uint64_t count() const override { return total; }

  void read(uint64_t first, std::span<int64_t> tokens) const override {
    std::vector<T> block;
    for (auto part = partOf(first); !tokens.empty(); ++part) {
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
      state = mix({state, part.count, part.index ? 1u : 0u});
      for (uint64_t i = 0; i < kBlocks; ++i) {
        block.resize(std::min<uint64_t>(part.count, 1024));
        readPart(part, (part.count - block.size()) / kBlocks * i, block);
        state =
            mix({state, program::checksum(std::as_bytes(std::span(block)))});
      }
    }
    return state;
  }

  std::string fileNames() const override {
    std::string first = "'" + parts.front().path + "'";
    return parts.size() == 1
               ? first
               : first + " and " + std::to_string(parts.size() - 1) + " more";
  }
  std::string describePosition(uint64_t token) const override {
    const auto part = partOf(token);
    return "token " + std::to_string(token - part->first) + " of '" +
           part->path + "'";
  }
  uint64_t tokenBound() const override { return largestBound; }

  uint64_t documentEnd(uint64_t token) const override {
    const auto part = partOf(token);
    if (part->index)
      return part->first + part->index->documentEnd(token - part->first);
    return statesDocuments() ? part->first + part->count : count();
  }

  bool statesDocuments() const override {
    return std::ranges::any_of(
        parts, [](const Part &part) { return part.index.has_value(); });
  }

  std::vector<uint64_t> documentEnds() const override {
    std::vector<uint64_t> ends;
    if (!statesDocuments())
      return ends;
    for (const Part &part : parts) {
      if (part.index)
        for (uint64_t end : part.index->documentEnds())
          ends.push_back(part.first + end);
      else
        ends.push_back(part.first + part.count);
    }
    return ends;
  }

  std::optional<uint64_t> findAtLeast(uint64_t limit, uint64_t first,
                                      uint64_t count) const override {
    if (limit > std::numeric_limits<T>::max())
      return std::nullopt;
    constexpr uint64_t kBlock = (uint64_t{1} << 18) / sizeof(T);
    std::vector<T> block;
    for (auto part = partOf(first); count > 0; ++part) {
      const uint64_t last = std::min(first + count, part->first + part->count);
      while (first < last) {
        block.resize(std::min(kBlock, last - first));
        readPart(*part, first - part->first, block);
        if (largest(block.data(), block.size()) >= limit)
          return first + static_cast<uint64_t>(
                             std::ranges::find_if(
                                 block, [&](T each) { return each >= limit; }) -
                             block.begin());
        first += block.size();
        count -= block.size();
      }
    }
    return std::nullopt;
  }

private:
  struct Part {
    std::string path;
    OpenFile file;
    std::optional<MegatronIndex> index = std::nullopt;
    uint64_t offset = 0; ///< bytes before the first token
    uint64_t first = 0;  ///< its first token's number in the sequence
    uint64_t count = 0;
  };

  /// The part that contains the token; the last part for token == count().
  auto partOf(uint64_t token) const {
    return std::prev(std::upper_bound(
        parts.begin(), parts.end(), token,
        [](uint64_t each, const Part &part) { return each < part.first; }));
  }

  void add(const std::string &path) {
    const struct stat status = statusOfData(path);
    if (!S_ISREG(status.st_mode))
      failToReadTokens(path, "expected a file, got a pipe");
    Part part{.path = path, .file = OpenFile(path), .first = total};
    const auto size = static_cast<uint64_t>(status.st_size);
    part.index = MegatronIndex::openBeside(path);
    const std::optional<MegatronIndex> &index = part.index;
    const LlmcHeader header = llmcHeaderOf(part.file);
    const uint32_t said = index ? 0 : widthOf(header, path);
    if (said != 0 && said != sizeof(T))
      failToReadTokens(path, "expected numbers of " +
                                 std::to_string(8 * sizeof(T)) +
                                 " bits, its header says others");
    if (index && index->bytesPerToken() != sizeof(T))
      failToReadTokens(
          path,
          "expected numbers of " + std::to_string(8 * sizeof(T)) +
              " bits, its index '" + index->path() + "' says " + index->type() +
              (options.format == TokenFormat::Auto ? ": give files of one type"
                                                   : ": leave out --tokens"));
    if (said != 0) {
      if (size < kLlmcHeaderBytes)
        failToReadTokens(
            path, "expected a header of " + std::to_string(kLlmcHeaderBytes) +
                      " bytes, got a file of " + std::to_string(size));
      part.offset = kLlmcHeaderBytes;
    }
    if (!index && said == 0) {
      if (options.format == TokenFormat::Auto)
        failToReadTokens(
            path, "expected a file with a header or an index, like the file "
                  "before it, got plain numbers: give --tokens uint16 or "
                  "uint32 if all files hold plain numbers of that type");
      rejectKnownFormat(path, AssumedFormat::Tokens);
    }
    const uint64_t bytes = size - part.offset;
    if (bytes % sizeof(T) != 0)
      failToReadTokens(path, "expected a whole number of tokens of " +
                                 std::to_string(sizeof(T)) + " bytes, got " +
                                 std::to_string(bytes) + " bytes");
    part.count = bytes / sizeof(T);
    if (said != 0 && header.tokens != part.count)
      failToReadTokens(path, "expected the " + std::to_string(header.tokens) +
                                 " tokens that its header says, got " +
                                 std::to_string(part.count));
    if (index && index->tokens() != part.count)
      failToReadTokens(path, "expected the " + std::to_string(index->tokens()) +
                                 " tokens that its index '" + index->path() +
                                 "' says, got " + std::to_string(part.count));
    if (part.count == 0)
      failToReadTokens(path, "expected at least one token, got none");
    if (index && index->isSigned())
      largestBound = uint64_t{1} << (8 * sizeof(T) - 1);
    if (!options.trustPlainNumbers) {
      if (!index && said == 0)
        rejectAnotherType(part);
      rejectConstantEnd(part);
    }
    total += part.count;
    parts.push_back(std::move(part));
  }

  /// Rejects a file if a tenth of it, at the end, is one repeated token. The
  /// program that wrote the file was probably interrupted after it had reserved
  /// space.
  void rejectConstantEnd(const Part &part) const {
    // At least 1024 tokens must be equal, since a text may be padded to a
    // context. In a large file, 2^22 equal tokens are enough, even if they are
    // less than a tenth.
    constexpr uint64_t kFewest = 1024, kMost = 1 << 22, kBlock = 1 << 16;
    const uint64_t tail = std::clamp(part.count / 10, kFewest, kMost);
    if (part.count < tail)
      return;
    std::vector<T> numbers(1);
    readPart(part, part.count - 1, numbers);
    const T last = numbers.front();
    for (uint64_t seen = 0; seen < tail; seen += numbers.size()) {
      numbers.resize(std::min(kBlock, tail - seen));
      readPart(part, part.count - seen - numbers.size(), numbers);
      if (!std::ranges::all_of(numbers, [&](T each) { return each == last; }))
        return;
    }
    failToReadTokens(
        part.path,
        "expected tokens of a text, but the last " + std::to_string(tail) +
            " of " + std::to_string(part.count) + " are all " +
            std::to_string(last) +
            ", as if the program that wrote it was interrupted: write it "
            "again, or give --trust-data if that is right");
  }

  void rejectAnotherType(const Part &part) const {
    std::vector<T> numbers(std::min<uint64_t>(part.count, 1 << 16));
    readPart(part, 0, numbers);
    const auto bytes = std::as_bytes(std::span(numbers));
    // If the model's vocabulary is the 256 bytes, the tokens may be characters.
    // Do not refuse them in that case.
    if (sizeof(T) > 1 &&
        (areText(std::span(reinterpret_cast<const uint8_t *>(bytes.data()),
                           bytes.size())) ||
         (options.vocabulary != 256 && areText(std::span<const T>(numbers)))))
      failToReadTokens(part.path,
                       "expected plain numbers, got text: turn it into tokens "
                       "with tools/export/chimera-tokens, or give --trust-data "
                       "if these are numbers");
    if constexpr (sizeof(T) == sizeof(uint32_t))
      if (arePairs(numbers, options.vocabulary))
        failToReadTokens(part.path,
                         "expected tokens of 32 bits, but each of its numbers "
                         "looks like two tokens of 16 bits: give --tokens "
                         "uint16, or --trust-data if 32 bits are right");
    if (!areHalves(std::span<const T>(numbers), options.vocabulary))
      return;
    std::vector<uint32_t> pairs(bytes.size() / sizeof(uint32_t));
    std::memcpy(pairs.data(), bytes.data(), pairs.size() * sizeof(uint32_t));
    const bool areOf64 =
        areHalves(std::span<const uint32_t>(pairs), options.vocabulary);
    const std::string wider = areOf64 ? "64" : "32";
    failToReadTokens(
        part.path,
        "expected tokens of " + std::to_string(8 * sizeof(T)) +
            " bits, but every second number is as small as the upper half of "
            "one of " +
            wider + " bits: " +
            (areOf64 ? "write it as uint32 (in Python "
                       "numpy.fromfile(…, 'int64').astype('uint32'))"
                     : "give --tokens uint" + wider) +
            ", or --trust-data if that is right");
  }

  void readPart(const Part &part, uint64_t first, std::span<T> tokens) const {
    if (part.file.read(part.offset + first * sizeof(T),
                       std::as_writable_bytes(tokens)) < tokens.size_bytes())
      failToReadTokens(part.path, "it was truncated while it was read");
  }

  const TokenOptions options;
  std::vector<Part> parts;
  uint64_t total = 0;
  uint64_t largestBound = uint64_t{1} << (8 * sizeof(T));
};

} // namespace

void chimera::runtime::rejectKnownFormat(const std::string &path,
                                         AssumedFormat assumedFormat) {
  const bool isText = assumedFormat == AssumedFormat::Text;
  const char *kind = isText ? "text file" : "token file";
  const auto size = static_cast<uint64_t>(statusOfData(path).st_size);
  const OpenFile file(path, kind);
  std::array<std::byte, kHeadBytes> head;
  const size_t count = file.read(0, head);
  std::byte last{};
  if (size > 0)
    file.read(size - 1, {&last, 1});
  const std::string advice =
      adviceOnFormat(std::span(head).first(count), last, size, assumedFormat);
  if (!advice.empty())
    failToRead(
        kind, path,
        std::string(isText ? "expected text" : "expected plain numbers") +
            ", got " + advice);
}

uint32_t chimera::runtime::declaredTokenWidth(const std::string &path) {
  if (!S_ISREG(statusOfData(path).st_mode))
    return 0;
  if (const std::optional<MegatronIndex> index =
          MegatronIndex::openBeside(path))
    return index->bytesPerToken();
  return widthOf(llmcHeaderOf(OpenFile(path, "text file")), path);
}

std::unique_ptr<Tokens>
chimera::runtime::openTokenFiles(const std::vector<std::string> &files,
                                 uint32_t width, const TokenOptions &options) {
  switch (width) {
  case 1:
    return std::make_unique<TokenFiles<uint8_t>>(files, options);
  case 2:
    return std::make_unique<TokenFiles<uint16_t>>(files, options);
  default:
    return std::make_unique<TokenFiles<uint32_t>>(files, options);
  }
}
