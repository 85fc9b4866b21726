package api

// Routes are the API's addresses, each behind its method.
func Routes() (all []string) {
	for _, r := range New(Options{}).table() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// DestinationOf is destinationOf.
var DestinationOf = destinationOf
