"""Entry point: python leaking.py --levels 18."""

import argparse

from curriculum import Curriculum
from network import compile_network


def run(levels, batch):
    model = compile_network()
    for level in range(levels):
        dataset = Curriculum(batch).dataset_for(level)
        result = model.fit(dataset, epochs=6, verbose=0)
        print(f"level {level:2d} loss {result.history['loss'][-1]:.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--levels", type=int, default=18)
    cli.add_argument("--batch", type=int, default=128)
    options = cli.parse_args()
    run(options.levels, options.batch)
