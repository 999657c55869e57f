// The grader and the timing of the decode path as a program of its own, with few enough libraries
// to be carried to a bare machine. scripts/device-check is who runs it.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/megakernel/check_megakernel.h"
#include "apps/megakernel/check_shapes.h"
#include "apps/megakernel/time_decode.h"

namespace apps = godwit::apps;

int main(int argc, char** argv) {
  CLI::App app("godwit_megakernel: grades and times the decode path of a backend");
  app.require_subcommand(1);
  apps::MegakernelOptions megakernel;
  apps::ShapesOptions shapes;
  apps::TimeOptions time;
  CLI::App* check = app.add_subcommand("check", "The grader; as `godwit check megakernel`");
  apps::add_megakernel_options(*check, megakernel);
  CLI::App* shape = app.add_subcommand("shapes", "Model shapes against double precision");
  apps::add_shapes_options(*shape, shapes);
  apps::add_time_options(*app.add_subcommand("time", "Microseconds per token"), time);
  CLI11_PARSE(app, argc, argv);
  const godwit::Status status = check->parsed()   ? apps::check_megakernel(megakernel)
                                : shape->parsed() ? apps::check_shapes(shapes)
                                                  : apps::time_decode(time);
  if (status) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  return 1;
}
