#include "hub/fetch.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "hub/cache.h"
#include "hub/choose.h"
#include "hub/digest.h"
#include "hub/refusal.h"
#include "net/download.h"
#include "os/file_lock.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

// How long a Hub that is only asked for news may keep a user waiting who has the model already.
constexpr std::chrono::seconds kPatienceForNews{5};
// Nothing is lost yet when the first question fails: a few seconds tell that there is no network.
constexpr int kRetriesOfQuestion = 3;

Result<std::vector<RepoFile>> choose(const Listing& listing, const WantedModel& wanted) {
  return wanted.file.empty() ? choose_files(listing.files, wanted.reference.quant)
                             : choose_named(listing.files, wanted.file);
}

// "folder/a file.gguf" for a URL: "/" stays.
std::string escape_path(std::string_view path) {
  std::string out;
  while (true) {
    const size_t slash = path.find('/');
    out += net::escape_segment(path.substr(0, slash));
    if (slash == path.npos) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail("cannot create {}: {}", path.string(), error.message());
  return {};
}

uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

class Fetch {
 public:
  Fetch(const HubSettings& settings, const WantedModel& wanted, const FetchWatch& watch)
      : settings_(settings),
        wanted_(wanted),
        watch_(watch),
        repo_(wanted.reference.repo),
        cache_(settings.cache) {
    policy_.n_retries = settings.n_retries;
  }

  Result<FetchedModel> run() {
    if (settings_.offline) return from_cache();
    Result<FetchedModel> cached = from_cache();
    if (Status s = connect(cached.has_value()); !s) return fail(std::move(s).error());
    const Result<Listing> listing = ask(cached.has_value());
    if (!listing && cached && !watch_.net.is_stopped()) {
      watch_.net.say(listing.error().message + "; taking what was fetched before");
      return cached;
    }
    if (!listing) return fail(listing.error());
    const Result<std::vector<RepoFile>> files = choose(*listing, wanted_);
    if (!files) return fail(about_repo(files.error()));
    return fetch_all(*files, listing->commit);
  }

 private:
  [[nodiscard]] Error about_repo(const Error& error) const {
    return Error{error}.with(settings_.endpoint + "/" + repo_);
  }

  Status connect(bool only_news) {
    net::ClientSettings settings{.ca_bundle = settings_.ca_bundle,
                                 .stall_timeout = settings_.stall_timeout};
    if (only_news) settings.connect_timeout = kPatienceForNews;
    Result<net::HttpClient> client = net::HttpClient::create(settings);
    if (!client) return fail(std::move(client).error());
    client_.emplace(*std::move(client));
    return {};
  }

  Result<Listing> ask(bool only_news) {
    net::RetryPolicy policy = policy_;
    policy.n_retries = only_news ? 0 : std::min(policy.n_retries, kRetriesOfQuestion);
    const net::Request request{
        .url = fmt::format("{}/api/models/{}/revision/main?blobs=true", settings_.endpoint, repo_),
        .bearer_token = settings_.token};
    const tl::expected<std::string, net::Failure> text =
        net::get_text(*client_, request, kMaxListingBytes, policy, watch_.net);
    if (!text) return fail(explain(text.error(), settings_, repo_));
    Result<Listing> listing = parse_listing(*text);
    if (!listing) return fail(about_repo(listing.error()));
    return listing;
  }

  Result<FetchedModel> from_cache() const {
    const std::optional<Listing> listing = cache_.find(repo_);
    if (!listing) {
      return fail("{}: not in the cache {} (offline: nothing is fetched)", repo_,
                  cache_.folder().string());
    }
    Result<std::vector<RepoFile>> files = choose(*listing, wanted_);
    if (!files) return fail(std::move(files.error()).with(fmt::format("{}, cached", repo_)));
    return as_fetched(*files, listing->commit);
  }

  [[nodiscard]] FetchedModel as_fetched(const std::vector<RepoFile>& files,
                                        const std::string& commit) const {
    FetchedModel model{.repo = repo_, .commit = commit};
    for (const RepoFile& file : files) {
      model.files.push_back({.path = cache_.snapshot(repo_, commit, file),
                             .bytes = file.bytes,
                             .checksum = file.checksum});
    }
    return model;
  }

  Result<FetchedModel> fetch_all(const std::vector<RepoFile>& files, const std::string& commit) {
    for (const RepoFile& file : files) {
      if (file.checksum.empty()) {
        return fail("{}: the Hub states no size and checksum for '{}'", repo_, file.path);
      }
    }
    if (Status s = require_space(files); !s) return fail(std::move(s).error());
    commit_ = commit;
    for (const RepoFile& file : files) {
      if (Status s = fetch(file); !s) return fail(std::move(s).error());
      if (Status s = cache_.link(repo_, commit, file); !s) return fail(std::move(s).error());
    }
    // Last, so that main never names a commit of which nothing is here.
    if (Status s = cache_.set_main(repo_, commit); !s) return fail(std::move(s).error());
    return as_fetched(files, commit);
  }

  Status require_space(const std::vector<RepoFile>& files) {
    uint64_t needed = 0;
    for (const RepoFile& file : files) {
      if (has_size(cache_.blob(repo_, file), file.bytes)) continue;
      const uint64_t here = size_or_zero(cache_.incomplete(repo_, file));
      needed += file.bytes - std::min(file.bytes, here);
      if (needed > uint64_t{1} << 62) break;  // more than any disk, before it overflows
    }
    const fs::path folder = cache_.repo_folder(repo_) / "blobs";
    if (Status s = make_folder(folder); !s) return s;
    std::error_code error;
    const uint64_t available = fs::space(folder, error).available;
    if (error || available >= needed) return {};
    return fail("{}: needs {:.1f} MB below {}, where {:.1f} MB are free", repo_,
                static_cast<double>(needed) / 1e6, cache_.folder().string(),
                static_cast<double>(available) / 1e6);
  }

  // Ends with the verified blob in its place.
  Status fetch(const RepoFile& file) {
    const fs::path blob = cache_.blob(repo_, file);
    if (has_size(blob, file.bytes)) return {};
    const fs::path lock_path = cache_.lock(repo_, file);
    if (Status s = make_folder(lock_path.parent_path()); !s) return s;
    const auto on_wait = [&] {
      watch_.net.say(fmt::format("another program is fetching {}: waiting for it", file.path));
    };
    const Result<os::FileLock> lock = os::FileLock::acquire(lock_path, on_wait, watch_.net.stopped);
    if (!lock) return fail(lock.error());
    if (has_size(blob, file.bytes)) return {};  // the other one was done
    return fetch_locked(file, blob);
  }

  Status fetch_locked(const RepoFile& file, const fs::path& blob) {
    const fs::path partial = cache_.incomplete(repo_, file);
    const bool resumed = size_or_zero(partial) > 0;
    if (Status s = receive(file, partial); !s) return s;
    Result<bool> good = verify(file, partial);
    if (good && !*good && resumed) {
      watch_.net.say(fmt::format("{}: what was here before is damaged; starting over", file.path));
      if (Status s = receive(file, partial); !s) return s;
      good = verify(file, partial);
    }
    if (!good) return fail(std::move(good).error());
    if (!*good) {
      return fail("{}: '{}' arrived with another checksum than {}, and is dropped", repo_,
                  file.path, file.checksum);
    }
    std::error_code error;
    fs::rename(partial, blob, error);
    if (error) return fail("cannot rename {}: {}", partial.string(), error.message());
    return {};
  }

  Status receive(const RepoFile& file, const fs::path& partial) {
    const net::Download wanted{
        .url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, repo_, commit_,
                           escape_path(file.path)),
        .bearer_token = settings_.token,
        .file = partial,
        .bytes = file.bytes,
        .on_progress = [&](uint64_t done) { report(file.path, done, file.bytes); }};
    const tl::expected<void, net::Failure> done =
        net::download(*client_, wanted, policy_, watch_.net);
    if (done) return {};
    Error error = explain(done.error(), settings_, repo_);
    if (error.message == "interrupted") return fail(std::move(error));
    return fail(std::move(error).with(file.path));
  }

  // False: the checksum is another, and the file has been removed.
  Result<bool> verify(const RepoFile& file, const fs::path& partial) {
    const Result<std::string> found =
        digest_file(partial, digest_kind(file.checksum), [&](uint64_t done) {
          report("verifying", done, file.bytes);
          return !watch_.net.is_stopped();
        });
    if (!found) return fail(found.error());
    if (*found == file.checksum) return true;
    std::error_code ignored;
    fs::remove(partial, ignored);
    return false;
  }

  void report(std::string_view label, uint64_t done, uint64_t total) const {
    if (watch_.progress) watch_.progress(label, done, total);
  }

  const HubSettings& settings_;
  const WantedModel& wanted_;
  const FetchWatch& watch_;
  const std::string& repo_;
  std::string commit_;  // of the listing
  Cache cache_;
  net::RetryPolicy policy_;
  std::optional<net::HttpClient> client_;
};

}  // namespace

Result<FetchedModel> fetch_model(const HubSettings& settings, const WantedModel& wanted,
                                 const FetchWatch& watch) {
  return Fetch(settings, wanted, watch).run();
}

}  // namespace godwit::hub
