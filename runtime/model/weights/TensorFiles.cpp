//===- TensorFiles.cpp - Tensors in safetensors files ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/TensorFiles.h"

#include "runtime/program/Package.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Mix.h"
#include "runtime/system/ShallowJson.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <span>
#include <stdexcept>

namespace chimera::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char kFailure[] = "cannot load weights from";
// An index has at most as many bytes as a header of safetensors may have.
constexpr uint64_t kLargestIndex = 100'000'000;

[[noreturn]] void failToLoad(const std::string &path,
                             const std::string &reason) {
  throw std::runtime_error(std::string(kFailure) + " '" + path +
                           "': " + reason);
}

// JSON text for messages. Bytes that are not UTF-8 are replaced.
std::string dumped(const nlohmann::json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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

TensorFiles::TensorFiles(const std::string &path) {
  std::error_code ignored;
  const std::string file =
      fs::is_directory(path, ignored) ? weightsOfFolder(path) : path;
  if (file.ends_with(".json"))
    openShards(file);
  else
    open(file);
}

void TensorFiles::openShards(const std::string &index) {
  nlohmann::json root;
  {
    const InputFile file(index, kFailure);
    if (file.size() > kLargestIndex)
      file.fail("expected an index of at most 100 MB");
    std::string text(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
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
  const SafetensorsFile &opened = files.emplace_back(path, kFailure);
  const size_t number = files.size() - 1;
  headersDigest = number == 0 ? opened.headerDigest()
                              : mix({headersDigest, opened.headerDigest()});
  for (const auto &[name, entry] : opened.tensors()) {
    const auto [other, isNew] =
        byName.try_emplace(name, Tensor{{entry}, number});
    if (!isNew)
      opened.file().fail("it has the tensor '" + program::printable(name) +
                         "', which '" +
                         files[other->second.file].file().path() + "' has too");
  }
}

std::string TensorFiles::fileWithGaps() const {
  for (const SafetensorsFile &opened : files)
    if (opened.hasGaps())
      return opened.file().path();
  return "";
}

void TensorFiles::read(size_t file, uint64_t begin, Bytes memory,
                       const std::string &what) const {
  try {
    files.at(file).file().read(begin, memory);
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(std::string(error.what()) + ", at '" +
                             program::printable(what) + "'");
  }
}

} // namespace chimera::runtime
