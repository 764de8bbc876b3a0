"""How an answer is made, and what every one of them has."""
