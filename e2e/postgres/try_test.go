package postgres

import ("testing";"os";"time";"context";"github.com/jackc/pgx/v5")
func TestMain(m *testing.M) { c := m.Run(); if err := CloseShared(); err != nil { println(err.Error()); c=1}; os.Exit(c)}
func TestTry(t *testing.T) {
	b := time.Now()
	s := Shared(t)
	t.Log(s.PID(), s.bin, s.dir.path, time.Since(b))
	b = time.Now()
	u := Database(t)
	t.Log(u, time.Since(b))
	c, err := pgx.Connect(context.Background(), u)
	if err != nil { t.Fatal(err)}
	var v string
	t.Log(c.QueryRow(context.Background(), "select version()").Scan(&v), v)
}
