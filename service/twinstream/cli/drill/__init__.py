"""`twinstream drill`: a difference is planted into copies of the topics, and its alarm is followed."""
