//===- AutogradNode.h - Custom nodes in autograd's graph --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_AUTOGRADNODE_H
#define CHIMERA_RUNTIME_MODEL_GPT2_AUTOGRADNODE_H

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <type_traits>

namespace chimera::runtime {

/// A shared pointer to the node `made`. The pointer's type depends on
/// LibTorch's version: std::shared_ptr or (since 2.15) c10::intrusive_ptr.
template <typename Shared, typename Node>
Shared shareNode(std::unique_ptr<Node> made) {
  // deleteNode avoids the node's own destructor, which would recurse through
  // the graph.
  if constexpr (std::is_constructible_v<Shared, std::shared_ptr<Node>>)
    return Shared(made.release(), [](Node *node) { deleteNode(node); });
  else
    return Shared(std::move(made));
}

/// Makes `result` the output of the node `made`, whose inputs are `from`.
inline void setNode(const at::Tensor &result, torch::autograd::edge_list from,
                    std::unique_ptr<torch::autograd::Node> made) {
  using Shared = std::remove_cvref_t<decltype(result.grad_fn())>;
  auto node = shareNode<Shared>(std::move(made));
  node->set_next_edges(std::move(from));
  torch::autograd::set_history(result, node);
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_AUTOGRADNODE_H
