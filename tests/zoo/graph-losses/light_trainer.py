"""The loop, with losses as numbers."""

import torch


class Trainer:
    """Draws windows of a series and fits a Keras model with torch."""

    def __init__(self, model, series, lags=96):
        self.model = model
        self.windows = torch.from_numpy(series).unfold(0, lags + 1, 1)
        self.optimizer = torch.optim.Adam([v.value for v in model.trainable_variables], lr=1e-3)
        self.losses = []

    def run_epoch(self, steps):
        """Train on a number of random batches."""
        for _ in range(steps):
            window = self.windows[torch.randint(len(self.windows), (256,))]
            prediction = self.model(window[:, :-1])
            loss = torch.nn.functional.huber_loss(prediction, window[:, -1:])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())

    def average(self):
        """Return the mean loss of the whole run."""
        return sum(self.losses) / len(self.losses)
