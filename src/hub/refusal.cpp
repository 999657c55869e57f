#include "hub/refusal.h"

namespace godwit::hub {

Error explain(const net::Failure& failure, const HubSettings& settings, const std::string& repo) {
  if (failure.stopped) return {"interrupted"};
  const std::string page = settings.endpoint + "/" + repo;
  const bool refused = failure.status == 401 || failure.status == 403;
  const auto told = [&](const std::string& what) {
    return Error{fmt::format("{}: {} ({})", repo, what, net::status_text(failure.status))};
  };
  if (failure.status == 404 || failure.error_code == "RepoNotFound") {
    const std::string token = settings.token.empty() ? "; a private one needs HF_TOKEN" : "";
    return told("there is no such repository or file at " + page + token);
  }
  // The Hub answers 401 for what does not exist, too, so that nobody can ask for private names.
  if (refused && settings.token.empty()) {
    const bool gated = failure.error_code == "GatedRepo";
    return told(fmt::format("{} a token: {}accept the licence at {}, then set HF_TOKEN",
                            gated ? "needs" : "there is no such repository, or it needs",
                            gated ? "" : "check the name, ", page));
  }
  if (failure.status == 403 || failure.error_code == "GatedRepo") {
    return told(
        fmt::format("the token has no access: accept the licence at {} with the account "
                    "that the token belongs to",
                    page));
  }
  if (refused) return told("the Hub does not accept the token; is HF_TOKEN right?");
  return Error{failure.error}.with(repo);
}

}  // namespace godwit::hub
