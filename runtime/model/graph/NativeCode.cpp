//===- NativeCode.cpp - Graphs compiled by AOTInductor --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/NativeCode.h"

#include "runtime/model/graph/Operators.h"
#include "runtime/model/graph/Sha256.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <caffe2/serialize/in_memory_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using nlohmann::json;

namespace {

constexpr char kProducer[] = "torch " TORCH_VERSION;
constexpr char kFolder[] = "data/aotinductor/";
constexpr char kExportAgain[] = ": export the model with --native again, and "
                                "compile the program, or leave out "
                                "--allow-native-code";

/// The contents of the file. Throws if they do not have this SHA-256 digest.
std::vector<std::byte> readArchive(const std::string &path,
                                   const std::string &digest) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? std::streamoff(file.tellg()) : -1;
  if (size < 0)
    throw std::invalid_argument(
        path + ": cannot open the native code of the program's model" +
        kExportAgain);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char *>(bytes.data()), size))
    throw std::invalid_argument(path + ": cannot read");
  if (sha256(bytes) != digest)
    throw std::invalid_argument(
        path +
        ": expected the file that the program names by its SHA-256, got "
        "one of another content" +
        kExportAgain);
  return bytes;
}

/// Writes the bytes to an anonymous file and returns its path. The file is
/// never closed: the loader identifies libraries by their paths, and may keep a
/// library that is no longer used. If the file were closed, a later file could
/// get the same path and be taken for that library.
std::string fileWithoutName(std::string_view bytes) {
  const int file = memfd_create("chimera-native", MFD_CLOEXEC);
  while (file >= 0 && !bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      break;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (file < 0 || !bytes.empty())
    throw std::runtime_error(
        std::string("cannot hold native code in memory: ") +
        std::strerror(errno));
  return "/proc/self/fd/" + std::to_string(file);
}

/// Whether this processor has the features that code for `processor` may use.
/// `processor` is LibTorch's name of a CPU capability, such as "AVX2".
bool processorSupports(const std::string &processor) {
  static const std::array<std::string, 3> kX86 = {"DEFAULT", "AVX2", "AVX512"};
  const std::string own = at::get_cpu_capability();
  const auto wanted = std::ranges::find(kX86, processor);
  const auto has = std::ranges::find(kX86, own);
  return wanted != kX86.end() && has != kX86.end() ? wanted <= has
                                                   : processor == own;
}

program::TensorType typeOf(const std::string &name) {
  for (program::TensorType type : program::EnumValuesTensorType())
    if (name == program::EnumNameTensorType(type))
      return type;
  throw std::runtime_error("no type of tensors: " + name);
}

NativeLibrary describe(const json &metadata, const std::string &path) {
  const json signature =
      json::parse(metadata.at("chimera").get_ref<const std::string &>());
  const std::string processor = signature.at("processor");
  if (!processorSupports(processor))
    throw std::invalid_argument(path +
                                ": expected native code for this processor, " +
                                at::get_cpu_capability() + ", got some for " +
                                processor + kExportAgain);
  NativeLibrary library;
  for (const json &input : signature.at("inputs"))
    library.inputs.push_back(
        {typeOf(input.at("type")), input.at("shape"), input.at("strides")});
  library.results = signature.at("results");
  return library;
}

bool haveStrides(const Tensor &tensor, const std::vector<int64_t> &strides) {
  for (int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.size(i) != 1 &&
        tensor.stride(i) != strides[static_cast<size_t>(i)])
      return false;
  return true;
}

} // namespace

NativeFunction::NativeFunction(const NativeLibrary &library, size_t inputs,
                               size_t results, std::atomic<uint64_t> &calls)
    : library(library), calls(calls) {
  if (library.inputs.size() != inputs || library.results != results)
    throw std::invalid_argument("expected native code that takes " +
                                std::to_string(inputs) + " tensors and makes " +
                                std::to_string(results) + ", got some for " +
                                std::to_string(library.inputs.size()) +
                                " and " + std::to_string(library.results));
  try {
    runner = std::make_unique<torch::inductor::AOTIModelContainerRunnerCpu>(
        library.path);
  } catch (const c10::Error &error) {
    throw std::runtime_error(std::string("cannot load native code: ") +
                             error.what_without_backtrace());
  }
}

NativeFunction::~NativeFunction() = default;

std::vector<Tensor> NativeFunction::run(std::vector<Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NativeInput &wanted = library.inputs[i];
    Tensor &input = inputs[i];
    if (!input.defined() || input.scalar_type() != torchTypeOf(wanted.type) ||
        input.sizes() != wanted.shape)
      throw std::invalid_argument(
          "expected as input " + std::to_string(i) +
          " of native code a tensor of the type and shape that it was compiled "
          "for, got another");
    if (!haveStrides(input, wanted.strides))
      input = at::empty_strided(wanted.shape, wanted.strides, input.options())
                  .copy_(input);
  }
  ++calls;
  std::vector<Tensor> results;
  try {
    results = runner->boxed_run(std::move(inputs));
  } catch (const c10::Error &error) {
    throw std::runtime_error(std::string("native code: ") +
                             error.what_without_backtrace());
  }
  if (results.size() != library.results)
    throw std::runtime_error("expected native code to make " +
                             std::to_string(library.results) +
                             " tensors, got " + std::to_string(results.size()));
  return results;
}

NativeCode::NativeCode(const program::ProgramT &program,
                       const std::string &folder) {
  const program::PackageT &package = *program.model;
  std::set<uint32_t> samples;
  for (const auto &kind : package.kinds)
    for (const auto &archive : kind->graphs->native) {
      samples.insert(archive->samples);
      // Code for fewer samples may serve parts of a micro-batch.
      const bool isUsable = archive->samples > 0 &&
                            program.micro_batch_size % archive->samples == 0;
      if (!isUsable || archives.contains(archive->sha256))
        continue;
      if (package.producer != kProducer)
        throw std::invalid_argument(
            std::string("expected native code for this version, ") + kProducer +
            ", got native code for " + package.producer + kExportAgain);
      read(archive->sha256, folder);
    }
  if (samples.empty())
    throw std::invalid_argument(
        "--allow-native-code needs a model that was exported with --native, "
        "and the program's has no native code");
  if (archives.empty())
    throw std::invalid_argument(
        "expected native code for micro-batches of " +
        std::to_string(program.micro_batch_size) + " samples, got it for " +
        std::to_string(*samples.begin()) +
        ": export the model with examples of as many samples");
}

void NativeCode::read(const std::string &digest, const std::string &folder) {
  const std::string path = folder + "/" + digest + ".pt2";
  const std::vector<std::byte> bytes = readArchive(path, digest);
  std::map<std::string, NativeLibrary> &libraries = archives[digest];
  std::map<std::string, std::string> contents;
  try {
    caffe2::serialize::PyTorchStreamReader reader(
        std::make_shared<caffe2::serialize::MemoryReadAdapter>(
            bytes.data(), static_cast<off_t>(bytes.size())));
    for (const std::string &record : reader.getAllRecords()) {
      if (!record.starts_with(kFolder))
        continue;
      const std::string name = record.substr(std::size(kFolder) - 1);
      const std::string subgraph = name.substr(0, name.find('/'));
      const auto [content, size] = reader.getRecord(record);
      const auto *text = static_cast<const char *>(content.get());
      if (record.ends_with(".so"))
        contents[subgraph].assign(text, size);
      else if (record.ends_with(".wrapper_metadata.json"))
        libraries[subgraph] = describe(json::parse(text, text + size), path);
    }
    for (const auto &[subgraph, library] : libraries)
      contents.at(subgraph);
  } catch (const std::invalid_argument &) {
    throw;
  } catch (const std::exception &) {
    throw std::invalid_argument(
        path + ": expected an archive that this version's exporter made" +
        kExportAgain);
  }
  for (auto &[subgraph, library] : libraries)
    library.path = fileWithoutName(contents[subgraph]);
}

std::unique_ptr<NativeFunction>
NativeCode::loadFunction(const program::LayerGraphsT &graphs, uint32_t samples,
                         const std::string &subgraph, size_t inputs,
                         size_t results) const {
  const auto found = std::ranges::find(graphs.native, samples,
                                       &program::NativeArchiveT::samples);
  if (found == graphs.native.end())
    return nullptr;
  const auto archive = archives.find((*found)->sha256);
  if (archive == archives.end())
    return nullptr;
  const auto library = archive->second.find(subgraph);
  if (library == archive->second.end())
    return nullptr;
  return std::make_unique<NativeFunction>(library->second, inputs, results,
                                          count);
}

std::shared_ptr<const NativeCode>
chimera::runtime::readNativeCode(const program::ProgramT &program,
                                 const std::string &folder) {
  return std::make_shared<NativeCode>(program, folder);
}
