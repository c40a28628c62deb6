import Testing

@testable import HearthBundle
