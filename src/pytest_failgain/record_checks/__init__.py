"""What a harness's record shows and how long it is, checked without a model."""
