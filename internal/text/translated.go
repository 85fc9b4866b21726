package text

import "cmp"

// Translated is a text for people that may differ by language.
type Translated struct {
	// Portuguese is also the text for programs.
	Portuguese string `yaml:"pt-BR"`
	// English is empty if it is the same as Portuguese.
	English string `yaml:"en"`
}

// In returns the text in a language, by its BCP 47 tag.
func (t Translated) In(language string) string {
	if language == "en" {
		return cmp.Or(t.English, t.Portuguese)
	}
	return t.Portuguese
}

// String returns the text for programs.
func (t Translated) String() string { return t.Portuguese }

// UnmarshalYAML reads a plain text, or a mapping from languages to texts.
func (t *Translated) UnmarshalYAML(read func(into any) error) error {
	if read(&t.Portuguese) == nil {
		return nil
	}
	type languages Translated
	return read((*languages)(t))
}
