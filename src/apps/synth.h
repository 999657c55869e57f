// `godwit synth`: writes a synthetic GGUF model of a named or given shape, with random weights of
// any type Godwit computes with. What it writes is in synth_model.h.
#pragma once

#include <string_view>

#include "apps/synth_model.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace godwit::apps {

// "ffn_down=q6_k", the value of --tensor-type. Errors: no '=', no pattern, an unknown type.
[[nodiscard]] Result<TypeRule> parse_type_rule(std::string_view text);

void add_synth_command(CLI::App& app);

}  // namespace godwit::apps
