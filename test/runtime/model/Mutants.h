//===- Mutants.h - Randomly changed input files -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared code of the tests that open randomly changed input files (mutants).
// Such a test opens each mutant and uses the accepted ones. Each mutant must be
// refused with a reason or be usable: it must not crash, take long or much
// memory, or leave a file open. Mutant n depends only on n.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_MODEL_MUTANTS_H
#define CHIMERA_TEST_RUNTIME_MODEL_MUTANTS_H

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

namespace chimera::runtime::test {

using Json = nlohmann::json;
using Random = std::mt19937_64;

/// A number in 0 ... count - 1, or 0 if `count` is 0.
inline uint64_t below(Random &random, uint64_t count) {
  return count ? random() % count : 0;
}

/// An element of `list`, which must not be empty.
template <typename List> auto &oneOf(List &list, Random &random) {
  return list[below(random, std::size(list))];
}

/// A random value in `root`, usually deeply nested.
inline Json &pick(Json &root, Random &random) {
  Json *at = &root;
  while (at->is_structured() && !at->empty() && below(random, 40) != 0)
    at = &*std::next(at->begin(),
                     static_cast<ptrdiff_t>(below(random, at->size())));
  return *at;
}

/// Changes a value of `root`: a number, a list's length or order, an object's
/// keys, or the whole value.
inline void change(Json &value, Json &root, Random &random) {
  static const int64_t numbers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    -2,
                                    7,
                                    100,
                                    65536,
                                    int64_t{1} << 31,
                                    int64_t{1} << 40,
                                    INT64_MAX,
                                    INT64_MIN};
  if (value.is_number_integer()) {
    value = below(random, 2) ? Json(oneOf(numbers, random))
                             : Json(static_cast<int64_t>(value.get<uint64_t>() +
                                                         below(random, 5) - 2));
  } else if (value.is_number_float()) {
    value = below(random, 2) ? value.get<double>() * 1e3 : -1.5;
  } else if (value.is_array() && !value.empty()) {
    const size_t i = below(random, value.size());
    const size_t j = below(random, value.size());
    switch (below(random, 4)) {
    case 0:
      value.erase(i);
      break;
    case 1:
      value.push_back(value[i]);
      break;
    case 2:
      std::swap(value[i], value[j]);
      break;
    default:
      value[i] = value[j];
    }
  } else if (value.is_object() && !value.empty() && below(random, 8) == 0) {
    value.erase(std::next(value.begin(),
                          static_cast<ptrdiff_t>(below(random, value.size()))));
  } else {
    value = pick(root, random);
  }
}

/// Changes bytes: some of them, or their number.
inline void change(std::string &bytes, Random &random) {
  const size_t at = below(random, bytes.size());
  const size_t count =
      std::min(bytes.size() - at, static_cast<size_t>(below(random, 20)));
  switch (below(random, 5)) {
  case 0:
    bytes.resize(at);
    break;
  case 1:
    bytes.erase(at, count);
    break;
  case 2:
    bytes.insert(below(random, bytes.size() + 1), bytes.substr(at, count));
    break;
  case 3:
    bytes.append(below(random, 3000), static_cast<char>(random()));
    break;
  default:
    if (!bytes.empty())
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
  }
}

/// A folder for the files of mutants. After a fault, it is kept for inspection.
class Folder {
public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "chimera-mutants-XXXXXX")
            .string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("cannot make " + name);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder &) = delete;

  /// Writes a file of `size` bytes: `bytes`, then zeros that take no space on
  /// disk.
  std::string write(const std::string &name, const std::string &bytes,
                    uint64_t size) const {
    const std::string file = (path / name).string();
    // Overwrite the file instead of truncating it first: a file system may
    // write a truncated file to disk at once, which takes long.
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    if (!stream)
      stream.open(file, std::ios::out | std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    resize(name, bytes.size());
    resize(name, size);
    return file;
  }

  void resize(const std::string &name, uint64_t size) const {
    std::filesystem::resize_file(path / name, size);
  }

  void remove(const std::string &name) const {
    std::filesystem::remove(path / name);
  }

  const std::filesystem::path &where() const { return path; }

private:
  std::filesystem::path path;
};

inline uint64_t currentMutant = 0;

/// Ends the process because the current mutant shows a fault.
[[noreturn]] inline void fault(const std::string &what) {
  std::fprintf(stderr, "mutant %llu: %s\n",
               static_cast<unsigned long long>(currentMutant), what.c_str());
  _exit(1);
}

/// Elements between guard elements that nobody may write.
template <typename T> class Guarded {
public:
  explicit Guarded(size_t count) : all(count + 2 * kGuards, kGuard) {}
  std::span<T> span() {
    return std::span(all).subspan(kGuards, all.size() - 2 * kGuards);
  }
  void check() const {
    auto isGuard = [](T value) { return value == kGuard; };
    if (!std::all_of(all.begin(), all.begin() + kGuards, isGuard) ||
        !std::all_of(all.end() - kGuards, all.end(), isGuard))
      fault("memory beside the destination has changed");
  }

private:
  static constexpr size_t kGuards = 64;
  static constexpr T kGuard{0x5a};
  std::vector<T> all;
};

/// The command-line options of a program that opens mutants.
struct MutantOptions {
  uint64_t count = 1000, first = 0;
  unsigned seconds = 20;

  explicit MutantOptions(CLI::App &app) {
    app.add_option("--mutants", count)->capture_default_str();
    app.add_option("--first", first)->capture_default_str();
    app.add_option("--seconds", seconds,
                   "Processor seconds that a mutant may take")
        ->capture_default_str();
  }
};

/// Opens each mutant by `open(number, random)`, and passes the result to `use`.
/// Both functions throw if they refuse the mutant. The process may allocate at
/// most `bytes` more bytes of address space than it has. Prints how many
/// mutants were refused when opened, how many were refused when used, and how
/// many were used. Returns the exit status of the program: 0 if none of these
/// numbers is 0, otherwise 1.
template <typename Open, typename Use>
int runMutants(const MutantOptions &options, uint64_t bytes, Open open,
               Use use) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  bytes += pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_AS, &memory);
#endif
  // Give the signal handler its own stack, because a mutant may exhaust the
  // normal stack.
  static char stack[1 << 16];
  const stack_t own{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_handler = [](int number) {
    fault("signal " + std::to_string(number));
  };
  action.sa_flags = SA_ONSTACK;
  for (int signal :
       {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF, SIGALRM})
    sigaction(signal, &action, nullptr);
  auto nextFile = [] {
    const int file = dup(STDERR_FILENO);
    close(file);
    return file;
  };

  uint64_t unreadable = 0, refused = 0, ran = 0;
  int file = -1;
  for (uint64_t i = 0; i < options.count; ++i) {
    currentMutant = options.first + i;
    Random random(currentMutant);
    uint64_t *refusals = &unreadable;
    // Limit the processor time, since other processes may delay this one. A
    // mutant that only waits is ended after 15 times as long.
    const itimerval limit{.it_interval = {}, .it_value = {options.seconds, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    alarm(15 * options.seconds);
    try {
      auto opened = open(currentMutant, random);
      refusals = &refused;
      use(std::move(opened), random);
      ++ran;
    } catch (const std::bad_alloc &) {
      fault("it takes too much memory");
    } catch (const std::length_error &error) {
      fault(error.what());
    } catch (const std::exception &error) {
      if (!*error.what())
        fault("it is refused without a reason");
      ++*refusals;
    }
    // Compare the next free file number with the one after the previous mutant.
    // Do not compare with the start: the process opens some files at their
    // first use and keeps them open.
    if (file >= 0 && nextFile() != file)
      fault("it left a file open");
    file = nextFile();
  }
  std::printf("%llu mutants: %llu refused when opened, %llu when used, %llu "
              "ran\n",
              static_cast<unsigned long long>(options.count),
              static_cast<unsigned long long>(unreadable),
              static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(ran));
  return ran > 0 && refused > 0 && unreadable > 0 ? 0 : 1;
}

/// The main function of a program without other options: reads its options and
/// calls runMutants, with half a GiB. `about` says what the program does.
template <typename Open, typename Use>
int mutantsMain(int argc, char **argv, const char *about, Open open, Use use) {
  CLI::App app(about);
  const MutantOptions options(app);
  CLI11_PARSE(app, argc, argv);
  return runMutants(options, uint64_t{512} << 20, open, use);
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_MODEL_MUTANTS_H
