//===- Agreement.cpp - A check that all ranks run the same ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Agreement.h"

#include "runtime/control/Messages.h"

using namespace chimera::runtime;

void chimera::runtime::checkAgreement(
    Control &control, const std::vector<AgreedValue> &agreedValues,
    std::chrono::milliseconds timeout) {
  std::vector<uint64_t> own;
  for (const AgreedValue &entry : agreedValues)
    own.push_back(entry.value);
  if (control.rank() != 0) {
    sendLarge(control, 0, std::as_bytes(std::span(own)), timeout);
    return;
  }
  for (uint32_t rank = 1; rank < control.ranks(); ++rank) {
    std::vector<uint64_t> given(own.size());
    receiveLarge(control, rank, std::as_writable_bytes(std::span(given)),
                 timeout);
    for (size_t i = 0; i < own.size(); ++i)
      if (given[i] != own[i])
        throw std::runtime_error("expected the same " + agreedValues[i].name +
                                 " at every rank, but rank " +
                                 std::to_string(rank) +
                                 " has a different one than rank 0: give all "
                                 "ranks the same files and options");
  }
}

void chimera::runtime::throwFirstError(Control &control,
                                       const std::string &fault,
                                       std::chrono::milliseconds timeout) {
  if (control.rank() != 0) {
    sendValue<uint64_t>(control, 0, fault.size(), timeout);
    sendLarge(control, 0, std::as_bytes(std::span(fault)), timeout);
    return;
  }
  std::string first = fault;
  for (uint32_t rank = 1; rank < control.ranks(); ++rank) {
    std::string given(receiveValue<uint64_t>(control, rank, timeout), '\0');
    receiveLarge(control, rank, std::as_writable_bytes(std::span(given)),
                 timeout);
    if (first.empty())
      first = std::move(given);
  }
  if (!first.empty())
    throw std::runtime_error(first);
}
