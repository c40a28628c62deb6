import Testing

@testable import HearthTransport
