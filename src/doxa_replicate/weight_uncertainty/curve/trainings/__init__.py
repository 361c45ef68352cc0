"""The trainings behind the regression figures, and what is read off them."""
