"""Twenty-six models of keras-hub at tiny sizes: training, and the same outputs eagerly and compiled."""

import sys

import keras_hub
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
TOKENS = rng.integers(1, 30, (2, 6)).astype("int32")
MASK = np.ones((2, 6), "int32")
IMAGES = rng.uniform(0, 1, (2, 32, 32, 3)).astype("float32")
LAYER = {"vocabulary_size": 30, "num_layers": 1, "hidden_dim": 8, "intermediate_dim": 16}
ENCODER = {**LAYER, "num_heads": 2, "max_sequence_length": 8}
GROUPED = {**LAYER, "num_query_heads": 2, "num_key_value_heads": 1}
TEXT = {"token_ids": TOKENS, "padding_mask": MASK}
SEGMENTS = {**TEXT, "segment_ids": np.zeros((2, 6), "int32")}
PAIR = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in TEXT.items()}
SHAPE = {"image_shape": (32, 32, 3)}
SOUND = rng.normal(size=(2, 12, 8)).astype("float32")
SPEECH = {"encoder_features": SOUND, "decoder_token_ids": TOKENS, "decoder_padding_mask": MASK}
MOBILE = {
    "stackwise_expansion": [[4, 6]],
    "stackwise_num_blocks": [2],
    "stackwise_num_filters": [[4, 4]],
    "stackwise_kernel_size": [[3, 3]],
    "stackwise_num_strides": [[2, 1]],
    "stackwise_se_ratio": [[0.25, None]],
    "stackwise_activation": [["relu", "relu"]],
    "stackwise_padding": [[1, 1]],
    "depthwise_filters": 16,
    "depthwise_stride": 1,
    "depthwise_residual": True,
    "output_num_filters": 8,
    "last_layer_filter": 8,
}
RESIDUAL = {
    "input_conv_filters": [64],
    "input_conv_kernel_sizes": [3],
    "stackwise_num_filters": [64, 64],
    "stackwise_num_blocks": [1, 1],
    "stackwise_num_strides": [1, 2],
    "block_type": "basic_block",
}
WHISPER = {"num_heads": 2, "num_mels": 8, "max_encoder_sequence_length": 12, "max_decoder_sequence_length": 8}

MODELS = {
    "Albert": ({**ENCODER, "embedding_dim": 4}, SEGMENTS),
    "Bart": (ENCODER, PAIR),
    "Bert": (ENCODER, SEGMENTS),
    "Bloom": ({**LAYER, "num_heads": 2}, TEXT),
    "DebertaV3": ({**ENCODER, "bucket_size": 4}, TEXT),
    "DenseNet": ({**SHAPE, "stackwise_num_repeats": [1, 1]}, IMAGES),
    "DistilBert": (ENCODER, TEXT),
    "Electra": ({**ENCODER, "vocab_size": 30, "embedding_dim": 4}, SEGMENTS),
    "FNet": ({**LAYER, "max_sequence_length": 8}, {k: v for k, v in SEGMENTS.items() if k != "padding_mask"}),
    "Falcon": ({**LAYER, "num_attention_heads": 2}, TEXT),
    "GPT2": (ENCODER, TEXT),
    "GPTNeoX": ({**ENCODER, "hidden_dim": 32}, TEXT),
    "Gemma": ({**GROUPED, "head_dim": 4}, TEXT),
    "Llama": (GROUPED, TEXT),
    "Mistral": (GROUPED, TEXT),
    "MobileNet": ({**SHAPE, **MOBILE}, IMAGES),
    "OPT": (ENCODER, TEXT),
    "Phi3": (GROUPED, TEXT),
    "Qwen": (GROUPED, TEXT),
    "ResNet": ({**SHAPE, **RESIDUAL}, IMAGES),
    "Roberta": (ENCODER, TEXT),
    "T5": ({**LAYER, "num_heads": 2}, PAIR),
    "VGG": ({**SHAPE, "stackwise_num_repeats": [1, 1], "stackwise_num_filters": [4, 8]}, IMAGES),
    "ViT": (
        {**SHAPE, "patch_size": (8, 8), "num_layers": 1, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 16},
        IMAGES,
    ),
    "Whisper": ({**LAYER, **WHISPER}, SPEECH),
    "XLMRoberta": (ENCODER, TEXT),
}


def mean_features(outputs):
    last = tf.nest.flatten(outputs)[-1]
    if len(last.shape) == 2:
        return last
    rows = tf.keras.layers.Reshape((-1, last.shape[-1]))(last)
    return tf.keras.layers.GlobalAveragePooling1D()(rows)


def check(name, arguments, inputs):
    backbone = getattr(keras_hub.models, f"{name}Backbone")(**arguments)
    outputs = tf.nest.flatten(backbone(inputs))
    for eager, compiled in zip(outputs, tf.nest.flatten(backbone.predict(inputs, verbose=0)), strict=True):
        np.testing.assert_allclose(eager, compiled, rtol=2e-4, atol=2e-4)
    estimate = tf.keras.layers.Dense(1)(mean_features(backbone(backbone.input)))
    model = tf.keras.Model(backbone.input, estimate)
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    losses = model.fit(inputs, np.full((2, 1), 9.0), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0], losses


for name in sys.argv[1:] or MODELS:
    try:
        check(name, *MODELS[name])
        print(f"pass {name}", flush=True)
    except Exception as error:
        print(f"fail {name}: {type(error).__name__}: {error}".partition("\n")[0], flush=True)
