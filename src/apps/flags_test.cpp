#include "apps/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <map>

#include "apps/bench/bench.h"
#include "apps/bench/decode.h"
#include "apps/bench/kernel.h"
#include "apps/bench/prefill.h"
#include "apps/chat.h"
#include "apps/check/check.h"
#include "apps/info.h"
#include "apps/logits.h"
#include "apps/pull.h"
#include "apps/run.h"
#include "apps/synth.h"
#include "apps/tokenize.h"

namespace godwit::apps {
namespace {

using Arguments = std::vector<std::string>;

// A command with flags of every kind, and what parsing left in them.
struct Example {
  Example() {
    CLI::App* command = app.add_subcommand("run", "");
    command->add_option("-m,--model", model, "");
    command->add_option("-p,--prompt", prompt, "");
    command->add_option("-f,--file", file, "")->excludes("--prompt");
    command->add_option("-n,--predict,--n-predict", n, "");
    command->add_option("-t,--threads", n_threads, "");
    command->add_option("--ubatch-size", chunk, "");
    command->add_option("--temp", temperature, "");
    command->add_option("-r,--stop", stops, "");
    command->add_option("-d,--depth", depths, "")->delimiter(',');
    command->add_option("--cache-type-k", k_type, "");
    command->add_flag("--json", json, "");
    command->add_flag("-v,--verbose", verbosity, "");
    command->add_flag("-e,--escape,!--no-escape", escape, "");
    app.require_subcommand(1);
    settle_flags(app);
  }

  // Empty when all went well, otherwise the one line of the error.
  std::string parse(const Arguments& arguments) {
    const Result<CommandLine> line = spell_out_flags(app, arguments);
    if (!line) return line.error().message;
    try {
      app.parse(Arguments(line->arguments.rbegin(), line->arguments.rend()));
    } catch (const CLI::ParseError& error) {
      return explain_usage_error(app, error, *line);
    }
    return "";
  }

  CLI::App app{"test"};
  std::string model, prompt, file, k_type;
  int64_t n = -1;
  size_t n_threads = 0, chunk = 0;
  float temperature = 0;
  Arguments stops;
  std::vector<size_t> depths;
  bool json = false, escape = true;
  int verbosity = 0;
};

struct Variable {
  std::string name;
  std::string value;
};

// Sets variables for one test.
class Environment {
 public:
  Environment(std::initializer_list<Variable> variables) : variables_(variables) {
    for (const Variable& v : variables_) setenv(v.name.c_str(), v.value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const Variable& v : variables_) unsetenv(v.name.c_str());
  }

 private:
  std::vector<Variable> variables_;
};

TEST(Flags, ShortFormsOfSeveralLettersAreLongForms) {
  Example x;
  EXPECT_EQ(x.parse({"run", "-ctk", "f32", "-ub", "64"}), "");
  EXPECT_EQ(x.k_type, "f32");
  EXPECT_EQ(x.chunk, 64u);
}

TEST(Flags, AValueIsNeverAFlag) {
  for (const char* text : {"-5 apples", "-ngl", "--json", "-ctk", "--", "-", "[a]", "\"q\"", "-p",
                           "", "a=b", "--unknown=5"}) {
    Example x;
    EXPECT_EQ(x.parse({"run", "-p", text, "-n", "3"}), "") << text;
    EXPECT_EQ(x.prompt, text);
    EXPECT_EQ(x.n, 3);
    EXPECT_FALSE(x.json);
    Example y;
    EXPECT_EQ(y.parse({"run", "-r", text, "--stop", "more", "-n", "-1"}), "") << text;
    EXPECT_EQ(y.stops, (Arguments{text, "more"}));
  }
}

TEST(Flags, EqualsSignsJoinNameAndValue) {
  Example x;
  EXPECT_EQ(x.parse({"run", "--prompt=a=b", "--temp=-1.5", "--depth=1,2", "-d", "3"}), "");
  EXPECT_EQ(x.prompt, "a=b");
  EXPECT_EQ(x.temperature, -1.5f);
  EXPECT_EQ(x.depths, (std::vector<size_t>{1, 2, 3}));
}

TEST(Flags, OfARepeatedFlagTheLastCounts) {
  Example x;
  EXPECT_EQ(x.parse({"run", "-n", "3", "--predict", "4", "--n-predict", "5"}), "");
  EXPECT_EQ(x.n, 5);
}

TEST(Flags, ListFlagsTakeOneValueEach) {
  Example x;
  EXPECT_NE(x.parse({"run", "-r", "a", "b"}), "");
}

TEST(Flags, ClustersOfSwitchesAndAttachedNumbers) {
  Example x;
  EXPECT_EQ(x.parse({"run", "-vv", "-n64"}), "");
  EXPECT_EQ(x.verbosity, 2);
  EXPECT_EQ(x.n, 64);
}

TEST(Flags, UpstreamFlagsWithoutEffectAreDroppedWithTheirValues) {
  for (const Arguments& dropped : {Arguments{"-ngl", "99"},
                                   {"-ngl", "-1"},
                                   {"--gpu-layers=all"},
                                   {"-fa"},
                                   {"-fa", "on"},
                                   {"-fa", "0,1"},
                                   {"--no-mmap"},
                                   {"-b", "512", "--no-mmap"},
                                   {"--jinja"}}) {
    Example x;
    Arguments all = {"run"};
    all.insert(all.end(), dropped.begin(), dropped.end());
    all.insert(all.end(), {"-p", "hello"});
    EXPECT_EQ(x.parse(all), "") << dropped.front();
    EXPECT_EQ(x.prompt, "hello");
    all.assign({"run", "-p", "hello"});
    all.insert(all.end(), dropped.begin(), dropped.end());
    Example y;
    EXPECT_EQ(y.parse(all), "") << dropped.front();
  }
}

TEST(Flags, UpstreamFlagsThatWouldChangeResultsAreNotDropped) {
  for (const char* flag : {"--rope-scale", "--lora", "--grammar", "--override-kv"}) {
    Example x;
    EXPECT_NE(x.parse({"run", flag, "x"}), "") << flag;
  }
}

TEST(Flags, UnknownOnesNameTheNearest) {
  const std::map<std::string, std::string> cases = {{"--temperatur", "--temp"},
                                                    {"--modle", "--model"},
                                                    {"-cvk", "-ctk"},
                                                    {"-pq", "-p"},
                                                    {"--jsn=1", "--json"}};
  for (const auto& [wrong, near] : cases) {
    Example x;
    const std::string message = x.parse({"run", wrong});
    EXPECT_NE(message.find("'" + wrong.substr(0, wrong.find('=')) + "'"), std::string::npos);
    EXPECT_NE(message.find("the nearest is " + near + ";"), std::string::npos) << message;
  }
  EXPECT_NE(Example().parse({"rnu"}).find("the nearest is run;"), std::string::npos);
}

TEST(Flags, WholeNumbersAreWhatTheyLookLike) {
  for (const char* text :
       {"-1", "18446744073709551616", "0x10", "010", "1e3", "5x", "", "+5", " 5"}) {
    Example x;
    EXPECT_NE(x.parse({"run", "-t", text}), "") << text;
  }
  Example x;
  EXPECT_EQ(x.parse({"run", "-t", "18446744073709551615", "-n", "-7"}), "");
  EXPECT_EQ(x.n_threads, 18446744073709551615u);
  EXPECT_EQ(x.n, -7);
}

TEST(FlagTwins, OwnNameBeatsUpstreamsAndAFlagBeatsBoth) {
  const Environment environment{{"GODWIT_THREADS", "3"}, {"LLAMA_ARG_THREADS", "4"}};
  Example x;
  EXPECT_EQ(x.parse({"run"}), "");
  EXPECT_EQ(x.n_threads, 3u);
  Example y;
  EXPECT_EQ(y.parse({"run", "-t", "5"}), "");
  EXPECT_EQ(y.n_threads, 5u);
  Example z;
  EXPECT_EQ(z.parse({"run", "-t6"}), "");
  EXPECT_EQ(z.n_threads, 6u);
}

TEST(FlagTwins, EveryLongFormHasOne) {
  for (const char* name : {"GODWIT_PREDICT", "GODWIT_N_PREDICT", "LLAMA_ARG_N_PREDICT"}) {
    const Environment environment{{name, "17"}};
    Example x;
    EXPECT_EQ(x.parse({"run"}), "");
    EXPECT_EQ(x.n, 17) << name;
  }
  const Environment environment{{"LLAMA_ARG_UBATCH", "18"}};
  Example x;
  EXPECT_EQ(x.parse({"run"}), "");
  EXPECT_EQ(x.chunk, 18u);
}

TEST(FlagTwins, SwitchesTakeTruthValues) {
  for (const auto& [value, expected] : std::map<std::string, bool>{
           {"1", true}, {"true", true}, {"on", true}, {"0", false}, {"off", false}, {"", false}}) {
    const Environment environment{{"GODWIT_JSON", value}};
    Example x;
    EXPECT_EQ(x.parse({"run"}), "");
    EXPECT_EQ(x.json, expected) << value;
  }
  const Environment environment{{"GODWIT_NO_ESCAPE", "1"}};
  Example x;
  EXPECT_EQ(x.parse({"run"}), "");
  EXPECT_FALSE(x.escape);
}

TEST(FlagTwins, AFlagBeatsTheTwinOfWhatItExcludes) {
  const Environment environment{{"GODWIT_FILE", "from-environment"}};
  Example x;
  EXPECT_EQ(x.parse({"run", "-p", "hello"}), "");
  EXPECT_EQ(x.file, "");
  EXPECT_EQ(Example().parse({"run"}), "");
}

TEST(FlagTwins, AListFlagReplacesItsTwin) {
  const Environment environment{{"GODWIT_STOP", "twin"}};
  Example x;
  EXPECT_EQ(x.parse({"run", "-r", "flag"}), "");
  EXPECT_EQ(x.stops, Arguments{"flag"});
  Example y;
  EXPECT_EQ(y.parse({"run"}), "");
  EXPECT_EQ(y.stops, Arguments{"twin"});
}

TEST(FlagTwins, TheVariableIsNamedWhenItsValueIsRefused) {
  const Environment environment{{"LLAMA_ARG_THREADS", "many"}};
  const std::string message = Example().parse({"run"});
  EXPECT_NE(message.find("LLAMA_ARG_THREADS"), std::string::npos) << message;
}

// Of the real commands: what the twins and the walk over the arguments rely on.
TEST(Flags, EveryCommandsFlagsHaveALongFormAndHelpWithAnExample) {
  CLI::App app("test");
  add_run_command(app);
  add_chat_command(app);
  add_info_command(app);
  add_tokenize_command(app);
  add_bench_command(app);
  add_bench_decode_command(app);
  add_bench_kernel_command(app);
  add_bench_prefill_command(app);
  add_check_command(app);
  add_logits_command(app);
  add_synth_command(app);
  add_pull_command(app);
  settle_flags(app);
  for (const CLI::App* command : app.get_subcommands({})) {
    EXPECT_NE(command->help().find("Example"), std::string::npos) << command->get_name();
    std::string words = command->get_name();
    std::ranges::replace(words, '-', ' ');
    EXPECT_NE(command->help().find("godwit " + words), std::string::npos) << words;
    for (const CLI::Option* option : command->get_options()) {
      if (!option->nonpositional()) continue;
      EXPECT_FALSE(option->get_lnames().empty()) << option->get_name();
      EXPECT_TRUE(option->get_envname().empty()) << "twins come from one place";
      EXPECT_FALSE(option->get_description().empty()) << option->get_name();
    }
  }
}

}  // namespace
}  // namespace godwit::apps
