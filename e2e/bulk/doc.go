// Package bulk plays a day on which one credential failed, end to end: four hundred claims on a real Zeebe broker, the
// worker's own process with a clock that goes faster, its mail taken by a real mail server. Only tests are
// here.
package bulk
