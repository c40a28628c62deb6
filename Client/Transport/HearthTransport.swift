// HearthTransport: HTTP/2 and WebSocket for clients, over libcurl's multi interface on one thread of its own.
