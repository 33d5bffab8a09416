//===- TensorFiles.cpp - Tensors in safetensors files ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/TensorFiles.h"

#include "runtime/program/File.h"
#include "runtime/program/Package.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Mix.h"
#include "runtime/system/ReadAt.h"
#include "runtime/system/ShallowJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace chimera::runtime {
namespace {

namespace fs = std::filesystem;

// The format's own limit. Without a limit, the first bytes of a file of another
// kind could be read as a huge length, and that much memory would be allocated.
constexpr uint64_t kLargestHeader = 100'000'000;

[[noreturn]] void failToLoad(const std::string &path,
                             const std::string &reason) {
  throw std::runtime_error("cannot load weights from '" + path +
                           "': " + reason);
}

// JSON text for messages. Bytes that are not UTF-8 are replaced.
std::string dumped(const nlohmann::json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// An open file. The destructor closes it unless take() has been called.
class Opened {
public:
  explicit Opened(const std::string &path)
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
      failToLoad(path, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) {
      ::close(descriptor);
      failToLoad(path, "expected a file");
    }
    size = static_cast<uint64_t>(status.st_size);
  }
  ~Opened() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  Opened(const Opened &) = delete;

  int get() const { return descriptor; }
  int take() { return std::exchange(descriptor, -1); }
  uint64_t size = 0;

private:
  int descriptor;
};

std::string readText(const Opened &file, const std::string &path,
                     uint64_t begin, uint64_t length) {
  std::string text(length, '\0');
  const ssize_t read =
      readAt(file.get(), begin, std::as_writable_bytes(std::span(text)));
  if (read < 0)
    failToLoad(path, std::strerror(errno));
  if (static_cast<uint64_t>(read) < length)
    failToLoad(path, "it was truncated while it was read");
  return text;
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

// Whether the ranges, in any order, cover all bytes from `begin` to `end`
// exactly once.
bool covers(std::vector<std::pair<uint64_t, uint64_t>> ranges, uint64_t begin,
            uint64_t end) {
  std::sort(ranges.begin(), ranges.end());
  for (const auto &[first, last] : ranges) {
    if (first != begin)
      return false;
    begin = last;
  }
  return begin == end;
}

/// The files of a folder that --load looks for, in this order: Hugging Face's,
/// then that of a package of chimera-export.
constexpr const char *kFilesOfFolder[] = {
    "model.safetensors", "model.safetensors.index.json", "values.safetensors"};

constexpr char kPickle[] =
    "weights in a pickle of Python. Load them there, and save them with "
    "safetensors or save_pretrained()";

/// If a folder has weights in another form, the name of this form and a way to
/// convert them, with a leading comma. Otherwise empty.
std::string adviceOfFolder(const fs::path &folder) {
  constexpr struct {
    const char *file, *advice;
  } kForms[] = {
      {".metadata",
       "a distributed checkpoint of PyTorch. Load it in Python with the "
       "version "
       "of torch that wrote it, and save the weights with safetensors"},
      {"adapter_model.safetensors",
       "the weights of an adapter (PEFT). In Python, merge_and_unload() adds "
       "them to the model, and save_pretrained() writes the whole model"},
      {"pytorch_model.bin", kPickle},
      {"pytorch_model.bin.index.json", kPickle},
      {program::kPackageFile,
       "a package that was exported without values. Leave out --load, and the "
       "run draws them"},
  };
  std::error_code ignored;
  for (const auto &form : kForms)
    if (fs::exists(folder / form.file, ignored))
      return std::string(", but ") + form.advice;
  return {};
}

/// The file of a folder that has its weights, or the index of these files.
/// Throws std::runtime_error if there is none.
std::string weightsOfFolder(const fs::path &folder) {
  std::error_code ignored;
  for (const char *name : kFilesOfFolder)
    if (fs::exists(folder / name, ignored))
      return folder / name;
  failToLoad(folder, std::string("expected a folder with ") +
                         kFilesOfFolder[0] + ", " + kFilesOfFolder[1] + " or " +
                         kFilesOfFolder[2] + ", and it has none of them" +
                         adviceOfFolder(folder));
}

/// Throws std::runtime_error because `path` is no index, with the reason
/// `what`. If it may be the file of a package's layers, names the file with the
/// weights.
[[noreturn]] void failAsNoIndex(const std::string &path,
                                const std::string &what) {
  const bool isPackage = fs::path(path).filename() == program::kPackageFile;
  failToLoad(path, isPackage
                       ? std::string("it has the layers of a package. Its "
                                     "weights are in ") +
                             kFilesOfFolder[2] + " of the same folder: give " +
                             "--load that file, or the folder"
                       : "it is no index" + what);
}

} // namespace

TensorFiles::TensorFiles(const std::string &path) try {
  std::error_code ignored;
  const std::string file =
      fs::is_directory(path, ignored) ? weightsOfFolder(path) : path;
  if (file.ends_with(".json"))
    openShards(file);
  else
    open(file);
} catch (...) {
  close();
  throw;
}

TensorFiles::~TensorFiles() { close(); }

void TensorFiles::close() {
  for (const File &file : files)
    ::close(file.descriptor);
}

void TensorFiles::openShards(const std::string &index) {
  nlohmann::json root;
  {
    const Opened file(index);
    if (file.size > kLargestHeader)
      failToLoad(index, "expected an index of at most 100 MB");
    const std::string text = readText(file, index, 0, file.size);
    if (!isShallow(text, 3))
      failAsNoIndex(index, ": it nests more than three levels");
    root = nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  }
  const nlohmann::json map = root.is_object()
                                 ? root.value("weight_map", nlohmann::json())
                                 : nlohmann::json();
  if (!map.is_object() || map.empty())
    failAsNoIndex(index, " of safetensors files: expected a JSON object with a "
                         "\"weight_map\" of tensors to files");
  std::set<std::string> names;
  for (const auto &[tensor, name] : map.items()) {
    const std::string text = name.is_string() ? name.get<std::string>() : "";
    if (text.empty() || text.find('/') != std::string::npos ||
        text.find('\0') != std::string::npos)
      failToLoad(index, "expected the name of a file in the same folder for '" +
                            program::printable(tensor) + "', got " +
                            program::printable(dumped(name)));
    names.insert(text);
  }
  std::map<std::string, size_t> numbers;
  for (const std::string &name : names) {
    numbers[name] = files.size();
    open((fs::path(index).parent_path() / name).string());
  }
  for (const auto &[tensor, name] : map.items()) {
    const auto found = byName.find(tensor);
    const auto file = name.get<std::string>();
    if (found == byName.end() || found->second.file != numbers[file])
      failToLoad(index, "it says that '" + program::printable(tensor) +
                            "' is in '" + program::printable(file) +
                            "', which has no such tensor");
  }
}

void TensorFiles::open(const std::string &path) {
  Opened file(path);
  uint64_t length = 0;
  if (readAt(file.get(), 0, std::as_writable_bytes(std::span(&length, 1))) !=
          sizeof length ||
      length > kLargestHeader || length > file.size - sizeof length) {
    constexpr uint32_t kZip = 0x04034b50; // torch.save's files start so
    failToLoad(path,
               static_cast<uint32_t>(length) == kZip
                   ? std::string("expected a safetensors file, got ") + kPickle
                   : "it is no safetensors file, or a truncated one");
  }
  const std::string text = readText(file, path, sizeof length, length);
  if (!isShallow(text, 3))
    failToLoad(
        path,
        "it is no safetensors file: its header nests more than three levels");
  const auto header =
      nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!header.is_object())
    failToLoad(path, "it is no safetensors file: its header is no JSON object");
  const uint64_t digest = program::checksum(std::as_bytes(std::span(text)));
  headersDigest = files.empty() ? digest : mix({headersDigest, digest});

  const uint64_t begin = sizeof length + length;
  const size_t number = files.size();
  files.push_back({path, file.take(), begin, file.size});
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    auto field = [&](const char *key) {
      return entry.is_object() ? entry.value(key, nlohmann::json())
                               : nlohmann::json();
    };
    const nlohmann::json offsets = field("data_offsets");
    const auto [other, isNew] = byName.try_emplace(
        name, Tensor{number, entry.is_object(), dumped(field("dtype")),
                     dumped(field("shape")), dumped(offsets),
                     rangeOf(offsets, begin, file.size)});
    if (!isNew)
      failToLoad(path, "it has the tensor '" + program::printable(name) +
                           "', which '" + files[other->second.file].path +
                           "' has too");
  }
}

std::string TensorFiles::fileWithGaps() const {
  std::vector<std::vector<std::pair<uint64_t, uint64_t>>> ranges(files.size());
  for (const auto &[name, tensor] : byName)
    if (tensor.range)
      ranges[tensor.file].push_back(*tensor.range);
  for (size_t i = 0; i < files.size(); ++i)
    if (!covers(std::move(ranges[i]), files[i].dataBegin, files[i].size))
      return files[i].path;
  return "";
}

void TensorFiles::read(size_t file, uint64_t begin, Bytes memory,
                       const std::string &what) const {
  const ssize_t read = readAt(files.at(file).descriptor, begin, memory);
  if (read < 0 || static_cast<size_t>(read) < memory.size())
    throw std::runtime_error("cannot read '" + program::printable(what) +
                             "' from '" + files[file].path + "': " +
                             (read < 0 ? std::strerror(errno)
                                       : "it was truncated while it was read"));
}

} // namespace chimera::runtime
