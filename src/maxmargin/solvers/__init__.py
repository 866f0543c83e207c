"""The methods behind `algorithm="auto"`, each a generator of points (w, b, alpha), and their linear algebra."""
