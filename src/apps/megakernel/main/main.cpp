// The grader as a program of its own, with few enough libraries to be carried to a bare machine.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/megakernel/check_megakernel.h"

int main(int argc, char** argv) {
  CLI::App app("godwit_megakernel: grades and times the decode path of a backend");
  app.require_subcommand(1);
  godwit::apps::MegakernelOptions options;
  CLI::App* check = app.add_subcommand("check", "The grader; as `godwit check megakernel`");
  godwit::apps::add_megakernel_options(*check, options);
  CLI11_PARSE(app, argc, argv);
  const godwit::Status status = godwit::apps::check_megakernel(options);
  if (status) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  return 1;
}
