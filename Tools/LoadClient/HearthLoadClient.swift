// HearthLoadClient: a client of HTTP/2 and gRPC on the server's own event loops, for tests, load generators and the
// tool. Programs use `HearthFirestore`.
//
// `TCPClient` is a connection, `HTTP2Client` HTTP/2 over it, `GRPCClient` calls over that.
