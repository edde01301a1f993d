"""What policies are built of: transformer blocks, compiled for a CPU, and how tokens are laid out. Knows no problem."""
