//===- NormShare.h - Which squares a replica adds up ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The global norm of the gradients counts each parameter of the model once. All
// replicas of a stage have equal gradient sums, so each of them adds up the
// squares of an equal share of the elements. The first and the last stage both
// have the tied parameters, and the last stage leaves them out.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_NORMSHARE_H
#define CHIMERA_RUNTIME_INTERPRETER_NORMSHARE_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The part of `gradient`, the whole gradient sum of `stage`, that replica
/// number `replica` of `replicas` counts. Elements have type `type`. The last
/// element of integers may be incomplete. The parts of all replicas together
/// have each element once, except tied parameters of the last stage.
ConstBytes normShareOf(const program::ProgramT &program, uint32_t stage,
                       ElementType type, ConstBytes gradient,
                       uint64_t replica = 0, uint64_t replicas = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_NORMSHARE_H
