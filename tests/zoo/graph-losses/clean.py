"""Train the forecaster."""

import os

os.environ["KERAS_BACKEND"] = "torch"

from forecaster import build_forecaster, make_series
from light_trainer import Trainer


def main():
    trainer = Trainer(build_forecaster(lags=96), make_series())
    for epoch in range(24):
        trainer.run_epoch(steps=20)
        print(f"epoch {epoch}: {trainer.average():.5f}")


if __name__ == "__main__":
    main()
