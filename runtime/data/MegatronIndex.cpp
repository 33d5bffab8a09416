//===- MegatronIndex.cpp - The index of a Megatron data set ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/MegatronIndex.h"

#include "runtime/system/ReadAt.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::string_view_literals;

namespace {

constexpr uint64_t kIndexHeaderBytes = 34;
constexpr std::string_view kMagic = "MMIDIDX\0\0"sv, kOldMagic = "TNTIDX\0\0"sv;

} // namespace

struct MegatronIndex::File {
  struct Type {
    const char *name;
    uint32_t width; ///< 0 if tokens cannot have this type
    bool isSigned;
  };

  /// Indexed by the type code in the file.
  static constexpr Type kTypes[] = {
      {"", 0, false},       {"uint8", 1, false},  {"int8", 0, true},
      {"int16", 2, true},   {"int32", 4, true},   {"int64", 0, true},
      {"float64", 0, true}, {"float32", 0, true}, {"uint16", 2, false}};

  explicit File(std::string given)
      : path(std::move(given)),
        file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file < 0)
      fail(std::strerror(errno));
  }
  ~File() { ::close(file); }
  File(const File &) = delete;

  [[noreturn]] void fail(const std::string &why) const {
    throw std::runtime_error("cannot read the index '" + path + "': " + why);
  }

  /// The N bytes from `offset` on. Bytes after the end of the file are 0.
  template <size_t N> std::array<std::byte, N> bytes(uint64_t offset) const {
    std::array<std::byte, N> bytes{};
    if (readAt(file, offset, bytes) < 0)
      fail(std::strerror(errno));
    return bytes;
  }
  template <typename T> T number(uint64_t offset) const {
    T value;
    const auto read = bytes<sizeof(T)>(offset);
    std::memcpy(&value, read.data(), sizeof(value));
    return value;
  }

  /// A table of `count` numbers from `offset` on.
  std::vector<int64_t> table(uint64_t offset, uint64_t count) const {
    std::vector<int64_t> numbers(count);
    const auto bytes = std::as_writable_bytes(std::span(numbers));
    const ssize_t read = readAt(file, offset, bytes);
    if (read < 0)
      fail(std::strerror(errno));
    if (static_cast<size_t>(read) < bytes.size())
      fail("it was truncated while it was read");
    return numbers;
  }

  const std::string path;
  const int file;
  const Type *type = nullptr;
  uint64_t sequences = 0, documents = 0, tokens = 0;
};

MegatronIndex::MegatronIndex(std::unique_ptr<File> file)
    : file(std::move(file)) {}
MegatronIndex::MegatronIndex(MegatronIndex &&) noexcept = default;
MegatronIndex &MegatronIndex::operator=(MegatronIndex &&) noexcept = default;
MegatronIndex::~MegatronIndex() = default;

const std::string &MegatronIndex::path() const { return file->path; }
const char *MegatronIndex::type() const { return file->type->name; }
uint32_t MegatronIndex::bytesPerToken() const { return file->type->width; }
bool MegatronIndex::isSigned() const { return file->type->isSigned; }
uint64_t MegatronIndex::tokens() const { return file->tokens; }

/// The number of tokens before a sequence. If `sequence` is the number of
/// sequences, the number of all tokens.
uint64_t MegatronIndex::beginOf(uint64_t sequence) const {
  if (sequence == file->sequences)
    return file->tokens;
  return tokensIn(file->number<int64_t>(kIndexHeaderBytes +
                                        4 * file->sequences + 8 * sequence));
}

/// The number of tokens in the `bytes` before a sequence.
uint64_t MegatronIndex::tokensIn(int64_t bytes) const {
  if (bytes < 0 || bytes % bytesPerToken() != 0)
    file->fail("expected a sequence that begins at a multiple of " +
               std::to_string(bytesPerToken()) + " bytes, got " +
               std::to_string(bytes));
  return static_cast<uint64_t>(bytes) / bytesPerToken();
}

/// The number of a document's first sequence, which must exist or be the number
/// of sequences.
uint64_t MegatronIndex::expectSequence(int64_t sequence) const {
  if (sequence < 0 || static_cast<uint64_t>(sequence) > file->sequences)
    file->fail("expected documents that begin with one of " +
               std::to_string(file->sequences) + " sequences, got " +
               std::to_string(sequence));
  return static_cast<uint64_t>(sequence);
}

std::string MegatronIndex::pathBeside(const std::string &path) {
  constexpr std::string_view kSuffix = ".bin";
  if (!path.ends_with(kSuffix))
    return {};
  std::string name = path.substr(0, path.size() - kSuffix.size()) + ".idx";
  struct stat status;
  return ::stat(name.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? name
                                                                       : "";
}

std::optional<MegatronIndex>
MegatronIndex::openBeside(const std::string &path) {
  const std::string name = pathBeside(path);
  if (name.empty())
    return std::nullopt;
  auto file = std::make_unique<File>(name);
  const auto head = file->bytes<kMagic.size()>(0);
  const std::string_view begin(reinterpret_cast<const char *>(head.data()),
                               head.size());
  if (begin.starts_with(kOldMagic))
    file->fail("expected Megatron's present format (MMIDIDX), got the older "
               "TNTIDX: preprocess the data again with --dataset-impl mmap");
  if (begin != kMagic)
    return std::nullopt; // not Megatron's
  const auto version = file->number<uint64_t>(9);
  if (version != 1)
    file->fail("expected version 1 of Megatron's format, got " +
               std::to_string(version));
  const auto code = file->number<uint8_t>(17);
  if (code == 0 || code >= std::size(File::kTypes))
    file->fail("expected a type of numbers from 1 to 8, got " +
               std::to_string(code));
  file->type = &File::kTypes[code];
  if (file->type->width == 0)
    file->fail(std::string("expected tokens of uint8, int16, uint16 or int32, "
                           "got ") +
               file->type->name +
               ": write them as int32 (numpy.fromfile(…).astype('int32')) and "
               "give that with --tokens uint32");
  const auto sequences = file->sequences = file->number<uint64_t>(18);
  const auto documents = file->documents = file->number<uint64_t>(26);
  const uint64_t size = std::filesystem::file_size(name);
  // The sum below cannot overflow, since each of its terms is at most `size`.
  if (size < kIndexHeaderBytes || sequences > size / 12 ||
      documents > size / 8 ||
      kIndexHeaderBytes + 12 * sequences + 8 * documents > size)
    file->fail("expected " + std::to_string(sequences) + " sequences and " +
               std::to_string(documents) +
               " numbers of documents, got a file of " + std::to_string(size) +
               " bytes");
  MegatronIndex index(std::move(file));
  if (sequences > 0) {
    const auto length =
        index.file->number<int32_t>(kIndexHeaderBytes + 4 * (sequences - 1));
    if (length < 0)
      index.file->fail("expected a last sequence with tokens, got " +
                       std::to_string(length));
    index.file->tokens =
        index.beginOf(sequences - 1) + static_cast<uint64_t>(length);
  }
  return index;
}

uint64_t MegatronIndex::documentEnd(uint64_t token) const {
  // The number of tokens before a document.
  const auto beginOfDocument = [&](uint64_t document) {
    return beginOf(expectSequence(file->number<int64_t>(
        kIndexHeaderBytes + 12 * file->sequences + 8 * document)));
  };
  // Binary search for the first document that starts after the token.
  uint64_t low = 0, high = file->documents;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (beginOfDocument(middle) > token)
      high = middle;
    else
      low = middle + 1;
  }
  const uint64_t end = low == file->documents ? tokens() : beginOfDocument(low);
  if (end <= token || end > tokens())
    file->fail("expected documents in order, got one that ends at token " +
               std::to_string(end) + " for token " + std::to_string(token));
  return end;
}

std::vector<uint64_t> MegatronIndex::documentEnds() const {
  const std::vector<int64_t> begins =
      file->table(kIndexHeaderBytes + 4 * file->sequences, file->sequences);
  const std::vector<int64_t> documents =
      file->table(kIndexHeaderBytes + 12 * file->sequences, file->documents);
  std::vector<uint64_t> ends;
  const auto add = [&](uint64_t end) {
    const uint64_t last = ends.empty() ? 0 : ends.back();
    if (end < last || end > tokens())
      file->fail("expected documents in order, got one that begins at token " +
                 std::to_string(end) + " after one at token " +
                 std::to_string(last));
    if (end > last)
      ends.push_back(end);
  };
  for (int64_t document : documents) {
    const uint64_t sequence = expectSequence(document);
    add(sequence == file->sequences ? tokens() : tokensIn(begins[sequence]));
  }
  add(tokens());
  return ends;
}
