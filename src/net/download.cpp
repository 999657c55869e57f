#include "net/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace godwit::net {
namespace {

tl::unexpected<Failure> failure(std::string message) {
  return tl::unexpected<Failure>(Failure{.error = {std::move(message)}});
}

// The growing file. All its errors name the path and the system's reason.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path path) : path_(std::move(path)) {}
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (file_ >= 0) close(file_);
  }

  Status open() {
    file_ = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (file_ < 0) return failed("cannot write");
    const off_t end = lseek(file_, 0, SEEK_END);
    if (end < 0) return failed("cannot write");
    size_ = static_cast<uint64_t>(end);
    return {};
  }

  Status clear() {
    if (ftruncate(file_, 0) != 0 || lseek(file_, 0, SEEK_SET) != 0) return failed("cannot write");
    size_ = 0;
    return {};
  }

  Status append(std::span<const char> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(file_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("cannot write");
      bytes = bytes.subspan(static_cast<size_t>(n));
      size_ += static_cast<uint64_t>(n);
    }
    return {};
  }

  // Until the bytes are on the disk: the name that the file gets afterwards says it is complete.
  Status sync() { return fdatasync(file_) == 0 ? Status{} : failed("cannot write"); }

  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  [[nodiscard]] Status failed(std::string_view what) const {
    return fail("{} {}: {}", what, path_.string(), std::strerror(errno));
  }

  std::filesystem::path path_;
  int file_ = -1;
  uint64_t size_ = 0;
};

// The attempts of one download.
class Downloader {
 public:
  Downloader(HttpClient& client, const Download& wanted, const Watch& watch)
      : client_(client), wanted_(wanted), watch_(watch), file_(wanted.file) {}

  tl::expected<void, Failure> run(const RetryPolicy& policy) {
    if (Status s = begin(); !s) return failure(std::move(s.error().message));
    Retries retries(policy, watch_);
    while (file_.size() < wanted_.bytes) {
      const uint64_t before = file_.size();
      starts_over_ = false;
      const Response response = attempt();
      // Further than ever: a server that ignores ranges and breaks off each time brings nothing.
      if (file_.size() > furthest_) retries.note_progress();
      furthest_ = std::max(furthest_, file_.size());
      // A range that is not to be had, or of another version: the whole file. Not without end, or
      // two servers that disagree would keep us going for ever.
      const bool no_range = response.end == End::kComplete && response.head.status == 416;
      if (before > 0 && (starts_over_ || no_range)) {
        if (++n_restarts_ > kMaxRestarts) {
          return failure("the server sends parts of different versions of the file");
        }
        if (Status s = clear(); !s) return failure(std::move(s.error().message));
        continue;
      }
      if (file_.size() == wanted_.bytes && response.end == End::kComplete) break;
      if (std::optional<Failure> failed = retries.wait_or_fail(as_failure(response))) {
        return tl::unexpected<Failure>(*std::move(failed));
      }
    }
    if (Status s = file_.sync(); !s) return failure(std::move(s.error().message));
    return {};
  }

 private:
  static constexpr int kMaxRestarts = 3;

  Status begin() {
    if (Status s = file_.open(); !s) return s;
    if (file_.size() > wanted_.bytes) return clear();
    furthest_ = file_.size();
    report();
    return {};
  }

  Status clear() {
    etag_.clear();
    Status s = file_.clear();
    report();
    return s;
  }

  void report() const {
    if (wanted_.on_progress) wanted_.on_progress(file_.size());
  }

  Response attempt() {
    const Request request{.url = wanted_.url,
                          .bearer_token = wanted_.bearer_token,
                          .first_byte = file_.size(),
                          // A weak tag cannot vouch for bytes.
                          .if_range = etag_.starts_with("W/") ? "" : etag_};
    const Sink sink{.on_head = [&](const Head& head) { return accept(head); },
                    .on_bytes = [&](std::span<const char> bytes) { return take(bytes); },
                    .stopped = watch_.stopped};
    return client_.get(request, sink);
  }

  // Whether the body belongs behind what is here.
  Status accept(const Head& head) {
    const uint64_t here = file_.size();
    if (head.status == 206) {
      if (head.range_first != here) {
        return fail("asked for the bytes from {} on, the server sends others", here);
      }
      if (head.range_total && *head.range_total != wanted_.bytes) {
        starts_over_ = true;
        return fail("expected {} bytes, the server offers {}", wanted_.bytes, *head.range_total);
      }
      if (!etag_.empty() && head.etag != etag_) {
        starts_over_ = true;
        return fail("the file has changed");
      }
    } else if (head.status == 200) {
      // A server that ignores ranges, or says by 200 that the file is another by now.
      if (head.content_length && *head.content_length != wanted_.bytes) {
        return fail("expected {} bytes, the server offers {} of type '{}'", wanted_.bytes,
                    *head.content_length, head.content_type);
      }
      if (here > 0) {
        if (Status s = clear(); !s) return s;
      }
    } else {
      return fail("the server answers {}, expected 200 or 206", head.status);
    }
    etag_ = head.etag;
    return {};
  }

  Status take(std::span<const char> bytes) {
    if (bytes.size() > wanted_.bytes - file_.size()) {
      return fail("expected {} bytes, the server sends more", wanted_.bytes);
    }
    Status s = file_.append(bytes);
    report();
    return s;
  }

  // A body without a length that ends early looks complete to the client.
  static Response as_failure(Response response) {
    if (response.end == End::kComplete && response.head.status < 300) {
      response.end = End::kTransient;
      response.problem = "the connection ended early";
    }
    return response;
  }

  HttpClient& client_;
  const Download& wanted_;
  const Watch& watch_;
  PartialFile file_;
  std::string etag_;  // of the bytes that this call has received
  bool starts_over_ = false;
  uint64_t furthest_ = 0;
  int n_restarts_ = 0;
};

}  // namespace

tl::expected<std::string, Failure> get_text(HttpClient& client, const Request& request,
                                            size_t max_bytes, const RetryPolicy& policy,
                                            const Watch& watch) {
  Retries retries(policy, watch);
  while (true) {
    std::string text;
    const Sink sink{.on_bytes = [&](std::span<const char> bytes) -> Status {
                      if (bytes.size() > max_bytes - text.size()) {
                        return fail("the answer is longer than {} bytes", max_bytes);
                      }
                      text.append(bytes.data(), bytes.size());
                      return {};
                    },
                    .stopped = watch.stopped};
    const Response response = client.get(request, sink);
    if (response.end == End::kComplete && response.head.status == 200) return text;
    if (std::optional<Failure> failed = retries.wait_or_fail(response)) {
      return tl::unexpected<Failure>(*std::move(failed));
    }
  }
}

tl::expected<void, Failure> download(HttpClient& client, const Download& wanted,
                                     const RetryPolicy& policy, const Watch& watch) {
  return Downloader(client, wanted, watch).run(policy);
}

}  // namespace godwit::net
