package events

// ForceReconnect ends the connection, which comes back by itself.
func (s *Sink) ForceReconnect() error { return s.nc.ForceReconnect() }

// Reconnected reports whether the connection was lost, which the sink was told, and is there again.
func (s *Sink) Reconnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive.Err() != nil && s.nc.IsConnected()
}
