// Package chaos kills, starves and misleads the worker while it decides, and then reads from outside what its
// journal and its engine made of it: one attempt and one answer per claim and count, nothing forgotten.
//
// The worker is the built binary, its stores are real SQLite files and a real PostgreSQL. The engine is a real
// broker where its behaviour matters, and the stub gateway where hundreds of kills are needed quickly. `make chaos`
// plays the long version; CHAOS_KILLS and CHAOS_SEED say how many kills, and which. Only tests are here.
package chaos
