// When to try again: exponential delays with jitter, or what the server asks for, until too many
// attempts in a row brought nothing. Called by what sends requests. Waits in small steps, so that
// Ctrl-C is answered.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "net/http_client.h"

namespace godwit::net {

using Milliseconds = std::chrono::milliseconds;

struct RetryPolicy {
  int n_retries = 7;              // in a row without a new byte: a minute of waiting
  Milliseconds first_delay{500};  // doubles each time
  Milliseconds longest_delay{30'000};
  Milliseconds longest_asked{120'000};  // a server's Retry-After beyond this is not waited for
};

// What a long job tells and asks its caller. Any may be empty.
struct Watch {
  std::function<void(std::string_view)> note{};  // one line about what a user should know
  std::function<bool()> stopped{};

  void say(const std::string& line) const {
    if (note) note(line);
  }
  [[nodiscard]] bool is_stopped() const { return stopped && stopped(); }
};

// A request that did not bring what it should, as its caller must tell apart.
struct Failure {
  int status = 0;            // of the response; 0: none came
  std::string error_code{};  // X-Error-Code
  bool unreachable = false;  // attempts used up without an answer, or with 429 and 5xx only
  bool stopped = false;
  Error error{};
};

// 408, 425, 429 and 500 to 504.
[[nodiscard]] bool is_transient_status(int status);

// The wait before retry number `n` (from 0): between half and all of first_delay * 2^n, by a share
// from 0 to 1.
[[nodiscard]] Milliseconds backoff_delay(const RetryPolicy& policy, int n, double share);

// Counts the attempts of one request.
class Retries {
 public:
  Retries(const RetryPolicy& policy, const Watch& watch);

  // Something arrived: the next failure is the first again.
  void note_progress() { n_failed_ = 0; }

  // Judges an attempt that did not succeed. Nothing: waited, try again. Otherwise what to report.
  [[nodiscard]] std::optional<Failure> wait_or_fail(const Response& response);

 private:
  [[nodiscard]] bool sleep(Milliseconds time) const;  // false: stopped

  RetryPolicy policy_;
  Watch watch_;
  int n_failed_ = 0;
  std::minstd_rand random_;
};

// "503 Service Unavailable" for those that need a word, otherwise the number.
[[nodiscard]] std::string status_text(int status);

}  // namespace godwit::net
