"""Tables, texts and pictures: what they share, and a folder for each."""
