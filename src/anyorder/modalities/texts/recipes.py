"""The papers' whole recipes for text8: network, order, masks, objective and training, as presets.

Both rows of MAC's Table 1 that its authors trained themselves, ARDM and MAC for 3,000 epochs: they differ in their
masks and orders alone (appendix D), so that is what a comparison of the two compares. Windows have 250 characters, the
default of every fit. What the paper leaves open is from the code that MAC released, as is said beside it; where the two
disagree (that code has no warm-up, and adds up 540 windows a step), the paper is followed.

ARDM's own run differs from MAC's of it: 14,000 epochs (Table 1), and by its released code an input for the number of
known characters, a running average of the weights (0.999) and a cross-entropy term of weight 1e-4, which MAC leaves out
(appendix D).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BATCH = 512  # windows (appendix D)
EPOCHS = 3_000  # Table 1
EPOCH = 90_000  # windows: both released codes cut one at random out of every 1,000 of the 90 M training characters

_SHARED: Mapping[str, Any] = {
    "engine": "neural",
    "size": "mac",  # 12 layers, 768 dimensions, 12 heads, 3,072 dimensions in the MLP (appendix D)
    "network": {"name": "bidirectional_transformer", "dropout": 0.0},  # "no dropout" (appendix D)
    # Of the first 95 M characters of text8: 90 M to learn from and 5 M to judge by, as both released codes cut it.
    "validation_share": 5 / 95,
    "training": {
        "minutes": None,
        "steps": -(-EPOCHS * EPOCH // BATCH),
        "batch": BATCH,
        "parts": 8,  # of 64 windows; MAC's README has 180 at once on 48 GB
        "learning_rate": 5e-4,  # appendix D, as are the next two
        "warmup": 5_000,
        "clip": 0.25,
        "cool_down": 0.0,  # appendix D has a warm-up and no more; the rate is constant in both released codes
        "beta1": 0.9,  # MAC's released code, as are the next two; the paper says "AdamW"
        "beta2": 0.99,
        "weight_decay": 1e-3,
        "average": 0.0,  # MAC's released code keeps none
        "early_stopping": False,
        "validate_every": 1_000,  # ours, as are the next two: they do not change what is learned
        "validation_queries": 512,
        "checkpoint_every": 1_800.0,  # a checkpoint has 1.7 GB
    },
}

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "mac_text8": {
        **_SHARED,
        # w-MAC removes the greatest first, "e.g. lexicographical ordering" (section 3). Section 5 found a strided order
        # better for images; MAC's README has one for text8 as well, which the paper does not mention.
        "protocol": {"name": "canonical"},
        "masking": {"name": "cardinality"},  # M_card-mask (section 4.1)
        "objective": {"name": "parallel", "reweight": True},  # eq. 7: D_CR
    },
    "ardm_text8": {
        **_SHARED,
        "protocol": {"name": "random"},
        "masking": {"name": "univariate"},  # known sets of uniform size 0 .. N - 1 (ARDM eq. 4; figure 3 of MAC)
        "objective": {"name": "parallel"},
    },
}
