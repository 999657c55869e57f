// `godwit synth`: writes a synthetic GGUF model of a named or given shape, with random weights of
// any type Godwit computes with. What it writes is in synth_model.h.
#pragma once

namespace CLI {
class App;
}

namespace godwit::apps {

void add_synth_command(CLI::App& app);

}  // namespace godwit::apps
