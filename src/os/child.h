// Runs another program and waits for it, without a shell between: arguments arrive as they are.
// Its standard output goes to our standard error, so that ours stays for answers. Called by what
// needs a tool that every system has and no library offers (pull: pip).
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace godwit::os {

enum class ChildOutput {
  kShown,   // on our stderr
  kHidden,  // dropped, its stderr too
};

// The exit code of `command[0]` (found through PATH) run with the rest as its arguments.
// Errors: it cannot be started, or a signal ended it.
[[nodiscard]] Result<int> run_child(std::span<const std::string> command, ChildOutput output);

}  // namespace godwit::os
