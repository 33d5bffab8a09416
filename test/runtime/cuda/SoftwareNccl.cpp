//===- SoftwareNccl.cpp - NCCL without a GPU ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks are in this process. Operations meet when they are launched: the
// k-th send of a rank to another with the k-th receive there, the k-th
// collective of each rank with those of the others. On their streams they come
// together; the last one to come moves the bytes.
//
// A communicator that does not block launches some of its groups only while
// ncclCommGetAsyncError is called.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Fold.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// Whether a rank's communicator is well, for threads of streams: they have
/// these as plain pointers, for the reason that SoftwareGpu.cpp gives.
struct Health {
  std::atomic<bool> isAborted{false};
  std::mutex mutex = {}; ///< guards these
  ncclResult_t error = ncclSuccess;
  std::string text = {};

  void fail(ncclResult_t result, const std::string &why) {
    std::lock_guard lock(mutex);
    if (error == ncclSuccess) {
      error = result;
      text = why;
    }
  }
};

/// Waits for a signal; false where the communicator is aborted before.
bool await(const Signal &signal, const Health &health) {
  while (!signal.waitFor(std::chrono::milliseconds(2)))
    if (health.isAborted.load(std::memory_order_relaxed) || hasFailed())
      return false;
  return true;
}

/// A rank's part of an operation.
struct Part {
  const char *name; ///< of the function; a send's and a receive's are the same
  const std::byte *source;
  std::byte *target;
  size_t count;
  ncclDataType_t type;
  int root;
  Health *health;
};

size_t bytesOf(ncclDataType_t type) {
  constexpr size_t kBytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}
size_t bytesOf(const Part &part) { return part.count * bytesOf(part.type); }

std::optional<ElementType> elementType(ncclDataType_t type) {
  return type == ncclFloat32   ? std::optional(ElementType::Float32)
         : type == ncclFloat64 ? std::optional(ElementType::Float64)
         : type == ncclUint64  ? std::optional(ElementType::UInt64)
                               : std::nullopt;
}

/// An operation of several ranks. Of a message the sender's part is first.
class Meeting {
public:
  explicit Meeting(size_t size) : parts(size) {}

  std::vector<Part> parts; ///< each is written before it is launched
  Signal done;

  void arrive() {
    {
      std::lock_guard lock(mutex);
      if (++arrived < parts.size() || isCancelled)
        return;
      moves = true;
    }
    move();
    done.raise();
  }
  /// Nobody moves anything any more, unless it is done or being done.
  void leave() {
    {
      std::lock_guard lock(mutex);
      if (!moves) {
        isCancelled = true;
        return;
      }
    }
    done.wait();
  }

private:
  void move();

  std::mutex mutex; ///< guards these
  size_t arrived = 0;
  bool isCancelled = false, moves = false;
};

void copyBytes(const std::byte *from, std::byte *to, size_t bytes) {
  if (from != to && bytes > 0)
    std::memcpy(to, from, bytes);
}

void Meeting::move() {
  const Part &first = parts.front();
  const size_t bytes = bytesOf(first);
  const std::string name = first.name;
  for (const Part &part : parts)
    if (part.name != name || bytesOf(part) != bytes ||
        part.root != first.root) {
      for (const Part &each : parts)
        each.health->fail(ncclInvalidUsage,
                          text("ranks disagree: ", first.name, " of ", bytes,
                               " bytes and ", part.name, " of ", bytesOf(part),
                               " bytes"));
      return;
    }
  if (name == "message") {
    copyBytes(first.source, parts[1].target, bytes);
  } else if (name == "ncclBroadcast") {
    for (const Part &part : parts)
      copyBytes(parts[static_cast<size_t>(first.root)].source, part.target,
                bytes);
  } else if (name == "ncclAllGather") {
    for (const Part &part : parts)
      for (size_t rank = 0; rank < parts.size(); ++rank)
        copyBytes(parts[rank].source, part.target + rank * bytes, bytes);
  } else {
    std::vector<const std::byte *> contributions;
    for (const Part &part : parts)
      contributions.push_back(part.source);
    std::vector<std::byte> sum(bytes);
    fold(*elementType(first.type), contributions, sum.data(), bytes);
    for (const Part &part : parts)
      copyBytes(sum.data(), part.target, bytes);
  }
}

struct Member;

/// A call of ncclCommSplit by all ranks of a communicator.
struct Split {
  struct Wish {
    int color, key, rank, device;
    bool blocks;
  };
  std::vector<Wish> wishes;
  std::vector<std::shared_ptr<Member>> made; ///< by the old rank, once all came
};

/// What is the same of a communicator at all ranks.
struct Clique {
  explicit Clique(int ranks)
      : devices(static_cast<size_t>(ranks), kAbsent), missing(ranks) {}
  static constexpr int kAbsent = -1;

  int ranks() const { return static_cast<int>(devices.size()); }

  std::mutex mutex; ///< guards the rest
  std::condition_variable changed;
  std::vector<int> devices;
  int missing; ///< ranks that have not come
  std::string refusal = {};
  int finalized = 0;
  /// Messages of which one end has been launched, by sender and receiver.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Meeting>>> halves;
  /// Collectives that so many ranks have launched.
  std::map<uint64_t, std::pair<int, std::shared_ptr<Meeting>>> collectives;
  std::map<uint64_t, std::shared_ptr<Split>> splits;
};

struct Request {
  Part part;
  bool isMessage, isSend;
  int peer;
  cudaStream_t stream;
};

/// A communicator of one rank.
struct Member {
  std::shared_ptr<Clique> clique;
  int rank, device;
  bool blocks;
  Health *health;
  uint32_t number = 0;

  std::mutex mutex = {}; ///< guards the rest
  uint64_t collectives = 0, splits = 0, launches = 0;
  std::shared_ptr<Signal> ended = nullptr; ///< of the last operation
  std::vector<Request> pending = {};
  int looks = 0; ///< after which they are launched
  std::shared_ptr<Split> split = nullptr;
  ncclComm_t *splitTo = nullptr;
  bool isFinal = false;
};

struct Registry {
  std::mutex mutex; ///< guards the rest
  std::map<ncclComm_t, std::shared_ptr<Member>> members;
  std::deque<Health> healths;
  std::map<std::string, std::shared_ptr<Clique>> beginnings; ///< by unique id
  uint64_t ids = 0;
  std::string lastError;
};
Registry &registry() {
  static Registry *all = new Registry;
  return *all;
}

/// What this thread calls between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<std::shared_ptr<Member>, std::vector<Request>>> all;
  std::vector<std::shared_ptr<Member>> aborted;
};
thread_local Group group;

ncclResult_t refuse(ncclResult_t result, const std::string &why) {
  std::lock_guard lock(registry().mutex);
  registry().lastError = why;
  return result;
}

std::shared_ptr<Member> find(ncclComm_t handle) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().members.find(handle);
  return found == registry().members.end() ? nullptr : found->second;
}
std::string nameOf(ncclComm_t handle) {
  std::shared_ptr<Member> member = find(handle);
  return member ? text("comm ", member->number) : "comm ?";
}

std::shared_ptr<Member> makeMember(std::shared_ptr<Clique> clique, int rank,
                                   int device, bool blocks) {
  std::lock_guard lock(registry().mutex);
  Health *health = &registry().healths.emplace_back();
  return std::shared_ptr<Member>(
      new Member{std::move(clique), rank, device, blocks, health});
}

ncclComm_t adopt(const std::shared_ptr<Member> &member) {
  if (!member)
    return nullptr;
  if (member->number == 0)
    member->number = newNumber("comm");
  auto handle = reinterpret_cast<ncclComm_t>(member.get());
  std::lock_guard lock(registry().mutex);
  registry().members[handle] = member;
  return handle;
}
void drop(ncclComm_t handle) {
  std::lock_guard lock(registry().mutex);
  registry().members.erase(handle);
}

/// The operation of which a rank launches its part.
std::shared_ptr<Meeting> meet(Clique &clique, Member &member,
                              const Request &request) {
  std::lock_guard lock(clique.mutex);
  std::shared_ptr<Meeting> meeting;
  if (request.isMessage) {
    const size_t end = request.isSend ? 0 : 1;
    auto &halves =
        clique.halves[request.isSend ? std::pair(member.rank, request.peer)
                                     : std::pair(request.peer, member.rank)];
    if (halves.empty() || halves.front()->parts[end].name) {
      meeting = std::make_shared<Meeting>(2);
      halves.push_back(meeting);
    } else {
      meeting = std::move(halves.front());
      halves.pop_front();
    }
    meeting->parts[end] = request.part;
    return meeting;
  }
  const uint64_t index = member.collectives++;
  auto &[launched, collective] = clique.collectives[index];
  if (!collective)
    collective = std::make_shared<Meeting>(clique.devices.size());
  meeting = collective;
  meeting->parts[static_cast<size_t>(member.rank)] = request.part;
  if (++launched == clique.ranks())
    clique.collectives.erase(index);
  return meeting;
}

/// Puts requests on their streams as one operation. Called locked.
void launch(Member &member, const std::vector<Request> &requests) {
  std::vector<std::shared_ptr<Meeting>> meetings;
  std::vector<cudaStream_t> streams;
  for (const Request &request : requests) {
    meetings.push_back(meet(*member.clique, member, request));
    if (!std::ranges::count(streams, request.stream))
      streams.push_back(request.stream);
  }
  // The operation is on the first of its streams, the others wait for it.
  auto ended = std::make_shared<Signal>();
  std::vector<std::shared_ptr<Signal>> before;
  if (std::shared_ptr<Signal> last = std::exchange(member.ended, ended))
    before.push_back(std::move(last));
  Health *health = member.health;
  for (size_t i = 1; i < streams.size(); ++i) {
    auto begun = std::make_shared<Signal>();
    before.push_back(begun);
    putOn(streams[i], [health, begun = std::move(begun), ended] {
      begun->raise();
      await(*ended, *health);
    });
  }
  putOn(streams.front(),
        [health, meetings = std::move(meetings), before = std::move(before),
         ended = std::move(ended)] {
          bool isWell = std::ranges::all_of(
              before, [&](auto &signal) { return await(*signal, *health); });
          if (isWell) {
            for (const std::shared_ptr<Meeting> &meeting : meetings)
              meeting->arrive();
            for (const std::shared_ptr<Meeting> &meeting : meetings)
              if (!await(meeting->done, *health))
                meeting->leave();
          }
          ended->raise();
        });
}

/// What ncclCommGetAsyncError says; only its look changes anything.
ncclResult_t stateOf(Member &member, bool isLook) {
  {
    std::lock_guard lock(member.health->mutex);
    if (member.health->error)
      return member.health->error;
  }
  std::lock_guard lock(member.mutex);
  {
    std::lock_guard cliqueLock(member.clique->mutex);
    if (member.clique->missing > 0)
      return ncclInProgress;
    if (!member.clique->refusal.empty())
      return ncclInvalidUsage;
    if (member.split) {
      if (!isLook || member.split->made.empty())
        return ncclInProgress;
      *member.splitTo =
          adopt(member.split->made[static_cast<size_t>(member.rank)]);
      member.split = nullptr;
    }
    if (member.isFinal && (member.clique->finalized < member.clique->ranks() ||
                           (member.ended && !member.ended->reached())))
      return ncclInProgress;
  }
  if (!member.pending.empty()) {
    if (!isLook || --member.looks > 0)
      return ncclInProgress;
    launch(member, std::exchange(member.pending, {}));
  }
  return ncclSuccess;
}

/// Finds a communicator that can be used.
ncclResult_t use(ncclComm_t handle, std::shared_ptr<Member> &member) {
  member = find(handle);
  if (!member)
    return refuse(ncclInvalidArgument, "no such communicator");
  ncclResult_t state = stateOf(*member, false);
  if (state == ncclInProgress)
    return refuse(ncclInvalidArgument,
                  "Attempt to use communicator before the previous operation "
                  "returned ncclSuccess");
  if (!state && hasFailed())
    return refuse(ncclUnhandledCudaError, "CUDA has failed");
  return state;
}

template <typename Detail, typename Body>
ncclResult_t call(const char *name, const Detail &detail, const Body &body) {
  if (int error = beginCall(name, detail))
    return refuse(static_cast<ncclResult_t>(error), "this is a test");
  if (inHostFunction())
    return refuse(ncclInvalidUsage, "called from a stream");
  return body();
}

/// As NCCL does, whose aborted communicators free memory of the GPU: that waits
/// for all that is under way there and on the GPUs of the other ranks, of other
/// communicators too.
void freeAborted() {
  for (const std::shared_ptr<Member> &aborted :
       std::exchange(group.aborted, {})) {
    std::vector<std::shared_ptr<Member>> neighbours;
    {
      std::lock_guard lock(registry().mutex);
      for (const auto &[handle, member] : registry().members)
        if (std::ranges::count(aborted->clique->devices, member->device))
          neighbours.push_back(member);
    }
    for (const std::shared_ptr<Member> &member : neighbours) {
      std::shared_ptr<Signal> last;
      {
        std::lock_guard lock(member->mutex);
        last = member->ended;
      }
      while (last && !last->waitFor(std::chrono::milliseconds(2)))
        ;
    }
    drop(reinterpret_cast<ncclComm_t>(aborted.get()));
  }
}

/// Launches what this thread's group has.
ncclResult_t endGroup() {
  freeAborted();
  auto all = std::exchange(group.all, {});
  if (ncclResult_t error = std::exchange(group.error, ncclSuccess))
    return error;
  ncclResult_t result = ncclSuccess;
  for (auto &[member, requests] : all) {
    std::lock_guard lock(member->mutex);
    member->looks =
        member->blocks ? 0 : static_cast<int>((2 + member->launches++) % 3);
    if (member->looks == 0) {
      launch(*member, requests);
    } else {
      member->pending = std::move(requests);
      result = ncclInProgress;
    }
  }
  return result;
}

ncclResult_t check(const Member &member, const Request &request) {
  const Part &part = request.part;
  if (part.type < 0 || part.type >= ncclNumTypes)
    return refuse(ncclInvalidArgument, "unknown type");
  if (member.isFinal)
    return refuse(ncclInvalidArgument, "the communicator has been finalized");
  const int other = request.isMessage ? request.peer : part.root;
  if (other < 0 || other >= member.clique->ranks())
    return refuse(ncclInvalidArgument, text("no such rank: ", other));
  if (request.isMessage && other == member.rank && group.depth == 0)
    return refuse(ncclInvalidUsage, "a message to itself without a group");
  if (!request.stream || deviceOf(request.stream) != member.device)
    return refuse(ncclUnhandledCudaError,
                  "no stream of the communicator's device");
  const size_t bytes = bytesOf(part);
  const bool isGather = part.name == std::string("ncclAllGather");
  const auto ranks = static_cast<size_t>(member.clique->ranks());
  if (bytes > 0 &&
      ((part.source && !isInReach(member.device, part.source, bytes)) ||
       (part.target && !isInReach(member.device, part.target,
                                  isGather ? ranks * bytes : bytes)) ||
       (!part.source && !part.target)))
    return refuse(ncclInvalidArgument, "no memory of the device");
  return ncclSuccess;
}

/// Makes a request part of this thread's group, or launches it.
ncclResult_t post(ncclComm_t handle, Request request) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    error = check(*member, request);
  if (error) {
    group.error = group.depth > 0 ? error : ncclSuccess;
    return error;
  }
  request.part.health = member->health;
  auto found = std::ranges::find(group.all, member,
                                 [](const auto &entry) { return entry.first; });
  if (found == group.all.end())
    found = group.all.insert(found, {member, {}});
  found->second.push_back(request);
  return group.depth > 0 ? ncclSuccess : endGroup();
}

bool isValid(const ncclConfig_t *config) {
  return !config ||
         (config->magic == 0xcafebeef && config->size == sizeof *config &&
          (config->blocking == 0 || config->blocking == 1 ||
           config->blocking == NCCL_CONFIG_UNDEF_INT));
}

/// Makes the communicators once all ranks have said which they want.
void finish(Split &split) {
  auto &wishes = split.wishes;
  std::ranges::sort(wishes, {}, [](const Split::Wish &wish) {
    return std::tuple(wish.color, wish.key, wish.rank);
  });
  split.made.resize(wishes.size());
  for (size_t begin = 0, end; begin < wishes.size(); begin = end) {
    for (end = begin; end < wishes.size(); ++end)
      if (wishes[end].color != wishes[begin].color)
        break;
    if (wishes[begin].color == NCCL_SPLIT_NOCOLOR)
      continue;
    auto clique = std::make_shared<Clique>(static_cast<int>(end - begin));
    clique->missing = 0;
    for (size_t i = begin; i < end; ++i) {
      clique->devices[i - begin] = wishes[i].device;
      split.made[static_cast<size_t>(wishes[i].rank)] =
          makeMember(clique, static_cast<int>(i - begin), wishes[i].device,
                     wishes[i].blocks);
    }
  }
}

ncclResult_t initialize(ncclComm_t *made, int ranks, const ncclUniqueId &id,
                        int rank, const ncclConfig_t *config) {
  *made = nullptr;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, "no device");
  if (ranks < 1 || rank < 0 || rank >= ranks || !isValid(config) ||
      group.depth > 0)
    return refuse(ncclInvalidArgument, "invalid arguments");
  const std::string key(id.internal, sizeof id.internal);
  std::shared_ptr<Clique> clique;
  {
    std::lock_guard lock(registry().mutex);
    std::shared_ptr<Clique> &beginning = registry().beginnings[key];
    if (!beginning)
      beginning = std::make_shared<Clique>(ranks);
    clique = beginning;
  }
  const bool blocks = !config || config->blocking != 0;
  std::shared_ptr<Member> member = makeMember(clique, rank, device, blocks);
  std::unique_lock lock(clique->mutex);
  int &own = clique->devices[static_cast<size_t>(rank)];
  if (clique->ranks() != ranks || own != Clique::kAbsent)
    return refuse(ncclInvalidArgument, "ranks disagree on who is who");
  if (!sharesDevices() && std::ranges::count(clique->devices, device))
    clique->refusal =
        text("Duplicate GPU detected : ranks have CUDA device ", device);
  own = device;
  if (--clique->missing == 0) {
    std::lock_guard registryLock(registry().mutex);
    registry().beginnings.erase(key);
  }
  clique->changed.notify_all();
  if (blocks) {
    clique->changed.wait(lock, [&] { return clique->missing == 0; });
    if (!clique->refusal.empty())
      return refuse(ncclInvalidUsage, clique->refusal);
  }
  *made = adopt(member);
  return blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t split(Member &member, int color, int key, ncclComm_t *made,
                   const ncclConfig_t *config) {
  *made = nullptr;
  if (color < NCCL_SPLIT_NOCOLOR || !isValid(config) || group.depth > 0)
    return refuse(ncclInvalidArgument, "invalid arguments");
  std::unique_lock memberLock(member.mutex);
  Clique &clique = *member.clique;
  std::unique_lock lock(clique.mutex);
  const uint64_t index = member.splits++;
  std::shared_ptr<Split> &all = clique.splits[index];
  if (!all)
    all = std::make_shared<Split>();
  std::shared_ptr<Split> own = all;
  own->wishes.push_back({color, key, member.rank, member.device,
                         config ? config->blocking != 0 : member.blocks});
  if (own->wishes.size() == clique.devices.size()) {
    finish(*own);
    clique.splits.erase(index);
    clique.changed.notify_all();
  }
  if (member.blocks) {
    memberLock.unlock();
    clique.changed.wait(lock, [&] { return !own->made.empty(); });
    *made = adopt(own->made[static_cast<size_t>(member.rank)]);
    return ncclSuccess;
  }
  // NCCL writes `made` at any time until the communicator is ready again.
  member.split = std::move(own);
  member.splitTo = made;
  return ncclInProgress;
}
} // namespace

size_t test::liveCommunicators() {
  std::lock_guard lock(registry().mutex);
  return registry().members.size();
}

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  constexpr const char *kTexts[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? kTexts[result]
                                                : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t handle) {
  static thread_local std::string text;
  {
    std::lock_guard lock(registry().mutex);
    text = registry().lastError;
  }
  if (std::shared_ptr<Member> member = find(handle)) {
    {
      std::lock_guard lock(member->clique->mutex);
      if (!member->clique->refusal.empty())
        text = member->clique->refusal;
    }
    std::lock_guard lock(member->health->mutex);
    if (member->health->error)
      text = member->health->text;
  }
  return text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  return call(
      "ncclGetUniqueId", [] { return ""; },
      [&] {
        *id = {};
        std::lock_guard lock(registry().mutex);
        std::memcpy(id->internal, &++registry().ids, sizeof registry().ids);
        return ncclSuccess;
      });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  return call(
      "ncclCommInitRankConfig", [&] { return text(rank, " of ", ranks); },
      [&] { return initialize(made, ranks, id, rank, config); });
}
ncclResult_t ncclCommInitRank(ncclComm_t *made, int ranks, ncclUniqueId id,
                              int rank) {
  return call(
      "ncclCommInitRank", [&] { return text(rank, " of ", ranks); },
      [&] { return initialize(made, ranks, id, rank, nullptr); });
}
ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key,
                           ncclComm_t *made, ncclConfig_t *config) {
  return call(
      "ncclCommSplit",
      [&] { return text("color ", color, " key ", key, " ", nameOf(handle)); },
      [&] {
        std::shared_ptr<Member> member;
        ncclResult_t error = use(handle, member);
        return error ? error : split(*member, color, key, made, config);
      });
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return call(
      "ncclCommFinalize", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member;
        if (ncclResult_t error = use(handle, member))
          return error;
        {
          std::lock_guard lock(member->mutex);
          if (std::exchange(member->isFinal, true))
            return refuse(ncclInvalidArgument, "finalized twice");
          std::lock_guard cliqueLock(member->clique->mutex);
          ++member->clique->finalized;
        }
        ncclResult_t state = ncclInProgress;
        while (member->blocks &&
               (state = stateOf(*member, false)) == ncclInProgress)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        return state;
      });
}
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return call(
      "ncclCommDestroy", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member;
        if (ncclResult_t error = use(handle, member))
          return error;
        std::shared_ptr<Signal> ended;
        {
          std::lock_guard lock(member->mutex);
          ended = member->ended;
        }
        if (ended)
          await(*ended, *member->health);
        drop(handle);
        return ncclSuccess;
      });
}
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return call(
      "ncclCommAbort", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member = find(handle);
        if (!member)
          return refuse(ncclInvalidArgument, "no such communicator");
        member->health->isAborted.store(true, std::memory_order_relaxed);
        {
          std::lock_guard lock(member->mutex);
          member->pending.clear();
          member->split = nullptr;
        }
        group.aborted.push_back(member);
        if (group.depth == 0)
          freeAborted();
        return ncclSuccess;
      });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *state) {
  if (int error = faultOf("ncclCommGetAsyncError"))
    return static_cast<ncclResult_t>(error);
  std::shared_ptr<Member> member = find(handle);
  if (!member)
    return refuse(ncclInvalidArgument, "no such communicator");
  *state = stateOf(*member, true);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int *count) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *count = member->clique->ranks();
  return error;
}
ncclResult_t ncclCommUserRank(const ncclComm_t handle, int *rank) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *rank = member->rank;
  return error;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int *device) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *device = member->device;
  return error;
}

ncclResult_t ncclGroupStart() {
  return call(
      "ncclGroupStart", [] { return ""; },
      [] {
        ++group.depth;
        return ncclSuccess;
      });
}
ncclResult_t ncclGroupEnd() {
  auto end = [] {
    if (group.depth == 0)
      return refuse(ncclInvalidUsage, "no group");
    return --group.depth > 0 ? ncclSuccess : endGroup();
  };
  int fault = beginCall("ncclGroupEnd", [] { return ""; });
  if (!fault)
    return end();
  group.error = static_cast<ncclResult_t>(fault); // nothing is launched
  return end();
}

ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t handle, cudaStream_t stream) {
  return call(
      "ncclSend",
      [&] {
        return text(count * bytesOf(type), " to ", peer, " ", nameOf(handle),
                    " ", test::nameOf(stream));
      },
      [&] {
        return post(handle, {{"message", static_cast<const std::byte *>(source),
                              nullptr, count, type, 0, nullptr},
                             true,
                             true,
                             peer,
                             stream});
      });
}
ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t handle, cudaStream_t stream) {
  return call(
      "ncclRecv",
      [&] {
        return text(count * bytesOf(type), " from ", peer, " ", nameOf(handle),
                    " ", test::nameOf(stream));
      },
      [&] {
        return post(handle,
                    {{"message", nullptr, static_cast<std::byte *>(target),
                      count, type, 0, nullptr},
                     true,
                     false,
                     peer,
                     stream});
      });
}

static ncclResult_t collect(const char *name, const void *source, void *target,
                            size_t count, ncclDataType_t type, int root,
                            ncclComm_t handle, cudaStream_t stream) {
  return call(
      name,
      [&] {
        return text(count * bytesOf(type), " ", nameOf(handle), " ",
                    test::nameOf(stream));
      },
      [&] {
        return post(handle, {{name, static_cast<const std::byte *>(source),
                              static_cast<std::byte *>(target), count, type,
                              root, nullptr},
                             false,
                             false,
                             0,
                             stream});
      });
}
ncclResult_t ncclAllReduce(const void *source, void *target, size_t count,
                           ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t handle, cudaStream_t stream) {
  if (operation != ncclSum || !elementType(type))
    return refuse(ncclInvalidArgument, "the stand-in has no such sums");
  return collect("ncclAllReduce", source, target, count, type, 0, handle,
                 stream);
}
ncclResult_t ncclBroadcast(const void *source, void *target, size_t count,
                           ncclDataType_t type, int root, ncclComm_t handle,
                           cudaStream_t stream) {
  return collect("ncclBroadcast", source, target, count, type, root, handle,
                 stream);
}
ncclResult_t ncclAllGather(const void *source, void *target, size_t count,
                           ncclDataType_t type, ncclComm_t handle,
                           cudaStream_t stream) {
  return collect("ncclAllGather", source, target, count, type, 0, handle,
                 stream);
}

} // extern "C"
