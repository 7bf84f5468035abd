"""Facts about a script: names, loops, kinds, pipelines."""
