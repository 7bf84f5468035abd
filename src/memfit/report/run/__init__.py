"""What the HTML page is made of: its template, style and script, and what goes into them."""
