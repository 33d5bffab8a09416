//===- LogFile.h - A log file with a temporary name -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_LOGFILE_H
#define CHIMERA_RUNTIME_TRAIN_LOGFILE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace chimera::runtime {

/// The temporary name of the log `file`: FILE.part, in the folder to which
/// symbolic links of `file` lead. If `file` is not a regular file but, for
/// example, a pipe, the log is written to it directly.
std::string temporaryName(const std::string &file);

/// A log that is written to temporaryName(FILE) and gets its final name when it
/// is complete. Old logs are never lost: a file that an earlier run left under
/// either name is first renamed to FILE.1, or to FILE.2 if that exists, and so
/// on. A log may instead continue such a file. The file then does not change
/// before the first text is appended.
class LogFile {
public:
  /// Whether a line stays if the log is continued. No run writes an Unknown
  /// line. A crash can leave such lines in a log, and they do not stay.
  enum class Line { Keep, Drop, Unknown };
  /// Classifies a line. The text has no line break. If the line is not whole,
  /// the text is only its begin.
  using Classify = std::function<Line(std::string_view, bool isWhole)>;

  /// If `classify` is not empty and an earlier run left a log, continues this
  /// log after its lines that stay. Throws std::runtime_error if the file
  /// cannot be written, if another process is writing it, or if it is no log:
  /// its first line is Unknown.
  explicit LogFile(const std::string &file, const Classify &classify = {});
  /// An incomplete log keeps its temporary name.
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Whether this is the log of an earlier run that ended, and nothing has been
  /// appended to it.
  bool isUnchanged() const { return isComplete; }
  /// The number of Unknown lines.
  uint64_t unknownLines() const { return unknown; }

  /// Appends text. Other processes that read the file see it at once. Throws
  /// std::runtime_error if it cannot be written.
  void append(std::string_view text);
  /// Gives the log its final name. Must be the last call. Throws
  /// std::runtime_error if that fails.
  void complete();

private:
  LogFile(std::string target, std::string part);
  void readOld(const Classify &classify);
  [[noreturn]] static void refuse(const std::string &name);
  void beginToContinue();
  bool grows() const { return part != target; }
  bool isStillNamed(const std::string &name) const;
  bool isEmpty() const;
  /// If a file with the name `file` exists, renames it to TARGET.N, where
  /// TARGET is the final name of the log and N the first free number.
  void number(const std::string &file) const;
  /// Throws an error with errno's message.
  [[noreturn]] void fail() const;

  std::string target, part;
  int descriptor = -1;
  bool isComplete = false;
  uint64_t unknown = 0;
  /// Of a log that is continued and has not changed yet: the size of its first
  /// lines that stay, and the later lines that stay.
  struct Kept {
    off_t size;
    std::string later;
  };
  std::optional<Kept> kept;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LOGFILE_H
