/// One change of a commit. Source: google.firestore.v1.Write.
@usableFromInline package struct Write: Sendable {
    @usableFromInline package enum Operation: Sendable {
        /// Writes fields: the whole document, or only the fields of a mask.
        case update(fields: MapValue, mask: [FieldPath]?)
        case delete
        /// Tests the precondition only.
        case verify
    }

    @usableFromInline package var document: ResourceName
    @usableFromInline package var operation: Operation
    @usableFromInline package var transforms: [FieldTransform]
    @usableFromInline package var precondition: Precondition

    @inlinable package init(
        document: ResourceName, operation: Operation, transforms: [FieldTransform] = [],
        precondition: Precondition = .none
    ) {
        self.document = document
        self.operation = operation
        self.transforms = transforms
        self.precondition = precondition
    }
}

/// The remainder of a division towards negative infinity: 0..<divisor.
@usableFromInline func positiveRemainder(_ dividend: Int64, _ divisor: Int64) -> Int64 {
    let remainder = dividend % divisor
    return remainder < 0 ? remainder + divisor : remainder
}
