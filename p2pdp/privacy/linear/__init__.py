"""Linear views under Gaussian noise: what rows of weights over values and draws tell about each value."""
