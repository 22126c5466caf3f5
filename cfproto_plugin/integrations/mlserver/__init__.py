"""MLServer: a runtime that serves a saved explainer over the Open Inference Protocol, REST and gRPC.

In `model-settings.json`: "implementation": "cfproto_plugin.integrations.mlserver.runtime.CounterfactualRuntime". Only
MLServer imports that module.
"""
