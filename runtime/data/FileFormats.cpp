//===- FileFormats.cpp - Files that are neither text nor tokens -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/FileFormats.h"

#include <cstring>
#include <string_view>

using namespace chimera::runtime;
using namespace std::string_view_literals;

namespace {

struct FileStart {
  std::string_view head;
  char last;
  uint64_t size;

  bool has(std::string_view bytes, size_t at = 0) const {
    return head.size() >= at && head.substr(at).starts_with(bytes);
  }
  unsigned byte(size_t at) const {
    return at < head.size() ? static_cast<unsigned char>(head[at]) : 256;
  }
  /// The number at offset `at`, or 0 if `head` ends before the number does.
  template <typename T> T number(size_t at) const {
    T value = 0;
    if (at + sizeof(value) <= head.size())
      std::memcpy(&value, head.data() + at, sizeof(value));
    return value;
  }
};

/// Checks the first three bytes, the flags and the number of the operating
/// system (RFC 1952).
bool isGzip(const FileStart &file) {
  return file.has("\x1f\x8b\x08"sv) && file.byte(3) < 32 &&
         (file.byte(9) < 14 || file.byte(9) == 255);
}

/// Checks for a length, followed by a JSON object that may have this length:
/// the header.
bool isSafetensors(const FileStart &file) {
  const auto header = file.number<uint64_t>(0);
  return header >= 2 && file.size >= 8 && header <= file.size - 8 &&
         file.has("{\""sv, 8);
}

/// Checks the start of a stream of messages. Each message has a marker and its
/// length before it. The first message is a schema, which starts with the
/// offset of its root, 16.
bool isArrowStream(const FileStart &file) {
  const auto length = file.number<uint32_t>(4);
  return file.has("\xff\xff\xff\xff"sv) && length > 0 && length % 8 == 0 &&
         length < file.size && file.number<uint32_t>(8) == 16;
}

/// Checks the start for a pickle of protocol 2 to 5, and the end for the
/// instruction STOP.
bool isPickle(const FileStart &file) {
  return file.byte(0) == 0x80 && file.byte(1) >= 2 && file.byte(1) <= 5 &&
         file.last == '.';
}

constexpr char kWriteNumbers[] =
    "write its numbers alone (in Python array.astype('uint16').tofile("
    "'tokens.bin'), or 'uint32') and give that with --tokens uint16 or uint32";
constexpr char kDecompress[] = "decompress it first";
constexpr char kExtract[] = "extract the text or the tokens first";
constexpr char kWriteText[] =
    "write its texts to a file first, or its tokens as numbers alone";

struct Format {
  const char *name;
  bool (*is)(const FileStart &);
  const char *advice;
  /// Whether a file of tokens matches by chance with a probability below 2^-31.
  bool isReliable = true;
};

constexpr Format kFormats[] = {
    {"a NumPy array (.npy)",
     [](const FileStart &file) { return file.has("\x93NUMPY"sv); },
     kWriteNumbers},
    {"a zip archive (like .npz and PyTorch's .pt)",
     [](const FileStart &file) {
       return file.has("PK\x03\x04"sv) || file.has("PK\x05\x06"sv);
     },
     kExtract},
    {"a file of weights (safetensors)", isSafetensors,
     "give it to --load, and a text or tokens here"},
    {"the index of a Megatron data set (.idx)",
     [](const FileStart &file) {
       return file.has("MMIDIDX\0\0"sv) || file.has("TNTIDX\0\0"sv);
     },
     "give the .bin file beside it, whose index is then read too"},
    {"compressed by gzip", isGzip, kDecompress},
    {"compressed by xz",
     [](const FileStart &file) {
       return file.has("\xfd"
                       "7zXZ\0"sv);
     },
     kDecompress},
    {"compressed by zstd",
     [](const FileStart &file) { return file.has("\x28\xb5\x2f\xfd"sv); },
     kDecompress},
    {"compressed by bzip2",
     [](const FileStart &file) {
       return file.has("BZh"sv) && file.has("1AY&SY"sv, 4);
     },
     kDecompress},
    {"compressed by lz4",
     [](const FileStart &file) { return file.has("\x04\x22\x4d\x18"sv); },
     kDecompress},
    {"a tar archive",
     [](const FileStart &file) { return file.has("ustar"sv, 257); }, kExtract},
    {"HDF5",
     [](const FileStart &file) { return file.has("\x89HDF\r\n\x1a\n"sv); },
     kWriteNumbers},
    {"Parquet", [](const FileStart &file) { return file.has("PAR1"sv); },
     kWriteText},
    {"Arrow",
     [](const FileStart &file) {
       return file.has("ARROW1\0\0"sv) || isArrowStream(file);
     },
     kWriteText},
    {"an SQLite database",
     [](const FileStart &file) { return file.has("SQLite format 3\0"sv); },
     kWriteText},
    {"a file of weights (GGUF)",
     [](const FileStart &file) { return file.has("GGUF"sv); },
     "give a text or tokens"},
    {"a program for processors (ELF)",
     [](const FileStart &file) {
       return file.has("\x7f"
                       "ELF"sv);
     },
     "give a text or tokens"},
    {"a compiled program (chimera-compile)",
     [](const FileStart &file) { return file.has("CHIMERA\n"sv); },
     "give a text or tokens"},
    {"a PDF document",
     [](const FileStart &file) { return file.has("%PDF-"sv); }, kExtract},
    {"a pickle of Python (like old .pt files)", isPickle, kWriteNumbers, false},
    {"text in UTF-16",
     [](const FileStart &file) {
       return file.has("\xff\xfe"sv) || file.has("\xfe\xff"sv);
     },
     "convert it (iconv -f UTF-16 -t UTF-8)", false},
};

} // namespace

std::string chimera::runtime::adviceOnFormat(std::span<const std::byte> head,
                                             std::byte last, uint64_t size,
                                             AssumedFormat assumedFormat) {
  const FileStart file{
      {reinterpret_cast<const char *>(head.data()), head.size()},
      static_cast<char>(last),
      size};
  for (const Format &format : kFormats)
    if ((format.isReliable || assumedFormat == AssumedFormat::Text) &&
        format.is(file))
      return std::string(format.name) + ": " + format.advice;
  return {};
}
