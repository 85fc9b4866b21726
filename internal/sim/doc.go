// Package sim has the simulator that plays days of replicas, portals and people in virtual time, by a seed. All of it is
// test code. The folder model has two specifications in TLA+ that what it plays is held against.
package sim
