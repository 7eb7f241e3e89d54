"""Pictures: one pixel, or one channel of it, a variable."""
