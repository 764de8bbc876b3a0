"""Everything around the service that runs it: real parts, pipelines, the demo, dashboards."""
