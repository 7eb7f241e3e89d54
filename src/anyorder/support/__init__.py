"""What every package may use: files written safely, threads, words, pictures; nothing here knows of a model."""
