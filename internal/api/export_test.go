package api

// DestinationOf is destinationOf.
var DestinationOf = destinationOf

// Code is code.
func (f *Field) Code() string { return f.code() }
