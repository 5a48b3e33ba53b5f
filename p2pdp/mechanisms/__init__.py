"""Clipping, the noise grid, privacy curves of single mechanisms, and the samplers that draw from them."""
