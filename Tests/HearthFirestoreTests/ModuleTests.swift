import Testing

@testable import HearthFirestore
