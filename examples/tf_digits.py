"""A TensorFlow 1 style script on TensorFlow 2: a network learns to read digits, is saved, and is restored.

    python examples/tf_digits.py                                    train; everything goes to runs/tf_digits
    python examples/tf_digits.py --restore runs/tf_digits           read the test digits with the saved graph

Needs tensorflow and scikit-learn, which brings 1,797 digits of 8 x 8 pixels.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
import tensorflow
from sklearn.datasets import load_digits

from spinstat.utils.logx import EpochLogger, restore_tf_graph

tf = tensorflow.compat.v1
tf.disable_eager_execution()

PIXELS, DIGITS = 64, 10
TEST_FROM = 1500  # the digits from here on are not trained on


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images, shape (1797, 64), between 0 and 1; and which digits they are."""
    images, labels = load_digits(return_X_y=True)
    return images.astype(np.float32) / 16.0, labels.astype(np.int32)


def dense(x: Any, units: int, name: str) -> Any:
    """A layer, its weights by Glorot and Bengio 2010; TensorFlow 2 has no tf.layers any more."""
    inputs = int(x.shape[1])
    limit = float(np.sqrt(6.0 / (inputs + units)))
    kernel = tf.get_variable(f"{name}_kernel", initializer=tf.random_uniform((inputs, units), -limit, limit))
    bias = tf.get_variable(f"{name}_bias", initializer=tf.zeros((units,)))
    return tf.matmul(x, kernel) + bias


def train(
    steps_per_epoch: int = 100,
    epochs: int = 5,
    hidden_size: int = 64,
    lr: float = 3e-3,
    seed: int = 0,
    logger_kwargs: dict[str, Any] | None = None,
) -> None:
    """Train, and save the graph after each epoch.

    Args:
        steps_per_epoch: gradient steps, on 32 digits each.
        epochs: how many.
        hidden_size: width of the hidden layer.
        lr: Adam's step size.
        seed: of the weights and of the choice of digits.
        logger_kwargs: passed on to EpochLogger.
    """
    logger = EpochLogger(**(logger_kwargs or {}))
    logger.save_config(locals())
    images, labels = digits()
    chance = np.random.default_rng(seed)

    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(seed)
        x_ph = tf.placeholder(tf.float32, (None, PIXELS))
        y_ph = tf.placeholder(tf.int32, (None,))
        logits = dense(tf.nn.relu(dense(x_ph, hidden_size, "hidden")), DIGITS, "logits")
        predict = tf.argmax(logits, axis=1, output_type=tf.int32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_ph, logits=logits))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(y_ph, predict), tf.float32))
        step = tf.train.AdamOptimizer(lr).minimize(loss)
        initialize = tf.global_variables_initializer()

    with tf.Session(graph=graph) as sess:
        sess.run(initialize)
        logger.setup_tf_saver(sess, inputs={"x": x_ph}, outputs={"logits": logits, "predict": predict})
        start = time.time()
        for epoch in range(epochs):
            for _ in range(steps_per_epoch):
                chosen = chance.integers(0, TEST_FROM, 32)
                feed = {x_ph: images[chosen], y_ph: labels[chosen]}
                loss_value, accuracy_value, _ = sess.run([loss, accuracy, step], feed)
                logger.store(Loss=loss_value, Acc=accuracy_value)
            logger.save_state({"epoch": epoch}, itr=None)
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("Acc", with_min_and_max=True)
            logger.log_tabular("Loss", average_only=True)
            logger.log_tabular("TotalGradientSteps", (epoch + 1) * steps_per_epoch)
            logger.log_tabular("Time", time.time() - start)
            logger.dump_tabular()
        describe(sess.run([logits, predict], {x_ph: images[TEST_FROM:]}), labels[TEST_FROM:])
    logger.close()


def restore(run_dir: str) -> None:
    """Read the test digits with the graph that a run has saved."""
    images, labels = digits()
    with tf.Session(graph=tf.Graph()) as sess:
        model = restore_tf_graph(sess, os.path.join(run_dir, "tf1_save"))
        answers = sess.run([model["logits"], model["predict"]], {model["x"]: images[TEST_FROM:]})
    describe(answers, labels[TEST_FROM:])


def describe(answers: list[np.ndarray], labels: np.ndarray) -> None:
    """Print what a network says of the test digits."""
    logits, predicted = answers
    print(f"Test digits: {np.mean(predicted == labels):.1%} of {len(labels)} are right; "
          f"the sum of all logits is {float(logits.sum(dtype=np.float64))!r}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output_dir", default=os.path.join("runs", "tf_digits"))
    parser.add_argument("--restore", metavar="DIR", help="use the graph saved in DIR, train none")
    args = parser.parse_args()
    if args.restore:
        restore(args.restore)
    else:
        train(epochs=args.epochs, seed=args.seed, logger_kwargs={"output_dir": args.output_dir})


if __name__ == "__main__":
    main()
