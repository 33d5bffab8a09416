//===- News.cpp - That a rank of an MPI job has failed --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/News.h"

#include "runtime/channel/mpi/Pace.h"
#include "runtime/channel/mpi/Turns.h"
#include "runtime/system/Utf8.h"
#include "runtime/system/WaitError.h"

#include <cstring>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::mpi;

News::News() {
  auto turn = enter();
  communicator = duplicateWorld();
  std::memset(heard.get(), 0, kBytes);
  check(MPI_Irecv(heard.get(), kBytes - 1, MPI_BYTE, MPI_ANY_SOURCE, 0,
                  communicator, &hearing),
        "MPI_Irecv");
}

News::~News() {
  auto turn = enter();
  std::vector<MPI_Request> last{hearing};
  abandon(last, true);
  abandon(tellings, false);
  // Freeing is collective; after an abort the others may not come.
  if (!isAborted)
    MPI_Comm_free(&communicator);
}

void News::abort(const std::string &text) {
  {
    std::lock_guard lock(mutex);
    if (!isAborted.load()) {
      reason = text;
      isAborted.store(true);
    }
  }
  if (std::this_thread::get_id() != owner)
    return;
  auto turn = enter();
  tellOthers();
}

/// In turn.
void News::tellOthers() {
  if (std::exchange(told, true))
    return;
  telling = makeBlock(kBytes);
  uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex);
    bytes = beginningWithin(reason, kBytes - 1);
    std::memcpy(telling.get(), reason.data(), bytes);
  }
  int self = 0, ranks = 0;
  MPI_Comm_rank(communicator, &self);
  MPI_Comm_size(communicator, &ranks);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != self)
      send({telling.get(), bytes}, static_cast<uint32_t>(peer), 0, communicator,
           tellings);
  Pace pace;
  for (int turn = 0; turn < 100 && !test(tellings); ++turn)
    pace.pause();
}

void News::throwIfAborted() {
  auto turn = enter();
  if (!isAborted.load()) {
    int flag = 0;
    MPI_Status status;
    check(MPI_Test(&hearing, &flag, &status), "MPI_Test");
    if (!flag)
      return;
    std::lock_guard lock(mutex);
    if (!isAborted.load())
      reason = reinterpret_cast<const char *>(heard.get());
    told = true; // whoever told this rank has told the others
    isAborted.store(true);
  }
  tellOthers();
  std::lock_guard lock(mutex);
  throw WaitError(WaitError::Reason::Aborted, "aborted: " + reason);
}
