//===- SamplePackages.h - Exported models made by hand ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H

#include "runtime/program/Package.h"
#include "runtime/program/Program.h"

namespace chimera::program {

/// Three layers for 4 samples of 2 tokens, and for 2 samples, in float64:
///
///   layer 0   x = embedding of the tokens        weight [5, 3]
///   layer 1   y = x * scale                      scale [3]
///   layer 2   loss = the sum of y * factors      factors [3], labels unused
///
/// Layers 1 and 2 save their inputs. Both input gradients are products with the
/// parameters.
std::unique_ptr<PackageT> samplePackage();

/// The same package, in which the weight of a micro-batch is the sum of its
/// labels.
std::unique_ptr<PackageT> weighedPackage();

/// The same package with a second loss term. The first term's weight is the
/// number of labels, the second's their sum. The loss does not use its scales.
std::unique_ptr<PackageT> packageOfTwoTerms();

/// A model that is the first package.
ModelT exportedModel();

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H
