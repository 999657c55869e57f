#include "hub/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenBytes = 1024;

std::string first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return "";
}

bool is_true(std::string value) {
  std::ranges::transform(value, value.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  constexpr auto kYes = std::to_array<std::string_view>({"1", "ON", "YES", "TRUE"});
  return std::ranges::find(kYes, value) != kYes.end();
}

// A "~/" in front as the shell expands it.
fs::path expanded(const std::string& path, const Environment& environment) {
  if (path == "~" || path.starts_with("~/")) {
    return fs::path(environment("HOME")) / path.substr(std::min<size_t>(2, path.size()));
  }
  return path;
}

fs::path hub_home(const Environment& environment) {
  if (const std::string home = environment("HF_HOME"); !home.empty()) {
    return expanded(home, environment);
  }
  const std::string cache = environment("XDG_CACHE_HOME");
  return (cache.empty() ? expanded("~/.cache", environment) : expanded(cache, environment)) /
         "huggingface";
}

fs::path cache_folder(const Environment& environment) {
  const std::string named =
      first_of(environment, {"LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  return named.empty() ? hub_home(environment) / "hub" : expanded(named, environment);
}

// The first line of the file, without blanks around it; empty if there is no such file.
std::string read_token(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && is_blank(line.back())) line.pop_back();
  while (!line.empty() && is_blank(line.front())) line.erase(line.begin());
  return line;
}

std::string find_token(const HubFlags& flags, const Environment& environment) {
  if (!flags.token.empty()) return flags.token;
  std::string token = first_of(environment, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (!token.empty()) return token;
  const std::string path = environment("HF_TOKEN_PATH");
  return read_token(path.empty() ? hub_home(environment) / "token" : expanded(path, environment));
}

// What goes into a header must not end it. The token itself is never shown.
Status check_token(std::string_view token) {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (token.size() <= kMaxTokenBytes && std::ranges::all_of(token, printable)) return {};
  return fail("the Hub token is not one: expected up to {} printable characters without blanks",
              kMaxTokenBytes);
}

bool is_this_machine(std::string_view endpoint) {
  if (endpoint.find('@') != endpoint.npos) return false;  // "localhost" may be a user's name
  const std::string_view host = endpoint.substr(endpoint.find("//") + 2);
  for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (host == name ||
        (host.starts_with(name) && (host[name.size()] == ':' || host[name.size()] == '/'))) {
      return true;
    }
  }
  return false;
}

Status check_endpoint(const HubSettings& settings) {
  const bool plain = settings.endpoint.starts_with("http://");
  if (!plain && !settings.endpoint.starts_with("https://")) {
    return fail("HF_ENDPOINT: expected https://..., found '{}'", settings.endpoint);
  }
  if (plain && !settings.token.empty() && !is_this_machine(settings.endpoint)) {
    return fail("HF_ENDPOINT '{}' is not encrypted: the token is not sent there",
                settings.endpoint);
  }
  return {};
}

}  // namespace

std::string process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<HubSettings> hub_settings(const HubFlags& flags, const Environment& environment) {
  HubSettings settings;
  settings.endpoint = first_of(environment, {"MODEL_ENDPOINT", "HF_ENDPOINT"});
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.cache = cache_folder(environment);
  settings.token = find_token(flags, environment);
  settings.ca_bundle = flags.ca_bundle.empty()
                           ? first_of(environment, {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
                           : flags.ca_bundle;
  settings.offline = flags.offline || is_true(environment("HF_HUB_OFFLINE")) ||
                     is_true(environment("TRANSFORMERS_OFFLINE"));
  settings.n_retries = flags.n_retries.value_or(settings.n_retries);
  const std::string seconds = environment("HF_HUB_DOWNLOAD_TIMEOUT");
  int value = 0;
  std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
  if (value > 0) settings.stall_timeout = std::chrono::seconds(std::min(value, 3600));
  if (Status s = check_token(settings.token); !s) return fail(std::move(s).error());
  if (Status s = check_endpoint(settings); !s) return fail(std::move(s).error());
  return settings;
}

}  // namespace godwit::hub
