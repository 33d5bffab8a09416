//===- NativeCode.h - Graphs compiled by AOTInductor ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiled graphs of a package (an exported model), made by `chimera-export
// --native`. For each kind of layer and number of samples there is an archive
// of shared libraries, with one library for each subgraph that Layer makes
// (tools/export/chimera_export/native.py). A package names an archive only by
// its SHA-256. The user gives the folder that contains the archives, and
// thereby permission to run their code: anyone who can write to that folder can
// run code as the user.
//
// An archive is read into memory once and compared with its digest. Its
// libraries are then written from that memory to anonymous files (memfd). So
// only code with the right digest runs, and a killed process leaves no file
// behind.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_NATIVECODE_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_NATIVECODE_H

#include "runtime/program/Program.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}
namespace torch::inductor {
class AOTIModelContainerRunner;
}

namespace chimera::runtime {

/// The type, shape and strides of a tensor argument of native code. The runtime
/// must check each argument: the code would read past the end of a smaller
/// tensor.
struct NativeInput {
  program::TensorType type;
  std::vector<int64_t> shape, strides;
};

/// A shared library with the native code of one subgraph.
struct NativeLibrary {
  std::string path; ///< /proc/self/fd/N; every library has its own
  std::vector<NativeInput> inputs;
  uint64_t results = 0;
};

/// A subgraph as native code. Calls from several threads run one after another.
class NativeFunction {
public:
  /// Each call of `run` increments `calls`. Throws std::runtime_error if the
  /// library cannot be loaded. Throws std::invalid_argument if the library's
  /// numbers of arguments and results differ from `inputs` and `results`.
  NativeFunction(const NativeLibrary &library, size_t inputs, size_t results,
                 std::atomic<uint64_t> &calls);
  ~NativeFunction();

  /// Runs the native code. An input with the wrong strides is copied first.
  /// Throws std::invalid_argument if an input has the wrong type or shape, and
  /// std::runtime_error if the code fails.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;

private:
  const NativeLibrary &library;
  std::atomic<uint64_t> &calls;
  std::unique_ptr<torch::inductor::AOTIModelContainerRunner> runner;
};

/// The native code of a program's model.
class NativeCode {
public:
  /// Reads all archives from `folder`. Requires a program with a checked
  /// package. Throws std::invalid_argument if the package has no native code,
  /// if it was exported with another version of PyTorch than this LibTorch, if
  /// a file is missing or its digest differs, or if the code needs processor
  /// features that this processor does not have.
  NativeCode(const program::ProgramT &program, const std::string &folder);

  /// The native code of a subgraph for `samples` samples (see Layer.cpp for the
  /// names). Null if there is no native code for the subgraph; the caller then
  /// interprets it. This object must outlive the result. Any thread may call
  /// this.
  std::unique_ptr<NativeFunction>
  loadFunction(const program::LayerGraphsT &graphs, uint32_t samples,
               const std::string &subgraph, size_t inputs,
               size_t results) const;

  /// The number of calls of all functions so far.
  uint64_t callCount() const { return count; }

private:
  void read(const std::string &digest, const std::string &folder);

  /// The libraries, by digest of the archive, then by name of the subgraph.
  std::map<std::string, std::map<std::string, NativeLibrary>> archives;
  mutable std::atomic<uint64_t> count = 0; ///< of calls
};

/// Makes a NativeCode, which throws the same errors.
std::shared_ptr<const NativeCode>
readNativeCode(const program::ProgramT &program, const std::string &folder);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_NATIVECODE_H
