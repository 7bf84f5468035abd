"""What a training changes in and around a model: found, saved, put back."""
