//===- RecordedGraphs.h - Graphs of a software GPU --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_RECORDEDGRAPHS_H
#define CHIMERA_TEST_RUNTIME_CUDA_RECORDEDGRAPHS_H

#include "runtime/model/GraphFactory.h"

namespace chimera::runtime::test {

/// Makes graphs of LibTorch's operations on host tensors. A graph is the list
/// of the operators that were called during its capture, with their tensors. As
/// in a graph of a GPU, all memory stays where it was, and a launch calls the
/// operators on this memory again. But a capture also executes the operators,
/// so the first launch of a graph does nothing.
std::shared_ptr<GraphFactory> makeRecordedGraphs();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_RECORDEDGRAPHS_H
