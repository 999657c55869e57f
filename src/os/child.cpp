#include "os/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace godwit::os {
namespace {

class FileActions {
 public:
  FileActions() { check(posix_spawn_file_actions_init(&actions_) == 0, "out of memory"); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  [[nodiscard]] posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Result<int> run_child(std::span<const std::string> command, ChildOutput output) {
  check(!command.empty(), "a command has at least a name");
  // posix_spawn takes non-const pointers for historical reasons; it does not write through them.
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  FileActions actions;
  if (output == ChildOutput::kHidden) {
    posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(actions.get(), STDERR_FILENO, STDOUT_FILENO);

  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) return fail("cannot run '{}': {}", command[0], std::strerror(error));

  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail("cannot wait for '{}': {}", command[0], std::strerror(errno));
  }
  if (WIFSIGNALED(status)) {
    return fail("'{}' was ended by signal {}", command[0], WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

}  // namespace godwit::os
