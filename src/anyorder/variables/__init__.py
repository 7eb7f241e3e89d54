"""What the variables are, and the way from a user's units to the model's tensor and back."""
