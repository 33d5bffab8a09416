//===- Npy.cpp - An array in NumPy's file format --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Npy.h"

#include "runtime/program/Package.h"
#include "runtime/program/Printable.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

using namespace chimera;
using namespace chimera::runtime;
using program::TensorType;

namespace {

/// NumPy itself refuses headers of more than 10,000 bytes by default.
constexpr uint64_t kLargestNpyHeader = 65536;

constexpr struct {
  std::string_view descr;
  TensorType type;
} kTypes[] = {
    {"|b1", TensorType::Boolean}, {"|u1", TensorType::UInt8},
    {"|i1", TensorType::Int8},    {"<i2", TensorType::Int16},
    {"<i4", TensorType::Int32},   {"<i8", TensorType::Int64},
    {"<f2", TensorType::Float16}, {"<f4", TensorType::Float32},
    {"<f8", TensorType::Float64},
};

/// Reads a Python dictionary of strings, booleans and tuples of numbers.
class HeaderText {
public:
  HeaderText(const InputFile &file, std::string_view text)
      : file(file), rest(text) {}

  void expect(char symbol) {
    if (!take(symbol))
      fail(std::string("'") + symbol + "'");
  }
  bool take(char symbol) {
    skipSpace();
    if (rest.empty() || rest.front() != symbol)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  std::string_view string() {
    skipSpace();
    const char quote = rest.empty() ? '\0' : rest.front();
    const size_t end = rest.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos)
      fail("a string");
    const std::string_view text = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skipSpace();
    for (const auto &[word, value] :
         {std::pair<std::string_view, bool>("True", true), {"False", false}})
      if (rest.starts_with(word)) {
        rest.remove_prefix(word.size());
        return value;
      }
    fail("True or False");
  }
  std::vector<int64_t> tuple() {
    expect('(');
    std::vector<int64_t> numbers;
    while (!take(')')) {
      if (!numbers.empty()) {
        expect(',');
        if (take(')'))
          break;
      }
      skipSpace();
      int64_t number = 0;
      const auto [end, error] =
          std::from_chars(rest.data(), rest.data() + rest.size(), number);
      if (error != std::errc() || number < 0)
        fail("a number of at least 0");
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
      numbers.push_back(number);
    }
    return numbers;
  }
  /// The next symbol; '\0' at the end.
  char next() {
    skipSpace();
    return rest.empty() ? '\0' : rest.front();
  }
  [[noreturn]] void fail(const std::string &expected) const {
    file.fail("expected " + expected + " in the header of the .npy file, got " +
              (rest.empty() ? std::string("its end")
                            : "'" +
                                  program::printable(rest.substr(
                                      0, std::min<size_t>(rest.size(), 40))) +
                                  "'"));
  }

private:
  void skipSpace() {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \n\t"), rest.size()));
  }

  const InputFile &file;
  std::string_view rest;
};

TensorType typeOf(const InputFile &file, std::string_view descr) {
  for (const auto &each : kTypes)
    if (descr == each.descr)
      return each.type;
  std::string advice = "convert the array with astype()";
  if (descr.starts_with('>'))
    advice = "the bytes are in the order of another processor: " + advice;
  else if (descr.starts_with("|O"))
    advice = "Python objects are no numbers: " + advice;
  file.fail("expected an array of booleans, integers of 8 to 64 bits or "
            "floating-point numbers of 16 to 64 bits, got elements '" +
            program::printable(descr) + "'; " + advice);
}

} // namespace

NpyHeader chimera::runtime::readNpyHeader(const InputFile &file,
                                          uint64_t fileBegin,
                                          uint64_t fileBytes) {
  std::array<char, 12> start{};
  const uint64_t known = std::min<uint64_t>(fileBytes, start.size());
  file.read(fileBegin, std::as_writable_bytes(std::span(start)).first(known));
  if (known < 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0)
    file.fail("it is no .npy file: it does not begin like one");
  // Version 1 has a length of 16 bits, versions 2 and 3 one of 32 bits.
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    file.fail("expected version 1, 2 or 3 of the .npy format, got version " +
              std::to_string(version));
  const uint64_t lengthBytes = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, lengthBytes);
  const uint64_t begin = 8 + lengthBytes + length;
  if (length > kLargestNpyHeader || begin > fileBytes)
    file.fail("expected a header of " + std::to_string(length) +
              " bytes, at most " + std::to_string(kLargestNpyHeader) +
              ", got a file of " + std::to_string(fileBytes) + " bytes");
  std::string text(length, '\0');
  file.read(fileBegin + 8 + lengthBytes,
            std::as_writable_bytes(std::span(text)));

  HeaderText header(file, text);
  std::optional<TensorType> type;
  std::optional<bool> isColumnMajor;
  std::optional<std::vector<int64_t>> shape;
  header.expect('{');
  while (!header.take('}')) {
    const std::string_view key = header.string();
    header.expect(':');
    if (key == "descr" && header.next() == '[')
      file.fail("expected an array of numbers, got one of records with several "
                "fields: save each field as an array");
    if (key == "descr")
      type = typeOf(file, header.string());
    else if (key == "fortran_order")
      isColumnMajor = header.boolean();
    else if (key == "shape")
      shape = header.tuple();
    else
      header.fail("the keys descr, fortran_order and shape");
    if (!header.take(',')) {
      header.expect('}');
      break;
    }
  }
  if (!type || !isColumnMajor || !shape)
    header.fail("the keys descr, fortran_order and shape");
  if (*isColumnMajor && shape->size() > 1)
    file.fail("expected rows one after another, got columns (fortran_order): "
              "save numpy.ascontiguousarray(array)");
  auto bytes = static_cast<uint64_t>(program::bytesOf(*type));
  bool isHuge = false;
  for (int64_t extent : *shape)
    isHuge |=
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes);
  // A shape with a 0 may overflow before it; its array is empty.
  if (std::ranges::find(*shape, 0) != shape->end())
    bytes = 0, isHuge = false;
  if (isHuge || bytes != fileBytes - begin)
    file.fail("expected " +
              (isHuge ? std::string("more than 2^64") : std::to_string(bytes)) +
              " bytes of elements, as its header says, got " +
              std::to_string(fileBytes - begin) +
              (isHuge || bytes > fileBytes - begin
                   ? ": the file is truncated, write it again"
                   : ""));
  return {*type, *shape, fileBegin + begin};
}
