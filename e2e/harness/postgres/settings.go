package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// arguments of the server: its settings, which so are over those of its file.
func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": "",
		"fsync":                   "on",
		"full_page_writes":        "on",
		"logging_collector":       "off", // the log comes to us
		"log_destination":         "stderr",
		// In the data's folder, and gone with it when the server was killed.
		"dynamic_shared_memory_type": "mmap",
		"max_connections":            "200",
	}
	maps.Copy(settings, s.options.Settings)
	args := []string{"-D", s.dir.data()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// environment of the server's processes: inherited settings of libpq are meant for other servers, and
// messages must be in the language that this package reads.
func environment(environ []string) []string {
	var env []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "LANGUAGE" {
			env = append(env, pair)
		}
	}
	return append(env, "LC_ALL=C")
}
