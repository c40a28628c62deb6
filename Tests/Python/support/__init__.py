"""Common code of the differential tester and the end-to-end tests: wire messages and server processes."""
