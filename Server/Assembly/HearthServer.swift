// HearthServer: one server out of network, host and both products. Begin at `Server`.
//
// `Stores` says where the data is, for the server and for tools; `Upkeep` is the periodic work; `MetricsHTTP` is
// `/metrics`.
