"""Everything that can be changed."""

EPOCHS = 24
IMAGES = 512
SIDE = 64
BATCH = 32
