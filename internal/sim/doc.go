// Package sim has the simulator that plays days of replicas, portals and people in virtual time, by a seed. All of it is
// test code.
package sim
