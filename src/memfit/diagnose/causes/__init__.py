"""Why memory grows: one module a family, each a pure check over a recording."""
