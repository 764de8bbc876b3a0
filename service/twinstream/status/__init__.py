"""The published status of a comparison, in the shape that matcher, API and page share."""
