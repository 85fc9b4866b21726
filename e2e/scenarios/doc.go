// Package scenarios runs the worker's scenarios end to end: the built binary on a real Zeebe broker, with
// everybody around it played here.
//
// What happened is read from the broker itself: its counters, and the record of everything it did, which
// its debug exporter prints. gRPC has no query; that record is what the operator's own tools read.
// Only tests are here.
package scenarios
