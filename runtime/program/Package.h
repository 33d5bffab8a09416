//===- Package.h - A PyTorch model as layers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What package.fbs says, read and checked. A package is input from elsewhere:
// whatever has passed checkPackage has graphs that define each value before it
// is used, ports that are there, and sizes that can be added up.
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

/// The format's version that this code reads.
inline constexpr uint32_t kPackageVersion = 1;

/// The file in a package's folder that describes the model.
inline constexpr char kPackageFile[] = "model.json";

/// The package in the folder `path`. Null, with the reason in `error`, where
/// there is none, its file is no JSON of the schema or has more than 256 MiB,
/// or checkPackage refuses it.
std::unique_ptr<PackageT> readPackage(const std::string &path,
                                      std::string &error);

/// The package that a description's `text` is. Null, with the reason in
/// `error`, as above.
std::unique_ptr<PackageT> parsePackage(const std::string &text,
                                       std::string &error);

/// Empty if the package can be run, as far as it can be said without knowing
/// its operators, else what is wrong with it.
std::string checkPackage(const PackageT &package);

/// The kind of layer `layer`. Requires a checked package, as all below do.
const LayerKindT &kindOf(const PackageT &package, uint32_t layer);

/// Its graphs for so many samples, null where there are none.
const LayerGraphsT *graphsOf(const PackageT &package, uint32_t layer,
                             uint32_t samples);

/// The numbers of samples for which there are graphs, as a sentence lists them.
std::string samplesOf(const PackageT &package);

/// The text of an enumerator as messages and dumps spell it.
const char *nameOf(Role role);
const char *nameOf(TensorType type);
const char *nameOf(Start start);
const char *nameOf(Decay decay);

/// About what the package takes in a file, no less. Any package will do.
uint64_t fileBytes(const PackageT &package);

int64_t bytesOf(TensorType type);
/// Of all of them, one behind another, or INT64_MAX where that does not fit.
int64_t bytesOf(const std::vector<std::unique_ptr<TensorShapeT>> &tensors);
/// Elements of a tensor.
int64_t elementsOf(const std::vector<int64_t> &shape);

/// Bytes of the largest of a layer's tensors: parameters, constants, those at
/// its boundaries and those that it saves.
int64_t largestBytes(const LayerKindT &kind, const LayerGraphsT &graphs,
                     int64_t bytesOfParameter);

/// Whether the graph takes value `index` of a role.
bool takes(const GraphT &graph, Role role, uint32_t index);

/// The terms of the model's loss that are sums, and labels weigh what they say:
/// 0 where the loss is a mean.
uint32_t lossTerms(const PackageT &package);

/// The name of the label that scales them where there are several.
inline constexpr char kLossScales[] = "loss_scales";
inline constexpr uint32_t kMostLossTerms = 16;

/// Bytes, or INT64_MAX, that a forward keeps for the backward: what it saves,
/// and those of its inputs, labels and outputs that the backward takes.
int64_t stashBytes(const LayerGraphsT &graphs);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PACKAGE_H
