"""`twinstream drill`: plant a difference into copies of the topics, and follow its alarm."""
