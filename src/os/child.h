// Runs another program and waits for it, without a shell between: arguments arrive as they are.
// Its standard output never mixes with ours, which is for answers. Called by what needs a tool that
// every system has and no library offers (pull: pip), and by what measures other programs
// (bench --peer).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace godwit::os {

enum class ChildOutput {
  kShown,   // on our stderr
  kHidden,  // dropped, its stderr too
};

// The exit code of `command[0]` (found through PATH) run with the rest as its arguments, its
// standard output on our standard error.
// Errors: it cannot be started, or a signal ended it.
[[nodiscard]] Result<int> run_child(std::span<const std::string> command, ChildOutput output);

struct ChildAnswer {
  int exit_code = 0;
  std::string out;              // its standard output
  std::string last_error_line;  // the last line with text of its standard error
};

// Runs a command as run_child does, with nothing on its standard input. Errors: it cannot be
// started, a signal ended it, more than max_bytes on its standard output (it is then ended).
[[nodiscard]] Result<ChildAnswer> ask_child(std::span<const std::string> command, size_t max_bytes);

}  // namespace godwit::os
