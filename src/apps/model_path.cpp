#include "apps/model_path.h"

#include <cstdlib>
#include <string>

#include "apps/pulled_models.h"

namespace godwit::apps {
namespace {

namespace fs = std::filesystem;

// The variable's value; unset and empty mean the same.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string known_names() {
  std::string names;
  for (const PulledModel& model : pulled_models()) {
    names += names.empty() ? "" : ", ";
    names += model.name;
  }
  return names;
}

}  // namespace

fs::path model_directory() {
  fs::path cache = environment("XDG_CACHE_HOME");
  // The XDG specification says to ignore a relative path.
  if (!cache.is_absolute()) cache = fs::path(environment("HOME")) / ".cache";
  return cache / "godwit" / "models";
}

Result<fs::path> resolve_model(std::string_view model) {
  std::error_code error;
  if (fs::exists(fs::path(model), error)) return fs::path(model);
  const PulledModel* known = find_pulled_model(model);
  if (known == nullptr) {
    return fail("model '{}': no such file, and not the name of a model that pull knows ({})", model,
                known_names());
  }
  fs::path path = model_directory() / known->file_name;
  if (fs::file_size(path, error) == known->bytes() && !error) return path;
  return fail("model '{}': not pulled yet; fetch it with: godwit pull {}", model, model);
}

Result<fs::path> find_model(std::string_view model, const HubOptions& hub) {
  if (hub.repo.empty()) return resolve_model(model);
  const Result<hub::FetchedModel> fetched = fetch_from_hub(hub);
  if (!fetched) return fail(fetched.error());
  return fetched->files.front().path;
}

}  // namespace godwit::apps
