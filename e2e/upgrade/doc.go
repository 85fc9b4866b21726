// Package upgrade holds the tests of an upgrade: the program and the version before it on one journal, side by side and one
// after the other, there and back.
package upgrade
