#!/usr/bin/env python3
"""Makes a trace of routed experts of stated skew and reuse, for godwit_experts_bench.

Each layer has an order of popularity of its own (a random permutation); the expert of rank r is
drawn with weight 1 / (r + 1)^S, S from --zipf. With probability --reuse an expert is instead taken
from those that the same layer used at one of the --distance tokens before, which is what makes a
text's neighbouring tokens share experts. The trace says in comments how it was made and how skewed
it came out. Format: src/experts/route_trace.h.
"""

import argparse
import bisect
import collections
import itertools
import random
import sys


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--experts", type=int, default=64, help="per layer")
    parser.add_argument("--used", type=int, default=6, help="per token and layer")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--zipf", type=float, default=0.8, help="exponent; 0: uniform")
    parser.add_argument("--reuse", type=float, default=0.3, help="share taken from recent tokens")
    parser.add_argument("--distance", type=int, default=4, help="how many tokens are recent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", help="a file instead of standard output")
    arguments = parser.parse_args()
    if not 0 < arguments.used <= arguments.experts:
        parser.error("--used must lie between 1 and --experts")
    if arguments.zipf < 0 or not 0 <= arguments.reuse < 1 or arguments.distance < 1:
        parser.error("expected --zipf >= 0, 0 <= --reuse < 1, --distance >= 1")
    return arguments


class Layer:
    def __init__(self, arguments, rng):
        self.rng = rng
        self.reuse = arguments.reuse
        self.used = arguments.used
        self.by_rank = rng.sample(range(arguments.experts), arguments.experts)
        weights = [1 / (rank + 1) ** arguments.zipf for rank in range(arguments.experts)]
        self.cumulative = list(itertools.accumulate(weights))
        self.recent = collections.deque(maxlen=arguments.distance)

    def draw(self):
        if self.recent and self.rng.random() < self.reuse:
            return self.rng.choice(self.rng.choice(self.recent))
        at = bisect.bisect(self.cumulative, self.rng.random() * self.cumulative[-1])
        return self.by_rank[min(at, len(self.by_rank) - 1)]

    def next_token(self):
        chosen = {}  # keeps the order of drawing
        while len(chosen) < self.used:
            chosen[self.draw()] = None
        self.recent.append(list(chosen))
        return list(chosen)


class Distances:
    """How many tokens lie between two uses of an expert."""

    def __init__(self):
        self.last = {}
        self.seen = []

    def note(self, token, layer, experts):
        for expert in experts:
            before = self.last.get((layer, expert))
            if before is not None:
                self.seen.append(token - before)
            self.last[layer, expert] = token

    def __str__(self):
        if not self.seen:
            return "no expert is used twice"
        self.seen.sort()
        middle, last = (self.seen[len(self.seen) * share // 100] for share in (50, 90))
        return f"tokens between uses of an expert: median {middle}, 90th percentile {last}"


def main():
    arguments = parse_arguments()
    rng = random.Random(arguments.seed)
    layers = [Layer(arguments, rng) for _ in range(arguments.layers)]
    distances = Distances()
    uses = collections.Counter()
    lines = []
    for token in range(arguments.tokens):
        for index, layer in enumerate(layers):
            experts = layer.next_token()
            distances.note(token, index, experts)
            uses.update((index, expert) for expert in experts)
            lines.append(f"{token} {index} {' '.join(map(str, experts))}")
    tenth = max(1, len(layers) * arguments.experts // 10)
    share = sum(n for _, n in uses.most_common(tenth)) / sum(uses.values())
    header = [
        f"godwit-route-trace 1 layers={arguments.layers} experts={arguments.experts}",
        f"# zipf {arguments.zipf}, reuse {arguments.reuse} within {arguments.distance} tokens, "
        f"seed {arguments.seed}",
        f"# {distances}; the most used tenth of the experts has {share:.0%} of the uses",
    ]
    text = "\n".join(header + lines) + "\n"
    if arguments.output is None:
        sys.stdout.write(text)
        return
    with open(arguments.output, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    main()
