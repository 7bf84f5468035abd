"""`memfit.ingest`: one global shuffle on disk, resumable."""
