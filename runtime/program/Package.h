//===- Package.h - A PyTorch model as layers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and checking of packages (package.fbs). A package is untrusted input.
// In a package that checkPackage accepts, graphs define each value before it is
// used, every port refers to something that exists, and sizes can be added
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

/// The file in a package's folder that describes the model.
inline constexpr char kPackageFile[] = "model.json";

/// Returns the package in the folder `path`. Returns null, with the reason in
/// `error`, if the file does not exist, has more than 256 MiB or is not JSON of
/// the schema, or if checkPackage refuses the package.
std::unique_ptr<PackageT> readPackage(const std::string &path,
                                      std::string &error);

/// Returns the package whose JSON is `text`. Returns null, with the reason in
/// `error`, if it is not JSON of the schema or if checkPackage refuses the
/// package.
std::unique_ptr<PackageT> parsePackage(const std::string &text,
                                       std::string &error);

/// Returns what is wrong with the package; empty if it can run, as far as this
/// can be decided without knowledge of its operators.
std::string checkPackage(const PackageT &package);

/// The kind of layer `layer`. Requires a checked package, as all functions
/// below do unless they say otherwise.
const LayerKindT &kindOf(const PackageT &package, uint32_t layer);

/// The graphs of a layer for a number of samples; null if there are none.
const LayerGraphsT *graphsOf(const PackageT &package, uint32_t layer,
                             uint32_t samples);

/// The numbers of samples for which there are graphs, as a list for messages.
std::string samplesOf(const PackageT &package);

/// The name of an enumerator in messages and dumps.
const char *nameOf(Role role);
const char *nameOf(TensorType type);
const char *nameOf(Start start);
const char *nameOf(Decay decay);

/// An upper bound, close to the true value, on the bytes of the package in a
/// file. Accepts unchecked packages.
uint64_t fileBytes(const PackageT &package);

int64_t bytesOf(TensorType type);
/// The total bytes of the tensors, without padding; INT64_MAX if it overflows.
int64_t bytesOf(const std::vector<std::unique_ptr<TensorShapeT>> &tensors);
/// The number of elements of a tensor.
int64_t elementsOf(const std::vector<int64_t> &shape);

/// Bytes of the largest of a layer's tensors: parameters, constants, inputs,
/// labels, outputs and saved tensors.
int64_t largestBytes(const LayerKindT &kind, const LayerGraphsT &graphs,
                     int64_t bytesOfParameter);

/// Whether value `index` of a role is an input of the graph.
bool takes(const GraphT &graph, Role role, uint32_t index);

/// The number of terms of the model's loss that are sums, and whose weights
/// depend on the labels; 0 if the loss is a mean.
uint32_t lossTerms(const PackageT &package);

/// The name of the label that scales the terms of a loss that has several.
inline constexpr char kLossScales[] = "loss_scales";
inline constexpr uint32_t kMaxLossTerms = 16;

/// Bytes that a forward keeps for the backward: its saved tensors, and those of
/// its inputs, labels and outputs that the backward uses. INT64_MAX if it
/// overflows.
int64_t stashBytes(const LayerGraphsT &graphs);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
