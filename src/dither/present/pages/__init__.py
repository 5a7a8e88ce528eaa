"""Pages of HTML to hand on: of an answer, a publication, synthetic records, a series, an audit, a deployment."""
