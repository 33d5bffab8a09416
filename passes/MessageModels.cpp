//===- MessageModels.cpp - An option that names a message model -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/MessageModels.h"

namespace chimera {

llvm::cl::ValuesClass messageModels() {
  using program::MessageModel;
  auto value = [](MessageModel model, const char *meaning) {
    return llvm::cl::OptionEnumValue{program::nameOf(model), int(model),
                                     meaning};
  };
  return llvm::cl::values(
      value(MessageModel::Rendezvous, "a send may wait for its receive"),
      value(MessageModel::Buffered, "a send waits for nothing"),
      value(MessageModel::StreamPerDirection,
            "as NCCL, with a communicator for each channel"),
      value(MessageModel::StreamPerPair,
            "as NCCL, with a communicator for each pair of workers"),
      value(MessageModel::StreamPerDevice,
            "as NCCL, with one order on each device for all communicators"));
}

} // namespace chimera
