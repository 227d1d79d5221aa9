"""Loading models that run here, shared by the adapters."""
