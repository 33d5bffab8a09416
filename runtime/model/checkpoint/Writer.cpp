//===- Writer.cpp - A rank's part in writing checkpoints ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Writer.h"

#include "runtime/model/weights/Finite.h"
#include "runtime/program/Optimizer.h"
#include "runtime/program/Output.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>

using namespace chimera;
using namespace chimera::runtime;

namespace {
using Clock = std::chrono::steady_clock;

/// The time between two looks at a report that is not there yet.
constexpr std::chrono::milliseconds kLook{20};

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void writeText(const std::string &path, const std::string &text) {
  std::string error;
  if (!program::writeAtomically(path, {std::as_bytes(std::span(text))}, error))
    throw std::runtime_error(error);
}

uint64_t parameterBytesOf(const program::ProgramT &program,
                          const CheckpointPart &part) {
  return static_cast<uint64_t>(
      program::parameterCount(*program.model, part.first, part.layers) *
      program::bytesOf(program.weight_type));
}

/// The text of an index of safetensors files, as Hugging Face writes it.
std::string formatIndex(const std::map<std::string, Checksums> &files,
                        std::string_view prefix, uint64_t bytes) {
  nlohmann::ordered_json root;
  root["metadata"]["total_size"] = bytes;
  for (const auto &[file, tensors] : files)
    if (file.starts_with(std::string(prefix) + "-"))
      for (const auto &[name, ignored] : tensors)
        root["weight_map"][name] = file;
  return root.dump(1) + "\n";
}
} // namespace

/// The content of the report on a part: the tensors that were written.
struct CheckpointWriter::Report {
  std::map<std::string, Checksums> checksums;
  uint64_t modelBytes = 0, optimizerBytes = 0; ///< of tensors
};

uint64_t chimera::runtime::copyBytesOf(const program::ProgramT &program,
                                       const CheckpointPart &part) {
  return parameterBytesOf(program, part) +
         static_cast<uint64_t>(program::optimizerBytes(
             *program.optimizer, *program.model, program::typesOf(program),
             part.first, part.layers));
}

CheckpointWriter::CheckpointWriter(const program::ProgramT &program,
                                   const WeightNames &names,
                                   std::vector<CheckpointPart> own,
                                   const Options &options)
    : program(program), names(names), own(std::move(own)), options(options) {
  if (options.isRoot)
    folder.emplace(options.folder, options.firstStep, options.resumedFrom);
  for (const CheckpointPart &part : this->own)
    copies.emplace_back(copyBytesOf(program, part));
}

CheckpointWriter::~CheckpointWriter() {
  giveUp();
  if (thread.joinable())
    thread.join();
}

void CheckpointWriter::begin(
    uint64_t step, const std::string &fault,
    const std::function<void(size_t, Bytes, Bytes)> &copyState) {
  const Clock::time_point begin = Clock::now();
  if (fault.empty())
    for (size_t i = 0; i < own.size(); ++i) {
      const Bytes all(copies[i]);
      const uint64_t parameters = parameterBytesOf(program, own[i]);
      copyState(i, all.first(parameters), all.subspan(parameters));
    }
  outcome = {};
  outcome.step = step;
  outcome.waited = secondsSince(begin);
  started = begin;
  isReturned = false;
  ownFault = fault;
  areOwnPartsWritten = isDone = isGivenUp = false;
  try {
    thread = std::thread([this] { write(); });
  } catch (const std::system_error &error) {
    outcome.error = std::string("cannot start a thread: ") + error.what();
    endParts(outcome.error);
    isDone = true;
  }
}

std::string CheckpointWriter::awaitOwnParts() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return areOwnPartsWritten; });
  return ownFault;
}

std::optional<std::string>
CheckpointWriter::awaitOwnParts(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, patience, [&] { return areOwnPartsWritten; }))
    return std::nullopt;
  return ownFault;
}

void CheckpointWriter::giveUp() {
  {
    std::lock_guard lock(mutex);
    isGivenUp = true;
  }
  changed.notify_all();
}

bool CheckpointWriter::endsWithin(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, patience, [&] { return isDone; });
}

std::optional<CheckpointOutcome>
CheckpointWriter::finish(const std::string &fault) {
  if (!fault.empty())
    giveUp();
  if (thread.joinable())
    thread.join();
  std::optional<CheckpointOutcome> last = poll();
  if (last && last->path.empty() && !fault.empty())
    last->error = fault;
  return last;
}

std::optional<CheckpointOutcome> CheckpointWriter::poll() {
  std::lock_guard lock(mutex);
  if (!folder || isReturned || !isDone)
    return std::nullopt;
  isReturned = true;
  return outcome;
}

void CheckpointWriter::endParts(const std::string &fault) {
  std::lock_guard lock(mutex);
  ownFault = fault;
  areOwnPartsWritten = true;
  changed.notify_all();
}

/// Writes the own parts and, at the root, completes the checkpoint.
void CheckpointWriter::write() {
  const std::string partial =
      partialFolder(options.folder, outcome.step, options.nonce);
  std::string fault = ownFault; // no other thread changes it now
  try {
    if (fault.empty()) {
      if (::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST)
        throw std::runtime_error("cannot create '" + partial +
                                 "': " + program::reasonOf(errno));
      writeParts(partial);
    }
  } catch (const std::exception &error) {
    fault = error.what();
  }
  endParts(fault);
  if (folder) {
    try {
      complete(partial);
      outcome.error = folder->keepNewest(options.keep);
    } catch (const std::exception &error) {
      outcome.error = error.what();
      removeFolder(partial);
    }
    outcome.seconds = secondsSince(started);
  }
  std::lock_guard lock(mutex);
  isDone = true;
  changed.notify_all();
}

void CheckpointWriter::writeParts(const std::string &partial) {
  for (size_t i = 0; i < own.size(); ++i) {
    const CheckpointPart &part = own[i];
    const uint64_t parameters = parameterBytesOf(program, part);
    const ConstBytes all(copies[i]);
    if (!areFinite(program.weight_type, all))
      throw std::runtime_error(
          "the weights or the optimizer state of part " +
          std::to_string(part.number + 1) + " of " +
          std::to_string(options.parts) +
          " are not finite: the last update was too large");
    nlohmann::ordered_json report;
    auto writeFile = [&](const char *prefix,
                         const std::vector<OutputTensor> &tensors,
                         ConstBytes state) {
      if (tensors.empty())
        return;
      const std::string name =
          partName(prefix, part.number, options.parts, ".safetensors");
      report["checksums"][name] =
          writeShard(tensors, state, partial + "/" + name);
      uint64_t bytes = 0;
      for (const OutputTensor &tensor : tensors)
        bytes += tensor.bytes;
      report[prefix] = bytes;
    };
    writeFile(kModelFiles,
              parameterTensors(program, part.first, part.layers, names),
              all.first(parameters));
    writeFile(kOptimizerFiles,
              optimizerTensors(program, part.first, part.layers),
              all.subspan(parameters));
    syncFolder(partial);
    writeText(partial + "/" +
                  partName("part", part.number, options.parts, ".json"),
              report.dump());
  }
}

/// Waits for the report on a part, until the checkpoint is given up.
CheckpointWriter::Report
CheckpointWriter::awaitReport(const std::string &partial, uint32_t part) {
  const std::string path =
      partial + "/" + partName("part", part, options.parts, ".json");
  std::unique_lock lock(mutex);
  do {
    std::ifstream file(path, std::ios::binary);
    if (!file)
      continue;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto root = nlohmann::json::parse(text);
    return {.checksums =
                root.value("checksums", std::map<std::string, Checksums>()),
            .modelBytes = root.value(kModelFiles, uint64_t{0}),
            .optimizerBytes = root.value(kOptimizerFiles, uint64_t{0})};
  } while (!changed.wait_for(lock, kLook, [&] { return isGivenUp; }));
  throw std::runtime_error("part " + std::to_string(part + 1) + " of " +
                           std::to_string(options.parts) + " is missing");
}

void CheckpointWriter::complete(const std::string &partial) {
  CheckpointDescription description = describeCheckpoint(
      program, outcome.step, options.steps, options.dataDigest);
  description.updates =
      options.firstUpdate +
      (outcome.step - options.firstStep) * program::updatesPerStep(program);
  uint64_t modelBytes = 0, optimizerBytes = 0;
  for (uint32_t part = 0; part < options.parts; ++part) {
    Report report = awaitReport(partial, part);
    description.checksums.merge(report.checksums);
    modelBytes += report.modelBytes;
    optimizerBytes += report.optimizerBytes;
  }
  writeText(partial + "/" + indexName(kModelFiles),
            formatIndex(description.checksums, kModelFiles, modelBytes));
  if (optimizerBytes > 0)
    writeText(
        partial + "/" + indexName(kOptimizerFiles),
        formatIndex(description.checksums, kOptimizerFiles, optimizerBytes));
  for (uint32_t part = 0; part < options.parts; ++part)
    std::filesystem::remove(partial + "/" +
                            partName("part", part, options.parts, ".json"));
  writeText(partial + "/" + kTrainingFile, format(description));
  outcome.path = folder->publish(partial, outcome.step);
  outcome.bytes = modelBytes + optimizerBytes;
}
