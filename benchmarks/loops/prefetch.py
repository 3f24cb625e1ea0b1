# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What fetching the weights of sparse logistic regression takes over a simulated link.

    .venv/bin/python benchmarks/loops/prefetch.py [--samples N] [--features N] [--nonzeros N]

Sizes are those of KDD 2010's algebra set, smaller; a link of 100 us and 1 Gbit/s. The slices are
run and timed here, the link is simulated (docs/loops.md).
"""

import argparse

import numpy as np

import baechi
from baechi.loops import applications, data
from baechi.loops.prefetch import Link


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=2_000_000)
    parser.add_argument("--nonzeros", type=int, default=36)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--entries", type=int, default=1_000, help="of a block")
    options = parser.parse_args()
    samples, _ = data.samples(options.samples, options.features, options.nonzeros)
    loop = baechi.foreach(
        applications.regress,
        workers=options.workers,
        buffered=["weights"],
        exchanges=max(1, options.samples // options.workers // options.entries),
    )
    found = loop.prefetch(samples, np.zeros(options.features, np.float32))
    link = Link(latency=100e-6, bytes_per_second=1e9 / 8)
    reads = sum(one.reads for one in found.blocks)
    rows = sum(len(one.rows["weights"]) for one in found.blocks)
    print(f"{len(found.blocks)} blocks, {reads} reads of {rows} weights, each once a block")
    single = found.element_by_element(link)
    bulk, cached = found.in_bulk(link), found.in_bulk(link, cached=True)
    print(f"element by element {single:9.3f} s a pass")
    print(f"in bulk            {bulk:9.3f} s, {single / bulk:6.0f} times fewer")
    print(f"cached             {cached:9.3f} s, {bulk / cached:6.2f} times fewer than that")


if __name__ == "__main__":
    main()
