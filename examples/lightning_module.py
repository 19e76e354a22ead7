"""Certified training in a LightningModule; the Trainer brings loops, devices, logs and checkpoints.

python examples/lightning_module.py   (needs pip install pytorch-lightning)
"""

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn

import lipcert


class Certified(lightning.LightningModule):
    """A classifier, its bounds and its loss."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(2, 32), lipcert.nn.MinMax(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)]
        self.bounded = lipcert.Bounded(nn.Sequential(*layers), input_shape=(2,))
        self.loss = lipcert.losses.CLL(eps=0.1, slack=0.05, lam=1e-4)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss of a batch; in training mode `Bounded` also improves its estimates."""
        logits, lip = self.bounded(batch[0])
        return self.loss(logits, batch[1], lip).mean() + self.loss.penalty(lip)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam for all weights."""
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(0, verbose=False)
data = lipcert.data.load("moons")
samples = torch.utils.data.TensorDataset(data.x, data.y)
batches = torch.utils.data.DataLoader(samples, batch_size=100, shuffle=True)
quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
plain = {"accelerator": "cpu", "enable_checkpointing": False}
certified = Certified()
lightning.Trainer(max_epochs=15, **plain, **quiet).fit(certified, batches)
certificate = lipcert.certify(certified.bounded.model.eval(), data.x)
print(f"certified at 0.1: {lipcert.certified_accuracy(certificate, data.y, [0.1])[0].value:.3f}")
