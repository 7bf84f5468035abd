"""`memfit.fit`: measure, search, plan, train within a budget."""
