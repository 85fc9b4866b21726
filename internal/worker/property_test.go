package worker_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
	"retry-worker/internal/worker"
)

// fate is what happens to one try of an answer.
type fate int

const (
	fateTaken   fate = iota
	fateBusy         // not taken
	fateLost         // the command never arrived, which the caller cannot know
	fateUnacked      // the command took effect, its acknowledgement was lost
	fateOther        // another worker's answer came first
	fateHang         // no word until the caller gives up
)

// life is what one job meets; of fates the last is repeated.
type life struct {
	reply   int // completion, bpmnError, rejection
	takes   time.Duration
	fates   []fate
	refused bool // the engine never takes the answer itself, only a Fail
	panics  bool
}

// batch is what one poll meets.
type batch struct {
	size  int // at most what is asked for
	after time.Duration
	fails int // worker.ErrorKind, −1 for none
}

// story is one run of a worker.
type story struct {
	types, most, concurrency int
	batches                  []batch
	lives                    []life
	stop                     time.Duration
	kill                     time.Duration // after the stop; 0: never
}

func stories() *rapid.Generator[story] {
	upTo := func(d time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(0, int(d/time.Millisecond)), func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond })
	}
	lives := rapid.Custom(func(t *rapid.T) life {
		return life{
			reply:   rapid.IntRange(0, 2).Draw(t, "reply"),
			takes:   rapid.OneOf(rapid.Just(time.Duration(0)), upTo(time.Second), upTo(12*time.Second)).Draw(t, "takes"),
			fates:   rapid.SliceOfN(rapid.Map(rapid.IntRange(0, int(fateHang)), func(i int) fate { return fate(i) }), 1, 6).Draw(t, "fates"),
			refused: rapid.IntRange(0, 5).Draw(t, "refused") == 5,
			panics:  rapid.IntRange(0, 9).Draw(t, "panics") == 9,
		}
	})
	batches := rapid.Custom(func(t *rapid.T) batch {
		return batch{
			size:  rapid.IntRange(0, 60).Draw(t, "size"),
			after: rapid.OneOf(rapid.Just(time.Duration(0)), upTo(pollTimeout), upTo(15*time.Second)).Draw(t, "after"),
			fails: rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, int(worker.TooLarge))).Draw(t, "fails"),
		}
	})
	return rapid.Custom(func(t *rapid.T) story {
		return story{
			types:       rapid.IntRange(1, 3).Draw(t, "types"),
			most:        rapid.IntRange(1, 60).Draw(t, "most"),
			concurrency: rapid.IntRange(1, 8).Draw(t, "concurrency"),
			batches:     rapid.SliceOfN(batches, 0, 8).Draw(t, "batches"),
			lives:       rapid.SliceOfN(lives, 1, 8).Draw(t, "lives"),
			stop:        upTo(40*time.Second).Draw(t, "stop"),
			kill:        rapid.OneOf(rapid.Just(time.Duration(0)), upTo(20*time.Second)).Draw(t, "kill"),
		}
	})
}

// world is an engine that tells a story and knows the truth about each job.
type world struct {
	*engine
	story
	next int64

	// What became of a job, by key; guarded by engine.mu, as next is.
	over       map[int64]bool          // nobody's answer is waited for any more
	acked      map[int64]worker.Action // our answer that was taken, and said so
	accepted   map[int64]int           // our answers that took effect
	doubtful   map[int64]bool          // a try whose effect the worker cannot know
	others     map[int64]bool          // another worker answered
	heldByType map[string]int
	overAsked  bool // a poll asked for more than the type has places
	afterStop  bool // a poll began after the stop
	stopped    bool
}

func (w *world) life(key int64) *life { return &w.lives[int(key)%len(w.lives)] }

func (w *world) onPoll(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	w.mu.Lock()
	w.afterStop = w.afterStop || w.stopped
	w.overAsked = w.overAsked || r.MaxJobs < 1 || r.MaxJobs+w.heldByType[r.JobType] > w.most
	if len(w.batches) == 0 {
		w.mu.Unlock()
		return idle(ctx, r)
	}
	b := w.batches[0]
	w.batches = w.batches[1:]
	w.mu.Unlock()
	time.Sleep(b.after) // deaf to the context, as a frozen process is
	w.mu.Lock()
	defer w.mu.Unlock()
	given := jobs(r.JobType, w.next+1, min(b.size, r.MaxJobs))
	w.next += int64(len(given))
	w.heldByType[r.JobType] += len(given)
	if b.fails >= 0 {
		return given, refusal(worker.ErrorKind(b.fails))
	}
	return given, nil
}

func (w *world) onAnswer(ctx context.Context, a answer) error {
	l, key := w.life(a.job.Key), a.job.Key
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over[key] {
		return gone
	}
	if l.refused && a.verb != "fail" {
		return refused
	}
	switch l.fates[min(a.try, len(l.fates))-1] {
	case fateTaken:
		w.over[key] = true
		w.accepted[key]++
		w.acked[key] = actionOf(a)
		return nil
	case fateBusy:
		return notTaken
	case fateLost:
		w.doubtful[key] = true
		return ambiguous
	case fateUnacked:
		w.over[key], w.doubtful[key] = true, true
		w.accepted[key]++
		return ambiguous
	case fateOther:
		w.over[key], w.others[key] = true, true
		return gone
	default:
		w.doubtful[key] = true
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ambiguous
	}
}

// actionOf is what an answer means for its job.
func actionOf(a answer) worker.Action {
	switch {
	case a.verb == "complete":
		return worker.Completed
	case a.verb == "throw":
		return worker.Thrown
	case strings.HasPrefix(a.fail.Message, "handed back"):
		return worker.Released
	default:
		return worker.Failed
	}
}

// truth is what has to be reported of all jobs.
func (w *world) truth() map[worker.Action]int {
	all := map[worker.Action]int{}
	for key := range w.given {
		switch {
		case w.acked[key] != "":
			all[w.acked[key]]++
		case w.doubtful[key]:
			all[worker.Unconfirmed]++
		case w.others[key]:
			all[worker.Superseded]++
		default:
			all[worker.Released]++
		}
	}
	return all
}

func (w *world) handler(_ context.Context, j *worker.Job) worker.Reply {
	l := w.life(j.Key)
	time.Sleep(l.takes)
	if l.panics {
		panic("as the story has it")
	}
	return []worker.Reply{completion, bpmnError, rejection}[l.reply]
}

// tell runs the story.
func (w *world) tell(t *testing.T) *running {
	var subs []worker.Subscription
	for i := range w.types {
		subs = append(subs, worker.Subscription{JobType: "type-" + strconv.Itoa(i), Begin: worker.Always(w.handler, "a")})
	}
	cfg := config()
	cfg.MaxJobsActive, cfg.Concurrency = w.most, w.concurrency
	told := newTally()
	told.onAnswered = func(jobType string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heldByType[jobType]--
	}
	r := startTelling(t, told, w.engine, cfg, subs)
	time.Sleep(w.stop)
	synctest.Wait()
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	r.stop()
	if w.kill > 0 {
		time.Sleep(w.kill)
		r.kill()
	}
	<-r.ended
	return r
}

// TestAnyStory: whatever polls, handlers and answers meet, and whenever it is stopped, each activated
// job is reported once and truly, gets one accepted answer at most and none past its deadline; the
// places are kept and come back; nothing is activated after the stop.
func TestAnyStory(t *testing.T) {
	seeded.Check(t, func(rt *rapid.T) {
		s := stories().Draw(rt, "story")
		var w *world
		var r *running
		synctest.Test(t, func(t *testing.T) {
			w = &world{
				engine: newEngine(), story: s, over: map[int64]bool{}, acked: map[int64]worker.Action{}, accepted: map[int64]int{},
				doubtful: map[int64]bool{}, others: map[int64]bool{}, heldByType: map[string]int{},
			}
			w.engine.onPoll, w.engine.onAnswer = w.onPoll, w.onAnswer
			r = w.tell(t)
		})
		r.sound(rt)
		r.wantActions(rt, w.truth())
		for key, n := range w.accepted {
			if n > 1 {
				rt.Errorf("job %d got %d accepted answers", key, n)
			}
		}
		if w.overAsked {
			rt.Errorf("a poll asked for more jobs than there are places, or for none")
		}
		if w.afterStop {
			rt.Errorf("a poll began after the stop")
		}
		if r.highest > s.most*s.types {
			rt.Errorf("%d jobs were held, want at most %d", r.highest, s.most*s.types)
		}
	})
}
