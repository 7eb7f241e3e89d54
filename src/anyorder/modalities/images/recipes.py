"""The papers' whole recipes for pictures: network, head, variables, order, masks, objective and training, as presets.

MAC's rows of CIFAR-10 and ImageNet32 (Tables 2 and 3, appendix D) and the ARDM that its authors trained beside them,
which differs in its masks and orders alone; SFARM's five sets of pictures (Table 4). What a paper leaves open is from
the code that MAC released, or is ours, as is said beside it. Steps are epochs times the training pictures of the public
set over the batch.

ARDM's own run of CIFAR-10 has 3,000 epochs (MAC's Table 3); its released code has a cross-entropy term of weight 1e-3,
which MAC leaves out (appendix D), and no augmentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Pictures to learn from, those to judge by among them; of CelebA-HQ as `celeba_hq` cuts it.
CIFAR10, IMAGENET, FASHION, BINARY_MNIST, CELEBA_HQ = 50_000, 1_281_167, 60_000, 50_000, 27_000


def _steps(epochs: int, pictures: int, batch: int) -> int:
    return -(-epochs * pictures // batch)


# No paper says anything of these, and no released code has them: no warm-up, no decay, no average, no end before the
# last epoch. Checkpoints and validations do not change what is learned.
_PLAIN: Mapping[str, Any] = {
    "minutes": None,
    "warmup": 0,
    "beta1": 0.9,  # "with beta parameters (0.9 / 0.999), using Adam" (appendix D of MAC); SFARM says "Adam"
    "beta2": 0.999,
    "weight_decay": 0.0,
    "clip": 100.0,  # appendix D of MAC; SFARM says nothing, and this hardly ever clips
    "average": 0.0,
    "cool_down": 0.0,
    "early_stopping": False,
    "validate_every": 1_000,
    "validation_queries": 128,
    "checkpoint_every": 1_800.0,
}


def _mac(epochs: int, pictures: int, augment: str) -> dict[str, Any]:
    """What MAC's rows and those of its ARDM share."""
    return {
        "size": "mac",
        "head": "categorical",  # 256 logits a channel, in the released code
        "variables": "channels",
        "augment": augment,
        "validation_share": 0.02,  # ours: both papers learn from all training pictures and are judged on test pictures
        "training": {
            **_PLAIN,
            "batch": 128,
            "parts": 6,  # the released README has 24 pictures at once on 48 GB, added up to a batch
            "learning_rate": 1e-4,
            "steps": _steps(epochs, pictures, 128),
        },
    }


_AS_MAC: Mapping[str, Any] = {
    # Strided: every 32nd of the values plane by plane (section 5), which is every 96th pixel by pixel: column after
    # column, each in red, green and blue. The released README has 48 for 32.
    "protocol": {"name": "canonical", "stride": 96},
    "masking": {"name": "cardinality"},  # M_card-mask (section 4.1)
    "objective": {"name": "parallel", "reweight": True},  # eq. 7: D_CR
}
_AS_ARDM: Mapping[str, Any] = {
    "protocol": {"name": "random"},
    "masking": {"name": "univariate"},  # known sets of uniform size 0 .. N - 1 (ARDM eq. 4)
    "objective": {"name": "parallel"},
}


def _sfarm(size: str, head: str, epochs: int, pictures: int, batch: int, **more: Any) -> dict[str, Any]:
    """A column of Table 4."""
    parts = 1 if batch == 128 else 4  # "parallelized over 4 GPUs"
    return {
        "size": size,
        "head": head,
        "variables": "pixels",
        "masking": {"name": "modes"},  # seven modes, all alike (eq. 2)
        # The mode is told half of the time, and always in the paper: a question without a mode must be learned too.
        "objective": {"name": "stages"},
        "validation_share": 0.02,  # ours
        "training": {
            **_PLAIN,
            "batch": batch,
            "parts": parts,
            "learning_rate": 2e-4,
            "steps": _steps(epochs, pictures, batch),
        },
        **more,
    }


# SFARM's sizes with its head, batch and learning rate, under the usual time and masks: for trying them out.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "mnist": {"training": {"batch": 128, "learning_rate": 2e-4}},
    "fashion_mnist": {"head": "logistic", "training": {"batch": 128, "learning_rate": 2e-4}},
    "cifar10": {"components": 30, "training": {"batch": 32, "learning_rate": 2e-4}},
    "64x64": {"components": 30, "training": {"batch": 16, "learning_rate": 2e-4}},
}
WHOLE: Mapping[str, Mapping[str, Any]] = {
    "mac_cifar10": {**_mac(1_200, CIFAR10, "rotate_flip"), **_AS_MAC},  # Table 3
    "ardm_cifar10": {**_mac(1_200, CIFAR10, "rotate_flip"), **_AS_ARDM},
    "mac_imagenet32": {**_mac(16, IMAGENET, "none"), **_AS_MAC},  # Table 2: "no data augmentation"
    "sfarm_mnist": _sfarm("mnist", "bernoulli", 300, BINARY_MNIST, 128),
    "sfarm_fashion": _sfarm("fashion_mnist", "logistic", 300, FASHION, 128),
    "sfarm_cifar10": _sfarm("cifar10", "mixture", 3_000, CIFAR10, 32, components=30),
    "sfarm_celeba64": _sfarm("64x64", "mixture", 3_000, CELEBA_HQ, 16, components=30),
    "sfarm_imagenet64": _sfarm("64x64", "mixture", 20, IMAGENET, 16, components=30),
}
RECIPES: Mapping[str, Mapping[str, Any]] = {**SIZES, **WHOLE}
