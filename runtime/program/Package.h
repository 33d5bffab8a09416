//===- Package.h - A PyTorch model as layers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that read and check packages (package.fbs). A package is untrusted
// input. In a package that checkPackage accepts, graphs define each value
// before they use it, the index of every port exists, and sizes can be added
// without overflow.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
#define CHIMERA_RUNTIME_PROGRAM_PACKAGE_H

#include "runtime/program/package_generated.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chimera::program {

/// The version of the format that this code reads.
inline constexpr uint32_t kPackageVersion = 1;

/// The file that describes the model, in the folder of a package.
inline constexpr char kPackageFile[] = "model.json";

/// Returns the package in the folder `path`. Returns null, with the reason in
/// `error`, if `model.json` does not exist, has more than 256 MiB or is not
/// JSON of the schema, or if checkPackage refuses the package.
std::unique_ptr<PackageT> readPackage(const std::string &path,
                                      std::string &error);

/// Returns the package whose JSON is `text`. Returns null, with the reason in
/// `error`, if it is not JSON of the schema or if checkPackage refuses the
/// package.
std::unique_ptr<PackageT> parsePackage(const std::string &text,
                                       std::string &error);

/// Checks everything in a package except the operators of its graphs. Returns
/// an error text, or an empty text if no error was found.
std::string checkPackage(const PackageT &package);

/// The kind of layer `layer`. This function, and all functions below except
/// fileBytes, require a package that checkPackage accepts.
const LayerKindT &kindOf(const PackageT &package, uint32_t layer);

/// The graphs of a layer for `samples` samples. Null if the package has none.
const LayerGraphsT *graphsOf(const PackageT &package, uint32_t layer,
                             uint32_t samples);

/// The numbers of samples for which the package has graphs, as a text, for
/// example "8, 4".
std::string samplesOf(const PackageT &package);

/// The name of an enumerator in messages and dumps.
const char *nameOf(Role role);
const char *nameOf(TensorType type);
const char *nameOf(Initialization start);
const char *nameOf(Decay decay);

/// An upper bound on the bytes of the package in a program file. It is close to
/// the true value. Accepts packages that were not checked.
uint64_t fileBytes(const PackageT &package);

int64_t bytesOf(TensorType type);
/// The total bytes of the tensors, without padding; INT64_MAX if it overflows.
int64_t bytesOf(const std::vector<std::unique_ptr<TensorShapeT>> &tensors);
/// The number of elements of a tensor.
int64_t elementsOf(const std::vector<int64_t> &shape);

/// The bytes of the largest tensor among the parameters, constants, inputs,
/// labels, outputs and saved tensors of a layer. `bytesOfParameter` is the
/// number of bytes of one element of a parameter.
int64_t largestBytes(const LayerKindT &kind, const LayerGraphsT &graphs,
                     int64_t bytesOfParameter);

/// Whether the graph has an input with this role and index.
bool hasInput(const GraphT &graph, Role role, uint32_t index);

/// The number of terms of the model's loss, if each term is a sum over labels
/// that must be divided by a weight (LayerGraphs::weight in package.fbs). 0 if
/// the loss is a mean.
uint32_t lossTerms(const PackageT &package);

/// If the loss has several terms, the last label has this name. It has the
/// factor of each term.
inline constexpr char kLossScales[] = "loss_scales";
inline constexpr uint32_t kMaxLossTerms = 16;

/// The bytes that a forward keeps for the backward: its saved tensors, and the
/// inputs, labels and outputs that the backward uses. INT64_MAX if the sum
/// overflows.
int64_t stashBytes(const LayerGraphsT &graphs);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
