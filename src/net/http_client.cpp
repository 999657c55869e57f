#include "net/http_client.h"

#include <curl/curl.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace godwit::net {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kBufferBytes = 256 << 10;
constexpr char kUserAgent[] = "godwit";

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

struct CloseHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, CloseHandle>;

// curl_global_init() must run once, before the first handle and not beside other threads of its own
// libraries; a local static gives that.
bool curl_is_ready() {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return ready;
}

void add_header(HeaderList& list, const std::string& line) {
  // The list keeps a copy; the head of it changes only when it was empty.
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer != nullptr && list == nullptr) list.reset(longer);
}

std::string last_header(CURL* handle, const char* name) {
  curl_header* header = nullptr;
  // Request -1 is the last one: behind redirects, the one that counts.
  if (curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return "";
  return header->value;
}

Head read_head(CURL* handle) {
  Head head;
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
  if (head.status == 0) return head;
  head.etag = last_header(handle, "etag");
  head.content_type = last_header(handle, "content-type");
  head.error_code = last_header(handle, "x-error-code");
  parse_content_range(last_header(handle, "content-range"), head);
  curl_off_t number = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &number);
  if (number >= 0) head.content_length = static_cast<uint64_t>(number);
  // libcurl reads both forms, seconds and a date; 0 stands for absent, too.
  curl_off_t seconds = 0;
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) head.retry_after = std::chrono::seconds(seconds);
  return head;
}

bool is_success(int status) { return status >= 200 && status < 300; }

// One call of get(), as the callbacks see it.
struct Transfer {
  CURL* handle = nullptr;
  const Sink* sink = nullptr;
  bool head_given = false;
  bool stopped = false;
  Status sink_status;

  // Hands the head on once. False: the sink refused.
  bool give_head() {
    if (head_given) return sink_status.has_value();
    head_given = true;
    const Head head = read_head(handle);
    if (is_success(head.status) && sink->on_head) sink_status = sink->on_head(head);
    return sink_status.has_value();
  }

  size_t take(std::span<const char> bytes) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (!is_success(static_cast<int>(status))) return bytes.size();
    if (!give_head()) return 0;
    sink_status = sink->on_bytes(bytes);
    return sink_status.has_value() ? bytes.size() : 0;
  }
};

size_t on_write(char* data, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take({data, size * count});
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->stopped = transfer->sink->stopped && transfer->sink->stopped();
  return transfer->stopped ? 1 : 0;
}

// Whether another attempt may bring what this one did not. A name that does not resolve counts as
// transient: networks come back.
End classify(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return End::kComplete;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return End::kTransient;
    default:
      return End::kPermanent;  // the library has a hundred codes; the rest stays as it is
  }
}

}  // namespace

struct HttpClient::State {
  ClientSettings settings;
  Handle handle;
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create(const ClientSettings& settings) {
  std::error_code error;
  if (!settings.ca_bundle.empty() && !std::filesystem::is_regular_file(settings.ca_bundle, error)) {
    return fail("certificates '{}': no such file", settings.ca_bundle);
  }
  if (!curl_is_ready()) return fail("libcurl cannot be initialised");
  auto state = std::make_unique<State>();
  state->settings = settings;
  state->handle.reset(curl_easy_init());
  if (state->handle == nullptr) return fail("libcurl cannot be initialised");
  return HttpClient(std::move(state));
}

Response HttpClient::get(const Request& request, const Sink& sink) {
  CURL* handle = state_->handle.get();
  curl_easy_reset(handle);  // options only: connections stay
  const auto set = [handle](CURLoption option, auto value) {
    curl_easy_setopt(handle, option, value);
  };
  char reason[CURL_ERROR_SIZE] = "";
  set(CURLOPT_ERRORBUFFER, &reason[0]);
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_USERAGENT, &kUserAgent[0]);
  set(CURLOPT_PROTOCOLS_STR, "https,http");
  // What began encrypted stays so.
  set(CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("http://") ? "https,http" : "https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's answer is not the server's
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  const ClientSettings& settings = state_->settings;
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings.connect_timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings.stall_timeout.count()));
  if (!settings.ca_bundle.empty()) set(CURLOPT_CAINFO, settings.ca_bundle.c_str());

  HeaderList headers;
  // libcurl keeps an Authorization header from other hosts, ports and protocols by itself.
  if (!request.bearer_token.empty()) {
    add_header(headers, "Authorization: Bearer " + request.bearer_token);
  }
  if (request.first_byte > 0) {
    add_header(headers, fmt::format("Range: bytes={}-", request.first_byte));
    if (!request.if_range.empty()) add_header(headers, "If-Range: " + request.if_range);
  }
  set(CURLOPT_HTTPHEADER, headers.get());

  Transfer transfer{.handle = handle, .sink = &sink, .sink_status = {}};
  set(CURLOPT_WRITEFUNCTION, &on_write);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);

  const CURLcode code = curl_easy_perform(handle);
  Response response;
  response.head = read_head(handle);
  response.end = classify(code);
  if (code == CURLE_OK && !transfer.give_head()) response.end = End::kRefused;  // no body came
  if (transfer.stopped) {
    response.end = End::kStopped;
    response.problem = "interrupted";
  } else if (!transfer.sink_status) {
    response.end = End::kRefused;
    response.problem = transfer.sink_status.error().message;
  } else if (code != CURLE_OK) {
    response.problem = reason[0] != '\0' ? std::string(reason) : curl_easy_strerror(code);
  }
  return response;
}

std::string escape_segment(std::string_view text) {
  if (text.empty()) return "";  // a length of 0 would mean strlen
  char* escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  if (escaped == nullptr) return "";
  std::string out(escaped);
  curl_free(escaped);
  return out;
}

}  // namespace godwit::net
