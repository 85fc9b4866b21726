package postgres

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
)

// BenchmarkTransact prints the CPU time of this process that one recorded decision costs, and how many are
// recorded in a second, one transaction after the other, on a server that syncs every commit to disk.
func BenchmarkTransact(b *testing.B) {
	for _, known := range []bool{false, true} {
		for _, size := range []int{1, 25, 50, 100, 200} {
			b.Run(fmt.Sprintf("known=%t/batch=%d", known, size), func(b *testing.B) { benchmarkTransact(b, known, size) })
		}
	}
}

// knownSubjects is how many a benchmark of known subjects goes round.
const knownSubjects = 20_000

func benchmarkTransact(b *testing.B, known bool, size int) {
	url := realserver.Database(b)
	batches := batches{db: open(b, url), around: 1 << 40}
	if known {
		batches.around = knownSubjects
		batches.fill(b, knownSubjects)
	}
	batches.measure(b, connect(b, url), size)
}

// BenchmarkTransactLarge prints the same where there are 2,000,000 attempts of 500,000 subjects, which takes
// minutes to fill; -short leaves it out.
func BenchmarkTransactLarge(b *testing.B) {
	if testing.Short() {
		b.Skip("-short: fills a database for minutes")
	}
	url := realserver.Database(b)
	batches := batches{db: open(b, url), around: 500_000}
	batches.fill(b, 2_000_000)
	b.Run("known=true/batch=100", func(b *testing.B) { batches.measure(b, connect(b, url), 100) })
	batches.around = 1 << 40
	b.Run("known=false/batch=100", func(b *testing.B) { batches.measure(b, connect(b, url), 100) })
}

// batches of decisions, of subjects that come round.
type batches struct {
	db           *DB
	next, around int
}

func (s *batches) fill(b *testing.B, attempts int) {
	for s.next < attempts {
		s.run(b, 250)
	}
}

func (s *batches) measure(b *testing.B, watch *pgx.Conn, size int) {
	do(b, watch, "CHECKPOINT")
	before, backends, bytes, first := cpu(b), backendsCPU(b, watch), one[int64](b, watch, sizeText), s.next
	b.ReportAllocs()
	for b.Loop() {
		s.run(b, size)
	}
	decisions := float64(s.next - first)
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/decisions, "cpu-µs/decision")
	b.ReportMetric(float64((backendsCPU(b, watch)-backends).Microseconds())/decisions, "server-cpu-µs/decision")
	b.ReportMetric(decisions/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(one[int64](b, watch, sizeText)-bytes)/decisions, "bytes/decision")
}

// stride scatters the subjects of a batch.
const stride = 7919

func (s *batches) run(b *testing.B, size int) {
	lookups := make([]journal.Lookup, size)
	for i := range lookups {
		lookups[i] = ask("CLM-BENCH-"+strconv.Itoa(s.next*stride%s.around), strconv.Itoa(s.next))
		s.next++
	}
	if _, err := record(b.Context(), s.db, lookups...); err != nil {
		b.Fatal(err)
	}
}

const sizeText = "SELECT pg_database_size(current_database())"

// backendsCPU is what the server's processes for our connections used so far; 0 where the system does not tell.
func backendsCPU(b *testing.B, watch *pgx.Conn) (used time.Duration) {
	rows, err := watch.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'retry-worker' AND datname = current_database()")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	const tick = 10 * time.Millisecond // of Linux, on all its usual machines
	for _, pid := range pids {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if _, after, ok := strings.Cut(string(stat), ") "); ok {
			fields := strings.Fields(after)
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			used += time.Duration(user+system) * tick
		}
	}
	return used
}

// cpu is what this process used of the processors so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkArrays holds our arrays against the driver's: 100 attempts' rows as arguments.
func BenchmarkArrays(b *testing.B) {
	rows := make([]journal.KeyedAttempt, 100)
	var c journal.Changes
	for i := range rows {
		l := ask("CLM-BENCH-"+strconv.Itoa(i), "job")
		add(&c, journal.Head{}, &l, &journal.History{}, time.UnixMilli(1_700_000_000_000))
	}
	copy(rows, c.Attempts)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		var a arrays
		for b.Loop() {
			rowsOf(&a, attemptsTable, rows)
		}
	})
	b.Run("driver", func(b *testing.B) {
		b.ReportAllocs()
		m, numbers, texts, buffer := pgtype.NewMap(), make([]int64, 100), make([]string, 100), []byte(nil)
		for i := range numbers {
			numbers[i], texts[i] = int64(i)<<40, rows[i].Attempt.Error
		}
		for b.Loop() {
			for _, k := range attemptsTable.kinds {
				var err error
				if k == kindText || k == kindBytes {
					buffer, err = m.Encode(pgtype.TextArrayOID, pgtype.BinaryFormatCode, texts, buffer[:0])
				} else {
					buffer, err = m.Encode(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, numbers, buffer[:0])
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkArchive prints what reading and purging costs in a journal of 200,000 attempts.
func BenchmarkArchive(b *testing.B) { storetest.Bench(b, open(b, realserver.Database(b)), 200_000) }

// BenchmarkArchiveLarge prints the same of 2,000,000, which takes minutes to fill; -short leaves it out.
func BenchmarkArchiveLarge(b *testing.B) {
	if testing.Short() {
		b.Skip("-short: fills a database for minutes")
	}
	storetest.Bench(b, open(b, realserver.Database(b)), 2_000_000)
}

// BenchmarkLetters prints what lists of 100,000 dead letters cost.
func BenchmarkLetters(b *testing.B) {
	storetest.BenchLetters(b, open(b, realserver.Database(b)), 100_000)
}

// BenchmarkLettersLarge prints the same of 1,000,000, which takes minutes to fill; -short leaves it out.
func BenchmarkLettersLarge(b *testing.B) {
	if testing.Short() {
		b.Skip("-short: fills a database for minutes")
	}
	storetest.BenchLetters(b, open(b, realserver.Database(b)), 1_000_000)
}
