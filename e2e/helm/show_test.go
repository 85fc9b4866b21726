package helm

import (
	"encoding/json"

	"retry-worker/internal/config"
)

// show prints settings, a line each.
func show(s config.Settings) string {
	s.WorkerName = "" // the machine's name
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
