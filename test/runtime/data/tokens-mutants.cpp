//===- tokens-mutants.cpp - Randomly changed token files ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes token files, their indexes, and texts at random. Reads tokens and
// training data from the accepted files. The tokens must equal the content of
// the files. See Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenTokens.h"
#include "runtime/data/TextData.h"
#include "runtime/data/TokenCheck.h"
#include "test/runtime/model/Mutants.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <array>
#include <cstring>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {

/// The maximum size of a text.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr size_t kHeaderBytes = 1024;
constexpr int32_t kMagic16 = 20240520, kMagic32 = 20240801;

/// Kinds of files.
enum Kind {
  OfText,
  Raw16,
  Raw32,
  Header16,
  Header32,
  Index8,
  Index16,
  Index32,
  kKinds
};

size_t widthOf(Kind kind) {
  switch (kind) {
  case OfText:
  case Index8:
    return 1;
  case Raw16:
  case Header16:
  case Index16:
    return 2;
  default:
    return 4;
  }
}

struct File {
  std::string bytes;
  uint64_t size; ///< of the file: zeros follow `bytes`
  bool hasIndex = false;
};

File fileOf(Kind kind, Random &random) {
  const size_t width = widthOf(kind);
  const uint32_t count = static_cast<uint32_t>(1 + below(random, 2000));
  std::string bytes;
  if (kind == Header16 || kind == Header32) {
    std::array<int32_t, kHeaderBytes / 4> header{};
    header[0] = kind == Header16 ? kMagic16 : kMagic32;
    header[1] = kind == Header16 ? 1 : 7;
    header[2] = static_cast<int32_t>(count);
    bytes.assign(reinterpret_cast<const char *>(header.data()), kHeaderBytes);
  }
  // Almost all tokens are below 256, and so in the vocabulary.
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t token =
        below(random, 50'000) ? below(random, 256) : random();
    bytes.append(reinterpret_cast<const char *>(&token), width);
  }
  return {bytes, bytes.size()};
}

/// An index in Megatron's format of a file with `tokens` tokens, which it
/// divides into sequences at random.
std::string indexOf(Kind kind, uint64_t tokens, Random &random) {
  const auto width = static_cast<int64_t>(widthOf(kind));
  static const uint8_t narrow[] = {8, 3};
  const uint8_t code = kind == Index8    ? 1
                       : kind == Index16 ? oneOf(narrow, random)
                                         : 4;
  std::vector<int32_t> lengths;
  while (tokens > 0) {
    lengths.push_back(static_cast<int32_t>(
        1 + below(random, std::min<uint64_t>(tokens, 1 << 30))));
    tokens -= static_cast<uint64_t>(lengths.back());
  }
  std::string bytes("MMIDIDX\0\0", 9);
  const auto add = [&](auto number) {
    bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
  };
  add(uint64_t{1});
  add(code);
  add(uint64_t{lengths.size()});
  add(uint64_t{lengths.size() + 1});
  for (int32_t length : lengths)
    add(length);
  int64_t begin = 0;
  for (int32_t length : lengths) {
    add(begin);
    begin += width * length;
  }
  for (size_t document = 0; document <= lengths.size(); ++document)
    add(static_cast<int64_t>(document));
  return bytes;
}

/// Changes one number of an index.
void changeIndex(std::string &bytes, Random &random) {
  static const uint64_t numbers[] = {0,
                                     1,
                                     2,
                                     4,
                                     8,
                                     1u << 31,
                                     UINT64_MAX,
                                     uint64_t{1} << 63,
                                     uint64_t{1} << 61};
  if (below(random, 2) == 0)
    return change(bytes, random);
  static const size_t places[] = {9, 17, 18, 26, 34, 38, 42};
  const size_t at =
      below(random, 3) ? oneOf(places, random) : below(random, bytes.size());
  const uint64_t number = oneOf(numbers, random);
  const size_t size = std::min<size_t>(at == 17 ? 1 : 8, bytes.size() - at);
  std::memcpy(&bytes[at], &number, size);
}

/// Changes one of the first three numbers of llm.c's header.
void changeHeader(std::string &bytes, Random &random) {
  static const int32_t numbers[] = {0,        1,        2,           7,
                                    -1,       1 << 30,  INT32_MAX,   INT32_MIN,
                                    kMagic16, kMagic32, kMagic16 + 1};
  int32_t number;
  const size_t at = 4 * below(random, 3);
  if (bytes.size() < at + sizeof number)
    return;
  std::memcpy(&number, &bytes[at], sizeof number);
  number = below(random, 2)
               ? oneOf(numbers, random)
               : static_cast<int32_t>(static_cast<uint32_t>(number) +
                                      below(random, 5) - 2);
  std::memcpy(&bytes[at], &number, sizeof number);
}

void changeFile(File &file, Random &random) {
  switch (below(random, 8)) {
  case 0:
  case 1:
    changeHeader(file.bytes, random);
    break;
  case 2:
    file.bytes.resize(below(random, std::min<size_t>(file.bytes.size(), 1100)));
    break;
  case 3:
    // Append zeros: at most 1 TiB, which exceeds the memory and 32-bit numbers.
    file.size += uint64_t{1} << below(random, 41);
    return;
  case 4:
    file.bytes.resize(file.bytes.size() + below(random, 9), '\0');
    break;
  default:
    change(file.bytes, random);
  }
  file.size = file.bytes.size();
}

struct Opened {
  std::unique_ptr<Tokens> tokens;
  std::vector<File> files;
  std::vector<std::string> paths;
};

/// Whether the file starts with this magic number and version of llm.c's
/// header.
bool beginsWith(const File &file, int32_t magic, int32_t version) {
  const int32_t begin[] = {magic, version};
  return file.bytes.size() >= sizeof begin &&
         std::memcmp(file.bytes.data(), begin, sizeof begin) == 0;
}

/// The tokens that accepted files must have. The constructor checks the number
/// of tokens.
class Expected {
public:
  explicit Expected(const Opened &opened) {
    const uint64_t bound = opened.tokens->tokenBound();
    width = bound == 256 ? 1 : bound <= 65536 ? 2 : 4;
    for (const File &file : opened.files) {
      const bool is16 = !file.hasIndex && beginsWith(file, kMagic16, 1);
      const bool is32 = !file.hasIndex && beginsWith(file, kMagic32, 7);
      size_t header = 0;
      if (width > 1 && (is16 || is32)) {
        if (width != (is16 ? 2 : 4))
          fault("expected no numbers of another size than the header says");
        header = kHeaderBytes;
        uint32_t said = 0;
        if (file.size < header)
          fault("expected no file that ends in its header");
        std::memcpy(&said, &file.bytes[8], sizeof said);
        if (said != (file.size - header) / width)
          fault("expected as many tokens as the header says");
      }
      if ((file.size - header) % width != 0)
        fault("expected a whole number of tokens");
      parts.push_back({&file, header, total});
      total += (file.size - header) / width;
    }
    if (opened.tokens->count() != total)
      fault("expected " + std::to_string(total) + " tokens");
  }

  uint64_t count() const { return total; }

  int64_t operator[](uint64_t token) const {
    size_t part = parts.size() - 1;
    while (parts[part].first > token)
      --part;
    const File &file = *parts[part].file;
    const uint64_t begin =
        parts[part].header + (token - parts[part].first) * width;
    uint32_t value = 0;
    for (uint64_t i = begin; i < begin + width && i < file.bytes.size(); ++i)
      value |= uint32_t{static_cast<uint8_t>(file.bytes[i])}
               << (8 * (i - begin));
    return value;
  }

private:
  struct Part {
    const File *file;
    uint64_t header, first;
  };
  uint64_t width, total = 0;
  std::vector<Part> parts;
};

Opened openMutant(const Folder &folder, Random &random) {
  Opened opened;
  const auto kind = static_cast<Kind>(below(random, kKinds));
  const uint64_t count =
      kind == OfText || below(random, 2) ? 1 : 2 + below(random, 2);
  for (uint64_t i = 0; i < count; ++i) {
    opened.files.push_back(fileOf(
        below(random, 16) ? kind : static_cast<Kind>(below(random, kKinds)),
        random));
    for (uint64_t j = below(random, 3); j > 0; --j)
      changeFile(opened.files.back(), random);
    File &file = opened.files.back();
    const std::string name = std::to_string(i);
    folder.remove(name + ".idx");
    if (kind >= Index8) {
      std::string index = indexOf(
          kind, file.size / widthOf(kind) + below(random, 50) / 49, random);
      if (below(random, 2))
        changeIndex(index, random);
      file.hasIndex = index.starts_with(std::string("MMIDIDX\0\0", 9));
      folder.write(name + ".idx", index, index.size());
    }
    opened.paths.push_back(folder.write(name + ".bin", file.bytes, file.size));
  }
  TokenFormat format = kind == OfText  ? TokenFormat::Bytes
                       : kind == Raw16 ? TokenFormat::UInt16
                       : kind == Raw32 ? TokenFormat::UInt32
                                       : TokenFormat::Auto;
  static const TokenFormat formats[] = {TokenFormat::Auto, TokenFormat::Bytes,
                                        TokenFormat::UInt16,
                                        TokenFormat::UInt32};
  if (below(random, 8) == 0)
    format = oneOf(formats, random);
  opened.tokens =
      openTokens(opened.paths, {.format = format,
                                .vocabulary = 256,
                                .mostBytes = kMostBytes,
                                .trustPlainNumbers = below(random, 2) > 0});
  return opened;
}

program::ProgramT programOf(Random &random) {
  program::ProgramT program = smallProgram(
      {.vocabulary = static_cast<uint32_t>(256 << below(random, 9))});
  program.micro_batches = 2;
  program.seed = random();
  if (below(random, 3) == 0) {
    program.model = program::samplePackage();
  }
  return program;
}

/// Makes training and held-out samples from the tokens, and checks them.
void train(std::unique_ptr<Tokens> tokens, const Expected &expected,
           Random &random) {
  const program::ProgramT program = programOf(random);
  const auto context = static_cast<size_t>(*program::contextOf(*program.model));
  static const double shares[] = {0, 0.1, 0.5, 0.999};
  const double holdOut = oneOf(shares, random);
  TokenSampleOptions form;
  if (below(random, 4) == 0)
    form.masking = {.token = 3, .rate = 0.3};
  TextData data(std::move(tokens), program, holdOut, form,
                below(random, 2) ? LastBatch::Drop : LastBatch::Fill);
  const auto training = static_cast<uint64_t>(data.trainingTokens());
  if (training + static_cast<uint64_t>(data.heldOutTokens()) !=
      expected.count())
    fault("expected all tokens to be for training or held out");
  data.digest();
  auto load = [&](program::ValueKind kind, uint64_t step) {
    Guarded<int64_t> memory(2 * context);
    data.load(kind, {.step = step, .index = 1},
              std::as_writable_bytes(memory.span()));
    memory.check();
    auto span = memory.span();
    return std::vector<int64_t>(span.begin(), span.end());
  };
  for (uint64_t step = 0; step < 3; ++step) {
    const auto inputs = load(program::ValueKind::Tokens, step);
    const auto labels = load(program::ValueKind::Labels, step);
    for (size_t i = 0; !form.masking && i + 1 < context; ++i)
      if (inputs[i + 1] != labels[i])
        fault("expected labels that are the next tokens");
  }
  if (holdOut == 0)
    return;
  data.heldOut(7); // throws if there is no window
  for (uint64_t window : {0, 1, 6}) {
    const Sample sample = data.heldOutSample(window, 7);
    const uint64_t first =
        window == 0 ? training : expected.count() - context - 1;
    for (size_t i = 0; !form.masking && window != 1 && i < context; ++i)
      if (sample.tokens[i] != expected[first + i] ||
          sample.labels[i] != expected[first + i + 1])
        fault("expected the held-out part's first and last windows");
  }
  // Skip this for large training parts, because it reads all of the part.
  if (training < kMostBytes && !form.masking &&
      !std::isfinite(data.unigramLoss(data, 7)))
    fault("expected a finite loss");
}

/// Compares findAtLeast, which searches in blocks, with a search of the tokens
/// one by one. Then compares checkTokens with findAtLeast.
void findFirst(const Tokens &tokens, const Expected &expected, Random &random) {
  static const uint64_t limits[] = {1, 200, 256, 30'000, 65'536, 1u << 31};
  const uint64_t limit = oneOf(limits, random);
  const std::optional<uint64_t> found =
      tokens.findAtLeast(limit, 0, expected.count());
  const uint64_t end = found.value_or(expected.count());
  for (uint64_t token = 0; token < end; ++token)
    if (static_cast<uint64_t>(expected[token]) >= limit)
      fault("expected token " + std::to_string(token) + " to be found");
  if (found && static_cast<uint64_t>(expected[*found]) < limit)
    fault("expected a token beyond the limit");
  if (checkTokens(tokens, limit, 1 + below(random, 2)).empty() !=
      !tokens.findAtLeast(validTokenLimit(tokens, limit), 0, expected.count()))
    fault("expected a fault if there is such a token");
}

void use(Opened opened, const Folder &folder, Random &random) {
  const Expected expected(opened);
  const Tokens &tokens = *opened.tokens;
  if (tokens.fileNames().find(opened.paths.front()) == std::string::npos)
    fault("expected the first file's name");
  tokens.digest();
  // Sometimes change the length of a file that is already open.
  if (below(random, 16) == 0) {
    const File &file = opened.files.back();
    folder.resize(std::to_string(opened.files.size() - 1) + ".bin",
                  below(random, file.size + 100));
  }
  const uint64_t count = expected.count();
  for (uint64_t i = 0; i < 6; ++i) {
    // Include the first and the last tokens.
    const uint64_t first = i == 0 ? 0 : below(random, count + 1);
    const uint64_t most =
        std::min<uint64_t>(count - first, kMostBytes / sizeof(int64_t));
    Guarded<int64_t> memory(i == 1 ? most : below(random, most + 1));
    try {
      tokens.read(first, memory.span());
    } catch (...) {
      memory.check();
      throw;
    }
    memory.check();
    uint64_t token = first;
    for (int64_t value : memory.span())
      if (value != expected[token++])
        fault("expected the file's number as token " +
              std::to_string(token - 1));
  }
  if (count > 0) {
    const uint64_t token = below(random, count);
    const uint64_t end = tokens.documentEnd(token);
    if (end <= token || end > count)
      fault("expected a document that ends after its token");
  }
  if (count < kMostBytes)
    findFirst(tokens, expected, random);
  train(std::move(opened.tokens), expected, random);
}

} // namespace

int main(int argc, char **argv) {
  const Folder folder;
  return mutantsMain(
      argc, argv, "Changes token files and reads what is accepted.",
      [&](uint64_t, Random &random) { return openMutant(folder, random); },
      [&](Opened opened, Random &random) {
        use(std::move(opened), folder, random);
      });
}
