// HearthNetwork: event loops, TLS, HTTP/1.1, HTTP/2, gRPC and WebSocket for a server. It knows nothing of Firestore.
//
// Begin at `NetworkServer`, which has the way of a request. A product implements `HTTPHandler` and `GRPCHandler`, and
// gets an `HTTPExchange` or a `GRPCCall` for each request; a `WebSocketChannel` begins as an `HTTPExchange`.
//
// - `Loop/`: `EventLoop`, its sockets, timers and output. All work of a connection runs on one loop.
// - `Server/`: listening, detection of the protocol, and what all connections of a server share.
// - `TLS/`, `HTTP1/`, `HTTP2/`, `GRPC/`, `WebSocket/`: a folder for each protocol; `HTTP/` is what handlers see of
//   both versions.
//
// `NetworkLimits` bounds everything that a peer can send, delay or leave open.
