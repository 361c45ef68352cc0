"""A small VGG with batch normalisation for images of 3×32×32."""

from __future__ import annotations

from torch import nn

PLAN = (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M")


def vgg(classes: int = 10) -> nn.Sequential:
    """Ten convolutions of 3×3, each normalised and rectified, four poolings and a linear map.

    x [B, 3, 32, 32] → [B, classes].
    Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image recognition.
    """
    layers: list[nn.Module] = []
    channels = 3
    for entry in PLAN:
        if isinstance(entry, int):
            layers += [nn.Conv2d(channels, entry, 3, padding=1), nn.BatchNorm2d(entry), nn.ReLU()]
            channels = entry
        else:
            layers.append(nn.MaxPool2d(2))
    # Four poolings leave 2×2 pixels; their mean is what the linear map of 512 inputs sees.
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
