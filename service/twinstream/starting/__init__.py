"""Starting: where a comparison begins, and from where it begins anew after a reset."""
