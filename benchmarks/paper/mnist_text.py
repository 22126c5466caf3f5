"""What the page of the MNIST experiment says around its tables."""

INTRODUCTION = """# The paper's MNIST experiment

Losses A to F of [the paper](https://arxiv.org/abs/1907.02584), {images} counterfactuals each (the paper: 1,500):
{parts}. On the test images the classifiers reach {accuracy} % (the paper: 98.6 %). Squared error per pixel there, mean
of all seeds: {ae:.5f} for the autoencoder of L_AE, {ae_class:.5f} for the class autoencoders on their own class,
{ae_all:.5f} for the same architecture trained on all classes. All constants are the paper's; the learning rate 0.01 and
the 1,000 steps, on which it is silent, are its reference's. How the iteration is run is read in two ways, the same for
all of our experiments: by the text, and as the reference runs. What to make of it all is said in [the
reading](paper-mnist-reading.md)."""

TABLE = """Means over all images and seeds with 95 % bounds, as in the paper. *Gradient steps* are counted as in the
paper: {iterations} for every value of c (1, 10, 100, ...) that gave no counterfactual, plus the step of the best
iterate. *Time* is that number times the processor time of a step of one image alone; the paper's was taken on a laptop.
The last lines are the product's default settings on the same images: the path to training images, and with an encoder
the path to prototypes in its space; their time is that of a whole search. AE of IM2 is the autoencoder of L_AE. IM2
divides by |x|_1, and the paper does not say of which x: of the image as the networks see it, in [-0.5, 0.5], where
black counts 0.5 a pixel, or of the ink in [0, 1]. Both stand in the table. L0 is the number of changed pixels."""

GROUPS = """ The networks of all seeds explain the same images, so that an image counts once for the bounds."""

LOSSES_PICTURE = "![Time, gradient steps, IM1, IM2 and EN of losses A to F](pictures/paper-mnist-losses.png)"

BY_SEED = """The same claims with the networks of each seed alone. The bounds above are those of images: where the
seeds differ by more, they are too narrow for networks that are trained anew."""

NO_REFERENCE = """Not run yet. Single differences between the two protocols are shown below, under "One thing changed at
a time"."""

GRID = """The first image of every class: the original and its counterfactuals by losses A to F and by the product's
default settings without and with an encoder, each with the class that the classifier says. Below three of them are
the reconstructions of the counterfactuals by AE."""

RECONSTRUCTIONS = """Counterfactuals x of A and C and their reconstructions. IM1 compares the error of AE_new(x) with
that of AE_old(x), IM2 the difference between AE_new(x) and AE(x)."""

FIGURE_TWO = """The paper's figure 2: one image with its counterfactual by B, which adds L_AE alone, and by D, which
adds the prototype. Chosen by rule: of the first 50 images the one on which IM1 falls most from B to D while IM1 of B
is above 1, so it shows the best case, not the usual one."""

TIMES = """Processor time of one core. Alone: the search of single images until the first c that gives a counterfactual
is done; values of c that leave the image at rest cost next to nothing. The defaults are whole searches."""

CLOSENESS = """The mean Euclidean distance to the five nearest training images of the new class, and IM2 with an
autoencoder of the architecture of the AE_i, trained on all classes for 4 epochs, as AE."""

NO_MOMENTUM = """*No momentum*: y = x in the iteration. The first {images} images."""

ALL_C = """*All c*: ten values of c with bisection, the best of all, as the reference implementation does, instead of
the first that gives a counterfactual. {images} images. Gradient steps are counted until the first success in both."""

MEDIANS = """EN has a long tail: a few images are far from any other class."""

AGREEMENT = """Losses that end in the same class, of the images whose class is on record: {pairs}."""

CURVATURE = """The step of 0.01 is stable where the curvature of the objective is below 200 (with momentum 133). The
largest curvature at {images} test images, by power iteration: {reconstruction} for L_AE with gamma 100, {prototype}
for L_proto with theta 200."""

ABOUT = """ The time is the sum of all parts of this run, networks included; rows that were on record were not searched
again, and their times are those of the run that did. The machine has two cores and was shared with other work."""
