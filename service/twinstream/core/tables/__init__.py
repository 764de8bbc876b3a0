"""Tables: rows that replace earlier rows of their key are folded before they are matched."""
