//===- EventFile.cpp - A file that TensorBoard reads ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/EventFile.h"

#include "runtime/program/Output.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The remainders of all bytes by the polynomial of CRC-32C, whose bits are
/// reversed.
constexpr std::array<uint32_t, 256> kRemainders = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1) ^ (rest & 1 ? 0x82f63b78u : 0);
    table[byte] = rest;
  }
  return table;
}();

/// Appends the `count` low bytes of `bits`, lowest first.
void addBytes(std::string &to, uint64_t bits, int count) {
  for (int i = 0; i < count; ++i)
    to += static_cast<char>(bits >> (8 * i));
}

/// The functions below append a field of a message: its number and its type,
/// then its value.
enum WireType : uint64_t { Varint = 0, Bits64 = 1, Bytes = 2, Bits32 = 5 };

void addVarint(std::string &to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void addKey(std::string &to, uint64_t field, WireType type) {
  addVarint(to, field << 3 | type);
}

void addInteger(std::string &to, uint64_t field, uint64_t value) {
  addKey(to, field, Varint);
  addVarint(to, value);
}

void addDouble(std::string &to, uint64_t field, double value) {
  addKey(to, field, Bits64);
  addBytes(to, std::bit_cast<uint64_t>(value), 8);
}

void addFloat(std::string &to, uint64_t field, float value) {
  addKey(to, field, Bits32);
  addBytes(to, std::bit_cast<uint32_t>(value), 4);
}

/// A string, or a message in a message.
void addText(std::string &to, uint64_t field, std::string_view text) {
  addKey(to, field, Bytes);
  addVarint(to, text.size());
  to += text;
}

/// An Event with the present time and the given step.
std::string eventAt(uint64_t step) {
  const std::chrono::duration<double> now =
      std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  addDouble(event, 1, now.count());
  addInteger(event, 2, step);
  return event;
}

/// TensorBoard reads all files whose names contain "tfevents".
constexpr std::string_view kPrefix = "events.out.tfevents.";

/// The number in the name of the next file in `folder`: the time in seconds,
/// or more if a file has this number already.
long long nextNumber(const std::string &folder) {
  long long next = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end;
       !error && file != end; file.increment(error))
    if (const std::string name = file->path().filename();
        name.starts_with(kPrefix))
      next = std::max(next, std::atoll(name.c_str() + kPrefix.size()) + 1);
  return next;
}
} // namespace

uint32_t chimera::runtime::maskedCrc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (char byte : bytes)
    rest = (rest >> 8) ^ kRemainders[(rest ^ static_cast<uint8_t>(byte)) & 255];
  return std::rotr(~rest, 15) + 0xa282ead8u;
}

// The delegated constructor has completed. So if this constructor throws, the
// destructor closes the files.
EventFile::EventFile(const std::string &folder, uint64_t firstStep)
    : EventFile(folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error("cannot create the folder " + folder + ": " +
                             error.message());
  lockFolder();
  open();
  std::string version = eventAt(0);
  addText(version, 3, "brain.Event:2");
  write(version);
  std::string status;
  addInteger(status, 1, 1);
  std::string begin = eventAt(firstStep);
  addText(begin, 7, status);
  write(begin);
}

EventFile::~EventFile() {
  for (int file : {descriptor, lock})
    if (file >= 0)
      close(file);
}

void EventFile::fail() const {
  throw std::runtime_error("cannot write " + path + ": " +
                           std::strerror(errno));
}

void EventFile::lockFolder() {
  lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0)
    fail();
  // If the file system does not support locks, continue without a lock.
  if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw std::runtime_error("cannot write to the folder " + folder +
                             ": another run is writing to it");
}

void EventFile::open() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  char name[512];
  std::snprintf(name, sizeof(name), "%s%010lld.%s.%d", kPrefix.data(),
                nextNumber(folder), host, getpid());
  path = std::filesystem::path(folder) / name;
  descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail();
}

void EventFile::write(const std::string &event) {
  std::string record;
  addBytes(record, event.size(), 8);
  addBytes(record, maskedCrc32c(record), 4);
  record += event;
  addBytes(record, maskedCrc32c(event), 4);
  // In one call, so that a process that is killed leaves whole records.
  if (!program::writeAll(descriptor, {std::as_bytes(std::span(record))}))
    fail();
}

void EventFile::append(uint64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar &scalar : scalars) {
    std::string value;
    addText(value, 1, scalar.tag);
    addFloat(value, 2, static_cast<float>(scalar.value));
    addText(summary, 1, value);
  }
  std::string event = eventAt(step);
  addText(event, 5, summary);
  write(event);
}

void EventFile::complete() {
  if (fsync(descriptor) != 0 || close(std::exchange(descriptor, -1)) != 0)
    fail();
}
