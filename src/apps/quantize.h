// `godwit quantize`: writes a GGUF model with smaller types, with the arguments of llama.cpp's
// quantize. What it decides and does is in quantize_model.h.
#pragma once

namespace CLI {
class App;
}

namespace godwit::apps {

void add_quantize_command(CLI::App& app);

}  // namespace godwit::apps
