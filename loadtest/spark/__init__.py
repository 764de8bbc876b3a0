"""Load tests of the PySpark side: what the sink costs, and how soon a lost event is found."""
