"""dpredact: sanitise documents under differential privacy, with a certificate."""

__version__ = "0.1.0"
