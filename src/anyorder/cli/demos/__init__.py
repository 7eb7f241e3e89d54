"""The demonstrations: :mod:`.commands` runs them, :mod:`.tables` and :mod:`.images` are what they do."""
