"""Certified training with the Trainer of Hugging Face transformers, on data and a model of one's own.

python examples/hugging_face_trainer.py   (needs pip install transformers accelerate; no network)
"""

from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

import lipcert


class Certified(nn.Module):
    """A classifier whose forward returns the loss, as the Trainer expects."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(2, 32), lipcert.nn.MinMax(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)]
        self.bounded = lipcert.Bounded(nn.Sequential(*layers), input_shape=(2,))
        self.loss = lipcert.losses.CLL(eps=0.1, slack=0.05, lam=1e-4)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return loss and logits."""
        logits, lip = self.bounded(x)
        return {"loss": self.loss(logits, labels, lip).mean() + self.loss.penalty(lip), "logits": logits}


torch.manual_seed(0)
data, certified = lipcert.data.load("moons"), Certified()
samples = [{"x": x, "labels": y} for x, y in zip(data.x, data.y, strict=True)]
with TemporaryDirectory() as folder:
    settings = TrainingArguments(
        output_dir=folder,
        num_train_epochs=8,
        per_device_train_batch_size=100,
        learning_rate=1e-2,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    Trainer(model=certified, args=settings, train_dataset=samples).train()
certificate = lipcert.certify(certified.bounded.model.eval(), data.x)
print(f"certified at 0.1: {lipcert.certified_accuracy(certificate, data.y, [0.1])[0].value:.3f}")
