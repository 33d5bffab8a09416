//===- Store.cpp - Entries in LibTorch's TCPStore -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/Meeting.h"

#include "runtime/system/Deadline.h"
#include "runtime/system/Socket.h"

#include <algorithm>
#include <c10/util/Logging.h>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

using namespace chimera::runtime;

namespace {
std::vector<uint8_t> bytesOf(const std::string &text) {
  return {text.begin(), text.end()};
}

/// All entries, one behind the other: each ends its line.
std::vector<std::string> linesOf(const std::vector<uint8_t> &bytes) {
  std::vector<std::string> lines(1);
  for (uint8_t byte : bytes) {
    lines.back() += static_cast<char>(byte);
    if (byte == '\n')
      lines.emplace_back();
  }
  lines.pop_back();
  return lines;
}

/// The store's own wait says less of what is wrong, and later than it was told.
void awaitListener(const StoreAddress &address,
                   std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kTry(1000), kPause(100);
  Deadline deadline(timeout);
  for (;;)
    try {
      connectTo(address.host, address.port, std::min(timeout, kTry));
      return;
    } catch (const std::runtime_error &) {
      if (deadline.passed())
        throw;
      std::this_thread::sleep_for(kPause);
    }
}

std::string firstLine(const char *text) {
  std::string all = text;
  return all.substr(0, all.find('\n'));
}
} // namespace

std::vector<std::string>
chimera::runtime::exchangeAtStore(const StoreAddress &address, uint32_t rank,
                                  uint32_t ranks, const std::string &own,
                                  std::chrono::milliseconds timeout) {
  std::string where = address.host + " port " + std::to_string(address.port);
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = rank == 0 && !address.isServed;
  options.waitWorkers = false;
  options.timeout = timeout;
  // It warns of hosts without a name, and of strangers, which is no fault of
  // the run; what fails is told below.
  static std::once_flag silenced;
  std::call_once(silenced, [] {
    if (!std::getenv("TORCH_CPP_LOG_LEVEL"))
      FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  });
  c10::intrusive_ptr<c10d::TCPStore> store;
  auto keyOf = [&](uint32_t of) {
    return address.prefix + "chimera/" + std::to_string(of);
  };
  const std::string all = address.prefix + "chimera/all";
  bool isFirst = false;
  try {
    if (!options.isServer)
      awaitListener(address, timeout);
    store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    // Others may ask it when this rank has gone on, to its end even.
    static c10::intrusive_ptr<c10d::TCPStore> served;
    if (options.isServer)
      served = store;
    isFirst = store->compareSet(keyOf(rank), {}, bytesOf(own)) == bytesOf(own);
  } catch (const std::exception &error) {
    throw std::runtime_error("cannot meet the other ranks at " + where + ": " +
                             firstLine(error.what()));
  }
  if (!isFirst)
    throw std::runtime_error(
        "expected to be the only rank " + std::to_string(rank) + " at " +
        where +
        ", where another process is: was it started twice, or does "
        "another run meet there?");
  if (rank != 0)
    try {
      return linesOf(store->get(all));
    } catch (const std::exception &error) {
      throw std::runtime_error("rank 0 did not say where the other ranks are, "
                               "at " +
                               where + ": " + firstLine(error.what()));
    }
  std::vector<std::string> entries;
  std::string missing;
  for (uint32_t other = 0; other < ranks; ++other)
    try {
      if (missing.empty())
        store->wait({keyOf(other)}, timeout);
      else if (!store->check({keyOf(other)}))
        throw std::runtime_error("missing");
      std::vector<uint8_t> bytes = store->get(keyOf(other));
      entries.emplace_back(bytes.begin(), bytes.end());
    } catch (const std::exception &) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(other);
    }
  if (!missing.empty())
    throw std::runtime_error("these ranks did not come to " + where + ": " +
                             missing);
  std::string joined;
  for (const std::string &entry : entries)
    joined += entry;
  store->set(all, bytesOf(joined));
  return entries;
}
