package redact

// near is how many words may stand between a label and its number where the number has the label's
// exact length. Redacted words do not count, so a second reading counts the same.
const near = 8

// maxShort is the longest abbreviation: "n.", "tel.", "Sra."
const maxShort = 3

// keeping says what becomes of the next number right behind a word like "protocolo".
type keeping uint8

const (
	keepNone keeping = iota
	keepOne
	keepList
	keepKey // an engine's key only: from 16 digits on
)

// expecting says whether a name may follow.
type expecting uint8

const (
	noName expecting = iota
	aName
	fullName // of two words at least
)

// state is what the text so far says about what comes next. It changes by what stays in the text and
// by marks only: a datum changes it as its mark does. That makes a second reading find nothing new.
type state struct {
	label   kind // of the numbers to come
	direct  bool // nothing but connecting words and punctuation since the label
	words   uint8
	keep    keeping
	name    expecting
	assigns bool // ':', '=', '>' or a quotation mark stood since the name's label
	money   bool
	short   bool // the last word may be an abbreviation: a period behind it ends no sentence
	ended   bool // a period that may end a sentence stood just before
}

// idle reports whether a word that means nothing changes nothing.
func (t *state) idle() bool {
	return t.label == none && t.keep == keepNone && t.name == noName && !t.money
}

// meet takes account of the word w that stays in the text.
func (t *state) meet(w *word) {
	t.money = w.role&currency != 0
	t.short, t.ended = w.end-w.start <= maxShort, false
	switch {
	case w.role&labels != 0:
		t.setLabel(w.kind)
	case w.role&persons != 0:
		t.setPerson()
	case w.role&(names|vague) != 0:
		t.setName(w)
	case w.role&keeps != 0:
		t.setKeep(w)
	case w.role&keepsLong != 0:
		t.setKey()
	case w.role == stops && w.kind == taxpayer: // CNPJ
		t.company()
	default:
		t.pass(w)
	}
}

func (t *state) setLabel(k kind) {
	t.name, t.keep, t.assigns = noName, keepNone, false
	t.point(k)
}

// setPerson keeps a label that stands right before: "CPF do paciente" is a CPF's.
func (t *state) setPerson() {
	t.name, t.assigns, t.keep = aName, false, keepNone
	if t.label == none || !t.direct {
		t.point(id)
	}
}

func (t *state) point(k kind) { t.label, t.direct, t.words = k, true, 0 }

// setName: "patientName" expects a patient's.
func (t *state) setName(w *word) {
	if w.role&names != 0 {
		t.name = aName
	} else if t.name == noName {
		t.name = fullName
	}
	t.assigns = false
	t.step(false)
}

func (t *state) setKeep(w *word) {
	t.name = noName
	t.step(false)
	t.keep = keepOne
	if w.role&keepsAll != 0 {
		t.keep = keepList
	}
}

func (t *state) setKey() {
	t.name = noName
	t.step(false)
	t.keep = keepKey
}

// company meets "CNPJ": beside "CPF" it lets companies' numbers stay.
func (t *state) company() {
	t.name, t.keep = noName, keepNone
	if t.label == cpf && t.direct {
		t.label = taxpayer
		return
	}
	t.step(false)
}

// pass meets a word that is no label.
func (t *state) pass(w *word) {
	if w.role&health != 0 && t.label == card && t.direct {
		t.label = cns
	}
	connecting := w.role&connects != 0
	if w.role&(particle|qualifies) == 0 {
		t.name = noName
	}
	if !connecting {
		t.keep = keepNone
	}
	t.step(connecting)
}

// step counts a word behind a label.
func (t *state) step(connecting bool) {
	if t.label == none {
		return
	}
	t.direct = t.direct && connecting
	if t.words++; t.words > near {
		t.label, t.direct = none, false
	}
}

// number meets a number that stays in the text.
func (t *state) number() {
	t.direct, t.name, t.money, t.short, t.ended = false, noName, false, false, false
	if t.keep != keepList {
		t.keep = keepNone
	}
	if t.label == id || t.label == birth || t.label == record || t.label == address {
		t.label = none
	}
}

// datum meets a mark, or what one stands for.
func (t *state) datum(k kind) {
	t.money, t.short, t.ended, t.keep = false, false, false, keepNone
	switch k {
	case name, address:
		t.name = noName
	case cpf, cns, card, phone:
		t.label, t.direct, t.words = k, false, 0
	case id, birth, user:
		t.label, t.direct = none, false
	}
}

// separate meets the punctuation mark or blank r.
func (t *state) separate(r rune) {
	t.money = t.money && r == ' '
	if t.ended && (r == ' ' || r == '\n') {
		t.direct, t.keep, t.name = false, keepNone, noName
	}
	t.ended = r == '.' && !t.short
	switch r {
	case ':', '=', '>', '"', '\'':
		t.assigns = true
	case '-':
		if t.name == aName && !t.assigns {
			t.name = fullName
		}
	case '\r', '\n':
		t.keep = keepNone
		if !t.assigns {
			t.name = noName
		}
	case ',':
		t.name = noName
		if t.keep != keepList {
			t.keep = keepNone
		}
	case ';', '|', '!', '?', '&', ')', ']', '}':
		t.keep, t.name = keepNone, noName
	case '<', '{':
		t.name = noName
	}
}
