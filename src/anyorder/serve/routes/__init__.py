"""What can be asked over HTTP: of the service itself, of tables, of texts, of pictures, and by the v2 protocol."""
