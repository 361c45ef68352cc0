"""The nets behind MNIST's figures: their rows, how they are trained and chosen, and what is judged of them."""
