package classify

// needles are texts that another text is compared with, all at once. Each has two characters at least.
type needles struct {
	// uses maps each beginning of a needle to the uses of the needle that ends there.
	uses map[string][]use
	// pairs holds the first two characters of each needle: most places of a text begin none.
	pairs [1 << 16]bool
}

// use says what a needle stands for. A needle may have several uses.
type use struct {
	role role
	// matcher is the matcher's number; none if the role belongs to no rule.
	matcher int
}

// add puts in a needle with its use.
func (n *needles) add(needle string, u use) {
	for i := range needle {
		n.uses[needle[:i]] = n.uses[needle[:i]]
	}
	n.uses[needle] = append(n.uses[needle], u)
	n.pairs[pair(needle[0], needle[1])] = true
}

func pair(a, b byte) int { return int(a)<<8 | int(b) }

// each calls found for each use of every needle in text[from:to].
func (n *needles) each(text []byte, found func(u use, from, to int)) {
	for from := range max(0, len(text)-1) {
		if !n.pairs[pair(text[from], text[from+1])] {
			continue
		}
		for to := from + 2; to <= len(text); to++ {
			uses, begins := n.uses[string(text[from:to])]
			if !begins {
				break
			}
			for _, u := range uses {
				found(u, from, to)
			}
		}
	}
}
