//===- SavedState.cpp - Weights and optimizer state to resume from --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/SavedState.h"

#include "runtime/model/checkpoint/Folder.h"
#include "runtime/model/checkpoint/Shard.h"
#include "runtime/model/weights/FileTypes.h"
#include "runtime/program/File.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"

#include <nlohmann/json.hpp>

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
std::runtime_error failure(const std::string &folder,
                           const std::string &reason) {
  return std::runtime_error("cannot resume from '" + folder + "': " + reason);
}

/// The description of a checkpoint from which `program` can continue.
CheckpointDescription descriptionFor(const program::ProgramT &program,
                                     const std::string &folder) {
  if (const std::string problem = checkHasWeights(program); !problem.empty())
    throw failure(folder, problem);
  CheckpointDescription saved = readDescription(folder);
  if (const std::string fault = faultOfStepName(folder, saved.step);
      !fault.empty())
    throw failure(folder, fault);
  if (const std::string reason = reasonNotToResume(saved, program);
      !reason.empty())
    throw failure(folder, reason);
  return saved;
}

/// Returns open(), which opens files of the checkpoint. If it throws, adds the
/// folder and what to do.
template <typename Open>
auto openFiles(const std::string &folder, const Open &open) {
  try {
    return open();
  } catch (const std::runtime_error &error) {
    throw failure(folder, error.what() + std::string(kTakeAnother));
  }
}

/// The type and the shape of a tensor as a safetensors header has them.
std::string typeAndShape(program::DataType type,
                         const std::vector<int64_t> &shape) {
  return '"' + std::string(fileTypeOf(type).name) + "\" " +
         nlohmann::json(shape).dump();
}
} // namespace

SavedState::SavedState(const program::ProgramT &program,
                       const std::string &folder, const WeightNames &names)
    : folder(folder), saved(descriptionFor(program, folder)), names(names),
      weights(openFiles(folder, [&] {
        return LoadedWeights(program, folder + "/" + indexName(kModelFiles),
                             names);
      })) {
  for (const auto &[file, sums] : saved.checksums)
    checksums.insert(sums.begin(), sums.end());
  if (optimizerTensors(program, 0, program::layerCount(*program.model)).empty())
    return;
  openFiles(folder, [&] {
    optimizer.emplace(folder + "/" + indexName(kOptimizerFiles));
  });
  checkOptimizerFiles(program);
}

/// Throws an error that lists the tensors which the optimizer files lack or
/// have in another form, and those that do not belong there.
void SavedState::checkOptimizerFiles(const program::ProgramT &program) const {
  const program::PackageT &model = *program.model;
  std::string differences;
  size_t count = 0;
  for (const OutputTensor &tensor :
       optimizerTensors(program, 0, program::layerCount(model))) {
    ++count;
    const auto found = optimizer->tensors().find(tensor.name);
    const std::string expected =
        typeAndShape(program.weight_type, tensor.shape);
    const std::string got =
        found == optimizer->tensors().end()
            ? "none"
            : found->second.type + " " + found->second.shape;
    if (got != expected || !found->second.range ||
        found->second.range->second - found->second.range->first !=
            tensor.bytes)
      differences += "\n  " + program::printable(tensor.name) + ": expected " +
                     expected + ", got " + program::printable(got);
  }
  if (differences.empty() && optimizer->tensors().size() != count)
    differences = "\n  expected " + std::to_string(count) + " tensors, got " +
                  std::to_string(optimizer->tensors().size());
  if (!differences.empty())
    throw failure(folder, "the optimizer state does not match the program's "
                          "model:" +
                              differences + kTakeAnother);
}

void SavedState::compare(const std::string &tensor, ConstBytes memory) const {
  const auto expected = checksums.find(tensor);
  const std::string got = checksumOf(memory);
  if (expected == checksums.end() || expected->second != got)
    throw failure(folder, "expected the checksum " +
                              (expected == checksums.end()
                                   ? "in " + std::string(kTrainingFile)
                                   : expected->second) +
                              " of '" + program::printable(tensor) + "', got " +
                              got + ": the files are damaged" + kTakeAnother);
}

void SavedState::read(const std::string &name, program::DataType type,
                      const std::vector<int64_t> &shape, Bytes memory) const {
  weights.read(name, type, shape, memory);
  compare(names.tensorOf(name).name, memory);
}

bool SavedState::readState(const std::string &name, std::string_view state,
                           program::DataType type,
                           const std::vector<int64_t> &shape,
                           Bytes memory) const {
  const std::string tensor = name + "." + std::string(state);
  // The constructor has compared the files with the program's model. So check
  // only that the caller asks for a tensor of that model.
  const TensorFiles::Tensor *found = nullptr;
  if (optimizer)
    if (auto entry = optimizer->tensors().find(tensor);
        entry != optimizer->tensors().end())
      found = &entry->second;
  if (!found || found->type + " " + found->shape != typeAndShape(type, shape) ||
      found->range->second - found->range->first != memory.size())
    throw failure(folder, "expected " + typeAndShape(type, shape) + " of '" +
                              program::printable(tensor) + "'");
  optimizer->read(found->file, found->range->first, memory, tensor);
  compare(tensor, memory);
  return true;
}

uint64_t SavedState::digest() const {
  const std::string text = format(saved);
  return program::checksum(std::as_bytes(std::span(text)));
}
