// The fixtures of tests/fixtures/chat, which jinja2 rendered, for the tests of this room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/template.h"

namespace godwit::chat {

using OrderedJson = nlohmann::ordered_json;

// The models' fixtures: {"model", "template", "bos_token", "eos_token", "cases": [...]}, a case
// being a conversation of conversations.json with its "expected" or "error".
std::vector<OrderedJson> model_fixtures();
// {"variables", "cases": [{"template", "expected" or "error"}]}.
OrderedJson language_fixture();

// The input of a model fixture's case.
RenderInput render_input(const OrderedJson& fixture, const OrderedJson& conversation);

// 2024-07-26 13:34:56 UTC, which the fixtures took for now.
inline constexpr std::int64_t kFixtureTime = 1722000896;

// Parses and renders; errors of both come back as "error: ...".
std::string rendered(const std::string& source, const RenderInput& input);

}  // namespace godwit::chat
