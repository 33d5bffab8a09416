//===- Safetensors.cpp - Tensors in a safetensors file --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"

#include "runtime/program/File.h"
#include "runtime/system/ShallowJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace chimera::runtime {
namespace {

// The format's own limit. Without a limit, the first bytes of a file of another
// kind could be read as a huge length, and that much memory would be allocated.
constexpr uint64_t kLargestHeader = 100'000'000;

// JSON text for messages. Bytes that are not UTF-8 are replaced.
std::string dumped(const nlohmann::json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The tensor's byte range in its file, whose data begins at `begin`. None if
// `offsets` is invalid or the range is not inside the file.
std::optional<std::pair<uint64_t, uint64_t>>
rangeOf(const nlohmann::json &offsets, uint64_t begin, uint64_t size) {
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return std::nullopt;
  const auto first = offsets[0].get<uint64_t>();
  const auto last = offsets[1].get<uint64_t>();
  if (first > last || last > size - begin)
    return std::nullopt;
  return std::pair(begin + first, begin + last);
}

} // namespace

SafetensorsFile::SafetensorsFile(const std::string &path,
                                 const std::string &failure)
    : input(path, failure) {
  uint64_t length = 0;
  if (input.size() >= sizeof length)
    input.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (input.size() < sizeof length || length > kLargestHeader ||
      length > input.size() - sizeof length) {
    constexpr uint32_t kZip = 0x04034b50; // torch.save's files start so
    input.fail(static_cast<uint32_t>(length) == kZip
                   ? "expected a safetensors file, got a pickle of Python. "
                     "Load it there, and save it with safetensors or "
                     "save_pretrained()"
                   : "it is no safetensors file, or a truncated one");
  }
  std::string text(length, '\0');
  input.read(sizeof length, std::as_writable_bytes(std::span(text)));
  if (!isShallow(text, 3))
    input.fail(
        "it is no safetensors file: its header nests more than three levels");
  const auto header =
      nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!header.is_object())
    input.fail("it is no safetensors file: its header is no JSON object");
  digest = program::checksum(std::as_bytes(std::span(text)));
  dataBegin = sizeof length + length;
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto &[key, value] : entry.items())
        if (value.is_string())
          ofFile.insert_or_assign(key, value.get<std::string>());
      continue;
    }
    auto field = [&](const char *key) {
      return entry.is_object() ? entry.value(key, nlohmann::json())
                               : nlohmann::json();
    };
    const nlohmann::json offsets = field("data_offsets");
    byName.insert_or_assign(
        name, SafetensorsEntry{entry.is_object(), dumped(field("dtype")),
                               dumped(field("shape")), dumped(offsets),
                               rangeOf(offsets, dataBegin, input.size())});
  }
}

std::string SafetensorsFile::metadata(const std::string &key) const {
  const auto found = ofFile.find(key);
  return found == ofFile.end() ? "" : found->second;
}

bool SafetensorsFile::hasGaps() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto &[name, tensor] : byName)
    if (tensor.range)
      ranges.push_back(*tensor.range);
  std::ranges::sort(ranges);
  uint64_t covered = dataBegin;
  for (const auto &[first, last] : ranges) {
    if (first != covered)
      return true;
    covered = last;
  }
  return covered != input.size();
}

} // namespace chimera::runtime
