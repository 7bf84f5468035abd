"""What a framework does: devices, objects, steps, compilations, registries."""
