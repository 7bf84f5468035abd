"""Pure decisions: from what was measured and a budget to what shall be done."""
