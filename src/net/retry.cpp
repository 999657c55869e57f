#include "net/retry.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace godwit::net {
namespace {

constexpr Milliseconds kSlice{50};

Failure failure_of(const Response& response) {
  Failure failure;
  failure.status = response.end == End::kComplete ? response.head.status : 0;
  failure.error_code = response.head.error_code;
  failure.stopped = response.end == End::kStopped;
  failure.error.message = response.end == End::kComplete
                              ? "the server answers " + status_text(response.head.status)
                              : response.problem;
  return failure;
}

bool may_pass(const Response& response) {
  return response.end == End::kTransient ||
         (response.end == End::kComplete && is_transient_status(response.head.status));
}

}  // namespace

bool is_transient_status(int status) {
  constexpr auto kTransient = std::to_array({408, 425, 429, 500, 502, 503, 504});
  return std::ranges::find(kTransient, status) != kTransient.end();
}

Milliseconds backoff_delay(const RetryPolicy& policy, int n, double share) {
  double delay = static_cast<double>(policy.first_delay.count());
  for (int i = 0; i < n && delay < static_cast<double>(policy.longest_delay.count()); ++i) {
    delay *= 2;
  }
  delay = std::min(delay, static_cast<double>(policy.longest_delay.count()));
  return Milliseconds(static_cast<int64_t>(delay * (0.5 + 0.5 * std::clamp(share, 0.0, 1.0))));
}

Retries::Retries(const RetryPolicy& policy, const Watch& watch)
    : policy_(policy), watch_(watch), random_(std::random_device{}()) {}

bool Retries::sleep(Milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (watch_.is_stopped()) return false;
    std::this_thread::sleep_for(kSlice);
  }
  return !watch_.is_stopped();
}

std::optional<Failure> Retries::wait_or_fail(const Response& response) {
  Failure failure = failure_of(response);
  if (!may_pass(response)) return failure;
  failure.unreachable = true;
  if (n_failed_ >= policy_.n_retries) {
    if (n_failed_ > 0) {
      failure.error.message += fmt::format(" (after {} attempts)", n_failed_ + 1);
    }
    return failure;
  }
  const double share = std::uniform_real_distribution<double>(0, 1)(random_);
  Milliseconds delay = backoff_delay(policy_, n_failed_, share);
  if (response.head.retry_after) {
    // A date centuries ahead must not overflow: compared in seconds.
    const auto longest = std::chrono::floor<std::chrono::seconds>(policy_.longest_asked);
    if (*response.head.retry_after > longest) {
      failure.error.message +=
          fmt::format("; it asks to come back in {} s", response.head.retry_after->count());
      return failure;
    }
    delay = std::max<Milliseconds>(delay, *response.head.retry_after);
  }
  ++n_failed_;
  watch_.say(fmt::format("{}; trying again in {:.1f} s ({} of {})", failure.error.message,
                         static_cast<double>(delay.count()) / 1e3, n_failed_, policy_.n_retries));
  if (sleep(delay)) return std::nullopt;
  failure.stopped = true;
  failure.unreachable = false;
  failure.error.message = "interrupted";
  return failure;
}

std::string status_text(int status) {
  constexpr auto kWords = std::to_array<std::pair<int, std::string_view>>({
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {416, "Range Not Satisfiable"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  });
  const auto* found = std::ranges::find(kWords, status, &std::pair<int, std::string_view>::first);
  return found == kWords.end() ? fmt::format("{}", status)
                               : fmt::format("{} {}", status, found->second);
}

}  // namespace godwit::net
