//===- OwnNode.h - Nodes of our own in a graph of autograd ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_OWNNODE_H
#define CHIMERA_RUNTIME_STAGE_TORCH_OWNNODE_H

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>

namespace chimera::runtime {

/// Has autograd take `result` for the output of `made`, a node with inputs
/// `from`.
inline void setNode(const at::Tensor &result, torch::autograd::edge_list from,
                    std::unique_ptr<torch::autograd::Node> made) {
  // Not deleted by its own destructor, which would recurse through the graph.
  std::shared_ptr<torch::autograd::Node> node(made.release(),
                                              torch::autograd::deleteNode);
  node->set_next_edges(std::move(from));
  torch::autograd::set_history(result, node);
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_OWNNODE_H
