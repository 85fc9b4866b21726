package redact

// near is how many words may stand between a label and its number where the number has the label's
// exact length. Redacted words do not count, so a second reading counts the same.
const near = 8

// maxShort is the longest word that may be an abbreviation, known or not: "n.", "tel.", "Sra."
const maxShort = 3

// keeping says what becomes of the next number right behind a word like "protocolo".
type keeping uint8

const (
	keepNone keeping = iota
	keepOne
	keepList
	keepKey      // if it is as long as an engine's key or an instant in milliseconds
	keepRegistry // if it is as long as an ANS registry
	keepCompany  // if it is as long as a CNPJ
)

// expecting says whether a name may follow.
type expecting uint8

const (
	noName expecting = iota
	aName
	fullName // of two words at least
)

// state is what the text so far says about what comes next. It changes by what stays in the text and
// by placeholders only: a datum changes it as its placeholder does. That makes a second reading find nothing new.
type state struct {
	label   kind // of the numbers to come
	direct  bool // nothing but connecting words and punctuation since the label
	words   uint8
	keep    keeping
	name    expecting
	assigns bool // ':', '=', '>' or a quotation mark stood since the last label
	money   bool
	short   bool // the last word may be an abbreviation: a period behind it ends no sentence
	ended   bool // a period that may end a sentence stood just before
	field   kind // the last label, for a value that is quoted later
	since   uint8
}

// meet takes account of the word w that stays in the text.
func (t *state) meet(w *word) {
	t.money = w.role&currency != 0
	t.short, t.ended = w.end-w.start <= maxShort || w.role&brief != 0, false
	if t.since++; t.since > near {
		t.field = none
	}
	switch {
	case w.role&labels != 0:
		t.setLabel(w.kind)
	case w.role&persons != 0:
		t.setPerson()
	case w.role&(names|vague) != 0:
		t.setName(w)
	case w.role&keepsAll != 0:
		t.setKeep(keepList)
	case w.role&keeps != 0:
		t.setKeep(keepOne)
	case w.role&keepsLong != 0:
		t.setKeep(keepKey)
	case w.role&registry != 0:
		t.setKeep(keepRegistry)
	case w.role&companies != 0:
		t.company()
	default:
		t.pass(w)
	}
}

func (t *state) setLabel(k kind) {
	if k == cpf && t.keep == keepCompany { // CNPJ/CPF
		t.point(taxpayer)
		return
	}
	if k != card { // "nome do titular do cartão: …"
		t.name = noName
	}
	t.keep, t.assigns = keepNone, false
	t.point(k)
}

// setPerson keeps a label that stands right before: "CPF do paciente" is a CPF's.
func (t *state) setPerson() {
	t.name, t.assigns, t.keep = aName, false, keepNone
	if t.label == none || !t.direct {
		t.point(id)
	}
}

func (t *state) point(k kind) {
	t.label, t.direct, t.words = k, true, 0
	t.field, t.since = k, 0
}

// setName: "patientName" expects a patient's.
func (t *state) setName(w *word) {
	if w.role&names != 0 {
		t.name = aName
		t.field, t.since = name, 0
	} else if t.name == noName {
		t.name = fullName
	}
	t.assigns = false
	t.step(false)
}

func (t *state) setKeep(k keeping) {
	t.name, t.field, t.assigns = noName, none, false
	t.keep = k
	t.step(false)
}

// company meets "CNPJ": beside "CPF" it lets companies' numbers stay.
func (t *state) company() {
	beside := t.label == cpf && t.direct
	t.setKeep(keepCompany)
	if beside {
		t.label, t.direct = taxpayer, true
	}
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
	if w.role&(connects|papers) == 0 {
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

// datum meets a placeholder, or what one stands for.
func (t *state) datum(k kind) {
	t.money, t.short, t.ended, t.keep = false, false, false, keepNone
	switch k {
	case name:
		t.name = noName
	case cpf, cns, phone:
		t.label, t.direct, t.words = k, false, 0
	case card, birth: // "informada 123, cadastrada 124"
		t.label, t.direct, t.words = k, true, 0
	case id, user, address:
		t.label, t.direct = none, false
	case secret:
		*t = state{}
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
		if !t.assigns {
			t.keep, t.name = keepNone, noName
		}
	case ',':
		t.name = noName
		if t.keep != keepList {
			t.keep = keepNone
		}
	case ';', '!', '?', '&':
		t.direct, t.keep, t.name = false, keepNone, noName
	case '|', ')', ']', '}':
		t.keep, t.name = keepNone, noName
	case '<', '{':
		t.name = noName
	}
}
