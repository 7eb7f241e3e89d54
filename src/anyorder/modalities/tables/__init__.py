"""Tables: one column a variable."""
