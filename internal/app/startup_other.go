//go:build !linux

package app

// dropStartup does nothing where it is not known how.
func dropStartup() {}
