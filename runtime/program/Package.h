//===- Package.h - A model as layers ----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that read and check packages (package.fbs). A package is untrusted
// input. In a package that checkPackage accepts, graphs define each value
// before they use it, the index of every port exists, and no integer of a graph
// overflows for 1 to kMaxSamples samples. In a package that checkSamples
// accepts for a number of samples, sizes can be added without overflow for this
// number and all smaller ones.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
#define CHIMERA_RUNTIME_PROGRAM_PACKAGE_H

#include "runtime/program/package_generated.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace chimera::program {

/// The version of the format that this code reads.
inline constexpr uint32_t kPackageVersion = 3;

/// The maximum number of samples of a micro-batch.
inline constexpr uint32_t kMaxSamples = 1 << 20;

/// The file that describes the model, in the folder of a package.
inline constexpr char kPackageFile[] = "model.json";

/// Returns the package in the folder `path` that computes in `type`, or the
/// first one if there is no `type`. Returns null, with the reason in `error`,
/// if `model.json` does not exist, has more than 256 MiB or is not JSON of the
/// schema, if no package computes in `type`, or if checkPackage refuses one of
/// the packages.
std::unique_ptr<PackageT> readPackage(const std::string &path,
                                      std::optional<DataType> type,
                                      std::string &error);

/// Like readPackage, for the text of `model.json`.
std::unique_ptr<PackageT> parsePackage(const std::string &text,
                                       std::optional<DataType> type,
                                       std::string &error);

/// Checks everything in a package except the operators of its graphs. Returns
/// an error text, or an empty text if no error was found.
std::string checkPackage(const PackageT &package);

/// Checks whether the tensors of a package are small enough for `samples`
/// samples, and all smaller numbers of them. Returns an error text, or an empty
/// text if they are. This function, and all functions below except fileBytes,
/// require a package that checkPackage accepts.
std::string checkSamples(const PackageT &package, uint32_t samples);

/// The kind of layer `layer`, and the graphs of that kind.
const LayerKindT &kindOf(const PackageT &package, uint32_t layer);
const LayerGraphsT &graphsOf(const PackageT &package, uint32_t layer);

/// The name of an enumerator in messages and dumps.
const char *nameOf(Role role);
const char *nameOf(TensorType type);
const char *nameOf(Initialization start);
const char *nameOf(Decay decay);

/// An upper bound on the bytes of the package in a program file. It is close to
/// the true value. Accepts packages that were not checked.
uint64_t fileBytes(const PackageT &package);

/// The numbers constants[i] + perSample[i] * samples. `perSample` may be empty,
/// which means zeros.
std::vector<int64_t> valuesFor(const std::vector<int64_t> &constants,
                               const std::vector<int64_t> &perSample,
                               uint32_t samples);
std::vector<int64_t> shapeFor(const TensorShapeT &tensor, uint32_t samples);
/// INT64_MAX if the number is larger.
int64_t operationsFor(const Operations &operations, uint32_t samples);

int64_t bytesOf(TensorType type);
/// The number of elements of a tensor; INT64_MAX if it overflows.
int64_t elementsOf(const std::vector<int64_t> &shape);
/// The bytes of one tensor, and the total bytes of several tensors without
/// padding; INT64_MAX if they overflow.
int64_t bytesOf(const TensorShapeT &tensor, uint32_t samples);
int64_t bytesOf(const std::vector<std::unique_ptr<TensorShapeT>> &tensors,
                uint32_t samples);

/// The bytes of the largest tensor among the parameters, constants, inputs,
/// labels, outputs, saved tensors and logits of a layer. `bytesOfParameter` is
/// the number of bytes of one element of a parameter.
int64_t largestBytes(const LayerKindT &kind, uint32_t samples,
                     int64_t bytesOfParameter);

/// The roles of the ports of a graph, each with its index.
using PortRoles = std::set<std::pair<Role, uint32_t>>;
PortRoles rolesOf(const std::vector<Port> &ports);

/// Whether the graph has an input with this role and index.
bool hasInput(const GraphT &graph, Role role, uint32_t index);

/// Whether an attention of the package drops probabilities.
bool attentionDrops(const PackageT &package);

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
int64_t stashBytes(const LayerGraphsT &graphs, uint32_t samples);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
