"""The page to click on: files that ``anyorder serve`` gives as they are, and one module of them for other places."""
