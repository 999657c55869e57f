// HTTPS GET by libcurl: redirects, proxies (https_proxy, no_proxy), certificates, time-outs. One
// attempt per call; who wants more attempts asks net/retry.h. A bearer token goes to the host of
// the request's URL and never to where that host redirects. Nothing here prints. One client, one
// thread; connections are kept between calls. Called by net/download.h and hub/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace godwit::net {

struct ClientSettings {
  std::string ca_bundle{};  // PEM file in place of the system's certificates; empty: the system's
  std::chrono::seconds connect_timeout{20};
  std::chrono::seconds stall_timeout{30};  // less than kStallBytesPerSecond for so long: given up
};

inline constexpr long kStallBytesPerSecond = 512;

struct Request {
  std::string url;
  std::string bearer_token{};  // empty: none
  uint64_t first_byte = 0;     // not 0: a range from here to the end is asked for
  std::string if_range{};      // ETag that the range must belong to; empty: any
};

// What is known before the body: of the last response, not of redirects on the way.
struct Head {
  int status = 0;  // 0: there was no response
  std::string etag{};
  std::string content_type{};
  std::string error_code{};                  // X-Error-Code, as the Hub explains refusals
  std::optional<uint64_t> content_length{};  // of this response, not of the whole file
  std::optional<uint64_t> range_first{};     // of a Content-Range
  std::optional<uint64_t> range_total{};
  std::optional<std::chrono::seconds> retry_after{};
};

// Both are called from inside get(). An error ends the transfer and becomes its problem.
struct Sink {
  std::function<Status(const Head&)> on_head{};  // of a response of 200 to 299, before its body
  std::function<Status(std::span<const char>)> on_bytes;
  std::function<bool()> stopped{};  // asked about once a second and more often while bytes arrive
};

enum class End {
  kComplete,   // a response arrived whole, whatever its status
  kTransient,  // no connection, cut off, stalled: another attempt may succeed
  kPermanent,  // a bad certificate, too many redirects, a URL that is none
  kRefused,    // by the sink
  kStopped,    // because the sink's owner said so
};

struct Response {
  End end = End::kPermanent;
  Head head;
  std::string problem;  // one line; empty if complete
};

class HttpClient {
 public:
  // Errors: libcurl cannot start; the bundle of certificates is not there.
  [[nodiscard]] static Result<HttpClient> create(const ClientSettings& settings);

  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Bodies of responses outside 200 to 299 are dropped.
  [[nodiscard]] Response get(const Request& request, const Sink& sink);

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The text as one segment of a URL's path: everything but unreserved characters as %XX.
[[nodiscard]] std::string escape_segment(std::string_view text);

// "bytes 100-199/1000" into first and total; neither where it says anything else.
void parse_content_range(std::string_view text, Head& head);

}  // namespace godwit::net
