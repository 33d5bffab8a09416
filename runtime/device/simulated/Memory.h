//===- Memory.h - Memory that the host cannot reach -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory of one simulated device. Its addresses are none that a processor
// accepts, so whoever follows one on the host faults at once. The bytes lie
// elsewhere, where only the simulation finds them. It remembers of every byte
// whether it was ever written, and by which operations it was last used.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H

#include "runtime/device/Device.h"
#include "runtime/device/simulated/Clock.h"

#include <map>

namespace chimera::runtime::simulated {

/// Which operation of which instruction.
struct Label {
  uint32_t rank = 0;
  uint64_t step = 0;
  uint32_t instruction = 0;
  const char *what = ""; ///< a literal: "the receive"
};

/// Two uses of the same memory of which at least one writes and neither
/// happened before the other, or a read of what nothing has written.
struct Violation {
  Label label;
  Access::Kind kind; ///< how the later one in time used the memory
  /// The earlier one; none if it reads what nothing has written.
  bool hasOther = false;
  Label other = {};
  bool otherWrites = false;
  uint64_t bytes = 0;
};

class Memory {
public:
  explicit Memory(uint32_t rank);

  /// Returns an address that is a multiple of `alignment`, and of nothing more
  /// than it has to be. What lies there is garbage.
  std::byte *allocate(uint64_t bytes, uint64_t alignment);
  void free(const std::byte *address);

  /// Where the bytes are. Throws std::logic_error unless they are all in memory
  /// that is allocated.
  std::byte *find(ConstBytes bytes);

  /// An operation, which knows `clock` and is the `stamp`, uses memory.
  void use(const Access &access, Stamp stamp, const Clock &clock,
           const Label &label, std::vector<Violation> &violations);
  /// Fills memory with garbage, as if nothing had written it.
  void poison(Bytes bytes);
  /// The bytes have been written by the operation that used them last.
  void setWritten(ConstBytes bytes);

private:
  struct Use {
    Stamp stamp;
    Label label;
  };
  /// Bytes that had the same uses.
  struct Cell {
    uint64_t end = 0;
    bool isWritten = false;
    std::vector<Use> writes; ///< one, or none
    std::vector<Use> reads;  ///< since, none before another
  };
  struct Allocation {
    uint64_t size;
    Block bytes;
    std::map<uint64_t, Cell> cells; ///< by their beginning; all bytes
  };

  Allocation &allocationOf(ConstBytes bytes, uint64_t &offset);
  template <typename Visit> void eachCell(ConstBytes bytes, Visit visit);

  const uint64_t base;
  uint64_t next = 0; ///< where the next allocation may begin
  std::map<uint64_t, Allocation> allocations; ///< by address less base
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H
