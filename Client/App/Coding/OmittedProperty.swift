/// A property wrapper whose value is not part of the data. Encoders omit it. Decoders make it from their context and do
/// not search the data for its name.
package protocol OmittedProperty {}
