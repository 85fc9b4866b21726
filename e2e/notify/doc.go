// Package notify tells teams of their dead letters end to end: the worker's own process with a clock that goes faster, a real
// mail server, and a receiver of webhooks that checks their signatures with the standard's own library. Only tests are here.
package notify
