//===- TransportAllReduce.cpp - MPI's own all-reduce ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/TransportAllReduce.h"

#include "runtime/device/Fold.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;
using namespace chimera::runtime::mpi;

namespace {
MPI_Datatype datatypeOf(ElementType type) {
  switch (type) {
  case ElementType::Float32:
    return MPI_FLOAT;
  case ElementType::Float64:
    return MPI_DOUBLE;
  case ElementType::BFloat16: // MPI has no such type
    return MPI_UINT16_T;
  case ElementType::UInt64:
    break;
  }
  return MPI_UINT64_T;
}

/// Adds numbers in bfloat16, two at a time (MPI_User_function).
void addBFloat16s(void *given, void *sum, int *count, MPI_Datatype *) {
  auto *to = static_cast<std::byte *>(sum);
  const std::byte *const both[] = {static_cast<const std::byte *>(given), to};
  fold(ElementType::BFloat16, both, to, 2 * static_cast<uint64_t>(*count));
}

MPI_Op operationOf(ElementType type) {
  if (type != ElementType::BFloat16)
    return MPI_SUM;
  static const MPI_Op add = [] {
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(addBFloat16s, /*commute=*/1, &made), "MPI_Op_create");
    return made;
  }();
  return add;
}
} // namespace

void TransportAllReduce::start() {
  ConstBytes own = given.front();
  if (given.size() > 1) {
    std::vector<const std::byte *> sources;
    for (ConstBytes contribution : given)
      sources.push_back(contribution.data());
    fold(type, sources, sum.data(), sum.size());
    own = sum;
  }

  auto startPiece = [&](const void *from, void *to, uint64_t count) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Iallreduce(from == to ? MPI_IN_PLACE : from, to,
                         static_cast<int>(count), datatypeOf(type),
                         operationOf(type), communicator, &requests.back()),
          "MPI_Iallreduce");
  };
  // Sum at most this number of elements in one call, because MPI counts
  // elements with an int.
  constexpr uint64_t kPiece = uint64_t(1) << 28;
  uint64_t elements = sum.size() / elementBytes(type);
  for (uint64_t at = 0; at < elements; at += kPiece)
    startPiece(own.data() + at * elementBytes(type),
               sum.data() + at * elementBytes(type),
               std::min(kPiece, elements - at));
  // An incomplete last integer is extended with zeros and summed as a whole
  // integer. The low bytes of the sum depend only on the low bytes of the
  // summands.
  tailBytes = sum.size() - elements * elementBytes(type);
  if (tailBytes == 0)
    return;
  tail = makeBlock(sizeof(uint64_t));
  std::memset(tail.get(), 0, sizeof(uint64_t));
  std::memcpy(tail.get(), own.last(tailBytes).data(), tailBytes);
  startPiece(tail.get(), tail.get(), 1);
}

TransportAllReduce::~TransportAllReduce() { abandon(requests, false); }

void TransportAllReduce::advance(bool) {
  if (!given.empty()) {
    start();
    given.clear();
  }
  if (finished || !test(requests))
    return;
  if (tailBytes)
    std::memcpy(sum.last(tailBytes).data(), tail.get(), tailBytes);
  finished = true;
}
