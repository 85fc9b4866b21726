package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// logIn with a token, wherever the tab is sent to for that.
func (b *tab) logIn(token string) {
	b.t.Helper()
	b.await("the log-in form", `location.pathname === "/login" && document.querySelector("#token")`)
	b.write("#token", token)
	eval[int](b, `(window.before = 1)`)
	b.click("form[action='/login'] button")
	b.await("an answer", `!window.before && document.readyState === "complete"`)
}

// enter logs in on the way to a path.
func (b *tab) enter(path, token string) {
	b.t.Helper()
	b.open(path)
	b.logIn(token)
	b.await("the page asked for", `location.pathname === `+quoted(path))
}

func TestEachRoleMayWhatItMay(t *testing.T) {
	s := guarded(t)
	const below, limit, once = "CLM-E2E-ROLE-1010", "CLM-E2E-ROLE-1011", "CLM-E2E-ROLE-1012"
	s.submit(t, below, 0, denied)
	exhausted := s.submit(t, limit, 5, "HTTP 503 Service Unavailable")
	s.deadLetter(t, below)
	l := s.deadLetter(t, limit)
	s.submit(t, once, 5, "HTTP 503 Service Unavailable")
	s.deadLetter(t, once)

	t.Run("a viewer reads, and sees no form", func(t *testing.T) {
		b := s.visit(t, "pt-BR")
		b.enter(subject(below), s.tokens["viewer"])
		b.says("header", "test.viewer", "consulta")
		b.says("#decision", "só permite consulta")
		if n := b.count("main form:not(#ask)"); n != 0 {
			t.Errorf("a viewer sees %d forms on a claim's page, expected the one to ask by alone", n)
		}
		for _, path := range []string{"/", "/dead-letters", "/policies", "/audit"} {
			b.open(path)
			if b.text("main h1") == "" {
				t.Errorf("a viewer cannot read %s", path)
			}
		}
		// What the page does not offer is refused all the same, to the page's own form token as well.
		status := eval[int](b, `fetch("/dead-letters/`+l.ID+`/discard", {method: "POST", body: new URLSearchParams({reason: "x", form_token: document.querySelector("[name=form_token]").value})}).then(r => r.status)`)
		if status != http.StatusForbidden {
			t.Errorf("a viewer's discard is answered %d, expected 403", status)
		}
	})
	t.Run("an operator tries once more at the limit, and may not begin anew", func(t *testing.T) {
		b := s.visit(t, "pt-BR")
		b.enter(subject(limit), s.tokens["operator"])
		b.says("#retry button", "Tentar mais uma vez")
		if b.count("#discard") != 1 {
			t.Error("at the limit an operator cannot discard")
		}
		status := eval[int](b, `fetch("/dead-letters/`+l.ID+`/retry", {method: "POST", body: new URLSearchParams({reason: "x", how: "fresh", when: "now", form_token: document.querySelector("[name=form_token]").value})}).then(r => r.status)`)
		if status != http.StatusForbidden {
			t.Errorf("an operator's fresh retry is answered %d, expected 403", status)
		}
		if now := s.find(t, limit); now.State != "open" {
			t.Errorf("it is %s after an operator's fresh retry, expected open", now.State)
		}
		b.open(subject(below))
		if b.count("#retry input[name=how][type=radio]") != 0 {
			t.Error("an operator is offered to begin anew")
		}
		b.open(subject(once))
		b.write("#retry-reason", "O portal voltou.")
		b.click("#retry button[type=submit]")
		b.await("the result", `document.querySelector("#decision .notice.ok")`)
		b.says("#decision .notice.ok", "extra, além das 5", "test.operator")
	})
	t.Run("an admin forces", func(t *testing.T) {
		b := s.visit(t, "en")
		b.enter(subject(limit), s.tokens["admin"])
		b.write("#retry-reason", "The operator is back.")
		b.click("#retry input[name=how][value=force]")
		b.click("#retry input[name=when][value=now]")
		b.click("#retry button[type=submit]")
		b.await("the result", `document.querySelector("#decision .notice.ok")`)
		b.says("#decision .notice.ok", "retry extra, beyond the 5", "test.admin")
		if result := exhausted.ended(t); result["reviewedBy"] != "test.admin" {
			t.Errorf("the process was told %v, expected that test.admin decided", result["reviewedBy"])
		}
	})
}

func TestLoggingOutEndsIt(t *testing.T) {
	s := guarded(t)
	b := s.visit(t, "pt-BR")
	b.enter("/dead-letters", s.tokens["viewer"])
	cookie := eval[string](b, `document.cookie`)
	if strings.Contains(cookie, "session") {
		t.Errorf("the session's cookie can be read by scripts: %q", cookie)
	}
	b.click("form[action='/logout'] button")
	b.await("the log-in form", `location.pathname === "/login" && document.querySelector("#token")`)
	b.open("/audit")
	b.await("the log-in form again", `location.pathname === "/login" && location.search.includes("audit")`)
	if text := b.text("body"); strings.Contains(text, "CLM-") {
		t.Errorf("who is logged out reads of claims:\n%s", text)
	}
}

func TestWrongTokensAreSlowed(t *testing.T) {
	s := guarded(t)
	b := s.visit(t, "pt-BR")
	b.open("/")
	wrong := "rwt_" + strings.Repeat("wrong", 8)
	for try := 1; ; try++ {
		b.logIn(wrong)
		if text := b.text("#wrong"); strings.Contains(text, "Muitas tentativas com token errado. Tente de novo em") {
			if try < 3 {
				t.Errorf("it is slowed after %d wrong tokens, which a person with a bad copy shows too", try-1)
			}
			break
		}
		b.says("#wrong", "não reconhecido")
		if try == 12 {
			t.Fatal("twelve wrong tokens are not slowed")
		}
	}
	b.enter("/audit", s.tokens["viewer"]) // a right one never waits
}
