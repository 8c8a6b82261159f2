"""One file per pipeline step, with its rule's name: each a Hydra program."""
