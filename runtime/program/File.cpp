//===- File.cpp - Reading and writing program files -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"

#include "runtime/program/Output.h"
#include "runtime/program/Package.h"
#include "runtime/program/SharedBytes.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace chimera::program {

namespace {

static_assert(std::endian::native == std::endian::little,
              "the header is written as it lies in memory");

constexpr char kMagic[8] = {'C', 'H', 'I', 'M', 'E', 'R', 'A', '\n'};

struct Header {
  char magic[8];
  uint32_t major;
  uint32_t minor;
  uint64_t size;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 32);

/// FlatBuffers uses signed 32-bit offsets.
constexpr uint64_t kMaxPayload = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

/// An estimate of the bytes of the FlatBuffer. It should not be too small. It
/// adds a constant for strings and the fixed parts of tables, which are small.
uint64_t payloadBytes(const ProgramT &program) {
  auto bytesOf = [](const auto &list) {
    return list.size() * sizeof(*list.data());
  };
  uint64_t bytes = bytesOf(program.stages) + bytesOf(program.locations);
  for (const auto &worker : program.workers)
    bytes += bytesOf(worker->instructions) + bytesOf(worker->operands) +
             bytesOf(worker->buffers) + bytesOf(worker->states);
  for (const auto &pipeline : program.pipelines)
    bytes += bytesOf(pipeline->workers) + bytesOf(pipeline->micro_batches);
  for (const auto &communicator : program.communicators)
    bytes += bytesOf(communicator->contributions);
  if (program.model)
    bytes += fileBytes(*program.model);
  constexpr uint64_t kTable = 256;
  bytes += kTable * (program.workers.size() + program.pipelines.size() +
                     program.communicators.size());
  return bytes + (uint64_t(1) << 20);
}

std::string truncated(uint64_t expected, uint64_t got) {
  return "truncated: expected " + std::to_string(expected) + " bytes, got " +
         std::to_string(got);
}

/// The header of a file that begins with `bytes`. None, with the reason in
/// `error`, if the header is not the header of a program that this reader can
/// read.
std::optional<Header> headerOf(std::span<const std::byte> bytes,
                               std::string &error) {
  size_t known = std::min(bytes.size(), sizeof(kMagic));
  if (bytes.empty() || std::memcmp(bytes.data(), kMagic, known) != 0) {
    error = "not a chimera program (expected magic \"CHIMERA\\n\"" +
            std::string(bytes.empty() ? ", got an empty file" : "") +
            "): chimera-compile writes one";
    return std::nullopt;
  }
  if (bytes.size() < sizeof(Header)) {
    error = truncated(sizeof(Header), bytes.size());
    return std::nullopt;
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.major != kMajorVersion) {
    error = "version " + std::to_string(header.major) + "." +
            std::to_string(header.minor) +
            ": this reader understands major version " +
            std::to_string(kMajorVersion);
    return std::nullopt;
  }
  if (header.size > kMaxPayload) {
    error = "expected at most " + std::to_string(kMaxPayload) +
            " bytes of content, got " + std::to_string(header.size);
    return std::nullopt;
  }
  return header;
}

/// Appends to `bytes` until it has `limit` bytes or the file ends. Returns
/// false, with errno set, if reading fails.
bool readUpTo(int descriptor, uint64_t limit, std::vector<std::byte> &bytes) {
  for (size_t filled = bytes.size(); filled < limit;) {
    // `bytes` grows while the file is read, because the size of a pipe's
    // content is not known.
    uint64_t room = std::max(
        {uint64_t(bytes.capacity()), uint64_t(filled) * 2, uint64_t(1) << 16});
    bytes.resize(static_cast<size_t>(std::min(room, limit)));
    ssize_t count =
        ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) {
      bytes.resize(filled);
      continue;
    }
    filled += static_cast<size_t>(std::max<ssize_t>(count, 0));
    bytes.resize(filled);
    if (count <= 0)
      return count == 0;
  }
  return true;
}

/// Reads the header, as many bytes as the header states, and one more byte. If
/// there is one more byte, deserialize reports that something was appended. If
/// the file does not begin with a valid header, reads only the header. Returns
/// false, with errno set, if reading fails.
bool readFile(int descriptor, std::vector<std::byte> &bytes) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return false;
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return false;
  }
  if (!readUpTo(descriptor, sizeof(Header), bytes))
    return false;
  std::string ignored;
  std::optional<Header> header = headerOf(bytes, ignored);
  if (!header)
    return true;
  uint64_t limit = sizeof(Header) + header->size + 1;
  if (S_ISREG(status.st_mode) && status.st_size > 0)
    bytes.reserve(static_cast<size_t>(
        std::min(limit, static_cast<uint64_t>(status.st_size) + 1)));
  return readUpTo(descriptor, limit, bytes);
}

/// The header and the FlatBuffer of a program file.
class Content {
public:
  explicit Content(const ProgramT &program) : builder(payloadBytes(program)) {
    builder.Finish(Program::Pack(builder, &program));
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.major = kMajorVersion;
    header.minor = kMinorVersion;
    header.size = payload().size();
    header.checksum = checksum(payload());
  }

  std::span<const std::byte> headerBytes() const {
    return std::as_bytes(std::span(&header, 1));
  }
  std::span<const std::byte> payload() const {
    return std::as_bytes(
        std::span(builder.GetBufferPointer(), builder.GetSize()));
  }

private:
  flatbuffers::FlatBufferBuilder builder;
  Header header;
};

} // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  auto mix = [](uint64_t state, uint64_t word) {
    state = (state ^ word) * kFactor;
    return state ^ (state >> 29);
  };
  // Use four independent chains. In a single chain, each multiplication would
  // have to wait for the previous multiplication.
  uint64_t chains[4] = {1, 2, 3, 4};
  size_t position = 0;
  for (; position + 32 <= bytes.size(); position += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + position, 32);
    for (int i = 0; i < 4; ++i)
      chains[i] = mix(chains[i], words[i]);
  }
  uint64_t state = mix(bytes.size(), 0);
  for (uint64_t chain : chains)
    state = mix(state, chain);
  for (; position < bytes.size(); position += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + position,
                std::min<size_t>(8, bytes.size() - position));
    state = mix(state, word);
  }
  return state;
}

std::vector<std::byte> serialize(const ProgramT &program) {
  Content content(program);
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(Header) + content.payload().size());
  for (std::span<const std::byte> part :
       {content.headerBytes(), content.payload()})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

bool isProgram(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(kMagic) &&
         std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0;
}

std::optional<ProgramT> deserialize(std::span<const std::byte> bytes,
                                    std::string &error) {
  std::optional<Header> header = headerOf(bytes, error);
  if (!header)
    return std::nullopt;
  std::span<const std::byte> payload = bytes.subspan(sizeof(Header));
  if (payload.size() < header->size) {
    error = truncated(sizeof(Header) + header->size, bytes.size());
    return std::nullopt;
  }
  if (payload.size() > header->size) {
    error = "expected " + std::to_string(sizeof(Header) + header->size) +
            " bytes, got more: something was appended to the program";
    return std::nullopt;
  }
  if (checksum(payload) != header->checksum) {
    error = "damaged: the checksum of the content differs from the header's";
    return std::nullopt;
  }
  // A limit on the number of tables is not needed: each table has some bytes,
  // and sharesBytes refuses a file that refers to a table twice. So the size of
  // the file limits the number of tables.
  flatbuffers::Verifier::Options options;
  options.max_tables = std::numeric_limits<flatbuffers::uoffset_t>::max();
  // The FlatBuffers verifier needs an aligned payload. If `bytes` begins at the
  // beginning of allocated memory, the payload is aligned, because the header
  // has 32 bytes. Otherwise copy the payload.
  std::vector<std::byte> aligned;
  if (reinterpret_cast<uintptr_t>(payload.data()) % 8 != 0) {
    aligned.assign(payload.begin(), payload.end());
    payload = aligned;
  }
  auto *content = reinterpret_cast<const uint8_t *>(payload.data());
  flatbuffers::Verifier verifier(content, payload.size(), options);
  if (!verifier.VerifyBuffer<Program>() ||
      !areListsAligned(*GetProgram(content), payload.size())) {
    error = "malformed: the content is not a valid FlatBuffer of a program";
    return std::nullopt;
  }
  if (sharesBytes(*GetProgram(content), payload.size())) {
    error = "malformed: some lists or texts share bytes";
    return std::nullopt;
  }
  ProgramT program;
  GetProgram(content)->UnPackTo(&program);
  return program;
}

std::optional<ProgramT> deserializeFile(const std::string &path,
                                        std::string &error) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    error = path + ": cannot open: " + reasonOf(errno);
    return std::nullopt;
  }
  std::vector<std::byte> bytes;
  bool isRead = readFile(file, bytes);
  int code = errno;
  ::close(file);
  if (!isRead) {
    error = path + ": cannot read: " + reasonOf(code);
    return std::nullopt;
  }
  std::optional<ProgramT> program = deserialize(bytes, error);
  if (!program)
    error = path + ": " + error;
  return program;
}

bool hasAllTables(const ProgramT &program) {
  auto are = [](const auto &list) {
    return std::ranges::all_of(list, [](const auto &entry) { return !!entry; });
  };
  return program.optimizer && are(program.workers) && are(program.pipelines) &&
         are(program.communicators);
}

bool serializeFile(const ProgramT &program, const std::string &path,
                   std::string &error,
                   const std::function<bool()> &mayPublish) {
  if (payloadBytes(program) > kMaxPayload) {
    if (mayPublish())
      error = path + ": expected at most " + std::to_string(kMaxPayload) +
              " bytes of content, got about " +
              std::to_string(payloadBytes(program));
    return false;
  }
  Content content(program);
  ByteRanges parts = {content.headerBytes(), content.payload()};
  return path == "-" ? writeStandardOutput(parts, error, mayPublish)
                     : writeAtomically(path, parts, error, mayPublish);
}

} // namespace chimera::program
