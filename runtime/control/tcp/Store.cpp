//===- Store.cpp - Entries in LibTorch's TCPStore -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/Meeting.h"

#include <cstdlib>
#include <stdexcept>
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
  // It warns of hosts without a name, which is no fault of the run.
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  // Others may ask it when this rank has gone on, to its end even.
  static c10::intrusive_ptr<c10d::TCPStore> store;
  auto keyOf = [&](uint32_t of) {
    return address.prefix + "chimera/" + std::to_string(of);
  };
  const std::string all = address.prefix + "chimera/all";
  try {
    store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    store->set(keyOf(rank), bytesOf(own));
  } catch (const std::exception &error) {
    throw std::runtime_error("cannot meet the other ranks at " + where + ": " +
                             firstLine(error.what()));
  }
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
