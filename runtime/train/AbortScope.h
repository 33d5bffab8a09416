//===- AbortScope.h - Channels that abort with the run ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_ABORTSCOPE_H
#define CHIMERA_RUNTIME_TRAIN_ABORTSCOPE_H

#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

namespace chimera::runtime {

/// As long as this object lives, `channels` are aborted when `control` aborts.
class AbortScope {
public:
  AbortScope(Control &control, Channels &channels) : control(control) {
    control.onAbort(
        [&channels](const std::string &reason) { channels.abort(reason); });
  }
  ~AbortScope() {
    control.onAbort([](const std::string &) {});
  }

private:
  Control &control;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ABORTSCOPE_H
