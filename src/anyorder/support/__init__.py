"""What every package may lean on: files written safely, threads, words, pictures; nothing here knows of a model."""
