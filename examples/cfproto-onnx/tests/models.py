"""Small ONNX models made by hand, as sessions."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LABELS = ["barolo", "grignolino", "barbera"]
FLOAT = TensorProto.FLOAT


def session(nodes, inputs, outputs, weights=None):
    """A session of a graph; a node is (operator, inputs, outputs, attributes)."""
    made = [helper.make_node(op, into, out, **attributes) for op, into, out, attributes in nodes]
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(made, "test", inputs, outputs, values)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def layers(x, y, hidden=8, seed=0):
    """Weights of a perceptron that knows the classes y of x: random tanh features, then ridge regression."""
    rng = np.random.default_rng(seed)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    first = rng.normal(size=(x.shape[1], hidden)) / np.sqrt(x.shape[1]) / spread[:, None]
    shift = -mean @ first
    features = np.tanh(x @ first + shift)
    last = np.linalg.solve(features.T @ features + np.eye(hidden), features.T @ (np.eye(y.max() + 1)[y] * 8 - 4))
    return {"W": first, "b": shift, "V": last, "c": np.zeros(last.shape[1])}


def network(weights, *, ending="Softmax", batch="n", shape=None, kind=FLOAT, name="scores"):
    """Gemm, Tanh, Gemm and an ending: "Softmax", "Sigmoid" or "Identity". shape: of a row, flattened inside."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    columns, classes = len(weights["W"]), len(weights["c"])
    nodes = [
        ("Flatten", ["x"], ["flat"], {"axis": 1}),
        ("Gemm", ["flat", "W", "b"], ["h"], {}),
        ("Tanh", ["h"], ["a"], {}),
        ("Gemm", ["a", "V", "c"], ["z"], {}),
        (ending, ["z"], [name], {}),
    ]
    inputs, outputs = [tensor("x", [batch, *(shape or [columns])], kind)], [tensor(name, [batch, classes], kind)]
    return session(nodes, inputs, outputs, {name: value.astype(dtype) for name, value in weights.items()})


def linear_classifier(coefficients, intercepts, *, zipmap, labels=LABELS):
    """What scikit-learn's converter writes for a logistic regression: labels, and probabilities as map or tensor."""
    attributes = {
        "coefficients": coefficients.T.ravel().tolist(),
        "intercepts": intercepts.tolist(),
        "classlabels_strings": labels,
        "post_transform": "SOFTMAX",
    }
    domain = {"domain": "ai.onnx.ml"}
    nodes = [("LinearClassifier", ["x"], ["label", "probabilities"], attributes | domain)]
    outputs = [tensor("label", ["n"], TensorProto.STRING)]
    if zipmap:
        nodes.append(("ZipMap", ["probabilities"], ["maps"], {"classlabels_strings": labels} | domain))
        one = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(FLOAT, None))
        outputs.append(helper.make_value_info("maps", helper.make_sequence_type_proto(one)))
    else:
        outputs.append(tensor("probabilities", ["n", len(labels)]))
    return session(nodes, [tensor("x", ["n", len(coefficients)])], outputs)
