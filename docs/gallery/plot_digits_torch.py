"""
# Images: a PyTorch network and an encoder

With an encoder the search is led by prototypes in its codes, as the paper does it on MNIST. Here are the 8x8 digits that
scikit-learn brings, so that the page runs in a minute.
"""

# %%
# A small classifier and an autoencoder, both trained here.
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
train, rest = images[:1500], images[1500:]
torch.manual_seed(0)

classifier = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10), torch.nn.Softmax(dim=1)
)
encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 48), torch.nn.ReLU(), torch.nn.Linear(48, 12))
decoder = torch.nn.Sequential(
    torch.nn.Linear(12, 48),
    torch.nn.ReLU(),
    torch.nn.Linear(48, 64),
    torch.nn.Sigmoid(),
    torch.nn.Unflatten(1, (1, 8, 8)),
)
autoencoder = torch.nn.Sequential(encoder, decoder)


def fit(network, loss, targets, steps=1_500):
    """Plain mini-batches with Adam."""
    inputs, targets = torch.from_numpy(train), torch.as_tensor(targets)
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(steps):
        at = torch.randint(len(inputs), (64,))
        optimiser.zero_grad()
        loss(network(inputs[at]), targets[at]).backward()
        optimiser.step()


fit(classifier, lambda p, y: torch.nn.functional.nll_loss(torch.log(p + 1e-9), y), digits[:1500])
fit(autoencoder, torch.nn.functional.mse_loss, train)

# %%
# Five images, all explained in one call. `target` may name the digit to reach; without it the nearest prototype decides.
from cfproto_plugin import CounterfactualExplainer

explainer = CounterfactualExplainer(classifier, encoder=encoder, autoencoder=autoencoder).fit(train)
e = explainer.explain(rest[:5])
for line in e:
    print(f"{line.original_class[0]} -> {line.counterfactual_class[0]}  {line.status[0]}, {line.n_changes[0]} pixels")

# %%
# The first of them: original, counterfactual, difference, and what the autoencoder makes of it.
e[0].plot(figure=plt.figure(figsize=(9.3, 4.1), layout="constrained"))
plt.show()

# %%
# A digit of your choice:
e = explainer.explain(rest[:1], target=9)
e.plot(figure=plt.figure(figsize=(9.3, 4.1), layout="constrained"))
plt.show()
