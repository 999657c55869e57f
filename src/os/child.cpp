#include "os/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
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

// A pipe whose ends close themselves.
class Pipe {
 public:
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }

  Status open() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) return fail("no pipe: {}", std::strerror(errno));
    return {};
  }
  void close_end(size_t i) {
    if (ends_[i] >= 0) close(std::exchange(ends_[i], -1));
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  [[nodiscard]] int writer() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

Result<pid_t> start(std::span<const std::string> command, FileActions& actions) {
  check(!command.empty(), "a command has at least a name");
  // posix_spawn takes non-const pointers for historical reasons; it does not write through them.
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) return fail("cannot run '{}': {}", command[0], std::strerror(error));
  return child;
}

Result<int> wait_for(pid_t child, const std::string& name) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail("cannot wait for '{}': {}", name, std::strerror(errno));
  }
  if (WIFSIGNALED(status)) return fail("'{}' was ended by signal {}", name, WTERMSIG(status));
  return WEXITSTATUS(status);
}

// The end of what a child says, from which its last line can be read.
void keep_tail(std::string& text) {
  constexpr size_t kTailBytes = 4096;
  if (text.size() > 2 * kTailBytes) text.erase(0, text.size() - kTailBytes);
}

std::string last_line_of(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  const size_t before = text.find_last_of("\r\n", end);  // npos + 1 is 0
  return std::string(text.substr(before + 1, end - before));
}

// Reads both pipes until the child has closed them. False: more than max_bytes on the first.
bool drain(const Pipe& out, const Pipe& err, size_t max_bytes, ChildAnswer& answer) {
  std::array<pollfd, 2> watched = {pollfd{out.reader(), POLLIN, 0},
                                   pollfd{err.reader(), POLLIN, 0}};
  std::string errors;
  std::vector<char> buffer(size_t{64} << 10);
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno == EINTR) continue;  // revents are those of the call before: nothing may be there
      break;
    }
    for (size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ssize_t n = read(watched[i].fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        watched[i].fd = -1;
        continue;
      }
      std::string& text = i == 0 ? answer.out : errors;
      text.append(buffer.data(), static_cast<size_t>(n));
      if (answer.out.size() > max_bytes) return false;
      keep_tail(errors);
    }
  }
  answer.last_error_line = last_line_of(errors);
  return true;
}

}  // namespace

Result<int> run_child(std::span<const std::string> command, ChildOutput output) {
  FileActions actions;
  if (output == ChildOutput::kHidden) {
    posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(actions.get(), STDERR_FILENO, STDOUT_FILENO);
  const Result<pid_t> child = start(command, actions);
  if (!child) return fail(child.error());
  return wait_for(*child, command[0]);
}

Result<ChildAnswer> ask_child(std::span<const std::string> command, size_t max_bytes) {
  Pipe out;
  Pipe err;
  if (Status s = out.open(); !s) return fail(s.error());
  if (Status s = err.open(); !s) return fail(s.error());
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), out.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), err.writer(), STDERR_FILENO);
  const Result<pid_t> child = start(command, actions);
  if (!child) return fail(child.error());
  out.close_end(1);
  err.close_end(1);
  ChildAnswer answer;
  const bool whole = drain(out, err, max_bytes, answer);
  if (!whole) kill(*child, SIGKILL);
  const Result<int> code = wait_for(*child, command[0]);
  if (!whole) return fail("'{}' printed more than {} bytes", command[0], max_bytes);
  if (!code) return fail(code.error());
  answer.exit_code = *code;
  return answer;
}

}  // namespace godwit::os
