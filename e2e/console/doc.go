// Package console drives the console's pages in a real Chromium, beside a real worker with its journal and a real
// Zeebe broker, as the people do who decide on what the worker gave up.
//
// It draws the README's pictures too: go test ./e2e/console -run Pictures -update
package console
