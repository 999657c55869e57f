// Where the Hub is, where its cache is, and who asks: from the environment that huggingface_hub and
// llama.cpp share, and from flags, which beat it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace godwit::hub {

struct HubSettings {
  std::string endpoint;         // "https://huggingface.co", no slash at the end
  std::filesystem::path cache;  // holds models--ORG--NAME folders
  std::string token;            // empty: none
  std::string ca_bundle;        // empty: the system's certificates
  bool offline = false;
  std::chrono::seconds stall_timeout{30};
  int n_retries = 7;
};

// What flags say; empty and false: left to the environment.
struct HubFlags {
  std::string token{};
  std::string ca_bundle{};
  bool offline = false;
  std::optional<int> n_retries{};
};

// Finds the value of a variable; unset and empty are the same.
using Environment = std::function<std::string(const char*)>;
[[nodiscard]] std::string process_environment(const char* name);

// MODEL_ENDPOINT, HF_ENDPOINT; LLAMA_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME, HOME; HF_TOKEN, HF_TOKEN_PATH and the token file in HF_HOME; CURL_CA_BUNDLE,
// SSL_CERT_FILE; HF_HUB_OFFLINE; HF_HUB_DOWNLOAD_TIMEOUT (seconds without data).
// Errors: an endpoint that is no URL, or a token that cannot be one.
[[nodiscard]] Result<HubSettings> hub_settings(const HubFlags& flags,
                                               const Environment& environment);

}  // namespace godwit::hub
