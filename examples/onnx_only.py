"""Classify with an exported model, without torch and without lipcert: onnxruntime, numpy and pillow.

    lipcert export cifar10-4c3f-cll model.onnx
    python examples/onnx_only.py model.onnx photo.png

Without an image, random inputs are classified.
"""

import json
import sys

import numpy as np
import onnxruntime


def main(model: str, *images: str) -> None:
    """Print one line per image."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    facts = session.get_modelmeta().custom_metadata_map
    shape = json.loads(facts["input_shape"])
    names = json.loads(facts.get("classes", "[]"))
    kind = np.float32 if facts["rounding"] == "float32" else np.float64
    x = np.stack([pixels(image, shape) for image in images]) if images else np.random.rand(4, *shape)
    logits, classes, radii = session.run(["logits", "class", "radius"], {"x": x.astype(kind)})
    for logit, label, radius in zip(logits, classes, radii, strict=True):
        name = names[label] if names else label
        print(
            f"class {name}, certified for every change of L2 norm below {radius:.4f}; logit {logit.max():.3f}"
        )


def pixels(path: str, shape: list[int]) -> np.ndarray:
    """(C, H, W), from 0 to 1, as in training."""
    from PIL import Image, ImageOps

    channels, height, width = shape
    image = ImageOps.exif_transpose(Image.open(path)).convert("L" if channels == 1 else "RGB")
    values = np.atleast_3d(np.asarray(image.resize((width, height), Image.Resampling.BILINEAR)))
    return values.transpose(2, 0, 1).astype(np.float32) / np.float32(255)


if __name__ == "__main__":
    main(*sys.argv[1:])
