#include "apps/hub_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/progress.h"

namespace godwit::apps {
namespace {

constexpr size_t kLabelColumns = 20;  // with bar, speed and time left: 80

void say(std::string_view line) { std::fprintf(stderr, "hub: %s\n", one_line(line).c_str()); }

// The end of a long name tells more than its beginning.
std::string short_label(std::string_view name) {
  if (name.size() <= kLabelColumns) return one_line(name);
  return "..." + one_line(name.substr(name.size() - kLabelColumns + 3));
}

// One bar after another: each label gets its own, and one that goes back begins again.
class Bars {
 public:
  void update(std::string_view label, uint64_t done, uint64_t total) {
    if (!bar_ || label != label_ || done < done_) {
      bar_.reset();  // ends its line first
      bar_ = std::make_unique<Progress>(short_label(label), total);
      bar_->start_at(done);
      label_ = label;
    }
    done_ = done;
    bar_->update(done);
  }
  // A remark must not end up in the middle of a bar.
  void interrupt() { bar_.reset(); }

 private:
  std::unique_ptr<Progress> bar_;
  std::string label_;
  uint64_t done_ = 0;
};

}  // namespace

void add_hub_options(CLI::App& command, HubOptions& options) {
  command.add_option("--hf-repo", options.repo,
                     "(-hf) Hugging Face repository ORG/NAME[:QUANT], fetched if it is not here; "
                     "QUANT: Q4_K_M unless given");
  command.add_option("--hf-file", options.file,
                     "(-hff) A file of that repository, in place of QUANT");
  command.add_option("--hf-token", options.flags.token,
                     "(-hft) Access token; without: HF_TOKEN, or what `hf auth login` has stored");
  command.add_flag("--offline", options.flags.offline, "Take cached files only, use no network");
}

Result<hub::FetchedModel> fetch_from_hub(const HubOptions& options) {
  Result<hub::ModelReference> reference = hub::parse_reference(options.repo);
  if (!reference) return fail(std::move(reference.error()).with("--hf-repo"));
  const Result<hub::HubSettings> settings =
      hub::hub_settings(options.flags, hub::process_environment);
  if (!settings) return fail(settings.error());
  const InterruptGuard guard;
  Bars bars;
  const hub::FetchWatch watch{.net = {.note =
                                          [&](std::string_view line) {
                                            bars.interrupt();
                                            say(line);
                                          },
                                      .stopped = InterruptGuard::interrupted},
                              .progress = [&](std::string_view label, uint64_t done,
                                              uint64_t total) { bars.update(label, done, total); }};
  Result<hub::FetchedModel> model = hub::fetch_model(
      *settings, {.reference = *std::move(reference), .file = options.file}, watch);
  bars.interrupt();
  if (!model && InterruptGuard::interrupted()) {
    say("interrupted; what has arrived is kept, and the same command goes on from there");
    throw CLI::RuntimeError(130);
  }
  return model;
}

}  // namespace godwit::apps
