"""The OCR engine: rapidocr with the models inside its wheel, set up so that nothing downloads."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from ..errors import StepError
from .extras import load_package

__all__ = ["PACKAGES", "Pixels", "detect", "detector", "engine", "pixels"]

PACKAGES = ("rapidocr", "onnxruntime", "cv2")
"""The modules that the extra `ocr` brings."""

Pixels = npt.NDArray[np.uint8]
"""Height x width x 3, blue first: what the engine's models were trained on."""

_MODELS = {
    "Det.model_path": "PP-OCRv6_det_small.onnx",
    "Rec.model_path": "PP-OCRv6_rec_small.onnx",
    "Cls.model_path": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
}


def engine(step: str, **settings: Any) -> Any:
    """A `RapidOCR` on one thread, which loads each model at its first use.

    `settings` are names of rapidocr's config.yaml with `__` for the dot. Raises `MissingExtra`
    when the extra `ocr` is not installed and `StepError` when a model file is not in the wheel,
    which the engine would go and download.
    """
    # From 1.32 on, loading onnxruntime writes a device id into the home folder and sends the
    # program's path and machine to its maker; archives do not want that. Set beforehand to 0, it
    # stays so.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    package = load_package("rapidocr", step=step, extra="ocr")
    load_package("onnxruntime", step=step, extra="ocr")
    # The workers are processes, one a core: threads below them only get in each other's way.
    load_package("cv2", step=step, extra="ocr").setNumThreads(1)
    folder = Path(str(package.__file__)).parent / "models"
    params: dict[str, Any] = {
        "Global.log_level": "error",
        "Global.use_vertical_padding": False,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    for name, file in _MODELS.items():
        if not (folder / file).is_file():
            raise StepError(
                f"The step '{step}' misses the model {file} in {folder}; install rapidocr 3.10 "
                "anew: pip install --force-reinstall 'recipes-orchestration[ocr]'."
            )
        params[name] = str(folder / file)
    params |= {name.replace("__", "."): value for name, value in settings.items()}
    made = package.RapidOCR(params=params)
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return made


def detector(step: str, max_side: int) -> Any:
    """The engine's finder of lines, for pictures scaled to `max_side` pixels at most."""
    config = engine(step, Det__limit_side_len=max_side, Det__limit_type="max").cfg
    config.Det.engine_cfg = config.EngineConfig[config.Det.engine_type.value]
    return load_package("rapidocr.ch_ppocr_det", step=step, extra="ocr").TextDetector(config.Det)


def detect(model: Any, array: Pixels) -> list[tuple[list[tuple[float, float]], float]]:
    """Polygons of four corners, from the top left one clockwise, each with its confidence.

    Calls the detector's parts one by one, because its own call sorts the boxes but not their
    confidences.
    """
    prepared = model.get_preprocess()(array)
    if prepared is None:
        return []
    boxes, scores = model.postprocess_op(model.session(prepared), array.shape[:2])
    return [
        ([(float(x), float(y)) for x, y in box], float(score))
        for box, score in zip(boxes, scores, strict=True)
    ]


def pixels(image: Image.Image) -> Pixels:
    """An RGB or grey picture as the engine's array."""
    rgb = np.asarray(image if image.mode == "RGB" else image.convert("RGB"), dtype=np.uint8)
    return np.ascontiguousarray(rgb[:, :, ::-1])
