import Testing

@testable import HearthSync
