//===- Reduce.h - Reduction of failing modules ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_REDUCE_H
#define CHIMERA_COMPILER_REDUCE_H

namespace chimera {

/// Registers the pass `chimera-reduce`, which makes a module as small as
/// possible while a test script still fails on it.
void registerReducePass();

} // namespace chimera

#endif // CHIMERA_COMPILER_REDUCE_H
