package api

// DestinationOf is destinationOf.
var DestinationOf = destinationOf
