// HearthBundle: the bundle format: builder and reader.
