//===- ForwardingControl.h - A control that forwards to another -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_TRAIN_FORWARDINGCONTROL_H
#define CHIMERA_TEST_RUNTIME_TRAIN_FORWARDINGCONTROL_H

#include "runtime/control/Control.h"

namespace chimera::runtime::test {

/// Forwards every call to another control. A test overrides the calls that it
/// changes.
class ForwardingControl : public Control {
public:
  explicit ForwardingControl(Control &inner) : inner(inner) {}

  uint32_t rank() const override { return inner.rank(); }
  uint32_t ranks() const override { return inner.ranks(); }
  void send(uint32_t to, ConstBytes bytes,
            std::chrono::milliseconds timeout) override {
    inner.send(to, bytes, timeout);
  }
  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override {
    inner.receive(from, bytes, timeout);
  }
  void abort(const std::string &reason) override { inner.abort(reason); }
  void onAbort(std::function<void(const std::string &)> handler) override {
    inner.onAbort(std::move(handler));
  }

private:
  Control &inner;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_TRAIN_FORWARDINGCONTROL_H
