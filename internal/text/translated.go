package text

import "cmp"

// Translated is a text for people, which may differ by language.
type Translated struct {
	// Portuguese is what programs are given, too.
	Portuguese string `yaml:"pt-BR"`
	// English is empty where it is no other than Portuguese.
	English string `yaml:"en"`
}

// In returns the text in a language, by its BCP 47 tag.
func (t Translated) In(language string) string {
	if language == "en" {
		return cmp.Or(t.English, t.Portuguese)
	}
	return t.Portuguese
}

// String returns the text that programs are given.
func (t Translated) String() string { return t.Portuguese }

// UnmarshalYAML reads a plain text, or a mapping with one for each language.
func (t *Translated) UnmarshalYAML(read func(into any) error) error {
	if read(&t.Portuguese) == nil {
		return nil
	}
	type languages Translated
	return read((*languages)(t))
}
