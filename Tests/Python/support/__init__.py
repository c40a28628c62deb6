"""What the differential tester and the end-to-end tests share: wire messages and server processes."""
