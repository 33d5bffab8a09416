//===- Zip.cpp - The members of a zip archive -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Zip.h"

#include "runtime/program/Printable.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>

using namespace chimera;
using namespace chimera::runtime;

namespace {

constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22,
                   kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kLargestComment = 65535;
/// A limit, so that a mutant of a file cannot make us allocate much.
constexpr uint64_t kLargestDirectory = uint64_t{1} << 26;

/// Bytes of the archive.
class Part {
public:
  Part(const InputFile &file, uint64_t begin, uint64_t size) : file(file) {
    if (begin > file.size() || size > file.size() - begin)
      file.fail("it is no zip archive (.npz), or a truncated one");
    bytes.resize(size);
    file.read(begin, std::as_writable_bytes(std::span(bytes)));
  }

  uint64_t size() const { return bytes.size(); }
  /// The number of type T at this offset.
  template <typename T> T number(uint64_t offset) const {
    T value{};
    if (offset > size() || sizeof(T) > size() - offset)
      file.fail("it is no valid zip archive (.npz): its directory is cut off");
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  std::string text(uint64_t offset, uint64_t length) const {
    if (offset > size() || length > size() - offset)
      file.fail("it is no valid zip archive (.npz): its directory is cut off");
    return {bytes.data() + offset, length};
  }

private:
  const InputFile &file;
  std::vector<char> bytes;
};

struct Directory {
  uint64_t begin, size, entries;
};

/// Finds the directory by the archive's end.
Directory findDirectory(const InputFile &file) {
  const uint64_t tail =
      std::min(file.size(), kEndBytes + kLargestComment + kLocator64Bytes);
  const uint64_t tailBegin = file.size() - tail;
  const Part part(file, tailBegin, tail);
  std::optional<uint64_t> end;
  for (uint64_t at = tail < kEndBytes ? 0 : tail - kEndBytes + 1;
       at-- > 0 && !end;)
    if (part.number<uint32_t>(at) == kEnd &&
        at + kEndBytes + part.number<uint16_t>(at + 20) == tail)
      end = at;
  if (!end)
    file.fail("it is no zip archive (.npz), or a truncated one");
  if (*end >= kLocator64Bytes &&
      part.number<uint32_t>(*end - kLocator64Bytes) == kLocator64) {
    const Part end64(file, part.number<uint64_t>(*end - kLocator64Bytes + 8),
                     kEnd64Bytes);
    if (end64.number<uint32_t>(0) != kEnd64)
      file.fail("it is no valid zip archive (.npz): its end is wrong");
    return {end64.number<uint64_t>(48), end64.number<uint64_t>(40),
            end64.number<uint64_t>(32)};
  }
  return {part.number<uint32_t>(*end + 16), part.number<uint32_t>(*end + 12),
          part.number<uint16_t>(*end + 10)};
}

/// The 64-bit numbers of an entry's zip64 extra field, in order.
class Extra {
public:
  Extra(const Part &directory, uint64_t begin, uint64_t size)
      : directory(directory) {
    for (uint64_t at = begin; at + 4 <= begin + size;
         at += 4 + directory.number<uint16_t>(at + 2))
      if (directory.number<uint16_t>(at) == 1)
        next = at + 4;
  }
  /// Returns `number`. If all of its bits are set, the number did not fit in 32
  /// bits: then returns the next 64-bit number.
  uint64_t wide(uint32_t number) {
    if (number != UINT32_MAX || next == 0)
      return number;
    next += sizeof(uint64_t);
    return directory.number<uint64_t>(next - sizeof(uint64_t));
  }

private:
  const Part &directory;
  uint64_t next = 0;
};

} // namespace

std::vector<ZipMember>
chimera::runtime::readZipDirectory(const InputFile &file) {
  const Directory found = findDirectory(file);
  if (found.size > kLargestDirectory ||
      found.entries > found.size / kEntryBytes)
    file.fail("it is no valid zip archive (.npz): expected a directory of " +
              std::to_string(found.entries) + " members, got " +
              std::to_string(found.size) + " bytes");
  const Part directory(file, found.begin, found.size);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (uint64_t at = 0, i = 0; i < found.entries; ++i) {
    if (directory.number<uint32_t>(at) != kEntry)
      file.fail("it is no valid zip archive (.npz): member " +
                std::to_string(i) + " has no entry in its directory");
    const uint64_t ofName = directory.number<uint16_t>(at + 28),
                   ofExtra = directory.number<uint16_t>(at + 30);
    const std::string name = directory.text(at + kEntryBytes, ofName);
    const std::string inQuotes = "'" + program::printable(name) + "'";
    if (directory.number<uint16_t>(at + 8) & 1)
      file.fail("expected members that are not encrypted, got " + inQuotes);
    if (directory.number<uint16_t>(at + 10) != 0)
      file.fail("expected members that are not compressed, so that single "
                "samples can be read, got " +
                inQuotes + ": write it with numpy.savez");
    Extra extra(directory, at + kEntryBytes + ofName, ofExtra);
    // In this order, whichever of them are in the extra field.
    const uint64_t size = extra.wide(directory.number<uint32_t>(at + 24));
    extra.wide(directory.number<uint32_t>(at + 20));
    const uint64_t local = extra.wide(directory.number<uint32_t>(at + 42));
    const Part header(file, local, kLocalBytes);
    if (header.number<uint32_t>(0) != kLocal)
      file.fail("it is no valid zip archive (.npz): " + inQuotes +
                " is not where its directory says");
    const uint64_t begin = local + kLocalBytes + header.number<uint16_t>(26) +
                           header.number<uint16_t>(28);
    if (begin > file.size() || size > file.size() - begin)
      file.fail("it is a truncated zip archive (.npz): " + inQuotes +
                " is not all there");
    members.push_back({name, begin, size});
    if (!names.insert(name).second)
      file.fail("expected one member of each name, got " + inQuotes +
                " twice or more: write the archive anew");
    at += kEntryBytes + ofName + ofExtra + directory.number<uint16_t>(at + 32);
  }
  return members;
}
